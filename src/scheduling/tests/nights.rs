//! docs/waves.md at work: nights as users have them, rule by rule known to the other tests.

use std::time::Duration;

use super::bench::Bench;
use super::build::{after, cron, edge, on, retry, root, task};
use crate::model::command::Command;
use crate::model::condition::Condition;
use crate::model::cron::CronExpr;
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::event::Event;
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Failed, Pending, Running, Succeeded,
};
use crate::model::instance::Reason;
use crate::model::record::FireOutcome;
use crate::model::spec::{
    CronTrigger, Dependency, FirePolicy, OnDependencyTimeout, Overlap, Strength, TaskSpec,
    TriggerKind,
};
use crate::model::time::Timestamp;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn timed(name: &str, expr: &str) -> TaskSpec {
    TaskSpec { triggers: vec![cron(expr)], ..task(name) }
}

fn labels(bench: &Bench, name: &str) -> Vec<String> {
    bench.of(name).iter().map(|i| i.cycle.label().to_owned()).collect()
}

/// Everything ends well whenever it starts, for so long.
fn live(bench: &mut Bench, ms: i64) {
    let end = bench.now.as_millis() + ms;
    while let Some(due) = bench.engine.next_deadline().filter(|due| due.as_millis() <= end) {
        bench.now = bench.now.max(due);
        bench.event(Event::Tick);
        bench.drain();
    }
    bench.now = Timestamp::from_millis(end);
}

#[test]
fn a_business_date_of_yesterday_meets_one_of_yesterday() {
    // Both run after midnight for the day before; the report of the day itself waits for neither.
    let before = |name: &str, expr: &str| TaskSpec {
        cycle: Some(CycleRule { unit: CycleUnit::Day, offset: -1 }),
        ..timed(name, expr)
    };
    let report = TaskSpec {
        depends_on: vec![edge("close", Strength::Strong)],
        ..before("report", "0 3 * * *")
    };
    let mut bench = Bench::new(vec![before("close", "0 2 * * *"), report]);
    live(&mut bench, DAY);
    assert_eq!(
        (labels(&bench, "close"), labels(&bench, "report")),
        (vec!["2026-11-29".to_owned()], vec!["2026-11-29".to_owned()])
    );
    assert_eq!(bench.states("report"), [Succeeded]);
}

#[test]
fn a_daily_task_after_an_hourly_one_takes_the_newest_of_its_day() {
    let hourly = TaskSpec {
        cycle: Some(CycleRule { unit: CycleUnit::Hour, offset: 0 }),
        ..timed("load", "0 * * * *")
    };
    let daily = TaskSpec {
        depends_on: vec![edge("load", Strength::Strong)],
        ..timed("sum", "30 23 * * *")
    };
    let mut bench = Bench::new(vec![hourly, daily]);
    live(&mut bench, DAY - 1);
    assert_eq!((bench.of("load").len(), bench.states("sum")), (23, vec![Succeeded]));
    let last = bench.of("load")[22].instance_id.clone();
    assert_eq!(bench.of("load")[22].cycle.label(), "2026-11-30T23");
    assert_eq!(bench.of("sum")[0].edges[0].instance_id, Some(last));
}

#[test]
fn two_roots_and_a_fan_in_run_once_a_night() {
    let fan = after("settle", &["extract", "profile"]);
    let specs = vec![timed("extract", "0 1 * * *"), timed("profile", "0 2 * * *"), fan];
    let mut bench = Bench::new(specs);
    live(&mut bench, 90 * MINUTE);
    assert_eq!(bench.states("settle"), [Pending]);
    live(&mut bench, 3 * DAY - 90 * MINUTE);
    assert_eq!(bench.states("settle"), [Succeeded; 3]);
    assert_eq!(labels(&bench, "settle"), ["2026-11-30", "2026-12-01", "2026-12-02"]);
}

#[test]
fn a_re_run_of_one_parent_runs_the_fan_in_again_with_the_others_newest() {
    let fan = after("settle", &["extract", "profile"]);
    let mut bench = Bench::new(vec![root("extract"), root("profile"), fan]);
    bench.run("extract");
    let profile = bench.run("profile");
    bench.drain();
    bench.pass(1);
    let again = bench.run("extract");
    bench.drain();
    assert_eq!(bench.states("settle"), [Succeeded; 2]);
    let edges: Vec<Option<InstanceId>> =
        bench.of("settle")[1].edges.iter().map(|e| e.instance_id.clone()).collect();
    assert_eq!(edges, [Some(again), Some(profile)]);
}

