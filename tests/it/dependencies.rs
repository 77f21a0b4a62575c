//! Chains, fan-in, what a failure holds back and how that heals (requirements C1 to C3).

use crate::harness::{Sched, TaskSpec, Value, json};

fn after(task: &str, script: &str, upstreams: &[&str]) -> TaskSpec {
    TaskSpec::shell(task, script).with(&json!({"dependsOn": upstreams}))
}

/// A script that appends a word to the file `order` of the test's directory.
fn say(sched: &Sched, word: &str) -> String {
    format!("echo {word} >> '{}'", sched.path("order").display())
}

#[test]
fn a_chain_with_a_fan_in_runs_once_and_in_order() {
    let sched = Sched::new();
    sched.put_all(&[
        TaskSpec::shell("c.a.v1", &say(&sched, "a")),
        after("c.b.v1", &say(&sched, "b"), &["c.a.v1"]),
        after("c.c.v1", &say(&sched, "c"), &["c.a.v1"]),
        after("c.d.v1", &say(&sched, "d"), &["c.b.v1", "c.c.v1"]),
    ]);
    sched.run("c.a.v1", &["--cycle", "2026-11-30"]);
    sched.until_idle();
    let order = sched.lines("order");
    assert_eq!(order.len(), 4, "{order:?}");
    assert_eq!((order[0].as_str(), order[3].as_str()), ("a", "d"));
    let last = &sched.instances("c.d.v1")[0];
    assert_eq!((&last["state"], &last["cycle"]), (&json!("SUCCEEDED"), &json!("2026-11-30")));
}

#[test]
fn thirty_fan_ins_whose_upstreams_end_together_run_exactly_once_each() {
    let sched = Sched::new();
    let shared = json!({"maxConcurrent": 8});
    sched.put_all(&[
        TaskSpec::shell("f.a.v1", "true").with(&shared),
        after("f.b.v1", "true", &["f.a.v1"]).with(&shared),
        after("f.c.v1", "true", &["f.a.v1"]).with(&shared),
        after("f.d.v1", &format!("{} $SCHED_CYCLE", say(&sched, "d")), &["f.b.v1", "f.c.v1"])
            .with(&shared),
    ]);
    for day in 1..=30 {
        sched.run("f.a.v1", &["--cycle", &format!("2026-11-{day:02}")]);
    }
    sched.until_idle();
    let mut ran = sched.lines("order");
    ran.sort_unstable();
    let want: Vec<String> = (1..=30).map(|day| format!("d 2026-11-{day:02}")).collect();
    assert_eq!(ran, want);
    assert_eq!(sched.instances("f.d.v1").len(), 30);
}

/// A task that fails until the file `repaired` is there, and two that wait below it.
fn with_broken_upstream() -> Sched {
    let sched = Sched::new();
    let test = format!("test -e '{}'", sched.path("repaired").display());
    sched.put_all(&[
        TaskSpec::shell("h.a.v1", &test),
        after("h.b.v1", &say(&sched, "b"), &["h.a.v1"]),
        after("h.c.v1", &say(&sched, "c"), &["h.b.v1"]),
    ]);
    sched
}

fn only(sched: &Sched, task: &str) -> Value {
    let all = sched.instances(task);
    assert_eq!(all.len(), 1, "{all:#?}");
    all[0].clone()
}

/// Submits the broken upstream; gives its instance's id once the dependent is blocked.
fn blocked(sched: &Sched) -> String {
    let id = sched.run("h.a.v1", &["--cycle", "2026-11-30"]);
    sched.until_over(&id, "FAILED");
    let below = only(sched, "h.b.v1");
    assert_eq!(
        (&below["state"], &below["reason"]),
        (&json!("BLOCKED"), &json!("UPSTREAM_FAILED")),
        "blocked, not failed: {below:#}"
    );
    id
}

fn healed(sched: &Sched) {
    sched.until_idle();
    for task in ["h.b.v1", "h.c.v1"] {
        assert_eq!(only(sched, task)["state"], "SUCCEEDED");
    }
    assert_eq!(sched.lines("order"), ["b", "c"], "once");
}

#[test]
fn blocked_dependents_go_on_once_when_their_upstream_is_retried() {
    let sched = with_broken_upstream();
    let id = blocked(&sched);
    std::fs::write(sched.path("repaired"), "").unwrap();
    sched.good(&["retry", &id]);
    let again = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(again["attempt"], 2);
    healed(&sched);
}

