//! `explain` and `graph` (requirement C6; contract §5).

use crate::harness::{Sched, TaskSpec, Value, json};

/// What `schedctl explain` prints, once it holds all of these texts.
fn explained(sched: &Sched, name: &str, texts: &[&str]) -> String {
    sched.until(&format!("{name} explained with {texts:?}"), || {
        let words = sched.good(&["explain", name]);
        texts.iter().all(|text| words.contains(text)).then_some(words)
    })
}

fn after(task: &str, upstreams: &[&str]) -> TaskSpec {
    TaskSpec::shell(task, "true").with(&json!({"dependsOn": upstreams}))
}

#[test]
fn a_blocked_chain_is_led_down_to_the_exit_status_and_the_log_of_its_root() {
    let sched = Sched::new();
    sched.put_all(&[
        TaskSpec::shell("x.a.v1", "echo reading; echo 'no rows' >&2; exit 1"),
        after("x.b.v1", &["x.a.v1"]),
        after("x.c.v1", &["x.b.v1"]),
    ]);
    let root = sched.run("x.a.v1", &["--cycle", "2026-11-30"]);
    sched.until_over(&root, "FAILED");
    let words = explained(&sched, "x.c.v1@2026-11-30", &["PENDING", "BLOCKED (UPSTREAM_FAILED)"]);
    let retry = format!("schedctl retry {root}");
    for text in ["x.a.v1", "EXIT_1", "| reading", "| no rows", &retry] {
        assert!(words.contains(text), "{text:?} is not in:\n{words}");
    }
    let told = sched.json(&["explain", "x.b.v1@2026-11-30"]);
    assert_eq!((&told["state"], &told["reason"]), (&json!("BLOCKED"), &json!("UPSTREAM_FAILED")));
    let blocker = &told["blockedBy"][0];
    assert_eq!((&blocker["instanceId"], &blocker["errorCode"]), (&json!(root), &json!("EXIT_1")));
    assert_eq!(blocker["log"], json!(["reading", "no rows"]));
    let printed = sched.good(&["explain", "x.b.v1@2026-11-30"]);
    let first = told["summary"][1].as_str().unwrap().split(" since ").next().unwrap();
    assert!(printed.contains(first), "{printed}\nis not {told:#}");
}

#[test]
fn what_waits_ready_names_the_quota_the_person_the_labels_and_the_next_attempt() {
    let sched = Sched::with(&json!({
        "executors": [{"id": "local", "slots": 8, "labels": {"zone": "a"}}],
        "queues": [{"name": "default", "weight": 1}, {"name": "night", "weight": 1, "maxRunning": 1}],
    }));
    let gate = sched.gate("gate");
    let tries = json!({"retry": {"maxAttempts": 3, "intervalMs": 600_000}});
    sched.put_all(&[
        TaskSpec::shell("q.hold.v1", &gate.stand()).with(&json!({"queue": "night"})),
        TaskSpec::shell("q.wait.v1", "true").with(&json!({"queue": "night"})),
        TaskSpec::shell("q.held.v1", "true"),
        TaskSpec::shell("q.away.v1", "true").with(&json!({"executorLabels": {"zone": "b"}})),
        TaskSpec::shell("q.again.v1", "exit 3").with(&tries),
    ]);
    let holder = sched.run("q.hold.v1", &[]);
    sched.until_state(&holder, "RUNNING");
    sched.run("q.wait.v1", &[]);
    let held_by = format!("held by q.hold.v1 {holder}");
    let wanted = ["READY (QUOTA)", "The queue night is full: 1 run, maxRunning is 1", &held_by];
    explained(&sched, "q.wait.v1@latest", &wanted);
    let told = sched.json(&["explain", "q.wait.v1@latest"]);
    assert_eq!(told["quotas"][0]["heldBy"][0]["instanceId"], json!(holder));

    sched.good(&["pause", "q.held.v1", "--reason", "bank is closed", "-y"]);
    sched.run("q.held.v1", &[]);
    let uid = format!("The task q.held.v1 is paused by uid {}", nix::unistd::getuid());
    explained(&sched, "q.held.v1@latest", &["READY (PAUSED)", &uid, "(bank is closed)"]);

    sched.run("q.away.v1", &[]);
    let labels = ["READY (NO_EXECUTOR)", "with the labels zone=b", "takes *; zone=a"];
    explained(&sched, "q.away.v1@latest", &labels);

    sched.run("q.again.v1", &[]);
    let retry = ["FAILED (RETRY_WAIT)", "EXIT_3", "It is tried again", "2 attempts left"];
    explained(&sched, "q.again.v1@latest", &retry);

    sched.good(&["cancel", "q.again.v1@latest", "-y"]);
    let by = format!("It was cancelled by uid {}", nix::unistd::getuid());
    explained(&sched, "q.again.v1@latest", &["CANCELLED (CANCELLED_BY_USER)", &by]);
    gate.pass(1);
}

