//! Requirement D5: what waits lifts what it waits for, three edges deep, while it waits.

use super::bench::Bench;
use super::build::{after, settings, task};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{Failed, Pending, Ready, Running};
use crate::model::priority::Priority;
use crate::model::record::Target;
use crate::model::request::{Reply, Request};
use crate::model::spec::TaskSpec;

fn at(spec: TaskSpec, priority: u8) -> TaskSpec {
    TaskSpec { priority: Priority::new(priority).unwrap(), max_concurrent: None, ..spec }
}

/// One slot, which `hold` has.
fn held(specs: Vec<TaskSpec>) -> Bench {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(specs.into_iter().chain([at(task("hold"), 4)]).collect());
    bench.run("hold");
    bench
}

/// Effective priorities, as a person sees them.
fn acts(bench: &mut Bench, name: &str) -> Vec<u8> {
    let ids: Vec<InstanceId> = bench.of(name).iter().map(|i| i.instance_id.clone()).collect();
    match bench.ask(Request::Live(ids)).0 {
        Ok(Reply::Live(live)) => live.iter().map(|l| l.effective_priority.value()).collect(),
        other => panic!("{other:?}"),
    }
}

fn only(bench: &Bench, name: &str) -> InstanceId {
    let of = bench.of(name);
    assert_eq!(of.len(), 1, "{name}");
    of[0].instance_id.clone()
}

fn set(bench: &mut Bench, of: &InstanceId, priority: u8) {
    let (target, priority) = (Target::Instance(of.clone()), Priority::new(priority).unwrap());
    bench.ask(Request::SetPriority { target, priority }).0.unwrap();
}

#[test]
fn what_a_critical_one_waits_for_goes_first() {
    let specs = vec![at(task("low"), 8), at(task("mid"), 4), at(after("top", &["low"]), 0)];
    let mut bench = held(specs);
    let mids = [bench.run("mid"), bench.run("mid")];
    let low = bench.run("low");
    assert_eq!((acts(&mut bench, "low"), bench.instance(&low).priority.value()), (vec![0], 8));
    let hold = only(&bench, "hold");
    bench.exits(&hold, 0);
    assert_eq!(bench.instance(&low).state, Running);
    assert_eq!(acts(&mut bench, "low"), [0], "while it runs too");
    bench.exits(&low, 0);
    assert_eq!(bench.states("top"), [Running]);
    assert!(mids.iter().all(|i| bench.instance(i).state == Ready));
}

#[test]
fn it_reaches_three_edges_and_not_four() {
    let mut bench = held(vec![
        at(task("e"), 9),
        at(after("d", &["e"]), 9),
        at(after("c", &["d"]), 9),
        at(after("b", &["c"]), 9),
        at(after("a", &["b"]), 2),
    ]);
    bench.run("e");
    let seen = ["a", "b", "c", "d", "e"].map(|name| acts(&mut bench, name)[0]);
    assert_eq!(seen, [2, 2, 2, 2, 9]);
}

#[test]
fn normal_ones_lend_nothing_and_the_best_of_several_counts() {
    let mut bench = held(vec![
        at(task("root"), 9),
        at(after("normal", &["root"]), 3),
        at(after("high", &["root"]), 2),
        at(after("higher", &["root"]), 1),
    ]);
    bench.run("root");
    assert_eq!(acts(&mut bench, "root"), [1]);
    let higher = only(&bench, "higher");
    bench.cancel(&higher).0.unwrap();
    assert_eq!(acts(&mut bench, "root"), [2], "it falls back by itself");
    let high = only(&bench, "high");
    set(&mut bench, &high, 3);
    assert_eq!(acts(&mut bench, "root"), [9]);
    let normal = only(&bench, "normal");
    set(&mut bench, &normal, 0);
    assert_eq!(acts(&mut bench, "root"), [0]);
}

#[test]
fn what_waits_for_its_retry_or_is_repaired_is_lifted_and_lets_go_at_the_end() {
    let mut bench = Bench::new(vec![at(task("root"), 9), at(after("top", &["root"]), 0)]);
    let root = bench.run("root");
    bench.exits(&root, 1);
    assert_eq!(bench.instance(&root).state, Failed);
    // BLOCKED waits as well: a person's retry is lifted at once.
    bench.pause(Target::All).unwrap();
    bench.retry(&root).unwrap();
    assert_eq!((bench.states("root"), acts(&mut bench, "root")), (vec![Ready], vec![0]));
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    bench.exits(&root, 0);
    assert_eq!(bench.states("top"), [Running]);
    let again = bench.run("root");
    assert_eq!(acts(&mut bench, "top")[0], 0);
    bench.exits(&again, 0);
}

#[test]
fn a_definition_that_gains_an_edge_lifts_what_waits() {
    let specs = |edges: &[&str]| {
        vec![
            at(task("root"), 9),
            at(task("side"), 9),
            at(after("top", edges), 0),
            at(task("hold"), 4),
        ]
    };
    let mut bench = held(specs(&["root"])[..3].to_vec());
    bench.run("side");
    bench.run("root");
    assert_eq!((acts(&mut bench, "side"), bench.states("top")), (vec![9], vec![Pending]));
    bench.specs(specs(&["root", "side"]));
    assert_eq!(acts(&mut bench, "side"), [0]);
    bench.specs(specs(&["side"]));
    assert_eq!((acts(&mut bench, "root"), acts(&mut bench, "side")), (vec![9], vec![0]));
}
