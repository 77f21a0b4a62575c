//! `schedctl simulate`: nights whose course is worked out by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Time;

use super::bench::Bench;
use super::build::{after, cron, edge, every, file, id, on_event, retry, settings, task};
use crate::limits;
use crate::model::instance::{InstanceState, Reason};
use crate::model::priority::Priority;
use crate::model::record::{FireOutcome, Target};
use crate::model::request::{Reply, Request};
use crate::model::settings::Settings;
use crate::model::simulation::{
    Basis, DeadlineTime, Deadlines, SimulatedInstance, SimulationView, TaskHistory,
};
use crate::model::spec::{Misfire, Overlap, Strength, TaskSpec};
use crate::model::time::Timestamp;
use crate::scheduling::{Scenario, SimulationError, simulate};

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// One executor of so many slots, one queue.
fn slots(slots: u32) -> Settings {
    Settings::clone(&settings(&[("local", slots)], &[("default", 1, None)]))
}

/// These definitions on 1 December 2026, UTC, without a daemon.
fn day(settings: Settings, specs: Vec<TaskSpec>) -> Scenario {
    let (from, to) = (at("2026-12-01T00:00:00Z"), at("2026-12-02T00:00:00Z"));
    let files = specs.into_iter().map(|s| file(&format!("{}.yaml", s.task_id), vec![s]));
    Scenario {
        basis: Basis::bare(from, settings),
        specs: Some(files.collect()),
        from,
        to,
        percentile: 50,
        assume: Duration::from_secs(MINUTE),
        assume_of: BTreeMap::new(),
        deadlines: Deadlines::none(),
        events: Vec::new(),
        instances_max: limits::SIMULATION_INSTANCES_MAX,
    }
}

/// That attempts of these tasks take so many seconds.
fn take(seconds: &[(&str, u64)]) -> BTreeMap<crate::model::id::TaskId, Duration> {
    seconds.iter().map(|(name, s)| (id(name), Duration::from_secs(*s))).collect()
}

fn told(scenario: Scenario) -> SimulationView {
    let again = scenario.clone();
    let view = simulate(scenario).unwrap();
    assert_eq!(view, simulate(again).unwrap(), "the same scenario has the same outcome");
    view
}

/// A task with a cron trigger.
fn at_time(name: &str, expr: &str) -> TaskSpec {
    TaskSpec { triggers: vec![cron(expr)], ..task(name) }
}

/// Task, start and end of every instance in the order of their creation, as times of the day.
fn course(view: &SimulationView) -> Vec<(String, String, String)> {
    let clock =
        |at: Option<Timestamp>| at.map_or("-".to_owned(), |at| at.to_string()[11..19].into());
    let one = |i: &SimulatedInstance| {
        (i.task_id.base().to_owned(), clock(i.started_at), clock(i.finished_at))
    };
    view.instances.iter().map(one).collect()
}

fn rows(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    rows.iter().map(|(a, b, c)| ((*a).into(), (*b).into(), (*c).into())).collect()
}

fn history(name: &str, outcome: InstanceState, succeeded: &[u64], failed: &[u64]) -> TaskHistory {
    TaskHistory {
        task_id: id(name),
        succeeded_ms: succeeded.iter().map(|s| s * 1000).collect(),
        failed_ms: failed.iter().map(|s| s * 1000).collect(),
        outcome,
        failures: 0,
        error_code: None,
        output: None,
    }
}

