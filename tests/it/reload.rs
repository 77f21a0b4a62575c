//! Definitions change while the daemon runs; what was good stays good (requirement I1).

use std::fs;

use crate::harness::{Sched, TaskSpec, Value, json};

fn script_of(sched: &Sched, task: &str) -> Option<String> {
    let answer = sched.ask("GET", &format!("/tasks/{task}"), "").ok()?;
    answer.json()["spec"]["handler"].as_str().map(str::to_owned)
}

fn until_script(sched: &Sched, task: &str, script: &str) {
    sched.soon(&format!("{task} is {script:?}"), || {
        (script_of(sched, task)? == script).then_some(())
    });
}

fn until_gone(sched: &Sched, task: &str) {
    sched.soon(&format!("{task} is gone"), || {
        let answer = sched.ask("GET", &format!("/tasks/{task}"), "").ok()?;
        (answer.status == 404).then_some(())
    });
}

/// The first error about a file, once there is one.
fn until_error(sched: &Sched, file: &str) -> Value {
    sched.soon(&format!("an error of {file}"), || {
        let status = sched.get("/status");
        let errors = status["specErrors"].as_array().unwrap().clone();
        errors.into_iter().find(|e| e["file"].as_str().unwrap().ends_with(file))
    })
}

fn until_no_error(sched: &Sched) {
    sched.soon("no error", || (sched.get("/status")["specErrors"] == json!([])).then_some(()));
}

fn text(task: &str, script: &str) -> String {
    TaskSpec::shell(task, script).text()
}

#[test]
fn a_file_dropped_changed_moved_and_deleted_is_live_without_a_word() {
    let sched = Sched::new();
    sched.write_spec("a.yaml", &text("a.t.v1", "echo one"));
    until_script(&sched, "a.t.v1", "echo one");
    // In place, as an editor without a temporary file does it.
    fs::write(sched.spec_path("a.yaml"), text("a.t.v1", "echo two")).unwrap();
    until_script(&sched, "a.t.v1", "echo two");
    sched.write_spec("a.yaml", &text("a.t.v1", "echo three"));
    until_script(&sched, "a.t.v1", "echo three");
    let id = sched.run("a.t.v1", &[]);
    sched.until_over(&id, "SUCCEEDED");
    assert_eq!(sched.good(&["logs", &id]), "three\n");
    fs::rename(sched.spec_path("a.yaml"), sched.spec_path("b.yml")).unwrap();
    sched.soon("it lives in b.yml", || {
        let task = sched.get("/tasks/a.t.v1");
        task["file"].as_str().unwrap().ends_with("b.yml").then_some(())
    });
    assert_eq!(sched.get("/tasks/a.t.v1")["revision"], 3, "a move is no revision");
    fs::remove_file(sched.spec_path("b.yml")).unwrap();
    until_gone(&sched, "a.t.v1");
    assert_eq!(sched.ctl(&["run", "a.t.v1"]).status, 4);
    // What there was is not forgotten.
    assert_eq!(sched.instance(&id)["state"], "SUCCEEDED");
    sched.write_spec("c.yaml", &text("a.t.v1", "echo four"));
    until_script(&sched, "a.t.v1", "echo four");
}

#[test]
fn a_broken_file_keeps_the_last_good_definition_and_shows_its_place() {
    let sched = Sched::new();
    sched.write_spec("a.yaml", &text("a.t.v1", "echo good"));
    until_script(&sched, "a.t.v1", "echo good");
    let broken =
        "taskId: a.t.v1\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: 'true'\nretires: 3\n";
    sched.write_spec("a.yaml", broken);
    let error = until_error(&sched, "a.yaml");
    assert_eq!((&error["line"], &error["column"]), (&json!(6), &json!(1)), "{error}");
    assert!(error["message"].as_str().unwrap().contains("retry"), "{error}");
    let shown = sched.good(&["status"]);
    assert!(shown.contains("sched.d/a.yaml:6:1"), "{shown}");
    let id = sched.run("a.t.v1", &[]);
    sched.until_over(&id, "SUCCEEDED");
    assert_eq!(sched.good(&["logs", &id]), "good\n");
    sched.write_spec("a.yaml", &text("a.t.v1", "echo better"));
    until_script(&sched, "a.t.v1", "echo better");
    until_no_error(&sched);
}

