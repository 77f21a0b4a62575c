//! docs/waves.md, rule 15. It is 2026-11-30T00:00Z on the bench.

use super::bench::Bench;
use super::build::{after, cron, edge, every, id, needed_text, on_event, task};
use crate::limits;
use crate::model::backfill::{BackfillBody, Backfilled, SkipReason};
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Cause;
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded,
};
use crate::model::params::ParamSchema;
use crate::model::record::{FireOutcome, Target};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply, Request, SubmitBody};
use crate::model::spec::{CronTrigger, Misfire, Overlap, Strength, TaskSpec, Trigger, TriggerKind};
use crate::model::template::Template;
use crate::model::time::Timestamp;

/// Fires at two every night, UTC.
fn nightly(name: &str) -> TaskSpec {
    TaskSpec { triggers: vec![cron("0 2 * * *")], ..task(name) }
}

fn range(from: &str, to: &str) -> BackfillBody {
    BackfillBody { from: from.to_owned(), to: to.to_owned(), ..BackfillBody::default() }
}

fn try_backfill(bench: &mut Bench, name: &str, body: BackfillBody) -> Answer {
    bench.ask(Request::Backfill { task: id(name), body }).0
}

fn backfill(bench: &mut Bench, name: &str, body: BackfillBody) -> Backfilled {
    match try_backfill(bench, name, body) {
        Ok(Reply::Backfilled(made)) => made,
        other => panic!("{name} was not backfilled: {other:?}"),
    }
}

fn refused(bench: &mut Bench, name: &str, body: BackfillBody) -> Rejection {
    let made = bench.rows.len();
    let refusal = try_backfill(bench, name, body).unwrap_err();
    assert_eq!(bench.rows.len(), made, "all or nothing");
    refusal
}

/// Cycle and scheduled time of a task's instances in the order of their creation.
fn made(bench: &Bench, name: &str) -> Vec<(String, String)> {
    let of = bench.of(name);
    of.iter().map(|i| (i.cycle.label().to_owned(), i.scheduled_time.to_string())).collect()
}

fn cycles(bench: &Bench, name: &str) -> Vec<String> {
    made(bench, name).into_iter().map(|(cycle, _)| cycle).collect()
}

/// Per nominal time: the cycle, and why it was left out.
fn skips(filled: &Backfilled) -> Vec<(&str, Option<SkipReason>)> {
    let skip = |fill: &crate::model::backfill::CycleFill| fill.skipped.as_ref().map(|s| s.reason);
    filled.cycles.iter().map(|fill| (fill.cycle.as_str(), skip(fill))).collect()
}

fn pair(cycle: &str, at: &str) -> (String, String) {
    (cycle.to_owned(), at.to_owned())
}

fn asks(mut spec: TaskSpec, name: &str) -> TaskSpec {
    spec.runtime_params.insert(name.to_owned(), needed_text());
    spec
}

/// The trigger of `spec` gives `name` this value.
fn gives(mut spec: TaskSpec, name: &str, value: &str) -> TaskSpec {
    spec.triggers[0].params.insert(name.to_owned(), value.into());
    spec
}

// One root per nominal fire

#[test]
fn each_nominal_fire_gets_an_instance_with_its_time_its_cycle_and_its_parameters() {
    let yesterday = CycleRule { unit: CycleUnit::Day, offset: -1 };
    let a = gives(asks(nightly("a"), "day"), "day", "{date}");
    let a = TaskSpec { cycle: Some(yesterday), ..a };
    let mut bench = Bench::new(vec![a, after("b", &["a"])]);
    let filled = backfill(&mut bench, "a", range("2026-11-26", "2026-11-28"));
    assert_eq!(
        made(&bench, "a"),
        [
            pair("2026-11-26", "2026-11-27T02:00:00.000Z"),
            pair("2026-11-27", "2026-11-28T02:00:00.000Z"),
            pair("2026-11-28", "2026-11-29T02:00:00.000Z"),
        ]
    );
    let ids: Vec<InstanceId> = bench.of("a").iter().map(|i| i.instance_id.clone()).collect();
    assert_eq!(filled.instances, ids);
    assert_eq!((filled.from.as_str(), filled.to.as_str()), ("2026-11-26", "2026-11-28"));
    // They wait for no time, and know what made them.
    assert_eq!(bench.states("a"), [Running; 3]);
    let first = bench.of("a")[0].clone();
    assert_eq!(first.runtime_params["day"], "2026-11-26");
    let trigger = Some("cron:0 2 * * *".to_owned());
    assert_eq!(first.trigger, Cause::Backfill { uid: 1000, trigger });
    assert_eq!(first.trigger.kind(), "backfill");
    // Waves follow as usual.
    assert_eq!(bench.states("b"), [Pending; 3]);
    for (below, root) in bench.of("b").into_iter().zip(&ids) {
        assert_eq!(below.edges[0].instance_id.as_ref(), Some(root));
    }
    let told: Vec<_> =
        filled.cycles.iter().map(|fill| fill.downstream[0].task_id.as_str()).collect();
    assert_eq!(told, ["b.v1"; 3]);
    bench.drain();
    assert_eq!((bench.states("a"), bench.states("b")), (vec![Succeeded; 3], vec![Succeeded; 3]));
    assert_eq!(bench.fires("a"), [], "the ledger counts fires, and this was none");
}

