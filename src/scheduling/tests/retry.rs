//! A person's retry and its options: design, 'Pause, cancel, retry'.

use super::bench::Bench;
use super::build::{after, edge, retry, task};
use crate::model::event::{Outcome, Report};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded,
};
use crate::model::instance::{Instance, Reason};
use crate::model::record::{Record, Target};
use crate::model::request::{Answer, Reply, Request, Retried};
use crate::model::spec::{Strength, TaskSpec};
use crate::model::template::Template;

fn weak(name: &str, upstream: &str) -> TaskSpec {
    TaskSpec { depends_on: vec![edge(upstream, Strength::Weak)], ..task(name) }
}

fn only(bench: &Bench, name: &str) -> InstanceId {
    let [one] = bench.of(name)[..] else { panic!("not one instance of {name}") };
    one.instance_id.clone()
}

/// Asks as the door does: first what failed below, then with all rows.
fn retry_with_downstream(bench: &mut Bench, of: &InstanceId) -> Result<Retried, String> {
    let ids = match bench.ask(Request::FailedBelow(of.clone())).0 {
        Ok(Reply::Instances(ids)) => ids,
        other => panic!("{other:?}"),
    };
    let below: Vec<Instance> = ids.iter().map(|id| bench.instance(id).clone()).collect();
    retried(order(bench, of, false, Some(below)))
}

fn order(
    bench: &mut Bench,
    of: &InstanceId,
    same_revision: bool,
    below: Option<Vec<Instance>>,
) -> Answer {
    let stored = Some(Box::new(bench.instance(of).clone()));
    bench.ask(Request::Retry { instance: of.clone(), same_revision, stored, below }).0
}

fn retried(answer: Answer) -> Result<Retried, String> {
    match answer {
        Ok(Reply::Retried(retried)) => Ok(retried),
        Ok(other) => panic!("{other:?}"),
        Err(rejection) => Err(rejection.detail),
    }
}

fn moves(bench: &Bench, of: &InstanceId) -> Vec<String> {
    let all = bench.log.iter().filter_map(|record| {
        let Record::Moved { instance_id, to, .. } = &record.what else { return None };
        (instance_id == of).then(|| to.to_string())
    });
    all.collect()
}

#[test]
fn a_blocked_dependent_heals_exactly_once_though_reports_repeat_and_come_late() {
    let mut bench = Bench::new(vec![task("a"), after("b", &["a"])]);
    let a = bench.run("a");
    let first_end = bench.end(&a, Outcome::Exited { code: 1 }, false);
    bench.report(Report::Finished(Box::new(first_end.clone())));
    let b = only(&bench, "b");
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::UpstreamFailed)));
    bench.retry(&a).unwrap();
    assert_eq!(bench.standing(&b), (Pending, Some(Reason::WaitingDependency)));
    // The first attempt's end once more: it is over, and changes nothing.
    bench.report(Report::Finished(Box::new(first_end)));
    assert_eq!((bench.instance(&a).state, bench.instance(&b).state), (Running, Pending));
    // The second attempt is lost with its executor; the third ends, and says so twice.
    let lost = vec![bench.attempt(&a)];
    bench.executor_restarts(lost);
    let end = bench.end(&a, Outcome::Exited { code: 0 }, false);
    for _ in 0..2 {
        bench.report(Report::Finished(Box::new(end.clone())));
    }
    bench.drain();
    assert_eq!((bench.instance(&a).attempt, bench.instance(&b).attempt), (3, 1));
    assert_eq!(bench.states("b"), [Succeeded]);
    assert_eq!(moves(&bench, &b), ["BLOCKED", "PENDING", "READY", "RUNNING", "SUCCEEDED"]);
}