#[test]
fn a_broken_file_keeps_its_task_over_a_restart() {
    let mut sched = Sched::new();
    sched.write_spec("a.yaml", &text("a.t.v1", "echo good"));
    until_script(&sched, "a.t.v1", "echo good");
    sched.write_spec("a.yaml", "taskId: [\n");
    until_error(&sched, "a.yaml");
    sched.restart();
    until_error(&sched, "a.yaml");
    assert_eq!(script_of(&sched, "a.t.v1").as_deref(), Some("echo good"));
}

#[test]
fn of_two_files_with_one_id_the_first_stays_and_the_other_takes_over_by_itself() {
    let sched = Sched::new();
    sched.write_spec("m1.yaml", &text("d.t.v1", "echo first"));
    until_script(&sched, "d.t.v1", "echo first");
    sched.write_spec("m0.yaml", &text("d.t.v1", "echo second"));
    let error = until_error(&sched, "m0.yaml");
    assert!(error["message"].as_str().unwrap().contains("m1.yaml"), "names both: {error}");
    assert_eq!(script_of(&sched, "d.t.v1").as_deref(), Some("echo first"));
    fs::remove_file(sched.spec_path("m1.yaml")).unwrap();
    until_script(&sched, "d.t.v1", "echo second");
    until_no_error(&sched);
}

#[test]
fn a_cycle_is_refused_with_its_path_and_what_was_there_stays() {
    let sched = Sched::new();
    sched.put_all(&[
        TaskSpec::shell("g.a.v1", "true").with(&json!({"dependsOn": ["g.b.v1"]})),
        TaskSpec::shell("g.b.v1", "true").with(&json!({"dependsOn": ["g.c.v1"]})),
        TaskSpec::shell("g.c.v1", "echo one"),
        TaskSpec::shell("other.t.v1", "true"),
    ]);
    let closes = TaskSpec::shell("g.c.v1", "echo two").with(&json!({"dependsOn": ["g.a.v1"]}));
    sched.write_spec("g.c.v1.yaml", &closes.text());
    let error = until_error(&sched, "g.c.v1.yaml");
    let message = error["message"].as_str().unwrap();
    assert!(["g.a.v1", "g.b.v1", "g.c.v1"].iter().all(|t| message.contains(t)), "{message}");
    assert_eq!(script_of(&sched, "g.c.v1").as_deref(), Some("echo one"));
    let other = sched.run("other.t.v1", &[]);
    sched.until_over(&other, "SUCCEEDED");
}

#[test]
fn fifty_good_files_live_beside_a_broken_one() {
    let mut sched = Sched::prepared(&json!({}));
    for n in 0..50 {
        sched.write_spec(&format!("t{n}.yaml"), &text(&format!("many.t{n}.v1"), "true"));
    }
    sched.write_spec("t7x.yaml", "taskId: many.broken.v1\nversion: x\n");
    for leftover in ["t1.yaml~", ".t2.yaml.swp", "t3.yaml.bak", "t4.yaml.dpkg-new", "readme.txt"] {
        fs::write(sched.spec_path(leftover), text("never.t.v1", "true")).unwrap();
    }
    sched.start();
    sched.soon("fifty tasks", || (sched.get("/status")["tasks"] == 50).then_some(()));
    let errors = sched.get("/status")["specErrors"].as_array().unwrap().clone();
    assert!(!errors.is_empty());
    assert!(
        errors.iter().all(|e| e["file"].as_str().unwrap().ends_with("t7x.yaml")),
        "{errors:#?}"
    );
    // Dropped beside it while it is still broken.
    sched.write_spec("late.yaml", &text("late.t.v1", "true"));
    until_script(&sched, "late.t.v1", "true");
    assert_eq!(sched.get("/status")["tasks"], 51);
}

#[test]
fn several_documents_of_one_file_are_several_tasks() {
    let sched = Sched::new();
    let both = format!("{}\n---\n{}\n", text("x.one.v1", "echo 1"), text("x.two.v1", "echo 2"));
    sched.write_spec("both.yaml", &both);
    until_script(&sched, "x.one.v1", "echo 1");
    until_script(&sched, "x.two.v1", "echo 2");
    sched.write_spec("both.yaml", &text("x.two.v1", "echo 2"));
    until_gone(&sched, "x.one.v1");
    assert_eq!(sched.get("/tasks/x.two.v1")["revision"], 1, "unchanged");
}

