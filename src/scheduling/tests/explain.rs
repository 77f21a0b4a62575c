//! What the core says of why something is as it is (requirement C6), reason by reason.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::bench::{Bench, MIDNIGHT};
use super::build::{after, cron, edge, every, file, full, id, on, retry, settings, task};
use crate::model::condition::Condition;
use crate::model::event::{Event, Outcome};
use crate::model::explain::{EdgeExplanation, InstanceExplanation, QuotaKind, TaskExplanation};
use crate::model::graph::{GraphEdgeKind, GraphView};
use crate::model::id::{InstanceId, QueueName};
use crate::model::instance::InstanceState::{Blocked, Failed, Pending, Ready, Running};
use crate::model::instance::{InstanceState, Reason};
use crate::model::record::Target;
use crate::model::request::{Reply, Request, StopMode, SubmitBody};
use crate::model::settings::Settings;
use crate::model::spec::{
    Dependency, Misfire, Overlap, Strength, TaskSpec, TaskTrigger, TriggerKind,
};
use crate::model::time::Timestamp;
use crate::model::view::TaskStatus;

fn of(bench: &mut Bench, id: &InstanceId) -> InstanceExplanation {
    match bench.ask(Request::Explain(id.clone())).0 {
        Ok(Reply::Explanation(Some(told))) => *told,
        other => panic!("{id} was not explained: {other:?}"),
    }
}

