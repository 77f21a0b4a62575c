//! Kill -9 of the daemon, of executors and of both, at moments that are chosen
//! (requirements F1, F4, H1; known faults B122 to B133).

use std::fs;

use crate::harness::{Gate, Sched, TaskSpec, Value, is_alive, json};

/// A task that writes down its process, stands at the gate and says that it ended.
fn held(sched: &Sched, gate: &Gate, idempotent: bool) -> TaskSpec {
    let (started, ended) = (sched.path("started"), sched.path("ended"));
    let (started, ended) = (started.display(), ended.display());
    let script = format!("echo $$ >> '{started}'; {}; echo end >> '{ended}'", gate.stand());
    TaskSpec::shell("l.t.v1", &script).with(&json!({"idempotent": idempotent}))
}

/// A daemon with such a task, and its instance that runs.
fn with_running(idempotent: bool) -> (Sched, Gate, String, u32) {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    sched.put(&held(&sched, &gate, idempotent));
    let id = sched.run("l.t.v1", &[]);
    let pid = sched.until_lines("started", 1)[0].parse().unwrap();
    (sched, gate, id, pid)
}

fn once(sched: &Sched, over: &Value) {
    assert_eq!((&over["attempt"], &over["exitCode"]), (&json!(1), &json!(0)), "{over:#}");
    assert_eq!((sched.lines("started").len(), sched.lines("ended").len()), (1, 1));
}

#[test]
fn a_task_goes_on_and_runs_once_when_its_daemon_is_killed() {
    let (mut sched, gate, id, pid) = with_running(false);
    sched.kill_9();
    assert!(is_alive(pid));
    sched.start();
    assert_eq!(sched.instance(&id)["state"], "RUNNING");
    assert!(is_alive(pid));
    gate.pass(1);
    once(&sched, &sched.until_over(&id, "SUCCEEDED"));
}

#[test]
fn a_task_that_ends_while_no_daemon_runs_is_recorded_with_its_end() {
    let (mut sched, gate, id, pid) = with_running(false);
    sched.kill_9();
    gate.pass(1);
    sched.until_lines("ended", 1);
    sched.until("the task's end", || (!is_alive(pid)).then_some(()));
    sched.start();
    let over = sched.until_over(&id, "SUCCEEDED");
    once(&sched, &over);
    let at = |v: &Value| v.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let started = at(&sched.get("/status")["startedAt"]);
    assert!(at(&over["finishedAt"]) <= started, "its own time, not that of the new daemon");
    assert!(sched.good(&["logs", &id]).is_empty());
}

#[test]
fn a_failure_while_no_daemon_runs_is_retried_by_the_next() {
    let mut sched = Sched::new();
    let gate = sched.gate("gate");
    let script = format!(
        "echo $$ >> '{}'; {}; test $SCHED_ATTEMPT = 2",
        sched.path("started").display(),
        gate.stand()
    );
    let retry = json!({"retry": {"maxAttempts": 2, "intervalMs": 10}});
    sched.put(&TaskSpec::shell("l.t.v1", &script).with(&retry));
    let id = sched.run("l.t.v1", &[]);
    let pid = sched.until_lines("started", 1)[0].parse().unwrap();
    sched.kill_9();
    gate.pass(2);
    sched.until("the task's end", || (!is_alive(pid)).then_some(()));
    assert_eq!(sched.lines("started").len(), 1, "executors decide nothing");
    sched.start();
    assert_eq!(sched.until_over(&id, "SUCCEEDED")["attempt"], 2);
}

#[test]
fn a_task_that_is_not_idempotent_is_not_started_again_when_all_is_killed() {
    let (mut sched, _gate, id, pid) = with_running(false);
    let executor = sched.executor_pid();
    sched.kill_9();
    sched.kill_executor(executor);
    sched.start();
    let over = sched.until_over(&id, "FAILED");
    assert_eq!((&over["errorCode"], &over["attempt"]), (&json!("EXECUTOR_LOST"), &json!(1)));
    assert_eq!(over["nextRetryAt"], json!(null));
    sched.until("what still ran of it to end", || (!is_alive(pid)).then_some(()));
    sched.until_idle();
    assert_eq!(sched.lines("started").len(), 1);
    assert!(sched.lines("ended").is_empty());
    // A person may decide otherwise.
    sched.good(&["retry", &id]);
    sched.until_lines("started", 2);
    assert_eq!(sched.until_state(&id, "RUNNING")["attempt"], 2);
}

