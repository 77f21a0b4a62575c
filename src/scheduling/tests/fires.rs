//! Requirement E2; contract 'misfire', 'catchUpMs', 'overlap'; design, 'Clock, disk, faults' T2.

use std::time::Duration;

use super::bench::{Bench, MIDNIGHT};
use super::build::{every, id, on, on_event, task};
use crate::model::cron::CronExpr;
use crate::model::instance::InstanceState::{Cancelled, Ready, Running};
use crate::model::instance::Reason;
use crate::model::record::{FireOutcome, Target};
use crate::model::request::{RejectionCode, Reply, Request, SubmitBody};
use crate::model::spec::{
    CronTrigger, FirePolicy, JsonMap, Misfire, Overlap, TaskSpec, Trigger, TriggerKind,
};
use crate::model::template::Template;
use crate::model::time::Timestamp;

use FireOutcome::{Coalesced, Instance, Missed, SkippedOverlap};

fn timed(triggers: Vec<Trigger>) -> TaskSpec {
    TaskSpec { triggers, ..task("a") }
}

/// Down from 00:00:05 to 00:00:45: 10, 20, 30 and 40 s are missed.
fn after_downtime(triggers: Vec<Trigger>) -> Bench {
    let mut bench = Bench::new(vec![timed(triggers.clone())]);
    bench.pass(5_000);
    bench.restart(40_000, vec![timed(triggers)]);
    bench
}

#[test]
fn misfire_skip_records_and_runs_nothing() {
    let bench = after_downtime(vec![every(10, Misfire::Skip, Overlap::Allow)]);
    assert_eq!(bench.fires("a"), [(Missed, 4)]);
    let row = &bench.ledger("a")[0];
    let span = (row.from.as_millis() - MIDNIGHT, row.to.as_millis() - MIDNIGHT);
    assert_eq!(span, (10_000, 40_000));
    assert_eq!(bench.of("a").len(), 0);
}

#[test]
fn misfire_run_once_runs_the_newest_and_folds_the_others() {
    let bench = after_downtime(vec![every(10, Misfire::RunOnce, Overlap::Allow)]);
    assert_eq!(bench.fires("a"), [(Coalesced, 3), (Instance, 1)]);
    assert_eq!(bench.of("a")[0].scheduled_time.as_millis() - MIDNIGHT, 40_000);
}

#[test]
fn misfire_run_all_runs_all() {
    let bench = after_downtime(vec![every(10, Misfire::RunAll, Overlap::Allow)]);
    assert_eq!(bench.fires("a"), [(Instance, 1); 4]);
}

#[test]
fn fires_older_than_the_window_are_missed() {
    let mut trigger = every(10, Misfire::RunAll, Overlap::Allow);
    if let TriggerKind::Every(every) = &mut trigger.when {
        every.policy.catch_up = Duration::from_secs(20);
    }
    // Back at 45 s: 30 and 40 s are within 20 s.
    let bench = after_downtime(vec![trigger]);
    assert_eq!(bench.fires("a"), [(Missed, 2), (Instance, 1), (Instance, 1)]);
}

#[test]
fn two_triggers_at_one_instant_are_one_fire_missed_or_not() {
    let both = || {
        vec![every(10, Misfire::RunAll, Overlap::Allow), every(20, Misfire::RunAll, Overlap::Allow)]
    };
    let mut bench = Bench::new(vec![timed(both())]);
    bench.pass(40_000);
    assert_eq!(bench.fires("a").len(), 4);
    assert_eq!(after_downtime(both()).fires("a").len(), 4);
}

#[test]
fn a_new_trigger_does_not_swallow_a_fire_of_the_instant_it_came() {
    let (ten, five) =
        (every(10, Misfire::RunAll, Overlap::Allow), every(5, Misfire::RunAll, Overlap::Allow));
    let mut bench = Bench::new(vec![timed(vec![ten.clone()])]);
    bench.now = bench.now.plus(Duration::from_secs(10));
    bench.specs(vec![timed(vec![ten, five])]);
    bench.pass(0);
    assert_eq!(bench.fires("a"), [(Instance, 1)]);
}