#[test]
fn a_retry_takes_the_definition_in_force_unless_it_shall_be_as_it_was() {
    let newer = || TaskSpec {
        handler: "newer".to_owned(),
        retry: retry(3, std::time::Duration::ZERO),
        ..task("a")
    };
    for (same_revision, revision, max_attempts) in [(false, 2, 4), (true, 1, 2)] {
        let mut bench = Bench::new(vec![task("a")]);
        let a = bench.run("a");
        bench.exits(&a, 1);
        bench.specs(vec![newer()]);
        retried(order(&mut bench, &a, same_revision, None)).unwrap();
        let i = bench.instance(&a);
        // One fault so far, and a fresh `maxAttempts` of the definition that counts.
        assert_eq!((i.state, i.revision, i.max_attempts), (Running, revision, max_attempts));
        bench.restart(0, vec![newer()]);
        assert_eq!(bench.instance(&a).revision, revision);
    }
}

#[test]
fn the_definition_of_the_first_start_is_there_also_when_the_task_is_gone() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    bench.restart(0, Vec::new());
    let hello = bench.hello();
    bench.event(crate::model::event::Event::ExecutorConnected(hello));
    retried(order(&mut bench, &a, true, None)).unwrap();
    assert_eq!((bench.instance(&a).state, bench.instance(&a).revision), (Running, 1));
}

#[test]
fn what_failed_below_is_tried_again_after_its_upstreams() {
    let mut bench = Bench::new(vec![task("a"), weak("b", "a"), weak("c", "b"), after("d", &["c"])]);
    let a = bench.run("a");
    let [b, c, d] = ["b", "c", "d"].map(|name| only(&bench, name));
    for id in [&a, &b, &c] {
        bench.exits(id, 1);
    }
    assert_eq!(
        [&a, &b, &c, &d].map(|id| bench.instance(id).state),
        [Failed, Failed, Failed, Blocked]
    );
    let retried = retry_with_downstream(&mut bench, &a).unwrap();
    assert_eq!((&retried.below, &retried.rejected), (&vec![b.clone(), c.clone()], &Vec::new()));
    assert_eq!(
        [&a, &b, &c, &d].map(|id| bench.instance(id).state),
        [Running, Ready, Ready, Pending]
    );
    let reason =
        |bench: &mut Bench, id: &InstanceId| match bench.ask(Request::Live(vec![id.clone()])).0 {
            Ok(Reply::Live(live)) => live[0].reason,
            other => panic!("{other:?}"),
        };
    assert_eq!(reason(&mut bench, &b), Some(Reason::WaitingDependency));
    let specs = vec![task("a"), weak("b", "a"), weak("c", "b"), after("d", &["c"])];
    bench.restart(1_000, specs);
    let hello = crate::model::event::Hello { running: vec![bench.attempt(&a)], ..bench.hello() };
    bench.event(crate::model::event::Event::ExecutorConnected(hello));
    assert_eq!(bench.instance(&b).state, Ready, "it still waits");
    // However the upstream ends: that is what a weak edge waits for.
    bench.exits(&a, 1);
    assert_eq!([&b, &c].map(|id| bench.instance(id).state), [Running, Ready]);
    bench.exits(&b, 0);
    assert_eq!([&c, &d].map(|id| bench.instance(id).state), [Running, Pending]);
    bench.exits(&c, 0);
    bench.drain();
    assert_eq!(bench.states("d"), [Succeeded]);
    assert_eq!([&a, &b, &c].map(|id| bench.instance(id).attempt), [2, 2, 2]);
}

#[test]
fn what_waits_for_a_retried_upstream_can_be_cancelled_and_goes_with_it() {
    let mut bench = Bench::new(vec![task("a"), weak("b", "a"), weak("c", "b")]);
    let a = bench.run("a");
    let [b, c] = ["b", "c"].map(|name| only(&bench, name));
    for id in [&a, &b, &c] {
        bench.exits(id, 1);
    }
    retry_with_downstream(&mut bench, &a).unwrap();
    let stored = Some(Box::new(bench.instance(&b).clone()));
    let cancel = Request::Cancel { instance: b.clone(), downstream: true, stored };
    bench.ask(cancel).0.unwrap();
    assert_eq!([&b, &c].map(|id| bench.instance(id).state), [Cancelled, Cancelled]);
    bench.exits(&a, 0);
    bench.drain();
    assert_eq!([&b, &c].map(|id| bench.instance(id).attempt), [1, 1]);
}

