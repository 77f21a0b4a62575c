//! Design, 'Pause'.

use super::bench::Bench;
use super::build::id;
use super::build::{after, every, on_event, retry, task};
use crate::model::id::QueueName;
use crate::model::instance::InstanceState::{Pending, Ready, Running};
use crate::model::instance::Reason;
use crate::model::record::{FireOutcome, Target};
use crate::model::request::{Reply, Request};
use crate::model::spec::{Misfire, Overlap, TaskSpec};
use crate::model::time::Timestamp;

fn timed() -> TaskSpec {
    TaskSpec { triggers: vec![every(10, Misfire::RunOnce, Overlap::Allow)], ..task("a") }
}

#[test]
fn time_fires_of_a_paused_task_end_as_paused_and_are_not_caught_up() {
    let mut bench = Bench::new(vec![timed()]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.pass(20_000);
    bench.ask(Request::Resume { target: Target::Task(id("a")) }).0.unwrap();
    bench.pass(10_000);
    let (paused, made) = (FireOutcome::Paused, FireOutcome::Instance);
    assert_eq!(bench.fires("a"), [(paused, 1), (paused, 1), (made, 1)]);
}

#[test]
fn events_submissions_and_waves_of_a_paused_task_make_instances_that_wait() {
    let mut bench = Bench::new(vec![on_event("a", "go"), after("b", &["a"])]);
    for name in ["a", "b"] {
        bench.pause(Target::Task(id(name))).unwrap();
    }
    bench.emit("go");
    bench.run("a");
    assert_eq!((bench.states("a"), bench.states("b")), (vec![Ready; 2], vec![Pending; 2]));
    bench.ask(Request::Resume { target: Target::Task(id("a")) }).0.unwrap();
    assert_eq!(bench.states("a"), [Running, Running]);
}

#[test]
fn a_paused_queue_or_everything_still_fires_and_dispatches_nothing() {
    for target in [Target::All, Target::Queue(QueueName::from("default"))] {
        let mut bench = Bench::new(vec![timed()]);
        bench.pause(target.clone()).unwrap();
        bench.pass(10_000);
        assert_eq!(bench.fires("a"), [(FireOutcome::Instance, 1)]);
        assert_eq!(bench.states("a"), [Ready]);
        bench.ask(Request::Resume { target }).0.unwrap();
        assert_eq!(bench.states("a"), [Running]);
    }
}

#[test]
fn a_held_instance_waits_and_a_running_one_cannot_be_held() {
    let mut bench = Bench::new(vec![task("a")]);
    bench.pause(Target::All).unwrap();
    let a = bench.run("a");
    bench.pause(Target::Instance(a.clone())).unwrap();
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    assert_eq!(bench.instance(&a).state, Ready);
    bench.ask(Request::Resume { target: Target::Instance(a.clone()) }).0.unwrap();
    assert_eq!(bench.instance(&a).state, Running);
    assert!(bench.pause(Target::Instance(a)).is_err());
}

#[test]
fn a_pause_ends_by_itself_at_its_time_also_after_a_restart() {
    let mut bench = Bench::new(vec![task("a")]);
    let until = Some(Timestamp::from_millis(bench.now.as_millis() + 5_000));
    for target in [Target::All, Target::Task(id("a"))] {
        bench.ask(Request::Pause { target, reason: None, until }).0.unwrap();
    }
    let a = bench.run("a");
    bench.restart(1_000, vec![task("a")]);
    let hello = bench.hello();
    bench.event(crate::model::event::Event::ExecutorConnected(hello));
    bench.pass(3_999);
    assert_eq!(bench.instance(&a).state, Ready);
    bench.pass(1);
    assert_eq!(bench.instance(&a).state, Running);
}

#[test]
fn a_pause_outlives_the_definition() {
    let mut bench = Bench::new(vec![task("a")]);
    let until = Some(Timestamp::from_millis(bench.now.as_millis() + 5_000));
    bench.ask(Request::Pause { target: Target::Task(id("a")), reason: None, until }).0.unwrap();
    bench.specs(Vec::new());
    bench.specs(vec![task("a")]);
    let a = bench.run("a");
    assert_eq!(bench.instance(&a).state, Ready);
    bench.pass(5_000);
    assert_eq!(bench.instance(&a).state, Running);
}

fn resume(bench: &mut Bench, target: Target) {
    bench.ask(Request::Resume { target }).0.unwrap();
}

#[test]
fn whoever_pauses_what_is_paused_changes_why_and_for_how_long() {
    let mut bench = Bench::new(vec![task("a")]);
    bench.pause(Target::All).unwrap();
    let a = bench.run("a");
    let queue = Target::Queue(QueueName::from("default"));
    let since = bench.now;
    for target in [Target::All, queue, Target::Task(id("a")), Target::Instance(a.clone())] {
        bench.now = since;
        bench.pause(target.clone()).unwrap();
        bench.now = since.plus(std::time::Duration::from_secs(7));
        let until = Some(bench.now.plus(std::time::Duration::from_secs(3)));
        let reason = Some("audit".to_owned());
        let pause = Request::Pause { target: target.clone(), reason, until };
        bench.ask(pause).0.unwrap();
    }
    let status = match bench.ask(Request::Status).0 {
        Ok(Reply::Status(status)) => *status,
        other => panic!("{other:?}"),
    };
    let task_view = match bench.ask(Request::Task(id("a"))).0 {
        Ok(Reply::Task(view)) => *view,
        other => panic!("{other:?}"),
    };
    let all = [
        status.paused.clone(),
        status.queues[0].paused.clone(),
        task_view.paused,
        bench.instance(&a).paused.clone(),
    ];
    for pause in all.map(Option::unwrap) {
        assert_eq!((pause.since, pause.uid), (since, 1000));
        assert_eq!(pause.reason.as_deref(), Some("audit"));
    }
    bench.pass(3_000);
    assert_eq!(bench.instance(&a).state, Running, "all four have ended");
}

#[test]
fn one_hold_of_several_ends_alone() {
    let mut bench = Bench::new(vec![task("a")]);
    let queue = Target::Queue(QueueName::from("default"));
    let task_held = Target::Task(id("a"));
    for target in [&queue, &task_held] {
        bench.pause(target.clone()).unwrap();
    }
    let a = bench.run("a");
    resume(&mut bench, task_held.clone());
    resume(&mut bench, task_held);
    let reason = match bench.ask(Request::Live(vec![a.clone()])).0 {
        Ok(Reply::Live(live)) => live[0].reason,
        other => panic!("{other:?}"),
    };
    assert_eq!((bench.instance(&a).state, reason), (Ready, Some(Reason::Paused)));
    resume(&mut bench, queue);
    assert_eq!(bench.instance(&a).state, Running);
}

#[test]
fn a_held_retry_waits_for_the_resume_and_what_has_ended_is_not_held() {
    let tried = TaskSpec { retry: retry(2, std::time::Duration::from_secs(10)), ..task("a") };
    let mut bench = Bench::new(vec![tried]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    bench.pause(Target::Instance(a.clone())).unwrap();
    bench.pass(10_000);
    assert_eq!(bench.instance(&a).state, Ready, "its time has come, and it is held");
    resume(&mut bench, Target::Instance(a.clone()));
    assert_eq!(bench.instance(&a).state, Running);
    bench.exits(&a, 0);
    assert!(bench.pause(Target::Instance(a)).is_err(), "it has ended");
}

#[test]
fn a_pause_that_would_be_over_already_is_refused() {
    let mut bench = Bench::new(vec![task("a")]);
    let (target, until) = (Target::All, Some(bench.now));
    assert!(bench.ask(Request::Pause { target, reason: None, until }).0.is_err());
}
