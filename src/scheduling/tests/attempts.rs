//! Design, 'Attempts' and 'Executors'; requirements B3, F1, F2, F4.

use std::time::Duration;

use super::bench::Bench;
use super::build::{retry, task};
use crate::limits;
use crate::model::command::Command;
use crate::model::event::Event;
use crate::model::event::{AttemptRef, Finished, Hello, Outcome, Report};
use crate::model::id::Lease;
use crate::model::instance::InstanceState::{
    Cancelled, Failed, Ready, Running, Succeeded, Timeout,
};
use crate::model::instance::Reason;
use crate::model::spec::TaskSpec;

const WAIT: Duration = Duration::from_secs(10);

fn tried(max_attempts: u32) -> TaskSpec {
    TaskSpec { retry: retry(max_attempts, WAIT), ..task("a") }
}

fn once() -> TaskSpec {
    TaskSpec { idempotent: false, ..task("a") }
}

#[test]
fn max_attempts_counts_the_first_and_the_wait_is_the_interval() {
    let mut bench = Bench::new(vec![tried(3)]);
    let a = bench.run("a");
    for attempt in 1..3 {
        bench.exits(&a, 1);
        assert_eq!(bench.standing(&a), (Failed, Some(Reason::RetryWait)), "{attempt}");
        assert_eq!(bench.instance(&a).next_retry_at, Some(bench.now.plus(WAIT)));
        bench.pass(9_999);
        assert_eq!(bench.instance(&a).state, Failed, "{attempt}");
        bench.pass(1);
        assert_eq!((bench.instance(&a).state, bench.instance(&a).attempt), (Running, attempt + 1));
    }
    bench.exits(&a, 1);
    assert_eq!(bench.standing(&a), (Failed, None));
    assert_eq!(bench.instance(&a).next_retry_at, None);
}

#[test]
fn a_waiting_retry_survives_a_restart() {
    let mut bench = Bench::new(vec![tried(2)]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    bench.restart(3_000, vec![tried(2)]);
    let hello = bench.hello();
    bench.event(Event::ExecutorConnected(hello));
    bench.pass(6_999);
    assert_eq!(bench.instance(&a).state, Failed);
    bench.pass(1);
    assert_eq!(bench.instance(&a).state, Running);
}

#[test]
fn a_persons_retry_grants_a_fresh_max_attempts() {
    let mut bench = Bench::new(vec![tried(2)]);
    let a = bench.run("a");
    for _ in 0..2 {
        bench.exits(&a, 1);
        bench.pass(10_000);
    }
    assert_eq!(bench.instance(&a).state, Failed);
    bench.retry(&a).unwrap();
    assert_eq!((bench.instance(&a).state, bench.instance(&a).attempt), (Running, 3));
    bench.exits(&a, 1);
    assert_eq!(bench.instance(&a).next_retry_at, Some(bench.now.plus(WAIT)), "one more is left");
    bench.pass(10_000);
    bench.exits(&a, 1);
    assert_eq!((bench.standing(&a), bench.instance(&a).attempt), ((Failed, None), 4));
}

#[test]
fn only_a_finally_failed_one_can_be_tried_again() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    assert!(bench.retry(&a).is_err(), "RUNNING");
    bench.exits(&a, 0);
    assert!(bench.retry(&a).is_err(), "SUCCEEDED");
    let b = bench.run("a");
    bench.cancel(&b).0.unwrap();
    bench.ends(&b, Outcome::Signalled { signal: 15, name: "TERM".to_owned() }, true);
    assert_eq!(bench.instance(&b).state, Cancelled);
    assert!(bench.retry(&b).is_err(), "CANCELLED");
}

#[test]
fn a_retry_that_was_asked_with_an_outdated_row_changes_nothing() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.exits(&a, 1);
    let outdated = bench.instance(&a).clone();
    bench.retry(&a).unwrap();
    bench.exits(&a, 0);
    let stored = Some(Box::new(outdated));
    let again = crate::model::request::Request::Retry {
        instance: a.clone(),
        same_revision: false,
        stored,
        below: None,
    };
    assert!(bench.ask(again).0.is_err());
    assert_eq!(bench.instance(&a).state, Succeeded);
}

#[test]
fn a_timeout_is_tried_again_if_the_list_has_it() {
    for (list, again) in [(None, true), (Some("TIMEOUT"), true), (Some("EXIT_*"), false)] {
        let mut spec = tried(2);
        spec.retry.retry_on = list.map(|code| vec![code.to_owned()]);
        let mut bench = Bench::new(vec![spec]);
        let a = bench.run("a");
        bench.ends(&a, Outcome::TimedOut, false);
        assert_eq!(bench.instance(&a).state, Timeout, "{list:?}");
        assert_eq!(bench.instance(&a).next_retry_at.is_some(), again, "{list:?}");
        assert_eq!(bench.instance(&a).error_code.as_deref(), Some("TIMEOUT"));
    }
}

