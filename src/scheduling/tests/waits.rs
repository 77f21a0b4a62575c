//! docs/waves.md: how long anything waits (rules 11 and 13), and what replaces it (rule 12).

use std::time::Duration;

use super::bench::Bench;
use super::build::{after, id, on_event, root};
use crate::model::command::Command;
use crate::model::event::Event;
use crate::model::id::{InstanceId, QueueName};
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Pending, Ready, Running, Succeeded,
};
use crate::model::instance::Reason;
use crate::model::record::Target;
use crate::model::request::{Request, SubmitBody};
use crate::model::spec::{OnDependencyTimeout, OnUpstream, Retention, TaskSpec};
use crate::model::time::Timestamp;

const SECOND: i64 = 1000;
const DAY: i64 = 86_400 * SECOND;

/// `b` waits 60 s for `a`.
fn patient() -> Vec<TaskSpec> {
    let b = TaskSpec { dependency_timeout: Some(Duration::from_secs(60)), ..after("b", &["a"]) };
    vec![root("a"), b]
}

fn resume(bench: &mut Bench, target: Target) {
    bench.ask(Request::Resume { target }).0.unwrap();
}

fn queue() -> Target {
    Target::Queue(QueueName::from("default"))
}

/// It waits to the last millisecond of this time and no longer.
fn assert_left(bench: &mut Bench, of: &InstanceId, ms: i64) {
    bench.pass(ms - 1);
    assert_eq!(bench.instance(of).state, Pending);
    bench.pass(1);
    assert_eq!(bench.standing(of), (Cancelled, Some(Reason::DependencyTimeout)));
}

#[test]
fn rule_11_the_clock_stands_still_while_the_instance_its_task_its_queue_or_everything_is_paused() {
    for own in 0..4 {
        let mut bench = Bench::new(patient());
        let b = bench.run("b");
        let target = match own {
            0 => Target::Instance(b.clone()),
            1 => Target::Task(id("b")),
            2 => queue(),
            _ => Target::All,
        };
        bench.pass(20 * SECOND);
        bench.pause(target.clone()).unwrap();
        bench.pass(3600 * SECOND);
        assert_eq!(bench.instance(&b).state, Pending, "{target:?}");
        resume(&mut bench, target);
        assert_left(&mut bench, &b, 40 * SECOND);
    }
}

#[test]
fn rule_11_a_pause_of_the_upstream_does_not_stop_it() {
    let mut bench = Bench::new(patient());
    let b = bench.run("b");
    bench.pause(Target::Task(id("a"))).unwrap();
    assert_left(&mut bench, &b, 60 * SECOND);
}

#[test]
fn rule_11_pauses_that_overlap_count_once() {
    let mut bench = Bench::new(patient());
    let b = bench.run("b");
    bench.pass(10 * SECOND);
    bench.pause(Target::Task(id("b"))).unwrap();
    bench.pass(10 * SECOND);
    bench.pause(Target::All).unwrap();
    bench.pass(10 * SECOND);
    resume(&mut bench, Target::Task(id("b")));
    bench.pass(100 * SECOND);
    bench.pause(Target::Instance(b.clone())).unwrap();
    resume(&mut bench, Target::All);
    bench.pass(100 * SECOND);
    resume(&mut bench, Target::Instance(b.clone()));
    assert_left(&mut bench, &b, 50 * SECOND);
}

#[test]
fn rule_11_what_is_made_under_a_pause_begins_to_wait_when_that_ends_also_after_a_restart() {
    let mut bench = Bench::new(patient());
    bench.pause(queue()).unwrap();
    let b = bench.run("b");
    bench.pass(3600 * SECOND);
    bench.restart(3600 * SECOND, patient());
    assert_eq!(bench.instance(&b).state, Pending);
    resume(&mut bench, queue());
    assert_left(&mut bench, &b, 60 * SECOND);
}

#[test]
fn rule_11_a_pause_that_ended_while_nobody_was_there_ended_at_its_time() {
    let mut bench = Bench::new(patient());
    let b = bench.run("b");
    let until = Some(Timestamp::from_millis(bench.now.as_millis() + 30 * SECOND));
    bench.ask(Request::Pause { target: Target::All, reason: None, until }).0.unwrap();
    bench.restart(50 * SECOND, patient());
    bench.pass(0);
    assert_left(&mut bench, &b, 40 * SECOND);
}

#[test]
fn rule_11_a_later_start_is_not_put_off_by_a_pause_before_it() {
    let mut bench = Bench::new(patient());
    let at = Some(Timestamp::from_millis(bench.now.as_millis() + 100 * SECOND));
    let b = bench.submit("b", SubmitBody { at, ..SubmitBody::default() });
    bench.pause(Target::All).unwrap();
    bench.pass(50 * SECOND);
    resume(&mut bench, Target::All);
    bench.pass(50 * SECOND);
    assert_left(&mut bench, &b, 60 * SECOND);
    // One that lasts into it stops the clock from its beginning on.
    let mut bench = Bench::new(patient());
    let at = Some(Timestamp::from_millis(bench.now.as_millis() + 100 * SECOND));
    let b = bench.submit("b", SubmitBody { at, ..SubmitBody::default() });
    bench.pause(Target::All).unwrap();
    bench.pass(150 * SECOND);
    resume(&mut bench, Target::All);
    assert_left(&mut bench, &b, 60 * SECOND);
}

