//! The example of the source documents, word for word, and its wave.

use crate::harness::{Gate, Sched, TaskSpec, Value, json};

/// The example of S0, verbatim.
const SETTLE: &str = include_str!("../data/order.settle.v2.yaml");

/// A daemon that knows the example's type: a script that shows what it was given.
fn with_settle() -> Sched {
    let show = r#"echo "$1 $SCHED_PARAM_bizDate $SCHED_PARAM_batchSize $SCHED_PARAM_targetDb""#;
    let run = json!(["/bin/sh", "-c", show, "settle", "{handler}"]);
    let sched = Sched::with(&json!({"taskTypes": {"BATCH_SETTLE": {"run": run}}}));
    sched.write_spec("order.settle.v2.yaml", SETTLE);
    sched
}

fn upstream(task: &str, script: &str) -> TaskSpec {
    let params = json!({"bizDate": "date", "shardIndex": "int", "shardTotal": "int"});
    TaskSpec::shell(task, script).with(&json!({"runtimeParams": params}))
}

/// The day and the shard that a submission of an upstream is given.
const DAY: [&str; 8] = [
    "-p",
    "bizDate=2026-11-29",
    "-p",
    "shardIndex=1",
    "-p",
    "shardTotal=4",
    "--cycle",
    "2026-11-29",
];

#[test]
fn the_example_loads_and_runs_as_it_stands() {
    let sched = with_settle();
    sched.put_all(&[upstream("order.extract.v2", "true"), upstream("user.profile.v2", "true")]);
    let task = sched.get("/tasks/order.settle.v2");
    assert_eq!((&task["status"], &task["owner"]), (&json!("ACTIVE"), &json!("trade-team")));
    let args =
        ["--ignore-deps", "-p", "bizDate=2026-11-30", "-p", "shardIndex=0", "-p", "shardTotal=4"];
    let id = sched.run("order.settle.v2", &args);
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(over["maxAttempts"], 3);
    assert_eq!(over["priority"], 2);
    assert_eq!(over["staticParams"], json!({"batchSize": 500, "targetDb": "settle_db"}));
    let given = json!({"bizDate": "2026-11-30", "shardIndex": 0, "shardTotal": 4});
    assert_eq!(over["runtimeParams"], given);
    let log = sched.good(&["logs", &id]);
    assert_eq!(log, "com.demo.settle.SettleHandler 2026-11-30 500 settle_db\n");
}

#[test]
fn a_submission_without_its_parameters_is_refused_by_name_and_makes_nothing() {
    let sched = with_settle();
    sched.put_all(&[
        TaskSpec::shell("order.extract.v2", "true"),
        TaskSpec::shell("user.profile.v2", "true"),
    ]);
    let ran = sched.ctl(&["run", "order.settle.v2", "-p", "bizDate=2026-11-30"]);
    assert_eq!((ran.status, ran.out.as_str()), (6, ""));
    assert!(ran.err.contains("shardIndex") && ran.err.contains("shardTotal"), "{ran:?}");
    let ran = sched.ctl(&[
        "run",
        "order.settle.v2",
        "-p",
        "bizDate=soon",
        "-p",
        "shardIndex=1",
        "-p",
        "shardTotal=x",
    ]);
    assert_eq!(ran.status, 6);
    assert!(ran.err.contains("bizDate") && ran.err.contains("shardTotal"), "{ran:?}");
    assert_eq!(sched.instances("order.settle.v2"), Vec::<Value>::new());
}

#[test]
fn two_upstreams_meet_in_one_instance_and_their_parameters_flow_down() {
    let sched = with_settle();
    let (left, right) = (sched.gate("left"), sched.gate("right"));
    sched.put_all(&[
        upstream("order.extract.v2", &left.stand()),
        upstream("user.profile.v2", &right.stand()),
    ]);
    let extract = sched.run("order.extract.v2", &DAY);
    let profile = sched.run("user.profile.v2", &DAY);
    // The whole wave is there at once, and can be seen and explained before it runs.
    let waiting = sched.instances("order.settle.v2");
    assert_eq!(waiting.len(), 1, "{waiting:#?}");
    let (id, state) = (waiting[0]["instanceId"].as_str().unwrap(), &waiting[0]["state"]);
    assert_eq!((state, &waiting[0]["reason"]), (&json!("PENDING"), &json!("WAITING_DEPENDENCY")));
    let edges: Vec<&Value> = (0..2).map(|n| &waiting[0]["dependencies"][n]["instanceId"]).collect();
    assert_eq!(edges, [&json!(extract), &json!(profile)]);
    let pass_and_end = |gate: &Gate, id: &str| {
        gate.pass(1);
        sched.until_over(id, "SUCCEEDED");
    };
    pass_and_end(&left, &extract);
    let half = sched.instance(id);
    assert_eq!(half["state"], "PENDING");
    let satisfied = [&half["dependencies"][0]["satisfied"], &half["dependencies"][1]["satisfied"]];
    assert_eq!(satisfied, [true, false]);
    pass_and_end(&right, &profile);
    let over = sched.until_over(id, "SUCCEEDED");
    assert_eq!(over["cycle"], "2026-11-29");
    assert_eq!(
        over["runtimeParams"],
        json!({"bizDate": "2026-11-29", "shardIndex": 1, "shardTotal": 4})
    );
    sched.until_idle();
    assert_eq!(sched.instances("order.settle.v2").len(), 1);
}
