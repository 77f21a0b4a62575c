//! docs/waves.md, rule 16: a version takes its share of the cycles of the next lower one.

use std::collections::BTreeSet;

use super::bench::Bench;
use super::build::{edge, every, id, on, on_event, task};
use crate::model::cron::CronExpr;
use crate::model::cycle::CycleRule;
use crate::model::id::TaskId;
use crate::model::instance::InstanceState::{Pending, Succeeded};
use crate::model::record::FireOutcome;
use crate::model::record::{Record, Target};
use crate::model::request::{Reply, Request, SubmitBody};
use crate::model::spec::{
    CronTrigger, Dependency, FirePolicy, Misfire, Overlap, Strength, TaskSpec, TriggerKind,
};
use crate::model::time::Timestamp;

fn version(number: u32) -> TaskId {
    TaskId::parse(&format!("a.v{number}")).expect("a task id")
}

/// A version of task A.
fn a(number: u32, rollout: Option<u32>, like: TaskSpec) -> TaskSpec {
    TaskSpec { task_id: version(number), version: number, rollout, ..like }
}

/// Fires every minute, each minute a cycle.
fn minutely() -> TaskSpec {
    let unit = CycleRule { unit: crate::model::cycle::CycleUnit::Minute, offset: 0 };
    let triggers = vec![every(60, Misfire::RunAll, Overlap::Allow)];
    TaskSpec { triggers, cycle: Some(unit), max_concurrent: None, ..task("a") }
}

/// A task that waits for one version of A.
fn below(name: &str, number: u32) -> TaskSpec {
    let depends_on = vec![Dependency { task_id: version(number), ..edge("a", Strength::Strong) }];
    TaskSpec { depends_on, ..task(name) }
}

/// Cycles of a version's instances.
fn cycles(bench: &Bench, number: u32) -> BTreeSet<String> {
    let of = version(number);
    bench.instances().filter(|i| i.task_id == of).map(|i| i.cycle.label().to_owned()).collect()
}

const MINUTES: i64 = 400;

#[test]
fn rule_16_the_cycles_are_shared_by_a_stable_choice_and_each_fire_has_one_row() {
    let specs = || vec![a(1, None, minutely()), a(2, Some(25), minutely())];
    let mut bench = Bench::new(specs());
    bench.pass(MINUTES * 60_000);
    let (low, high) = (cycles(&bench, 1), cycles(&bench, 2));
    assert_eq!(low.len() + high.len(), 400);
    assert!(low.is_disjoint(&high));
    // 100 expected; five standard deviations (8.7 each) either way.
    assert!((56..=144).contains(&high.len()), "{} of 400", high.len());
    let of = |outcome| bench.fires("a").iter().filter(|(o, _)| *o == outcome).count();
    assert_eq!(of(FireOutcome::Instance), low.len());
    assert_eq!(of(FireOutcome::RolledOutElsewhere), high.len());
    let counted = bench.log.iter().filter(|r| matches!(r.what, Record::Fire(_))).count();
    assert_eq!(counted, 400, "the higher version's own trigger rests");
    // Another daemon, the same choice.
    let mut again = Bench::new(specs());
    again.pass(100 * 60_000);
    again.restart(60_000, specs());
    again.pass((MINUTES - 101) * 60_000);
    assert_eq!((cycles(&again, 1), cycles(&again, 2)), (low, high));
}

#[test]
fn rule_16_a_whole_share_takes_all_and_a_third_version_takes_from_the_second() {
    let mut bench = Bench::new(vec![
        a(1, None, minutely()),
        a(2, Some(100), minutely()),
        a(4, Some(50), minutely()),
    ]);
    bench.pass(MINUTES * 60_000);
    assert_eq!(cycles(&bench, 1).len(), 0);
    let (second, third) = (cycles(&bench, 2).len(), cycles(&bench, 4).len());
    assert_eq!(second + third, 400);
    // 200 expected; five standard deviations (10 each) either way.
    assert!((150..=250).contains(&third), "{third} of 400");
}

#[test]
fn rule_16_without_a_rollout_versions_are_independent() {
    let mut bench = Bench::new(vec![a(1, None, minutely()), a(2, None, minutely())]);
    bench.pass(60_000);
    assert_eq!((cycles(&bench, 1).len(), cycles(&bench, 2).len()), (1, 1));
}

#[test]
fn rule_16_a_disabled_version_takes_nothing_and_lets_nothing_be_taken() {
    let off = TaskSpec { enabled: false, ..minutely() };
    let mut bench = Bench::new(vec![a(1, None, minutely()), a(2, Some(100), off.clone())]);
    bench.pass(60_000);
    assert_eq!((cycles(&bench, 1).len(), cycles(&bench, 2).len()), (1, 0));
    let mut bench = Bench::new(vec![a(1, None, off), a(2, Some(10), minutely())]);
    bench.pass(60_000);
    assert_eq!((cycles(&bench, 1).len(), cycles(&bench, 2).len()), (0, 1));
}