#[test]
fn cycles_are_those_of_the_tasks_zone_and_times_those_of_the_triggers() {
    // 17:00 in London is 01:00 of the next day in Shanghai.
    let TriggerKind::Cron(at_five) = cron("0 17 * * *").when else { panic!() };
    let when = TriggerKind::Cron(CronTrigger { timezone: Some("UTC".to_owned()), ..at_five });
    let triggers = vec![Trigger { when, params: crate::model::spec::JsonMap::new() }];
    let a = TaskSpec { timezone: Some("Asia/Shanghai".to_owned()), triggers, ..task("a") };
    let mut bench = Bench::new(vec![a]);
    backfill(&mut bench, "a", range("2026-11-28", "2026-11-29"));
    assert_eq!(
        made(&bench, "a"),
        [
            pair("2026-11-28", "2026-11-27T17:00:00.000Z"),
            pair("2026-11-29", "2026-11-28T17:00:00.000Z"),
        ]
    );
}

#[test]
fn a_cycle_of_several_fires_gets_them_all_and_two_triggers_at_one_instant_are_one() {
    let triggers = vec![every(12 * 3600, Misfire::Skip, Overlap::Skip), cron("0 */6 * * *")];
    let mut bench = Bench::new(vec![TaskSpec { triggers, ..task("a") }]);
    backfill(&mut bench, "a", range("2026-11-28", "2026-11-28"));
    let at = |hour| pair("2026-11-28", &format!("2026-11-28T{hour}:00:00.000Z"));
    assert_eq!(made(&bench, "a"), [at("00"), at("06"), at("12"), at("18")]);
    let trigger = Some("cron:0 */6 * * *".to_owned());
    let noon = Cause::Backfill { uid: 1000, trigger };
    assert_eq!(bench.of("a")[2].trigger, noon, "the first key's, as while the daemon runs");
}

#[test]
fn a_bound_of_a_coarser_unit_takes_all_of_it() {
    let hour = CycleRule { unit: CycleUnit::Hour, offset: 0 };
    let hourly = TaskSpec { triggers: vec![cron("5 * * * *")], cycle: Some(hour), ..task("a") };
    let mut bench = Bench::new(vec![hourly]);
    let filled = backfill(&mut bench, "a", range("2026-11-28", "2026-11-29T01"));
    assert_eq!(filled.instances.len(), 26);
    assert_eq!((filled.from.as_str(), filled.to.as_str()), ("2026-11-28T00", "2026-11-29T01"));
}

#[test]
fn what_is_still_to_come_is_left_to_the_trigger() {
    let mut bench = Bench::new(vec![nightly("a")]);
    let filled = backfill(&mut bench, "a", range("2026-11-29", "2099-12-31"));
    assert_eq!(cycles(&bench, "a"), ["2026-11-29"]);
    assert_eq!(filled.not_due_from, Timestamp::parse("2026-11-30T02:00:00Z"));
    let nothing = backfill(&mut bench, "a", range("2026-12-24", "2026-12-24"));
    assert_eq!((nothing.instances.len(), nothing.cycles.len()), (0, 0));
    assert_eq!(nothing.not_due_from, Timestamp::parse("2026-12-24T02:00:00Z"));
    bench.drain();
    bench.pass(3 * 3600 * 1000);
    assert_eq!(cycles(&bench, "a"), ["2026-11-29", "2026-11-30"], "it fires in its own time");
}

