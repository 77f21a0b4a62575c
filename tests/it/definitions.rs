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
    let pair = sched.json(&["history", "v.t.v1", "--diff", "2..1"]);
    assert_eq!(pair, json!([{"path": "handler", "from": "echo two", "to": "echo one"}]));
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
    assert_eq!(bad.err, "", "a program is told all of it once");
    let text = piped(&sched, &["validate", dir, more, "-"], broken);
    assert!(text.err.contains("-:5:1: retires") && text.out.is_empty(), "{text:?}");
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
    let place = format!("{dir}/b.yaml:5:1");
    for word in [place.as_str(), "retires", "handler", "nothing was written"] {
        assert!(refused.err.contains(word), "{word}: {refused:?}");
    }
    // To a program in the form of a plan, of the file as it was given too.
    let refused = sched.ctl(&["apply", dir, "-o", "json"]);
    let planned = sched.ctl(&["plan", dir, "-o", "json"]);
    assert_eq!((refused.status, planned.status, planned.err.as_str()), (6, 6, ""));
    let errors = |ran: &Ran| serde_json::from_str::<Value>(&ran.out).unwrap()["errors"].clone();
    assert_eq!(errors(&refused), errors(&planned));
    assert_eq!(errors(&refused)[0]["file"], format!("{dir}/b.yaml"));
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
fn tasks_swap_their_files_in_one_change_that_a_dry_run_foretells() {
    let sched = Sched::new();
    let two =
        |one: &str, other: &str| format!("{}\n---\n{}\n", text(one, "true"), text(other, "true"));
    sched.write_spec("a.yaml", &two("s.a.v1", "s.b.v1"));
    sched.write_spec("b.yaml", &text("s.c.v1", "true"));
    sched.good(&["reload"]);
    fs::create_dir(sched.path("new")).unwrap();
    let dir = sched.path("new");
    fs::write(dir.join("a.yaml"), text("s.c.v1", "true")).unwrap();
    fs::write(dir.join("b.yaml"), two("s.a.v1", "s.b.v1")).unwrap();
    let dir = dir.to_str().unwrap();
    let planned = sched.good(&["apply", "--dry-run", dir]);
    assert_eq!(planned.matches("moved to").count(), 3, "{planned}");
    let applied = sched.json(&["apply", dir]);
    let results: Vec<&Value> = applied.as_array().unwrap().iter().map(|t| &t["result"]).collect();
    assert_eq!(results, vec![&json!("configured"); 3]);
    for (task, file) in [("s.a.v1", "b.yaml"), ("s.b.v1", "b.yaml"), ("s.c.v1", "a.yaml")] {
        let view = sched.get(&format!("/tasks/{task}"));
        assert!(view["file"].as_str().unwrap().ends_with(file), "{view:#}");
        assert_eq!(view["revision"], 1, "only the file is another");
    }
    assert_eq!(sched.get("/status")["specErrors"], json!([]));
}

#[test]
fn an_empty_file_is_refused_by_plan_and_apply_alike() {
    let sched = Sched::new();
    sched.task("e.t.v1", "true");
    let file = sched.path("e.t.v1.yaml");
    fs::write(&file, "# later\n").unwrap();
    let file = file.to_str().unwrap();
    for verb in ["plan", "apply"] {
        let refused = sched.ctl(&[verb, file]);
        assert_eq!(refused.status, 6, "{refused:?}");
        assert!(refused.err.contains(&format!("{file}: defines no task")), "{refused:?}");
    }
    assert_eq!(script_of(&sched, "e.t.v1"), "true");
    fs::create_dir(sched.path("none")).unwrap();
    for verb in ["plan", "apply", "validate"] {
        let refused = sched.ctl(&[verb, sched.path("none").to_str().unwrap()]);
        assert!(refused.status == 6 && refused.err.contains("no spec files in"), "{refused:?}");
        let missing = sched.ctl(&[verb, "no/such.yaml"]);
        assert!(missing.status == 4 && missing.err.contains("no/such.yaml"), "{missing:?}");
    }
}

