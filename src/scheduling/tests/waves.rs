//! docs/waves.md: a test per rule, its number in the name.

use super::bench::Bench;
use super::build::{after, edge, on_event, root, task};
use crate::model::instance::InstanceState::{Blocked, Cancelled, Pending, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::params::{ParamSchema, ParamType};
use crate::model::record::FireOutcome;
use crate::model::request::{Reply, SubmitBody};
use crate::model::spec::{Strength, TaskSpec};

fn diamond() -> Bench {
    Bench::new(vec![
        root("a"),
        after("b", &["a"]),
        after("c", &["a"]),
        after("d", &["a", "b", "c"]),
    ])
}

#[test]
fn rule_1_a_root_makes_its_whole_wave_pending_at_once() {
    let mut bench = diamond();
    bench.run_for("a", "2026-11-29");
    for name in ["b", "c", "d"] {
        assert_eq!(bench.states(name), [Pending], "{name}");
        assert_eq!(bench.of(name)[0].cycle.label(), "2026-11-29");
        assert_eq!(bench.of(name)[0].root, bench.of("a")[0].instance_id);
    }
    for _ in 0..4 {
        bench.pass(1);
        bench.run("a");
    }
    bench.drain();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(bench.states(name), [Succeeded; 5], "{name}");
    }
    bench.run("b");
    bench.drain();
    assert_eq!(bench.states("d"), [Succeeded; 6]);
}

#[test]
fn rule_1_event_pipelines_stay_apart() {
    let mut bench = Bench::new(vec![on_event("f", "go"), after("g", &["f"])]);
    let bad = bench.emit("go")[0].clone();
    bench.exits(&bad, 1);
    bench.emit("go");
    bench.emit("go");
    bench.drain();
    assert_eq!(bench.states("g"), [Blocked, Succeeded, Succeeded]);
}

#[test]
fn rule_1_a_daily_side_input_starts_no_run_and_holds_each() {
    let mut bench = Bench::new(vec![on_event("f", "go"), root("x"), after("g", &["f", "x"])]);
    bench.emit("go");
    bench.emit("go");
    bench.drain();
    assert_eq!(bench.states("g"), [Pending; 2]);
    bench.run("x");
    bench.drain();
    bench.emit("go");
    bench.drain();
    assert_eq!(bench.states("g"), [Succeeded; 3]);
}

#[test]
fn rule_2_edges_out_of_the_wave_bind_to_the_newest_match_used_before_or_not() {
    let mut bench = Bench::new(vec![root("a"), root("x"), after("c", &["a", "x"])]);
    bench.run("x");
    bench.pass(1);
    bench.run("a");
    bench.drain();
    bench.pass(1);
    bench.run("a");
    bench.drain();
    assert_eq!(bench.states("c"), [Succeeded; 2]);
    assert_eq!(bench.of("c")[0].edges[1], bench.of("c")[1].edges[1]);
    assert_eq!(bench.states("x").len(), 1);
}

#[test]
fn rule_2_yesterdays_leftover_never_mixes_with_today() {
    let mut bench = Bench::new(vec![root("a"), root("x"), after("c", &["a", "x"])]);
    bench.run_for("a", "2026-11-29");
    bench.run("a");
    bench.run("x");
    bench.drain();
    let found: Vec<_> =
        bench.of("c").iter().map(|i| (i.cycle.label().to_owned(), i.state)).collect();
    let day = |d: &str| d.to_owned();
    assert_eq!(found, [(day("2026-11-29"), Pending), (day("2026-11-30"), Succeeded)]);
}

#[test]
fn rule_3_two_roots_meet_in_one_fan_in() {
    let mut bench = Bench::new(vec![root("a"), root("x"), after("c", &["a", "x"])]);
    bench.run("x");
    bench.drain();
    assert_eq!(bench.states("c"), [Pending]);
    bench.run("a");
    bench.drain();
    assert_eq!(bench.states("c"), [Succeeded]);
}

#[test]
fn rule_3_a_re_run_repairs_the_whole_blocked_chain_once() {
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"]), after("e", &["b"])]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    assert_eq!((bench.states("b"), bench.states("e")), (vec![Blocked], vec![Pending]));
    bench.pass(1);
    bench.run("a");
    bench.drain();
    assert_eq!((bench.states("b"), bench.states("e")), (vec![Succeeded], vec![Succeeded]));
}

#[test]
fn rule_3_two_submissions_that_wait_for_one_upstream_both_get_it() {
    let mut bench = Bench::new(vec![root("a"), after("c", &["a"])]);
    bench.run("c");
    bench.run("c");
    bench.run("a");
    bench.drain();
    assert_eq!(bench.states("c"), [Succeeded; 2]);
}