#[test]
fn a_diamond_over_several_waves_keeps_each_wave_together() {
    let specs = || vec![root("a"), after("b", &["a"]), after("c", &["a"]), after("d", &["b", "c"])];
    let mut bench = Bench::new(specs());
    for _ in 0..5 {
        bench.pass(1);
        bench.run("a");
    }
    bench.drain();
    for n in 0..5 {
        let root = bench.of("a")[n].instance_id.clone();
        for name in ["b", "c", "d"] {
            assert_eq!((bench.of(name)[n].state, &bench.of(name)[n].root), (Succeeded, &root));
        }
        let (b, c) = (bench.of("b")[n].instance_id.clone(), bench.of("c")[n].instance_id.clone());
        let edges: Vec<_> = bench.of("d")[n].edges.iter().map(|e| e.instance_id.clone()).collect();
        assert_eq!(edges, [Some(b), Some(c)]);
    }
}

#[test]
fn a_fire_that_is_skipped_by_overlap_holds_up_its_own_night_only() {
    let mut extract = timed("extract", "0 1 * * *");
    extract.triggers = vec![on(TriggerKind::Cron(CronTrigger {
        expr: CronExpr::parse("0 1 * * *").unwrap(),
        timezone: None,
        policy: FirePolicy { overlap: Overlap::Skip, ..FirePolicy::default() },
    }))];
    let strict = TaskSpec {
        depends_on: vec![edge("extract", Strength::Strong)],
        ..timed("strict", "0 2 * * *")
    };
    let lenient = TaskSpec {
        depends_on: vec![edge("extract", Strength::Weak)],
        ..timed("lenient", "0 2 * * *")
    };
    let mut bench = Bench::new(vec![extract, strict, lenient]);
    // The first night's extract takes longer than a day.
    bench.pass(DAY + 3 * HOUR);
    assert_eq!(
        bench.fires("extract"),
        [(FireOutcome::Instance, 1), (FireOutcome::SkippedOverlap, 1)]
    );
    assert_eq!(bench.states("strict"), [Pending, Blocked]);
    let second = bench.of("strict")[1].instance_id.clone();
    assert_eq!(bench.standing(&second), (Blocked, Some(Reason::UpstreamSkipped)));
    assert_eq!(bench.states("lenient"), [Pending, Running]);
    bench.drain();
    assert_eq!(bench.states("strict"), [Succeeded, Blocked]);
    // A person runs the second night after all.
    bench.run_for("extract", "2026-12-01");
    bench.drain();
    assert_eq!(bench.states("strict"), [Succeeded, Succeeded]);
    live(&mut bench, DAY);
    assert_eq!(bench.states("strict"), [Succeeded; 3]);
}

#[test]
fn a_timeout_of_waiting_cancels_one_and_runs_the_other_degraded() {
    let patient = |name: &str, way| TaskSpec {
        depends_on: vec![edge("extract", Strength::Strong)],
        dependency_timeout: Some(Duration::from_secs(3600)),
        on_dependency_timeout: way,
        ..timed(name, "0 2 * * *")
    };
    let mut bench = Bench::new(vec![
        root("extract"),
        patient("strict", OnDependencyTimeout::Cancel),
        patient("lenient", OnDependencyTimeout::RunDegraded),
    ]);
    bench.pass(3 * HOUR - 1);
    assert_eq!((bench.states("strict"), bench.states("lenient")), (vec![Pending], vec![Pending]));
    bench.now = Timestamp::from_millis(bench.now.as_millis() + 1);
    let commands = bench.event(Event::Tick);
    let strict = bench.of("strict")[0].instance_id.clone();
    assert_eq!(bench.standing(&strict), (Cancelled, Some(Reason::DependencyTimeout)));
    assert_eq!((bench.states("lenient"), bench.of("lenient")[0].degraded), (vec![Running], true));
    let told = commands.iter().find_map(|command| {
        let Command::Run(dispatch) = command else { return None };
        Some(dispatch.deps.to_value()["extract.v1"]["satisfied"].clone())
    });
    assert_eq!(told, Some(false.into()));
}

fn gated(name: &str, up: &str, strength: Strength, when: &str) -> TaskSpec {
    let when = Some(Condition::parse(when).unwrap());
    TaskSpec { depends_on: vec![Dependency { when, ..edge(up, strength) }], ..task(name) }
}

