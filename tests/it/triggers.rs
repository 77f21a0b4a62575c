//! What starts tasks: time, events, other tasks, the boot (requirements E1 and E2).

use std::fs;

use crate::harness::{Sched, TaskSpec, Value, json, now_ms};

fn triggered(task: &str, script: &str, trigger: &Value) -> TaskSpec {
    TaskSpec::shell(task, script).with(&json!({"triggers": [trigger]}))
}

fn second(text: &Value) -> i64 {
    let at: jiff::Timestamp = text.as_str().unwrap().parse().unwrap();
    at.as_second()
}

/// Checks that the ledger's rows stand one after the other, `step` seconds apart, and that each
/// counts its fires; gives their sum.
fn without_gap_or_double(rows: &[Value], step: i64) -> i64 {
    let mut spans: Vec<(i64, i64, i64)> = rows
        .iter()
        .map(|r| (second(&r["from"]), second(&r["to"]), r["count"].as_i64().unwrap()))
        .collect();
    spans.sort_unstable();
    for (from, to, count) in &spans {
        assert_eq!((to - from) / step + 1, *count, "{rows:#?}");
        assert_eq!(from % step, 0, "aligned");
    }
    for pair in spans.windows(2) {
        assert_eq!(pair[1].0 - pair[0].1, step, "gap or double: {rows:#?}");
    }
    spans.iter().map(|(_, _, count)| count).sum()
}

#[test]
fn cron_fires_every_second_and_the_ledger_counts_each_once() {
    let mut sched = Sched::new();
    let trigger = json!({"cron": "* * * * * *", "misfire": "RUN_ALL", "overlap": "QUEUE"});
    sched.put(
        &triggered("tick.t.v1", "echo $SCHED_SCHEDULED_TIME >> ran", &trigger)
            .with(&json!({"workingDir": sched.dir()})),
    );
    sched.until_lines("ran", 2);
    sched.kill_9();
    sched.start();
    sched.until_lines("ran", 4);
    fs::remove_file(sched.spec_path("tick.t.v1.yaml")).unwrap();
    sched.until("no more fires", || {
        (sched.ask("GET", "/tasks/tick.t.v1", "").ok()?.status == 404).then_some(())
    });
    sched.until_idle();
    let rows = sched.get("/fires?taskId=tick.t.v1").as_array().unwrap().clone();
    let fires = without_gap_or_double(&rows, 1);
    assert!(fires >= 4, "{rows:#?}");
    assert!(rows.iter().all(|r| r["outcome"] == "INSTANCE" && r["instanceId"].is_string()));
    let ran = sched.lines("ran");
    assert_eq!(i64::try_from(ran.len()).unwrap(), fires, "every fire ran, once");
    let mut times = ran.clone();
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), ran.len(), "no time twice: {ran:?}");
}

#[test]
fn fires_missed_while_no_daemon_ran_are_treated_as_declared_and_counted() {
    let mut sched = Sched::new();
    let ways = [("once.t.v1", "RUN_ONCE"), ("all.t.v1", "RUN_ALL"), ("skip.t.v1", "SKIP")];
    for (task, way) in ways {
        let trigger = json!({"cron": "* * * * * *", "misfire": way, "overlap": "QUEUE"});
        sched.put(&triggered(task, "true", &trigger));
    }
    for (task, _) in ways {
        sched.until("a fire", || (!sched.fires(task).is_empty()).then_some(()));
    }
    sched.kill_9();
    let stopped = now_ms();
    sched.until("missed fires", || (now_ms() > stopped + 3100).then_some(()));
    sched.start();
    let missed = |row: &&Value| row["reason"] == "due while no daemon ran";
    for (task, _) in ways {
        let rows = sched.until("a fire after the pause", || {
            let newest = |rows: &Vec<Value>| second(&rows.last().unwrap()["to"]);
            Some(sched.fires(task)).filter(|rows| newest(rows) * 1000 > stopped + 3100)
        });
        without_gap_or_double(&rows, 1);
        let outcomes: Vec<&Value> = rows.iter().filter(missed).map(|r| &r["outcome"]).collect();
        match task {
            "once.t.v1" => assert_eq!(outcomes, ["COALESCED"], "{rows:#?}"),
            "skip.t.v1" => assert_eq!(outcomes, ["MISSED"], "{rows:#?}"),
            _ => assert!(rows.iter().all(|r| r["outcome"] == "INSTANCE"), "{rows:#?}"),
        }
        let ran = rows.iter().filter(|r| r["outcome"] == "INSTANCE");
        for row in ran {
            let id = row["instanceId"].as_str().unwrap();
            assert_eq!(sched.instance(id)["scheduledTime"], row["from"]);
        }
    }
}

#[test]
fn a_fire_while_the_last_run_is_on_is_skipped_and_recorded() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    sched.put(&triggered("slow.t.v1", &gate.stand(), &json!({"cron": "* * * * * *"})));
    let rows = sched.until("a skipped fire", || {
        let rows = sched.fires("slow.t.v1");
        rows.iter().any(|r| r["outcome"] == "SKIPPED_OVERLAP").then_some(rows)
    });
    without_gap_or_double(&rows, 1);
    assert_eq!(sched.instances("slow.t.v1").len(), 1);
}

