//! Files that arrive (requirement E3).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::{Sched, TaskSpec, Value, json};

/// A task that this pattern below the daemon's directory starts.
fn on_files(sched: &Sched, task: &str, script: &str, pattern: &str) -> TaskSpec {
    let trigger = json!({"file": sched.path(pattern), "settleMs": 100});
    let more = json!({"triggers": [trigger], "workingDir": sched.dir()});
    TaskSpec::shell(task, script).with(&more)
}

fn paths(instances: &[Value]) -> Vec<String> {
    instances.iter().map(|i| i["trigger"]["path"].as_str().unwrap().to_owned()).collect()
}

/// Puts a complete file where it is watched for, in one step.
fn arrive(folder: &Path, name: &str, content: &str) {
    let draft = folder.join(format!(".{name}.part"));
    fs::write(&draft, content).unwrap();
    fs::rename(draft, folder.join(name)).unwrap();
}

/// A daemon whose task writes down the path of each arrived `in/*.csv`.
fn with_inbox() -> Sched {
    let sched = Sched::new();
    fs::create_dir(sched.path("in")).unwrap();
    let trigger = json!({
        "file": sched.path("in").join("*.csv"), "settleMs": 100, "params": {"path": "{file.path}"},
    });
    let spec = TaskSpec::shell("inbox.t.v1", "echo $SCHED_PARAM_path >> taken").with(&json!({
        "triggers": [trigger], "runtimeParams": {"path": "string"}, "workingDir": sched.dir(),
        "maxConcurrent": 8,
    }));
    sched.put(&spec);
    sched
}

#[test]
fn a_file_is_taken_once_also_over_restarts_and_also_if_it_came_meanwhile() {
    let mut sched = with_inbox();
    let inbox = sched.path("in");
    let path = |name: &str| inbox.join(name).to_str().unwrap().to_owned();
    arrive(&inbox, "a.csv", "1\n");
    assert_eq!(sched.until_lines("taken", 1), [path("a.csv")]);
    sched.kill_9();
    arrive(&inbox, "b.csv", "1\n");
    sched.start();
    assert_eq!(sched.until_lines("taken", 2), [path("a.csv"), path("b.csv")]);
    sched.restart();
    // Whoever took one that was there already would have taken it before this one.
    arrive(&inbox, "c.csv", "1\n");
    sched.until_lines("taken", 3);
    sched.until_idle();
    assert_eq!(sched.lines("taken"), [path("a.csv"), path("b.csv"), path("c.csv")]);
    assert_eq!(sched.instances("inbox.t.v1").len(), 3);
}

#[test]
fn the_same_name_with_new_content_is_a_new_arrival() {
    let sched = with_inbox();
    let inbox = sched.path("in");
    arrive(&inbox, "a.csv", "1\n");
    sched.until_lines("taken", 1);
    arrive(&inbox, "a.csv", "1\n2\n");
    sched.until_lines("taken", 2);
    sched.until_idle();
    assert_eq!(sched.instances("inbox.t.v1").len(), 2);
}

#[test]
fn only_regular_files_with_fitting_names_arrive_and_hostile_names_are_data() {
    let sched = with_inbox();
    let inbox = sched.path("in");
    fs::create_dir(inbox.join("d.csv")).unwrap();
    std::os::unix::fs::symlink("nowhere", inbox.join("l.csv")).unwrap();
    let _fifo = crate::harness::Gate::new(&inbox.join("p.csv"));
    arrive(&inbox, "x.csv.part", "1\n");
    let name = "a b;touch $(echo pwned) 'q\".csv";
    arrive(&inbox, name, "1\n");
    assert_eq!(sched.until_lines("taken", 1), [inbox.join(name).to_str().unwrap()]);
    sched.until_idle();
    assert_eq!(sched.instances("inbox.t.v1").len(), 1);
    assert!(!sched.path("pwned").exists());
}

