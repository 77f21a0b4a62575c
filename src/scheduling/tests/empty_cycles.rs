//! docs/waves.md, rule 7: a cycle in which the upstream fired but made no instance.

use super::bench::{Bench, MIDNIGHT};
use super::build::{cron, edge, every, id, on, root, task};
use crate::limits;
use crate::model::condition::Condition;
use crate::model::cron::CronExpr;
use crate::model::instance::InstanceState::{Blocked, Cancelled, Pending, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::record::{FireOutcome, Row, RowKey, Target};
use crate::model::request::{Request, SubmitBody};
use crate::model::spec::{
    CronTrigger, Dependency, FirePolicy, Misfire, Overlap, Strength, TaskSpec, Trigger,
};
use crate::model::trigger::TriggerKind;
use crate::model::view::InstanceView;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// At 02:00 each day.
fn nightly(name: &str) -> TaskSpec {
    TaskSpec { triggers: vec![cron("0 2 * * *")], ..task(name) }
}

/// Triggered by hand or an event, with one edge.
fn waits(name: &str, upstream: &str, strength: Strength) -> TaskSpec {
    TaskSpec { depends_on: vec![edge(upstream, strength)], ..root(name) }
}

fn set() -> Vec<TaskSpec> {
    vec![nightly("a"), waits("hard", "a", Strength::Strong), waits("soft", "a", Strength::Weak)]
}

fn empty(bench: &Bench) -> Vec<(String, FireOutcome)> {
    let of = |row: &Row| {
        let Row::EmptyCycle(e) = row else { return None };
        Some((e.cycle.label().to_owned(), e.outcome))
    };
    bench.rows.values().filter_map(of).collect()
}

#[test]
fn rule_7_a_fire_that_makes_nothing_ends_open_edges_to_its_cycle() {
    let mut bench = Bench::new(set());
    let (hard, soft) = (bench.run("hard"), bench.run("soft"));
    let tomorrow = bench.run_for("soft", "2026-12-01");
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.pass(2 * HOUR - 1);
    assert_eq!((bench.states("hard"), bench.states("soft")), (vec![Pending], vec![Pending; 2]));
    bench.pass(1);
    assert_eq!(bench.fires("a"), [(FireOutcome::Paused, 1)]);
    assert_eq!(bench.standing(&hard), (Blocked, Some(Reason::UpstreamSkipped)));
    let message = bench.instance(&hard).message.clone().expect("words for a person");
    assert!(message.contains("PAUSED") && message.contains("--cycle 2026-11-30"), "{message}");
    assert_eq!(bench.standing(&soft), (Running, None));
    let shown = |of| InstanceView::new(bench.instance(of), None, &|_| None).dependencies;
    assert!(shown(&soft)[0].satisfied && !shown(&hard)[0].satisfied);
    assert_eq!(bench.instance(&tomorrow).state, Pending, "another cycle");
}

#[test]
fn rule_7_an_edge_that_is_made_later_is_ended_too() {
    let mut bench = Bench::new(set());
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.pass(3 * HOUR);
    let (hard, soft) = (bench.run("hard"), bench.run("soft"));
    assert_eq!(bench.standing(&hard), (Blocked, Some(Reason::UpstreamSkipped)));
    assert_eq!(bench.standing(&soft), (Running, None));
}

#[test]
fn rule_7_a_later_run_of_the_cycle_heals_and_wins() {
    let mut bench = Bench::new(set());
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.pass(3 * HOUR);
    let hard = bench.run("hard");
    bench.ask(Request::Resume { target: Target::Task(id("a")) }).0.unwrap();
    let a = bench.run_for("a", "2026-11-30");
    assert_eq!(bench.standing(&hard), (Pending, Some(Reason::WaitingDependency)));
    assert_eq!(bench.instance(&hard).message, None);
    assert_eq!(empty(&bench), []);
    bench.exits(&a, 0);
    bench.drain();
    assert_eq!(bench.instance(&hard).state, Succeeded);
    // What is made later binds to it, whatever the ledger said before.
    let later = bench.run("hard");
    assert_eq!(bench.instance(&later).edges[0].instance_id, Some(a));
}

#[test]
fn rule_7_an_instance_that_nothing_is_bound_to_wins_too() {
    let mut bench = Bench::new(set());
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.pass(3 * HOUR);
    let hard = bench.run("hard");
    let quiet = crate::model::request::SubmitBody {
        no_downstream: true,
        ..crate::model::request::SubmitBody::default()
    };
    bench.submit("a", quiet);
    assert_eq!(bench.standing(&hard), (Pending, Some(Reason::WaitingDependency)));
}

#[test]
fn rule_7_every_outcome_without_an_instance_counts() {
    // DISABLED
    let off = TaskSpec { enabled: false, ..nightly("a") };
    let mut bench = Bench::new(vec![off, waits("soft", "a", Strength::Weak)]);
    let soft = bench.run("soft");
    bench.pass(2 * HOUR);
    assert_eq!(bench.fires("a"), [(FireOutcome::Disabled, 1)]);
    assert_eq!(bench.instance(&soft).state, Running);
    // UNRESOLVED
    let lost = TaskSpec { depends_on: vec![edge("nobody", Strength::Strong)], ..nightly("a") };
    let mut bench = Bench::new(vec![lost, waits("soft", "a", Strength::Weak)]);
    let soft = bench.run("soft");
    bench.pass(2 * HOUR);
    assert_eq!(bench.fires("a"), [(FireOutcome::Unresolved, 1)]);
    assert_eq!(bench.instance(&soft).state, Running);
    // REJECTED_PARAMS
    let mut asks = nightly("a");
    asks.runtime_params.insert("day".to_owned(), super::build::needed_text());
    let mut bench = Bench::new(vec![asks, waits("soft", "a", Strength::Weak)]);
    let soft = bench.run("soft");
    bench.pass(2 * HOUR);
    assert_eq!(bench.fires("a"), [(FireOutcome::RejectedParams, 1)]);
    assert_eq!(bench.instance(&soft).state, Running);
}

#[test]
fn rule_7_a_fire_skipped_by_overlap_ends_edges_to_its_own_cycle() {
    let mut a = nightly("a");
    a.triggers = vec![on(TriggerKind::Cron(CronTrigger {
        expr: CronExpr::parse("0 2 * * *").unwrap(),
        timezone: None,
        policy: FirePolicy { overlap: Overlap::Skip, ..FirePolicy::default() },
    }))];
    let mut bench = Bench::new(vec![a, waits("hard", "a", Strength::Strong)]);
    bench.pass(2 * HOUR);
    let next = bench.run_for("hard", "2026-12-01");
    bench.pass(DAY);
    let (made, skipped) = (FireOutcome::Instance, FireOutcome::SkippedOverlap);
    assert_eq!(bench.fires("a"), [(made, 1), (skipped, 1)]);
    assert_eq!(bench.standing(&next), (Blocked, Some(Reason::UpstreamSkipped)));
    // One of the same cycle is what edges of it are bound to.
    let today = bench.run_for("hard", "2026-11-30");
    assert_eq!(bench.instance(&today).state, Pending);
}

#[test]
fn rule_7_a_cycle_in_which_one_fire_made_an_instance_is_not_empty() {
    // The second fire of the day finds the first at work.
    let a = TaskSpec { triggers: vec![every(3600, Misfire::RunOnce, Overlap::Skip)], ..task("a") };
    let mut bench = Bench::new(vec![a, waits("soft", "a", Strength::Weak)]);
    bench.pass(2 * HOUR);
    assert_eq!(empty(&bench), []);
    let soft = bench.run("soft");
    assert_eq!(bench.instance(&soft).state, Pending);
}

#[test]
fn rule_7_a_condition_on_a_weak_edge_is_asked_as_of_one_that_was_cancelled() {
    let gated = |name: &str, when: &str| {
        let when = Some(Condition::parse(when).unwrap());
        let edge = Dependency { when, ..edge("a", Strength::Weak) };
        TaskSpec { depends_on: vec![edge], ..root(name) }
    };
    let mut bench = Bench::new(vec![
        nightly("a"),
        gated("tidy", "state == 'FAILED'"),
        gated("told", "state != 'SUCCEEDED'"),
    ]);
    bench.pause(Target::Task(id("a"))).unwrap();
    let (tidy, told) = (bench.run("tidy"), bench.run("told"));
    bench.pass(2 * HOUR);
    assert_eq!(bench.standing(&tidy), (Cancelled, Some(Reason::ConditionFalse)));
    assert_eq!(bench.instance(&told).state, Running);
}

#[test]
fn rule_7_a_derived_fan_in_with_a_missed_root_goes_on_or_is_blocked() {
    let fan = |name: &str, strength| TaskSpec {
        depends_on: vec![edge("a", strength), edge("x", Strength::Strong)],
        ..task(name)
    };
    let mut bench = Bench::new(vec![
        nightly("a"),
        root("x"),
        fan("c", Strength::Strong),
        fan("d", Strength::Weak),
    ]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.pass(3 * HOUR);
    bench.run("x");
    bench.drain();
    assert_eq!((bench.states("c"), bench.states("d")), (vec![Blocked], vec![Succeeded]));
}

fn second_by_second(misfire: Misfire) -> Trigger {
    let policy = FirePolicy { misfire, overlap: Overlap::Allow, ..FirePolicy::default() };
    let expr = CronExpr::parse("* * * * * *").unwrap();
    on(TriggerKind::Cron(CronTrigger { expr, timezone: None, policy }))
}

/// 31 million fires, more than could be looked at one by one in any test.
#[test]
fn rule_7_a_year_of_missed_fires_notes_the_cycles_that_may_still_be_waited_for() {
    let set = || {
        let a = TaskSpec { triggers: vec![second_by_second(Misfire::Skip)], ..task("a") };
        vec![a, waits("hard", "a", Strength::Strong)]
    };
    let mut bench = Bench::new(set());
    bench.restart(365 * DAY + 12 * HOUR, set());
    // A retention of 30 days: from noon 30 days ago on, which is in the 31st day back.
    let cycles = empty(&bench);
    assert_eq!(cycles.len(), 31);
    assert!(cycles.contains(&("2027-11-30".to_owned(), FireOutcome::Missed)));
    assert!(cycles.contains(&("2027-10-31".to_owned(), FireOutcome::Missed)));
    let hard = bench.run_for("hard", "2027-11-29");
    assert_eq!(bench.standing(&hard), (Blocked, Some(Reason::UpstreamSkipped)));
}

#[test]
fn rule_7_only_the_newest_cycles_of_a_task_are_kept_and_each_for_the_retention_time() {
    use crate::model::cycle::{CycleRule, CycleUnit};
    let mut a = TaskSpec { triggers: vec![second_by_second(Misfire::Skip)], ..task("a") };
    a.cycle = Some(CycleRule { unit: CycleUnit::Minute, offset: 0 });
    let mut bench = Bench::new(vec![a.clone()]);
    bench.restart(DAY, vec![a]);
    assert_eq!(empty(&bench).len(), limits::EMPTY_CYCLES_MAX);
    assert!(bench.rows.contains_key(&RowKey::EmptyCycle {
        task_id: id("a"),
        cycle: "2026-12-01T00:00".to_owned()
    }));
    bench.specs(Vec::new());
    bench.pass(31 * DAY);
    assert_eq!(empty(&bench), []);
}

/// A task's unit may have changed since: the day holds all its minutes.
#[test]
fn rule_7_an_instance_of_a_matching_cycle_of_another_unit_wins() {
    use crate::model::cycle::{CycleRule, CycleUnit};
    let cycle = Some(CycleRule { unit: CycleUnit::Minute, offset: 0 });
    let of_minutes = TaskSpec { cycle, ..nightly("a") };
    let set = |a: TaskSpec| vec![a, waits("hard", "a", Strength::Strong)];
    let mut bench = Bench::new(set(of_minutes.clone()));
    bench.restart(DAY, set(TaskSpec { enabled: false, ..of_minutes }));
    let waiting = bench.run_for("hard", "2026-11-30");
    assert_eq!(bench.standing(&waiting), (Blocked, Some(Reason::UpstreamSkipped)));
    bench.specs(set(nightly("a")));
    let body = SubmitBody {
        cycle: Some("2026-11-30".to_owned()),
        no_downstream: true,
        ..SubmitBody::default()
    };
    bench.submit("a", body);
    assert_eq!(bench.standing(&waiting), (Pending, Some(Reason::WaitingDependency)));
}

/// What is no longer remembered ends no edge, also for who waited all the time: a start would say
/// the same.
#[test]
fn rule_7_a_cycle_that_too_many_newer_ones_push_out_is_waited_for_again() {
    use crate::model::cycle::{CycleRule, CycleUnit};
    let cycle = Some(CycleRule { unit: CycleUnit::Minute, offset: 0 });
    let a = TaskSpec { triggers: vec![second_by_second(Misfire::Skip)], cycle, ..task("a") };
    let hard = TaskSpec { cycle, ..waits("hard", "a", Strength::Strong) };
    let set = || vec![a.clone(), hard.clone()];
    let mut bench = Bench::new(set());
    bench.restart(HOUR, set());
    let waiting = bench.run_for("hard", "2026-11-30T00:30");
    assert_eq!(bench.standing(&waiting), (Blocked, Some(Reason::UpstreamSkipped)));
    bench.restart(DAY, set());
    assert_eq!(bench.standing(&waiting), (Pending, Some(Reason::WaitingDependency)));
}

#[test]
fn rule_7_what_the_clock_went_past_by_mistake_is_no_end() {
    let mut bench = Bench::new(set());
    let day_after = bench.run_for("hard", "2026-12-02");
    let today = bench.run_for("hard", "2026-11-30");
    // More than three hours forward: all of it is MISSED.
    bench.step(3 * DAY);
    assert_eq!(bench.fires("a"), [(FireOutcome::Missed, 3)]);
    assert_eq!(bench.standing(&day_after), (Blocked, Some(Reason::UpstreamSkipped)));
    bench.step(-3 * DAY + 3 * HOUR);
    assert_eq!(bench.fires("a"), [(FireOutcome::Missed, 1)]);
    assert_eq!(bench.standing(&day_after), (Pending, Some(Reason::WaitingDependency)));
    assert_eq!(bench.standing(&today), (Blocked, Some(Reason::UpstreamSkipped)));
    assert_eq!(empty(&bench), [("2026-11-30".to_owned(), FireOutcome::Missed)]);
    assert_eq!(bench.now.as_millis(), MIDNIGHT + 3 * HOUR);
}

#[test]
fn rule_7_is_not_for_runs() {
    let off = TaskSpec {
        triggers: vec![on(TriggerKind::Event("go".to_owned()))],
        enabled: false,
        ..task("a")
    };
    let mut bench = Bench::new(vec![off, waits("soft", "a", Strength::Weak)]);
    bench.emit("go");
    assert_eq!(bench.fires("a"), [(FireOutcome::Disabled, 1)]);
    assert_eq!(empty(&bench), []);
}
