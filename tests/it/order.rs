//! Who starts first, and who gives way (requirements D1 to D5).

use crate::harness::{Gate, Sched, TaskSpec, json};
use serde_json::Value;

/// One slot, and a task that holds it until it is let through.
fn held(config: &Value) -> (Sched, Gate) {
    let mut all = json!({"executors": [{"id": "local", "slots": 1}]});
    for (key, value) in config.as_object().unwrap() {
        all[key] = value.clone();
    }
    let sched = Sched::with(&all);
    let gate = sched.gate("hold");
    sched.task("hold.t.v1", &gate.stand());
    let hold = sched.run("hold.t.v1", &[]);
    sched.until_state(&hold, "RUNNING");
    (sched, gate)
}

fn noting(sched: &Sched, task: &str, more: &Value) -> TaskSpec {
    let script = format!("echo {task} >> '{}'", sched.path("ran").display());
    TaskSpec::shell(task, &script).with(&json!({"maxConcurrent": 50})).with(more)
}

/// Requirement D5.
#[test]
fn a_critical_one_lifts_what_it_waits_for() {
    let (sched, gate) = held(&json!({}));
    sched.put_all(&[
        noting(&sched, "low.t.v1", &json!({"priority": 8})),
        noting(&sched, "mid.t.v1", &json!({"priority": 4})),
        noting(&sched, "top.t.v1", &json!({"priority": 0, "dependsOn": ["low.t.v1"]})),
    ]);
    for _ in 0..3 {
        sched.run("mid.t.v1", &[]);
    }
    let low = sched.run("low.t.v1", &[]);
    let shown = sched.instance(&low);
    assert_eq!((&shown["priority"], &shown["effectivePriority"]), (&json!(8), &json!(0)));
    gate.pass(1);
    let mids = ["mid.t.v1"; 3];
    assert_eq!(sched.until_lines("ran", 5), [&["low.t.v1", "top.t.v1"], &mids[..]].concat());
}

/// Requirement D4.
#[test]
fn a_preemptible_task_gives_its_slot_up_and_runs_again() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let (gate, way) = (sched.gate("bg"), sched.gate("hot"));
    let note = |word: &str| format!("echo {word} >> '{}'", sched.path("ran").display());
    let bg = format!("{}; {}; {}", note("begun"), gate.stand(), note("done"));
    let preemptible = json!({"priority": 9, "preemptible": true, "killGraceMs": 300});
    let hot = format!("{}; {}", note("hot"), way.stand());
    sched.put_all(&[
        TaskSpec::shell("bg.t.v1", &bg).with(&preemptible),
        TaskSpec::shell("hot.t.v1", &hot).with(&json!({"priority": "CRITICAL"})),
    ]);
    let bg = sched.run("bg.t.v1", &[]);
    sched.until_lines("ran", 1);
    let hot = sched.run("hot.t.v1", &[]);
    assert_eq!(sched.until_lines("ran", 2), ["begun", "hot"]);
    let waits = sched.instance(&bg);
    assert_eq!((&waits["state"], &waits["reason"]), (&json!("READY"), &json!("NO_SLOT")));
    assert_eq!(waits["attempts"][0]["errorCode"], "PREEMPTED");
    way.pass(1);
    sched.until_over(&hot, "SUCCEEDED");
    gate.pass(1);
    let over = sched.until_over(&bg, "SUCCEEDED");
    assert_eq!((&over["attempt"], &over["errorCode"]), (&json!(2), &Value::Null));
    assert_eq!(sched.lines("ran"), ["begun", "hot", "begun", "done"]);
}

/// The daemon dies while a task that gives way takes its time: it is ended once, and starts once.
#[test]
fn a_crash_in_the_middle_of_a_preemption_doubles_nothing() {
    let mut sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let (gate, leaves) = (sched.gate("bg"), sched.gate("leaves"));
    let ran = sched.path("ran").display().to_string();
    let (stand, leave) = (gate.stand(), leaves.stand());
    let bg = format!(
        "leave() {{ echo term >> '{ran}'; {leave}; exit 0; }}\ntrap leave TERM\n\
         echo begun >> '{ran}'\nwhile :; do {stand}; done"
    );
    let preemptible = json!({"priority": 9, "preemptible": true, "killGraceMs": 20_000});
    sched.put_all(&[
        TaskSpec::shell("bg.t.v1", &bg).with(&preemptible),
        noting(&sched, "hot.t.v1", &json!({"priority": 0})),
    ]);
    let bg = sched.run("bg.t.v1", &[]);
    sched.until_lines("ran", 1);
    let hot = sched.run("hot.t.v1", &[]);
    sched.until_lines("ran", 2);
    let shown = sched.instance(&bg);
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("RUNNING"), &json!("CANCELLING")));
    sched.kill_9();
    sched.start();
    leaves.pass(1);
    sched.until_over(&hot, "SUCCEEDED");
    sched.until_lines("ran", 4);
    let again = sched.until_state(&bg, "RUNNING");
    assert_eq!(
        (&again["attempt"], &again["attempts"][0]["errorCode"]),
        (&json!(2), &json!("PREEMPTED"))
    );
    assert_eq!(sched.lines("ran"), ["begun", "term", "hot.t.v1", "begun"]);
    sched.good(&["cancel", "-y", &bg]);
    leaves.pass(1);
    sched.until_over(&bg, "CANCELLED");
}

/// Requirement D3, contract §4.
#[test]
fn levels_share_a_weighted_queue_and_queues_are_shown() {
    let weights = json!({"CRITICAL": 2, "LOW": 1});
    let queues = json!([{"name": "default", "weight": 3, "discipline": "WEIGHTED",
                         "levelWeights": weights, "maxRunning": 5}]);
    let (sched, gate) = held(&json!({"queues": queues}));
    sched.put_all(&[
        noting(&sched, "c.t.v1", &json!({"priority": 0})),
        noting(&sched, "l.t.v1", &json!({"priority": 7})),
    ]);
    for _ in 0..2 {
        for task in ["c.t.v1", "c.t.v1", "c.t.v1", "l.t.v1"] {
            sched.run(task, &[]);
        }
    }
    let shown = &sched.json(&["queues"])[0];
    let expected = json!({"CRITICAL": 2, "HIGH": 8, "NORMAL": 4, "LOW": 1, "BACKGROUND": 1});
    assert_eq!((&shown["discipline"], &shown["levelWeights"]), (&json!("WEIGHTED"), &expected));
    assert_eq!(
        (&shown["ready"], &shown["running"], &shown["maxRunning"]),
        (&json!(8), &json!(1), &json!(5))
    );
    assert!(sched.good(&["queues"]).contains("WEIGHTED 2:8:4:1:1"));
    gate.pass(1);
    // Smooth round robin of 2 and 1: c l c, again and again.
    let (c, l) = ("c.t.v1", "l.t.v1");
    assert_eq!(sched.until_lines("ran", 8), [c, l, c, c, l, c, c, c]);
}