#[test]
fn what_was_missed_is_left_to_the_trigger_until_the_directory_has_been_read() {
    let mut bench = Bench::new(vec![nightly("a")]);
    bench.restart_bare(24 * 3600 * 1000);
    let filled = backfill(&mut bench, "a", range("2026-11-29", "2026-11-30"));
    assert_eq!(filled.not_due_from, Timestamp::parse("2026-11-30T02:00:00Z"));
    bench.specs(vec![nightly("a")]);
    bench.drain();
    assert_eq!(cycles(&bench, "a"), ["2026-11-29", "2026-11-30"], "RUN_ONCE made it");
    let filled = backfill(&mut bench, "a", range("2026-11-29", "2026-11-30"));
    assert_eq!(filled.not_due_from, None);
    assert_eq!(cycles(&bench, "a"), ["2026-11-29", "2026-11-30"]);
}

#[test]
fn a_task_that_no_time_starts_gets_one_per_cycle() {
    let weekly = TaskSpec { cycle: Some(CycleRule::DAY), ..on_event("e", "go") };
    let mut bench = Bench::new(vec![nightly("a"), after("b", &["a"]), weekly]);
    let quiet = SubmitBody {
        no_downstream: true,
        cycle: Some("2026-11-28".to_owned()),
        ..SubmitBody::default()
    };
    let upstream = bench.submit("a", quiet);
    bench.drain();
    backfill(&mut bench, "b", range("2026-11-28", "2026-11-29"));
    assert_eq!(cycles(&bench, "b"), ["2026-11-28", "2026-11-29"]);
    // Bound to the newest matching upstream, or waiting for one.
    assert_eq!(bench.of("b")[0].edges[0].instance_id, Some(upstream));
    assert_eq!(bench.states("b"), [Running, Pending]);
    assert_eq!(bench.of("b")[0].trigger, Cause::Backfill { uid: 1000, trigger: None });
    let filled = backfill(&mut bench, "e", range("2026-11-30", "2026-12-02"));
    assert_eq!(cycles(&bench, "e"), ["2026-11-30"], "a day that has begun");
    assert_eq!(filled.not_due_from, Timestamp::parse("2026-12-01T00:00:00Z"));
}

#[test]
fn a_triggered_task_with_dependencies_still_waits_for_its_upstreams() {
    let c = TaskSpec { depends_on: vec![edge("a", Strength::Strong)], ..nightly("c") };
    let mut bench = Bench::new(vec![nightly("a"), c]);
    backfill(&mut bench, "c", range("2026-11-28", "2026-11-28"));
    assert_eq!(bench.states("c"), [Pending]);
    backfill(&mut bench, "a", range("2026-11-28", "2026-11-28"));
    bench.drain();
    assert_eq!(bench.states("c"), [Succeeded]);
}

// What a cycle has already

#[test]
fn a_success_is_skipped_and_what_is_missing_below_it_is_made_and_bound_to_what_is_there() {
    let before = || vec![nightly("a"), after("b", &["a"])];
    let mut bench = Bench::new(before());
    let a = bench.run_for("a", "2026-11-28");
    bench.drain();
    let b = bench.of("b")[0].instance_id.clone();
    let later = || {
        let more = [after("c", &["b"]), after("d", &["c", "a"]), after("e", &["d"])];
        before().into_iter().chain(more).collect::<Vec<_>>()
    };
    bench.specs(later());
    let filled = backfill(&mut bench, "a", range("2026-11-28", "2026-11-28"));
    assert_eq!(filled.instances, []);
    let skipped = filled.cycles[0].skipped.clone().unwrap();
    assert_eq!((skipped.reason, skipped.instance_id), (SkipReason::Succeeded, a.clone()));
    let below: Vec<&str> = filled.cycles[0].downstream.iter().map(|m| m.task_id.as_str()).collect();
    assert_eq!(below, ["c.v1", "d.v1", "e.v1"]);
    let bound = |bench: &Bench, name: &str| -> Vec<Option<InstanceId>> {
        bench.of(name)[0].edges.iter().map(|e| e.instance_id.clone()).collect()
    };
    let of = |bench: &Bench, name: &str| Some(bench.of(name)[0].instance_id.clone());
    assert_eq!(bound(&bench, "c"), [Some(b)]);
    assert_eq!(bound(&bench, "d"), [of(&bench, "c"), Some(a)]);
    assert_eq!(bound(&bench, "e"), [of(&bench, "d")]);
    bench.drain();
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(bench.states(name), [Succeeded], "{name}");
    }
    let nothing = backfill(&mut bench, "a", range("2026-11-28", "2026-11-28"));
    assert_eq!(nothing.cycles[0].downstream, [], "now nothing is missing");
    assert_eq!(bench.instances().count(), 5);
}

