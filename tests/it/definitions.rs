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
    assert_eq!(good.status, 0, "an upstream that is not there may come yet: {good:?}");
    let said: Value = serde_json::from_str(&good.out).unwrap();
    let severities: Vec<&Value> = said.as_array().unwrap().iter().map(|n| &n["severity"]).collect();
    assert_eq!(severities, [&json!("warning"), &json!("warning")], "{said:#}");

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

#[test]
fn a_new_file_is_applied_created_and_in_force() {
    let sched = Sched::new();
    let file = sched.path("n.t.v1.yaml");
    fs::write(&file, text("n.t.v1", "echo new")).unwrap();
    let file = file.to_str().unwrap();
    let planned = sched.good(&["apply", "--dry-run", file]);
    assert!(planned.contains("+ n.t.v1 added"), "{planned}");
    assert!(directory(&sched).is_empty(), "a dry run writes nothing");
    let said = sched.good(&["apply", file]);
    assert!(said.contains("n.t.v1 created"), "{said}");
    assert_eq!(
        fs::read_to_string(sched.spec_path("n.t.v1.yaml")).unwrap(),
        text("n.t.v1", "echo new")
    );
    assert_eq!(directory(&sched), ["n.t.v1.yaml"], "and nothing else is left there");
    let id = sched.run("n.t.v1", &[]);
    sched.until_over(&id, "SUCCEEDED");
    assert_eq!(sched.good(&["logs", &id]), "new\n");
    // Once more: nothing changes.
    let again = sched.json(&["apply", file]);
    assert_eq!(again[0]["result"], "unchanged", "{again:#}");
    assert_eq!(sched.good(&["plan", file]), "no changes\n");
    assert_eq!(sched.json(&["history", "n.t.v1"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_change_is_applied_as_the_next_revision() {
    let sched = Sched::new();
    sched.task("c.t.v1", "echo one");
    let file = sched.path("c.t.v1.yaml");
    fs::write(&file, text("c.t.v1", "echo two")).unwrap();
    let file = file.to_str().unwrap();
    let plan = sched.json(&["plan", file]);
    let change = json!({"path": "handler", "from": "echo one", "to": "echo two"});
    assert_eq!(plan["tasks"][0]["change"], "CHANGED", "{plan:#}");
    assert_eq!(plan["tasks"][0]["changes"], json!([change]), "{plan:#}");
    assert_eq!(script_of(&sched, "c.t.v1"), "echo one", "a plan changes nothing");
    let applied = sched.json(&["apply", file]);
    assert_eq!(
        (&applied[0]["taskId"], &applied[0]["result"], &applied[0]["revision"]),
        (&json!("c.t.v1"), &json!("configured"), &json!(2)),
    );
    assert_eq!(script_of(&sched, "c.t.v1"), "echo two");
}

#[test]
fn one_bad_file_among_good_ones_and_nothing_is_written() {
    let sched = Sched::new();
    sched.task("g.a.v1", "true");
    let before = directory(&sched);
    fs::create_dir(sched.path("new")).unwrap();
    let new = |name: &str, text: &str| fs::write(sched.path("new").join(name), text).unwrap();
    let dir = sched.path("new");
    let dir = dir.to_str().unwrap();
    new("a.yaml", &text("fine.t.v1", "true"));
    new("b.yaml", "taskId: bad.t.v1\nversion: 1\nowner: o\ntaskType: SHELL\nretires: 3\n");
    let refused = sched.ctl(&["apply", dir]);
    assert_eq!(refused.status, 6, "{refused:?}");
    for word in ["b.yaml:5:1", "retires", "handler", "nothing was written"] {
        assert!(refused.err.contains(word), "{word}: {refused:?}");
    }
    // A file that is good by itself, and closes a cycle with what is there.
    let needs = |task: &str, upstream: &str| {
        TaskSpec::shell(task, "true").with(&json!({"dependsOn": [upstream]})).text()
    };
    sched.write_spec("g.b.v1.yaml", &needs("g.b.v1", "g.a.v1"));
    sched.good(&["reload"]);
    fs::remove_file(sched.path("new").join("b.yaml")).unwrap();
    new("g.a.v1.yaml", &needs("g.a.v1", "g.b.v1"));
    let refused = sched.ctl(&["apply", dir]);
    assert_eq!(refused.status, 6, "{refused:?}");
    assert!(refused.err.contains("cycle") && refused.err.contains("g.b.v1"), "{refused:?}");
    let answer = sched.ask("POST", "/tasks", &needs("g.a.v1", "g.b.v1")).unwrap();
    assert_eq!((answer.status, &answer.json()["code"]), (409, &json!("CONFLICT")), "{answer:?}");
    assert_eq!(directory(&sched), [before, vec!["g.b.v1.yaml".to_owned()]].concat());
    assert_eq!(sched.get("/status")["specErrors"], json!([]));
}

#[test]
fn an_id_that_lives_in_another_file_is_refused_and_both_are_named() {
    let sched = Sched::new();
    sched.write_spec("home.yaml", &text("h.t.v1", "echo home"));
    sched.good(&["reload"]);
    let file = sched.path("other.yaml");
    fs::write(&file, text("h.t.v1", "echo other")).unwrap();
    let refused = sched.ctl(&["apply", file.to_str().unwrap()]);
    assert_eq!(refused.status, 6, "{refused:?}");
    assert!(refused.err.contains("home.yaml") && refused.err.contains("other.yaml"), "{refused:?}");
    let answer = sched.ask("POST", "/tasks?file=other.yaml", &text("h.t.v1", "true")).unwrap();
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.json()["detail"].as_str().unwrap().contains("home.yaml"), "{answer:?}");
    assert_eq!(directory(&sched), ["home.yaml"]);
    // Without a name for its file it is replaced where it lives.
    let answer = sched.ask("POST", "/tasks", &text("h.t.v1", "echo new")).unwrap();
    assert_eq!((answer.status, answer.json()["revision"].clone()), (200, json!(2)), "{answer:?}");
    assert_eq!(script_of(&sched, "h.t.v1"), "echo new");
    let answer = sched.ask("POST", "/tasks", &text("j.t.v1", "true")).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(directory(&sched), ["home.yaml", "j.t.v1.yaml"]);
}

#[test]
fn the_standard_input_and_a_spec_without_an_id_get_a_file_of_their_own() {
    let sched = Sched::new();
    let applied = piped(&sched, &["apply", "-"], &text("p.t.v1", "true"));
    assert_eq!(applied.status, 0, "{applied:?}");
    assert_eq!(directory(&sched), ["p.t.v1.yaml"]);
    let body = json!({"owner": "me", "taskType": "SHELL", "handler": "echo ad hoc"}).to_string();
    let answer = sched.ask("POST", "/tasks", &body).unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["taskId"].as_str().unwrap().to_owned();
    // Sent again, it is the same task.
    let answer = sched.ask("POST", "/tasks", &body).unwrap();
    assert_eq!((answer.status, answer.json()["taskId"].clone()), (200, json!(id)), "{answer:?}");
    let run = sched.run(&id, &[]);
    sched.until_over(&run, "SUCCEEDED");
    assert_eq!(sched.good(&["logs", &run]), "ad hoc\n");
}

#[test]
fn files_between_which_a_task_moves_are_applied_in_whatever_order() {
    let sched = Sched::new();
    let two = format!("{}\n---\n{}\n", text("m.a.v1", "true"), text("m.b.v1", "true"));
    sched.write_spec("z.yaml", &two);
    sched.good(&["reload"]);
    fs::create_dir(sched.path("new")).unwrap();
    fs::write(sched.path("new").join("a.yaml"), text("m.a.v1", "true")).unwrap();
    fs::write(sched.path("new").join("z.yaml"), text("m.b.v1", "true")).unwrap();
    sched.good(&["apply", sched.path("new").to_str().unwrap()]);
    let task = sched.get("/tasks/m.a.v1");
    assert!(task["file"].as_str().unwrap().ends_with("a.yaml"), "{task:#}");
    assert_eq!(sched.get("/status")["specErrors"], json!([]));
}

#[test]
fn a_task_is_removed_with_its_file_if_that_holds_nothing_else() {
    let sched = Sched::new();
    sched.task("r.t.v1", "true");
    let two = format!("{}\n---\n{}\n", text("r.a.v1", "true"), text("r.b.v1", "true"));
    sched.write_spec("two.yaml", &two);
    sched.good(&["reload"]);
    let refused = sched.ctl(&["remove", "r.a.v1", "-y"]);
    assert_eq!(refused.status, 6, "{refused:?}");
    assert!(refused.err.contains("r.b.v1") && refused.err.contains("two.yaml"), "{refused:?}");
    assert_eq!(sched.ask("DELETE", "/tasks/r.a.v1", "").unwrap().status, 409);
    sched.good(&["remove", "r.t.v1"]);
    assert_eq!(directory(&sched), ["two.yaml"]);
    assert_eq!(sched.ctl(&["show", "r.t.v1"]).status, 4);
    assert_eq!(sched.ctl(&["remove", "r.t.v1", "-y"]).status, 4);
    assert_eq!(sched.json(&["history", "r.t.v1"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_plan_of_a_directory_says_what_would_come_change_and_go() {
    let sched = Sched::new();
    let needs = TaskSpec::shell("p.below.v1", "true").with(&json!({"dependsOn": ["p.gone.v1"]}));
    sched.put_all(&[
        TaskSpec::shell("p.gone.v1", "true"),
        TaskSpec::shell("p.same.v1", "true"),
        TaskSpec::shell("p.other.v1", "echo one"),
        needs.clone(),
    ]);
    let before = directory(&sched);
    fs::create_dir(sched.path("next")).unwrap();
    let next = |name: &str, text: &str| fs::write(sched.path("next").join(name), text).unwrap();
    next("p.same.v1.yaml", &text("p.same.v1", "true"));
    next("p.below.v1.yaml", &needs.text());
    next("p.other.v1.yaml", &text("p.other.v1", "echo two"));
    let fires = TaskSpec::shell("p.new.v1", "true").with(&json!({"triggers": [{"every": "1h"}]}));
    next("p.new.v1.yaml", &fires.text());
    let dir = sched.path("next");
    let dir = dir.to_str().unwrap();
    let changes = |plan: &Value| {
        let tasks = plan["tasks"].as_array().unwrap().iter();
        let mut changes: Vec<String> = tasks
            .map(|t| format!("{} {}", t["taskId"].as_str().unwrap(), t["change"].as_str().unwrap()))
            .collect();
        changes.sort();
        changes
    };
    let joined = sched.json(&["plan", dir]);
    assert_eq!(changes(&joined), ["p.new.v1 ADDED", "p.other.v1 CHANGED"], "{joined:#}");
    let tasks = joined["tasks"].as_array().unwrap();
    let new = tasks.iter().find(|t| t["taskId"] == "p.new.v1").unwrap();
    assert!(new["nextFireTime"].is_null() && !new["nextFireTimeAfter"].is_null(), "{new:#}");
    let whole = sched.json(&["plan", "--replace", dir]);
    assert_eq!(
        changes(&whole),
        ["p.gone.v1 REMOVED", "p.new.v1 ADDED", "p.other.v1 CHANGED"],
        "{whole:#}"
    );
    let tasks = whole["tasks"].as_array().unwrap();
    let gone = tasks.iter().find(|t| t["taskId"] == "p.gone.v1").unwrap();
    assert_eq!(gone["brokenDependents"], json!(["p.below.v1"]), "{gone:#}");
    let shown = sched.good(&["plan", "--replace", dir]);
    for line in ["+ p.new.v1 added", "~ p.other.v1 changed", "- p.gone.v1 removed", "p.below.v1"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(directory(&sched), before, "a plan changes nothing");
    assert_eq!(script_of(&sched, "p.other.v1"), "echo one");
    // What is wrong is told with the rest, and is 6.
    next("p.bad.v1.yaml", "taskId: [\n");
    let bad = sched.ctl(&["plan", dir]);
    assert_eq!(bad.status, 6, "{bad:?}");
    assert!(bad.err.contains("p.bad.v1.yaml:") && bad.out.contains("p.new.v1"), "{bad:?}");
}

#[test]
fn a_rollback_pins_and_its_end_follows_the_file_again() {
    let sched = Sched::new();
    sched.task("v.t.v1", "echo one");
    sched.task("v.t.v1", "echo two");
    assert_eq!(sched.ctl(&["rollback", "v.t.v1", "9", "-y"]).status, 4);
    assert_eq!(sched.ctl(&["rollback", "no.such.v1", "1", "-y"]).status, 4);
    sched.good(&["rollback", "v.t.v1", "1", "-y"]);
    let runs = |words: &str| {
        let id = sched.run("v.t.v1", &[]);
        sched.until_over(&id, "SUCCEEDED");
        assert_eq!(sched.good(&["logs", &id]), words);
        id
    };
    let id = runs("one\n");
    assert_eq!(sched.instance(&id)["revision"], 1);
    let is_pinned = || {
        let task = sched.get("/tasks/v.t.v1");
        assert_eq!((&task["status"], &task["revision"]), (&json!("PINNED"), &json!(1)), "{task:#}");
    };
    is_pinned();
    let history = sched.json(&["history", "v.t.v1"]);
    let flags = |n: usize| (history[n]["active"].clone(), history[n]["pinned"].clone());
    assert_eq!(flags(0), (json!(true), json!(true)), "{history:#}");
    assert_eq!(flags(1), (json!(false), json!(false)), "{history:#}");
    let shown = sched.good(&["show", "v.t.v1"]);
    assert!(
        shown.contains("Pinned: to revision 1") && shown.contains("Newest: revision 2"),
        "{shown}"
    );
    assert!(sched.good(&["list", "v.*"]).contains("PINNED"));
    assert_eq!(sched.ctl(&["status", "v.t.v1"]).status, 0);
    // The same content once more is no change of the file.
    sched.write_spec("v.t.v1.yaml", &text("v.t.v1", "echo two"));
    sched.good(&["reload"]);
    is_pinned();
    sched.good(&["unpin", "v.t.v1"]);
    assert_eq!(sched.get("/tasks/v.t.v1")["status"], "ACTIVE");
    runs("two\n");
}

#[test]
fn a_file_that_changes_ends_the_pin() {
    let sched = Sched::new();
    sched.task("v.t.v1", "echo one");
    sched.task("v.t.v1", "echo two");
    sched.good(&["rollback", "v.t.v1", "1", "-y"]);
    sched.task("v.t.v1", "echo three");
    let task = sched.get("/tasks/v.t.v1");
    assert_eq!((&task["status"], &task["revision"]), (&json!("ACTIVE"), &json!(3)), "{task:#}");
    let history = sched.json(&["history", "v.t.v1"]);
    assert!(history.as_array().unwrap().iter().all(|row| row["pinned"] == false), "{history:#}");
}

#[test]
fn a_pin_outlives_a_crash() {
    let mut sched = Sched::new();
    sched.task("v.t.v1", "echo one");
    sched.task("v.t.v1", "echo two");
    sched.good(&["rollback", "v.t.v1", "1", "-y"]);
    sched.kill_9();
    sched.start();
    sched.good(&["reload"]);
    let task = sched.get("/tasks/v.t.v1");
    assert_eq!((&task["status"], &task["revision"]), (&json!("PINNED"), &json!(1)), "{task:#}");
}