#[test]
fn a_lost_attempt_of_an_idempotent_task_is_queued_again_at_most_three_times() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    for n in 1..=limits::REQUEUES_MAX {
        let lost = vec![bench.attempt(&a)];
        bench.executor_restarts(lost);
        let i = bench.instance(&a);
        assert_eq!((i.state, i.attempt, i.faults), (Running, n + 1, 0), "not a fault of its own");
    }
    let lost = vec![bench.attempt(&a)];
    bench.executor_restarts(lost);
    assert_eq!(bench.standing(&a), (Failed, None));
    assert_eq!(bench.instance(&a).error_code.as_deref(), Some("EXECUTOR_LOST"));
}

#[test]
fn a_lost_attempt_of_a_task_that_is_not_idempotent_waits_for_a_person() {
    let mut bench = Bench::new(vec![once()]);
    let a = bench.run("a");
    bench.started(&a);
    let lost = vec![bench.attempt(&a)];
    let commands = bench.executor_restarts(lost.clone());
    assert_eq!(bench.standing(&a), (Failed, None));
    assert_eq!(bench.instance(&a).error_code.as_deref(), Some("EXECUTOR_LOST"));
    let acknowledged =
        commands.iter().any(|c| matches!(c, Command::Acknowledge { of, .. } if *of == lost[0]));
    assert!(acknowledged);
    bench.retry(&a).unwrap();
    assert_eq!(bench.instance(&a).attempt, 2);
}

#[test]
fn never_accepted_in_this_boot_is_sent_again_under_the_same_lease() {
    let mut bench = Bench::new(vec![once()]);
    let a = bench.run("a");
    let of = bench.attempt(&a);
    let commands = bench.executor_restarts(Vec::new());
    let sent: Vec<&AttemptRef> = commands
        .iter()
        .filter_map(|c| if let Command::Run(d) = c { Some(&d.of) } else { None })
        .collect();
    assert_eq!(sent, [&of]);
    assert_eq!(bench.instance(&a).state, Running);
}

#[test]
fn not_accepted_cannot_be_concluded_in_another_boot() {
    let mut bench = Bench::new(vec![once()]);
    let a = bench.run("a");
    bench.machine_restarts();
    assert_eq!(bench.standing(&a), (Failed, None));
    assert_eq!(bench.instance(&a).error_code.as_deref(), Some("EXECUTOR_LOST"));
}

#[test]
fn an_attempt_that_nobody_wants_any_more_is_ended() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    let of = bench.attempt(&a);
    bench.exits(&a, 0);
    let hello = Hello { running: vec![of.clone()], ..bench.hello() };
    let commands = bench.event(Event::ExecutorConnected(hello));
    assert!(
        commands.iter().any(|c| matches!(c, Command::Kill { of: killed, .. } if *killed == of))
    );
    assert_eq!(bench.instance(&a).state, Succeeded);
}

#[test]
fn a_report_of_another_attempt_or_lease_changes_nothing_and_is_acknowledged() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    let good = bench.end(&a, Outcome::Exited { code: 0 }, false);
    let before = bench.log.len();
    for (attempt, lease) in [(0, 1), (1, 0), (1, 1)] {
        let of = AttemptRef {
            attempt: good.of.attempt + attempt,
            lease: Lease(good.of.lease.0 + lease),
            ..good.of.clone()
        };
        let stale = Finished { of: of.clone(), ..good.clone() };
        let commands = bench.report(Report::Finished(Box::new(stale)));
        assert!(matches!(&commands[..], [Command::Acknowledge { of: told, .. }] if *told == of));
    }
    assert_eq!((bench.log.len(), bench.instance(&a).state), (before, Running));
}

#[test]
fn a_start_without_resources_is_tried_again_whatever_max_attempts_says() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    let outcome = Outcome::SpawnFailed { message: "fork: EAGAIN".to_owned(), transient: true };
    for seconds in [1, 2, 4] {
        bench.ends(&a, outcome.clone(), false);
        assert_eq!(bench.standing(&a), (Failed, Some(Reason::RetryWait)));
        bench.pass(seconds * 1000 - 1);
        assert_eq!(bench.instance(&a).state, Failed, "{seconds}");
        bench.pass(1);
        assert_eq!(bench.instance(&a).state, Running, "{seconds}");
    }
    let never = Outcome::SpawnFailed { message: "exec: ENOENT".to_owned(), transient: false };
    bench.ends(&a, never, false);
    assert_eq!(bench.standing(&a), (Failed, None));
    assert_ne!(bench.instance(&a).state, Ready);
}