#[test]
fn below_a_success_what_ended_badly_is_made_anew_and_what_is_open_or_was_skipped_stays() {
    let condition = crate::model::condition::Condition::parse("state == 'FAILED'").unwrap();
    let mut skips = after("s", &["a"]);
    skips.depends_on[0].when = Some(condition);
    let specs =
        vec![nightly("a"), after("f", &["a"]), after("g", &["f"]), skips, after("o", &["a"])];
    let mut bench = Bench::new(specs);
    let a = bench.run_for("a", "2026-11-28");
    bench.exits(&a, 0);
    let f = bench.of("f")[0].instance_id.clone();
    bench.exits(&f, 1);
    let states = |bench: &Bench| ["f", "g", "s", "o"].map(|name| bench.states(name));
    assert_eq!(states(&bench), [vec![Failed], vec![Blocked], vec![Cancelled], vec![Running]]);
    let filled = backfill(&mut bench, "a", range("2026-11-28", "2026-11-28"));
    let below: Vec<&str> = filled.cycles[0].downstream.iter().map(|m| m.task_id.as_str()).collect();
    assert_eq!(below, ["f.v1"]);
    bench.drain();
    assert_eq!(bench.states("f"), [Failed, Succeeded]);
    assert_eq!(bench.states("g"), [Succeeded], "it was blocked, and goes on with the new one");
    assert_eq!((bench.states("s"), bench.states("o")), (vec![Cancelled], vec![Succeeded]));
}

#[test]
fn who_waits_elsewhere_for_what_was_missing_gets_it() {
    let mut x = TaskSpec { cycle: Some(CycleRule::DAY), ..on_event("x", "go") };
    let mut bench = Bench::new(vec![nightly("a")]);
    bench.run_for("a", "2026-11-28");
    bench.drain();
    x.depends_on = vec![edge("c", Strength::Strong)];
    bench.specs(vec![nightly("a"), after("c", &["a"]), x]);
    bench.run_for("x", "2026-11-28");
    assert_eq!(bench.states("x"), [Pending]);
    backfill(&mut bench, "a", range("2026-11-28", "2026-11-28"));
    bench.drain();
    assert_eq!((bench.states("c"), bench.states("x")), (vec![Succeeded], vec![Succeeded]));
}

#[test]
fn a_dependent_of_a_coarser_unit_gets_one_however_many_roots_its_cycle_has() {
    let hour = CycleRule { unit: CycleUnit::Hour, offset: 0 };
    let hourly = || TaskSpec { triggers: vec![cron("5 * * * *")], cycle: Some(hour), ..task("a") };
    let mut bench = Bench::new(vec![hourly()]);
    let hours = || range("2026-11-28T01", "2026-11-28T03");
    backfill(&mut bench, "a", hours());
    bench.drain();
    let daily = TaskSpec { cycle: Some(CycleRule::DAY), ..after("d", &["a"]) };
    bench.specs(vec![hourly(), daily]);
    backfill(&mut bench, "a", hours());
    assert_eq!(cycles(&bench, "d"), ["2026-11-28"]);
    assert_eq!(bench.of("d")[0].edges[0].instance_id, Some(bench.of("a")[0].instance_id.clone()));
}

#[test]
fn a_success_counts_though_newer_instances_of_its_cycle_ended_badly_and_though_the_daemon_restarted()
 {
    let mut bench = Bench::new(vec![nightly("a")]);
    let good = bench.run_for("a", "2026-11-28");
    bench.drain();
    bench.pass(1);
    let cancelled = bench.run_for("a", "2026-11-28");
    bench.cancel(&cancelled).0.unwrap();
    bench.ends(&cancelled, crate::model::event::Outcome::Exited { code: 1 }, true);
    assert_eq!(bench.states("a"), [Succeeded, Cancelled]);
    bench.restart(1, vec![nightly("a"), after("b", &["a"])]);
    let filled = backfill(&mut bench, "a", range("2026-11-28", "2026-11-28"));
    assert_eq!(filled.cycles[0].skipped.clone().unwrap().instance_id, good);
    assert_eq!(bench.of("b")[0].edges[0].instance_id, Some(good));
    assert_eq!(bench.states("b"), [Ready], "its edge holds");
}

