//! The coming night, as a user has it told (contract §5, 'simulate').

use std::time::Duration;

use sched::model::time::Timestamp;

use crate::harness::{Sched, TaskSpec, Value, json};

const DAY: [&str; 4] = ["--from", "2030-01-01T00:00:00Z", "--to", "2030-01-02T00:00:00Z"];

fn simulate(sched: &Sched, more: &[&str]) -> Value {
    sched.json(&[&["simulate"], more].concat())
}

fn of<'v>(view: &'v Value, task: &str) -> Vec<&'v Value> {
    let instances = view["instances"].as_array().unwrap();
    instances.iter().filter(|i| i["taskId"] == task).collect()
}

#[test]
fn a_night_takes_its_lengths_from_history_and_changes_nothing() {
    let sched = Sched::with(&json!({"timezone": "UTC",
        "executors": [{"id": "local", "slots": 1}]}));
    sched.put_all(&[
        TaskSpec::shell("a.t.v1", "true").with(&json!({"triggers": [{"cron": "0 2 * * *"}]})),
        TaskSpec::shell("b.t.v1", "true").with(&json!({"dependsOn": ["a.t.v1"]})),
        TaskSpec::shell("c.t.v1", "true").with(&json!({"triggers": [{"event": "go"}]})),
    ]);
    let ran = sched.run("a.t.v1", &["--no-downstream"]);
    let ran = sched.until_over(&ran, "SUCCEEDED");
    let events = sched.json(&["events"]);
    let more =
        ["--assume", "10m", "--deadline", "b.t.v1=02:05", "--event", "go=2030-01-01T03:00:00Z"];
    let view = simulate(&sched, &[&DAY, &more as &[&str]].concat());
    let (a, b) = (of(&view, "a.t.v1"), of(&view, "b.t.v1"));
    assert_eq!((a.len(), b.len(), of(&view, "c.t.v1").len()), (1, 1, 1));
    assert_eq!(a[0]["startedAt"], "2030-01-01T02:00:00.000Z");
    // It ends as much later as its only run took, and b starts then.
    assert_eq!(b[0]["startedAt"], a[0]["finishedAt"]);
    let took = ran["durationMs"].as_u64().unwrap();
    let begun = Timestamp::parse("2030-01-01T02:00:00Z").unwrap();
    assert_eq!(a[0]["finishedAt"], json!(begun.plus(Duration::from_millis(took))));
    // b never ran: it takes the ten minutes, and that is five too many.
    assert_eq!(view["assumed"], json!(["b.t.v1", "c.t.v1"]));
    let late = view["late"].as_array().unwrap();
    assert_eq!((late.len(), &late[0]["taskId"]), (1, &json!("b.t.v1")));
    assert_eq!(late[0]["lateByMs"], json!(5 * 60_000 + took));
    assert_eq!(view["summary"]["peakSlots"], 1);
    assert_eq!(simulate(&sched, &[&DAY, &more as &[&str]].concat()), view, "told twice");
    assert_eq!(sched.json(&["events"]), events, "nothing has happened");
    let text = sched.good(&[&["simulate"], &DAY as &[&str]].concat());
    assert!(text.contains("b.t.v1") && text.contains("LONGEST WAIT"), "{text}");
}

#[test]
fn what_runs_now_and_what_waits_for_it_are_part_of_the_night() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    sched.put_all(&[TaskSpec::shell("h.t.v1", &gate.stand()), TaskSpec::shell("p.t.v1", "true")]);
    let holds = sched.run("h.t.v1", &[]);
    sched.until_state(&holds, "RUNNING");
    let waits = sched.run("p.t.v1", &[]);
    let view = simulate(&sched, &["--to", "2h", "--assume", "h.t.v1=1h"]);
    let (h, p) = (of(&view, "h.t.v1")[0], of(&view, "p.t.v1")[0]);
    assert_eq!((&h["instanceId"], &h["takenOver"]), (&json!(holds), &json!(true)));
    assert_eq!((&p["instanceId"], &p["state"]), (&json!(waits), &json!("SUCCEEDED")));
    assert_eq!(p["startedAt"], h["finishedAt"], "there is one slot");
    let waited = view["queues"][0]["maxWaitMs"].as_u64().unwrap();
    assert!(waited > 50 * 60_000, "{waited}");
    assert_eq!(sched.instance(&holds)["state"], "RUNNING");
    gate.pass(1);
    sched.until_over(&waits, "SUCCEEDED");
}

#[test]
fn other_definitions_can_be_tried_with_and_without_a_daemon() {
    let mut sched = Sched::with(&json!({"timezone": "UTC",
        "taskTypes": {"OWN": {"run": ["true", "{handler}"]}}}));
    sched.put(
        &TaskSpec::shell("a.t.v1", "true").with(&json!({"triggers": [{"cron": "0 2 * * *"}]})),
    );
    let dir = sched.path("other");
    std::fs::create_dir(&dir).unwrap();
    let other = TaskSpec::shell("new.t.v1", "true")
        .with(&json!({"triggers": [{"cron": "0 */6 * * *"}], "taskType": "OWN"}));
    std::fs::write(dir.join("new.yaml"), other.text()).unwrap();
    let specs = ["--specs", dir.to_str().unwrap()];
    let view = simulate(&sched, &[&DAY, &specs as &[&str]].concat());
    assert_eq!((of(&view, "a.t.v1").len(), of(&view, "new.t.v1").len()), (0, 4));
    sched.kill_9();
    let config = sched.path("schedd.yaml");
    let config = ["--config", config.to_str().unwrap()];
    let alone = simulate(&sched, &[&DAY as &[&str], &specs, &config].concat());
    assert_eq!(of(&alone, "new.t.v1").len(), 4);
    assert_eq!(sched.ctl(&[&["simulate"], &DAY as &[&str]].concat()).status, 5);
    std::fs::write(dir.join("bad.yaml"), "taskId: x.v1\n").unwrap();
    let ran = sched.ctl(&[&["simulate"], &DAY as &[&str], &specs, &config].concat());
    assert_eq!(ran.status, 6);
    assert!(ran.err.contains("bad.yaml") && ran.out.is_empty(), "{ran:?}");
}