#[test]
fn two_tasks_share_one_slot_and_the_second_waits() {
    let urgent = TaskSpec { priority: Priority::parse("0").unwrap(), ..at_time("b", "0 2 * * *") };
    let scenario = day(slots(1), vec![at_time("a", "0 2 * * *"), urgent]);
    let view = told(Scenario { assume_of: take(&[("a", 600), ("b", 1800)]), ..scenario });
    // Both are READY at 02:00; b goes first by its priority, a waits for its 30 minutes.
    assert_eq!(
        course(&view),
        rows(&[("a", "02:30:00", "02:40:00"), ("b", "02:00:00", "02:30:00")])
    );
    let waits: Vec<u64> = view.instances.iter().map(|i| i.queue_wait_ms).collect();
    assert_eq!(waits, [1_800_000, 0]);
    let queue = &view.queues[0];
    assert_eq!((queue.started, queue.median_wait_ms, queue.max_wait_ms), (2, 0, 1_800_000));
    assert_eq!((queue.peak_ready, queue.peak_at), (1, Some(at("2026-12-01T02:00:00Z"))));
    let executor = &view.executors[0];
    assert_eq!((executor.peak, executor.busy_ms), (1, 2_400_000));
    let slots: Vec<(String, u64, u64)> = view
        .slots
        .iter()
        .map(|s| (s.at.to_string()[11..16].to_owned(), s.running, s.ready))
        .collect();
    let expected = [("02:00", 1, 1), ("02:30", 1, 0), ("02:40", 0, 0)];
    assert_eq!(slots, expected.map(|(at, on, ready)| (at.to_owned(), on, ready)));
    let summary = view.summary;
    assert_eq!((summary.instances, summary.succeeded, summary.open), (2, 2, 0));
    assert_eq!((summary.slots, summary.peak_slots, summary.longest_wait_ms), (1, 1, 1_800_000));
    assert_eq!(view.peaks.len(), 1);
    assert_eq!((view.peaks[0].at, view.peaks[0].instances), (at("2026-12-01T02:00:00Z"), 2));
    assert!(view.assumed.is_empty(), "both were said");
}

#[test]
fn a_slot_is_the_first_that_is_free() {
    let scenario = day(
        slots(3),
        vec![at_time("a", "0 1 * * *"), at_time("b", "1 1 * * *"), at_time("c", "30 1 * * *")],
    );
    let lengths = take(&[("a", 10 * MINUTE), ("b", HOUR), ("c", MINUTE)]);
    let view = told(Scenario { assume_of: lengths, ..scenario });
    let on: Vec<u32> = view.instances.iter().map(|i| i.attempts[0].slot).collect();
    assert_eq!(on, [1, 2, 1], "a has left the first slot when c starts");
}

#[test]
fn a_chain_runs_one_after_the_other_and_its_end_may_be_late() {
    let scenario =
        day(slots(4), vec![at_time("a", "0 4 * * *"), after("b", &["a"]), after("c", &["b"])]);
    let six = Some(DeadlineTime::Daily(Time::constant(6, 0, 0, 0)));
    let of = BTreeMap::from([(id("b"), DeadlineTime::At(at("2026-12-01T05:30:00Z")))]);
    let view = told(Scenario {
        assume: Duration::from_secs(50 * MINUTE),
        deadlines: Deadlines { all: six, of, ..Deadlines::none() },
        ..scenario
    });
    // 04:00 + 50, + 50, + 50 minutes; b and c are made with a, PENDING, and wait for no slot.
    assert_eq!(
        course(&view),
        rows(&[
            ("a", "04:00:00", "04:50:00"),
            ("b", "04:50:00", "05:40:00"),
            ("c", "05:40:00", "06:30:00"),
        ])
    );
    assert!(view.instances.iter().all(|i| i.queue_wait_ms == 0));
    let late: Vec<(&str, u64)> =
        view.late.iter().map(|l| (l.task_id.base(), l.late_by_ms / 60_000)).collect();
    assert_eq!(late, [("c", 30), ("b", 10)], "the latest first");
    assert_eq!(view.summary.late, 2);
    assert_eq!(view.assumed, [id("a"), id("b"), id("c")]);
}

