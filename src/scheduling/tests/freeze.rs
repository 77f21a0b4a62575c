//! Freezing what runs: design, 'Pause, cancel, retry'.

use std::time::Duration;

use super::bench::Bench;
use super::build::{id, retry, task};
use crate::model::command::Command;
use crate::model::event::{Event, Hello, Outcome};
use crate::model::id::{ExecutorId, InstanceId};
use crate::model::instance::InstanceState::{Cancelled, Failed, Ready, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::record::Target;
use crate::model::request::{Answer, RejectionCode, Reply, Request, StopMode};
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;

const FROZEN: Option<Reason> = Some(Reason::Frozen);

fn freeze_until(
    bench: &mut Bench,
    of: &InstanceId,
    until: Option<Timestamp>,
) -> (Answer, Vec<Command>) {
    let reason = Some("look at it".to_owned());
    bench.ask(Request::Freeze { instance: of.clone(), reason, until })
}

fn freeze(bench: &mut Bench, of: &InstanceId) -> (Answer, Vec<Command>) {
    freeze_until(bench, of, None)
}

fn resume(bench: &mut Bench, of: &InstanceId) -> Vec<Command> {
    let (answer, commands) = bench.ask(Request::Resume { target: Target::Instance(of.clone()) });
    answer.unwrap();
    commands
}

fn terminated() -> Outcome {
    Outcome::Signalled { signal: 15, name: "TERM".to_owned() }
}

fn killed() -> Outcome {
    Outcome::Signalled { signal: 9, name: "KILL".to_owned() }
}

#[test]
fn a_frozen_one_keeps_its_slot_and_goes_on_when_it_is_resumed() {
    let one_at_a_time = TaskSpec { max_concurrent: Some(1), ..task("a") };
    let mut bench = Bench::new(vec![one_at_a_time]);
    let a = bench.run("a");
    let (answer, commands) = freeze(&mut bench, &a);
    answer.unwrap();
    let of = bench.attempt(&a);
    assert!(matches!(&commands[..], [Command::Freeze { of: frozen, .. }] if *frozen == of));
    assert_eq!(bench.standing(&a), (Running, FROZEN));
    let paused = bench.instance(&a).paused.clone().unwrap();
    assert_eq!((paused.uid, paused.reason.as_deref()), (1000, Some("look at it")));
    let waits = bench.run("a");
    assert_eq!(bench.instance(&waits).state, Ready, "the slot is taken");
    bench.pass(5_000);
    let commands = resume(&mut bench, &a);
    assert!(matches!(&commands[..], [Command::Thaw { of: thawed, .. }] if *thawed == of));
    assert_eq!((bench.standing(&a), &bench.instance(&a).paused), ((Running, None), &None));
    freeze(&mut bench, &a).0.unwrap();
    bench.pass(2_000);
    resume(&mut bench, &a);
    bench.pass(1_000);
    bench.exits(&a, 0);
    assert_eq!(bench.instance(&a).attempts[0].frozen_ms, Some(7_000));
    assert_eq!(bench.standing(&a), (Succeeded, None));
    assert_eq!(bench.instance(&waits).state, Running);
    assert!(resume(&mut bench, &waits).is_empty(), "it is not frozen");
}

#[test]
fn frozen_again_changes_why_and_for_how_long_only() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    freeze(&mut bench, &a).0.unwrap();
    let since = bench.now;
    bench.pass(3_000);
    let until = Some(bench.now.plus(Duration::from_secs(1)));
    let reason = Some("longer".to_owned());
    let target = Target::Instance(a.clone());
    let (answer, commands) = bench.ask(Request::Pause { target, reason, until });
    answer.unwrap();
    assert!(commands.is_empty(), "it is stopped already: {commands:?}");
    let paused = bench.instance(&a).paused.clone().unwrap();
    assert_eq!((paused.since, paused.until), (since, until));
    assert_eq!(paused.reason.as_deref(), Some("longer"));
    bench.pass(1_000);
    assert_eq!((bench.standing(&a), &bench.instance(&a).paused), ((Running, None), &None));
    assert_eq!(bench.instance(&a).attempts[0].frozen_ms, Some(4_000));
}

