//! Design, 'Cancel'; requirement B4.

use std::time::Duration;

use super::bench::Bench;
use super::build::{after, edge, id, on, retry, task};
use crate::model::command::Command;
use crate::model::event::{Event, Hello, Outcome};
use crate::model::id::{ExecutorId, InstanceId};
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded, Timeout,
};
use crate::model::instance::{InstanceState, Reason};
use crate::model::record::{FireOutcome, Record, Target};
use crate::model::request::Request;
use crate::model::spec::{OnDependencyTimeout, Strength, TaskSpec, TaskTrigger, TriggerKind};

const BY_USER: Option<Reason> = Some(Reason::CancelledByUser);

fn term() -> Outcome {
    Outcome::Signalled { signal: 15, name: "TERM".to_owned() }
}

fn tried() -> TaskSpec {
    TaskSpec { retry: retry(2, Duration::from_secs(10)), ..task("a") }
}

#[test]
fn what_waits_is_cancelled_at_once() {
    let mut bench = Bench::new(vec![tried(), after("b", &["a"])]);
    let a = bench.run("a");
    let b = bench.of("b")[0].instance_id.clone();
    assert_eq!(bench.instance(&b).state, Pending);
    bench.cancel(&b).0.unwrap();
    assert_eq!(bench.standing(&b), (Cancelled, BY_USER));
    bench.exits(&a, 1);
    assert_eq!(bench.standing(&a), (Failed, Some(Reason::RetryWait)));
    bench.cancel(&a).0.unwrap();
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER));
    bench.pause(Target::All).unwrap();
    let held = bench.run("a");
    bench.cancel(&held).0.unwrap();
    assert_eq!(bench.standing(&held), (Cancelled, BY_USER), "READY");
    let blocked = bench.run("b");
    assert_eq!(bench.instance(&blocked).state, Blocked);
    bench.cancel(&blocked).0.unwrap();
    assert_eq!(bench.standing(&blocked), (Cancelled, BY_USER));
}

#[test]
fn a_running_one_is_cancelled_once_its_processes_are_gone() {
    let mut bench = Bench::new(vec![tried()]);
    let a = bench.run("a");
    let (answer, commands) = bench.cancel(&a);
    assert!(answer.is_ok() && matches!(commands[..], [Command::Kill { .. }]));
    assert_eq!(bench.standing(&a), (Running, Some(Reason::Cancelling)));
    assert!(bench.cancel(&a).1.is_empty(), "asked once is enough");
    bench.ends(&a, term(), true);
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER));
    let moves: Vec<(String, Option<String>)> = bench
        .log
        .iter()
        .filter_map(|r| {
            let Record::Moved { to, error_code, .. } = &r.what else { return None };
            Some((to.to_string(), error_code.clone()))
        })
        .collect();
    let code = Some("CANCEL_REQUESTED".to_owned());
    assert_eq!(moves[2..], [("FAILED".to_owned(), code), ("CANCELLED".to_owned(), None)]);
}

/// A cancelled attempt is FAILED and then CANCELLED in one turn: one end, told once to those that
/// listen, also where they refuse it.
#[test]
fn an_end_by_cancel_is_one_end_for_those_that_listen_to_it() {
    let on_end = TaskTrigger { task_id: id("a"), states: vec![Cancelled] };
    let listener =
        TaskSpec { triggers: vec![on(TriggerKind::Task(on_end))], enabled: false, ..task("b") };
    let mut bench = Bench::new(vec![task("a"), listener]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.ends(&a, term(), true);
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER));
    assert_eq!(bench.fires("b"), [(FireOutcome::Disabled, 1)]);
}

#[test]
fn after_term_the_exit_status_does_not_count() {
    for code in [0, 1] {
        let mut bench = Bench::new(vec![tried()]);
        let a = bench.run("a");
        bench.cancel(&a).0.unwrap();
        bench.ends(&a, Outcome::Exited { code }, true);
        assert_eq!(bench.standing(&a), (Cancelled, BY_USER), "{code}");
    }
}

#[test]
fn a_result_that_crossed_the_cancel_stands() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.exits(&a, 0);
    assert_eq!(bench.standing(&a), (Succeeded, None));
    // As if the cancel had come after the end: a finally failed one stays as it is.
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.exits(&a, 1);
    assert_eq!(bench.standing(&a), (Failed, None));
    // As if the cancel had come while it waited for its retry.
    let mut bench = Bench::new(vec![tried()]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.exits(&a, 1);
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER));
}

#[test]
fn a_timeout_that_crossed_the_cancel_can_be_tried_again_and_cancelled_anew() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.ends(&a, Outcome::TimedOut, true);
    assert_eq!(bench.standing(&a), (Timeout, None));
    bench.retry(&a).unwrap();
    assert_eq!(bench.standing(&a), (Running, None));
    let (_, commands) = bench.cancel(&a);
    assert!(matches!(commands[..], [Command::Kill { .. }]), "{commands:?}");
}

