//! Ending an instance for good, wherever it is (design, 'Pause, cancel, retry').

use crate::harness::{Sched, TaskSpec, is_alive, json};

/// A script whose whole tree ignores TERM and has a member that left the session; each member
/// writes its process id down when it is deaf.
fn deaf_tree(sched: &Sched) -> String {
    let pids = sched.path("pids");
    let deaf = format!(
        r#"trap "" TERM HUP; echo $$ >> "{}"; while :; do sleep 1000; done"#,
        pids.display()
    );
    format!("sh -c '{deaf}' & setsid sh -c '{deaf}' & {deaf}")
}

fn until_all_gone(sched: &Sched, pids: &[String]) {
    sched.until("the whole tree gone", || {
        pids.iter().all(|pid| !is_alive(pid.parse().unwrap())).then_some(())
    });
}

#[test]
fn a_running_task_that_ignores_term_is_killed_with_its_whole_tree() {
    let sched = Sched::new();
    let spec = TaskSpec::shell("k.t.v1", &deaf_tree(&sched)).with(&json!({"killGraceMs": 300}));
    sched.put(&spec);
    let id = sched.run("k.t.v1", &[]);
    let pids = sched.until_lines("pids", 3);
    assert!(pids.iter().all(|pid| is_alive(pid.parse().unwrap())));
    sched.good(&["cancel", &id, "-y"]);
    let asked = sched.instance(&id);
    if asked["state"] == "RUNNING" {
        assert_eq!(asked["reason"], "CANCELLING");
    }
    let over = sched.until_over(&id, "CANCELLED");
    assert_eq!(over["reason"], "CANCELLED_BY_USER");
    assert_eq!(over["attempts"][0]["errorCode"], "CANCEL_REQUESTED");
    assert_eq!(over["attempt"], 1);
    until_all_gone(&sched, &pids);
    // A second cancel finds it final: nothing to do, and no failure.
    sched.good(&["cancel", &id, "-y"]);
    assert_eq!(sched.instance(&id), over);
}

#[test]
fn what_left_the_session_is_ended_although_its_leader_went_first() {
    let sched = Sched::new();
    let deaf = format!(
        r#"trap "" TERM HUP; echo $$ >> "{}"; while :; do sleep 1000; done"#,
        sched.path("pids").display()
    );
    let script = format!("setsid sh -c '{deaf}' & exec sleep 1000");
    sched.put(&TaskSpec::shell("k.t.v1", &script).with(&json!({"killGraceMs": 300})));
    let id = sched.run("k.t.v1", &[]);
    let pids = sched.until_lines("pids", 1);
    sched.good(&["cancel", &id, "-y"]);
    sched.until_over(&id, "CANCELLED");
    until_all_gone(&sched, &pids);
}

#[test]
fn a_leader_that_exits_zero_on_term_is_cancelled_all_the_same() {
    let sched = Sched::new();
    let script = format!(
        "trap 'exit 0' TERM; echo up >> '{}'; while :; do sleep 0.05; done",
        sched.path("up").display()
    );
    let retry = json!({"retry": {"maxAttempts": 3, "intervalMs": 0}});
    sched.put(&TaskSpec::shell("z.t.v1", &script).with(&retry));
    let id = sched.run("z.t.v1", &[]);
    sched.until_lines("up", 1);
    sched.good(&["cancel", &id, "-y"]);
    let over = sched.until_over(&id, "CANCELLED");
    assert_eq!((&over["attempt"], &over["nextRetryAt"]), (&json!(1), &json!(null)), "no retry");
}