fn of_task(bench: &mut Bench, name: &str, at: Option<Timestamp>) -> TaskExplanation {
    match bench.ask(Request::ExplainTask { task: id(name), at }).0 {
        Ok(Reply::TaskExplanation(told)) => *told,
        other => panic!("{name} was not explained: {other:?}"),
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(MIDNIGHT + ms)
}

fn newest(bench: &Bench, name: &str) -> InstanceId {
    bench.of(name).last().expect("an instance").instance_id.clone()
}

fn only_edge(told: &InstanceExplanation) -> &EdgeExplanation {
    assert_eq!(told.edges.len(), 1, "{told:#?}");
    &told.edges[0]
}

#[test]
fn an_edge_tells_the_upstreams_instance_its_state_and_since_when() {
    let mut bench = Bench::new(vec![task("up"), after("down", &["up"])]);
    bench.pass(1000);
    let up = bench.run("up");
    bench.started(&up);
    let down = newest(&bench, "down");
    let told = of(&mut bench, &down);
    assert_eq!((told.state, told.since), (Pending, Some(at(1000))));
    let edge = only_edge(&told);
    assert_eq!((edge.state, edge.is_final, edge.satisfied), (Some(Running), false, false));
    assert_eq!((edge.instance_id.as_ref(), edge.cycle.as_deref()), (Some(&up), Some("2026-11-30")));
    assert_eq!(edge.since, Some(at(1000)));
    bench.pass(500);
    bench.exits(&up, 1);
    bench.pass(500);
    let told = of(&mut bench, &down);
    assert_eq!((told.state, told.reason), (Blocked, Some(Reason::UpstreamFailed)));
    assert_eq!(told.since, Some(at(1500)), "blocked since the upstream's end");
    let edge = only_edge(&told);
    assert_eq!((edge.state, edge.is_final, edge.satisfied), (Some(Failed), true, false));
}

#[test]
fn an_open_edge_tells_when_the_upstream_fires_next_and_which_cycle_that_is() {
    let mut daily = task("daily");
    daily.triggers = vec![cron("0 2 * * *")];
    let mut bench = Bench::new(vec![daily, after("down", &["daily"])]);
    let today = bench.run("down");
    let told = of(&mut bench, &today);
    let open = only_edge(&told).open.as_ref().unwrap();
    let two_o_clock = Some(at(2 * 3_600_000));
    assert_eq!((open.status, open.next_fire_time), (Some(TaskStatus::Active), two_o_clock));
    assert_eq!(open.next_cycle.as_deref(), Some("2026-11-30"));
    assert_eq!(open.matching_fire_time, two_o_clock);

    let tomorrow = bench.run_for("down", "2026-12-01");
    let told = of(&mut bench, &tomorrow);
    let open = only_edge(&told).open.as_ref().unwrap();
    assert_eq!(open.matching_fire_time, Some(at(26 * 3_600_000)), "not the next, the one after");

    let past = bench.run_for("down", "2026-11-01");
    let told = of(&mut bench, &past);
    let open = only_edge(&told).open.as_ref().unwrap();
    assert_eq!((open.next_fire_time, open.matching_fire_time), (two_o_clock, None));
}

#[test]
fn an_open_edge_tells_of_an_upstream_that_is_paused_disabled_or_removed() {
    let specs = || vec![on_demand("up"), after("down", &["up"])];
    let mut bench = Bench::new(specs());
    let down = bench.run("down");
    bench.pause(Target::Task(id("up"))).unwrap();
    let told = of(&mut bench, &down);
    let open = only_edge(&told).open.as_ref().unwrap();
    assert_eq!(open.status, Some(TaskStatus::Paused));
    assert_eq!(open.paused.as_ref().map(|p| p.uid), Some(1000));

    let mut off = specs();
    off[0].enabled = false;
    bench.specs(off);
    let told = of(&mut bench, &down);
    assert_eq!(only_edge(&told).open.as_ref().unwrap().status, Some(TaskStatus::Disabled));
    bench.specs(vec![after("down", &["up"])]);
    let told = of(&mut bench, &down);
    assert_eq!(told.reason, Some(Reason::SpecRemoved));
    assert_eq!(only_edge(&told).open.as_ref().unwrap().status, None);
}

/// A task that only people start.
fn on_demand(name: &str) -> TaskSpec {
    task(name)
}

#[test]
fn a_condition_stands_beside_its_edge() {
    let when = Some(Condition::parse("output.rows > 3").unwrap());
    let depends_on = vec![Dependency { when, ..edge("up", Strength::Strong) }];
    let mut bench = Bench::new(vec![task("up"), TaskSpec { depends_on, ..task("down") }]);
    bench.run("up");
    let down = newest(&bench, "down");
    assert_eq!(only_edge(&of(&mut bench, &down)).when.as_deref(), Some("output.rows > 3"));
}

#[test]
fn a_weak_edge_is_satisfied_by_any_final_end_and_by_nothing_before() {
    let weak = TaskSpec {
        depends_on: vec![edge("a", Strength::Weak), edge("b", Strength::Weak)],
        ..task("down")
    };
    let mut bench = Bench::new(vec![task("a"), task("b"), weak]);
    let a = bench.run("a");
    bench.run("b");
    bench.exits(&a, 1);
    let down = newest(&bench, "down");
    let told = of(&mut bench, &down);
    let satisfied: Vec<bool> = told.edges.iter().map(|edge| edge.satisfied).collect();
    assert_eq!(satisfied, [true, false], "{told:#?}");
}

#[test]
fn all_pauses_are_told_the_nearest_first() {
    let mut bench = Bench::new(vec![task("a")]);
    bench.pause(Target::Task(id("a"))).unwrap();
    bench.pause(Target::Queue(QueueName::from("default"))).unwrap();
    let until = Some(at(60_000));
    let reason = Some("maintenance".to_owned());
    bench.ask(Request::Pause { target: Target::All, reason, until }).0.unwrap();
    let a = bench.run("a");
    bench.pause(Target::Instance(a.clone())).unwrap();
    let told = of(&mut bench, &a);
    assert_eq!((told.state, told.reason), (Ready, Some(Reason::Paused)));
    let targets: Vec<&Target> = told.pauses.iter().map(|pause| &pause.target).collect();
    let queue = Target::Queue(QueueName::from("default"));
    assert_eq!(targets, [&Target::Instance(a), &Target::Task(id("a")), &queue, &Target::All]);
    let all = &told.pauses[3].pause;
    assert_eq!((all.uid, all.reason.as_deref(), all.until), (1000, Some("maintenance"), until));
    assert_eq!(told.place, None, "one that is held itself stands in no queue");
}

#[test]
fn a_full_queue_task_and_owner_are_told_with_who_holds_them() {
    let queues = [("default", 1, None), ("side", 1, Some(1))];
    let mut with = (*settings(&[("local", 9)], &queues)).clone();
    with.owner_quota = BTreeMap::from([("ops".to_owned(), 2)]);
    let mut bench = Bench::bare(Arc::new(with));
    let side = TaskSpec { queue: QueueName::from("side"), max_concurrent: Some(1), ..task("a") };
    bench.specs(vec![side, task("b")]);
    let (first, second) = (bench.run("a"), bench.run("a"));
    let told = of(&mut bench, &second);
    assert_eq!(told.reason, Some(Reason::Quota));
    let kinds: Vec<(QuotaKind, &str, u32, u32)> =
        told.quotas.iter().map(|q| (q.kind, q.name.as_str(), q.limit, q.used)).collect();
    assert_eq!(kinds, [(QuotaKind::Queue, "side", 1, 1), (QuotaKind::Task, "a.v1", 1, 1)]);
    for quota in &told.quotas {
        assert_eq!(quota.held_by.len(), 1);
        assert_eq!(quota.held_by[0].instance_id, first);
    }
    let b = bench.run("b");
    let waits = bench.run("b");
    let told = of(&mut bench, &waits);
    assert_eq!(told.quotas.len(), 1, "{:#?}", told.quotas);
    let owner = &told.quotas[0];
    assert_eq!((owner.kind, owner.limit, owner.used), (QuotaKind::Owner, 2, 2));
    let mut holders: Vec<&InstanceId> = owner.held_by.iter().map(|r| &r.instance_id).collect();
    holders.sort();
    let mut expected = [&first, &b];
    expected.sort();
    assert_eq!(holders, expected);
}

#[test]
fn taken_slots_are_told_with_the_executor_and_who_has_them() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![task("a"), task("b")]);
    let (first, second) = (bench.run("a"), bench.run("b"));
    let told = of(&mut bench, &second);
    assert_eq!(told.reason, Some(Reason::NoSlot));
    assert_eq!(told.quotas.len(), 1);
    let slots = &told.quotas[0];
    assert_eq!((slots.kind, slots.name.as_str(), slots.limit), (QuotaKind::Slots, "local", 1));
    assert_eq!(slots.held_by[0].instance_id, first);
}

