//! Attempts: how often, how long, and when it is over (requirement F2; design, 'Attempts').

use crate::harness::{Sched, TaskSpec, Value, json, now_ms};

/// A script that counts its starts in `starts` and goes on with `then`.
fn counted(sched: &Sched, then: &str) -> String {
    format!("echo x >> '{}'; {then}", sched.path("starts").display())
}

fn millis(value: &Value) -> i64 {
    value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[test]
fn three_attempts_with_doubling_waits_and_then_it_is_final() {
    let sched = Sched::new();
    sched.put(&TaskSpec::shell("r.t.v1", &counted(&sched, "exit 75")).with(&json!({
        "exitCodes": {"75": "CONN_RESET"},
        "retry": {"maxAttempts": 3, "backoff": "EXPONENTIAL", "intervalMs": 100,
                  "retryOn": ["TIMEOUT", "CONN_RESET"]},
    })));
    let id = sched.run("r.t.v1", &[]);
    let over = sched.until_over(&id, "FAILED");
    assert_eq!((&over["attempt"], &over["errorCode"]), (&json!(3), &json!("CONN_RESET")));
    assert_eq!(over["nextRetryAt"], json!(null));
    assert_eq!(over["exitCode"], 75);
    assert_eq!(sched.lines("starts").len(), 3);
    let tries = over["attempts"].as_array().unwrap();
    assert_eq!(tries.len(), 3);
    let waited = |n: usize| millis(&tries[n]["startedAt"]) - millis(&tries[n - 1]["finishedAt"]);
    assert!(waited(1) >= 100 && waited(2) >= 200, "{} {}", waited(1), waited(2));
    // Each attempt has a log of its own.
    sched.good(&["logs", &id, "--attempt", "1"]);
    sched.good(&["logs", &id, "--attempt", "3"]);
}

#[test]
fn a_code_that_is_not_listed_is_not_tried_again() {
    let sched = Sched::new();
    sched.put(&TaskSpec::shell("r.t.v1", &counted(&sched, "exit 4")).with(&json!({
        "retry": {"maxAttempts": 3, "intervalMs": 10, "retryOn": ["EXIT_5"]},
    })));
    let id = sched.run("r.t.v1", &[]);
    let over = sched.until_over(&id, "FAILED");
    assert_eq!((&over["errorCode"], &over["attempt"]), (&json!("EXIT_4"), &json!(1)));
    sched.put(&TaskSpec::shell("r.t.v1", &counted(&sched, "exit 4; ")).with(&json!({
        "retry": {"maxAttempts": 2, "intervalMs": 10, "retryOn": ["EXIT_*"]},
    })));
    let id = sched.run("r.t.v1", &[]);
    assert_eq!(sched.until_over(&id, "FAILED")["attempt"], 2);
    assert_eq!(sched.lines("starts").len(), 3);
}

#[test]
fn a_retry_that_succeeds_is_a_success() {
    let sched = Sched::new();
    let script = counted(&sched, "test $SCHED_ATTEMPT = 2");
    let retry = json!({"retry": {"maxAttempts": 5, "intervalMs": 10}});
    sched.put(&TaskSpec::shell("r.t.v1", &script).with(&retry));
    let id = sched.run("r.t.v1", &[]);
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!((&over["attempt"], &over["errorCode"]), (&json!(2), &json!(null)));
    assert_eq!(over["attempts"][0]["errorCode"], "EXIT_1");
}

#[test]
fn a_person_grants_fresh_attempts_to_what_failed_and_to_nothing_else() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let retry = json!({"retry": {"maxAttempts": 2, "intervalMs": 10}});
    sched.put_all(&[
        TaskSpec::shell("r.t.v1", &counted(&sched, "exit 1")).with(&retry),
        TaskSpec::shell("good.t.v1", "true"),
        TaskSpec::shell("held.t.v1", &gate.stand()),
    ]);
    let id = sched.run("r.t.v1", &[]);
    assert_eq!(sched.until_over(&id, "FAILED")["attempt"], 2);
    sched.good(&["retry", &id]);
    sched.until("two more", || (sched.lines("starts").len() == 4).then_some(()));
    assert_eq!(sched.until_over(&id, "FAILED")["attempt"], 4);
    let good = sched.run("good.t.v1", &[]);
    sched.until_over(&good, "SUCCEEDED");
    let refused = sched.ctl(&["retry", &good]);
    assert_eq!(refused.status, 6);
    assert!(refused.err.contains("run"), "names the way: {refused:?}");
    let held = sched.run("held.t.v1", &[]);
    sched.until_state(&held, "RUNNING");
    assert_eq!(sched.ctl(&["retry", &held]).status, 6);
    assert_eq!(sched.ctl(&["retry", "nosuch"]).status, 4);
}

