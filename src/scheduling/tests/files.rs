//! Requirement E3; contract, `file`; docs/spec.md, 'Files'.

use std::time::Duration;

use super::bench::Bench;
use super::build::{after, edge, full, id, needed_text, on, on_event, task};
use crate::model::command::Command;
use crate::model::event::{Event, FileArrival, FileIdentity};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::InstanceState::{Cancelled, Pending, Ready, Running, Succeeded};
use crate::model::instance::Reason::{FileGone, UpstreamSkipped};
use crate::model::record::{FireOutcome, Target};
use crate::model::request::{Request, SubmitBody};
use crate::model::spec::{FileTrigger, Strength, TaskSpec, Trigger, TriggerKind};
use crate::model::template::Template;

const DAY_MS: i64 = 24 * 3600 * 1_000;

fn trigger(pattern: &str) -> Trigger {
    let settle = Duration::from_millis(50);
    on(TriggerKind::File(FileTrigger { pattern: pattern.to_owned(), settle, poll: None }))
}

/// A task that takes `/in/*`, one file at a time.
fn takes(name: &str) -> TaskSpec {
    TaskSpec { triggers: vec![trigger("/in/*")], max_concurrent: Some(1), ..task(name) }
}

/// A task that takes `/in/*`, all at once.
fn takes_all(name: &str) -> TaskSpec {
    TaskSpec { max_concurrent: None, ..takes(name) }
}

fn arrival_by(pattern: &str, path: &str, inode: u64) -> Event {
    let identity = FileIdentity { device: 1, inode, size: 1, mtime_ns: 1 };
    let (pattern, path) = (pattern.to_owned(), path.to_owned());
    Event::FilesArrived(vec![FileArrival { pattern, path, identity }])
}

fn arrival(path: &str, inode: u64) -> Event {
    arrival_by("/in/*", path, inode)
}

fn gone(path: &str) -> Event {
    Event::FilesGone(vec![path.to_owned()])
}

fn ids(bench: &Bench, name: &str) -> Vec<InstanceId> {
    bench.of(name).iter().map(|i| i.instance_id.clone()).collect()
}

fn runs(commands: &[Command]) -> usize {
    commands.iter().filter(|command| matches!(command, Command::Run(_))).count()
}

// Once per arrival

#[test]
fn a_file_is_taken_once_per_arrival_also_over_a_restart() {
    let mut bench = Bench::new(vec![takes_all("a")]);
    bench.event(arrival("/in/x", 1));
    bench.event(arrival("/in/x", 1));
    bench.restart(1_000, vec![takes_all("a")]);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.of("a").len(), 1);
    bench.restart(1_000, vec![takes_all("a")]);
    bench.event(arrival("/in/x", 2));
    assert_eq!(bench.of("a").len(), 2, "changed while no daemon ran");
    assert_eq!(bench.fires("a"), [(FireOutcome::Instance, 1); 2]);
}

#[test]
fn a_file_that_was_worked_on_and_comes_back_as_it_was_is_no_arrival_for_a_week() {
    let mut bench = Bench::new(vec![takes("a")]);
    bench.event(arrival("/in/x", 1));
    bench.event(gone("/in/x"));
    assert_eq!(bench.states("a"), [Running]);
    bench.pass(1_000);
    bench.restart(1_000, vec![takes("a")]);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.of("a").len(), 1, "its folder was moved away and back");
    bench.event(gone("/in/x"));
    bench.pass(8 * DAY_MS);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.of("a").len(), 2, "forgotten after a week");
}

#[test]
fn a_file_that_two_patterns_of_a_task_match_is_one_arrival() {
    let triggers = vec![trigger("/in/*"), trigger("/in/x*")];
    let mut bench = Bench::new(vec![TaskSpec { triggers, ..task("a") }]);
    for pattern in ["/in/x*", "/in/*"] {
        bench.event(arrival_by(pattern, "/in/x", 1));
        bench.pass(1_000);
    }
    assert_eq!(bench.of("a").len(), 1);
    assert_eq!(bench.fires("a"), [(FireOutcome::Instance, 1)]);
}

#[test]
fn two_names_of_a_file_are_two_arrivals() {
    let mut bench = Bench::new(vec![takes("a")]);
    bench.event(arrival("/in/x", 1));
    bench.event(arrival("/in/hard-link", 1));
    assert_eq!(bench.of("a").len(), 2);
}

