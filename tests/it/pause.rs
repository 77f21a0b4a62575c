//! Holding tasks, instances, queues and everything back (design, 'Pause, cancel, retry').

use crate::harness::{Sched, TaskSpec, json};

/// Holds `what`; a submission waits, also after a restart; lets go, and it runs.
fn holds_over_a_restart(what: &[&str]) {
    let mut sched = Sched::new();
    sched.task("p.t.v1", "true");
    sched.good(&[&["pause", "-y", "--reason", "bank is closed"], what].concat());
    let id = sched.run("p.t.v1", &[]);
    let waits = sched.instance(&id);
    assert_eq!((&waits["state"], &waits["reason"]), (&json!("READY"), &json!("PAUSED")));
    sched.restart();
    let waits = sched.instance(&id);
    assert_eq!((&waits["state"], &waits["reason"]), (&json!("READY"), &json!("PAUSED")));
    sched.kill_9();
    sched.start();
    sched.good(&[&["resume"], what].concat());
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(over["attempt"], 1);
    let again = sched.run("p.t.v1", &[]);
    sched.until_over(&again, "SUCCEEDED");
}

#[test]
fn a_paused_task_waits_over_a_restart() {
    holds_over_a_restart(&["p.t.v1"]);
}

#[test]
fn a_paused_queue_waits_over_a_restart() {
    holds_over_a_restart(&["--queue", "default"]);
}

#[test]
fn all_paused_waits_over_a_restart() {
    holds_over_a_restart(&["--all"]);
}

#[test]
fn a_paused_instance_waits_over_a_restart_and_a_running_one_is_not_held() {
    let mut sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    sched.put_all(&[TaskSpec::shell("h.t.v1", &gate.stand()), TaskSpec::shell("p.t.v1", "true")]);
    let running = sched.run("h.t.v1", &[]);
    sched.until_state(&running, "RUNNING");
    assert_eq!(sched.ctl(&["pause", &running]).status, 6);
    let held = sched.run("p.t.v1", &[]);
    sched.good(&["pause", &held]);
    let other = sched.run("p.t.v1", &[]);
    gate.pass(1);
    // The one behind it goes on; it does not.
    sched.until_over(&other, "SUCCEEDED");
    assert_eq!(sched.instance(&held)["reason"], "PAUSED");
    sched.restart();
    let waits = sched.instance(&held);
    assert_eq!((&waits["state"], &waits["reason"]), (&json!("READY"), &json!("PAUSED")));
    assert_eq!(waits["paused"]["uid"], json!(nix::unistd::geteuid().as_raw()));
    sched.good(&["resume", &held]);
    sched.until_over(&held, "SUCCEEDED");
    assert_eq!(sched.ctl(&["pause", &held]).status, 6, "over for good");
}

#[test]
fn a_pause_with_an_end_ends_by_itself() {
    let mut sched = Sched::new();
    sched.task("p.t.v1", "true");
    sched.good(&["pause", "p.t.v1", "--until", "1s"]);
    let id = sched.run("p.t.v1", &[]);
    let task = sched.get("/tasks/p.t.v1");
    assert_eq!(task["status"], "PAUSED");
    assert!(task["paused"]["until"].is_string(), "{task:#}");
    sched.kill_9();
    sched.start();
    sched.until_over(&id, "SUCCEEDED");
    assert_eq!(sched.get("/tasks/p.t.v1")["status"], "ACTIVE");
}

#[test]
fn fires_of_a_paused_task_are_counted_and_not_caught_up() {
    let sched = Sched::new();
    let ticks =
        json!({"triggers": [{"cron": "* * * * * *", "misfire": "RUN_ALL", "overlap": "QUEUE"}]});
    sched.put(&TaskSpec::shell("tick.t.v1", "true").with(&ticks));
    sched.good(&["pause", "tick.t.v1"]);
    sched.until("two paused fires", || {
        let paused = |row: &&serde_json::Value| row["outcome"] == "PAUSED";
        let count: u64 = sched
            .fires("tick.t.v1")
            .iter()
            .filter(paused)
            .map(|r| r["count"].as_u64().unwrap())
            .sum();
        (count >= 2).then_some(())
    });
    let made = sched.instances("tick.t.v1").len();
    // A submission is not a fire: it is made, and waits.
    let id = sched.run("tick.t.v1", &[]);
    assert_eq!(sched.instance(&id)["reason"], "PAUSED");
    sched.good(&["resume", "tick.t.v1"]);
    sched.until_over(&id, "SUCCEEDED");
    let after = sched.until("a fire after the pause", || {
        Some(sched.instances("tick.t.v1")).filter(|all| all.len() >= made + 2)
    });
    assert!(after.len() <= made + 3, "no catch-up: {}", after.len());
}