#[test]
fn without_an_executor_it_is_told_what_is_asked_and_what_there_is() {
    let mut with: Settings = (*settings(&[("local", 1)], &[("default", 1, None)])).clone();
    with.executors[0].labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
    let mut bench = Bench::bare(Arc::new(with));
    let wanted = BTreeMap::from([("zone".to_owned(), "b".to_owned())]);
    bench.specs(vec![TaskSpec { executor_labels: wanted.clone(), ..task("a") }]);
    let a = bench.run("a");
    let told = of(&mut bench, &a);
    assert_eq!(told.reason, Some(Reason::NoExecutor));
    let placement = told.placement.unwrap();
    assert_eq!((placement.task_type.as_str(), &placement.executor_labels), ("SHELL", &wanted));
    let offer = &placement.executors[0];
    assert!(offer.connected && !offer.fits, "{offer:#?}");
    assert_eq!(offer.labels.get("zone").map(String::as_str), Some("a"));
}

#[test]
fn the_place_in_the_queue_counts_all_that_go_first_and_names_the_first_five() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    let urgent =
        TaskSpec { priority: crate::model::priority::Priority::new(1).unwrap(), ..task("u") };
    bench.specs(vec![task("a"), task("b"), urgent]);
    bench.run("a");
    let before: Vec<InstanceId> = (0..6).map(|_| bench.run("a")).collect();
    let mine = bench.run("b");
    bench.run("b");
    let urgent = bench.run("u");
    let place = of(&mut bench, &mine).place.unwrap();
    assert_eq!((place.ahead, place.waiting), (7, 9));
    let named: Vec<&InstanceId> = place.first.iter().map(|r| &r.instance_id).collect();
    assert_eq!(named, [&urgent, &before[0], &before[1], &before[2], &before[3]]);
}