#[test]
fn a_swap_of_the_directory_behind_a_link_is_seen() {
    let sched = Sched::new();
    for (name, script) in [("v1", "echo one"), ("v2", "echo two")] {
        fs::create_dir(sched.path(name)).unwrap();
        fs::write(sched.path(name).join("cm.yaml"), text("cm.t.v1", script)).unwrap();
    }
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, sched.spec_path(name)).unwrap();
    };
    link("../v1", "..data");
    link("..data/cm.yaml", "cm.yaml");
    until_script(&sched, "cm.t.v1", "echo one");
    link("../v2", "..next");
    fs::rename(sched.spec_path("..next"), sched.spec_path("..data")).unwrap();
    until_script(&sched, "cm.t.v1", "echo two");
}

#[test]
fn an_unknown_upstream_is_shown_and_heals_when_it_appears() {
    let sched = Sched::new();
    let needs = TaskSpec::shell("u.b.v1", "true").with(&json!({"dependsOn": ["u.a.v1"]}));
    sched.put(&needs);
    let task = sched.get("/tasks/u.b.v1");
    assert_eq!((&task["status"], &task["unresolved"]), (&json!("UNRESOLVED"), &json!(["u.a.v1"])));
    assert_eq!(sched.ctl(&["run", "u.b.v1"]).status, 6);
    sched.write_spec("u.a.yaml", &text("u.a.v1", "true"));
    sched.soon("it is resolved", || {
        (sched.get("/tasks/u.b.v1")["status"] == "ACTIVE").then_some(())
    });
    sched.run("u.a.v1", &[]);
    sched.until_count("u.b.v1", "SUCCEEDED", 1);
}

#[test]
fn a_task_deleted_while_it_waits_finishes_with_what_it_was() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    sched.put_all(&[
        TaskSpec::shell("first.t.v1", &gate.stand()),
        TaskSpec::shell("late.t.v1", "echo as it was"),
    ]);
    let first = sched.run("first.t.v1", &[]);
    sched.until_state(&first, "RUNNING");
    let late = sched.run("late.t.v1", &[]);
    let waits = sched.instance(&late);
    assert_eq!((&waits["state"], &waits["reason"]), (&json!("READY"), &json!("NO_SLOT")));
    for file in ["late.t.v1.yaml", "first.t.v1.yaml"] {
        fs::remove_file(sched.spec_path(file)).unwrap();
    }
    until_gone(&sched, "late.t.v1");
    gate.pass(1);
    sched.until_over(&first, "SUCCEEDED");
    sched.until_over(&late, "SUCCEEDED");
    assert_eq!(sched.good(&["logs", &late]), "as it was\n");
}

// --- how files are saved ---

/// What the log says of a task's definitions, and of refusals of any file, in order.
fn definition_events(sched: &Sched, task: &str) -> Vec<String> {
    let events = sched.json(&["events", "-n", "1000"]);
    let is_wanted = |event: &&Value| {
        let kind = event["kind"].as_str().unwrap();
        kind == "definitionRefused" || kind.starts_with("definition") && event["taskId"] == task
    };
    let kind = |event: &Value| event["kind"].as_str().unwrap().to_owned();
    events.as_array().unwrap().iter().filter(is_wanted).map(kind).collect()
}

/// Runs a program in the directory of the daemon.
fn shell(sched: &Sched, script: &str) {
    let mut shell = std::process::Command::new("/bin/sh");
    let status = shell.args(["-euc", script]).current_dir(sched.dir()).status().unwrap();
    assert!(status.success(), "{script}");
}