#[test]
fn whoever_listens_is_told_to_the_watcher_and_takes_what_is_there_once() {
    let listeners = |commands: &[Command]| {
        commands.iter().find_map(|command| {
            let Command::WatchFiles(watches) = command else { return None };
            Some(watches.iter().map(|watch| watch.task_id.clone()).collect::<Vec<_>>())
        })
    };
    let mut bench = Bench::new(vec![takes("a")]);
    bench.event(arrival("/in/x", 1));
    let told = bench.specs(vec![takes("a"), takes("b")]);
    assert_eq!(listeners(&told), Some(vec![id("a"), id("b")]));
    // The watcher tells the pattern's files once more.
    bench.event(arrival("/in/x", 1));
    assert_eq!((bench.of("a").len(), bench.of("b").len()), (1, 1));
    // A task that went and comes back has had them.
    bench.specs(vec![takes("a")]);
    bench.specs(vec![takes("a"), takes("b")]);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.of("b").len(), 1);
}

#[test]
fn what_a_trigger_took_that_is_no_more_is_forgotten_after_a_week() {
    let mut bench = Bench::new(vec![takes("a")]);
    bench.event(arrival("/in/x", 1));
    bench.specs(vec![task("a")]);
    bench.pass(8 * DAY_MS);
    assert_eq!(bench.engine.files_taken(), Vec::new());
    assert_eq!(bench.engine.next_deadline(), None, "nothing is kept that would be forgotten later");
    bench.specs(vec![takes("a")]);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.of("a").len(), 2, "there when the trigger first appears");
}

// The ledger

#[test]
fn a_paused_task_takes_files_and_lets_them_wait() {
    let mut bench = Bench::new(vec![takes("a")]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.event(arrival("/in/x", 1));
    bench.pass(1_000);
    assert_eq!(bench.states("a"), [Ready]);
    assert_eq!(bench.fires("a"), [(FireOutcome::Instance, 1)]);
    bench.ask(Request::Resume { target: Target::Task(id("a")) }).0.unwrap();
    assert_eq!(bench.states("a"), [Running]);
}

#[test]
fn an_arrival_that_makes_no_instance_has_one_row_and_does_not_come_again() {
    let disabled = || TaskSpec { enabled: false, ..takes("a") };
    let needed = needed_text();
    let rejects =
        || TaskSpec { runtime_params: [("p".to_owned(), needed.clone())].into(), ..takes("b") };
    let mut bench = Bench::new(vec![disabled(), rejects()]);
    bench.event(arrival("/in/x", 1));
    bench.restart(1_000, vec![disabled(), rejects()]);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.fires("a"), [(FireOutcome::Disabled, 1)]);
    assert_eq!(bench.fires("b"), [(FireOutcome::RejectedParams, 1)]);
    bench.specs(vec![takes("a"), takes("b")]);
    bench.event(arrival("/in/x", 1));
    assert!(bench.of("a").is_empty() && bench.of("b").is_empty());
}

// Gone before the start (known fault B158)

#[test]
fn a_file_that_goes_before_the_first_start_is_recorded_and_not_run() {
    let mut bench = Bench::new(vec![takes("a")]);
    bench.event(arrival("/in/1", 1));
    bench.event(arrival("/in/2", 2));
    bench.event(gone("/in/2"));
    let [first, second] = ids(&bench, "a").try_into().unwrap();
    assert_eq!(bench.standing(&second), (Cancelled, Some(FileGone)));
    let message = bench.instance(&second).message.clone().unwrap_or_default();
    assert_eq!(message, "/in/2 was gone before the first start");
    assert_eq!(bench.standing(&first), (Running, None));
    bench.exits(&first, 0);
    assert_eq!(bench.states("a"), [Succeeded, Cancelled]);
    assert_eq!(bench.fires("a"), [(FireOutcome::Instance, 1); 2], "a row for each arrival");
    bench.cancel(&second).0.unwrap();
    assert!(bench.retry(&second).is_err(), "a new run is made by `run`");
}