#[test]
fn fires_missed_before_their_trigger_changed_still_have_a_row() {
    let ten = || every(10, Misfire::RunAll, Overlap::Allow);
    let mut bench = Bench::new(vec![timed(vec![ten()])]);
    bench.pass(5_000);
    bench.restart(30_000, vec![timed(vec![every(60, Misfire::RunAll, Overlap::Allow)])]);
    assert_eq!(bench.fires("a"), [(Missed, 3)]);
    let mut bench = Bench::new(vec![timed(vec![ten()])]);
    bench.pass(5_000);
    bench.restart(30_000, Vec::new());
    assert_eq!(bench.fires("a"), [(Missed, 3)]);
}

#[test]
fn overlap_skip_records_and_pending_does_not_count() {
    let mut bench = Bench::new(vec![timed(vec![every(10, Misfire::RunAll, Overlap::Skip)])]);
    bench.pass(20_000);
    assert_eq!(bench.fires("a"), [(Instance, 1), (SkippedOverlap, 1)]);
    let mut waits = timed(vec![every(10, Misfire::RunAll, Overlap::Skip)]);
    waits.depends_on = vec![super::build::edge("up", crate::model::spec::Strength::Strong)];
    let mut bench = Bench::new(vec![task("up"), waits]);
    bench.pass(20_000);
    assert_eq!(bench.fires("a"), [(Instance, 1), (Instance, 1)]);
}

#[test]
fn overlap_queue_makes_an_instance_that_waits_for_its_turn() {
    let mut spec = timed(vec![every(10, Misfire::RunAll, Overlap::Queue)]);
    spec.max_concurrent = Some(1);
    let mut bench = Bench::new(vec![spec]);
    bench.pass(30_000);
    assert_eq!(bench.states("a"), [Running, Ready, Ready]);
}

#[test]
fn overlap_replace_cancels_the_earlier_ones_running_or_not() {
    let mut bench = Bench::new(vec![timed(vec![every(10, Misfire::RunAll, Overlap::Replace)])]);
    bench.pass(10_000);
    let first = bench.of("a")[0].instance_id.clone();
    bench.pass(10_000);
    assert_eq!(bench.standing(&first), (Running, Some(Reason::Cancelling)));
    let term = crate::model::event::Outcome::Signalled { signal: 15, name: "TERM".to_owned() };
    bench.ends(&first, term, true);
    assert_eq!(bench.standing(&first), (Cancelled, Some(Reason::Replaced)));
    bench.pause(Target::All).unwrap();
    bench.pass(20_000);
    assert_eq!(bench.states("a")[2..], [Cancelled, Ready]);
}

#[test]
fn overlap_allow_lets_them_run_beside_each_other() {
    let mut bench = Bench::new(vec![timed(vec![every(10, Misfire::RunAll, Overlap::Allow)])]);
    bench.pass(20_000);
    assert_eq!(bench.states("a"), [Running, Running]);
}

/// Contract, `misfire: RUN_ALL`: all within `catchUpMs`, though the default overlap is SKIP.
#[test]
fn misfire_run_all_does_not_skip_for_overlap_what_it_catches_up_on() {
    let spec = || timed(vec![every(10, Misfire::RunAll, Overlap::Skip)]);
    let mut bench = Bench::new(vec![spec()]);
    bench.restart(35_000, vec![spec()]);
    assert_eq!(bench.fires("a"), [(Instance, 1); 3]);
}

/// docs/waves.md, rule 9: a repaired file alone starts nothing.
#[test]
fn an_edited_zone_starts_nothing() {
    let nightly = |zone: &str| TaskSpec {
        timezone: Some(zone.to_owned()),
        triggers: vec![on(TriggerKind::Cron(CronTrigger {
            expr: CronExpr::parse("0 2 * * *").unwrap(),
            timezone: None,
            policy: FirePolicy::default(),
        }))],
        ..task("a")
    };
    let mut bench = Bench::new(vec![nightly("UTC")]);
    // At 20:00 UTC the night's fire is behind, and two o'clock in Shanghai was two hours ago.
    bench.pass(20 * 3600 * 1_000);
    assert_eq!(bench.of("a").len(), 1);
    bench.specs(vec![nightly("Asia/Shanghai")]);
    bench.pass(1_000);
    assert_eq!(bench.of("a").len(), 1);
}