#[test]
fn an_open_cycle_is_skipped_and_one_that_ended_badly_is_made_anew_and_repairs_its_chain() {
    let mut bench = Bench::new(vec![nightly("a"), after("b", &["a"])]);
    let running = bench.run_for("a", "2026-11-27");
    let failed = bench.run_for("a", "2026-11-28");
    bench.exits(&failed, 1);
    assert_eq!(bench.states("b"), [Pending, Blocked]);
    let filled = backfill(&mut bench, "a", range("2026-11-27", "2026-11-29"));
    let open = Some(SkipReason::Open);
    assert_eq!(skips(&filled), [("2026-11-27", open), ("2026-11-28", None), ("2026-11-29", None)]);
    assert_eq!(filled.cycles[0].skipped.clone().unwrap().instance_id, running);
    bench.drain();
    assert_eq!(bench.states("b"), [Succeeded; 3], "the blocked one took part in the new wave");
}

#[test]
fn again_makes_all_of_them_each_time_as_others() {
    let mut bench = Bench::new(vec![nightly("a")]);
    let again = || BackfillBody { again: true, ..range("2026-11-27", "2026-11-28") };
    backfill(&mut bench, "a", range("2026-11-27", "2026-11-27"));
    bench.drain();
    let open = bench.run_for("a", "2026-11-28");
    let first = backfill(&mut bench, "a", again());
    let second = backfill(&mut bench, "a", again());
    assert_eq!((first.instances.len(), second.instances.len()), (2, 2));
    assert!(first.instances.iter().all(|id| !second.instances.contains(id)));
    assert_eq!(bench.of("a").len(), 6);
    assert_eq!(bench.instance(&open).state, Running);
}

#[test]
fn a_dedup_key_that_is_taken_leaves_out_its_cycle_alone() {
    let key = Some(Template::parse("{date}").unwrap());
    let a = TaskSpec { dedup_key: key, ..nightly("a") };
    let mut bench = Bench::new(vec![a]);
    let holder = bench.run_for("a", "2026-11-28");
    bench.drain();
    let again =
        |dry_run| BackfillBody { again: true, dry_run, ..range("2026-11-27", "2026-11-29") };
    for dry_run in [true, false] {
        let filled = backfill(&mut bench, "a", again(dry_run));
        let taken = Some(SkipReason::Duplicate);
        let expected = [("2026-11-27", None), ("2026-11-28", taken), ("2026-11-29", None)];
        assert_eq!(skips(&filled), expected);
        assert_eq!(filled.cycles[1].skipped.clone().unwrap().instance_id, holder);
    }
    assert_eq!(cycles(&bench, "a"), ["2026-11-28", "2026-11-27", "2026-11-29"]);
}

#[test]
fn versions_that_share_cycles_share_successes_and_the_named_one_is_made() {
    let v2 = TaskId::parse("a.v2").unwrap();
    let high = TaskSpec { task_id: v2.clone(), version: 2, rollout: Some(100), ..nightly("a") };
    let mut bench = Bench::new(vec![nightly("a"), high]);
    let submission = SubmitBody { cycle: Some("2026-11-28".to_owned()), ..SubmitBody::default() };
    bench.ask(Request::Submit { task: v2.clone(), submission: Box::new(submission) }).0.unwrap();
    bench.drain();
    let filled = backfill(&mut bench, "a", range("2026-11-28", "2026-11-29"));
    assert_eq!(skips(&filled), [("2026-11-28", Some(SkipReason::Succeeded)), ("2026-11-29", None)]);
    assert_eq!(cycles(&bench, "a"), ["2026-11-29"], "a submission is never rerouted");
    let body = range("2026-11-27", "2026-11-27");
    let Ok(Reply::Backfilled(filled)) = bench.ask(Request::Backfill { task: v2, body }).0 else {
        panic!()
    };
    assert_eq!(bench.instance(&filled.instances[0]).version, 2, "though its own triggers rest");
}

// The order, and what holds them back

