//! Freezing, skipping and retrying with a real daemon (design, 'Pause, cancel, retry').

use std::fs;

use crate::harness::{Sched, TaskSpec, Value, is_alive, json};

/// Whether a process is stopped: `T` in proc_pid_stat(5).
fn is_stopped(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn until_all(sched: &Sched, pids: &[String], stopped: bool) {
    let what = if stopped { "all stopped" } else { "none stopped" };
    sched.until(what, || pids.iter().all(|pid| is_stopped(pid) == stopped).then_some(()));
}

/// A tree of two, one of which has left the session, that runs until `go` is there and forks
/// nothing meanwhile; each writes down its number.
fn tree(sched: &Sched) -> String {
    let beat = format!(
        r#"echo $$ >> "{}"; while ! test -e "{}"; do :; done"#,
        sched.path("pids").display(),
        sched.path("go").display()
    );
    format!("setsid sh -c '{beat}' & {beat}; wait")
}

fn id_of(row: &Value) -> String {
    row["instanceId"].as_str().unwrap().to_owned()
}

#[test]
fn a_frozen_task_stands_still_over_a_restart_and_its_timeout_with_it() {
    let mut sched = Sched::new();
    let timeout = json!({"timeoutMs": 2500, "killGraceMs": 300});
    sched.put_all(&[
        TaskSpec::shell("f.t.v1", &tree(&sched)).with(&timeout),
        TaskSpec::shell("f.other.v1", "sleep 1000").with(&timeout),
        TaskSpec::shell("f.third.v1", "sleep 1000").with(&timeout),
    ]);
    let id = sched.run("f.t.v1", &[]);
    let pids = sched.until_lines("pids", 2);
    sched.good(&["pause", &id, "--freeze", "--reason", "look at it"]);
    until_all(&sched, &pids, true);
    let frozen = sched.instance(&id);
    assert_eq!((&frozen["state"], &frozen["reason"]), (&json!("RUNNING"), &json!("FROZEN")));
    assert_eq!(frozen["paused"]["reason"], "look at it");
    // Longer than its timeout: others that began later have used theirs up.
    let other = sched.run("f.other.v1", &[]);
    sched.kill_9();
    sched.start();
    sched.executor_pid();
    sched.until_over(&other, "TIMEOUT");
    let third = sched.run("f.third.v1", &[]);
    sched.until_over(&third, "TIMEOUT");
    assert_eq!(sched.instance(&id)["reason"], "FROZEN");
    assert!(pids.iter().all(|pid| is_stopped(pid)));
    fs::write(sched.path("go"), "").unwrap();
    sched.good(&["resume", &id]);
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!((&over["attempt"], &over["paused"]), (&json!(1), &json!(null)));
    assert!(over["attempts"][0]["frozenMs"].as_u64().unwrap() >= 2500, "{over:#}");
}

#[test]
fn a_freeze_ends_by_itself_and_the_timeout_counts_on() {
    let sched = Sched::new();
    let timeout = json!({"timeoutMs": 3000, "killGraceMs": 300});
    sched.put(&TaskSpec::shell("f.t.v1", &tree(&sched)).with(&timeout));
    let id = sched.run("f.t.v1", &[]);
    let pids = sched.until_lines("pids", 2);
    sched.good(&["pause", &id, "--freeze", "--until", "1s"]);
    until_all(&sched, &pids, true);
    until_all(&sched, &pids, false);
    assert_eq!(sched.instance(&id)["reason"], json!(null));
    let over = sched.until_over(&id, "TIMEOUT");
    assert!(over["attempts"][0]["frozenMs"].as_u64().unwrap() >= 900, "{over:#}");
    sched
        .until("all gone", || pids.iter().all(|pid| !is_alive(pid.parse().unwrap())).then_some(()));
}

#[test]
fn a_frozen_task_is_cancelled_with_its_grace() {
    let sched = Sched::new();
    let script = format!(
        "trap 'echo heard >> \"{0}\"; exit 0' TERM; echo $$ >> '{1}'; while :; do :; done",
        sched.path("heard").display(),
        sched.path("pids").display()
    );
    sched.put(&TaskSpec::shell("f.t.v1", &script));
    let id = sched.run("f.t.v1", &[]);
    let pids = sched.until_lines("pids", 1);
    sched.good(&["pause", &id, "--freeze"]);
    until_all(&sched, &pids, true);
    sched.good(&["cancel", &id, "-y"]);
    let over = sched.until_over(&id, "CANCELLED");
    assert_eq!(sched.lines("heard"), ["heard"]);
    let uid = nix::unistd::geteuid().as_raw();
    assert_eq!(over["message"], format!("cancelled by uid {uid}"));
    let log = sched.json(&["events", "--since", "0"]);
    let mut moves = log.as_array().unwrap().iter().filter(|r| r["kind"] == "moved");
    let last = moves.rfind(|r| r["instanceId"] == id.as_str()).unwrap();
    assert_eq!((&last["to"], &last["uid"]), (&json!("CANCELLED"), &json!(uid)));
}

#[test]
fn skipping_one_leaves_out_what_depends_on_it_strongly() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    let after =
        |task: &str, edge: Value| TaskSpec::shell(task, "true").with(&json!({"dependsOn": [edge]}));
    sched.put_all(&[
        TaskSpec::shell("s.hold.v1", &gate.stand()),
        TaskSpec::shell("s.a.v1", "true"),
        after("s.strong.v1", json!("s.a.v1")),
        after("s.weak.v1", json!({"taskId": "s.a.v1", "strength": "WEAK"})),
    ]);
    let hold = sched.run("s.hold.v1", &[]);
    sched.until_state(&hold, "RUNNING");
    assert_eq!(sched.ctl(&["skip", "-y", &hold]).status, 6, "it runs");
    let a = sched.run("s.a.v1", &[]);
    // One that cannot be skipped, and one that is not there, stop nothing.
    let ran = sched.ctl(&["skip", "-y", &hold, "nobody", &a]);
    assert_eq!(ran.status, 6, "{ran:?}");
    assert!(ran.err.contains(&format!("{a} is skipped")), "{ran:?}");
    let skipped = sched.instance(&a);
    let by_user = (json!("CANCELLED"), json!("SKIPPED_BY_USER"));
    assert_eq!((skipped["state"].clone(), skipped["reason"].clone()), by_user);
    assert_eq!(sched.instances("s.strong.v1")[0]["reason"], "UPSTREAM_SKIPPED");
    gate.pass(1);
    sched.until_count("s.weak.v1", "SUCCEEDED", 1);
    sched.good(&["skip", "-y", &a]);
    assert_eq!(sched.instance(&a), skipped, "the second time changes nothing");
}