#[test]
fn what_has_not_ended_by_its_deadline_is_late_and_what_waits_is_named() {
    let specs = vec![
        at_time("a", "0 22 * * *"),
        TaskSpec {
            depends_on: vec![edge("never", Strength::Strong)],
            ..at_time("b", "0 21 * * *")
        },
        on_event("never", "go"),
    ];
    let eleven = Some(DeadlineTime::Daily(Time::constant(23, 0, 0, 0)));
    let view = told(Scenario {
        assume: Duration::from_secs(5 * HOUR),
        deadlines: Deadlines { all: eleven, ..Deadlines::none() },
        ..day(slots(4), specs)
    });
    assert_eq!(course(&view), rows(&[("b", "-", "-"), ("a", "22:00:00", "-")]));
    // Both are late from 23:00 to midnight, where the simulation ends.
    let late: Vec<u64> = view.late.iter().map(|l| l.late_by_ms).collect();
    assert_eq!(late, [3_600_000, 3_600_000]);
    assert_eq!(view.waiting.len(), 1, "{:?}", view.waiting);
    let waits = &view.waiting[0];
    assert_eq!((&waits.task_id, &waits.waits_for), (&id("b"), &vec![id("never")]));
    assert_eq!(waits.reason, Some(Reason::WaitingDependency));
    assert_eq!(view.unstarted.len(), 1);
    assert_eq!(view.unstarted[0].task_id, id("never"));
    assert_eq!(view.unstarted[0].waits_for, ["event go"]);
}

#[test]
fn a_named_event_may_be_told_of() {
    let scenario = day(slots(4), vec![on_event("a", "go")]);
    let events = vec![
        (at("2026-12-01T03:00:00Z"), "go".to_owned()),
        (at("2026-12-01T01:00:00Z"), "go".to_owned()),
        (at("2026-12-01T02:00:00Z"), "other".to_owned()),
    ];
    let view = told(Scenario { events, ..scenario });
    assert_eq!(
        course(&view),
        rows(&[("a", "01:00:00", "01:01:00"), ("a", "03:00:00", "03:01:00")])
    );
    assert!(view.unstarted.is_empty());
}

#[test]
fn a_quota_of_the_owner_holds_back_and_the_slots_stay_free() {
    let mut settings = slots(8);
    settings.owner_quota = BTreeMap::from([("ops".to_owned(), 2)]);
    let specs = ["a", "b", "c"].map(|name| at_time(name, "0 1 * * *")).to_vec();
    let view = told(Scenario { assume: Duration::from_secs(HOUR), ..day(settings, specs) });
    assert_eq!(
        course(&view),
        rows(&[
            ("a", "01:00:00", "02:00:00"),
            ("b", "01:00:00", "02:00:00"),
            ("c", "02:00:00", "03:00:00"),
        ])
    );
    assert_eq!((view.summary.peak_slots, view.summary.slots), (2, 8));
}

#[test]
fn fires_that_overlap_are_collisions() {
    let quick = every(10 * MINUTE, Misfire::Skip, Overlap::Skip);
    let scenario = day(slots(1), vec![TaskSpec { triggers: vec![quick], ..task("a") }]);
    let hour = at("2026-12-01T01:00:00Z");
    let view =
        told(Scenario { to: hour, assume: Duration::from_secs(25 * MINUTE), ..scenario.clone() });
    // 00:00 to 00:25 skips 00:10 and 00:20; 00:30 to 00:55 skips 00:40 and 00:50.
    assert_eq!(
        course(&view),
        rows(&[("a", "00:00:00", "00:25:00"), ("a", "00:30:00", "00:55:00")])
    );
    assert_eq!(view.skipped.len(), 1);
    let skipped = &view.skipped[0];
    assert_eq!((skipped.outcome, skipped.count), (FireOutcome::SkippedOverlap, 4));
    assert_eq!(skipped.from, at("2026-12-01T00:10:00Z"));
    assert_eq!(skipped.to, at("2026-12-01T00:50:00Z"));
    assert_eq!(view.summary.skipped_fires, 4);
    // One that ends as the next is due makes room for it.
    let view = told(Scenario { to: hour, assume: Duration::from_secs(10 * MINUTE), ..scenario });
    assert_eq!((view.instances.len(), view.skipped.len()), (6, 0));
}

