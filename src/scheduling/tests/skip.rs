//! `skip`: design, rule 6 of 'Which upstream run counts' and 'Pause, cancel, retry'.

use std::time::Duration;

use super::bench::Bench;
use super::build::{after, edge, retry, task};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded,
};
use crate::model::instance::Reason;
use crate::model::record::Target;
use crate::model::request::{Answer, RejectionCode, Request};
use crate::model::spec::{Strength, TaskSpec};

const BY_USER: Option<Reason> = Some(Reason::SkippedByUser);

fn skip(bench: &mut Bench, of: &InstanceId) -> Answer {
    let stored = Some(Box::new(bench.instance(of).clone()));
    bench.ask(Request::Skip { instance: of.clone(), stored }).0
}

fn weak(name: &str, upstream: &str) -> TaskSpec {
    TaskSpec { depends_on: vec![edge(upstream, Strength::Weak)], ..task(name) }
}

#[test]
fn strong_dependents_of_a_skipped_one_are_skipped_and_weak_ones_go_on() {
    let mut bench =
        Bench::new(vec![task("a"), after("b", &["a"]), after("c", &["b"]), weak("d", "a")]);
    bench.pause(Target::All).unwrap();
    let a = bench.run("a");
    assert_eq!(bench.instance(&a).state, Ready);
    skip(&mut bench, &a).unwrap();
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER));
    assert_eq!(bench.instance(&a).message.as_deref(), Some("skipped by uid 1000"));
    for name in ["b", "c"] {
        let i = bench.of(name)[0];
        assert_eq!((i.state, i.reason), (Cancelled, Some(Reason::UpstreamSkipped)), "{name}");
    }
    assert_eq!(bench.states("d"), [Ready]);
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    assert_eq!(bench.states("d"), [Running]);
}

#[test]
fn whatever_waits_can_be_skipped() {
    let tried = TaskSpec { retry: retry(3, Duration::from_secs(10)), ..task("a") };
    let mut bench = Bench::new(vec![tried, after("b", &["a"]), task("x"), after("y", &["x"])]);
    let a = bench.run("a");
    let pending = bench.of("b")[0].instance_id.clone();
    assert_eq!(bench.instance(&pending).state, Pending);
    skip(&mut bench, &pending).unwrap();
    assert_eq!(bench.standing(&pending), (Cancelled, BY_USER));
    bench.exits(&a, 1);
    assert_eq!(bench.standing(&a), (Failed, Some(Reason::RetryWait)));
    skip(&mut bench, &a).unwrap();
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER));
    bench.pass(60_000);
    assert_eq!(bench.instance(&a).attempt, 1, "no attempt comes after it");
    let x = bench.run("x");
    bench.exits(&x, 1);
    let blocked = bench.of("y")[0].instance_id.clone();
    assert_eq!(bench.instance(&blocked).state, Blocked);
    skip(&mut bench, &blocked).unwrap();
    assert_eq!(bench.standing(&blocked), (Cancelled, BY_USER));
}

#[test]
fn one_that_runs_is_not_skipped_and_goes_on() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    let refused = skip(&mut bench, &a).unwrap_err();
    assert_eq!(refused.code, RejectionCode::Conflict);
    assert!(refused.detail.contains("RUNNING") && refused.detail.contains("schedctl cancel"));
    assert_eq!(bench.standing(&a), (Running, None));
}

#[test]
fn what_is_final_stays_as_it_is() {
    let mut bench = Bench::new(vec![task("a"), after("b", &["a"])]);
    let mut finals = Vec::new();
    for (code, state) in [(0, Succeeded), (1, Failed)] {
        let a = bench.run("a");
        bench.exits(&a, code);
        finals.push((a, state));
    }
    let skipped = bench.of("b").last().unwrap().instance_id.clone();
    skip(&mut bench, &skipped).unwrap();
    finals.push((skipped, Cancelled));
    let before = bench.log.len();
    for (id, state) in finals {
        skip(&mut bench, &id).unwrap();
        assert_eq!((bench.instance(&id).state, bench.log.len()), (state, before), "{state}");
    }
    let nobody = InstanceId::from_text("0000nobody");
    let unknown = bench.ask(Request::Skip { instance: nobody, stored: None }).0.unwrap_err();
    assert_eq!(unknown.code, RejectionCode::NotFound);
}