#[test]
fn rule_6_a_retry_to_come_neither_blocks_nor_skips_nor_is_it_an_end() {
    let flaky = TaskSpec { retry: retry(2, Duration::from_secs(10)), ..root("a") };
    let soft = TaskSpec { depends_on: vec![edge("a", Strength::Weak)], ..task("soft") };
    let asks = gated("asks", "a", Strength::Weak, "state == 'FAILED'");
    let mut bench = Bench::new(vec![flaky, after("hard", &["a"]), soft, asks]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    assert_eq!(bench.states("a"), [Failed]);
    for name in ["hard", "soft", "asks"] {
        assert_eq!(bench.states(name), [Pending], "{name}");
    }
    bench.pass(10_000);
    bench.exits(&a, 1);
    let states = (bench.states("hard"), bench.states("soft"), bench.states("asks"));
    assert_eq!(states, (vec![Blocked], vec![Running], vec![Running]));
}

#[test]
fn rule_6_a_skip_goes_down_a_chain_of_strong_edges_and_ends_at_a_weak_one() {
    let soft = TaskSpec { depends_on: vec![edge("d", Strength::Weak)], ..task("e") };
    let mut bench = Bench::new(vec![
        root("a"),
        gated("b", "a", Strength::Strong, "false == true"),
        after("c", &["b"]),
        after("d", &["c"]),
        soft,
        after("f", &["e"]),
    ]);
    bench.run("a");
    bench.drain();
    let reasons: Vec<_> = ["b", "c", "d"].map(|n| bench.of(n)[0].reason).to_vec();
    let skipped = Some(Reason::UpstreamSkipped);
    assert_eq!(reasons, [Some(Reason::ConditionFalse), skipped, skipped]);
    assert_eq!((bench.states("e"), bench.states("f")), (vec![Succeeded], vec![Succeeded]));
}

#[test]
fn rule_6_a_condition_without_an_answer_heals_when_the_upstream_runs_again() {
    let mut bench =
        Bench::new(vec![root("a"), gated("b", "a", Strength::Strong, "output.rows > 0")]);
    bench.run("a");
    bench.drain();
    let b = bench.of("b")[0].instance_id.clone();
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::ConditionError)));
    bench.pass(1);
    let again = bench.run("a");
    assert_eq!(bench.standing(&b), (Pending, Some(Reason::WaitingDependency)));
    let mut done = bench.end(&again, crate::model::event::Outcome::Exited { code: 0 }, false);
    done.result.output = Some(serde_json::json!({"rows": 2}));
    bench.report(crate::model::event::Report::Finished(Box::new(done)));
    assert_eq!(bench.states("b"), [Running], "healed, not doubled");
}

#[test]
fn rule_6_of_a_triggered_task_only_the_edge_without_an_answer_takes_the_next() {
    let mut b = gated("b", "a", Strength::Strong, "output.rows > 0");
    b.depends_on.push(edge("x", Strength::Strong));
    b.depends_on.push(edge("y", Strength::Strong));
    let b = TaskSpec { triggers: root("b").triggers, cycle: root("b").cycle, ..b };
    let mut bench = Bench::new(vec![root("a"), root("x"), root("y"), b]);
    bench.run("a");
    let x = bench.run("x");
    bench.drain();
    let b = bench.run("b");
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::ConditionError)));
    bench.pass(1);
    bench.run("x");
    assert_eq!(bench.instance(&b).edges[1].instance_id, Some(x), "no other edge is bound anew");
    let again = bench.run("a");
    assert_eq!(bench.instance(&b).edges[0].instance_id, Some(again));
    assert_eq!(bench.instance(&b).state, Pending);
}

#[test]
fn rule_6_cancelled_by_a_person_blocks_and_skipped_by_a_condition_skips() {
    let mut bench = Bench::new(vec![
        root("a"),
        gated("b", "a", Strength::Strong, "false == true"),
        after("of_skipped", &["b"]),
        after("x", &["a"]),
        after("of_cancelled", &["x"]),
        TaskSpec { depends_on: vec![edge("x", Strength::Weak)], ..task("soft") },
    ]);
    bench.run("a");
    let x = bench.of("x")[0].instance_id.clone();
    bench.cancel(&x).0.unwrap();
    bench.drain();
    let standing = |name: &str| bench.standing(&bench.of(name)[0].instance_id.clone());
    assert_eq!(standing("of_skipped"), (Cancelled, Some(Reason::UpstreamSkipped)));
    assert_eq!(standing("of_cancelled"), (Blocked, Some(Reason::UpstreamFailed)));
    assert_eq!(standing("soft"), (Succeeded, None));
    // A new run of what was cancelled repairs it.
    bench.run("x");
    bench.drain();
    assert_eq!(bench.states("of_cancelled"), [Succeeded]);
}

/// Whichever edge went wrong first: one that already failed hides no other that has no answer.
#[test]
fn rule_6_an_edge_without_an_answer_takes_the_next_though_another_blocks_already() {
    let b = TaskSpec {
        depends_on: vec![
            edge("x", Strength::Strong),
            gated("b", "a", Strength::Strong, "output.rows > 0").depends_on[0].clone(),
        ],
        triggers: root("b").triggers,
        cycle: root("b").cycle,
        ..task("b")
    };
    let mut bench = Bench::new(vec![root("a"), root("x"), b]);
    let x = bench.run("x");
    bench.run("a");
    let a = bench.of("a")[0].instance_id.clone();
    let b = bench.run("b");
    bench.exits(&x, 1);
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::UpstreamFailed)));
    bench.exits(&a, 0);
    bench.pass(1);
    let again = bench.run("a");
    assert_eq!(bench.instance(&b).edges[1].instance_id, Some(again));
}