#[test]
fn a_task_fails_as_often_as_it_did_before_it_succeeds() {
    let spec =
        TaskSpec { retry: retry(3, Duration::from_secs(5 * MINUTE)), ..at_time("a", "0 1 * * *") };
    let mut scenario = day(slots(1), vec![spec, after("b", &["a"])]);
    let of_a = history("a", InstanceState::Succeeded, &[600], &[60]);
    scenario.basis.history =
        vec![TaskHistory { failures: 1, error_code: Some("CONN_RESET".to_owned()), ..of_a }];
    let view = told(scenario);
    // 01:00 fails after a minute; five minutes later it is tried again and takes ten.
    assert_eq!(
        course(&view),
        rows(&[("a", "01:00:00", "01:16:00"), ("b", "01:16:00", "01:17:00")])
    );
    let attempts: Vec<(InstanceState, Option<&str>)> =
        view.instances[0].attempts.iter().map(|a| (a.state, a.error_code.as_deref())).collect();
    assert_eq!(
        attempts,
        [(InstanceState::Failed, Some("CONN_RESET")), (InstanceState::Succeeded, None)]
    );
}

#[test]
fn a_task_that_mostly_failed_blocks_what_depends_on_it() {
    let mut scenario = day(slots(1), vec![at_time("a", "0 1 * * *"), after("b", &["a"])]);
    scenario.basis.history = vec![history("a", InstanceState::Failed, &[9], &[60, 120, 180])];
    let view = told(scenario);
    assert_eq!(course(&view), rows(&[("a", "01:00:00", "01:02:00"), ("b", "-", "-")]));
    let waits = &view.waiting[0];
    assert_eq!((waits.state, waits.reason), (InstanceState::Blocked, Some(Reason::UpstreamFailed)));
    assert_eq!((view.summary.failed, view.summary.open), (1, 1));
}

#[test]
fn the_percentile_picks_among_past_lengths_and_the_timeout_bounds_them() {
    let lengths: Vec<u64> = (1..=20).map(|minutes| minutes * MINUTE).collect();
    let at_percentile = |percentile, timeout| {
        let spec = TaskSpec { timeout, ..at_time("a", "0 1 * * *") };
        let mut scenario = Scenario { percentile, ..day(slots(1), vec![spec]) };
        scenario.basis.history = vec![history("a", InstanceState::Succeeded, &lengths, &[])];
        let view = told(scenario);
        (view.instances[0].state, course(&view)[0].2.clone())
    };
    assert_eq!(at_percentile(50, None), (InstanceState::Succeeded, "01:10:00".to_owned()));
    assert_eq!(at_percentile(95, None), (InstanceState::Succeeded, "01:19:00".to_owned()));
    let bound = Some(Duration::from_secs(15 * MINUTE));
    assert_eq!(at_percentile(50, bound), (InstanceState::Succeeded, "01:10:00".to_owned()));
    assert_eq!(at_percentile(95, bound), (InstanceState::Timeout, "01:15:00".to_owned()));
}

#[test]
fn a_new_version_is_taken_to_do_as_the_one_before() {
    let v2 = crate::model::id::TaskId::parse("a.v2").unwrap();
    let spec = TaskSpec { task_id: v2, version: 2, ..at_time("a", "0 1 * * *") };
    let mut scenario = day(slots(1), vec![spec]);
    scenario.basis.history = vec![history("a", InstanceState::Succeeded, &[300], &[])];
    let view = told(scenario);
    assert_eq!(course(&view)[0].2, "01:05:00");
    assert!(view.assumed.is_empty());
}

#[test]
fn the_night_on_which_the_clock_goes_back_has_an_hour_more() {
    let mut settings = slots(4);
    settings.timezone = "Europe/Berlin".to_owned();
    // Midnight to midnight in Berlin: 25 October 2026, on which 02:00 to 03:00 comes twice.
    let (from, to) = (at("2026-10-24T22:00:00Z"), at("2026-10-25T23:00:00Z"));
    let specs = vec![at_time("hourly", "0 * * * *"), at_time("daily", "30 2 * * *")];
    let scenario = day(settings, specs);
    let basis = Basis::bare(from, scenario.basis.settings.clone());
    let view = told(Scenario { basis, from, to, ..scenario });
    let of = |name: &str| view.instances.iter().filter(|i| i.task_id == id(name)).count();
    // A line with a wildcard hour counts the clock's hours, a fixed one its day.
    assert_eq!((of("hourly"), of("daily")), (25, 1));
}