#[test]
fn a_folder_that_appears_later_is_watched_too() {
    let sched = Sched::new();
    sched.put(&on_files(&sched, "late.t.v1", "echo x >> taken", "late/*.csv"));
    fs::create_dir(sched.path("late")).unwrap();
    arrive(&sched.path("late"), "a.csv", "1\n");
    sched.until_lines("taken", 1);
    fs::remove_dir_all(sched.path("late")).unwrap();
    fs::create_dir(sched.path("late")).unwrap();
    arrive(&sched.path("late"), "b.csv", "22\n");
    sched.until_lines("taken", 2);
}

#[test]
fn a_file_that_changed_while_no_daemon_ran_is_a_new_arrival() {
    let mut sched = with_inbox();
    let inbox = sched.path("in");
    arrive(&inbox, "a.csv", "1\n");
    arrive(&inbox, "b.csv", "1\n");
    sched.until_lines("taken", 2);
    sched.kill_9();
    arrive(&inbox, "a.csv", "1\n2\n");
    sched.start();
    sched.until_lines("taken", 3);
    arrive(&inbox, "c.csv", "1\n");
    sched.until_lines("taken", 4);
    sched.until_idle();
    let taken = sched.lines("taken");
    let of = |name: &str| taken.iter().filter(|path| path.ends_with(name)).count();
    assert_eq!((of("a.csv"), of("b.csv"), of("c.csv")), (2, 1, 1), "{taken:?}");
}

#[test]
fn a_task_is_told_which_file_and_why() {
    let sched = Sched::new();
    fs::create_dir(sched.path("in")).unwrap();
    let script = "echo \"$SCHED_TRIGGER|$1|$2\"";
    let spec = on_files(&sched, "told.t.v1", script, "in/*.csv");
    sched.put(&spec.with(&json!({"args": ["{file.name}", "{file.path}"]})));
    let name = "a b\nc.csv";
    arrive(&sched.path("in"), name, "1\n");
    sched.until_count("told.t.v1", "SUCCEEDED", 1);
    let expected = format!("file|{name}|{}\n", sched.path("in").join(name).display());
    assert_eq!(sched.good(&["logs", "told.t.v1@latest"]), expected);
}

#[test]
fn a_task_that_comes_to_a_watched_pattern_gets_the_files_that_are_there() {
    let sched = with_inbox();
    arrive(&sched.path("in"), "a.csv", "1\n");
    sched.until_lines("taken", 1);
    sched.put(&on_files(&sched, "second.t.v1", "echo x >> second", "in/*.csv"));
    sched.until_lines("second", 1);
    sched.until_idle();
    assert_eq!(sched.instances("inbox.t.v1").len(), 1);
    assert_eq!(sched.fires("second.t.v1").len(), 1);
}

#[test]
fn a_file_that_goes_before_its_task_starts_is_recorded_and_not_run() {
    let mut sched = Sched::new();
    let inbox = sched.path("in");
    fs::create_dir(&inbox).unwrap();
    let gate = sched.gate("gate");
    let script = format!("echo $1 >> taken; {}", gate.stand());
    let spec = on_files(&sched, "one.t.v1", &script, "in/*.csv");
    sched.put(&spec.with(&json!({"args": ["{file.name}"]})));
    arrive(&inbox, "first.csv", "1\n");
    sched.until_lines("taken", 1);
    arrive(&inbox, "soon.csv", "1\n");
    sched.until_count("one.t.v1", "READY", 1);
    fs::remove_file(inbox.join("soon.csv")).unwrap();
    sched.until_count("one.t.v1", "CANCELLED", 1);
    arrive(&inbox, "down.csv", "1\n");
    sched.until_count("one.t.v1", "READY", 1);
    // The slot is free when the daemon comes up, and the file is not there.
    sched.kill_9();
    fs::remove_file(inbox.join("down.csv")).unwrap();
    gate.pass(1);
    sched.start();
    let made = sched.until_count("one.t.v1", "CANCELLED", 2);
    let gone = made.iter().filter(|i| i["state"] == "CANCELLED");
    for instance in gone {
        assert_eq!(instance["reason"], "FILE_GONE", "{instance:#}");
        let message = instance["message"].as_str().unwrap();
        assert!(message.ends_with(".csv was gone before the first start"), "{message}");
    }
    arrive(&inbox, "last.csv", "1\n");
    assert_eq!(sched.until_lines("taken", 2), ["first.csv", "last.csv"]);
    gate.pass(1);
    sched.until_idle();
    assert_eq!(sched.fires("one.t.v1").len(), 4, "a row for each arrival");
}