#[test]
fn a_task_that_a_file_no_longer_defines_is_told_to_be_removed_with_who_waits_for_it() {
    let sched = Sched::new();
    let below = TaskSpec::shell("g.b.v1", "true").with(&json!({"dependsOn": ["g.a.v1"]}));
    let file = sched.path("g.yaml");
    fs::write(&file, format!("{}\n---\n{}\n", text("g.a.v1", "true"), below.text())).unwrap();
    let path = file.to_str().unwrap().to_owned();
    let first = sched.ctl(&["apply", &path]);
    assert_eq!((first.status, first.err.as_str()), (0, ""), "both come with this file");
    fs::write(&file, below.text()).unwrap();
    let said = sched.ctl(&["apply", &path]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.out.contains("g.a.v1 removed"), "{said:?}");
    assert_eq!(said.err, "no file defines g.a.v1 now; waiting for it: g.b.v1\n");
    // A task with a file of its own is taken away with the same word.
    sched.task("g.a.v1", "true");
    let said = sched.ctl(&["remove", "g.a.v1"]);
    assert!(said.status == 0 && said.err.contains("waiting for it: g.b.v1"), "{said:?}");
}

#[test]
fn a_removed_task_comes_back_by_its_revision() {
    let sched = Sched::new();
    sched.task("k.t.v1", "echo one");
    sched.task("k.t.v1", "echo two");
    let removed = sched.json(&["remove", "k.t.v1"]);
    assert_eq!((&removed["taskId"], &removed["brokenDependents"]), (&json!("k.t.v1"), &json!([])));
    let refused = sched.ctl(&["rollback", "k.t.v1", "1", "-y"]);
    assert_eq!(refused.status, 6, "{refused:?}");
    assert!(refused.err.contains("history k.t.v1 --revision 1"), "{refused:?}");
    assert_eq!(sched.ctl(&["history", "k.t.v1", "--revision", "7"]).status, 4);
    let definition = sched.good(&["history", "k.t.v1", "--revision", "1"]);
    let back = sched.path("k.t.v1.yaml");
    fs::write(&back, definition).unwrap();
    let back = back.to_str().unwrap();
    sched.good(&["validate", back]);
    sched.good(&["apply", back]);
    assert_eq!(script_of(&sched, "k.t.v1"), "echo one");
}

#[test]
fn a_reload_says_what_it_could_not_read() {
    let sched = Sched::new();
    sched.task("l.t.v1", "true");
    let good = sched.ctl(&["reload"]);
    assert_eq!((good.status, good.err.as_str()), (0, "1 task in force\n"));
    sched.write_spec("bad.yaml", "taskId: [\n");
    let bad = sched.ctl(&["reload"]);
    assert!(bad.status == 6 && bad.err.contains("1 error,"), "{bad:?}");
    fs::remove_file(sched.spec_path("bad.yaml")).unwrap();
    fs::rename(sched.path("sched.d"), sched.path("away.d")).unwrap();
    let none = sched.ctl(&["reload", "-o", "json"]);
    let said: Value = serde_json::from_str(&none.out).unwrap();
    assert_eq!((none.status, &said["tasks"]), (1, &json!(1)), "{none:?}");
    assert!(said["unreadable"].as_str().unwrap().contains("sched.d"), "{none:?}");
    fs::rename(sched.path("away.d"), sched.path("sched.d")).unwrap();
    sched.good(&["reload"]);
}

#[test]
fn a_type_that_only_a_configuration_knows_is_refused_with_where_it_was_looked_for() {
    let sched = Sched::prepared(&json!({}));
    let file = sched.path("x.yaml");
    let spec = "taskId: x.t.v1\nversion: 1\nowner: o\ntaskType: SETTLE\nhandler: x\n";
    fs::write(&file, spec).unwrap();
    let file = file.to_str().unwrap();
    let bad = sched.ctl(&["validate", file]);
    assert_eq!(bad.status, 6, "{bad:?}");
    assert!(bad.err.lines().last().unwrap().contains("--config FILE"), "{bad:?}");
    assert_eq!(sched.ctl(&["validate", file, "--config", "no/such.yaml"]).status, 4);
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
    assert_eq!(sched.json(&["unpin", "v.t.v1"])["wasPinned"], true);
    assert_eq!(sched.get("/tasks/v.t.v1")["status"], "ACTIVE");
    let again = sched.ctl(&["unpin", "v.t.v1"]);
    assert!(again.status == 0 && again.err.contains("is not pinned"), "{again:?}");
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
