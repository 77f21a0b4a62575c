//! Real processes. All tests of this file share one thread of runners and one reaper, because a
//! process has one set of children: in the product that is the executor.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tokio::task::LocalSet;

use super::super::freeze::{Wish, orders};
use super::super::journal::Journal;
use super::super::session;
use super::super::signals::{Heard, Signals};
use super::super::start;
use super::super::testing::{alone, assignment_in};
use super::*;
use crate::model::spec::Limits;

struct Life {
    dir: tempfile::TempDir,
    hands: Rc<Hands>,
}

struct Attempt {
    orders: Wish,
    reports: mpsc::Receiver<Report>,
    over: tokio::task::JoinHandle<()>,
}

impl Life {
    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn script(&self, text: &str) -> Assignment {
        assignment_in(self.path(), text)
    }

    fn begin(&self, assignment: &Assignment) -> Attempt {
        let (tell, reports) = mpsc::channel(4);
        let (wish, orders) = orders();
        let run = run(Rc::clone(&self.hands), assignment.clone(), orders, tell);
        Attempt { orders: wish, reports, over: tokio::task::spawn_local(run) }
    }

    async fn end_of(&self, assignment: &Assignment) -> Finished {
        let mut attempt = self.begin(assignment);
        attempt.started().await;
        let end = attempt.finished().await;
        attempt.over.await.unwrap();
        end
    }

    fn log(&self, assignment: &Assignment) -> String {
        std::fs::read_to_string(&assignment.log_path).unwrap()
    }
}

impl Attempt {
    async fn started(&mut self) -> Started {
        match self.reports.recv().await {
            Some(Report::Started(started)) => started,
            other => panic!("not started: {other:?}"),
        }
    }

    async fn finished(&mut self) -> Finished {
        match self.reports.recv().await {
            Some(Report::Finished(finished)) => *finished,
            other => panic!("not finished: {other:?}"),
        }
    }
}

/// Runs a test in an executor's surroundings: subreaper, signals, one thread.
fn live<F: Future<Output = ()>>(test: impl FnOnce(Rc<Life>) -> F) {
    let _alone = alone();
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().join("attempts")).unwrap();
        let hands = Rc::new(Hands::new(journal));
        let mut signals = Signals::install().unwrap();
        let reaping = Rc::clone(&hands);
        let reap = async move {
            while let Ok(heard) = signals.next().await {
                assert_eq!(heard, Heard::ChildEnded);
                reaping.children.reap();
            }
        };
        let life = Rc::new(Life { dir, hands });
        let within = tokio::time::timeout(Duration::from_secs(20), test(life));
        tokio::select! {
            done = within => done.expect("the test hangs"),
            () = reap => panic!("nobody reaps"),
        }
    });
}

