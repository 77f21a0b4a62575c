//! Data that is waited for: `outputs` and `depType: DATA_READY` (requirement C1, docs/waves.md, rule 8).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::harness::{Sched, TaskSpec, Value, json, now_ms};

/// A task that writes nothing itself but promises these paths, and one that waits for them.
fn pair(sched: &Sched, outputs: &Value, script: &str) {
    let edge = json!({"taskId": "dr.a.v1", "depType": "DATA_READY"});
    sched.put_all(&[
        TaskSpec::shell("dr.a.v1", "true").with(&json!({"outputs": outputs})),
        TaskSpec::shell("dr.b.v1", script).with(&json!({"dependsOn": [edge]})),
    ]);
}

/// Runs the upstream to its end; its id.
fn produce(sched: &Sched) -> String {
    let id = sched.run("dr.a.v1", &["--cycle", "2026-11-30"]);
    sched.until_over(&id, "SUCCEEDED");
    id
}

/// The newest dependent, once its message says this.
fn until_told(sched: &Sched, words: &str) -> Value {
    sched.until(&format!("a message with {words:?}"), || {
        let newest = sched.instances("dr.b.v1").into_iter().next()?;
        newest["message"].as_str().is_some_and(|text| text.contains(words)).then_some(newest)
    })
}

/// A file that says it was last written in 2001.
fn write_old(path: &Path) {
    fs::write(path, "old\n").unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().append(true).open(path).unwrap().set_modified(old).unwrap();
}

/// Waits until a run that begins now is surely later than the last change of a file.
fn until_past(sched: &Sched, path: &Path) {
    let meta = fs::metadata(path).unwrap();
    let changed_ms = meta.ctime() * 1000 + meta.ctime_nsec() / 1_000_000;
    sched.until("a later time", || (now_ms() > changed_ms + 50).then_some(()));
}

#[test]
fn a_dependent_starts_when_the_data_is_there_and_says_what_is_missing_until_then() {
    let sched = Sched::new();
    let [part, draft] = ["part", "draft"].map(|name| sched.path(name));
    // What an earlier run left behind.
    write_old(&part);
    pair(&sched, &json!([part]), "echo \"$SCHED_DEPS\"");
    until_past(&sched, &part);
    produce(&sched);
    let waits = until_told(&sched, "was last changed at");
    assert_eq!(
        (&waits["state"], &waits["reason"]),
        (&json!("PENDING"), &json!("WAITING_DEPENDENCY"))
    );
    let edge = &waits["dependencies"][0];
    assert_eq!((&edge["state"], &edge["satisfied"]), (&json!("SUCCEEDED"), &json!(false)));
    fs::remove_file(&part).unwrap();
    until_told(&sched, &format!("{} is not there", part.display()));
    fs::write(&part, "").unwrap();
    until_told(&sched, "part is empty");
    // Moved in with its old time: that it came now is what counts.
    write_old(&draft);
    fs::rename(&draft, &part).unwrap();
    let done = sched.until_count("dr.b.v1", "SUCCEEDED", 1).remove(0);
    let edge = &done["dependencies"][0];
    assert_eq!((&edge["satisfied"], &done["message"]), (&json!(true), &Value::Null));
    let deps: Value = serde_json::from_str(&sched.good(&["logs", "dr.b.v1@latest"])).unwrap();
    assert_eq!(deps["dr.a.v1"]["outputs"], json!([part]));
}

#[test]
fn a_directory_is_there_once_it_has_an_entry() {
    let sched = Sched::new();
    let dir = sched.path("parts");
    pair(&sched, &json!([dir]), "true");
    produce(&sched);
    until_told(&sched, "parts is not there");
    fs::create_dir(&dir).unwrap();
    until_told(&sched, "parts is a directory with nothing in it");
    fs::write(dir.join("part-0"), "").unwrap();
    sched.until_count("dr.b.v1", "SUCCEEDED", 1);
}

#[test]
fn the_wait_and_what_was_found_outlive_the_daemon() {
    let mut sched = Sched::new();
    // Relative to the spec file.
    pair(&sched, &json!(["out/{date}.csv"]), "true");
    let file = sched.spec_path("out").join("2026-11-30.csv");
    fs::create_dir(file.parent().unwrap()).unwrap();
    produce(&sched);
    until_told(&sched, &format!("{} is not there", file.display()));
    sched.kill_9();
    sched.start();
    assert_eq!(sched.instances("dr.b.v1")[0]["state"], "PENDING");
    sched.kill_9();
    fs::write(&file, "1\n").unwrap();
    sched.start();
    sched.until_count("dr.b.v1", "SUCCEEDED", 1);
    // It was there: whoever comes later needs no second look.
    fs::remove_file(&file).unwrap();
    sched.restart();
    let later = sched.run("dr.b.v1", &["--cycle", "2026-11-30"]);
    sched.until_over(&later, "SUCCEEDED");
}

#[test]
fn a_run_of_the_upstream_needs_data_of_its_own() {
    let sched = Sched::new();
    let part = sched.path("part");
    pair(&sched, &json!([part]), "true");
    produce(&sched);
    fs::write(&part, "1\n").unwrap();
    sched.until_count("dr.b.v1", "SUCCEEDED", 1);
    until_past(&sched, &part);
    let again = produce(&sched);
    let waits = until_told(&sched, "was last changed at");
    assert_eq!(waits["dependencies"][0]["instanceId"], json!(again));
    assert_eq!(waits["state"], "PENDING");
    fs::write(&part, "2\n").unwrap();
    sched.until_count("dr.b.v1", "SUCCEEDED", 2);
}

#[test]
fn the_output_of_an_upstream_names_the_data_that_is_waited_for() {
    let sched = Sched::new();
    let produce = r#"echo 1 > "$1"; printf '{"output": {"name": "x"}}' > "$SCHED_RESULT""#;
    let part = sched.path("x");
    let below = sched.path("{deps.dr.a.v1.output.name}.b");
    let on = |task: &str| json!([{"taskId": task, "depType": "DATA_READY"}]);
    sched.put_all(&[
        TaskSpec::shell("dr.a.v1", produce).with(&json!({"outputs": [part], "args": [part]})),
        TaskSpec::shell("dr.b.v1", "cp \"$1\" \"$1.b\"").with(&json!({
            "dependsOn": on("dr.a.v1"), "args": [part], "outputs": [below],
        })),
        TaskSpec::shell("dr.c.v1", "echo \"$SCHED_DEPS\"")
            .with(&json!({"dependsOn": on("dr.b.v1")})),
    ]);
    sched.run("dr.a.v1", &[]);
    sched.until_count("dr.c.v1", "SUCCEEDED", 1);
    let deps: Value = serde_json::from_str(&sched.good(&["logs", "dr.c.v1@latest"])).unwrap();
    assert_eq!(deps["dr.b.v1"]["outputs"], json!([sched.path("x.b")]));
}