#[test]
fn a_fire_at_the_beginning_counts_and_one_at_the_end_does_not() {
    let skip = every(HOUR, Misfire::Skip, Overlap::Skip);
    let scenario = day(slots(1), vec![TaskSpec { triggers: vec![skip], ..task("a") }]);
    let (from, to) = (at("2026-12-01T05:00:00Z"), at("2026-12-01T07:00:00Z"));
    let view = told(Scenario { from, to, ..scenario });
    assert_eq!(
        course(&view),
        rows(&[("a", "05:00:00", "05:01:00"), ("a", "06:00:00", "06:01:00")])
    );
    assert!(view.skipped.is_empty(), "{:?}", view.skipped);
}

/// What the core of a bench says that a simulation starts from.
fn basis(bench: &mut Bench) -> Basis {
    match bench.ask(Request::SimulationBasis).0 {
        Ok(Reply::SimulationBasis(basis)) => *basis,
        other => panic!("no basis: {other:?}"),
    }
}

/// From a bench's time on, for so many seconds.
fn from_now(bench: &mut Bench, seconds: u64) -> Scenario {
    let basis = basis(bench);
    // As it comes over HTTP.
    let text = serde_json::to_string(&basis).unwrap();
    let read: Basis = serde_json::from_str(&text).unwrap();
    assert_eq!(read, basis);
    let (from, to) = (read.at, read.at.plus(Duration::from_secs(seconds)));
    Scenario { basis: read, specs: None, from, to, ..day(slots(1), Vec::new()) }
}

#[test]
fn what_runs_and_waits_now_is_taken_over() {
    let hourly =
        TaskSpec { triggers: vec![every(HOUR, Misfire::RunOnce, Overlap::Queue)], ..task("a") };
    let mut bench = Bench::new(vec![hourly, after("b", &["a"]), task("c")]);
    let c = bench.run("c");
    bench.started(&c);
    bench.pass(3_600_000);
    let a = bench.of("a")[0].instance_id.clone();
    bench.started(&a);
    bench.pass(60_000);
    let mut scenario = from_now(&mut bench, 2 * HOUR);
    // c has been on for 61 minutes, a for one.
    scenario.basis.history = vec![
        history("a", InstanceState::Succeeded, &[600], &[]),
        history("c", InstanceState::Succeeded, &[60, 70, 5400], &[]),
    ];
    let view = told(scenario);
    let begun = bench.now.to_string()[11..16].to_owned();
    assert_eq!(begun, "01:01");
    assert_eq!(
        course(&view),
        rows(&[
            // Longer than usual: like the longest before, 90 minutes from 00:00.
            ("c", "00:00:00", "01:30:00"),
            ("a", "01:00:00", "01:10:00"),
            ("b", "01:10:00", "01:11:00"),
            ("a", "02:00:00", "02:10:00"),
            ("b", "02:10:00", "02:11:00"),
            ("a", "03:00:00", "-"),
            ("b", "-", "-"),
        ])
    );
    let taken: Vec<bool> = view.instances.iter().map(|i| i.taken_over).collect();
    assert_eq!(taken, [true, true, true, false, false, false, false]);
    assert_eq!(bench.standing(&a).0, InstanceState::Running, "the daemon's own has not moved");
}

