//! The wall clock is set: design, 'Clock, disk, faults' T3 and T4; known faults B021, B024, B031.

use std::time::Duration;

use super::bench::{Bench, MIDNIGHT};
use super::build::{edge, every, on, retry, task};
use crate::model::cron::CronExpr;
use crate::model::event::Event;
use crate::model::instance::InstanceState::{Failed, Ready, Running};
use crate::model::record::FireOutcome::{Coalesced, Instance, Missed};
use crate::model::record::{Record, Target};
use crate::model::request::SubmitBody;
use crate::model::spec::{
    CronTrigger, FirePolicy, Misfire, Overlap, Strength, TaskSpec, Trigger, TriggerKind,
};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const YEAR: i64 = 365 * 24 * HOUR;

/// Every minute, whatever else runs.
fn minutely(misfire: Misfire) -> TaskSpec {
    TaskSpec { triggers: vec![every(60, misfire, Overlap::Allow)], ..task("a") }
}

fn cron(text: &str, misfire: Misfire) -> Trigger {
    let policy = FirePolicy { misfire, overlap: Overlap::Allow, ..FirePolicy::default() };
    let expr = CronExpr::parse(text).unwrap();
    on(TriggerKind::Cron(CronTrigger { expr, timezone: None, policy }))
}

fn bench(misfire: Misfire) -> Bench {
    Bench::new(vec![minutely(misfire)])
}

fn counted(bench: &Bench) -> u64 {
    bench.ledger("a").iter().map(|f| f.count).sum()
}

/// The nominal times that made an instance, in milliseconds from midnight.
fn made(bench: &Bench) -> Vec<i64> {
    let mut times: Vec<i64> =
        bench.of("a").iter().map(|i| i.scheduled_time.as_millis() - MIDNIGHT).collect();
    times.sort_unstable();
    times
}

#[test]
fn what_a_step_forward_goes_past_follows_the_misfire_policy() {
    let mut bench = bench(Misfire::RunOnce);
    bench.step(2 * HOUR);
    assert_eq!(bench.fires("a"), [(Coalesced, 119), (Instance, 1)]);
    assert_eq!(made(&bench), [2 * HOUR]);
    let row = &bench.ledger("a")[0];
    assert_eq!(row.reason.as_deref(), Some("the clock was set past it"));
    assert!(bench.log.iter().any(|r| r.what == Record::ClockStepped { by_ms: 2 * HOUR }));
}

#[test]
fn what_a_step_of_more_than_three_hours_goes_past_is_missed() {
    let mut bench = bench(Misfire::RunAll);
    bench.step(3 * HOUR + MINUTE);
    assert_eq!(bench.fires("a"), [(Missed, 181)]);
    bench.pass(MINUTE);
    assert_eq!(bench.fires("a"), [(Missed, 181), (Instance, 1)]);
}

#[test]
fn no_time_that_was_fired_is_fired_again_after_a_step_back() {
    let mut bench = bench(Misfire::RunOnce);
    bench.pass(HOUR);
    bench.step(-30 * MINUTE);
    bench.pass(30 * MINUTE);
    assert_eq!(counted(&bench), 60, "60 minutes, each once");
    bench.pass(2 * MINUTE);
    assert_eq!(bench.fires("a"), [(Instance, 1); 62]);
}

/// Known fault B021: two hours forward and, 70 seconds later, back.
#[test]
fn what_a_clock_that_was_ahead_went_past_fires_in_its_own_time() {
    let mut bench = bench(Misfire::RunOnce);
    bench.step(2 * HOUR);
    bench.pass(70_000);
    assert_eq!(made(&bench), [2 * HOUR, 2 * HOUR + MINUTE]);
    bench.step(-2 * HOUR);
    // 70 s past midnight. The first minute has gone by meanwhile and stays coalesced.
    assert_eq!(bench.fires("a"), [(Coalesced, 1), (Instance, 1), (Instance, 1)]);
    bench.pass(MINUTE);
    assert_eq!(made(&bench), [2 * MINUTE, 2 * HOUR, 2 * HOUR + MINUTE]);
    // Past the times that the clock showed before: each has one row, and none ran twice.
    bench.pass(3 * HOUR - MINUTE);
    let expected: Vec<i64> = (2..=181).map(|minute| minute * MINUTE).collect();
    assert_eq!(made(&bench), expected);
    assert_eq!(counted(&bench), 181);
}