#[test]
fn a_cancel_between_attempts_is_the_last_word_also_after_a_restart() {
    let mut sched = Sched::new();
    let script = format!("echo try >> '{}'; exit 1", sched.path("tries").display());
    let retry = json!({"retry": {"maxAttempts": 5, "intervalMs": 1500}});
    sched.put_all(&[
        TaskSpec::shell("r.t.v1", &script).with(&retry),
        TaskSpec::shell("clock.t.v1", "true"),
    ]);
    let id = sched.run("r.t.v1", &[]);
    let waiting = sched.until_state(&id, "FAILED");
    assert_eq!(waiting["reason"], "RETRY_WAIT");
    let due = waiting["nextRetryAt"].as_str().unwrap().to_owned();
    sched.good(&["cancel", &id, "-y"]);
    let over = sched.instance(&id);
    assert_eq!(
        (&over["state"], &over["reason"]),
        (&json!("CANCELLED"), &json!("CANCELLED_BY_USER"))
    );
    assert_eq!(over["nextRetryAt"], json!(null));
    sched.restart();
    // Something that is due when the retry was comes after it.
    let later = sched.run("clock.t.v1", &["--at", &due]);
    sched.until_over(&later, "SUCCEEDED");
    sched.until_idle();
    assert_eq!(sched.lines("tries"), ["try"]);
    assert_eq!(sched.instance(&id), over);
}

#[test]
fn what_waits_is_cancelled_at_once_and_what_is_final_stays_as_it_is() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    let below = TaskSpec::shell("w.below.v1", "true").with(&json!({"dependsOn": ["w.t.v1"]}));
    sched.put_all(&[
        TaskSpec::shell("w.first.v1", &gate.stand()),
        TaskSpec::shell("w.t.v1", "true"),
        below,
        TaskSpec::shell("w.bad.v1", "exit 1"),
    ]);
    let first = sched.run("w.first.v1", &[]);
    sched.until_state(&first, "RUNNING");
    let ready = sched.run("w.t.v1", &[]);
    assert_eq!(sched.instance(&ready)["state"], "READY");
    sched.good(&["cancel", &ready, "-y"]);
    let over = sched.instance(&ready);
    assert_eq!((&over["state"], &over["attempt"]), (&json!("CANCELLED"), &json!(0)));
    let below = sched.instances("w.below.v1");
    assert_eq!(below[0]["state"], "BLOCKED", "{below:#?}");
    let below = below[0]["instanceId"].as_str().unwrap();
    sched.good(&["cancel", below, "-y"]);
    assert_eq!(sched.instance(below)["state"], "CANCELLED");
    gate.pass(1);
    let succeeded = sched.until_over(&first, "SUCCEEDED");
    sched.good(&["cancel", &first, "-y"]);
    assert_eq!(sched.instance(&first), succeeded);
    let bad = sched.run("w.bad.v1", &[]);
    let failed = sched.until_over(&bad, "FAILED");
    sched.good(&["cancel", &bad, "-y"]);
    assert_eq!(sched.instance(&bad), failed, "a final failure stays one");
}

#[test]
fn a_cancel_reaches_what_waits_below_if_asked() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let after = |task: &str, upstream: &str| {
        TaskSpec::shell(task, "true").with(&json!({"dependsOn": [upstream]}))
    };
    sched.put_all(&[
        TaskSpec::shell("d.a.v1", &gate.stand()),
        after("d.b.v1", "d.a.v1"),
        after("d.c.v1", "d.b.v1"),
    ]);
    let id = sched.run("d.a.v1", &[]);
    sched.until_state(&id, "RUNNING");
    sched.good(&["cancel", &id, "--downstream", "-y"]);
    sched.until_over(&id, "CANCELLED");
    sched.until_idle();
    for task in ["d.b.v1", "d.c.v1"] {
        let below = &sched.instances(task)[0];
        assert_eq!(
            (&below["state"], &below["reason"]),
            (&json!("CANCELLED"), &json!("CANCELLED_BY_USER"))
        );
    }
}

#[test]
fn a_stopped_task_can_be_cancelled_too() {
    let sched = Sched::new();
    let script = format!("echo $$ >> '{}'; kill -STOP $$", sched.path("pid").display());
    sched.put(&TaskSpec::shell("s.t.v1", &script).with(&json!({"killGraceMs": 300})));
    let id = sched.run("s.t.v1", &[]);
    let pid = sched.until_lines("pid", 1);
    sched.until("it is stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid[0])).ok()?;
        stat.contains(") T ").then_some(())
    });
    sched.good(&["cancel", &id, "-y"]);
    sched.until_over(&id, "CANCELLED");
    until_all_gone(&sched, &pid);
}