#[test]
fn an_idempotent_task_is_started_again_when_all_is_killed() {
    let (mut sched, gate, id, pid) = with_running(true);
    let executor = sched.executor_pid();
    sched.kill_9();
    sched.kill_executor(executor);
    sched.start();
    sched.until_lines("started", 2);
    assert!(!is_alive(pid), "the first one was ended before the second began");
    gate.pass(1);
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(over["attempt"], 2);
    assert_eq!(over["attempts"][0]["errorCode"], "EXECUTOR_LOST");
    assert_eq!(sched.lines("ended").len(), 1);
}

#[test]
fn a_killed_executor_is_replaced_and_its_tasks_are_settled() {
    let (sched, gate, id, pid) = with_running(true);
    let first = sched.executor_pid();
    sched.kill_executor(first);
    sched.until_lines("started", 2);
    assert!(!is_alive(pid), "the first one was ended before the second began");
    gate.pass(1);
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(over["attempts"][0]["errorCode"], "EXECUTOR_LOST");
    assert_eq!(over["attempt"], 2);
    assert_ne!(sched.executor_pid(), first);
}

#[test]
fn a_task_that_is_not_idempotent_is_lost_with_its_executor() {
    let (sched, _gate, id, pid) = with_running(false);
    sched.kill_executor(sched.executor_pid());
    let over = sched.until_over(&id, "FAILED");
    assert_eq!((&over["errorCode"], &over["attempt"]), (&json!("EXECUTOR_LOST"), &json!(1)));
    sched.until("what still ran of it to end", || (!is_alive(pid)).then_some(()));
    assert_eq!(sched.lines("started").len(), 1);
}

#[test]
fn a_cancel_reaches_a_task_that_an_earlier_daemon_started() {
    let (mut sched, _gate, id, pid) = with_running(false);
    sched.kill_9();
    sched.start();
    sched.good(&["cancel", &id, "-y"]);
    sched.until_over(&id, "CANCELLED");
    assert!(!is_alive(pid));
    assert!(sched.lines("ended").is_empty());
}

/// Submits tasks that write their number down, while nothing is dispatched; then kills.
fn between_fire_and_dispatch(mut sched: Sched, release: impl FnOnce(&Sched)) {
    let script = format!("echo $SCHED_PARAM_n >> '{}'", sched.path("ran").display());
    sched.put(&TaskSpec::shell("n.t.v1", &script).with(&json!({
        "runtimeParams": {"n": "int"}, "idempotent": false, "maxConcurrent": 8,
        "triggers": [{"event": "ev", "params": {"n": "{event.n}"}}],
    })));
    for n in 0..10 {
        sched.run("n.t.v1", &["-p", &format!("n={n}")]);
    }
    for n in 10..20 {
        sched.good(&["emit", "ev", "-p", &format!("n={n}")]);
    }
    sched.kill_9();
    sched.start();
    // Once the executor is there, whatever may run does.
    sched.executor_pid();
    let waiting = sched.instances("n.t.v1");
    assert_eq!(waiting.len(), 20);
    assert!(waiting.iter().all(|i| i["state"] == "READY"), "{waiting:#?}");
    assert!(sched.lines("ran").is_empty());
    release(&sched);
    sched.until_idle();
    let mut ran: Vec<u32> = sched.lines("ran").iter().map(|n| n.parse().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..20).collect::<Vec<u32>>(), "each once");
    assert!(
        sched.instances("n.t.v1").iter().all(|i| i["state"] == "SUCCEEDED" && i["attempt"] == 1)
    );
}

#[test]
fn fires_that_a_paused_queue_held_back_are_not_lost_in_a_crash() {
    let sched = Sched::new();
    sched.good(&["pause", "--queue", "default"]);
    between_fire_and_dispatch(sched, |sched| {
        sched.good(&["resume", "--queue", "default"]);
    });
}

#[test]
fn fires_that_found_no_free_slot_are_not_lost_in_a_crash() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    sched.task("first.t.v1", &gate.stand());
    let first = sched.run("first.t.v1", &[]);
    sched.until_state(&first, "RUNNING");
    between_fire_and_dispatch(sched, |_| gate.pass(1));
}

#[test]
fn a_lost_sled_is_rebuilt_from_the_journal() {
    let (mut sched, gate, id, _) = with_running(false);
    sched.kill_9();
    let sled = sched.path("state").join("db");
    fs::remove_dir_all(sled).unwrap();
    sched.start();
    assert_eq!(sched.instance(&id)["state"], "RUNNING");
    gate.pass(1);
    once(&sched, &sched.until_over(&id, "SUCCEEDED"));
}
