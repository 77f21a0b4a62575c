//! Signals and stops: hand over, drain, cancel, reload (requirement I2; contract `onStop`).

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{Gate, Sched, TaskSpec, is_alive, json};

/// A handover takes 2 s at most; a slow machine is given more.
const HANDOVER: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(20);

/// A daemon whose only slot is taken by a task at the gate, and a second instance that waits.
fn with_one_running_and_one_waiting() -> (Sched, Gate, String, String) {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    let say = |word: &str| format!("echo {word} $$ >> '{}'", sched.path("said").display());
    sched.put_all(&[
        TaskSpec::shell(
            "first.t.v1",
            &format!("{}; {}; {}", say("begin"), gate.stand(), say("end")),
        )
        .with(&json!({"idempotent": false, "killGraceMs": 500})),
        TaskSpec::shell("second.t.v1", &say("second")),
    ]);
    let first = sched.run("first.t.v1", &[]);
    sched.until_lines("said", 1);
    let second = sched.run("second.t.v1", &[]);
    (sched, gate, first, second)
}

fn words(sched: &Sched) -> Vec<String> {
    let first = |line: &String| line.split(' ').next().unwrap().to_owned();
    sched.lines("said").iter().map(first).collect()
}

fn hands_over_at(signal: Signal) {
    let (mut sched, gate, first, second) = with_one_running_and_one_waiting();
    let pid = sched.lines("said")[0].split(' ').nth(1).unwrap().parse().unwrap();
    sched.signal(signal);
    assert_eq!(sched.exit_status(HANDOVER), 0);
    assert!(is_alive(pid), "it goes on");
    assert!(!sched.socket().exists(), "an orderly stop leaves no socket");
    sched.start();
    assert_eq!(sched.instance(&first)["state"], "RUNNING");
    gate.pass(1);
    let over = sched.until_over(&first, "SUCCEEDED");
    assert_eq!(over["attempt"], 1);
    sched.until_over(&second, "SUCCEEDED");
    assert_eq!(words(&sched), ["begin", "end", "second"]);
}

#[test]
fn sigterm_hands_running_tasks_over_to_the_next_daemon() {
    hands_over_at(Signal::SIGTERM);
}

#[test]
fn sigint_hands_running_tasks_over_to_the_next_daemon() {
    hands_over_at(Signal::SIGINT);
}

#[test]
fn shutdown_without_a_word_does_what_the_configuration_says() {
    let (mut sched, gate, first, _) = with_one_running_and_one_waiting();
    sched.good(&["shutdown", "-y"]);
    assert_eq!(sched.exit_status(HANDOVER), 0);
    sched.start();
    gate.pass(1);
    sched.until_over(&first, "SUCCEEDED");
}

#[test]
fn a_drain_waits_for_what_runs_and_starts_nothing() {
    let (mut sched, gate, first, second) = with_one_running_and_one_waiting();
    sched.good(&["shutdown", "--drain", "-y"]);
    assert_eq!(sched.get("/status")["stopping"], true);
    gate.pass(1);
    assert_eq!(sched.exit_status(LONG), 0);
    assert_eq!(words(&sched), ["begin", "end"]);
    sched.start();
    sched.until_over(&first, "SUCCEEDED");
    sched.until_over(&second, "SUCCEEDED");
    assert_eq!(words(&sched), ["begin", "end", "second"]);
}

#[test]
fn a_cancelling_stop_ends_what_runs_and_keeps_what_waits() {
    let (mut sched, gate, first, second) = with_one_running_and_one_waiting();
    sched.good(&["shutdown", "--cancel", "-y"]);
    assert_eq!(sched.exit_status(LONG), 0);
    sched.start();
    let over = sched.until_over(&first, "CANCELLED");
    assert_eq!(over["reason"], "CANCELLED_BY_USER");
    sched.until_over(&second, "SUCCEEDED");
    assert_eq!(words(&sched), ["begin", "second"]);
    drop(gate);
}

#[test]
fn a_stop_may_be_configured_to_drain_and_a_second_signal_overrules_it() {
    let mut sched = Sched::with(&json!({"onStop": "DRAIN"}));
    let gate = sched.gate("gate");
    sched.task("held.t.v1", &gate.stand());
    let id = sched.run("held.t.v1", &[]);
    sched.until_state(&id, "RUNNING");
    sched.signal(Signal::SIGTERM);
    sched.until("the stop", || (sched.get("/status")["stopping"] == true).then_some(()));
    sched.signal(Signal::SIGTERM);
    assert_eq!(sched.exit_status(HANDOVER), 0);
    sched.start();
    gate.pass(1);
    assert_eq!(sched.until_over(&id, "SUCCEEDED")["attempt"], 1);
}

#[test]
fn a_submission_after_the_stop_has_begun_is_refused_or_kept() {
    let (mut sched, gate, first, _) = with_one_running_and_one_waiting();
    sched.good(&["shutdown", "--drain", "-y"]);
    let late = sched.ctl(&["run", "second.t.v1", "-q"]);
    gate.pass(1);
    assert_eq!(sched.exit_status(LONG), 0);
    sched.start();
    sched.until_over(&first, "SUCCEEDED");
    if late.status == 0 {
        sched.until_over(late.out.trim(), "SUCCEEDED");
    }
    sched.until_idle();
    let count = if late.status == 0 { 2 } else { 1 };
    assert_eq!(words(&sched).iter().filter(|w| *w == "second").count(), count);
}

#[test]
fn hup_and_reload_read_what_no_event_tells_of() {
    let sched = Sched::new();
    let text = |script: &str| TaskSpec::shell("link.t.v1", script).text();
    let target = sched.path("elsewhere.yaml");
    fs::write(&target, text("echo one")).unwrap();
    std::os::unix::fs::symlink(&target, sched.spec_path("link.yaml")).unwrap();
    let until = |script: &str| {
        sched.soon(script, || {
            let found = sched.ask("GET", "/tasks/link.t.v1", "").ok()?;
            (found.json()["spec"]["handler"] == script).then_some(())
        });
    };
    until("echo one");
    fs::write(&target, text("echo two")).unwrap();
    sched.signal(Signal::SIGHUP);
    until("echo two");
    fs::write(&target, text("echo three")).unwrap();
    sched.good(&["reload"]);
    until("echo three");
}

#[test]
fn systemd_is_told_of_the_start_a_reload_and_the_stop() {
    let mut sched = Sched::prepared(&json!({}));
    let heard = UnixDatagram::bind(sched.path("notify")).unwrap();
    heard.set_read_timeout(Some(LONG)).unwrap();
    let until_told = |word: &str| loop {
        let mut bytes = [0; 4096];
        let length = heard.recv(&mut bytes).unwrap_or_else(|e| panic!("no {word}: {e}"));
        if String::from_utf8_lossy(&bytes[..length]).lines().any(|line| line == word) {
            return;
        }
    };
    let path = sched.path("notify");
    sched.variable("NOTIFY_SOCKET", path.to_str().unwrap());
    sched.start();
    until_told("READY=1");
    sched.signal(Signal::SIGHUP);
    until_told("RELOADING=1");
    until_told("READY=1");
    sched.signal(Signal::SIGTERM);
    until_told("STOPPING=1");
    assert_eq!(sched.exit_status(HANDOVER), 0);
}