#[test]
fn whatever_it_waits_for_it_does_not_start_without_its_file() {
    let on_paused = |bench: &mut Bench| bench.pause(Target::Task(id("a"))).map(drop);
    let on_queue = |bench: &mut Bench| bench.pause(Target::All).map(drop);
    let unpaused = |bench: &mut Bench| {
        bench.ask(Request::Resume { target: Target::Task(id("a")) }).0.ok();
        bench.ask(Request::Resume { target: Target::All }).0.ok();
    };
    for hold in [on_paused, on_queue] {
        let mut bench = Bench::new(vec![takes("a")]);
        hold(&mut bench).unwrap();
        bench.event(arrival("/in/x", 1));
        bench.event(gone("/in/x"));
        unpaused(&mut bench);
        assert_eq!(bench.standing(&ids(&bench, "a")[0]), (Cancelled, Some(FileGone)));
    }
    let waits = TaskSpec { depends_on: vec![edge("up", Strength::Strong)], ..takes("a") };
    let mut bench = Bench::new(vec![task("up"), waits]);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.states("a"), [Pending]);
    bench.event(gone("/in/x"));
    assert_eq!(bench.states("a"), [Cancelled]);
}

#[test]
fn a_file_that_was_never_worked_on_is_a_new_arrival_when_it_comes_back() {
    let mut bench = Bench::new(vec![takes("a")]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.event(arrival("/in/x", 1));
    bench.event(gone("/in/x"));
    // Within the same millisecond: the clock has not moved.
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.states("a"), [Cancelled, Ready]);
    bench.restart(1_000, vec![takes("a")]);
    bench.event(arrival("/in/x", 1));
    assert_eq!(bench.of("a").len(), 2);
}

#[test]
fn who_started_with_a_file_is_left_alone_when_it_goes() {
    let slow = TaskSpec { retry: super::build::retry(2, Duration::from_secs(60)), ..takes("a") };
    let mut bench = Bench::new(vec![slow, takes("b")]);
    bench.pause(Target::Task(id("b"))).unwrap();
    bench.event(arrival("/in/x", 1));
    let a = ids(&bench, "a")[0].clone();
    // The usual end of a task that moves its input away and then fails.
    bench.event(gone("/in/x"));
    bench.exits(&a, 1);
    assert_eq!(bench.states("b"), [Cancelled]);
    bench.pass(61_000);
    assert_eq!(bench.states("a"), [Running], "its second attempt");
    // For a it was worked on, for b it was not.
    bench.event(arrival("/in/x", 1));
    assert_eq!((bench.of("a").len(), bench.of("b").len()), (1, 2));
}

/// docs/waves.md, rule 16: the lower version's trigger fires for both.
#[test]
fn a_file_that_another_version_took_is_missed_there() {
    let higher = TaskId::parse("a.v2").expect("a task id");
    let share = TaskSpec { task_id: higher.clone(), version: 2, rollout: Some(100), ..task("a") };
    let mut bench = Bench::new(vec![takes("a"), share]);
    bench.pause(Target::All).unwrap();
    bench.event(arrival("/in/x", 1));
    let made = |bench: &Bench| {
        let of_higher = bench.instances().filter(|i| i.task_id == higher);
        of_higher.map(|i| i.state).collect::<Vec<_>>()
    };
    assert_eq!(made(&bench), [Ready]);
    bench.event(gone("/in/x"));
    assert_eq!(made(&bench), [Cancelled]);
    bench.pass(1_000);
    bench.event(arrival("/in/x", 1));
    assert_eq!(made(&bench).len(), 2, "nothing was done with it");
    assert!(bench.of("a").is_empty());
}

