//! Definitions through the client: checked, planned, applied, removed, looked back at and rolled
//! back (contract §5 and §6, requirement A8).

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::harness::{Ran, Sched, TaskSpec, Value, json};

fn text(task: &str, script: &str) -> String {
    TaskSpec::shell(task, script).text()
}

fn script_of(sched: &Sched, task: &str) -> Value {
    sched.get(&format!("/tasks/{task}"))["spec"]["handler"].clone()
}

/// Names of the spec directory's files, hidden ones too.
fn directory(sched: &Sched) -> Vec<String> {
    let entries = fs::read_dir(sched.path("sched.d")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a verb with a text on its standard input.
fn piped(sched: &Sched, args: &[&str], text: &str) -> Ran {
    let mut command = sched.schedctl();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    Ran::of(&child.wait_with_output().unwrap())
}

#[test]
fn the_history_tells_each_revision_and_what_it_changed() {
    let sched = Sched::new();
    sched.task("v.t.v1", "echo one");
    sched.task("v.t.v1", "echo two");
    let history = sched.json(&["history", "v.t.v1"]);
    let rows = history.as_array().unwrap();
    assert_eq!(rows.len(), 2, "{history:#}");
    for key in ["revision", "hash", "loadedAt", "file", "active", "pinned"] {
        assert!(rows.iter().all(|row| !row[key].is_null()), "{key}: {history:#}");
    }
    let of = |row: &Value| (row["revision"].clone(), row["active"].clone(), row["pinned"].clone());
    assert_eq!(of(&rows[0]), (json!(1), json!(false), json!(false)));
    assert_eq!(of(&rows[1]), (json!(2), json!(true), json!(false)));
    let change = json!({"path": "handler", "from": "echo one", "to": "echo two"});
    assert_eq!((&rows[0]["changes"], &rows[1]["changes"]), (&json!([]), &json!([change])));
    assert!(rows[1]["file"].as_str().unwrap().ends_with("sched.d/v.t.v1.yaml"));

    let diff = sched.good(&["history", "v.t.v1", "--diff", "2..1"]);
    assert_eq!(diff, "handler: \"echo two\" -> \"echo one\"\n");
    assert!(sched.good(&["history", "v.t.v1", "--diff"]).contains("revision 2, active:"));
    assert!(sched.good(&["history", "v.t.v1"]).contains("ACTIVE"));
    assert_eq!(sched.ctl(&["history", "v.t.v1", "--diff", "1..7"]).status, 4);
    assert_eq!(sched.ctl(&["history", "v.t.v1", "--diff", "7..1"]).status, 4);
    assert_eq!(sched.ctl(&["history", "no.such.v1"]).status, 4);

    // The definition goes, its history does not.
    fs::remove_file(sched.spec_path("v.t.v1.yaml")).unwrap();
    sched.good(&["reload"]);
    let history = sched.json(&["history", "v.t.v1"]);
    assert!(history.as_array().unwrap().iter().all(|row| row["active"] == false), "{history:#}");
}

#[test]
fn a_bad_spec_is_refused_at_the_door_with_its_places_and_nothing_is_written() {
    let sched = Sched::new();
    let body = "taskId: a.t.v1\nversion: 1\nowner: o\ntaskType: SHELL\nretires: 3\n";
    let answer = sched.ask("POST", "/tasks", body).unwrap();
    assert_eq!((answer.status, answer.json()["code"].clone()), (422, json!("INVALID")));
    let errors = answer.json()["errors"].clone();
    let place = |path: &str| {
        let found = errors.as_array().unwrap().iter().find(|e| e["path"] == path);
        found.map(|e| (e["line"].clone(), e["column"].clone()))
    };
    assert_eq!(place("retires"), Some((json!(5), json!(1))), "{errors:#}");
    assert!(place("handler").is_some(), "{errors:#}");
    assert!(directory(&sched).is_empty());
}

#[test]
fn files_are_validated_together_without_a_daemon() {
    let sched = Sched::prepared(&json!({}));
    let with = |task: &str, upstream: &str| {
        TaskSpec::shell(task, "true").with(&json!({"dependsOn": [upstream]})).text()
    };
    fs::create_dir(sched.path("more")).unwrap();
    sched.write_spec("a.yaml", &with("a.t.v1", "b.t.v1"));
    sched.write_spec("c.yaml", &with("c.t.v1", "x.t.v1"));
    let more = sched.path("more");
    let (dir, more) = (sched.path("sched.d"), more.to_str().unwrap());
    let dir = dir.to_str().unwrap();
    let good = sched.ctl(&["validate", dir, "-o", "json"]);
    assert_eq!(good.status, 0, "an upstream that is not there is only noted: {good:?}");
    let notes: Value = serde_json::from_str(&good.out).unwrap();
    let severities: Vec<&Value> =
        notes.as_array().unwrap().iter().map(|n| &n["severity"]).collect();
    assert_eq!(severities, [&json!("note"), &json!("note")], "{notes:#}");

    fs::write(sched.path("more").join("b.yaml"), with("b.t.v1", "a.t.v1")).unwrap();
    fs::write(sched.path("more").join("twice.yaml"), text("c.t.v1", "true")).unwrap();
    let broken = "taskId: d.t.v1\nversion: 1\nowner: o\ntaskType: SHELL\nretires: 3\n";
    let bad = piped(&sched, &["validate", "-o", "json", dir, more, "-"], broken);
    assert_eq!(bad.status, 6, "{bad:?}");
    let found: Value = serde_json::from_str(&bad.out).unwrap();
    let about = |file: &str, word: &str| {
        found.as_array().unwrap().iter().any(|finding| {
            finding["severity"] == "error"
                && finding["file"].as_str().unwrap().ends_with(file)
                && finding["message"].as_str().unwrap().contains(word)
        })
    };
    assert!(about("-", "retry"), "{found:#}");
    assert!(about("a.yaml", "b.t.v1") && about("b.yaml", "a.t.v1"), "the cycle: {found:#}");
    assert!(about("c.yaml", "twice.yaml"), "one id in two files: {found:#}");
    assert!(bad.err.contains("-:5:1: retires"), "{bad:?}");
}

#[test]
fn the_schema_is_there_without_a_daemon() {
    let sched = Sched::prepared(&json!({}));
    let schema: Value = serde_json::from_str(&sched.good(&["schema"])).unwrap();
    for key in ["taskId", "version", "owner", "taskType", "handler"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
}