#[test]
fn every_fires_at_a_fixed_rate_from_the_epoch() {
    let sched = Sched::new();
    sched.put(&triggered("pulse.t.v1", "true", &json!({"every": "2s", "overlap": "QUEUE"})));
    let rows =
        sched.until("two fires", || Some(sched.fires("pulse.t.v1")).filter(|rows| rows.len() >= 2));
    without_gap_or_double(&rows, 2);
    let first = sched.until_count("pulse.t.v1", "SUCCEEDED", 1);
    assert_eq!(first[0]["trigger"], json!({"kind": "every", "periodMs": 2000}));
}

#[test]
fn an_event_starts_who_listens_and_says_who_refused_its_parameters() {
    let sched = Sched::new();
    let trigger = json!({"event": "orders.arrived", "params": {"n": "{event.n}"}});
    let spec = triggered("on.t.v1", "echo got $SCHED_PARAM_n", &trigger);
    sched.put(&spec.with(&json!({"runtimeParams": {"n": {"type": "int", "required": true}}})));
    let refused = sched.ctl(&["emit", "orders.arrived", "-p", "n=abc"]);
    assert_eq!(refused.status, 6, "{refused:?}");
    assert!(refused.err.contains("on.t.v1"), "{refused:?}");
    assert_eq!(sched.instances("on.t.v1"), Vec::<Value>::new());
    sched.good(&["emit", "orders.arrived", "-p", "n=3"]);
    let made = sched.until_count("on.t.v1", "SUCCEEDED", 1);
    assert_eq!(made[0]["runtimeParams"], json!({"n": 3}));
    assert_eq!(made[0]["trigger"]["kind"], "event");
    assert_eq!(made[0]["cycle"], made[0]["instanceId"], "a run of its own");
    assert_eq!(sched.good(&["logs", "on.t.v1@latest"]), "got 3\n");
    let outcomes: Vec<Value> =
        sched.fires("on.t.v1").iter().map(|row| row["outcome"].clone()).collect();
    assert_eq!(outcomes, ["REJECTED_PARAMS", "INSTANCE"]);
}

#[test]
fn the_final_failure_of_a_task_starts_who_watches_it() {
    let sched = Sched::new();
    let flaky = TaskSpec::shell("main.t.v1", "exit $SCHED_PARAM_code").with(&json!({
        "runtimeParams": {"code": "int"},
        "retry": {"maxAttempts": 2, "intervalMs": 50},
    }));
    let alarm = triggered("alarm.t.v1", "true", &json!({"task": "main.t.v1"}));
    let praise = json!({"task": "main.t.v1", "states": ["SUCCEEDED"]});
    sched.put_all(&[flaky, alarm, triggered("praise.t.v1", "true", &praise)]);
    let bad = sched.run("main.t.v1", &["-p", "code=3"]);
    sched.until_over(&bad, "FAILED");
    let made = sched.until_count("alarm.t.v1", "SUCCEEDED", 1);
    assert_eq!(
        made[0]["trigger"],
        json!({"kind": "task", "taskId": "main.t.v1", "instanceId": bad, "state": "FAILED"})
    );
    let good = sched.run("main.t.v1", &["-p", "code=0"]);
    sched.until_over(&good, "SUCCEEDED");
    sched.until_count("praise.t.v1", "SUCCEEDED", 1);
    sched.until_idle();
    assert_eq!(sched.instances("alarm.t.v1").len(), 1, "once, at the end for good");
    assert_eq!(sched.instances("praise.t.v1").len(), 1);
}

#[test]
fn a_boot_is_one_fire_however_often_the_daemon_starts() {
    let mut sched = Sched::prepared(&json!({}));
    let spec = triggered("boot.t.v1", "echo up >> booted", &json!({"boot": true}));
    let spec = spec.with(&json!({"workingDir": sched.dir()}));
    sched.write_spec("boot.yaml", &spec.text());
    sched.start();
    sched.until_lines("booted", 1);
    sched.restart();
    sched.kill_9();
    sched.start();
    // The first reading of the directory is what would fire it; it is over when this is in force.
    sched.task("after.t.v1", "true");
    let after = sched.run("after.t.v1", &[]);
    sched.until_over(&after, "SUCCEEDED");
    sched.until_idle();
    assert_eq!(sched.lines("booted"), ["up"]);
    assert_eq!(sched.instances("boot.t.v1").len(), 1);
}

#[test]
fn a_task_with_time_and_dependencies_needs_both() {
    let sched = Sched::new();
    let trigger = json!({"event": "go"});
    let both = triggered("both.t.v1", "true", &trigger)
        .with(&json!({"dependsOn": ["data.t.v1"], "cycle": {"unit": "DAY"}}));
    sched.put_all(&[TaskSpec::shell("data.t.v1", "true"), both]);
    let data = sched.run("data.t.v1", &["--cycle", "2020-01-01"]);
    sched.until_over(&data, "SUCCEEDED");
    assert_eq!(sched.instances("both.t.v1"), Vec::<Value>::new(), "the time is missing");
    sched.good(&["emit", "go"]);
    let waiting = sched.instances("both.t.v1");
    assert_eq!(waiting[0]["state"], "PENDING", "another day's data does not count");
    let day = waiting[0]["cycle"].as_str().unwrap();
    sched.run("data.t.v1", &["--cycle", day]);
    sched.until_count("both.t.v1", "SUCCEEDED", 1);
    assert_eq!(sched.instances("both.t.v1").len(), 1);
}
