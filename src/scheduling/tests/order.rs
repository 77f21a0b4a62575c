//! Requirements D1 to D3, D7.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bench::Bench;
use super::build::{id, settings, task};
use crate::model::event::{Event, Hello, Load, Report};
use crate::model::id::{ExecutorId, InstanceId, QueueName};
use crate::model::instance::InstanceState::{Ready, Running};
use crate::model::instance::Reason;
use crate::model::priority::Priority;
use crate::model::record::Target;
use crate::model::request::{Reply, Request, SubmitBody};
use crate::model::settings::{Discipline, LevelWeights, Settings};
use crate::model::spec::TaskSpec;

fn with(name: &str, priority: u8) -> TaskSpec {
    TaskSpec { priority: Priority::new(priority).unwrap(), ..task(name) }
}

/// One slot; the order in which what was submitted while all was held then runs.
fn order(specs: Vec<TaskSpec>, submitted: &[&str]) -> Vec<String> {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(specs);
    bench.pause(Target::All).unwrap();
    for name in submitted {
        bench.pass(1);
        bench.run(name);
    }
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    one_by_one(&mut bench)
}

/// What runs and then starts, by the tasks' names; each ends well before the next starts.
fn one_by_one(bench: &mut Bench) -> Vec<String> {
    let mut ran = Vec::new();
    loop {
        let on = bench.instances().find(|i| i.state == Running).cloned();
        let Some(on) = on else { return ran };
        ran.push(on.task_id.base().to_owned());
        bench.exits(&on.instance_id, 0);
    }
}

fn many(name: &str, queue: &str, priority: u8) -> TaskSpec {
    let queue = QueueName::from(queue);
    TaskSpec { queue, max_concurrent: None, ..with(name, priority) }
}

/// Why an instance waits, as a person sees it.
fn reason(bench: &mut Bench, of: &InstanceId) -> Option<Reason> {
    match bench.ask(Request::Live(vec![of.clone()])).0 {
        Ok(Reply::Live(live)) => live[0].reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn inside_a_priority_first_in_is_first_out_whatever_the_task() {
    let specs = vec![with("a", 4), with("b", 4)];
    assert_eq!(order(specs, &["b", "a", "b", "a"]), ["b", "a", "b", "a"]);
}

#[test]
fn a_lower_number_goes_first() {
    let specs = vec![with("a", 9), with("b", 0), with("c", 4)];
    assert_eq!(order(specs, &["a", "b", "c", "b"]), ["b", "b", "c", "a"]);
}

#[test]
fn what_cannot_be_placed_does_not_hold_up_what_can() {
    let mut alone = with("a", 0);
    alone.max_concurrent = Some(1);
    let mut bench = Bench::new(vec![alone, with("b", 9)]);
    bench.run("a");
    bench.run("a");
    bench.run("b");
    assert_eq!((bench.states("a"), bench.states("b")), (vec![Running, Ready], vec![Running]));
}

#[test]
fn a_queue_never_runs_more_than_its_quota() {
    let queues = [("default", 1, None), ("side", 1, Some(2))];
    let mut bench = Bench::bare(settings(&[("local", 9)], &queues));
    let side = |name| TaskSpec { queue: QueueName::from("side"), ..task(name) };
    bench.specs(vec![side("a"), side("b"), task("c")]);
    for name in ["a", "b", "a", "c"] {
        bench.run(name);
    }
    assert_eq!(bench.states("a"), [Running, Ready]);
    assert_eq!((bench.states("b"), bench.states("c")), (vec![Running], vec![Running]));
}

#[test]
fn a_changed_priority_changes_the_order_of_what_waits() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![task("a"), task("b")]);
    let (first, a, b) = (bench.run("a"), bench.run("a"), bench.run("b"));
    let priority = Priority::new(0).unwrap();
    let target = Target::Instance(b.clone());
    bench.ask(Request::SetPriority { target, priority }).0.unwrap();
    bench.exits(&first, 0);
    assert_eq!((bench.instance(&a).state, bench.instance(&b).state), (Ready, Running));
}

#[test]
fn a_tasks_changed_priority_is_that_of_all_its_instances_that_wait() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![many("hold", "default", 4), many("a", "default", 4), many("b", "default", 4)]);
    for name in ["hold", "a", "b", "a", "b"] {
        bench.run(name);
    }
    let (target, priority) = (Target::Task(id("b")), Priority::new(3).unwrap());
    bench.ask(Request::SetPriority { target, priority }).0.unwrap();
    bench.run("b");
    assert_eq!(one_by_one(&mut bench), ["hold", "b", "b", "b", "a", "a"]);
}