#[test]
fn a_wait_for_a_retry_survives_a_crash_and_keeps_its_count_over_a_reload() {
    let mut sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let retry = json!({"retry": {"maxAttempts": 2, "intervalMs": 1000}});
    let spec = TaskSpec::shell("r.t.v1", &counted(&sched, "exit 1")).with(&retry);
    sched.put_all(&[spec.clone(), TaskSpec::shell("other.t.v1", "true")]);
    let id = sched.run("r.t.v1", &[]);
    let waiting = sched.until_state(&id, "FAILED");
    let due = waiting["nextRetryAt"].clone();
    assert!(due.is_string(), "{waiting:#}");
    // One that waits for its retry holds no slot.
    let other = sched.run("other.t.v1", &[]);
    sched.until_over(&other, "SUCCEEDED");
    sched.put(&spec.with(&json!({"description": "another word"})));
    sched.kill_9();
    sched.start();
    let over = sched.until_over(&id, "FAILED");
    assert_eq!(over["attempt"], 2);
    assert!(millis(&over["attempts"][1]["startedAt"]) >= millis(&due), "{over:#}");
    assert_eq!(sched.lines("starts").len(), 2);
}

#[test]
fn a_timeout_is_term_then_grace_then_kill() {
    let sched = Sched::new();
    let word = sched.path("word");
    let script =
        format!("trap 'echo term >> \"{}\"' TERM; while :; do sleep 0.05; done", word.display());
    let bound = json!({"timeoutMs": 300, "killGraceMs": 300});
    sched.put(&TaskSpec::shell("t.t.v1", &script).with(&bound));
    let id = sched.run("t.t.v1", &[]);
    let over = sched.until_over(&id, "TIMEOUT");
    assert_eq!((&over["errorCode"], &over["attempt"]), (&json!("TIMEOUT"), &json!(1)));
    assert_eq!(sched.lines("word"), ["term"]);
    assert!(over["durationMs"].as_i64().unwrap() >= 600, "{over:#}");
}

#[test]
fn a_timeout_is_retried_exactly_as_often_as_listed() {
    let sched = Sched::new();
    let timed = |task: &str, on: &[&str]| {
        let file = sched.path(task);
        TaskSpec::shell(task, &format!("echo x >> '{}'; exec sleep 1000", file.display())).with(
            &json!({
                "timeoutMs": 200, "killGraceMs": 200,
                "retry": {"maxAttempts": 3, "intervalMs": 10, "retryOn": on},
            }),
        )
    };
    sched.put_all(&[timed("t.listed.v1", &["TIMEOUT"]), timed("t.not.v1", &[])]);
    let listed = sched.run("t.listed.v1", &[]);
    let not = sched.run("t.not.v1", &[]);
    assert_eq!(sched.until_over(&listed, "TIMEOUT")["attempt"], 3);
    assert_eq!(sched.until_over(&not, "TIMEOUT")["attempt"], 1);
    assert_eq!(sched.lines("t.listed.v1").len(), 3);
    assert_eq!(sched.lines("t.not.v1").len(), 1);
}

#[test]
fn time_in_the_queue_does_not_count_as_running_time() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    sched.put_all(&[
        TaskSpec::shell("first.t.v1", &gate.stand()),
        TaskSpec::shell("short.t.v1", "true").with(&json!({"timeoutMs": 1000})),
    ]);
    let first = sched.run("first.t.v1", &[]);
    sched.until_state(&first, "RUNNING");
    let short = sched.run("short.t.v1", &[]);
    let queued = millis(&sched.instance(&short)["createdAt"]);
    // The queue's time is longer than the timeout.
    sched.until("the clock past the timeout", || (now_ms() > queued + 1100).then_some(()));
    gate.pass(1);
    sched.until_over(&short, "SUCCEEDED");
}
