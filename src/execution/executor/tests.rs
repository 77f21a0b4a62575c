use std::path::Path;

use tokio::net::UnixListener;

use super::super::testing::{alone, assignment_in};
use super::*;
use crate::model::event::{Outcome, TaskResult};
use crate::model::id::Lease;
use crate::model::time::Timestamp;

fn args(dir: &Path) -> ExecutorArgs {
    ExecutorArgs {
        id: ExecutorId::from("e1"),
        state_dir: dir.join("state"),
        log_dir: dir.join("log"),
        socket: dir.join("sock"),
        heartbeat: Duration::from_secs(5),
    }
}

async fn begun(dir: &Path) -> Executor {
    let args = args(dir);
    let places = Places::new(&args.state_dir, &args.id);
    places.make().unwrap();
    Executor::take_over(args, &places).await.unwrap()
}

fn live<F: Future<Output = ()>>(test: impl FnOnce(PathBuf) -> F) {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, test(dir.path().to_owned()));
}

fn end(of: &AttemptRef, output: &str) -> Box<Finished> {
    Box::new(Finished {
        of: of.clone(),
        started_at: None,
        finished_at: Timestamp::default(),
        outcome: Outcome::Exited { code: 0 },
        result: TaskResult { output: Some(output.into()), ..TaskResult::default() },
        killed: false,
        user_ms: None,
        system_ms: None,
        max_rss_bytes: None,
        output_bytes: None,
    })
}

#[test]
fn a_second_lease_of_an_instance_that_runs_is_refused_and_a_repetition_ignored() {
    live(|dir| async move {
        let mut executor = begun(&dir).await;
        let first = assignment_in(&dir, "exit 0");
        assert_eq!(executor.accept(first.clone()), None);
        assert_eq!(executor.accept(first.clone()), None);
        assert_eq!(executor.slots.len(), 1);
        let mut second = first.clone();
        second.of.lease = Lease(2);
        let refusal = executor.accept(second.clone()).unwrap();
        assert_eq!(refusal.of, second.of);
        assert!(
            matches!(refusal.outcome, Outcome::SpawnFailed { transient: true, .. }),
            "{refusal:?}"
        );
        assert_eq!(executor.slots.len(), 1);
        executor.slots.get_mut(&first.of).unwrap().finished = Some(end(&first.of, ""));
        assert_eq!(executor.accept(second), None, "that one has ended");
        assert_eq!(executor.slots.len(), 2);
        // None of the two is to start.
        executor.slots.values().for_each(|slot| slot.wish.kill());
        while !executor.runners.is_empty() {
            executor.told.recv().await;
        }
    });
}

#[test]
fn what_an_earlier_process_left_is_lost_or_finished_until_the_core_knows() {
    live(|dir| async move {
        let executor = begun(&dir).await;
        let accepted = assignment_in(&dir, "").of;
        let done = assignment_in(&dir, "").of;
        let (journal, boot) = (&executor.hands.journal, &executor.hands.boot_id);
        drop(journal.accept(&accepted, boot).unwrap());
        journal.accept(&done, boot).unwrap().finished(&end(&done, "x")).unwrap();
        drop(executor);

        let mut executor = begun(&dir).await;
        assert_eq!(executor.incarnation, 2);
        assert!(executor.lost.contains(&accepted) && executor.slots.contains_key(&done));
        for of in [&accepted, &done] {
            let frame = ToExecutor::Acknowledge { of: of.clone() };
            assert_eq!(executor.obey(&encode(&frame).unwrap()), None);
        }
        assert!(executor.lost.is_empty() && executor.is_idle());
        assert_eq!(executor.hands.journal.left().unwrap(), []);
    });
}