#[test]
fn rule_16_an_edge_on_either_version_is_an_edge_on_the_one_that_took_the_cycle() {
    for taken in [1, 100] {
        let mut bench = Bench::new(vec![
            a(1, None, on_event("a", "go")),
            a(2, Some(taken), on_event("a", "go")),
            below("low", 1),
            below("high", 2),
        ]);
        bench.emit("go");
        let made: Vec<TaskId> = bench
            .instances()
            .filter(|i| i.task_id.base() == "a")
            .map(|i| i.task_id.clone())
            .collect();
        assert_eq!(made.len(), 1);
        if taken == 100 {
            assert_eq!(made, [version(2)]);
        }
        assert_eq!((bench.states("low"), bench.states("high")), (vec![Pending], vec![Pending]));
        bench.drain();
        assert_eq!((bench.states("low"), bench.states("high")), (vec![Succeeded], vec![Succeeded]));
    }
}

#[test]
fn rule_16_a_derived_version_takes_its_share_of_the_waves() {
    let from_root = TaskSpec { depends_on: vec![edge("root", Strength::Strong)], ..task("a") };
    let mut bench = Bench::new(vec![
        on_event("root", "go"),
        a(1, None, from_root.clone()),
        a(2, Some(100), from_root),
        below("low", 1),
    ]);
    bench.emit("go");
    bench.drain();
    assert_eq!((cycles(&bench, 1).len(), cycles(&bench, 2).len()), (0, 1));
    assert_eq!(bench.states("low"), [Succeeded]);
}

#[test]
fn rule_16_a_submission_is_never_rerouted() {
    let mut bench =
        Bench::new(vec![a(1, None, minutely()), a(2, Some(100), minutely()), below("low", 2)]);
    let run = bench.submit("a", SubmitBody::default());
    assert_eq!(bench.instance(&run).task_id, id("a"));
    assert_eq!(bench.states("low"), [Pending], "whoever depends on either waits for it");
    bench.drain();
    assert_eq!(bench.states("low"), [Succeeded]);
}

#[test]
fn rule_16_a_paused_version_pauses_its_cycles_only() {
    let mut bench = Bench::new(vec![a(1, None, minutely()), a(2, Some(100), minutely())]);
    bench.pause(Target::Task(version(2))).unwrap();
    bench.pass(60_000);
    assert_eq!(bench.fires("a"), [(FireOutcome::Paused, 1)]);
    assert_eq!((cycles(&bench, 1).len(), cycles(&bench, 2).len()), (0, 0));
}

#[test]
fn rule_16_when_the_lower_version_goes_the_higher_ones_own_triggers_count_from_then_on() {
    let mut bench = Bench::new(vec![a(1, None, minutely()), a(2, Some(1), minutely())]);
    bench.pass(90_000);
    bench.specs(vec![a(2, Some(1), minutely())]);
    bench.pass(60_000);
    // The first minute was one version's, the second is the higher one's own.
    assert_eq!(cycles(&bench, 1).len() + cycles(&bench, 2).len(), 2);
    assert!(!cycles(&bench, 2).is_empty());
    // And back: its own trigger rests again.
    bench.specs(vec![a(1, None, minutely()), a(2, Some(1), minutely())]);
    bench.pass(60_000);
    let fires = bench.log.iter().filter(|r| matches!(r.what, Record::Fire(_))).count();
    assert_eq!(fires, 3);
}

#[test]
fn rule_16_a_version_that_depends_on_what_hangs_on_the_other_closes_a_cycle() {
    let on_low = TaskSpec { depends_on: vec![edge("low", Strength::Strong)], ..task("a") };
    let mut bench = Bench::new(vec![a(1, None, minutely()), below("low", 1)]);
    bench.specs(vec![a(1, None, minutely()), below("low", 1), a(2, Some(50), on_low)]);
    let refused = bench.log.iter().filter(|r| matches!(r.what, Record::DefinitionRefused(_)));
    assert_eq!(refused.count(), 1);
}

#[test]
fn rule_16_coming_fires_say_which_version_takes_them() {
    let mut bench = Bench::new(vec![a(1, None, minutely()), a(2, Some(25), minutely())]);
    let mut next = |task: Option<TaskId>| {
        let asked = Request::Next { task, from: None, count: 40 };
        match bench.ask(asked).0 {
            Ok(Reply::Next(fires)) => fires,
            other => panic!("no fires: {other:?}"),
        }
    };
    let all = next(None);
    assert_eq!(all.len(), 40, "the higher version's own trigger rests");
    let low = next(Some(version(1)));
    let taken: Vec<_> = low.iter().filter(|fire| fire.note.is_some()).map(|fire| fire.at).collect();
    assert!(low.iter().all(|f| f.note.as_ref().is_none_or(|note| note.contains("a.v2"))));
    let high = next(Some(version(2)));
    assert_eq!(high.len(), 40);
    assert!(high.iter().all(|fire| fire.task_id == version(2)));
    assert!(high.iter().map(|fire| fire.at).collect::<Vec<_>>().starts_with(&taken));
    // What was said comes true.
    bench.pass(40 * 60_000);
    assert_eq!(cycles(&bench, 2).len(), taken.len());
    let Ok(Reply::Task(view)) = bench.ask(Request::Task(version(2))).0 else { panic!("no task") };
    assert_eq!(view.schedule, "25 % of the cycles of a.v1");
    assert_eq!(view.next_fire_time, None);
}

