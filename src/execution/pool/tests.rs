//! The pool with real executor processes: this test program, started once more by a script.

use super::super::executor::{self, ExecutorArgs};
use super::super::takeover::attempts_dir;
use super::super::testing::{alone, dispatch, settings};
use super::super::{process, session};
use super::*;
use crate::model::event::{Finished, Outcome, Report};
use nix::sys::signal::Signal;

const HEARTBEAT: Duration = Duration::from_millis(100);

/// No test of its own: the executor's process, when a pool below has started it.
#[test]
fn the_executor_process() {
    let Ok(line) = std::env::var("SCHEDD_TEST_EXECUTOR") else { return };
    let words: Vec<&str> = line.split(' ').collect();
    let value = |option: &str| {
        let at = words.iter().position(|w| *w == option).unwrap();
        words[at + 1].to_owned()
    };
    assert_eq!(words[0], "executor");
    executor::run(ExecutorArgs {
        id: ExecutorId::from(value("--id").as_str()),
        state_dir: value("--state").into(),
        log_dir: value("--logs").into(),
        socket: value("--socket").into(),
        heartbeat: Duration::from_millis(value("--heartbeat-ms").parse().unwrap()),
    })
    .unwrap();
}

struct Daemon {
    pool: ExecutorPool,
    events: mpsc::Receiver<Event>,
}

impl Daemon {
    fn start(dir: &Path) -> Self {
        Self::start_with(dir, HEARTBEAT)
    }

    fn start_with(dir: &Path, heartbeat: Duration) -> Self {
        Self::start_retiring(dir, settings(heartbeat), Vec::new())
    }

    fn start_retiring(dir: &Path, settings: Settings, retiring: Vec<ExecutorId>) -> Self {
        let program = dir.join("schedd");
        let test = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/sh\nSCHEDD_TEST_EXECUTOR=\"$*\" exec {} --exact \
             execution::pool::tests::the_executor_process --nocapture\n",
            test.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let (tell, events) = mpsc::channel(64);
        let pool = ExecutorPool::start(PoolArgs {
            settings: settings.into(),
            retiring,
            config_file: None,
            state_dir: dir.join("state"),
            log_dir: dir.join("log"),
            events: tell,
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            program,
        })
        .unwrap();
        Self { pool, events }
    }

    /// The next event that is no heartbeat.
    async fn next(&mut self) -> Event {
        loop {
            let within = tokio::time::timeout(Duration::from_secs(20), self.events.recv());
            let event = within.await.expect("no event").unwrap();
            let heartbeat =
                matches!(event, Event::ExecutorReport { report: Report::Heartbeat(_), .. });
            if !heartbeat {
                return event;
            }
        }
    }

    /// A Hello, and what the core does first upon it.
    async fn hello(&mut self) -> Hello {
        let hello = self.unheard().await;
        self.pool.attach(&hello.executor, hello.connection);
        hello
    }

    async fn unheard(&mut self) -> Hello {
        let event = self.next().await;
        let Event::ExecutorConnected(hello) = event else { panic!("no hello: {event:?}") };
        hello
    }

    async fn lost(&mut self) -> Option<u64> {
        let event = self.next().await;
        let Event::ExecutorLost { incarnation, .. } = event else { panic!("not lost: {event:?}") };
        incarnation
    }

    async fn report(&mut self) -> Report {
        let event = self.next().await;
        let Event::ExecutorReport { report, .. } = event else { panic!("no report: {event:?}") };
        report
    }

    async fn started(&mut self) -> AttemptRef {
        let report = self.report().await;
        let Report::Started(started) = report else { panic!("not started: {report:?}") };
        started.of
    }

    async fn finished(&mut self) -> Finished {
        let report = self.report().await;
        let Report::Finished(finished) = report else { panic!("not finished: {report:?}") };
        *finished
    }
}

fn live<F: Future<Output = ()>>(test: impl FnOnce(PathBuf) -> F) {
    // The pool waits for its own children only, but tests beside it take all there are.
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test(dir.path().to_owned()));
    drop(runtime);
    end_executor(dir.path());
}

/// Executors outlive their daemon, but not the test.
fn end_executor(dir: &Path) {
    let pid = fs::read_to_string(dir.join("state/executors/local.lock")).unwrap();
    if let Some(process) = session::identify(pid.trim().parse().unwrap()) {
        assert!(process::signal(process, Signal::SIGKILL));
    }
}