#[test]
fn a_night_soon_begins_with_what_is_on_by_then_and_one_far_off_with_nothing() {
    let mut bench = Bench::new(vec![at_time("a", "0 1 * * *")]);
    let mut scenario = from_now(&mut bench, 0);
    scenario.assume = Duration::from_secs(2 * HOUR);
    let soon = scenario.basis.at.plus(Duration::from_secs(2 * HOUR));
    let to = soon.plus(Duration::from_secs(HOUR));
    let view = told(Scenario { from: soon, to, ..scenario.clone() });
    assert_eq!(course(&view), rows(&[("a", "01:00:00", "03:00:00")].map(|r| (r.0, r.1, "-"))));
    assert_eq!(view.slots[0].running, 1);
    assert_eq!(view.executors[0].busy_ms, 3_600_000);
    let later = soon.plus(limits::SIMULATION_RUN_UP);
    let to = later.plus(Duration::from_secs(HOUR));
    let view = told(Scenario { from: later, to, ..scenario.clone() });
    assert!(view.instances.is_empty(), "{:?}", view.instances);
    // In the past nothing counts as missed either.
    let earlier = scenario.basis.at.minus(Duration::from_secs(48 * HOUR));
    let to = earlier.plus(Duration::from_secs(24 * HOUR));
    let view = told(Scenario { from: earlier, to, ..scenario });
    assert_eq!(course(&view), rows(&[("a", "01:00:00", "03:00:00")]));
    assert!(view.skipped.is_empty());
}

#[test]
fn pauses_hold_in_the_simulation_too() {
    let specs = ["a", "b"].map(|name| at_time(name, "0 1 * * *")).to_vec();
    let mut bench = Bench::new(specs);
    bench.pause(Target::Task(id("a"))).unwrap();
    let view = told(from_now(&mut bench, 2 * HOUR));
    assert_eq!(course(&view), rows(&[("b", "01:00:00", "01:01:00")]));
    assert_eq!(view.skipped[0].outcome, FireOutcome::Paused);
    bench.pause(Target::All).unwrap();
    let view = told(from_now(&mut bench, 2 * HOUR));
    assert_eq!(course(&view), rows(&[("b", "-", "-")]));
    assert_eq!(view.waiting[0].reason, Some(Reason::Paused));
    assert_eq!(view.summary.longest_wait_ms, 3_600_000);
}

#[test]
fn other_definitions_take_the_place_of_those_in_force() {
    let mut bench = Bench::new(vec![at_time("a", "0 1 * * *"), at_time("gone", "0 1 * * *")]);
    let scenario = from_now(&mut bench, 4 * HOUR);
    let boots = crate::model::spec::TriggerKind::Boot;
    let specs = vec![
        at_time("a", "0 2 * * *"),
        at_time("new", "0 3 * * *"),
        // The machine is up: its next boot is not part of the night.
        TaskSpec { triggers: vec![super::build::on(boots)], ..task("boots") },
    ];
    let files = specs.into_iter().map(|s| file(&format!("new/{}.yaml", s.task_id), vec![s]));
    let view = told(Scenario { specs: Some(files.collect()), ..scenario });
    assert_eq!(
        course(&view),
        rows(&[("a", "02:00:00", "02:01:00"), ("new", "03:00:00", "03:01:00")])
    );
}

#[test]
fn what_is_told_of_the_configuration_leaves_secrets_out() {
    let mut settings = slots(1);
    let run = vec![crate::model::template::Template::parse("prog").unwrap()];
    let env = BTreeMap::from([(
        "TOKEN".to_owned(),
        crate::model::template::Template::parse("HUNTER1").unwrap(),
    )]);
    settings.task_types =
        BTreeMap::from([("OWN".to_owned(), crate::model::settings::TaskType { run, env })]);
    let mut bench = Bench::bare(Arc::new(settings));
    bench.specs(Vec::new());
    let text = serde_json::to_string(&basis(&mut bench)).unwrap();
    assert!(!text.contains("HUNTER1"), "{text}");
}

#[test]
fn too_much_is_refused_with_the_time_by_which_it_is() {
    let quick = every(1, Misfire::Skip, Overlap::Allow);
    let tasks = ["a", "b"].map(|name| TaskSpec { triggers: vec![quick.clone()], ..task(name) });
    let scenario = day(slots(1000), tasks.to_vec());
    let error = simulate(Scenario { instances_max: 99, ..scenario }).unwrap_err();
    // Two a second, the first at midnight: the hundredth is made 49 seconds later.
    let by = at("2026-12-01T00:00:49Z");
    assert_eq!(error, SimulationError::TooMuch { what: "instances", max: 99, at: by });
    assert!(error.to_string().contains("more than 99 instances by 2026-12-01T00:00:49"), "{error}");
}
