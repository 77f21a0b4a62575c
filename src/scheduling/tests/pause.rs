//! Design, 'Pause'.

use super::bench::Bench;
use super::build::id;
use super::build::{after, every, on_event, task};
use crate::model::id::QueueName;
use crate::model::instance::InstanceState::{Pending, Ready, Running};
use crate::model::record::{FireOutcome, Target};
use crate::model::request::Request;
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