#[test]
fn what_does_not_run_is_only_held() {
    let mut bench = Bench::new(vec![task("a")]);
    bench.pause(Target::All).unwrap();
    let a = bench.run("a");
    let (answer, commands) = freeze(&mut bench, &a);
    answer.unwrap();
    assert!(commands.is_empty());
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    assert_eq!(bench.instance(&a).state, Ready);
    assert!(bench.instance(&a).paused.is_some());
    let commands = resume(&mut bench, &a);
    assert!(matches!(&commands[..], [Command::Run(_)]), "{commands:?}");
}

#[test]
fn a_freeze_outlives_a_restart_and_ends_at_its_time() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    let until = Some(bench.now.plus(Duration::from_secs(10)));
    freeze_until(&mut bench, &a, until).0.unwrap();
    let of = bench.attempt(&a);
    bench.restart(4_000, vec![task("a")]);
    assert_eq!(bench.standing(&a), (Running, FROZEN));
    let frozen = Some(vec![of.clone()]);
    let hello = Hello { running: vec![of.clone()], frozen, ..bench.hello() };
    let commands = bench.event(Event::ExecutorConnected(hello));
    let orders = |c: &&Command| matches!(c, Command::Freeze { .. } | Command::Thaw { .. });
    assert_eq!(commands.iter().filter(orders).count(), 0, "it is as it should be");
    bench.now = bench.now.plus(Duration::from_secs(6));
    let commands = bench.event(Event::Tick);
    assert!(matches!(&commands[..], [Command::Thaw { of: thawed, .. }] if *thawed == of));
    assert_eq!(bench.standing(&a), (Running, None));
}

#[test]
fn an_executor_that_missed_an_order_hears_it_at_its_hello() {
    let mut bench = Bench::new(vec![task("a"), task("b")]);
    let (a, b) = (bench.run("a"), bench.run("b"));
    freeze(&mut bench, &a).0.unwrap();
    freeze(&mut bench, &b).0.unwrap();
    resume(&mut bench, &b);
    let (of_a, of_b) = (bench.attempt(&a), bench.attempt(&b));
    // Neither the freeze of A nor the end of that of B arrived.
    let running = vec![of_a.clone(), of_b.clone()];
    let hello = Hello { running, frozen: Some(vec![of_b.clone()]), ..bench.hello() };
    let commands = bench.event(Event::ExecutorConnected(hello));
    assert!(commands.iter().any(|c| matches!(c, Command::Freeze { of, .. } if *of == of_a)));
    assert!(commands.iter().any(|c| matches!(c, Command::Thaw { of, .. } if *of == of_b)));
    // A was never accepted: it is sent again, and frozen again.
    let hello = Hello { running: vec![of_b], ..bench.hello() };
    let commands = bench.event(Event::ExecutorConnected(hello));
    let run = |c: &Command| matches!(c, Command::Run(dispatch) if dispatch.of == of_a);
    let frozen = |c: &Command| matches!(c, Command::Freeze { of, .. } if *of == of_a);
    let (run, frozen) = (commands.iter().position(run), commands.iter().position(frozen));
    assert!(run.is_some() && run < frozen, "{commands:?}");
}

#[test]
fn nothing_is_frozen_that_no_executor_would_stop() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    let running = vec![bench.attempt(&a)];
    let old = Hello { running: running.clone(), frozen: None, ..bench.hello() };
    bench.event(Event::ExecutorConnected(old));
    let refused = freeze(&mut bench, &a).0.unwrap_err();
    assert_eq!(refused.code, RejectionCode::Conflict);
    assert!(refused.detail.contains("older schedd"), "{}", refused.detail);
    let executor = ExecutorId::from("local");
    bench.event(Event::ExecutorLost { executor, incarnation: None, why: "gone".to_owned() });
    let refused = freeze(&mut bench, &a).0.unwrap_err();
    assert!(refused.detail.contains("not connected"), "{}", refused.detail);
    let hello = Hello { running, ..bench.hello() };
    bench.event(Event::ExecutorConnected(hello));
    bench.cancel(&a).0.unwrap();
    let refused = freeze(&mut bench, &a).0.unwrap_err();
    assert!(refused.detail.contains("being ended"), "{}", refused.detail);
    assert_eq!(bench.standing(&a), (Running, Some(Reason::Cancelling)));
    bench.ends(&a, terminated(), true);
    assert!(freeze(&mut bench, &a).0.is_err(), "it has ended");
}

