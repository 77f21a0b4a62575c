//! Design, 'Cancel'; requirement B4.

use std::time::Duration;

use super::bench::Bench;
use super::build::{after, id, on, retry, task};
use crate::model::command::Command;
use crate::model::event::Outcome;
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Failed, Pending, Running, Succeeded, Timeout,
};
use crate::model::instance::Reason;
use crate::model::record::{FireOutcome, Record, Target};
use crate::model::spec::{TaskSpec, TaskTrigger, TriggerKind};

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