#[test]
fn cancelling_what_is_final_is_a_no_op() {
    let mut bench = Bench::new(vec![task("a")]);
    for (code, state) in [(0, Succeeded), (1, Failed)] {
        let a = bench.run("a");
        bench.exits(&a, code);
        let before = bench.log.len();
        bench.cancel(&a).0.unwrap();
        assert_eq!((bench.instance(&a).state, bench.log.len()), (state, before));
    }
}

#[test]
fn one_being_cancelled_whose_executor_never_had_it_is_cancelled_at_the_hello() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.executor_restarts(Vec::new());
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER));
}

/// A dependent of one that runs, PENDING, and that one.
fn pending(bench: &mut Bench) -> (InstanceId, InstanceId) {
    let up = bench.run("up");
    (bench.of("b")[0].instance_id.clone(), up)
}

fn ready(bench: &mut Bench) -> InstanceId {
    bench.pause(Target::All).unwrap();
    bench.run("a")
}

/// One of `a`, which is tried twice, or of `up`, which is not, after its first attempt.
fn after_an_attempt(bench: &mut Bench, name: &str, outcome: Outcome) -> InstanceId {
    let id = bench.run(name);
    bench.ends(&id, outcome, false);
    id
}

/// Where an instance is, how it comes there, and where a cancel leaves it.
type Case = (InstanceState, fn(&mut Bench) -> InstanceId, InstanceState);

const EXITS_1: Outcome = Outcome::Exited { code: 1 };

const CASES: [Case; 10] = [
    (Pending, |bench| pending(bench).0, Cancelled),
    (
        Blocked,
        |bench| {
            let (id, up) = pending(bench);
            bench.exits(&up, 1);
            id
        },
        Cancelled,
    ),
    (Ready, ready, Cancelled),
    (Running, |bench| bench.run("a"), Running),
    (Succeeded, |bench| after_an_attempt(bench, "a", Outcome::Exited { code: 0 }), Succeeded),
    // Waiting for a retry, and for good.
    (Failed, |bench| after_an_attempt(bench, "a", EXITS_1), Cancelled),
    (Failed, |bench| after_an_attempt(bench, "up", EXITS_1), Failed),
    (Timeout, |bench| after_an_attempt(bench, "a", Outcome::TimedOut), Cancelled),
    (Timeout, |bench| after_an_attempt(bench, "up", Outcome::TimedOut), Timeout),
    (
        Cancelled,
        |bench| {
            let id = ready(bench);
            bench.cancel(&id).0.unwrap();
            id
        },
        Cancelled,
    ),
];

#[test]
fn a_cancel_of_each_of_the_eight_states_may_be_repeated() {
    for (from, make, to) in CASES {
        let mut bench = Bench::new(vec![tried(), task("up"), after("b", &["up"])]);
        let id = make(&mut bench);
        assert_eq!(bench.instance(&id).state, from);
        bench.cancel(&id).0.unwrap();
        assert_eq!(bench.instance(&id).state, to, "from {from}");
        let before = bench.log.len();
        let (answer, commands) = bench.cancel(&id);
        assert!(answer.is_ok() && commands.is_empty(), "{from}: {commands:?}");
        assert_eq!(bench.log.len(), before, "{from}: the second changes nothing");
    }
}

#[test]
fn whoever_cancels_is_named_also_when_the_processes_go_later() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.restart(1_000, vec![task("a")]);
    let hello = Hello { running: vec![bench.attempt(&a)], ..bench.hello() };
    bench.event(Event::ExecutorConnected(hello));
    bench.ends(&a, term(), true);
    assert_eq!(bench.instance(&a).message.as_deref(), Some("cancelled by uid 1000"));
    let last = bench.log.iter().rev().find(|r| matches!(r.what, Record::Moved { .. })).unwrap();
    assert!(matches!(last.what, Record::Moved { to: Cancelled, .. }));
    assert_eq!((last.uid, last.at), (Some(1000), bench.now));
}

#[test]
fn a_result_that_crossed_the_cancel_is_nobodys_doing() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.exits(&a, 0);
    let last = bench.log.iter().rev().find(|r| matches!(r.what, Record::Moved { .. })).unwrap();
    assert_eq!((last.uid, &bench.instance(&a).message), (None, &None));
}

#[test]
fn a_cancel_while_its_executor_is_away_is_carried_out_at_the_hello() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    let of = bench.attempt(&a);
    let executor = ExecutorId::from("local");
    bench.event(Event::ExecutorLost { executor, incarnation: None, why: "silent".to_owned() });
    bench.cancel(&a).0.unwrap();
    assert_eq!(bench.standing(&a), (Running, Some(Reason::Cancelling)));
    let hello = Hello { running: vec![of.clone()], ..bench.hello() };
    let commands = bench.event(Event::ExecutorConnected(hello));
    assert!(
        commands.iter().any(|c| matches!(c, Command::Kill { of: killed, .. } if *killed == of))
    );
    // And if it never comes back but its next process does:
    bench.executor_restarts(vec![of]);
    assert_eq!(bench.standing(&a), (Cancelled, BY_USER), "and not queued again");
}