#[test]
fn a_wait_for_a_retry_tells_when_and_how_many_attempts_are_left() {
    let tries = retry(3, Duration::from_secs(60));
    let mut bench = Bench::new(vec![TaskSpec { retry: tries, ..task("a") }]);
    let a = bench.run("a");
    bench.exits(&a, 3);
    let told = of(&mut bench, &a);
    assert_eq!((told.state, told.reason), (Failed, Some(Reason::RetryWait)));
    assert_eq!((told.next_retry_at, told.attempts_left), (Some(at(60_000)), 2));
    assert_eq!((told.error_code.as_deref(), told.exit_code), (Some("EXIT_3"), Some(3)));
    assert!(!told.is_final);
}

#[test]
fn what_runs_tells_where_since_when_and_when_it_times_out() {
    let timeout = Some(Duration::from_secs(90));
    let mut bench = Bench::new(vec![TaskSpec { timeout, ..task("a") }]);
    bench.pass(1000);
    let a = bench.run("a");
    bench.started(&a);
    let told = of(&mut bench, &a);
    assert_eq!(told.executor_id.as_ref().map(|id| id.as_str()), Some("local"));
    assert_eq!((told.started_at, told.timeout_at), (Some(at(1000)), Some(at(91_000))));
    bench.cancel(&a).0.unwrap();
    let told = of(&mut bench, &a);
    assert_eq!((told.reason, told.cancelled_by), (Some(Reason::Cancelling), Some(1000)));
}

#[test]
fn who_cancelled_is_remembered_for_waiting_running_and_retried_ones() {
    let tries = retry(3, Duration::from_secs(60));
    let mut bench = Bench::new(vec![TaskSpec { retry: tries, ..task("a") }, after("b", &["a"])]);
    let a = bench.run("a");
    let b = newest(&bench, "b");
    bench.cancel(&b).0.unwrap();
    assert_eq!(bench.instance(&b).cancelled_by, Some(1000));
    bench.cancel(&a).0.unwrap();
    bench.ends(&a, Outcome::Signalled { signal: 15, name: "TERM".to_owned() }, true);
    let ended = bench.instance(&a);
    assert_eq!((ended.state, ended.cancelled_by), (InstanceState::Cancelled, Some(1000)));
    let again = bench.run("a");
    bench.exits(&again, 1);
    assert_eq!(bench.instance(&again).cancelled_by, None);
    bench.cancel(&again).0.unwrap();
    assert_eq!(bench.instance(&again).cancelled_by, Some(1000));
    // The core keeps no final ones: the row says all.
    assert_eq!(bench.ask(Request::Explain(again)).0, Ok(Reply::Explanation(None)));
}

#[test]
fn its_own_time_and_the_end_of_waiting_are_told() {
    let waits =
        TaskSpec { dependency_timeout: Some(Duration::from_secs(60)), ..after("b", &["a"]) };
    let mut bench = Bench::new(vec![task("a"), waits]);
    let submission = SubmitBody { at: Some(at(5000)), ..SubmitBody::default() };
    let b = bench.submit("b", submission);
    let told = of(&mut bench, &b);
    assert_eq!(told.reason, Some(Reason::WaitingTrigger));
    assert_eq!((told.not_before, told.dependency_deadline), (Some(at(5000)), Some(at(65_000))));
}

#[test]
fn a_daemon_that_stops_is_told() {
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    bench.specs(vec![task("a")]);
    bench.run("a");
    let waits = bench.run("a");
    bench.event(Event::Stop(StopMode::Drain));
    let told = of(&mut bench, &waits);
    assert_eq!(told.daemon, [crate::model::explain::DaemonHold::Stopping]);
}