/// Berlin's clock jumps from 02:00 to 03:00 on 2027-03-28.
#[test]
fn rule_16_coming_fires_say_it_beside_what_the_clock_does() {
    let trigger = CronTrigger {
        expr: CronExpr::parse("*/30 2 * * *").unwrap(),
        timezone: Some("Europe/Berlin".to_owned()),
        policy: FirePolicy::default(),
    };
    let nightly =
        || TaskSpec { triggers: vec![on(TriggerKind::Cron(trigger.clone()))], ..task("a") };
    let mut bench = Bench::new(vec![a(1, None, nightly()), a(2, Some(100), nightly())]);
    let from = Timestamp::parse("2027-03-27T12:00:00Z");
    let asked = Request::Next { task: Some(version(1)), from, count: 2 };
    let Ok(Reply::Next(fires)) = bench.ask(asked).0 else { panic!("no fires") };
    let notes: Vec<&str> = fires.iter().filter_map(|fire| fire.note.as_deref()).collect();
    let taken = "a.v2 takes this cycle by its rollout";
    let dropped = format!("02:00, 02:30 do not exist on 2027-03-28: not fired; {taken}");
    assert_eq!(notes, [dropped.as_str(), taken]);
}

fn refused(bench: &Bench) -> usize {
    bench.log.iter().filter(|r| matches!(r.what, Record::DefinitionRefused(_))).count()
}

/// A set is sound or put back, also where the fault leads only through versions that did not
/// change: the graph is never left as it was before the last good one.
#[test]
fn rule_16_a_version_that_makes_others_share_cycles_they_cannot_is_put_back() {
    // V2 depends on V1: as long as V1 is disabled that is an edge like any other.
    let on_low = TaskSpec { depends_on: vec![edge("a", Strength::Strong)], ..task("a") };
    let off = TaskSpec { enabled: false, ..task("a") };
    let v2 = || a(2, Some(10), on_low.clone());
    let mut bench = Bench::new(vec![a(1, None, off), v2()]);
    bench.specs(vec![a(1, None, task("a")), v2()]);
    assert_eq!(refused(&bench), 1);
    // What comes later is judged by a graph that is in order.
    let ring = [super::build::after("x", &["y"]), super::build::after("y", &["x"])];
    let off = TaskSpec { enabled: false, ..task("a") };
    bench.specs(vec![a(1, None, off), v2(), ring[0].clone(), ring[1].clone()]);
    assert_eq!(refused(&bench), 3);
}

#[test]
fn rule_16_where_nobody_can_be_put_back_the_versions_share_nothing_and_status_says_so() {
    let (v1, v2) = (a(1, None, on_event("a", "one")), a(2, None, on_event("a", "two")));
    let on_d = TaskSpec { depends_on: vec![edge("d", Strength::Strong)], ..task("a") };
    let rest = || vec![v1.clone(), below("d", 1), a(3, Some(50), on_d.clone())];
    let mut bench = Bench::new(rest().into_iter().chain([v2.clone()]).collect());
    assert_eq!(refused(&bench), 0);
    // Without V2, V3 would share the cycles of V1, which D waits for, which V3 waits for.
    bench.specs(rest());
    let errors = |bench: &mut Bench| match bench.ask(Request::Status).0 {
        Ok(Reply::Status(status)) => status.spec_errors,
        other => panic!("no status: {other:?}"),
    };
    let told = errors(&mut bench);
    assert!(told.len() == 1 && told[0].path == "rollout", "{told:?}");
    bench.emit("one");
    bench.drain();
    assert_eq!((bench.states("d"), cycles(&bench, 3).len()), (vec![Succeeded], 1));
    // So it is after a restart, and V2 mends it.
    bench.restart(1000, rest());
    assert_eq!(errors(&mut bench).len(), 1);
    bench.specs(rest().into_iter().chain([v2]).collect());
    assert_eq!(errors(&mut bench), []);
}

/// Whichever version takes the cycle is made after all that it waits for.
#[test]
fn rule_16_the_version_that_takes_a_wave_waits_for_the_upstreams_of_that_wave() {
    let of = |upstream: &str| TaskSpec {
        depends_on: vec![edge(upstream, Strength::Strong)],
        cycle: Some(CycleRule::DAY),
        ..task("a")
    };
    let root = TaskSpec { cycle: Some(CycleRule::DAY), ..on_event("r", "go") };
    let x = super::build::after("x", &["r"]);
    let mut bench = Bench::new(vec![root, a(1, None, of("r")), a(2, Some(100), of("x")), x]);
    bench.emit("go");
    bench.drain();
    bench.pass(1000);
    bench.emit("go");
    let second = bench.instances().filter(|i| i.task_id == version(2)).last().unwrap().clone();
    assert_eq!(second.state, Pending, "X of this wave has not run yet");
    let x = bench.of("x").last().unwrap().instance_id.clone();
    assert_eq!(second.edges[0].instance_id, Some(x));
}