#[test]
fn thirty_saves_in_two_parts_of_the_same_content_are_one_definition() {
    let sched = Sched::new();
    // From now on saves are heard of from their beginning.
    sched.good(&["reload"]);
    let whole = text("h.w.v1", "echo whole line is here");
    let (first, second) = whole.split_at(whole.len() - 12);
    fs::write(sched.path("first"), first).unwrap();
    fs::write(sched.path("second"), second).unwrap();
    // A process of its own: the file is not held open by what other tests start.
    let gate = sched.gate("gate");
    let script = format!(
        "f=$(cat first); s=$(cat second); for i in $(seq 30); do \
         {{ printf %s \"$f\"; {}; printf %s \"$s\"; }} > sched.d/a.yaml; {}; done",
        gate.stand(),
        gate.stand(),
    );
    let mut writer = std::process::Command::new("/bin/sh");
    let mut writer = writer.args(["-euc", &script]).current_dir(sched.dir()).spawn().unwrap();
    let until_long = |bytes: usize| {
        sched.soon(&format!("{bytes} bytes"), || {
            let length = fs::metadata(sched.spec_path("a.yaml")).ok()?.len();
            (length == u64::try_from(bytes).unwrap()).then_some(())
        });
    };
    for round in 0..30 {
        until_long(first.len());
        // Another file is saved and live in the middle of this save, on every third round after
        // a reading of everything.
        let other = format!("echo {round}");
        sched.write_spec("b.yaml", &text("other.t.v1", &other));
        if round % 3 == 0 {
            sched.signal(nix::sys::signal::Signal::SIGHUP);
        }
        until_script(&sched, "other.t.v1", &other);
        gate.pass(1);
        until_long(whole.len());
        gate.pass(1);
    }
    assert!(writer.wait().unwrap().success());
    until_script(&sched, "h.w.v1", "echo whole line is here");
    sched.good(&["reload"]);
    assert_eq!(definition_events(&sched, "h.w.v1"), ["definitionLoaded"]);
    assert_eq!(sched.get("/tasks/h.w.v1")["revision"], 1);
}

#[test]
fn what_programs_do_to_save_a_file_is_seen_and_never_ends_the_task() {
    let sched = Sched::new();
    let specs = ["one", "two", "three", "four", "five", "six", "seven"];
    for word in specs {
        fs::write(sched.path(word), text("e.t.v1", &format!("echo {word}"))).unwrap();
    }
    let ways = [
        ("cp one sched.d/e.yaml", "echo one"),
        ("sed -i s/one/edited/ sched.d/e.yaml", "echo edited"),
        ("mv two sched.d/e.yaml", "echo two"),
        ("install -m 644 three sched.d/e.yaml", "echo three"),
        // Of an older file, with its times.
        ("touch -d @1000000000 four; cp -p four sched.d/e.yaml", "echo four"),
        // Of the same size and times as what was there.
        ("touch -r sched.d/e.yaml five; cp -p five sched.d/e.yaml", "echo five"),
        // Twice within one second.
        ("cp one sched.d/e.yaml; cp six sched.d/e.yaml", "echo six"),
        ("ln -sfn ../seven sched.d/e.yaml", "echo seven"),
    ];
    for (script, expected) in ways {
        shell(&sched, script);
        until_script(&sched, "e.t.v1", expected);
    }
    let events = definition_events(&sched, "e.t.v1");
    assert!(events.iter().all(|kind| kind == "definitionLoaded"), "{events:?}");
    // The content decides, not the time.
    let revision = sched.get("/tasks/e.t.v1")["revision"].clone();
    shell(&sched, "touch -d @0 seven; touch -h -d @0 sched.d/e.yaml");
    sched.good(&["reload"]);
    assert_eq!(sched.get("/tasks/e.t.v1")["revision"], revision);
}

#[test]
fn what_vim_does_to_save_a_file_never_ends_the_task() {
    use std::io::Write as _;
    let sched = Sched::new();
    sched.write_spec("a.yaml", &text("v.t.v1", "echo one"));
    until_script(&sched, "v.t.v1", "echo one");
    for word in ["two", "three"] {
        // Can files be made here at all?
        fs::write(sched.spec_path("4913"), "").unwrap();
        fs::remove_file(sched.spec_path("4913")).unwrap();
        fs::rename(sched.spec_path("a.yaml"), sched.spec_path("a.yaml~")).unwrap();
        let other = |script: &str| {
            sched.write_spec("b.yaml", &text("other.t.v1", script));
            until_script(&sched, "other.t.v1", script);
        };
        let mut file = fs::File::create(sched.spec_path("a.yaml")).unwrap();
        // Another file is live while this one is empty.
        other(&format!("echo beside {word}"));
        let script = format!("echo {word}");
        file.write_all(text("v.t.v1", &script).as_bytes()).unwrap();
        drop(file);
        fs::remove_file(sched.spec_path("a.yaml~")).unwrap();
        until_script(&sched, "v.t.v1", &script);
    }
    assert_eq!(definition_events(&sched, "v.t.v1"), ["definitionLoaded"; 3]);
}

