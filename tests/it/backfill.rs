//! Past cycles filled in, as a user sees it (docs/waves.md, rule 15).

use crate::harness::{Sched, TaskSpec, Value, json};

/// The days of a February with a 29th.
fn days() -> Vec<String> {
    (1..=29).map(|day| format!("2024-02-{day:02}")).collect()
}

const MONTH: [&str; 4] = ["--from", "2024-02-01", "--to", "2024-02-29"];

fn backfill(sched: &Sched, task: &str, more: &[&str]) -> Value {
    sched.json(&[&["backfill", task], &MONTH as &[&str], more].concat())
}

#[test]
fn a_month_of_nights_and_what_depends_on_them_run_once_each_over_a_kill_of_the_daemon() {
    let mut sched = Sched::new();
    let gate = sched.gate("gate");
    let write = |name: &str| format!("echo $SCHED_CYCLE >> '{}'", sched.path(name).display());
    let nightly = json!({"triggers": [{"cron": "0 2 * * *"}], "idempotent": false,
        "maxConcurrent": 4});
    let below = json!({"dependsOn": ["a.t.v1"], "idempotent": false, "maxConcurrent": 4});
    sched.put_all(&[
        TaskSpec::shell("a.t.v1", &format!("{}; {}", write("ran"), gate.stand())).with(&nightly),
        TaskSpec::shell("b.t.v1", &write("below")).with(&below),
    ]);
    let made = backfill(&sched, "a.t.v1", &["--request-id", "february"]);
    assert_eq!(made["instances"].as_array().unwrap().len(), 29);
    // The oldest are at it, the others wait for their turn.
    let mut first = sched.until_lines("ran", 4);
    first.sort_unstable();
    assert_eq!(first, days()[..4]);
    sched.kill_9();
    gate.pass(29);
    sched.start();
    // Whoever did not hear the answer asks again.
    let again = backfill(&sched, "a.t.v1", &["--request-id", "february"]);
    assert_eq!((&again["instances"], &again["repeated"]), (&made["instances"], &json!(true)));
    sched.until_idle();
    for name in ["ran", "below"] {
        let mut ran = sched.lines(name);
        ran.sort_unstable();
        assert_eq!(ran, days(), "{name}: none lost, none doubled");
    }
    for task in ["a.t.v1", "b.t.v1"] {
        let instances = sched.instances(task);
        assert_eq!(instances.len(), 29, "{task}");
        assert!(instances.iter().all(|i| i["state"] == "SUCCEEDED"), "{instances:#?}");
    }
    assert_eq!(sched.fires("a.t.v1"), Vec::<Value>::new(), "they are no fires");
    // Now there is nothing to do, and that is good.
    let nothing = backfill(&sched, "a.t.v1", &[]);
    assert_eq!(nothing["instances"], json!([]));
    assert!(
        nothing["cycles"].as_array().unwrap().iter().all(|c| c["skipped"]["reason"] == "SUCCEEDED")
    );
}

#[test]
fn a_backfilled_run_knows_its_night_and_what_made_it() {
    let sched = Sched::new();
    let script = "echo $SCHED_TRIGGER $SCHED_DATE $SCHED_SCHEDULED_TIME $SCHED_PARAM_day";
    sched.put(&TaskSpec::shell("a.t.v1", script).with(&json!({
        "timezone": "Asia/Shanghai", "cycle": {"unit": "DAY", "offset": -1},
        "runtimeParams": {"day": "date"},
        "triggers": [{"cron": "0 2 * * *", "params": {"day": "{date}"}}],
    })));
    let args = ["backfill", "a.t.v1", "--from", "2024-02-29", "--to", "2024-02-29", "-q"];
    let id = sched.good(&args).trim().to_owned();
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(
        (&over["trigger"]["kind"], &over["cycle"]),
        (&json!("backfill"), &json!("2024-02-29"))
    );
    // Two in the morning of the first of March in Shanghai.
    assert_eq!(over["scheduledTime"], "2024-02-29T18:00:00.000Z");
    let log = sched.good(&["logs", &id]);
    assert!(log.starts_with("backfill 2024-02-29 2024-02-29T18:00:00"), "{log}");
    assert!(log.trim_end().ends_with(" 2024-02-29"), "{log}");
}

#[test]
fn a_dry_run_shows_what_would_be_made_and_refusals_have_their_status() {
    let sched = Sched::new();
    sched.put_all(&[
        TaskSpec::shell("a.t.v1", "true").with(&json!({"triggers": [{"cron": "0 2 * * *"}]})),
        TaskSpec::shell("b.t.v1", "true").with(&json!({"dependsOn": ["a.t.v1"]})),
        TaskSpec::shell("f.t.v1", "true").with(&json!({"triggers": [{"event": "ev"}]})),
    ]);
    let told = backfill(&sched, "a.t.v1", &["--dry-run"]);
    let cycles = told["cycles"].as_array().unwrap();
    let labels: Vec<&str> = cycles.iter().map(|c| c["cycle"].as_str().unwrap()).collect();
    assert_eq!(labels, days());
    assert_eq!(cycles[0]["scheduledTime"], "2024-02-01T02:00:00.000Z");
    assert_eq!(cycles[0]["downstream"][0]["taskId"], "b.t.v1");
    let args = [&["backfill", "a.t.v1", "--dry-run", "--newest-first"], &MONTH as &[&str]].concat();
    let table = sched.ctl(&args);
    let rows: Vec<&str> = table.out.lines().collect();
    assert_eq!(rows.len(), 30, "{table:?}");
    assert!(rows[1].starts_with("2024-02-29 ") && rows[1].contains("b.t.v1"), "{table:?}");
    assert!(table.err.contains("29 instances of a.t.v1 would be made"), "{table:?}");
    assert_eq!(sched.get("/instances"), json!([]));
    let status = |task: &str, from: &str, to: &str| {
        let ran = sched.ctl(&["backfill", task, "--from", from, "--to", to]);
        assert!(ran.status == 0 || ran.out.is_empty(), "{ran:?}");
        ran.status
    };
    for (task, from, to, exit) in [
        ("none.t.v1", "2024-02-01", "2024-02-02", 4),
        ("f.t.v1", "2024-02-01", "2024-02-02", 6),
        ("a.t.v1", "1.2.2024", "2024-02-02", 6),
        ("a.t.v1", "2024-02-03", "2024-02-02", 6),
        ("a.t.v1", "1970-01-01", "2024-02-02", 6),
        ("a.t.v1", "2090-01-01", "2090-01-02", 0),
    ] {
        assert_eq!(status(task, from, to), exit, "{task} {from} {to}");
    }
    assert_eq!(sched.ctl(&["backfill", "a.t.v1", "--from", "2024-02-01"]).status, 2);
    assert_eq!(sched.get("/instances"), json!([]));
}