#[test]
fn what_is_held_or_runs_degraded_is_cancelled_like_any_other() {
    let mut bench = Bench::new(vec![task("a")]);
    bench.pause(Target::All).unwrap();
    let held = bench.run("a");
    bench.pause(Target::Instance(held.clone())).unwrap();
    bench.cancel(&held).0.unwrap();
    assert_eq!(
        (bench.standing(&held), &bench.instance(&held).paused),
        ((Cancelled, BY_USER), &None)
    );
    let hasty = TaskSpec {
        dependency_timeout: Some(Duration::from_secs(1)),
        on_dependency_timeout: OnDependencyTimeout::RunDegraded,
        ..after("b", &["a"])
    };
    let mut bench = Bench::new(vec![task("a"), hasty]);
    bench.run("a");
    bench.pass(1_000);
    let b = bench.of("b")[0].instance_id.clone();
    assert!(bench.instance(&b).degraded && bench.instance(&b).state == Running);
    bench.cancel(&b).0.unwrap();
    bench.ends(&b, term(), true);
    assert_eq!(bench.standing(&b), (Cancelled, BY_USER));
}

fn cancel_all_below(bench: &mut Bench, of: &InstanceId) {
    let stored = Some(Box::new(bench.instance(of).clone()));
    let cancel = Request::Cancel { instance: of.clone(), downstream: true, stored };
    bench.ask(cancel).0.unwrap();
}

#[test]
fn what_waits_below_goes_once_by_whatever_way_it_is_reached() {
    let mut bench = Bench::new(vec![
        task("a"),
        after("b", &["a"]),
        after("c", &["a"]),
        after("d", &["b", "c"]),
    ]);
    let a = bench.run("a");
    cancel_all_below(&mut bench, &a);
    assert_eq!(bench.standing(&a), (Running, Some(Reason::Cancelling)));
    for name in ["b", "c", "d"] {
        let i = bench.of(name)[0];
        assert_eq!((i.state, i.reason), (Cancelled, BY_USER), "{name}");
        let moves = bench.log.iter().filter(
            |r| matches!(&r.what, Record::Moved { instance_id, .. } if *instance_id == i.instance_id),
        );
        assert_eq!(moves.count(), 1, "{name} is not blocked first");
    }
}

#[test]
fn what_waits_below_goes_also_if_the_first_is_final() {
    for code in [0, 1] {
        let weak = TaskSpec {
            depends_on: vec![edge("a", Strength::Weak), edge("x", Strength::Strong)],
            ..task("b")
        };
        let mut bench = Bench::new(vec![task("a"), task("x"), weak, after("c", &["b"])]);
        let a = bench.run("a");
        bench.exits(&a, code);
        assert_eq!(bench.states("b"), [Pending], "it waits for X still");
        let state = bench.instance(&a).state;
        cancel_all_below(&mut bench, &a);
        assert_eq!(bench.instance(&a).state, state, "a final one stays as it is");
        assert_eq!((bench.states("b"), bench.states("c")), (vec![Cancelled], vec![Cancelled]));
    }
}

#[test]
fn what_waits_below_a_failed_one_below_goes_too_and_nothing_beyond_one_that_runs() {
    let weak = |name, on| TaskSpec { depends_on: vec![edge(on, Strength::Weak)], ..task(name) };
    let specs =
        vec![task("a"), weak("b", "a"), after("c", &["b"]), weak("r", "a"), after("d", &["r"])];
    let mut bench = Bench::new(specs);
    let a = bench.run("a");
    bench.exits(&a, 1);
    let b = bench.of("b")[0].instance_id.clone();
    bench.exits(&b, 1);
    assert_eq!((bench.states("c"), bench.states("r")), (vec![Blocked], vec![Running]));
    cancel_all_below(&mut bench, &a);
    assert_eq!((bench.states("b"), bench.states("c")), (vec![Failed], vec![Cancelled]));
    assert_eq!((bench.states("r"), bench.states("d")), (vec![Running], vec![Pending]));
}

/// Contract, 'Fire outcomes': one happening has one row, though a cancel of what runs is two moves.
#[test]
fn the_end_of_what_was_cancelled_while_it_ran_is_told_once() {
    let trigger = crate::model::spec::TaskTrigger {
        task_id: super::build::id("a"),
        states: vec![InstanceState::Cancelled],
    };
    let listener = TaskSpec {
        triggers: vec![super::build::on(crate::model::spec::TriggerKind::Task(trigger))],
        enabled: false,
        ..task("listener")
    };
    let mut bench = Bench::new(vec![task("a"), listener]);
    let a = bench.run("a");
    bench.cancel(&a).0.unwrap();
    bench.ends(&a, Outcome::Exited { code: 0 }, true);
    assert_eq!(bench.instance(&a).state, InstanceState::Cancelled);
    assert_eq!(bench.fires("listener"), [(crate::model::record::FireOutcome::Disabled, 1)]);
}