#[test]
fn a_clock_that_was_years_ahead_at_the_boot_neither_loses_nor_repeats() {
    let mut bench = bench(Misfire::RunOnce);
    bench.pass(MINUTE);
    bench.restart(10 * YEAR, vec![minutely(Misfire::RunOnce)]);
    bench.pass(5 * MINUTE);
    let ahead = made(&bench).len();
    assert_eq!(ahead, 1 + 1 + 5, "before, the newest that was missed, and five since");
    bench.step(-10 * YEAR);
    // Midnight and 6 minutes; down from 1 to 1, then ahead for 5 minutes of which nobody knew.
    bench.pass(4 * MINUTE);
    assert_eq!(made(&bench)[..5], [MINUTE, 7 * MINUTE, 8 * MINUTE, 9 * MINUTE, 10 * MINUTE]);
    let past = bench.ledger("a").into_iter().filter(|f| f.to.as_millis() - MIDNIGHT <= HOUR);
    assert_eq!(past.map(|f| f.count).sum::<u64>(), 10, "ten minutes, each in one row");
    // A restart remembers what has been done ahead of time.
    bench.restart(MINUTE, vec![minutely(Misfire::RunOnce)]);
    bench.pass(0);
    assert_eq!(bench.of("a").len(), ahead + 5);
}

#[test]
fn a_clock_that_was_years_behind_at_the_boot_fires_nothing_twice() {
    let mut bench = bench(Misfire::RunOnce);
    bench.pass(10 * MINUTE);
    bench.restart(-20 * YEAR, vec![minutely(Misfire::RunOnce)]);
    bench.pass(2 * MINUTE);
    assert_eq!(bench.of("a").len(), 12, "it goes on by the clock that it has");
    bench.step(20 * YEAR);
    // It is 12 minutes past midnight; two were not seen. That is a correction: nothing is made up.
    let now: Vec<(_, u64)> = bench
        .ledger("a")
        .into_iter()
        .filter(|f| f.to.as_millis() > MIDNIGHT + 10 * MINUTE)
        .map(|f| (f.outcome, f.count))
        .collect();
    let between = u64::try_from(20 * YEAR / MINUTE).unwrap() - 10 - 2 + 2;
    assert_eq!(now, [(Missed, between)]);
    bench.pass(MINUTE);
    assert_eq!(bench.of("a").len(), 13);
}

/// Known fault B031.
#[test]
fn small_steps_back_and_forth_fire_each_minute_once() {
    let mut bench = bench(Misfire::RunOnce);
    for n in 0..23 {
        bench.pass(40_000);
        bench.step(if n % 2 == 0 { -2000 } else { 2000 });
    }
    bench.pass(2_000);
    // 23 times 40 s, once back more than forth, and the last 2 s: 920 s.
    assert_eq!(made(&bench), (1..=15).map(|minute| minute * MINUTE).collect::<Vec<i64>>());
    assert_eq!(counted(&bench), 15);
}

/// Known fault B024, and a daemon that was stopped by a signal: no step, but nobody looked.
#[test]
fn what_was_due_while_nobody_looked_follows_the_misfire_policy() {
    let mut bench = bench(Misfire::RunOnce);
    bench.now = bench.now.plus(Duration::from_secs(20 * 60));
    bench.event(Event::Tick);
    assert_eq!(bench.fires("a"), [(Coalesced, 19), (Instance, 1)]);
    // A little late is not unseen.
    bench.now = bench.now.plus(Duration::from_secs(119));
    bench.event(Event::Tick);
    assert_eq!(bench.fires("a")[2..], [(Instance, 1)]);
}

/// T4: the wall clock moves no wait.
#[test]
fn waits_take_as_long_as_they_would_have() {
    for by in [HOUR, -HOUR] {
        let failing = TaskSpec { retry: retry(2, Duration::from_secs(30)), ..task("f") };
        let late = TaskSpec {
            depends_on: vec![edge("a", Strength::Strong)],
            dependency_timeout: Some(Duration::from_secs(40)),
            ..task("w")
        };
        let mut bench = Bench::new(vec![failing, task("a"), late]);
        let first = bench.run("f");
        bench.exits(&first, 1);
        let waits = bench.run("w");
        bench.pass(10_000);
        bench.step(by);
        bench.pass(19_999);
        assert_eq!(bench.instance(&first).state, Failed, "{by}");
        bench.pass(1);
        assert_eq!(bench.instance(&first).state, Running, "{by}");
        bench.pass(9_999);
        assert!(bench.instance(&waits).is_open(), "{by}");
        bench.pass(1);
        assert!(!bench.instance(&waits).is_open(), "{by}");
    }
}

