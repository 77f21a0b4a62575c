//! Long downtimes, pauses and many fires: requirement E2, 'bounded work after any downtime'.

use std::time::Duration;

use super::bench::{Bench, MIDNIGHT};
use super::build::{every, id, on, task};
use crate::limits;
use crate::model::cron::CronExpr;
use crate::model::instance::InstanceState;
use crate::model::record::FireOutcome::{Coalesced, Instance, Missed, Paused};
use crate::model::record::Target;
use crate::model::request::Request;
use crate::model::spec::{
    CronTrigger, FirePolicy, Misfire, Overlap, TaskSpec, Trigger, TriggerKind,
};
use crate::model::time::Timestamp;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

fn cron(text: &str, misfire: Misfire, catch_up: Duration) -> Trigger {
    on(TriggerKind::Cron(CronTrigger {
        expr: CronExpr::parse(text).unwrap(),
        timezone: None,
        policy: FirePolicy { misfire, catch_up, overlap: Overlap::Queue },
    }))
}

fn timed(triggers: Vec<Trigger>) -> TaskSpec {
    TaskSpec { triggers, ..task("a") }
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

/// 31 million fires, more than could be looked at one by one in any test.
#[test]
fn a_year_down_with_a_fire_in_every_second_leaves_one_coalesced_row() {
    let spec = || timed(vec![cron("* * * * * *", Misfire::RunOnce, days(400))]);
    let mut bench = Bench::new(vec![spec()]);
    bench.restart(365 * DAY, vec![spec()]);
    assert_eq!(bench.fires("a"), [(Coalesced, 365 * 86_400 - 1), (Instance, 1)]);
    let row = &bench.ledger("a")[0];
    assert_eq!(row.from.as_millis(), MIDNIGHT + 1000);
    assert_eq!(row.to.as_millis(), MIDNIGHT + 365 * DAY - 1000);
}

#[test]
fn what_lies_before_the_window_is_missed_and_the_rest_coalesced() {
    let spec = || timed(vec![cron("* * * * * *", Misfire::RunOnce, days(1))]);
    let mut bench = Bench::new(vec![spec()]);
    bench.restart(365 * DAY, vec![spec()]);
    // A fire that is due just as the window begins is in it.
    let expected = [(Missed, 364 * 86_400 - 1), (Coalesced, 86_400), (Instance, 1)];
    assert_eq!(bench.fires("a"), expected);
}

#[test]
fn a_daily_and_a_minutely_trigger_share_the_fires_of_a_long_downtime() {
    let spec = || {
        timed(vec![
            cron("0 12 * * *", Misfire::Skip, days(1)),
            every(60, Misfire::Skip, Overlap::Queue),
        ])
    };
    let mut bench = Bench::new(vec![spec()]);
    bench.restart(1000 * DAY, vec![spec()]);
    // The first of the two keys counts the noons.
    assert_eq!(bench.fires("a"), [(Missed, 1000), (Missed, 1000 * 1440 - 1000)]);
}

#[test]
fn run_all_makes_them_in_parts_and_each_once() {
    let spec = || timed(vec![every(1, Misfire::RunAll, Overlap::Queue)]);
    let mut bench = Bench::new(vec![spec()]);
    let many = 2 * i64::try_from(limits::FIRES_PER_TURN).unwrap() + 30;
    bench.restart(many * 1000, vec![spec()]);
    assert_eq!(bench.of("a").len(), limits::FIRES_PER_TURN, "others have their turn between");
    assert_eq!(bench.engine.next_deadline().map(|at| at <= bench.now), Some(true));
    bench.pass(0);
    // Also the last few, which are only a little late, run although others are READY.
    assert_eq!(bench.fires("a"), vec![(Instance, 1); usize::try_from(many).unwrap()]);
}

#[test]
fn fires_of_a_pause_are_paused_however_long_nobody_looked() {
    let spec = || timed(vec![every(60, Misfire::RunOnce, Overlap::Queue)]);
    let mut bench = Bench::new(vec![spec()]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.restart(60 * MINUTE, vec![spec()]);
    assert_eq!(bench.fires("a"), [(Paused, 60)]);
}

#[test]
fn a_pause_that_ended_while_nobody_looked_ended_then() {
    let spec = || timed(vec![every(60, Misfire::RunOnce, Overlap::Queue)]);
    let mut bench = Bench::new(vec![spec()]);
    let until = Some(Timestamp::from_millis(MIDNIGHT + 20 * MINUTE));
    let target = Target::Task(id("a"));
    bench.ask(Request::Pause { target, reason: None, until }).0.unwrap();
    bench.restart(60 * MINUTE, vec![spec()]);
    // The fire of the 20th minute is the first that is not paused.
    assert_eq!(bench.fires("a"), [(Paused, 19), (Coalesced, 40), (Instance, 1)]);
}

/// Two dense triggers share half of their times: those are looked at, in parts.
#[test]
fn a_year_down_with_two_dense_triggers_is_counted_in_parts() {
    let spec = || {
        timed(vec![
            every(1, Misfire::RunOnce, Overlap::Queue),
            every(2, Misfire::RunOnce, Overlap::Queue),
        ])
    };
    let mut bench = Bench::new(vec![spec()]);
    bench.restart(3 * DAY, vec![spec()]);
    assert_eq!(bench.engine.next_deadline().map(|at| at <= bench.now), Some(true));
    bench.pass(0);
    let counted: u64 = bench.ledger("a").iter().map(|f| f.count).sum();
    assert_eq!(counted, 3 * 86_400, "each second once");
    let made = bench.of("a").len();
    assert!((1..=2).contains(&made), "the newest of each trigger at most, not one for each part");
}

#[test]
fn many_tasks_that_catch_up_leave_others_their_turn() {
    let specs = || -> Vec<TaskSpec> {
        (0..30)
            .map(|n| {
                let triggers = vec![every(60, Misfire::RunAll, Overlap::Queue)];
                TaskSpec { triggers, ..task(&format!("t{n}")) }
            })
            .collect()
    };
    let mut bench = Bench::new(specs());
    bench.restart(100 * MINUTE, specs());
    let made = bench.instances().count();
    assert!(made <= limits::FIRES_PER_TURN + 100, "{made} in one turn");
    bench.pass(0);
    for n in 0..30 {
        assert_eq!(bench.fires(&format!("t{n}")), [(Instance, 1); 100]);
    }
}

/// Contract: only the fires of `cron` and `every` end as PAUSED.
#[test]
fn the_boot_of_a_paused_task_makes_an_instance_that_waits() {
    let spec = || timed(vec![on(TriggerKind::Boot)]);
    let mut bench = Bench::new(vec![spec()]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.machine_restarts();
    bench.restart(MINUTE, vec![spec()]);
    // That of the boot in which the task came, and that of the next.
    assert_eq!(bench.fires("a"), [(Instance, 1); 2]);
    assert_eq!(bench.states("a")[1], InstanceState::Ready);
}