#[test]
fn rule_4_a_triggered_task_binds_when_made_or_to_the_next_that_appears() {
    let both = || {
        let mut b = root("b");
        b.depends_on = vec![edge("a", Strength::Strong)];
        vec![root("a"), b]
    };
    let mut bench = Bench::new(both());
    bench.run("a");
    bench.pass(1);
    let second = bench.run("a");
    let b = bench.run("b");
    assert_eq!(bench.instance(&b).edges[0].instance_id, Some(second.clone()));
    assert_eq!(bench.of("b").len(), 1, "no wave makes it");
    bench.exits(&second, 1);
    assert_eq!(bench.instance(&b).state, Blocked);
    let third = bench.run("a");
    assert_eq!(
        bench.instance(&b).edges[0].instance_id,
        Some(third),
        "a broken edge takes the next"
    );
    let mut bench = Bench::new(both());
    let b = bench.run("b");
    assert_eq!(bench.instance(&b).state, Pending);
    bench.run("a");
    bench.drain();
    assert_eq!(bench.instance(&b).state, Succeeded);
}

fn text(default: Option<&str>) -> ParamSchema {
    ParamSchema {
        kind: ParamType::String,
        required: true,
        default: default.map(Into::into),
        allowed: Vec::new(),
        min: None,
        max: None,
        pattern: None,
        secret: false,
    }
}

fn asks(mut spec: TaskSpec, default: Option<&str>) -> TaskSpec {
    spec.runtime_params.insert("day".to_owned(), text(default));
    spec
}

fn given(value: &str) -> SubmitBody {
    let params = [("day".to_owned(), value.into())].into_iter().collect();
    SubmitBody { params, ..SubmitBody::default() }
}

#[test]
fn rule_5_given_then_upstream_then_default() {
    let specs = vec![
        asks(root("a"), Some("from default")),
        asks(after("b", &["a"]), Some("own default")),
        asks(after("c", &["b"]), None),
    ];
    let mut bench = Bench::new(specs);
    bench.submit("a", given("given"));
    bench.drain();
    assert_eq!(bench.of("c")[0].runtime_params["day"], "given");
    bench.pass(1);
    bench.run("a");
    bench.drain();
    assert_eq!(bench.of("c")[1].runtime_params["day"], "from default");
    let b = bench.submit("b", given("mine"));
    assert_eq!(bench.instance(&b).runtime_params["day"], "mine");
}

#[test]
fn rule_5_a_parameter_that_nobody_declares_is_refused_at_once() {
    let mut bench = Bench::new(vec![root("a"), asks(after("b", &["a"]), None)]);
    assert!(bench.try_submit("b", SubmitBody::default()).is_err());
    assert_eq!(bench.of("b").len(), 0);
}

#[test]
fn rule_5_one_still_missing_when_all_edges_hold_never_starts() {
    let mut silent = asks(root("a"), None);
    silent.runtime_params.get_mut("day").unwrap().required = false;
    let mut bench = Bench::new(vec![silent, asks(after("b", &["a"]), None)]);
    bench.run("a");
    bench.drain();
    let b = bench.of("b")[0].instance_id.clone();
    assert_eq!(bench.standing(&b), (Cancelled, Some(Reason::RejectedParams)));
    assert_eq!(bench.fires("b"), [(FireOutcome::RejectedParams, 1)]);
}

#[test]
fn rule_6_a_strong_edge_blocks_and_heals_by_retry_and_a_weak_one_takes_any_end() {
    let mut weak = after("w", &[]);
    weak.depends_on = vec![edge("a", Strength::Weak)];
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"]), after("e", &["b"]), weak]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    let b = bench.of("b")[0].instance_id.clone();
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::UpstreamFailed)));
    assert_eq!((bench.states("e"), bench.states("w")), (vec![Pending], vec![Running]));
    bench.retry(&a).unwrap();
    assert_eq!(bench.standing(&b), (Pending, Some(Reason::WaitingDependency)));
    bench.drain();
    for name in ["a", "b", "e", "w"] {
        assert_eq!(bench.states(name), [Succeeded], "{name}");
    }
}

#[test]
fn rule_6_a_cancelled_upstream_blocks() {
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"]), after("c", &["b"])]);
    bench.run("a");
    let b = bench.of("b")[0].instance_id.clone();
    bench.cancel(&b).0.unwrap();
    assert_eq!(bench.states("c"), [Blocked]);
    bench.drain();
    assert_eq!(bench.states("c"), [Blocked]);
}

#[test]
fn rule_10_a_submission_always_makes_its_own_instance_and_names_what_is_open() {
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"])]);
    let first = bench.run("a");
    let answer = bench.try_submit("a", SubmitBody::default());
    let Ok(Reply::Submitted(second)) = answer else { panic!("{answer:?}") };
    assert_eq!(second.open_in_cycle, [first]);
    assert_eq!((bench.of("a").len(), bench.of("b").len()), (2, 2));
}

#[test]
fn rule_10_no_downstream_makes_and_rebinds_nothing_below() {
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"])]);
    let waiting = bench.run("b");
    let quiet = SubmitBody { no_downstream: true, ..SubmitBody::default() };
    bench.submit("a", quiet);
    bench.drain();
    assert_eq!(bench.states("b"), [Pending]);
    assert_eq!(bench.instance(&waiting).edges[0].instance_id, None);
}

#[test]
fn rule_10_ignore_deps_waits_for_nothing() {
    let mut bench = Bench::new(vec![root("a"), after("b", &["a"])]);
    let free = SubmitBody { ignore_deps: true, ..SubmitBody::default() };
    let b = bench.submit("b", free);
    assert_eq!(bench.instance(&b).state, Running);
    assert_eq!(task("b").depends_on, []);
}