/// Contract, `dedupKey`: an automatic one makes the ledger row DUPLICATE.
#[test]
fn a_taken_dedup_key_makes_no_instance() {
    let spec = TaskSpec {
        dedup_key: Some(Template::parse("day-{date}").unwrap()),
        idempotent: false,
        ..on_event("a", "go")
    };
    let mut bench = Bench::new(vec![spec]);
    let emit = |bench: &mut Bench| {
        bench.ask(Request::Emit { name: "go".to_owned(), params: JsonMap::new() }).0.unwrap()
    };
    emit(&mut bench);
    let first = bench.of("a")[0].instance_id.clone();
    emit(&mut bench);
    bench.exits(&first, 0);
    emit(&mut bench);
    let answer = bench.try_submit("a", SubmitBody::default());
    assert_eq!(answer.unwrap_err().code, RejectionCode::Conflict);
    assert_eq!(bench.of("a").len(), 1);
    let duplicate = (FireOutcome::Duplicate, 1);
    assert_eq!(bench.fires("a"), [(Instance, 1), duplicate, duplicate]);
    let mut bad =
        TaskSpec { dedup_key: Some(Template::parse("k").unwrap()), ..on_event("a", "go") };
    bad.retry.max_attempts = 1;
    let mut bench = Bench::new(vec![bad]);
    emit(&mut bench);
    let first = bench.of("a")[0].instance_id.clone();
    bench.exits(&first, 1);
    emit(&mut bench);
    assert_eq!(bench.of("a").len(), 2, "a failed one holds no key");
}

/// Berlin's clock jumps from 02:00 to 03:00 on 2027-03-28 at 01:00 UTC. From then on its 02:00 is
/// Shanghai's 08:00: one fire.
#[test]
fn coming_fires_are_in_their_own_zone_and_tell_what_the_clock_does() {
    let cron = |text, zone: Option<&str>| {
        let expr = CronExpr::parse(text).unwrap();
        let (timezone, policy) = (zone.map(str::to_owned), FirePolicy::default());
        on(TriggerKind::Cron(CronTrigger { expr, timezone, policy }))
    };
    let triggers = vec![cron("*/30 2 * * *", Some("Europe/Berlin")), cron("0 8 * * *", None)];
    let timezone = Some("Asia/Shanghai".to_owned());
    let mut bench = Bench::new(vec![TaskSpec { timezone, ..timed(triggers) }]);
    let from = Timestamp::parse("2027-03-27T12:00:00Z");
    let asked = Request::Next { task: Some(id("a")), from, count: 4 };
    let Ok(Reply::Next(fires)) = bench.ask(asked).0 else { panic!("no fires") };
    let found: Vec<(&str, Option<&str>)> =
        fires.iter().map(|fire| (fire.local.as_str(), fire.note.as_deref())).collect();
    let dropped = "02:00, 02:30 do not exist on 2027-03-28: not fired";
    let expected = [
        ("2027-03-28T08:00:00+08:00", None),
        ("2027-03-29T02:00:00+02:00", Some(dropped)),
        ("2027-03-29T02:30:00+02:00", None),
        ("2027-03-30T02:00:00+02:00", None),
    ];
    assert_eq!(found, expected);
}

fn coming(bench: &mut Bench, count: u32) -> Vec<(i64, Option<String>)> {
    let Ok(Reply::Next(fires)) =
        bench.ask(Request::Next { task: Some(id("a")), from: None, count }).0
    else {
        panic!("no answer")
    };
    fires.into_iter().map(|fire| ((fire.at.as_millis() - MIDNIGHT) / 1000, fire.note)).collect()
}

#[test]
fn coming_fires_are_held_up_to_the_end_of_a_pause() {
    let mut bench = Bench::new(vec![timed(vec![every(10, Misfire::RunOnce, Overlap::Allow)])]);
    let until = Some(Timestamp::from_millis(MIDNIGHT + 20_000));
    bench.ask(Request::Pause { target: Target::Task(id("a")), reason: None, until }).0.unwrap();
    let held = Some("makes nothing: the task is paused".to_owned());
    assert_eq!(coming(&mut bench, 3), [(10, held), (20, None), (30, None)]);
}

#[test]
fn a_coming_fire_of_two_triggers_is_told_once() {
    let both = vec![
        every(10, Misfire::RunOnce, Overlap::Allow),
        every(20, Misfire::RunOnce, Overlap::Allow),
    ];
    let mut bench = Bench::new(vec![timed(both)]);
    assert_eq!(coming(&mut bench, 3), [(10, None), (20, None), (30, None)]);
}