#[test]
fn blocked_dependents_go_on_once_when_their_upstream_is_run_again() {
    let mut sched = with_broken_upstream();
    blocked(&sched);
    std::fs::write(sched.path("repaired"), "").unwrap();
    // Being blocked survives a crash.
    sched.kill_9();
    sched.start();
    let id = sched.run("h.a.v1", &["--cycle", "2026-11-30"]);
    sched.until_over(&id, "SUCCEEDED");
    healed(&sched);
    assert_eq!(only(&sched, "h.b.v1")["dependencies"][0]["instanceId"], json!(id));
}

#[test]
fn a_run_of_another_cycle_heals_nothing() {
    let sched = with_broken_upstream();
    blocked(&sched);
    std::fs::write(sched.path("repaired"), "").unwrap();
    let id = sched.run("h.a.v1", &["--cycle", "2026-12-01"]);
    sched.until_over(&id, "SUCCEEDED");
    sched.until("the other cycle's wave", || {
        (sched.get("/status")["instances"]["open"] == 2).then_some(())
    });
    let states: Vec<(Value, Value)> = sched
        .instances("h.b.v1")
        .iter()
        .map(|i| (i["cycle"].clone(), i["state"].clone()))
        .collect();
    assert_eq!(
        states,
        [(json!("2026-12-01"), json!("SUCCEEDED")), (json!("2026-11-30"), json!("BLOCKED"))]
    );
}

#[test]
fn a_weak_edge_holds_until_the_end_and_lets_a_failure_pass() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let weak = json!({"dependsOn": [{"taskId": "w.a.v1", "strength": "WEAK"}]});
    sched.put_all(&[
        TaskSpec::shell("w.a.v1", &format!("{}; exit 3", gate.stand())),
        TaskSpec::shell("w.b.v1", "true").with(&weak),
    ]);
    let id = sched.run("w.a.v1", &[]);
    sched.until_state(&id, "RUNNING");
    assert_eq!(only(&sched, "w.b.v1")["state"], "PENDING");
    gate.pass(1);
    sched.until_over(&id, "FAILED");
    sched.until_count("w.b.v1", "SUCCEEDED", 1);
}

#[test]
fn without_downstream_nothing_is_made_below_and_without_deps_nothing_is_waited_for() {
    let sched = Sched::new();
    sched.put_all(&[TaskSpec::shell("n.a.v1", "true"), after("n.b.v1", "true", &["n.a.v1"])]);
    let id = sched.run("n.a.v1", &["--no-downstream"]);
    sched.until_over(&id, "SUCCEEDED");
    assert_eq!(sched.instances("n.b.v1"), Vec::<Value>::new());
    let id = sched.run("n.b.v1", &["--ignore-deps", "--cycle", "2001-01-01"]);
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(over["dependencies"], json!([]));
}

#[test]
fn what_upstreams_produced_reaches_the_dependent() {
    let sched = Sched::new();
    let produce = r#"printf '{"output": {"rows": 7}}' > "$SCHED_RESULT""#;
    sched.put_all(&[
        TaskSpec::shell("o.a.v1", produce),
        after("o.b.v1", "echo \"$SCHED_DEPS $1\"", &["o.a.v1"])
            .with(&json!({"args": ["rows={deps.o.a.v1.output.rows}"]})),
    ]);
    let id = sched.run("o.a.v1", &[]);
    assert_eq!(sched.until_over(&id, "SUCCEEDED")["output"], json!({"rows": 7}));
    sched.until_count("o.b.v1", "SUCCEEDED", 1);
    let log = sched.good(&["logs", "o.b.v1@latest"]);
    let (deps, argument) = log.trim().rsplit_once(' ').unwrap();
    assert_eq!(argument, "rows=7");
    let deps: Value = serde_json::from_str(deps).unwrap();
    assert_eq!(deps["o.a.v1"]["output"], json!({"rows": 7}));
}

#[test]
fn a_dependency_that_takes_too_long_cancels_or_degrades_as_declared() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let late = |task: &str, way: &str| {
        after(task, "echo degraded=$SCHED_DEGRADED", &["t.a.v1"])
            .with(&json!({"dependencyTimeoutMs": 200, "onDependencyTimeout": way}))
    };
    sched.put_all(&[
        TaskSpec::shell("t.a.v1", &gate.stand()),
        late("t.cancel.v1", "CANCEL"),
        late("t.degrade.v1", "RUN_DEGRADED"),
    ]);
    sched.run("t.a.v1", &[]);
    let cancelled = sched.until_count("t.cancel.v1", "CANCELLED", 1);
    assert_eq!(cancelled[0]["reason"], "DEPENDENCY_TIMEOUT");
    let degraded = sched.until_count("t.degrade.v1", "SUCCEEDED", 1);
    assert_eq!(degraded[0]["degraded"], true);
    assert_eq!(sched.good(&["logs", "t.degrade.v1@latest"]), "degraded=1\n");
}