#[test]
fn results_too_large_for_one_hello_are_named_in_it_and_follow() {
    live(|dir| async move {
        let mut executor = begun(&dir).await;
        let large = "x".repeat(limits::RESULT_BYTES_MAX);
        for _ in 0..80 {
            let of = assignment_in(&dir, "").of;
            let finished = Some(end(&of, &large));
            executor.slots.insert(of, Slot { wish: orders().0, finished });
        }
        let listener = UnixListener::bind(dir.join("sock")).unwrap();
        let stream = UnixStream::connect(dir.join("sock")).await.unwrap();
        let (peer, _) = listener.accept().await.unwrap();
        let mut line = frames(stream);
        let hear = async {
            let mut frames = frames(peer);
            let mut named = BTreeSet::new();
            let mut ended = BTreeSet::new();
            while let Some(frame) = frames.next().await {
                match serde_json::from_slice(&frame.unwrap()).unwrap() {
                    FromExecutor::Hello { hello, .. } => {
                        named.extend(hello.running);
                        ended.extend(hello.finished.into_iter().map(|f| f.of));
                    }
                    FromExecutor::Report { report, .. } => {
                        let Report::Finished(finished) = report else { panic!("{report:?}") };
                        assert!(named.contains(&finished.of));
                        ended.insert(finished.of);
                    }
                }
                if ended.len() == 80 {
                    break;
                }
            }
            ended.len()
        };
        let (said, heard) = tokio::join!(executor.hello(&mut line), hear);
        assert_eq!((said, heard), (Ok(()), 80));
    });
}

#[test]
fn one_that_is_refused_comes_again_ever_later() {
    live(|dir| async move {
        let executor = begun(&dir).await;
        let listener = UnixListener::bind(dir.join("sock")).unwrap();
        let refuse = async {
            let from = clock::monotonic();
            for _ in 0..7 {
                let (peer, _) = listener.accept().await.unwrap();
                assert!(frames(peer).next().await.is_some(), "its Hello, and no welcome");
            }
            clock::monotonic() - from
        };
        tokio::select! {
            () = executor.serve() => panic!("it does not end before a minute"),
            took = refuse => {
                // 10, 20, 40, 80, 160 and 320 ms between the seven.
                assert!(took >= Duration::from_millis(630), "{took:?}");
            }
        }
    });
}

#[test]
fn the_number_grows_whatever_becomes_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("incarnation");
    assert_eq!(incarnation(&path).unwrap(), 1);
    assert_eq!(incarnation(&path).unwrap(), 2);
    std::fs::write(&path, "\0\0").unwrap();
    assert!(incarnation(&path).unwrap() > 1_000_000);
}

#[test]
fn one_process_per_id() {
    live(|dir| async move {
        let args = args(&dir);
        let places = Places::new(&args.state_dir, &args.id);
        places.make().unwrap();
        let held = lock(&places.lock, &args.id).await.unwrap();
        let refused = lock(&places.lock, &args.id).await.unwrap_err();
        assert!(matches!(refused, ExecutorError::Running { .. }), "{refused}");
        drop(held);
        lock(&places.lock, &args.id).await.unwrap();
    });
}

#[test]
fn what_is_frozen_is_named_in_the_hello_until_it_is_thawed_or_has_ended() {
    live(|dir| async move {
        let mut executor = begun(&dir).await;
        let slot = |finished| Slot { wish: orders().0, finished };
        let [on, ended, never] =
            [1, 2, 3].map(|lease| AttemptRef { lease: Lease(lease), ..assignment_in(&dir, "").of });
        executor.slots.insert(on.clone(), slot(None));
        executor.slots.insert(ended.clone(), slot(None));
        let frozen = async |executor: &Executor| {
            let listener = UnixListener::bind(dir.join("sock")).unwrap();
            let mut line = frames(UnixStream::connect(dir.join("sock")).await.unwrap());
            let mut peer = frames(listener.accept().await.unwrap().0);
            executor.hello(&mut line).await.unwrap();
            std::fs::remove_file(dir.join("sock")).unwrap();
            let frame = peer.next().await.unwrap().unwrap();
            match serde_json::from_slice(&frame).unwrap() {
                FromExecutor::Hello { hello, .. } => hello.frozen,
                FromExecutor::Report { .. } => panic!("no Hello"),
            }
        };
        assert_eq!(frozen(&executor).await, Some(Vec::new()));
        for of in [&on, &ended, &never] {
            let frame = ToExecutor::Freeze { of: of.clone() };
            assert_eq!(executor.obey(&encode(&frame).unwrap()), None);
        }
        executor.slots.get_mut(&ended).unwrap().finished = Some(end(&ended, ""));
        assert_eq!(frozen(&executor).await, Some(vec![on.clone()]));
        let frame = ToExecutor::Thaw { of: on };
        assert_eq!(executor.obey(&encode(&frame).unwrap()), None);
        assert_eq!(frozen(&executor).await, Some(Vec::new()));
    });
}