#[test]
fn the_clock_of_a_held_instance_stands_still_through_a_step() {
    let late = TaskSpec {
        depends_on: vec![edge("a", Strength::Strong)],
        dependency_timeout: Some(Duration::from_secs(40)),
        ..task("w")
    };
    for by in [HOUR, -HOUR] {
        let mut bench = Bench::new(vec![task("a"), late.clone()]);
        let waits = bench.run("w");
        bench.pass(10_000);
        bench.pause(Target::Instance(waits.clone())).unwrap();
        bench.step(by);
        bench.pass(5_000);
        bench
            .ask(crate::model::request::Request::Resume { target: Target::Instance(waits.clone()) })
            .0
            .unwrap();
        bench.pass(29_999);
        assert!(bench.instance(&waits).is_open());
        bench.pass(1);
        assert!(!bench.instance(&waits).is_open());
    }
}

/// Design, T3: the fire key bars a repeat, also where the trigger went and came back in between.
#[test]
fn a_step_back_into_an_earlier_life_of_a_trigger_repeats_nothing_of_it() {
    let mut bench = bench(Misfire::RunOnce);
    bench.pass(MINUTE);
    bench.drain();
    bench.specs(vec![]);
    bench.pass(MINUTE / 2);
    bench.specs(vec![minutely(Misfire::RunOnce)]);
    bench.pass(MINUTE);
    bench.drain();
    bench.step(-2 * MINUTE);
    bench.pass(3 * MINUTE);
    bench.drain();
    assert_eq!(made(&bench), [MINUTE, 2 * MINUTE, 3 * MINUTE]);
    assert_eq!(counted(&bench), 3);
}

/// docs/waves.md, rule 11: the clock starts when the instance's own time comes, which is for the
/// wall clock to say.
#[test]
fn the_clock_of_what_has_its_time_to_come_begins_then_whatever_steps_are_made_before() {
    let late = TaskSpec {
        depends_on: vec![edge("a", Strength::Strong)],
        dependency_timeout: Some(Duration::from_secs(40)),
        ..task("w")
    };
    // Its time comes 10 minutes after the beginning; by a step to an hour after it, it comes then.
    for (by, comes_in) in [(-HOUR, 70 * MINUTE), (HOUR, 0)] {
        let mut bench = Bench::new(vec![task("a"), late.clone()]);
        let at = bench.now.plus(Duration::from_secs(600));
        let waits = bench.submit("w", SubmitBody { at: Some(at), ..SubmitBody::default() });
        bench.step(by);
        bench.pass(comes_in + 39_999);
        assert!(bench.instance(&waits).is_open(), "{by}");
        bench.pass(1);
        assert!(!bench.instance(&waits).is_open(), "{by}");
    }
}

/// docs/waves.md, rule 13: counted from `--at`, which a step does not move; 30 days are the default.
#[test]
fn what_has_its_time_to_come_expires_as_long_after_it_whatever_steps_are_made_before() {
    let mut bench = Bench::new(vec![task("a")]);
    let at = bench.now.plus(Duration::from_secs(600));
    let waits = bench.submit("a", SubmitBody { at: Some(at), ..SubmitBody::default() });
    bench.step(-HOUR);
    let expires_at = at.plus(Duration::from_secs(30 * 24 * 3600));
    assert_eq!(bench.instance(&waits).expires_at, Some(expires_at));
}

#[test]
fn two_triggers_at_one_instant_stay_one_fire_through_steps() {
    let both = || TaskSpec {
        triggers: vec![
            every(60, Misfire::RunOnce, Overlap::Allow),
            every(120, Misfire::RunOnce, Overlap::Allow),
        ],
        ..task("a")
    };
    let mut bench = Bench::new(vec![both()]);
    bench.pass(10 * MINUTE);
    bench.step(HOUR);
    bench.pass(2 * MINUTE);
    bench.step(-HOUR);
    bench.pass(2 * HOUR);
    assert_eq!(counted(&bench), 132, "each minute in one row");
    assert!(made(&bench).windows(2).all(|pair| pair[0] < pair[1]), "none ran twice");
}

/// The clock is two years ahead when a trigger is edited, or comes back after it went.
#[test]
fn a_trigger_that_changes_while_the_clock_is_ahead_counts_from_then() {
    let daily =
        || TaskSpec { triggers: vec![every(120, Misfire::RunOnce, Overlap::Allow)], ..task("a") };
    for goes in [false, true] {
        let mut bench = bench(Misfire::RunOnce);
        bench.pass(MINUTE);
        bench.step(2 * YEAR);
        if goes {
            bench.specs(Vec::new());
        }
        bench.specs(vec![daily()]);
        bench.pass(2 * MINUTE);
        bench.step(-2 * YEAR);
        let before = bench.of("a").len();
        bench.pass(10 * MINUTE);
        assert_eq!(bench.of("a").len(), before + 5, "{goes}: every two minutes from now on");
    }
}