#[test]
fn the_oldest_runs_first_and_newest_first_turns_it_round() {
    let ran = |newest_first| {
        let one_by_one = TaskSpec { max_concurrent: Some(1), ..nightly("a") };
        let mut bench = Bench::new(vec![one_by_one]);
        let body = BackfillBody { newest_first, ..range("2026-11-26", "2026-11-28") };
        backfill(&mut bench, "a", body);
        let mut order = Vec::new();
        loop {
            let running: Vec<_> =
                bench.of("a").into_iter().filter(|i| i.state == Running).collect();
            let [one] = running.as_slice() else { break };
            let (id, cycle) = (one.instance_id.clone(), one.cycle.label().to_owned());
            order.push(cycle);
            bench.exits(&id, 0);
        }
        order
    };
    assert_eq!(ran(false), ["2026-11-26", "2026-11-27", "2026-11-28"]);
    assert_eq!(ran(true), ["2026-11-28", "2026-11-27", "2026-11-26"]);
}

#[test]
fn a_paused_tasks_instances_wait_and_a_disabled_one_is_backfilled_as_it_is_run() {
    let off = TaskSpec { enabled: false, ..nightly("off") };
    let mut bench = Bench::new(vec![nightly("a"), off]);
    bench.pause(Target::Task(id("a"))).unwrap();
    for name in ["a", "off"] {
        backfill(&mut bench, name, range("2026-11-28", "2026-11-28"));
    }
    assert_eq!((bench.states("a"), bench.states("off")), (vec![Ready], vec![Running]));
    bench.ask(Request::Resume { target: Target::Task(id("a")) }).0.unwrap();
    assert_eq!(bench.states("a"), [Running]);
}

// Orders that change nothing

#[test]
fn a_dry_run_tells_what_would_be_made_and_makes_nothing() {
    let mut bench = Bench::new(vec![nightly("a"), after("b", &["a"]), after("c", &["b"])]);
    let before = (bench.rows.clone(), bench.log.clone());
    let mut order = |dry_run| {
        let body = BackfillBody { dry_run, ..range("2026-11-27", "2026-11-28") };
        let answer = bench.ask_under("k", Request::Backfill { task: id("a"), body });
        let Ok(Reply::Backfilled(filled)) = answer else { panic!("{answer:?}") };
        (filled, (bench.rows.clone(), bench.log.clone()))
    };
    let (told, after) = order(true);
    assert!(told.dry_run);
    assert_eq!(after, before);
    // Nor does it use up its key.
    let (done, _) = order(false);
    assert_eq!(Backfilled { dry_run: false, ..told }, done);
    assert_eq!(done.cycles[0].downstream.len(), 2);
}