#[test]
fn a_task_tells_its_next_fire_and_what_a_pause_makes_of_it() {
    let mut bench = Bench::new(vec![TaskSpec { triggers: vec![cron("0 2 * * *")], ..task("a") }]);
    let told = of_task(&mut bench, "a", None);
    assert_eq!((told.status, told.open), (TaskStatus::Active, 0));
    assert_eq!(told.next_fire_time, Some(at(2 * 3_600_000)));
    assert_eq!((told.next_cycle.as_deref(), told.next_note), (Some("2026-11-30"), None));
    bench.pause(Target::Task(id("a"))).unwrap();
    let told = of_task(&mut bench, "a", None);
    assert_eq!(told.status, TaskStatus::Paused);
    assert_eq!(told.next_note.as_deref(), Some("makes nothing: the task is paused"));
    assert_eq!(told.pauses.len(), 1);
}

#[test]
fn a_time_is_one_of_a_tasks_fires_or_stands_between_two() {
    let hour = every(3600, Misfire::RunOnce, Overlap::Skip);
    let mut bench =
        Bench::new(vec![TaskSpec { triggers: vec![cron("0 2 * * *"), hour], ..task("a") }]);
    let asked = of_task(&mut bench, "a", Some(at(2 * 3_600_000))).at.unwrap();
    assert_eq!(asked.triggers, ["cron:0 2 * * *", "every:3600000"]);
    assert!(asked.to_come);
    bench.pass(4 * 3_600_000);
    let asked = of_task(&mut bench, "a", Some(at(2 * 3_600_000 + 1))).at.unwrap();
    assert_eq!(asked.triggers, Vec::<String>::new());
    assert_eq!((asked.before, asked.after), (Some(at(2 * 3_600_000)), Some(at(3 * 3_600_000))));
    assert!(!asked.to_come);
    assert_eq!(asked.defined_at, at(0));
}

#[test]
fn a_task_that_is_not_there_is_refused_with_the_one_that_may_be_meant() {
    let mut bench = Bench::new(vec![task("settle")]);
    let refusal = bench.ask(Request::ExplainTask { task: id("setle"), at: None }).0.unwrap_err();
    assert!(refusal.detail.contains("did you mean settle.v1"), "{}", refusal.detail);
}

#[test]
fn the_graph_has_every_edge_and_what_no_file_defines() {
    let ends = on(TriggerKind::Task(TaskTrigger {
        task_id: id("a"),
        states: vec![InstanceState::Failed],
    }));
    let alarm = TaskSpec { triggers: vec![ends], ..task("alarm") };
    let weak = TaskSpec { depends_on: vec![edge("gone", Strength::Weak)], ..task("b") };
    let mut bench = Bench::bare(settings(&[("local", 1)], &[("default", 1, None)]));
    let files = [task("a"), alarm, weak].map(|s| file(&format!("{}.yaml", s.task_id), vec![s]));
    bench.read(full(files.to_vec()));
    let Ok(Reply::Graph(view)) = bench.ask(Request::Graph).0 else { panic!("no graph") };
    let nodes: Vec<(&str, Option<TaskStatus>)> =
        view.nodes.iter().map(|n| (n.id.as_str(), n.status)).collect();
    let expected = [
        ("a.v1", Some(TaskStatus::Active)),
        ("alarm.v1", Some(TaskStatus::Active)),
        ("b.v1", Some(TaskStatus::Unresolved)),
        ("gone.v1", None),
    ];
    assert_eq!(nodes, expected);
    let edge = |view: &GraphView, to: &str| {
        let edge = view.edges.iter().find(|e| e.to == to).expect("an edge");
        (edge.from.clone(), edge.kind, edge.strength, edge.states.clone())
    };
    let trigger = ("a.v1".to_owned(), GraphEdgeKind::Trigger, None, vec![Failed]);
    assert_eq!(edge(&view, "alarm.v1"), trigger);
    let dependency =
        ("gone.v1".to_owned(), GraphEdgeKind::Dependency, Some(Strength::Weak), Vec::new());
    assert_eq!(edge(&view, "b.v1"), dependency);
}