#[test]
fn files_that_come_and_go_at_once_make_nothing_and_break_nothing() {
    let sched = with_inbox();
    let inbox = sched.path("in");
    for n in 0..100 {
        let path = inbox.join(format!("{n}.csv"));
        drop(fs::File::create(&path).unwrap());
        fs::remove_file(&path).unwrap();
    }
    arrive(&inbox, "last.csv", "1\n");
    let last = inbox.join("last.csv").display().to_string();
    sched.until("the last file", || sched.lines("taken").contains(&last).then_some(()));
    sched.until_idle();
    // Whichever was there for long enough by chance was run with a path, or recorded as gone.
    let rows = sched.fires("inbox.t.v1").len();
    assert_eq!(rows, sched.instances("inbox.t.v1").len());
}

#[test]
fn crashes_while_files_arrive_neither_lose_nor_double_one() {
    const ROUNDS: usize = 4;
    const FILES: usize = 40;
    let mut sched = with_inbox();
    let inbox = sched.path("in");
    let mut expected = BTreeSet::new();
    for round in 0..ROUNDS {
        for n in 0..FILES {
            let name = format!("{round}-{n}.csv");
            arrive(&inbox, &name, "1\n");
            expected.insert(inbox.join(name).display().to_string());
        }
        // Some are taken, some are not.
        let some = round * FILES + FILES / 4;
        sched.until("some instances", || {
            (sched.instances("inbox.t.v1").len() >= some).then_some(())
        });
        sched.kill_9();
        sched.start();
    }
    sched.until_lines("taken", ROUNDS * FILES);
    sched.until_idle();
    let made = paths(&sched.instances("inbox.t.v1"));
    assert_eq!(made.len(), ROUNDS * FILES);
    assert_eq!(made.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(sched.fires("inbox.t.v1").len(), ROUNDS * FILES);
    assert_eq!(sched.lines("taken").len(), ROUNDS * FILES);
}

/// Known fault B162.
#[test]
fn thousands_of_files_at_once_make_an_instance_each_and_others_go_on() {
    const FILES: usize = 5_000;
    let sched = Sched::new();
    let inbox = sched.path("in");
    fs::create_dir(&inbox).unwrap();
    sched.put(&on_files(&sched, "many.t.v1", "true", "in/**/*.csv"));
    sched.good(&["pause", "many.t.v1"]);
    sched.put(&TaskSpec::shell("other.t.v1", "true"));
    for n in 0..FILES {
        fs::write(inbox.join(format!("{n}.csv")), "1\n").unwrap();
    }
    // In the middle of it, somebody else's task starts and ends.
    let other = sched.run("other.t.v1", &[]);
    sched.until_over(&other, "SUCCEEDED");
    sched.until("an instance for each", || {
        let ready = sched.get("/status")["instances"]["ready"].as_u64().unwrap();
        (ready >= 5_000).then_some(())
    });
    fs::remove_dir_all(&inbox).unwrap();
    sched.until_idle();
    let rows = sched.get("/fires?taskId=many.t.v1&limit=1000").as_array().unwrap().clone();
    assert!(rows.iter().all(|row| row["count"] == 1 && row["outcome"] == "INSTANCE"));
}