#[test]
fn what_a_trigger_has_done_ahead_of_time_stays_done_though_it_goes_and_comes_back() {
    for goes_before_the_step in [false, true] {
        let mut bench = bench(Misfire::RunOnce);
        bench.pass(10 * MINUTE);
        if goes_before_the_step {
            bench.specs(Vec::new());
        }
        bench.step(-10 * MINUTE);
        bench.specs(Vec::new());
        bench.specs(vec![minutely(Misfire::RunOnce)]);
        bench.pass(10 * MINUTE);
        assert_eq!(made(&bench).len(), 10, "{goes_before_the_step}");
        bench.pass(MINUTE);
        assert_eq!(made(&bench).len(), 11, "{goes_before_the_step}");
    }
}

/// Known fault B021 on a machine that sleeps every night.
#[test]
fn rows_of_earlier_nights_do_not_push_out_what_is_to_be_taken_back() {
    let spec =
        || TaskSpec { triggers: vec![every(1200, Misfire::RunOnce, Overlap::Allow)], ..task("a") };
    let mut bench = Bench::new(vec![spec()]);
    for _ in 0..5 {
        bench.pass(16 * HOUR);
        bench.restart(8 * HOUR, vec![spec()]);
    }
    bench.step(2 * HOUR);
    bench.step(-2 * HOUR);
    let before = bench.of("a").len();
    bench.pass(HOUR);
    assert_eq!(bench.of("a").len(), before + 3);
}

#[test]
fn reading_zones_again_loses_nothing_that_was_due() {
    let spec = || TaskSpec { triggers: vec![cron("* * * * *", Misfire::RunAll)], ..task("a") };
    let mut bench = Bench::new(vec![spec()]);
    bench.restart_reading(
        HOUR,
        crate::model::event::Definitions { more: true, ..Default::default() },
    );
    bench.event(Event::ZonesReread);
    bench.specs(vec![spec()]);
    assert_eq!(bench.fires("a"), [(Instance, 1); 60]);
    let mut bench = Bench::new(vec![spec()]);
    bench.restart(1500 * MINUTE, vec![spec()]);
    bench.event(Event::ZonesReread);
    bench.pass(0);
    // A day's worth is within the window, the rest is missed.
    assert_eq!(counted(&bench), 1500);
}

/// A machine without a clock of its own starts ten days behind, or ended ten days ahead.
#[test]
fn a_retry_waits_no_longer_than_it_would_have_though_the_daemon_started_by_another_clock() {
    let failing = || TaskSpec { retry: retry(2, Duration::from_secs(30)), ..task("f") };
    for wrong in [-10 * 24 * HOUR, 10 * 24 * HOUR] {
        let mut bench = Bench::new(vec![failing()]);
        bench.step(wrong.max(0));
        let first = bench.run("f");
        bench.exits(&first, 1);
        bench.restart(-10 * 24 * HOUR, vec![failing()]);
        bench.step(-wrong.min(0));
        bench.pass(29_999);
        assert_eq!(bench.instance(&first).state, Failed, "{wrong}");
        bench.pass(1);
        // The executor has not connected again.
        assert_eq!(bench.instance(&first).state, Ready, "{wrong}");
    }
}

#[test]
fn an_end_that_lies_ahead_of_the_clock_puts_its_retry_off_by_its_wait_only() {
    let mut bench =
        Bench::new(vec![TaskSpec { retry: retry(2, Duration::from_secs(30)), ..task("f") }]);
    let first = bench.run("f");
    let mut done = bench.end(&first, crate::model::event::Outcome::Exited { code: 1 }, false);
    done.finished_at = bench.now.plus(Duration::from_secs(10 * 86_400));
    bench.report(crate::model::event::Report::Finished(Box::new(done)));
    bench.pass(30_000);
    assert_eq!(bench.instance(&first).state, Running);
}

#[test]
fn what_is_kept_for_a_while_is_kept_as_long_through_a_step() {
    let mut bench = Bench::new(vec![task("a")]);
    let order = || {
        let submission = Box::new(crate::model::request::SubmitBody::default());
        crate::model::request::Request::Submit { task: super::build::id("a"), submission }
    };
    bench.ask_under("k", order()).unwrap();
    bench.step(10 * 24 * HOUR);
    bench.pass(0);
    bench.ask_under("k", order()).unwrap();
    assert_eq!(bench.of("a").len(), 1, "the key is known");
}

#[test]
fn what_became_ready_by_a_clock_that_was_ahead_keeps_its_place() {
    let mut bench = Bench::bare(super::build::settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![task("a"), task("b"), task("c")]);
    bench.step(HOUR);
    let runs = bench.run("a");
    bench.run("b");
    bench.step(-HOUR);
    bench.pass(1000);
    bench.run("c");
    bench.exits(&runs, 0);
    assert_eq!((bench.states("b"), bench.states("c")), (vec![Running], vec![Ready]));
}