#[test]
fn a_task_tells_what_became_of_a_time_and_a_time_that_is_none() {
    let sched = Sched::new();
    let every = json!({"triggers": [{"every": "1s"}, {"cron": "0 2 30 11 *"}]});
    sched.put(&TaskSpec::shell("t.tick.v1", "true").with(&every));
    let made = sched.until_count("t.tick.v1", "SUCCEEDED", 1);
    let (id, at) = (&made[0]["instanceId"], made[0]["scheduledTime"].as_str().unwrap());
    let told = sched.json(&["explain", "t.tick.v1", "--at", at]);
    assert_eq!(&told["at"]["fire"]["instanceId"], id, "{told:#}");
    let words = sched.good(&["explain", "t.tick.v1", "--at", at]);
    assert!(words.contains("made an instance (INSTANCE)"), "{words}");

    let between = at.replace(".000Z", ".500Z");
    let words = sched.good(&["explain", "t.tick.v1", "--at", &between]);
    assert!(words.contains("No trigger of t.tick.v1 has the time"), "{words}");
    assert!(words.contains(&at.replace(".000Z", "Z")), "the nearest fire before it: {words}");

    sched.good(&["pause", "t.tick.v1", "-y"]);
    let paused = sched.until("a fire that the pause took", || {
        let row = sched.fires("t.tick.v1").into_iter().find(|row| row["outcome"] == "PAUSED")?;
        Some(row["to"].as_str().unwrap().to_owned())
    });
    let words = sched.good(&["explain", "t.tick.v1", "--at", &paused]);
    assert!(words.contains("made nothing (PAUSED)"), "{words}");
    assert!(words.contains("t.tick.v1 is PAUSED"), "{words}");
    assert_eq!(sched.ctl(&["explain", "t.tock.v1"]).status, 4);
    assert_eq!(sched.ctl(&["explain", "nothing"]).status, 4);
}

#[test]
fn the_graph_is_drawn_in_every_form_for_definitions_and_for_a_cycle() {
    let sched = Sched::new();
    let odd = json!({"name": "b \"<&>", "owner": "<o>", "dependsOn": [{"taskId": "g.a.v1", "strength": "WEAK"}]});
    sched.put_all(&[
        TaskSpec::shell("g.a.v1", "exit 1"),
        TaskSpec::shell("g.b.v1", "true").with(&odd),
        after("g.c.v1", &["g.b.v1"]),
        after("g.lost.v1", &["g.gone.v1"]),
        TaskSpec::shell("g.other.v1", "true"),
    ]);
    let tree = sched.good(&["graph"]);
    let branch = "g.a.v1\n└─ [WEAK] g.b.v1 (b \"<&>)  after g.a.v1\n   └─ g.c.v1  after g.b.v1\n";
    assert!(tree.contains(branch), "{tree}");
    assert!(tree.contains("g.gone.v1  UNRESOLVED: no file defines it"), "{tree}");
    assert!(sched.good(&["graph", "--format", "dot"]).starts_with("digraph"));
    assert!(sched.good(&["graph", "--format", "mermaid"]).starts_with("flowchart"));
    let svg = sched.good(&["graph", "--format", "svg"]);
    assert!(svg.contains("<svg") && svg.contains("b &quot;&lt;&amp;&gt;"), "{svg}");

    let ids = |view: &Value| -> Vec<String> {
        let nodes = view["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["taskId"].as_str().unwrap().to_owned()).collect()
    };
    let around = sched.json(&["graph", "g.c.v1"]);
    assert_eq!(ids(&around), ["g.a.v1", "g.b.v1", "g.c.v1"]);

    sched.run("g.a.v1", &["--cycle", "2026-11-30"]);
    sched.until_idle();
    let view = sched.json(&["graph", "--cycle", "2026-11-30"]);
    let states: Vec<&Value> =
        view["nodes"].as_array().unwrap().iter().map(|n| &n["instance"]["state"]).collect();
    assert_eq!(states, [&json!("FAILED"), &json!("SUCCEEDED"), &json!("SUCCEEDED")]);
    assert_eq!(view["edges"].as_array().unwrap().len(), 2, "{view:#}");
    let tree = sched.good(&["graph", "--cycle", "2026-11-30"]);
    assert!(tree.contains("FAILED EXIT_1, cycle 2026-11-30\n└─ [WEAK] g.b.v1"), "{tree}");
    assert_eq!(sched.ctl(&["graph", "--cycle", "yesterday"]).status, 6);
    assert_eq!(sched.ctl(&["graph", "g.none.v1"]).status, 4);
}