#[test]
fn rule_11_it_runs_in_blocked_as_in_pending_and_is_not_reset_by_rebinding() {
    let mut bench = Bench::new(patient());
    let a = bench.run("a");
    let b = bench.of("b")[0].instance_id.clone();
    bench.pass(20 * SECOND);
    bench.exits(&a, 1);
    assert_eq!(bench.instance(&b).state, Blocked);
    bench.pass(20 * SECOND);
    bench.run("a");
    assert_eq!(bench.instance(&b).state, Pending, "bound anew");
    assert_left(&mut bench, &b, 20 * SECOND);
}

#[test]
fn rule_11_a_step_of_the_clock_moves_what_stands_still_along() {
    let mut bench = Bench::new(patient());
    let b = bench.run("b");
    bench.pass(20 * SECOND);
    bench.pause(Target::All).unwrap();
    bench.step(3600 * SECOND);
    bench.pass(5 * SECOND);
    resume(&mut bench, Target::All);
    assert_left(&mut bench, &b, 40 * SECOND);
}

#[test]
fn rule_11_a_degraded_run_is_told_which_upstreams_did_not_come() {
    let b = TaskSpec {
        dependency_timeout: Some(Duration::from_secs(60)),
        on_dependency_timeout: OnDependencyTimeout::RunDegraded,
        ..after("b", &["a", "x", "y"])
    };
    let mut bench = Bench::new(vec![root("a"), root("x"), root("y"), b]);
    let a = bench.run("a");
    bench.exits(&a, 0);
    let x = bench.run("x");
    bench.exits(&x, 1);
    let commands = {
        bench.pass(60 * SECOND - 1);
        bench.now = Timestamp::from_millis(bench.now.as_millis() + 1);
        bench.event(Event::Tick)
    };
    let deps = commands.iter().find_map(|command| {
        let Command::Run(dispatch) = command else { return None };
        Some(dispatch.deps.clone())
    });
    let deps = deps.expect("it runs");
    assert_eq!(
        bench.of("b").iter().map(|i| (i.state, i.degraded)).collect::<Vec<_>>(),
        [(Running, true)]
    );
    let deps = deps.to_value();
    let told = |task: &str| (deps[task]["state"].clone(), deps[task]["satisfied"].clone());
    assert_eq!(told("a.v1"), ("SUCCEEDED".into(), true.into()));
    assert_eq!(told("x.v1"), ("FAILED".into(), false.into()));
    assert_eq!(told("y.v1"), (serde_json::Value::Null, false.into()));
}

#[test]
fn rule_13_nothing_waits_for_longer_than_the_retention_time() {
    // The bench's daemon keeps things for 30 days, the task of `short` for 2.
    let short = TaskSpec {
        retention: Some(Retention { days: Some(2), instances: None }),
        ..after("short", &["a"])
    };
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"]), short.clone()]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    let waiting = bench.run_for("b", "2026-12-24");
    assert_eq!(bench.states("short"), [Blocked]);
    bench.pass(2 * DAY - 1);
    assert_eq!(bench.states("short"), [Blocked]);
    bench.pass(1);
    let ended = bench.of("short")[0].instance_id.clone();
    assert_eq!(bench.standing(&ended), (Cancelled, Some(Reason::Expired)));
    bench.restart(28 * DAY - 1, vec![root("a"), after("b", &["a"]), short]);
    bench.pass(0);
    assert_eq!(bench.instance(&waiting).state, Pending);
    bench.pass(1);
    assert_eq!(bench.standing(&waiting), (Cancelled, Some(Reason::Expired)));
    assert_eq!(bench.states("b"), [Cancelled; 2]);
}

#[test]
fn rule_13_it_counts_from_the_time_that_was_asked_for_and_follows_the_definition() {
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"])]);
    let at = Some(Timestamp::from_millis(bench.now.as_millis() + 40 * DAY));
    let b = bench.submit("b", SubmitBody { at, ..SubmitBody::default() });
    bench.pass(69 * DAY);
    assert_eq!(bench.instance(&b).state, Pending);
    let kept = |days| TaskSpec {
        retention: Some(Retention { days: Some(days), instances: None }),
        ..after("b", &["a"])
    };
    bench.specs(vec![root("a"), kept(31)]);
    bench.pass(2 * DAY - 1);
    assert_eq!(bench.instance(&b).state, Pending);
    bench.pass(1);
    assert_eq!(bench.standing(&b), (Cancelled, Some(Reason::Expired)));
}

#[test]
fn rule_13_a_wrong_clock_lets_nothing_expire() {
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"])]);
    let b = bench.run("b");
    bench.step(400 * DAY);
    bench.pass(SECOND);
    assert_eq!(bench.instance(&b).state, Pending);
    bench.step(-400 * DAY);
    bench.pass(30 * DAY - SECOND - 1);
    assert_eq!(bench.instance(&b).state, Pending);
    bench.pass(1);
    assert_eq!(bench.instance(&b).state, Cancelled);
}