/// Waits until a file has a line, which a task writes when it is where the test wants it.
async fn line(path: PathBuf) -> String {
    loop {
        if let Ok(text) = std::fs::read_to_string(&path)
            && text.ends_with('\n')
        {
            return text.trim().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn identity_in(path: PathBuf) -> Identity {
    session::identify(line(path).await.parse().unwrap()).unwrap()
}

#[test]
fn an_exit_status_and_a_signal_are_told_by_number_and_name() {
    live(|life| async move {
        let end = life.end_of(&life.script("exit 7")).await;
        assert_eq!(end.outcome, Outcome::Exited { code: 7 });
        assert!(!end.killed && end.started_at.is_some());
        let end = life.end_of(&life.script("kill -SEGV $$")).await;
        assert_eq!(end.outcome, Outcome::Signalled { signal: 11, name: "SEGV".to_owned() });
    });
}

#[test]
fn all_exit_codes_of_many_at_once_are_right() {
    live(|life| async move {
        let attempts: Vec<_> = (0..100)
            .map(|n| (n % 7, life.begin(&life.script(&format!("exit {}", n % 7)))))
            .collect();
        for (code, mut attempt) in attempts {
            attempt.started().await;
            assert_eq!(attempt.finished().await.outcome, Outcome::Exited { code });
        }
    });
}

#[test]
fn the_deadline_kills_what_ignores_term() {
    live(|life| async move {
        let assignment = Assignment {
            timeout: Some(Duration::from_millis(300)),
            kill_grace: Duration::from_millis(300),
            ..life.script("trap '' TERM; while :; do sleep 0.05; done")
        };
        let end = life.end_of(&assignment).await;
        assert_eq!(end.outcome, Outcome::TimedOut);
        assert!(!end.killed);
        let took = end.finished_at.since(end.started_at.unwrap());
        assert!(took >= Duration::from_millis(600), "{took:?}");
    });
}

#[test]
fn a_kill_ends_the_whole_tree_even_where_it_ignores_term_or_is_stopped() {
    live(|life| async move {
        let tree = "sh -c 'trap \"\" TERM; echo $$ > $DIR/a; sleep 99; sleep 99' &
                    sh -c 'echo $$ > $DIR/b; kill -STOP $$; sleep 99' & wait";
        let assignment = Assignment { kill_grace: Duration::from_millis(300), ..life.script(tree) };
        let mut attempt = life.begin(&assignment);
        attempt.started().await;
        let a = identity_in(life.path().join("a")).await;
        let b = identity_in(life.path().join("b")).await;
        attempt.orders.kill();
        let end = attempt.finished().await;
        assert!(end.killed);
        assert_eq!(end.outcome, Outcome::Signalled { signal: 15, name: "TERM".to_owned() });
        assert!(!session::runs(a) && !session::runs(b), "its end is told when all are gone");
    });
}

#[test]
fn a_kill_finds_who_left_the_session_by_a_double_fork() {
    live(|life| async move {
        let text = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > $DIR/c; sleep 99; sleep 99' &
                    (setsid sh -c 'echo $$ > $DIR/d; exec sleep 99' &) ; sleep 99";
        let assignment = Assignment { kill_grace: Duration::from_millis(300), ..life.script(text) };
        let mut attempt = life.begin(&assignment);
        attempt.started().await;
        let c = identity_in(life.path().join("c")).await;
        let d = identity_in(life.path().join("d")).await;
        attempt.orders.kill();
        attempt.finished().await;
        assert!(!session::runs(c) && !session::runs(d));
    });
}

/// Leaves session, environment and parents in one go, and its log where `quiet`.
fn escape(name: &str, quiet: bool) -> String {
    let output = if quiet { ">/dev/null 2>&1" } else { "" };
    format!("( setsid env -i sh -c 'echo $$ > '$DIR'/{name}; exec sleep 47' {output} & )")
}

/// Waits until this process is a child of the executor.
async fn adopted(process: Identity) {
    while !session::strays(&BTreeSet::new()).iter().any(|s| s.identity == process) {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_kill_and_an_end_find_who_left_everything_but_the_log() {
    live(|life| async move {
        let log_path = life.path().join("other.log");
        let mut other = life.begin(&Assignment { log_path, ..life.script("sleep 99") });
        other.started().await;
        let mut attempt = life.begin(&life.script(&format!("{}; sleep 60", escape("g", false))));
        attempt.started().await;
        let escaped = identity_in(life.path().join("g")).await;
        attempt.orders.kill();
        attempt.finished().await;
        assert!(!session::runs(escaped));

        let until = "while ! test -s $DIR/h; do :; done";
        let attempt = life.begin(&life.script(&format!("{}; {until}", escape("h", false))));
        attempt.over.await.unwrap();
        let escaped = session::identify(line(life.path().join("h")).await.parse().unwrap());
        assert!(escaped.is_none_or(|e| !session::runs(e)), "ended after the end");

        other.orders.kill();
        let end = other.finished().await;
        assert_eq!(end.outcome, Outcome::Signalled { signal: 15, name: "TERM".to_owned() });
    });
}

#[test]
fn an_orphan_is_the_only_attempts_there_is() {
    live(|life| async move {
        let mut attempt = life.begin(&life.script(&format!("{}; sleep 60", escape("i", true))));
        attempt.started().await;
        let escaped = identity_in(life.path().join("i")).await;
        attempt.orders.kill();
        attempt.finished().await;
        assert!(!session::runs(escaped));
    });
}

#[test]
fn an_orphan_that_was_seen_below_its_leader_is_known_again() {
    live(|life| async move {
        let mut other = life.begin(&life.script("sleep 99"));
        other.started().await;
        let quiet = ">/dev/null 2>&1";
        let text = format!(
            "( setsid env -i sh -c 'echo $$ > '$DIR'/j; exec sleep 47' {quiet} &                while ! test -e $DIR/go; do sleep 0.01; done ) {quiet} & sleep 60"
        );
        let mut attempt = life.begin(&life.script(&text));
        attempt.started().await;
        let escaped = identity_in(life.path().join("j")).await;
        life.hands.look();
        std::fs::write(life.path().join("go"), "").unwrap();
        adopted(escaped).await;
        attempt.orders.kill();
        attempt.finished().await;
        assert!(!session::runs(escaped));
        other.orders.kill();
        other.finished().await;
    });
}

#[test]
fn what_is_nobodys_runs_until_no_attempt_does() {
    live(|life| async move {
        let mut other = life.begin(&life.script("sleep 99"));
        other.started().await;
        let mut attempt = life.begin(&life.script(&format!("{}; sleep 60", escape("k", true))));
        attempt.started().await;
        let escaped = identity_in(life.path().join("k")).await;
        adopted(escaped).await;
        attempt.orders.kill();
        attempt.finished().await;
        attempt.over.await.unwrap();
        life.hands.look();
        assert!(session::runs(escaped), "it could be the other's");
        other.orders.kill();
        other.finished().await;
        other.over.await.unwrap();
        assert!(session::runs(escaped), "nothing says that it is");
        life.hands.look();
        while session::runs(escaped) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_grandchild_in_the_background_delays_no_end_and_is_ended() {
    live(|life| async move {
        let assignment = Assignment {
            kill_grace: Duration::from_millis(200),
            ..life.script(
                "(trap '' TERM; echo $$ > $DIR/e; sleep 99; sleep 99) & \
                           while ! test -s $DIR/e; do :; done; echo hi",
            )
        };
        let mut attempt = life.begin(&assignment);
        attempt.started().await;
        let end = attempt.finished().await;
        assert_eq!(end.outcome, Outcome::Exited { code: 0 });
        assert_eq!(end.output_bytes, Some(3));
        assert_eq!(life.log(&assignment), "hi\n");
        attempt.over.await.unwrap();
        let left = Session::new(Identity::UNKNOWN, &assignment.of, Orphans::Anywhere);
        assert_eq!(left.members(&BTreeSet::new()), [], "the leftover is ended after the end");
    });
}

#[test]
fn one_that_has_ended_when_the_kill_comes_keeps_its_result() {
    live(|life| async move {
        let mut attempt = life.begin(&life.script("echo $$ > $DIR/f; exit 3"));
        let leader = attempt.started().await.pid;
        line(life.path().join("f")).await;
        // A zombie as long as this thread does not turn to its reaper.
        while std::fs::read_to_string(format!("/proc/{leader}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {
            std::hint::spin_loop();
        }
        attempt.orders.kill();
        let end = attempt.finished().await;
        assert_eq!(end.outcome, Outcome::Exited { code: 3 });
        assert!(!end.killed);
    });
}

#[test]
fn a_kill_before_the_start_starts_nothing() {
    live(|life| async move {
        let mut attempt = life.begin(&life.script("touch $DIR/ran"));
        attempt.orders.kill();
        let end = attempt.finished().await;
        assert!(end.killed && end.started_at.is_none());
        assert!(!life.path().join("ran").exists());
    });
}

#[test]
fn a_start_that_hangs_holds_up_nobody_no_lock_and_no_kill_and_no_deadline() {
    live(|life| async move {
        // Leased by a file server, so to speak: exec waits for 45 s.
        let program = life.path().join("leased");
        std::fs::copy("/bin/true", &program).unwrap();
        let held = std::fs::File::open(&program).unwrap();
        process::lease(&held);
        let lock_path = life.path().join("lock");
        let lock = std::fs::File::create(&lock_path).unwrap();
        lock.lock().unwrap();
        let hanging = || Assignment {
            program: program.to_str().unwrap().to_owned(),
            args: Vec::new(),
            ..life.script("")
        };
        let mut killed = life.begin(&hanging());
        let timeout = Some(Duration::from_millis(300));
        let mut late = life.begin(&Assignment { timeout, ..hanging() });
        let end = life.end_of(&life.script("exit 3")).await;
        assert_eq!(end.outcome, Outcome::Exited { code: 3 });
        while life.hands.children.leaders().len() < 2 {
            tokio::task::yield_now().await;
        }
        drop(lock);
        let next = std::fs::File::open(&lock_path).unwrap();
        while next.try_lock().is_err() {
            // They close what they inherited first thing, which is not at once.
            tokio::task::yield_now().await;
        }
        assert_eq!(life.hands.children.leaders().len(), 2, "both still hang");
        killed.orders.kill();
        killed.started().await;
        let end = killed.finished().await;
        assert!(end.killed, "{end:?}");
        late.started().await;
        assert_eq!(late.finished().await.outcome, Outcome::TimedOut);
        drop(held);
    });
}

#[test]
fn a_failed_start_is_told_with_its_reason_and_leaves_no_child() {
    live(|life| async move {
        let assignment = Assignment { program: "/no/such".to_owned(), ..life.script("") };
        let mut attempt = life.begin(&assignment);
        let end = attempt.finished().await;
        let Outcome::SpawnFailed { message, transient: false } = end.outcome else {
            panic!("{:?}", end.outcome)
        };
        assert!(message.contains("/no/such: No such file"), "{message}");
        assert_eq!(end.started_at, None);
        assert_eq!(life.hands.children.leaders(), BTreeSet::new(), "it is reaped");
    });
}

#[test]
fn a_task_finds_its_environment_three_descriptors_and_an_empty_input() {
    live(|life| async move {
        // Open in this process without the flag that closes it at exec.
        let inherited = nix::unistd::dup(std::io::stderr()).unwrap();
        let assignment = Assignment {
            env: [("ONLY", "this one"), ("SCHED_INSTANCE_ID", "i")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..life.script(
                "cat; (cd /proc/$$/fd; echo *); tr '\\0' '\\n' < /proc/$$/environ; \
                 echo; umask; readlink /proc/$$/fd/0; cut -d' ' -f5,6 /proc/$$/stat; echo $$; \
                 grep -E 'Sig(Blk|Ign)' /proc/self/status",
            )
        };
        let end = life.end_of(&assignment).await;
        drop(inherited);
        assert_eq!(end.outcome, Outcome::Exited { code: 0 });
        let log = life.log(&assignment);
        let mut lines = log.lines();
        assert_eq!(lines.next(), Some("0 1 2"));
        let mut env: Vec<&str> = lines.by_ref().take_while(|l| !l.is_empty()).collect();
        env.sort_unstable();
        let me = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
        let path = if me.uid.is_root() { start::ROOT_PATH } else { start::PATH };
        let mut expected = [
            format!("HOME={}", me.dir.display()),
            "LANG=C.UTF-8".to_owned(),
            format!("LOGNAME={}", me.name),
            "ONLY=this one".to_owned(),
            format!("PATH={path}"),
            "SCHED_INSTANCE_ID=i".to_owned(),
            "SHELL=/bin/sh".to_owned(),
            format!("USER={}", me.name),
        ];
        expected.sort_unstable();
        assert_eq!(env, expected);
        assert_eq!(lines.next(), Some("0022"));
        assert_eq!(lines.next(), Some("/dev/null"));
        let ids = lines.next().unwrap();
        let pid = lines.next().unwrap();
        assert_eq!(ids, format!("{pid} {pid}"), "group and session are its own");
        // 32 and 33 are the C library's own: it lets nobody set them, and whoever started this
        // test may have left them ignored.
        let own_of_libc: u64 = 1 << 31 | 1 << 32;
        let masks: Vec<u64> = lines
            .map(|l| u64::from_str_radix(l.rsplit('\t').next().unwrap(), 16).unwrap())
            .map(|mask| mask & !own_of_libc)
            .collect();
        assert_eq!(masks, [0; 2], "nothing is blocked or ignored");
    });
}

#[test]
fn directory_mask_nice_and_limits_are_as_asked() {
    live(|life| async move {
        let assignment = Assignment {
            cwd: Some("/usr".to_owned()),
            umask: Some(0o077),
            nice: Some(5),
            limits: Limits { open_files: Some(64), file_size: Some(1 << 20), ..Limits::default() },
            ..life.script("pwd; umask; ulimit -n; ulimit -f; cut -d' ' -f19 /proc/$$/stat")
        };
        let end = life.end_of(&assignment).await;
        assert_eq!(end.outcome, Outcome::Exited { code: 0 });
        // ulimit -f counts in blocks of 512 bytes.
        assert_eq!(life.log(&assignment), "/usr\n0077\n64\n2048\n5\n");
    });
}

#[test]
fn another_user_gets_its_ids_its_home_and_a_result_file_of_its_own() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    live(|life| async move {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(life.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let result_path = life.path().join("own").join("result");
        let mut assignment = Assignment {
            user: Some("nobody".to_owned()),
            cwd: None,
            result_path: result_path.clone(),
            ..life.script(
                "echo '{\"output\":{\"n\":1}}' > $SCHED_RESULT.new; \
                 mv $SCHED_RESULT.new $SCHED_RESULT; id -un; id -Gn; echo $USER; \
                 test -r /etc/shadow && echo reads",
            )
        };
        assignment.env.insert("SCHED_RESULT".into(), result_path.to_str().unwrap().to_owned());
        let end = life.end_of(&assignment).await;
        let log = life.log(&assignment);
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!((lines[0], lines[2]), ("nobody", "nobody"));
        assert!(!lines[1].split(' ').any(|group| group == "root"), "{log}");
        assert_eq!(lines.len(), 3, "{log}");
        assert_eq!(end.result.output, Some(serde_json::json!({"n": 1})), "{:?}", end.result);
        assert!(!life.path().join("own").exists());
    });
}

#[test]
fn what_the_task_says_of_itself_is_reported() {
    live(|life| async move {
        let text =
            "echo '{\"errorCode\":\"CONN_RESET\",\"message\":\"m\"}' > $SCHED_RESULT; exit 1";
        let end = life.end_of(&life.script(text)).await;
        assert_eq!(end.result.error_code.as_deref(), Some("CONN_RESET"));
        let text = "head -c 70000 /dev/zero > $SCHED_RESULT";
        let end = life.end_of(&life.script(text)).await;
        let invalid = end.result.invalid.unwrap();
        assert!(invalid.contains("70000 bytes"), "{invalid}");
        assert_eq!(end.outcome, Outcome::Exited { code: 0 });
    });
}

#[test]
fn processor_time_and_memory_are_measured() {
    live(|life| async move {
        let text = "i=0; while test $i -lt 200000; do i=$((i+1)); done; \
                    head -c 60000000 /dev/zero | tail -c 50000000 > /dev/null";
        let end = life.end_of(&life.script(text)).await;
        assert!(end.user_ms.unwrap() > 0);
        assert!(end.max_rss_bytes.unwrap() > 40_000_000, "{:?}", end.max_rss_bytes);
    });
}

#[test]
fn a_flood_is_bounded_and_its_tail_kept() {
    live(|life| async move {
        use std::os::unix::fs::MetadataExt;
        let text = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo THE-END";
        let assignment = life.script(text);
        let end = life.end_of(&assignment).await;
        assert_eq!(end.output_bytes, Some(20_000_009));
        let file = std::fs::File::open(&assignment.log_path).unwrap();
        file.sync_all().unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < 2 << 20);
        let kept = std::fs::read(&assignment.log_path).unwrap();
        assert!(kept.ends_with(b"\nTHE-END\n"));
    });
}

/// Waits until a process is stopped. It must not fork: whoever waits for a child that it has forked
/// by vfork, which is stopped before it has become a program, is not seen as stopped.
async fn until_stopped(process: Identity) {
    let stopped = || session::stat(process.pid).is_some_and(|s| s.identity == process && s.stopped);
    while !stopped() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_freeze_stops_the_whole_tree_and_a_thaw_lets_it_go_on() {
    live(|life| async move {
        let beat =
            |name: &str| format!("echo $$ > $DIR/{name}; while ! test -e $DIR/go; do :; done");
        let text = format!(
            "sh -c '{}' & setsid sh -c '{}' & {}; {}; wait; exit 5",
            beat("fa"),
            beat("fb"),
            escape("fc", false),
            beat("fd"),
        );
        let mut attempt = life.begin(&life.script(&text));
        attempt.started().await;
        let mut tree = Vec::new();
        for name in ["fa", "fb", "fc", "fd"] {
            tree.push(identity_in(life.path().join(name)).await);
        }
        attempt.orders.freeze(true);
        for process in &tree {
            until_stopped(*process).await;
        }
        std::fs::write(life.path().join("go"), "").unwrap();
        attempt.orders.freeze(false);
        let end = attempt.finished().await;
        assert_eq!(end.outcome, Outcome::Exited { code: 5 });
        attempt.over.await.unwrap();
        assert!(tree.into_iter().all(|process| !session::runs(process)));
    });
}

#[test]
fn the_time_allowed_stands_still_while_an_attempt_is_frozen() {
    live(|life| async move {
        let timeout = Duration::from_millis(300);
        let assignment = Assignment { timeout: Some(timeout), ..life.script("sleep 99") };
        let mut attempt = life.begin(&assignment);
        // Before there is a process: it is stopped as soon as there is one.
        attempt.orders.freeze(true);
        while life.hands.children.leaders().is_empty() {
            tokio::task::yield_now().await;
        }
        let leader = life.hands.children.leaders().first().copied().unwrap();
        let leader = session::identify(leader).unwrap();
        until_stopped(leader).await;
        let since = clock::since_boot();
        while clock::since_boot() < since + timeout * 2 {
            tokio::task::yield_now().await;
        }
        assert!(session::stat(leader.pid).unwrap().stopped, "its time is not up");
        attempt.orders.freeze(false);
        attempt.started().await;
        let end = attempt.finished().await;
        assert_eq!(end.outcome, Outcome::TimedOut);
    });
}

#[test]
fn a_frozen_one_hears_term_has_its_grace_and_ends() {
    live(|life| async move {
        let text = "trap 'echo heard > $DIR/fe; exit 0' TERM; echo $$ > $DIR/ff; \
                    while :; do :; done";
        let mut attempt = life.begin(&life.script(text));
        attempt.started().await;
        let leader = identity_in(life.path().join("ff")).await;
        attempt.orders.freeze(true);
        until_stopped(leader).await;
        attempt.orders.kill();
        let end = attempt.finished().await;
        assert!(end.killed);
        assert_eq!(line(life.path().join("fe")).await, "heard");
        assert_eq!(end.outcome, Outcome::Exited { code: 0 });
    });
}

#[test]
fn a_frozen_one_that_is_killed_from_outside_ends_with_all_that_is_left_of_it() {
    live(|life| async move {
        let text = "sh -c 'echo $$ > $DIR/fg; exec sleep 99' & \
                    while ! test -s $DIR/fg; do :; done; echo $$ > $DIR/fh; wait";
        let mut attempt = life.begin(&life.script(text));
        attempt.started().await;
        let child = identity_in(life.path().join("fg")).await;
        let leader = identity_in(life.path().join("fh")).await;
        attempt.orders.freeze(true);
        for process in [child, leader] {
            until_stopped(process).await;
        }
        process::signal(leader, Signal::SIGKILL);
        let end = attempt.finished().await;
        assert_eq!(end.outcome, Outcome::Signalled { signal: 9, name: "KILL".to_owned() });
        assert!(!end.killed, "nobody here wanted it");
        attempt.over.await.unwrap();
        assert!(!session::runs(child));
    });
}