#[test]
fn an_attempt_runs_and_its_end_is_kept_until_it_is_acknowledged() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        let hello = daemon.hello().await;
        assert_eq!((hello.incarnation, hello.running, hello.lost), (1, vec![], vec![]));
        let attempt = dispatch("SHELL", "exit 4", &[]);
        daemon.pool.run(attempt.clone());
        // A repetition is no second start.
        daemon.pool.run(attempt.clone());
        assert_eq!(daemon.started().await, attempt.of);
        let end = daemon.finished().await;
        assert_eq!(end.outcome, Outcome::Exited { code: 4 });

        daemon.pool.stop().await;
        let mut daemon = Daemon::start(&dir);
        let hello = daemon.hello().await;
        assert_eq!((hello.incarnation, &hello.finished), (1, &vec![end]));
        daemon.pool.acknowledge(&hello.executor, attempt.of);
        // Orders are carried out in turn: once this one has ended, that one was heard.
        let next = dispatch("SHELL", "true", &[]);
        daemon.pool.run(next.clone());
        daemon.started().await;
        let end = daemon.finished().await;

        daemon.pool.stop().await;
        let mut daemon = Daemon::start(&dir);
        assert_eq!(daemon.hello().await.finished, vec![end]);
        daemon.pool.stop().await;
    });
}

#[test]
fn a_task_outlives_the_daemon_and_hears_the_next_ones_kill() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        daemon.hello().await;
        let attempt = dispatch("SHELL", "sleep 99", &[]);
        daemon.pool.run(attempt.clone());
        daemon.started().await;
        daemon.pool.stop().await;

        let mut daemon = Daemon::start(&dir);
        let hello = daemon.hello().await;
        assert_eq!(hello.running, vec![attempt.of.clone()]);
        daemon.pool.kill(&hello.executor, attempt.of.clone());
        let end = daemon.finished().await;
        assert!(end.killed && end.of == attempt.of);
        daemon.pool.stop().await;
    });
}

#[test]
fn a_killed_executor_is_lost_at_once_and_the_next_one_ends_what_it_left() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        let first = daemon.hello().await;
        let mark = dir.join("pid");
        let handler = format!("echo $$ > {}.new; mv {0}.new {0}; sleep 99", mark.display());
        let attempt = dispatch("SHELL", &handler, &[]);
        daemon.pool.run(attempt.clone());
        daemon.started().await;
        let task = loop {
            match fs::read_to_string(&mark) {
                Ok(text) => break session::identify(text.trim().parse().unwrap()).unwrap(),
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let process = session::identify(first.pid).unwrap();
        assert!(process::signal(process, Signal::SIGKILL));
        assert_eq!(daemon.lost().await, Some(1));
        assert!(!session::runs(task), "ended before anybody is told");
        let second = daemon.hello().await;
        assert_eq!((second.incarnation, &second.lost), (2, &vec![attempt.of.clone()]));
        // Still lost for a daemon that did not hear it, until that is acknowledged.
        daemon.pool.stop().await;
        let mut daemon = Daemon::start(&dir);
        assert_eq!(daemon.hello().await.lost, vec![attempt.of]);
        daemon.pool.stop().await;
    });
}

#[test]
fn who_left_everything_is_ended_after_the_loss_once_it_was_seen() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        let hello = daemon.hello().await;
        let mark = dir.join("pid");
        let handler = format!(
            "( setsid env -i sh -c 'echo $$ > {}; exec sleep 47' >/dev/null 2>&1 & ); sleep 60",
            mark.display()
        );
        let attempt = dispatch("SHELL", &handler, &[]);
        daemon.pool.run(attempt);
        daemon.started().await;
        let journal = attempts_dir(&dir.join("state"), &hello.executor);
        let seen = || {
            let entry = fs::read_dir(&journal).unwrap().next().unwrap().unwrap();
            fs::read_to_string(entry.path()).unwrap().contains("\"seen\"")
        };
        while !seen() {
            tokio::task::yield_now().await;
        }
        let pid = fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
        let escaped = session::identify(pid).unwrap();
        assert!(process::signal(session::identify(hello.pid).unwrap(), Signal::SIGKILL));
        assert_eq!(daemon.lost().await, Some(1));
        assert!(!session::runs(escaped), "ended before anybody is told");
        daemon.hello().await;
        daemon.pool.stop().await;
    });
}

#[test]
fn a_copy_of_the_state_ends_nothing_of_the_original() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        let original = daemon.hello().await;
        let attempt = dispatch("SHELL", "sleep 99", &[]);
        daemon.pool.run(attempt.clone());
        daemon.started().await;

        let copy = dir.join("copy");
        let from = attempts_dir(&dir.join("state"), &original.executor);
        let to = attempts_dir(&copy.join("state"), &original.executor);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(&from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        let mut second = Daemon::start(&copy);
        let hello = second.hello().await;
        assert_eq!(hello.lost, vec![attempt.of.clone()], "it was accepted, somewhere");
        second.pool.stop().await;
        end_executor(&copy);

        daemon.pool.kill(&original.executor, attempt.of);
        assert!(daemon.finished().await.killed, "until then it ran");
        daemon.pool.stop().await;
    });
}

