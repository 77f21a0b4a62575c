//! Requirements D1 to D3, D7.

use super::bench::Bench;
use super::build::{settings, task};
use crate::model::id::QueueName;
use crate::model::instance::InstanceState::{Ready, Running};
use crate::model::priority::Priority;
use crate::model::record::Target;
use crate::model::request::Request;
use crate::model::spec::TaskSpec;

fn with(name: &str, priority: u8) -> TaskSpec {
    TaskSpec { priority: Priority::new(priority).unwrap(), ..task(name) }
}

/// One slot; the order in which what was submitted while all was held then runs.
fn order(specs: Vec<TaskSpec>, submitted: &[&str]) -> Vec<String> {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(specs);
    bench.pause(Target::All).unwrap();
    for name in submitted {
        bench.pass(1);
        bench.run(name);
    }
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    let mut ran = Vec::new();
    loop {
        let on = bench.instances().find(|i| i.state == Running).cloned();
        let Some(on) = on else { return ran };
        ran.push(on.task_id.base().to_owned());
        bench.exits(&on.instance_id, 0);
    }
}

#[test]
fn inside_a_priority_first_in_is_first_out_whatever_the_task() {
    let specs = vec![with("a", 4), with("b", 4)];
    assert_eq!(order(specs, &["b", "a", "b", "a"]), ["b", "a", "b", "a"]);
}

#[test]
fn a_lower_number_goes_first() {
    let specs = vec![with("a", 9), with("b", 0), with("c", 4)];
    assert_eq!(order(specs, &["a", "b", "c", "b"]), ["b", "b", "c", "a"]);
}

#[test]
fn what_cannot_be_placed_does_not_hold_up_what_can() {
    let mut alone = with("a", 0);
    alone.max_concurrent = Some(1);
    let mut bench = Bench::new(vec![alone, with("b", 9)]);
    bench.run("a");
    bench.run("a");
    bench.run("b");
    assert_eq!((bench.states("a"), bench.states("b")), (vec![Running, Ready], vec![Running]));
}

#[test]
fn a_queue_never_runs_more_than_its_quota() {
    let queues = [("default", 1, None), ("side", 1, Some(2))];
    let mut bench = Bench::bare(settings(&[("local", 9)], &queues));
    let side = |name| TaskSpec { queue: QueueName::from("side"), ..task(name) };
    bench.specs(vec![side("a"), side("b"), task("c")]);
    for name in ["a", "b", "a", "c"] {
        bench.run(name);
    }
    assert_eq!(bench.states("a"), [Running, Ready]);
    assert_eq!((bench.states("b"), bench.states("c")), (vec![Running], vec![Running]));
}

#[test]
fn a_changed_priority_changes_the_order_of_what_waits() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![task("a"), task("b")]);
    let (first, a, b) = (bench.run("a"), bench.run("a"), bench.run("b"));
    let priority = Priority::new(0).unwrap();
    let target = Target::Instance(b.clone());
    bench.ask(Request::SetPriority { target, priority }).0.unwrap();
    bench.exits(&first, 0);
    assert_eq!((bench.instance(&a).state, bench.instance(&b).state), (Ready, Running));
}

#[test]
fn a_priority_that_was_changed_is_the_definitions_again_if_asked() {
    let mut bench = Bench::new(vec![with("a", 4)]);
    bench.pause(Target::All).unwrap();
    let (first, second) = (bench.run("a"), bench.run("a"));
    let task = Target::Task(super::build::id("a"));
    let priority = |n| Priority::new(n).unwrap();
    let set = Request::SetPriority { target: task.clone(), priority: priority(2) };
    bench.ask(set).0.unwrap();
    let target = Target::Instance(first.clone());
    let set = Request::SetPriority { target: target.clone(), priority: priority(0) };
    bench.ask(set).0.unwrap();
    assert_eq!([&first, &second].map(|id| bench.instance(id).priority), [0, 2].map(priority));
    bench.ask(Request::ResetPriority { target }).0.unwrap();
    assert_eq!(bench.instance(&first).priority, priority(2), "what counts for its task");
    bench.ask(Request::ResetPriority { target: task }).0.unwrap();
    let third = bench.run("a");
    let all = [&first, &second, &third];
    assert_eq!(all.map(|id| bench.instance(id).priority), [4; 3].map(priority));
    assert!(bench.ask(Request::ResetPriority { target: Target::All }).0.is_err());
}