#[test]
fn a_priority_that_is_taken_back_is_the_tasks_or_the_definitions_again() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![many("hold", "default", 4), many("a", "default", 6), many("b", "default", 5)]);
    bench.run("hold");
    let (a, _) = (bench.run("a"), bench.run("b"));
    let set = |bench: &mut Bench, target, priority| {
        let priority = Priority::new(priority).unwrap();
        bench.ask(Request::SetPriority { target, priority }).0.unwrap();
    };
    let reset = |bench: &mut Bench, target| {
        bench.ask(Request::ResetPriority { target }).0.unwrap();
    };
    set(&mut bench, Target::Task(id("a")), 3);
    set(&mut bench, Target::Instance(a.clone()), 0);
    reset(&mut bench, Target::Instance(a.clone()));
    assert_eq!(bench.instance(&a).priority.value(), 3);
    reset(&mut bench, Target::Task(id("a")));
    assert_eq!(bench.instance(&a).priority.value(), 6);
    bench.run("a");
    assert_eq!(one_by_one(&mut bench), ["hold", "b", "a", "a"]);
}

#[test]
fn the_order_is_the_same_after_a_restart() {
    let specs =
        || vec![many("hold", "default", 4), many("a", "default", 4), many("b", "default", 3)];
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(specs());
    let hold = bench.run("hold");
    // All in one millisecond: the sequence counts.
    let made: Vec<InstanceId> =
        (0..10).map(|n| bench.run(if n % 3 == 0 { "b" } else { "a" })).collect();
    bench.restart(1_000, specs());
    let running = vec![bench.attempt(&hold)];
    let hello = Hello { running, ..bench.hello() };
    bench.event(Event::ExecutorConnected(hello));
    bench.exits(&hold, 0);
    let mut ran = Vec::new();
    while ran.len() < made.len() {
        let on = bench.instances().find(|i| i.state == Running).unwrap().instance_id.clone();
        bench.exits(&on, 0);
        ran.push(on);
    }
    let by_hand = [0, 3, 6, 9, 1, 2, 4, 5, 7, 8].map(|n: usize| made[n].clone());
    assert_eq!(ran, by_hand);
}

/// Fault B110: a full group hides nobody.
#[test]
fn full_quotas_and_paused_tasks_stand_in_nobodys_way_and_let_go_at_once() {
    let mut settings = (*settings(&[("local", 9)], &[("default", 1, None)])).clone();
    settings.owner_quota = BTreeMap::from([("few".to_owned(), 1)]);
    let mut bench = Bench::bare(Arc::new(settings));
    let alone = TaskSpec { max_concurrent: Some(1), ..with("c", 1) };
    let owned = |name| TaskSpec { owner: "few".to_owned(), ..with(name, 0) };
    bench.specs(vec![owned("a"), owned("b"), alone, with("d", 2), with("e", 9)]);
    bench.pause(Target::Task(id("d"))).unwrap();
    let names = ["a", "a", "b", "c", "c", "d", "e"];
    let made: Vec<InstanceId> = names.map(|name| bench.run(name)).to_vec();
    let running = |bench: &Bench| -> Vec<usize> {
        (0..names.len()).filter(|n| bench.instance(&made[*n]).state == Running).collect()
    };
    assert_eq!(running(&bench), [0, 3, 6]);
    let reasons: Vec<Option<Reason>> = made.iter().map(|i| reason(&mut bench, i)).collect();
    let (quota, paused) = (Some(Reason::Quota), Some(Reason::Paused));
    assert_eq!(reasons, [None, quota, quota, None, quota, paused, None]);
    // The owner's next is the first of its highest task.
    bench.exits(&made[0], 0);
    assert_eq!(running(&bench), [1, 3, 6]);
    bench.exits(&made[3], 0);
    bench.ask(Request::Resume { target: Target::Task(id("d")) }).0.unwrap();
    assert_eq!(running(&bench), [1, 4, 5, 6]);
    bench.exits(&made[1], 0);
    assert_eq!(running(&bench), [2, 4, 5, 6]);
}

/// Design, 'State and reason': the first that holds of PAUSED, NO_EXECUTOR, QUOTA, NO_SLOT.
#[test]
fn the_first_reason_that_holds_is_told() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, Some(1))]));
    let elsewhere = TaskSpec {
        executor_labels: BTreeMap::from([("zone".to_owned(), "b".to_owned())]),
        ..with("b", 4)
    };
    let side = |name| TaskSpec { queue: QueueName::from("side"), ..with(name, 4) };
    bench.specs(vec![with("a", 4), elsewhere, with("c", 4), side("d")]);
    bench.run("a");
    let waiting = ["a", "b", "c", "d"].map(|name| bench.run(name));
    let reasons = |bench: &mut Bench| waiting.clone().map(|i| reason(bench, &i).unwrap());
    let (none, quota, slot) = (Reason::NoExecutor, Reason::Quota, Reason::NoSlot);
    assert_eq!(reasons(&mut bench), [quota, none, quota, slot]);
    bench.pause(Target::Queue(QueueName::from("default"))).unwrap();
    bench.pause(Target::Instance(waiting[3].clone())).unwrap();
    assert_eq!(reasons(&mut bench), [Reason::Paused; 4]);
}

fn counted(ran: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    ran.iter().for_each(|name| *counts.entry(name.as_str()).or_default() += 1);
    counts
}