#[test]
fn a_cancel_ends_the_freeze_and_the_instance() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    freeze(&mut bench, &a).0.unwrap();
    bench.pass(3_000);
    let (answer, commands) = bench.cancel(&a);
    answer.unwrap();
    assert!(matches!(&commands[..], [Command::Kill { .. }]), "the executor lets it go on to end");
    assert_eq!(bench.standing(&a), (Running, Some(Reason::Cancelling)));
    assert_eq!(bench.instance(&a).paused, None);
    assert!(resume(&mut bench, &a).is_empty());
    assert_eq!(bench.standing(&a), (Running, Some(Reason::Cancelling)), "a resume undoes nothing");
    bench.ends(&a, terminated(), true);
    assert_eq!(bench.standing(&a), (Cancelled, Some(Reason::CancelledByUser)));
    assert_eq!(bench.instance(&a).attempts[0].frozen_ms, Some(3_000));
}

#[test]
fn one_that_is_killed_from_outside_ends_and_its_retry_waits_for_the_resume() {
    let tried = TaskSpec { retry: retry(2, Duration::from_secs(10)), ..task("a") };
    let mut bench = Bench::new(vec![tried]);
    let a = bench.run("a");
    freeze(&mut bench, &a).0.unwrap();
    bench.pass(1_000);
    bench.ends(&a, killed(), false);
    assert_eq!(bench.standing(&a), (Failed, Some(Reason::RetryWait)));
    assert_eq!(bench.instance(&a).attempts[0].frozen_ms, Some(1_000));
    bench.pass(10_000);
    assert_eq!(bench.instance(&a).state, Ready);
    let reason = match bench.ask(Request::Live(vec![a.clone()])).0 {
        Ok(Reply::Live(live)) => live[0].reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason, Some(Reason::Paused));
    resume(&mut bench, &a);
    assert_eq!(bench.instance(&a).state, Running);
    freeze(&mut bench, &a).0.unwrap();
    bench.ends(&a, killed(), false);
    assert_eq!((bench.standing(&a), &bench.instance(&a).paused), ((Failed, None), &None));
}

#[test]
fn one_whose_executor_is_lost_waits_held() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    freeze(&mut bench, &a).0.unwrap();
    let lost = vec![bench.attempt(&a)];
    bench.executor_restarts(lost);
    assert_eq!(bench.instance(&a).state, Ready);
    assert!(bench.instance(&a).paused.is_some());
    resume(&mut bench, &a);
    assert_eq!((bench.instance(&a).state, bench.instance(&a).attempt), (Running, 2));
}

#[test]
fn a_drain_does_not_wait_for_a_frozen_one_and_a_stop_that_cancels_ends_it() {
    let mut bench = Bench::new(vec![task("a"), task("b")]);
    let (a, b) = (bench.run("a"), bench.run("b"));
    freeze(&mut bench, &a).0.unwrap();
    let leaves = |commands: &[Command]| commands.iter().any(|c| matches!(c, Command::Exit(_)));
    let commands = bench.event(Event::Stop(StopMode::Drain));
    assert!(!leaves(&commands), "B runs");
    let commands = bench.ends(&b, Outcome::Exited { code: 0 }, false);
    assert!(leaves(&commands), "A is handed over as it is");
    assert_eq!(bench.standing(&a), (Running, FROZEN));

    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    freeze(&mut bench, &a).0.unwrap();
    let commands = bench.event(Event::Stop(StopMode::Cancel));
    assert!(commands.iter().any(|c| matches!(c, Command::Kill { .. })) && !leaves(&commands));
    let commands = bench.ends(&a, terminated(), true);
    assert!(leaves(&commands));
    let said = bench.instance(&a).message.clone();
    assert_eq!(said.as_deref(), Some("cancelled by the stop of the daemon"));
}

#[test]
fn a_pause_of_its_task_stops_no_process() {
    let mut bench = Bench::new(vec![task("a")]);
    let a = bench.run("a");
    bench.pause(Target::Task(id("a"))).unwrap();
    assert_eq!(bench.standing(&a), (Running, None));
    let refused = bench.pause(Target::Instance(a)).unwrap_err();
    assert!(refused.detail.contains("--freeze"), "{}", refused.detail);
}