#[test]
fn rules_11_and_13_hold_for_what_an_earlier_version_stored() {
    let mut bench = Bench::new(patient());
    let b = bench.run("b");
    bench.pause(Target::All).unwrap();
    for row in bench.rows.values_mut() {
        if let crate::model::record::Row::Instance(i) = row {
            let i = std::sync::Arc::make_mut(i);
            (i.held_since, i.expires_at) = (None, None);
        }
    }
    bench.restart(0, patient());
    bench.pass(3600 * SECOND);
    assert_eq!(bench.instance(&b).state, Pending);
    resume(&mut bench, Target::All);
    bench.pause(Target::Instance(b.clone())).unwrap();
    bench.pass(30 * DAY);
    assert_eq!(bench.standing(&b), (Cancelled, Some(Reason::Expired)));
}

fn latest(name: &str, upstreams: &[&str]) -> TaskSpec {
    TaskSpec { on_upstream: OnUpstream::Latest, ..after(name, upstreams) }
}

/// `b` starts one at a time.
fn narrow() -> Vec<TaskSpec> {
    let b = TaskSpec { max_concurrent: Some(1), ..latest("b", &["a"]) };
    vec![TaskSpec { max_concurrent: None, ..root("a") }, b, after("c", &["b"])]
}

fn wave(bench: &mut Bench) {
    bench.pass(1);
    let a = bench.run("a");
    bench.exits(&a, 0);
}

#[test]
fn rule_12_a_newer_wave_replaces_what_is_ready_and_not_started() {
    let mut bench = Bench::new(narrow());
    wave(&mut bench);
    wave(&mut bench);
    assert_eq!(bench.states("b"), [Running, Ready]);
    wave(&mut bench);
    assert_eq!(bench.states("b"), [Running, Cancelled, Ready], "what runs goes on");
    let replaced = bench.of("b")[1].instance_id.clone();
    assert_eq!(bench.standing(&replaced), (Cancelled, Some(Reason::Replaced)));
    // The dependents of the replaced one take part in the newer wave: none is left over.
    bench.drain();
    assert_eq!(
        (bench.states("c"), bench.states("b")),
        (vec![Succeeded; 2], vec![Succeeded, Cancelled, Succeeded])
    );
}

#[test]
fn rule_12_each_wave_makes_its_own_where_that_is_asked_for() {
    let mut specs = narrow();
    specs[1].on_upstream = OnUpstream::Each;
    let mut bench = Bench::new(specs);
    for _ in 0..3 {
        wave(&mut bench);
    }
    assert_eq!(bench.states("b"), [Running, Ready, Ready]);
}

#[test]
fn rule_12_one_that_becomes_ready_replaces_those_that_became_so_before_it() {
    let mut bench = Bench::new(narrow());
    bench.pause(Target::Task(id("b"))).unwrap();
    let first = bench.run("a");
    bench.pass(1);
    let second = bench.run("a");
    bench.exits(&first, 0);
    assert_eq!(bench.states("b"), [Ready, Pending]);
    bench.exits(&second, 0);
    assert_eq!(bench.states("b"), [Cancelled, Ready]);
    // An older one that becomes READY last replaces nothing.
    let first = bench.run_for("a", "2026-12-01");
    bench.pass(1);
    let second = bench.run_for("a", "2026-12-01");
    bench.exits(&second, 0);
    bench.exits(&first, 0);
    assert_eq!(bench.states("b"), [Cancelled, Cancelled, Ready, Ready]);
}

#[test]
fn rule_12_what_a_person_or_a_backfill_asked_for_stays() {
    let mut bench = Bench::new(narrow());
    bench.pause(Target::Task(id("b"))).unwrap();
    let free = SubmitBody { ignore_deps: true, ..SubmitBody::default() };
    bench.submit("b", free);
    let body = crate::model::backfill::BackfillBody {
        from: "2026-11-01".to_owned(),
        to: "2026-11-02".to_owned(),
        ..Default::default()
    };
    bench.ask(Request::Backfill { task: id("a"), body }).0.unwrap();
    bench.drain();
    assert_eq!(bench.states("b"), [Ready; 3]);
    wave(&mut bench);
    assert_eq!(bench.states("b"), [Ready; 4]);
    wave(&mut bench);
    assert_eq!(bench.states("b"), [Ready, Ready, Ready, Cancelled, Ready]);
}

#[test]
fn rule_12_of_runs_only_the_newest_is_left() {
    let b = TaskSpec { max_concurrent: Some(1), ..latest("b", &["f"]) };
    let mut bench = Bench::new(vec![on_event("f", "go"), b]);
    for _ in 0..4 {
        bench.pass(1);
        let f = bench.emit("go")[0].clone();
        bench.exits(&f, 0);
    }
    assert_eq!(bench.states("b"), [Running, Cancelled, Cancelled, Ready]);
}