#[test]
fn a_silent_executor_is_killed_and_replaced_also_by_a_daemon_that_did_not_start_it() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        daemon.hello().await;
        daemon.pool.stop().await;
        let mut daemon = Daemon::start(&dir);
        let hello = daemon.hello().await;
        let process = session::identify(hello.pid).unwrap();
        assert!(process::signal(process, Signal::SIGSTOP));
        assert_eq!(daemon.lost().await, Some(1));
        assert_eq!(daemon.hello().await.incarnation, 2);
        daemon.pool.stop().await;
    });
}

#[test]
fn an_executor_follows_the_next_daemons_heartbeat_and_is_not_lost_until_it_does() {
    live(|dir| async move {
        let mut daemon = Daemon::start_with(&dir, Duration::from_secs(3600));
        daemon.hello().await;
        daemon.pool.stop().await;
        let mut daemon = Daemon::start_with(&dir, HEARTBEAT);
        let hello = daemon.hello().await;
        assert_eq!(hello.incarnation, 1);
        // With the old period there would be one at once and the next in an hour; and with that
        // of its Hello, the daemon counts no miss before.
        for _ in 0..2 * limits::HEARTBEATS_MISSED_MAX {
            let event = tokio::time::timeout(Duration::from_secs(20), daemon.events.recv()).await;
            let event = event.expect("no heartbeat").unwrap();
            assert!(matches!(event, Event::ExecutorReport { .. }), "{event:?}");
        }
        daemon.pool.stop().await;
    });
}

#[test]
fn an_executor_that_is_configured_no_more_is_kept_until_its_attempts_are_over() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        daemon.hello().await;
        let attempt = dispatch("SHELL", "sleep 99", &[]);
        daemon.pool.run(attempt.clone());
        daemon.started().await;
        daemon.pool.stop().await;

        let none = Settings { executors: Vec::new(), ..settings(HEARTBEAT) };
        let retiring = vec![ExecutorId::from("local")];
        let mut daemon = Daemon::start_retiring(&dir, none, retiring);
        let hello = daemon.hello().await;
        assert_eq!((hello.incarnation, &hello.running), (1, &vec![attempt.of.clone()]));
        let process = session::identify(hello.pid).unwrap();
        assert!(process::signal(process, Signal::SIGKILL));
        assert_eq!(daemon.lost().await, Some(1));
        assert_eq!(daemon.hello().await.lost, vec![attempt.of]);
        daemon.pool.stop().await;
    });
}

#[test]
fn what_was_decided_before_a_connection_was_heard_does_not_go_over_it() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        let hello = daemon.unheard().await;
        let mark = dir.join("early");
        let touch = ["-c", &format!("touch {}", mark.display())];
        daemon.pool.run(dispatch("EXEC", "/bin/sh", &touch));
        daemon.pool.attach(&hello.executor, hello.connection + 1);
        daemon.pool.run(dispatch("EXEC", "/bin/sh", &touch));
        daemon.pool.attach(&hello.executor, hello.connection);
        let late = dispatch("EXEC", "/bin/true", &[]);
        daemon.pool.run(late.clone());
        assert_eq!(daemon.started().await, late.of);
        assert_eq!(daemon.finished().await.of, late.of);
        assert!(!mark.exists());
        daemon.pool.stop().await;
    });
}

#[test]
fn an_executor_that_nobody_keeps_is_told_of_once_per_incarnation() {
    let hello = |incarnation| Hello {
        executor: ExecutorId::from("gone"),
        incarnation,
        connection: 0,
        pid: 1,
        boot_id: "b".into(),
        running: Vec::new(),
        frozen: Some(Vec::new()),
        lost: Vec::new(),
        finished: Vec::new(),
    };
    let refused = Refused::default();
    let told: Vec<bool> = [1, 1, 1, 2, 2].map(|n| refused.is_new(&hello(n))).into();
    assert_eq!(told, [true, false, false, true, false]);
}

#[test]
fn a_dispatch_of_which_no_process_can_be_made_comes_back_as_its_end() {
    live(|dir| async move {
        let mut daemon = Daemon::start(&dir);
        daemon.hello().await;
        let attempt = dispatch("NOSUCH", "x", &[]);
        daemon.pool.run(attempt.clone());
        let end = daemon.finished().await;
        let Outcome::SpawnFailed { message, transient: false } = end.outcome else {
            panic!("{:?}", end.outcome)
        };
        assert!(message.contains("NOSUCH"), "{message}");
        daemon.pool.stop().await;
    });
}

#[test]
fn a_state_directory_too_deep_for_a_socket_is_told_with_its_length() {
    let deep = PathBuf::from(format!("/tmp/{}", "d".repeat(120)));
    let error = listen(&deep, &deep.join("executors.sock")).unwrap_err();
    assert!(error.to_string().contains("has 140 bytes; a socket's may have at most 107"));
}