#[test]
fn a_retry_takes_along_what_failed_below() {
    let sched = Sched::new();
    let fixed = sched.path("fixed");
    let script = |name: &str| {
        format!("echo {name} >> '{}'; test -e '{}'", sched.path("ran").display(), fixed.display())
    };
    let weak = |upstream: &str| json!({"dependsOn": [{"taskId": upstream, "strength": "WEAK"}]});
    sched.put_all(&[
        TaskSpec::shell("r.a.v1", &script("a")),
        TaskSpec::shell("r.b.v1", &script("b")).with(&weak("r.a.v1")),
        TaskSpec::shell("r.c.v1", &script("c")).with(&json!({"dependsOn": ["r.b.v1"]})),
    ]);
    let a = sched.run("r.a.v1", &[]);
    sched.until_over(&a, "FAILED");
    let b = id_of(&sched.until_count("r.b.v1", "FAILED", 1)[0]);
    let c = id_of(&sched.until_count("r.c.v1", "BLOCKED", 1)[0]);
    fs::write(&fixed, "").unwrap();
    let ran = sched.ctl(&["retry", &a, "--with-downstream", "--same-revision"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.err.contains(&b), "{ran:?}");
    for (id, attempt) in [(&a, 2), (&b, 2), (&c, 1)] {
        assert_eq!(sched.until_over(id, "SUCCEEDED")["attempt"], attempt);
    }
    assert_eq!(sched.lines("ran"), ["a", "b", "a", "b", "c"], "each after what it waits for");
}