#[test]
fn one_below_that_cannot_be_tried_again_is_told_and_holds_up_no_other() {
    let keyed =
        || TaskSpec { dedup_key: Some(Template::parse("{date}").unwrap()), ..weak("b", "a") };
    let mut bench = Bench::new(vec![task("a"), keyed(), weak("c", "a")]);
    let a = bench.run("a");
    let [b, c] = ["b", "c"].map(|name| only(&bench, name));
    for id in [&a, &b, &c] {
        bench.exits(id, 1);
    }
    // Another one of the day has its key now.
    let body = crate::model::request::SubmitBody { ignore_deps: true, ..Default::default() };
    let holder = bench.submit("b", body);
    let retried = retry_with_downstream(&mut bench, &a).unwrap();
    assert_eq!(retried.below, std::slice::from_ref(&c));
    let [rejected] = &retried.rejected[..] else { panic!("{retried:?}") };
    assert_eq!(rejected.instance_id, b);
    assert!(rejected.detail.contains(holder.as_str()), "{}", rejected.detail);
    assert_eq!(bench.standing(&b), (Failed, None));
    bench.exits(&a, 0);
    assert_eq!(bench.instance(&c).state, Running);
    // The same for one by itself: the key is checked again.
    let refused = bench.retry(&b).unwrap_err();
    assert!(refused.detail.contains("dedupKey 2026-11-30"), "{}", refused.detail);
}

#[test]
fn a_row_that_is_missing_or_was_not_asked_for_changes_nothing() {
    let mut bench = Bench::new(vec![task("a"), weak("b", "a"), task("x")]);
    let (a, x) = (bench.run("a"), bench.run("x"));
    let b = only(&bench, "b");
    for id in [&a, &b, &x] {
        bench.exits(id, 1);
    }
    let stranger = bench.instance(&x).clone();
    let retried = retried(order(&mut bench, &a, false, Some(vec![stranger]))).unwrap();
    assert_eq!((retried.below.len(), retried.rejected.len()), (0, 1));
    assert_eq!(retried.rejected[0].instance_id, b);
    assert_eq!([&b, &x].map(|id| bench.instance(id).state), [Failed, Failed]);
}

#[test]
fn nothing_is_tried_again_below_one_that_cannot_be() {
    let mut bench = Bench::new(vec![task("a"), weak("b", "a")]);
    let a = bench.run("a");
    let b = only(&bench, "b");
    bench.exits(&a, 0);
    bench.exits(&b, 1);
    assert!(retry_with_downstream(&mut bench, &a).unwrap_err().contains("SUCCEEDED"));
    assert_eq!(bench.instance(&b).state, Failed);
}

#[test]
fn a_repeated_order_gets_the_answer_it_got() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    let stored = || Some(Box::new(bench.instance(&a).clone()));
    let request =
        Request::Retry { instance: a.clone(), same_revision: false, stored: stored(), below: None };
    let first = bench.ask_under("k", request.clone());
    assert!(first.is_ok());
    assert_eq!(bench.ask_under("k", request.clone()), first);
    assert_eq!(bench.instance(&a).attempt, 2);
    let Request::Retry { instance, stored, below, .. } = request else { unreachable!() };
    let other = Request::Retry { instance, same_revision: true, stored, below };
    assert!(bench.ask_under("k", other).is_err(), "another order under the same key");
}

#[test]
fn a_retry_of_a_paused_task_waits() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    bench.pause(Target::Task(super::build::id("a"))).unwrap();
    bench.retry(&a).unwrap();
    assert_eq!(bench.instance(&a).state, Ready);
}