#[test]
fn an_order_repeated_under_its_key_makes_nothing_twice() {
    let specs = || vec![nightly("a"), after("b", &["a"])];
    let mut bench = Bench::new(specs());
    let order = || {
        let body = BackfillBody { again: true, ..range("2026-11-27", "2026-11-28") };
        Request::Backfill { task: id("a"), body }
    };
    let Ok(Reply::Backfilled(first)) = bench.ask_under("k", order()) else { panic!() };
    bench.restart(1_000, specs());
    let Ok(Reply::Backfilled(second)) = bench.ask_under("k", order()) else { panic!() };
    assert_eq!((first.repeated, second.repeated), (false, true));
    assert_eq!(first.instances, second.instances);
    assert_eq!((bench.of("a").len(), bench.of("b").len()), (2, 2));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_is_expected() {
    let mut bench =
        Bench::new(vec![nightly("a"), on_event("run", "go"), after("open", &["nowhere"])]);
    let days = || range("2026-11-27", "2026-11-28");
    assert_eq!(refused(&mut bench, "none", days()).code, RejectionCode::NotFound);
    let unresolved = refused(&mut bench, "open", days());
    assert_eq!(unresolved.code, RejectionCode::Conflict);
    assert!(unresolved.detail.contains("nowhere.v1"), "{}", unresolved.detail);
    for (name, body, told) in [
        ("run", days(), "schedctl run run.v1"),
        ("a", range("27.11.2026", "2026-11-28"), "from \"27.11.2026\" is not a cycle"),
        ("a", range("2026-11-28", "2026-11-27"), "is after to"),
    ] {
        let refusal = refused(&mut bench, name, body);
        assert_eq!(refusal.code, RejectionCode::Invalid);
        assert!(refusal.detail.contains(told), "{}", refusal.detail);
    }
}

#[test]
fn parameters_that_cannot_be_refuse_all_of_it() {
    let mut some = gives(asks(nightly("some"), "n"), "n", "{date}");
    let allowed = vec!["2026-11-27".into(), "2026-11-29".into()];
    some.runtime_params.insert("n".to_owned(), ParamSchema { allowed, ..needed_text() });
    let below = asks(after("below", &["none"]), "n");
    let mut bench =
        Bench::new(vec![asks(nightly("none"), "n"), some, below, asks(task("up"), "m")]);
    let days = || range("2026-11-27", "2026-11-28");
    let refusal = refused(&mut bench, "none", days());
    assert_eq!(refusal.code, RejectionCode::Invalid);
    assert_eq!(refusal.errors.len(), 2);
    assert_eq!(refusal.errors[0].path, "cycles.2026-11-27");
    assert!(refusal.errors[0].message.contains("parameter n is required"));
    let refusal = refused(&mut bench, "none", range("2026-11-01", "2026-11-25"));
    assert!(refusal.detail.contains("in 25 of its runs"), "{}", refusal.detail);
    assert_eq!(refusal.errors.len(), limits::BACKFILL_FAULTS_MAX);
    let refusal = refused(&mut bench, "some", days());
    let wrong: Vec<&str> = refusal.errors.iter().map(|e| e.path.as_str()).collect();
    assert_eq!(wrong, ["cycles.2026-11-28"], "and the other was not made either");
    assert_eq!(refused(&mut bench, "up", days()).errors.len(), 2);
    // One that an upstream declares may still come from there.
    assert_eq!(backfill(&mut bench, "below", days()).instances.len(), 2);
}

#[test]
fn one_whose_parameter_never_comes_ends_with_a_row_of_its_own() {
    let mut silent = asks(nightly("a"), "n");
    silent.runtime_params.insert("n".to_owned(), ParamSchema { required: false, ..needed_text() });
    let mut bench = Bench::new(vec![silent, asks(after("b", &["a"]), "n")]);
    let body = SubmitBody { no_downstream: true, ..SubmitBody::default() };
    bench.submit("a", SubmitBody { cycle: Some("2026-11-28".to_owned()), ..body });
    bench.drain();
    backfill(&mut bench, "b", range("2026-11-28", "2026-11-28"));
    assert_eq!(bench.states("b"), [Cancelled]);
    assert_eq!(bench.fires("b"), [(FireOutcome::RejectedParams, 1)]);
}

#[test]
fn a_range_of_too_much_is_refused_before_anything_is_made_or_counted_to_its_end() {
    let secondly = TaskSpec { triggers: vec![every(1, Misfire::Skip, Overlap::Skip)], ..task("s") };
    let derived: Vec<TaskSpec> = (0..100).map(|n| after(&format!("d{n}"), &["a"])).collect();
    let plain = task("plain");
    let mut bench = Bench::new([vec![nightly("a"), secondly, plain], derived].concat());
    let max = limits::BACKFILL_MAX.to_string();
    for (name, from) in [("s", "0001-01-01"), ("plain", "0001-01-01")] {
        let refusal = refused(&mut bench, name, range(from, "2026-11-29"));
        assert!(refusal.detail.contains(&format!("more than {max}")), "{}", refusal.detail);
        assert!(refusal.detail.contains("split the range"), "{}", refusal.detail);
    }
    // 100 nights with 100 tasks below each: 100 roots and 10000 others.
    let refusal = refused(&mut bench, "a", range("2026-08-22", "2026-11-29"));
    assert!(refusal.detail.contains("10100 instances"), "{}", refusal.detail);
}

#[test]
fn a_backfill_neither_holds_up_what_is_due_now_nor_gives_way_to_it() {
    for overlap in [Overlap::Skip, Overlap::Replace] {
        let triggers = vec![every(3600, Misfire::RunOnce, overlap)];
        let mut bench = Bench::new(vec![TaskSpec { triggers, ..task("a") }]);
        let body = BackfillBody { again: true, ..range("2026-11-29", "2026-11-29") };
        assert_eq!(backfill(&mut bench, "a", body).instances.len(), 24);
        bench.pass(3_600_000);
        assert_eq!(bench.fires("a"), [(FireOutcome::Instance, 1)], "{overlap:?}");
        assert_eq!(bench.of("a").iter().filter(|i| i.state == Cancelled).count(), 0);
    }
}