#[test]
fn a_checkout_that_makes_moves_and_deletes_many_files_ends_only_what_is_gone() {
    let sched = Sched::new();
    let id = |n: usize| format!("g.t{n}.v1");
    let file = |n: usize| sched.spec_path(&format!("t{n}.yaml"));
    for n in 0..60 {
        fs::write(file(n), text(&id(n), "echo main")).unwrap();
    }
    sched.good(&["reload"]);
    sched.soon("sixty tasks", || (sched.get("/status")["tasks"] == 60).then_some(()));
    // As git does it: each file is unlinked and made anew, in the order of the names.
    for n in 0..60 {
        fs::remove_file(file(n)).unwrap();
        match n {
            0..10 => {}
            // Moved, with a change.
            10 => fs::write(sched.spec_path("moved.yaml"), text(&id(n), "echo branch")).unwrap(),
            _ => fs::write(file(n), text(&id(n), "echo branch")).unwrap(),
        }
    }
    for n in 60..70 {
        fs::write(file(n), text(&id(n), "echo branch")).unwrap();
    }
    sched.good(&["reload"]);
    let scripts = |n: usize| script_of(&sched, &id(n));
    for n in 10..70 {
        assert_eq!(scripts(n).as_deref(), Some("echo branch"), "{n}");
    }
    assert_eq!(sched.get("/status")["tasks"], 60);
    for n in 11..60 {
        assert_eq!(definition_events(&sched, &id(n)), ["definitionLoaded"; 2], "{n}");
    }
}

#[test]
fn a_link_whose_target_changes_elsewhere_is_seen_by_a_reading_of_everything() {
    let sched = Sched::new();
    fs::write(sched.path("elsewhere"), text("l.t.v1", "echo one")).unwrap();
    shell(&sched, "ln -s ../elsewhere sched.d/l.yaml");
    until_script(&sched, "l.t.v1", "echo one");
    fs::write(sched.path("elsewhere"), text("l.t.v1", "echo two")).unwrap();
    sched.good(&["reload"]);
    until_script(&sched, "l.t.v1", "echo two");
    fs::remove_file(sched.path("elsewhere")).unwrap();
    assert_eq!(sched.ctl(&["reload"]).status, 6);
    let error = until_error(&sched, "l.yaml");
    assert_eq!(error["message"], "is a link that leads nowhere");
    assert_eq!(script_of(&sched, "l.t.v1").as_deref(), Some("echo two"));
}

#[test]
fn a_directory_that_comes_late_or_is_replaced_is_watched() {
    let mut sched = Sched::prepared(&json!({}));
    fs::remove_dir(sched.path("sched.d")).unwrap();
    sched.start();
    fs::create_dir(sched.path("sched.d")).unwrap();
    sched.write_spec("a.yaml", &text("a.t.v1", "echo one"));
    until_script(&sched, "a.t.v1", "echo one");
    fs::rename(sched.path("sched.d"), sched.path("old.d")).unwrap();
    fs::create_dir(sched.path("sched.d")).unwrap();
    sched.write_spec("b.yaml", &text("b.t.v1", "echo two"));
    until_script(&sched, "b.t.v1", "echo two");
    until_gone(&sched, "a.t.v1");
    sched.write_spec("b.yaml", &text("b.t.v1", "echo three"));
    until_script(&sched, "b.t.v1", "echo three");
}

#[test]
fn a_file_that_looks_like_a_spec_and_is_not_read_is_named_once() {
    let mut sched = Sched::prepared(&json!({}));
    let leftovers = ["X.YAML", "a.yaml.bak", "a.yaml~", ".a.yaml", "my.json"];
    for name in leftovers {
        fs::write(sched.spec_path(name), text("never.t.v1", "true")).unwrap();
    }
    sched.start();
    sched.good(&["reload"]);
    sched.good(&["reload"]);
    let log = sched.output();
    for name in leftovers {
        let line = format!("/{name} is not read");
        assert_eq!(log.matches(&line).count(), 1, "{name}: {log}");
    }
    assert_eq!(sched.get("/status")["tasks"], 0);
}