/// Requirement D3: a queue that can place nothing neither takes part nor saves up turns.
#[test]
fn queues_share_by_weight_whatever_others_cannot_place() {
    let queues = [("stuck", 100, None), ("a", 4, None), ("b", 1, None)];
    let mut bench = Bench::bare(settings(&[("local", 1)], &queues));
    let labels = BTreeMap::from([("zone".to_owned(), "none".to_owned())]);
    let stuck = TaskSpec { executor_labels: labels, ..many("stuck", "stuck", 0) };
    // Priority counts inside a queue only.
    bench.specs(vec![stuck, many("a", "a", 9), many("b", "b", 0)]);
    bench.pause(Target::All).unwrap();
    for _ in 0..20 {
        for name in ["stuck", "a", "b"] {
            bench.run(name);
        }
    }
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    let ran = one_by_one(&mut bench);
    assert_eq!(counted(&ran[..10]), BTreeMap::from([("a", 8), ("b", 2)]));
}

fn weighted(executors: &[(&str, u32)]) -> Arc<Settings> {
    let mut settings = (*settings(executors, &[("default", 1, None)])).clone();
    settings.queues[0].discipline = Discipline::Weighted(LevelWeights::default());
    Arc::new(settings)
}

/// Requirement D3, contract §4: 16, 8, 4, 2, 1 of 31.
#[test]
fn levels_share_a_weighted_queue_and_the_lowest_is_served_too() {
    let mut bench = Bench::bare(weighted(&[("local", 1)]));
    let levels = [("critical", 0), ("high", 2), ("normal", 5), ("low", 6), ("background", 9)];
    bench.specs(levels.map(|(name, priority)| many(name, "default", priority)).to_vec());
    bench.pause(Target::All).unwrap();
    for _ in 0..32 {
        for (name, _) in levels {
            bench.run(name);
        }
    }
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    let ran = one_by_one(&mut bench);
    let shares = [("background", 1), ("critical", 16), ("high", 8), ("low", 2), ("normal", 4)];
    assert_eq!(counted(&ran[..31]), BTreeMap::from(shares));
    assert_eq!(ran.len(), 5 * 32);
}

#[test]
fn in_a_weighted_queue_levels_of_one_task_share_and_numbers_count_inside_a_level() {
    let mut bench = Bench::bare(weighted(&[("local", 1)]));
    bench.specs(vec![many("a", "default", 4)]);
    bench.pause(Target::All).unwrap();
    let mut with = |priority: &str| {
        let priority = serde_json::from_str(priority).unwrap();
        bench.submit("a", SubmitBody { priority: Some(priority), ..SubmitBody::default() })
    };
    // LOW: 2 turns of 18; among 7 and 6 the 6 goes first.
    let (later, sooner) = (with("7"), with("6"));
    let critical: Vec<InstanceId> = (0..20).map(|_| with("0")).collect();
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    let mut ran = Vec::new();
    for _ in 0..18 {
        let on = bench.instances().find(|i| i.state == Running).cloned().unwrap();
        ran.push(on.instance_id.clone());
        bench.exits(&on.instance_id, 0);
    }
    let at = |id: &InstanceId| ran.iter().position(|ran| ran == id);
    assert!(at(&sooner).is_some() && at(&sooner) < at(&later), "{ran:?}");
    assert!(ran.iter().filter(|id| critical.contains(id)).eq(critical.iter().take(16)));
}

/// Requirement D7: labels, free slots, then the reported load.
#[test]
fn the_executor_that_fits_and_has_most_room_is_taken() {
    let mut settings =
        (*settings(&[("local", 2), ("big", 3), ("far", 9)], &[("default", 1, None)])).clone();
    settings.executors[2].task_types = vec!["PYTHON".to_owned()];
    for executor in &mut settings.executors[..2] {
        executor.labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    }
    let mut bench = Bench::bare(Arc::new(settings));
    for executor in ["big", "far"] {
        let hello = Hello { executor: ExecutorId::from(executor), ..bench.hello() };
        bench.event(Event::ExecutorConnected(hello));
    }
    let report = Report::Heartbeat(Load { running: 0, load1: 3.0 });
    bench.event(Event::ExecutorReport { executor: "big".into(), incarnation: 1, report });
    let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    bench.specs(vec![TaskSpec { executor_labels: labels, ..many("a", "default", 4) }]);
    let mut at = || {
        let made = bench.run("a");
        bench.instance(&made).executor_id.clone().map(|id| id.to_string())
    };
    // Free: 2 and 3; then 2 and 2, where the load of `big` counts; then 1 and 2; then 1 and 1.
    let taken = [at(), at(), at(), at(), at(), at()].map(|id| id.unwrap_or_default());
    assert_eq!(taken, ["big", "local", "big", "local", "big", ""]);
}

/// Requirement D1: the order of the queue decides between fires of one instant, not the order in
/// which they happen.
#[test]
fn of_what_fires_at_one_instant_the_most_urgent_starts() {
    let at_midnight = |name, priority| TaskSpec {
        triggers: vec![super::build::cron("0 0 * * *")],
        ..with(name, priority)
    };
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![at_midnight("a", 5), at_midnight("b", 0), at_midnight("c", 4)]);
    bench.pass(24 * 3600 * 1000);
    assert_eq!(one_by_one(&mut bench), ["b", "c", "a"]);
}