/// docs/waves.md, rule 6: nobody can bring the file back by a retry, so nobody waits for that.
#[test]
fn who_depends_on_a_run_whose_file_went_is_skipped() {
    let mut weak = task("weak");
    weak.depends_on = vec![edge("a", Strength::Weak)];
    let mut bench = Bench::new(vec![takes("a"), after("strong", &["a"]), weak]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.event(arrival("/in/x", 1));
    bench.event(gone("/in/x"));
    let strong = bench.of("strong")[0].instance_id.clone();
    assert_eq!(bench.standing(&strong), (Cancelled, Some(UpstreamSkipped)));
    assert_eq!(bench.states("weak"), [Running]);
}

#[test]
fn a_file_that_went_while_no_daemon_ran_does_not_start_before_that_is_known() {
    let mut bench = Bench::new(vec![takes("a"), on_event("other", "go")]);
    bench.pause(Target::All).unwrap();
    bench.event(arrival("/in/x", 1));
    bench.event(arrival("/in/y", 2));
    bench.emit("go");
    bench.restart_bare(1_000);
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    let hello = bench.hello();
    bench.event(Event::ExecutorConnected(hello));
    let files = [takes("a"), on_event("other", "go")]
        .map(|spec| super::build::file(&format!("{}.yaml", spec.task_id), vec![spec]));
    let started = bench.event(Event::Definitions(full(files.to_vec())));
    assert_eq!(runs(&started), 1, "what waits for no file");
    assert_eq!(bench.states("other"), [Running]);
    assert_eq!(bench.states("a"), [Ready, Ready]);
    let mut taken = bench.engine.files_taken();
    taken.sort();
    assert_eq!(taken, ["/in/x", "/in/y"].map(|path| ("/in/*".to_owned(), path.to_owned())));
    bench.event(gone("/in/x"));
    bench.event(Event::FilesRead);
    assert_eq!(bench.states("a"), [Cancelled, Running]);
}

// New content before the start

#[test]
fn new_content_takes_the_place_of_what_waits_for_the_old() {
    let mut bench = Bench::new(vec![takes("a")]);
    bench.pause(Target::All).unwrap();
    bench.event(arrival("/in/x", 1));
    bench.pass(1_000);
    bench.event(arrival("/in/y", 7));
    bench.pass(1_000);
    bench.event(arrival("/in/x", 2));
    let [old, other, new] = ids(&bench, "a").try_into().unwrap();
    assert_eq!(bench.standing(&old), (Cancelled, Some(FileGone)));
    assert_eq!(bench.states("a"), [Cancelled, Ready, Ready]);
    // However often x changes, its turn comes before that of y, which came later.
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    assert_eq!((bench.standing(&new).0, bench.standing(&other).0), (Running, Ready));
    // Once it runs, new content waits beside it.
    bench.event(arrival("/in/x", 3));
    assert_eq!(bench.states("a"), [Cancelled, Ready, Running, Ready]);
}

#[test]
fn new_content_is_taken_although_the_dedup_key_is_made_of_the_name() {
    let key = Template::parse("{file.name}").unwrap();
    let mut bench = Bench::new(vec![TaskSpec { dedup_key: Some(key), ..takes("a") }]);
    bench.pause(Target::All).unwrap();
    bench.event(arrival("/in/x", 1));
    bench.event(arrival("/in/x", 2));
    assert_eq!(bench.states("a"), [Cancelled, Ready]);
    assert_eq!(bench.fires("a"), [(FireOutcome::Instance, 1); 2]);
}

#[test]
fn new_content_for_one_task_leaves_others_and_submissions_alone() {
    let only_x = TaskSpec { triggers: vec![trigger("/in/x")], ..task("b") };
    let mut bench = Bench::new(vec![takes("a"), only_x]);
    bench.pause(Target::All).unwrap();
    bench.submit("a", SubmitBody::default());
    bench.event(arrival("/in/x", 1));
    bench.event(arrival_by("/in/x", "/in/x", 1));
    bench.event(arrival("/in/x", 2));
    assert_eq!(bench.states("a"), [Ready, Cancelled, Ready]);
    assert_eq!(bench.states("b"), [Ready], "its own pattern has not told of it yet");
}

// Many at once (known fault B162)

#[test]
fn twenty_thousand_files_come_and_go_one_by_one() {
    const FILES: u64 = 20_000;
    let mut bench = Bench::new(vec![takes("a")]);
    bench.pause(Target::All).unwrap();
    let path = |n| format!("/in/{n}");
    let per_event = |n: u64| n..(n + 64).min(FILES);
    let engine = &mut bench.engine;
    for from in (0..FILES).step_by(64) {
        let files = per_event(from).map(|n| FileArrival {
            pattern: "/in/*".to_owned(),
            path: path(n),
            identity: FileIdentity { device: 1, inode: n, size: 1, mtime_ns: 1 },
        });
        drop(engine.handle(bench.now, Event::FilesArrived(files.collect())));
    }
    assert_eq!(engine.files_taken().len(), 20_000);
    for from in (0..FILES).step_by(64) {
        let paths = per_event(from).map(path).collect();
        drop(engine.handle(bench.now, Event::FilesGone(paths)));
    }
    assert_eq!(engine.files_taken(), Vec::new());
}
