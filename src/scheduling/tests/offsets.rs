//! docs/waves.md: `cycleOffset` and cycles of different units (rules 2 to 4, 6 and 14).

use super::bench::Bench;
use super::build::{after, cron, edge, id, on_event, root, task};
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{Blocked, Cancelled, Pending, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::request::{Reply, Request};
use crate::model::spec::{Dependency, Strength, TaskSpec};

const HOUR: i64 = 3_600_000;

fn behind(upstream: &str, cycle_offset: i32) -> Dependency {
    Dependency { cycle_offset, ..edge(upstream, Strength::Strong) }
}

/// A root by submission, of another unit.
fn of_unit(name: &str, unit: CycleUnit) -> TaskSpec {
    TaskSpec { cycle: Some(CycleRule { unit, offset: 0 }), ..root(name) }
}

fn waits(name: &str, edges: Vec<Dependency>) -> TaskSpec {
    TaskSpec { depends_on: edges, ..root(name) }
}

fn bound(bench: &Bench, of: &InstanceId) -> Option<InstanceId> {
    bench.instance(of).edges[0].instance_id.clone()
}

#[test]
fn rule_2_an_edge_with_an_offset_binds_to_the_cycle_before_and_to_none_else() {
    let mut bench = Bench::new(vec![root("a"), waits("b", vec![behind("a", -1)])]);
    let before = bench.run_for("a", "2026-11-28");
    let yesterday = bench.run_for("a", "2026-11-29");
    bench.run_for("a", "2026-11-30");
    bench.drain();
    let b = bench.run_for("b", "2026-11-30");
    assert_eq!(bound(&bench, &b), Some(yesterday));
    let earlier = bench.run_for("b", "2026-11-29");
    assert_eq!(bound(&bench, &earlier), Some(before));
    let open = bench.run_for("b", "2026-12-02");
    assert_eq!((bound(&bench, &open), bench.instance(&open).state), (None, Pending));
}

#[test]
fn rule_3_an_open_edge_with_an_offset_takes_the_cycle_that_it_wants_when_that_appears() {
    let mut bench = Bench::new(vec![root("a"), waits("b", vec![behind("a", -1)])]);
    let b = bench.run_for("b", "2026-11-30");
    bench.run_for("a", "2026-11-30");
    bench.run_for("a", "2026-11-28");
    assert_eq!(bound(&bench, &b), None);
    bench.restart(0, vec![root("a"), waits("b", vec![behind("a", -1)])]);
    let hello = bench.hello();
    bench.event(crate::model::event::Event::ExecutorConnected(hello));
    let yesterday = bench.run_for("a", "2026-11-29");
    assert_eq!(bound(&bench, &b), Some(yesterday));
}

#[test]
fn rule_3_two_edges_of_different_offsets_on_tasks_of_one_name_keep_apart() {
    let c = waits("c", vec![behind("a", -1), behind("x", -2)]);
    let mut bench = Bench::new(vec![root("a"), root("x"), c]);
    let waiting = bench.run_for("c", "2026-11-30");
    let (a, x) = (bench.run_for("a", "2026-11-29"), bench.run_for("x", "2026-11-28"));
    bench.run_for("x", "2026-11-29");
    let edges = &bench.instance(&waiting).edges;
    assert_eq!((&edges[0].instance_id, &edges[1].instance_id), (&Some(a), &Some(x)));
}

#[test]
fn rule_1_a_wave_binds_no_edge_with_an_offset_and_is_not_carried_by_it() {
    // The fan-in of each day needs its own `a` and the `x` of the day before.
    let c = TaskSpec { depends_on: vec![behind("a", 0), behind("x", -1)], ..task("c") };
    let mut bench = Bench::new(vec![root("a"), root("x"), c]);
    let x = bench.run_for("x", "2026-11-29");
    bench.drain();
    assert_eq!(bench.of("c").len(), 0, "x only holds it");
    bench.run_for("a", "2026-11-30");
    bench.drain();
    assert_eq!(bench.states("c"), [Succeeded]);
    assert_eq!(bench.of("c")[0].edges[1].instance_id, Some(x));
    // The x of the same day comes later and starts nothing a second time.
    bench.run_for("x", "2026-11-30");
    bench.drain();
    assert_eq!(bench.states("c"), [Succeeded]);
}

#[test]
fn rule_1_a_task_that_has_only_edges_with_an_offset_is_made_with_its_upstreams_cycle() {
    let b = TaskSpec { depends_on: vec![behind("a", -1)], ..task("b") };
    let mut bench = Bench::new(vec![root("a"), b]);
    bench.run_for("a", "2026-11-29");
    bench.drain();
    assert_eq!(bench.states("b"), [Pending], "nothing of the 28th");
    bench.run_for("a", "2026-11-30");
    let found: Vec<_> =
        bench.of("b").iter().map(|i| (i.cycle.label().to_owned(), i.state)).collect();
    let day = |d: &str| d.to_owned();
    assert_eq!(found, [(day("2026-11-29"), Pending), (day("2026-11-30"), Running)]);
}

#[test]
fn rule_6_a_broken_edge_with_an_offset_heals_by_retry_and_by_a_new_run_of_that_cycle() {
    let c = TaskSpec { depends_on: vec![behind("a", 0), behind("x", -1)], ..task("c") };
    for by_retry in [true, false] {
        let mut bench = Bench::new(vec![root("a"), root("x"), c.clone()]);
        let x = bench.run_for("x", "2026-11-29");
        bench.exits(&x, 1);
        bench.run_for("a", "2026-11-30");
        bench.drain();
        let waiting = bench.of("c")[0].instance_id.clone();
        assert_eq!(bench.standing(&waiting), (Blocked, Some(Reason::UpstreamFailed)));
        if by_retry {
            bench.retry(&x).unwrap();
        } else {
            bench.run_for("x", "2026-11-29");
        }
        bench.drain();
        assert_eq!(bench.states("c"), [Succeeded], "by retry: {by_retry}");
    }
}

#[test]
fn rule_2_hours_under_a_day_and_days_under_hours() {
    let hourly = of_unit("h", CycleUnit::Hour);
    let daily = waits("d", vec![behind("h", -1)]);
    let of_hour = TaskSpec { depends_on: vec![behind("day", -1)], ..of_unit("g", CycleUnit::Hour) };
    let mut bench = Bench::new(vec![hourly, daily, root("day"), of_hour]);
    // The hours that end an hour before the day does: 23 of the day before to 22 of the day.
    bench.run_for("h", "2026-11-30T23");
    let d = bench.run_for("d", "2026-11-30");
    assert_eq!(bound(&bench, &d), None, "the last hour is of the next day's");
    bench.run_for("h", "2026-11-29T22");
    assert_eq!(bound(&bench, &d), None);
    let first = bench.run_for("h", "2026-11-29T23");
    assert_eq!(bound(&bench, &d), Some(first));
    bench.pass(1);
    let last = bench.run_for("h", "2026-11-30T22");
    let again = bench.run_for("d", "2026-11-30");
    assert_eq!(bound(&bench, &again), Some(last), "the newest of those that match");
    // An hour wants the day before its own.
    let g = bench.run_for("g", "2026-11-30T14");
    bench.run_for("day", "2026-11-30");
    assert_eq!(bound(&bench, &g), None);
    let yesterday = bench.run_for("day", "2026-11-29");
    assert_eq!(bound(&bench, &g), Some(yesterday));
}

#[test]
fn rule_2_a_day_takes_the_newest_hour_and_an_hourly_root_makes_one_a_wave() {
    let daily = TaskSpec { cycle: Some(CycleRule::DAY), ..after("d", &["h"]) };
    let mut bench = Bench::new(vec![of_unit("h", CycleUnit::Hour), daily]);
    bench.run_for("h", "2026-11-30T01");
    bench.pass(1);
    bench.run_for("h", "2026-11-30T02");
    bench.drain();
    assert_eq!(bench.states("d"), [Succeeded; 2]);
    assert!(bench.of("d").iter().all(|i| i.cycle.label() == "2026-11-30"));
}

/// The clocks of New York are put back at 02:00 on 2026-11-01: the hour from one to two happens
/// twice.
#[test]
fn rule_2_the_hour_before_is_the_one_that_passed_before() {
    let zone = Some("America/New_York".to_owned());
    let hourly = TaskSpec { timezone: zone.clone(), ..of_unit("h", CycleUnit::Hour) };
    let next = TaskSpec {
        timezone: zone,
        depends_on: vec![behind("h", -1)],
        ..of_unit("n", CycleUnit::Hour)
    };
    let mut bench = Bench::new(vec![hourly, next]);
    let after_both = bench.run_for("n", "2026-11-01T02");
    let second_pass = bench.run_for("n", "2026-11-01T01-05:00");
    let first = bench.run_for("h", "2026-11-01T01-04:00");
    assert_eq!(bound(&bench, &after_both), None);
    assert_eq!(bound(&bench, &second_pass), Some(first));
    let second = bench.run_for("h", "2026-11-01T01-05:00");
    assert_eq!(bound(&bench, &after_both), Some(second));
}

#[test]
fn rule_2_a_run_can_wait_for_the_day_before_its_own() {
    let g = TaskSpec { depends_on: vec![behind("f", 0), behind("day", -1)], ..task("g") };
    let mut bench = Bench::new(vec![on_event("f", "go"), root("day"), g]);
    bench.emit("go");
    bench.drain();
    assert_eq!(bench.states("g"), [Pending]);
    bench.run_for("day", "2026-11-29");
    bench.drain();
    assert_eq!(bench.states("g"), [Succeeded]);
}

#[test]
fn rule_7_an_empty_cycle_ends_the_edge_that_looks_for_it() {
    let nightly = TaskSpec { triggers: vec![cron("0 2 * * *")], ..task("a") };
    let mut bench = Bench::new(vec![nightly, waits("b", vec![behind("a", -1)])]);
    bench.pause(crate::model::record::Target::Task(id("a"))).unwrap();
    let (today, next) = (bench.run_for("b", "2026-11-30"), bench.run_for("b", "2026-12-01"));
    bench.pass(2 * HOUR);
    assert_eq!(bench.instance(&today).state, Pending);
    assert_eq!(bench.standing(&next), (Blocked, Some(Reason::UpstreamSkipped)));
}

#[test]
fn rule_9_an_edge_that_gets_another_offset_is_another_edge() {
    let mut bench = Bench::new(vec![root("a"), waits("b", vec![behind("a", 0)])]);
    let today = bench.run_for("a", "2026-11-30");
    let b = bench.run_for("b", "2026-11-30");
    assert_eq!(bound(&bench, &b), Some(today));
    bench.specs(vec![root("a"), waits("b", vec![behind("a", -1)])]);
    assert_eq!(bound(&bench, &b), None);
    let yesterday = bench.run_for("a", "2026-11-29");
    assert_eq!(bound(&bench, &b), Some(yesterday));
}

fn refusals(bench: &mut Bench) -> Vec<String> {
    match bench.ask(Request::Status).0 {
        Ok(Reply::Status(status)) => {
            status.spec_errors.into_iter().map(|error| error.message).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn rule_14_a_run_has_none_before_it() {
    let lagging = |name: &str, up: &str| waits(name, vec![behind(up, -1)]);
    let mut bench = Bench::new(vec![on_event("f", "go"), lagging("b", "f")]);
    let told = refusals(&mut bench);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("lets b.v1 wait with a cycleOffset for f.v1"), "{}", told[0]);
    assert!(bench.try_submit("b", crate::model::request::SubmitBody::default()).is_err());
    // The upstream changes: that is refused and its last good revision stays.
    let mut bench = Bench::new(vec![root("f"), lagging("b", "f")]);
    assert_eq!(refusals(&mut bench), [""; 0]);
    bench.specs(vec![on_event("f", "go"), lagging("b", "f")]);
    assert_eq!(refusals(&mut bench).len(), 1);
    let b = bench.run_for("b", "2026-11-30");
    bench.run_for("f", "2026-11-29");
    bench.drain();
    assert_eq!(bench.instance(&b).state, Succeeded);
}

#[test]
fn rule_14_a_cycle_that_is_no_day_is_no_date_of_a_derived_task_either() {
    use crate::model::params::{ParamSchema, ParamType};
    let dated = |spec: TaskSpec| {
        let schema = ParamSchema {
            kind: ParamType::Date,
            required: false,
            default: Some("{cycle}".into()),
            ..super::build::needed_text()
        };
        TaskSpec { runtime_params: [("day".to_owned(), schema)].into_iter().collect(), ..spec }
    };
    let mut bench = Bench::new(vec![root("a"), dated(after("b", &["a"]))]);
    assert_eq!(refusals(&mut bench), [""; 0]);
    bench.run("a");
    bench.drain();
    assert_eq!(bench.of("b")[0].runtime_params["day"], "2026-11-30");
    let mut bench = Bench::new(vec![on_event("f", "go"), dated(after("b", &["f"]))]);
    let told = refusals(&mut bench);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("the date day of b.v1") && told[0].contains("{date}"), "{}", told[0]);
}

#[test]
fn rule_14_a_change_that_makes_a_derived_upstream_a_run_is_refused() {
    let b = || waits("b", vec![behind("c", -1)]);
    let daily = TaskSpec { cycle: Some(CycleRule::DAY), ..after("c", &["f"]) };
    let mut bench = Bench::new(vec![on_event("f", "go"), daily, b()]);
    assert_eq!(refusals(&mut bench), [""; 0]);
    bench.specs(vec![on_event("f", "go"), after("c", &["f"]), b()]);
    assert_eq!(refusals(&mut bench).len(), 1);
    let waiting = bench.run_for("b", "2026-12-01");
    bench.emit("go");
    bench.drain();
    assert_eq!(bench.instance(&waiting).state, Succeeded);
}

#[test]
fn rule_6_a_skipped_cycle_before_skips_the_strong_dependent() {
    let never = crate::model::condition::Condition::parse("false == true").unwrap();
    let gate = TaskSpec {
        depends_on: vec![Dependency { when: Some(never), ..behind("up", 0) }],
        ..task("g")
    };
    let mut bench = Bench::new(vec![root("up"), gate, waits("b", vec![behind("g", -1)])]);
    bench.run_for("up", "2026-11-29");
    bench.drain();
    assert_eq!(bench.states("g"), [Cancelled]);
    let b = bench.run_for("b", "2026-11-30");
    assert_eq!(bench.standing(&b), (Cancelled, Some(Reason::UpstreamSkipped)));
}
