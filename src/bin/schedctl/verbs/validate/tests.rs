use sched::model::time::Timestamp;

use super::*;

fn spec(id: &str, upstreams: &[&str]) -> String {
    let list = upstreams.join(", ");
    format!(
        "taskId: {id}\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: 'true'\ndependsOn: [{list}]\n"
    )
}

fn checked(files: &[(&str, String)]) -> Report {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    check(&[dir.path().to_owned()], &mut std::io::empty(), &SpecContext::default())
}

fn texts(errors: &[SpecError]) -> String {
    errors.iter().map(|e| format!("{e}\n")).collect()
}

#[test]
fn good_files_are_counted_and_foreign_ones_left_out() {
    let report = checked(&[
        ("a.yaml", spec("a.b.v1", &[])),
        ("b.yml", spec("b.c.v1", &["a.b.v1"])),
        (".hidden.yaml", "x".to_owned()),
        ("notes.txt", "x".to_owned()),
    ]);
    assert_eq!((report.files, report.tasks), (2, 2));
    assert_eq!(texts(&report.errors), "");
}

#[test]
fn a_fault_has_file_line_and_column() {
    let report = checked(&[("x.yaml", spec("a.b.v1", &[]) + "retires: 3\n")]);
    let text = texts(&report.errors);
    assert!(text.contains("x.yaml:7:1: ") && text.contains("retry"), "{text}");
}

#[test]
fn a_cycle_is_spelled_out_for_each_file_that_closes_it() {
    let report = checked(&[
        ("a.yaml", spec("a.x.v1", &["c.x.v1"])),
        ("b.yaml", spec("b.x.v1", &["a.x.v1"])),
        ("c.yaml", spec("c.x.v1", &["b.x.v1", "d.x.v1"])),
        ("d.yaml", spec("d.x.v1", &[])),
    ]);
    let text = texts(&report.errors);
    for file in ["a.yaml", "b.yaml", "c.yaml"] {
        assert!(text.contains(&format!("{file}:6:12: dependsOn: ")), "{text}");
    }
    // Whichever of the three it begins with.
    let ring = ["a.x.v1 -> c.x.v1", "c.x.v1 -> b.x.v1", "b.x.v1 -> a.x.v1"];
    let steps = |steps: &[&str; 3]| steps.iter().filter(|step| text.contains(**step)).count();
    let back = ["c.x.v1 -> a.x.v1", "b.x.v1 -> c.x.v1", "a.x.v1 -> b.x.v1"];
    assert!(steps(&ring).max(steps(&back)) == 3, "{text}");
    assert_eq!(report.errors.len(), 3, "{text}");
}

#[test]
fn what_else_the_registry_refuses_is_refused_here() {
    let root = |id: &str, event: &str| spec(id, &[]) + &format!("triggers: [{{event: {event}}}]\n");
    let report = checked(&[
        ("a.yaml", root("a.x.v1", "one")),
        ("b.yaml", root("b.x.v1", "two")),
        ("c.yaml", spec("c.x.v1", &["a.x.v1", "b.x.v1"]) + "cycle: {unit: RUN}\n"),
    ]);
    let text = texts(&report.errors);
    assert!(text.contains("unit RUN") && text.contains("a.x.v1"), "{text}");
}

#[test]
fn one_id_in_two_files_is_a_fault_that_names_both() {
    let report = checked(&[("a.yaml", spec("a.x.v1", &[])), ("b.yaml", spec("a.x.v1", &[]))]);
    let text = texts(&report.errors);
    assert!(text.contains("a.yaml") && text.contains("b.yaml"), "{text}");
    assert_eq!(report.errors.len(), 1, "{text}");
}

#[test]
fn every_fault_of_every_file_is_told_beside_those_of_the_set() {
    let report = checked(&[
        ("a.yaml", spec("a.x.v1", &[]) + "retires: 3\npriority: 10\n"),
        ("b.yaml", spec("b.x.v1", &["b.y.v1"])),
        ("c.yaml", spec("b.y.v1", &["b.x.v1"])),
        ("d.yaml", "taskId: [\n".to_owned()),
    ]);
    let text = texts(&report.errors);
    for place in
        ["a.yaml:7:1", "a.yaml:8:", "b.yaml:6:12: dependsOn", "c.yaml:6:12: dependsOn", "d.yaml:"]
    {
        assert!(text.contains(place), "{place}: {text}");
    }
    assert_eq!((report.files, report.tasks), (4, 2));
}

#[test]
fn an_unknown_upstream_is_a_warning() {
    let report = checked(&[("a.yaml", spec("a.x.v1", &["z.x.v1"]))]);
    assert_eq!(texts(&report.errors), "");
    assert!(texts(&report.warnings).contains("z.x.v1"));
}

#[test]
fn a_file_that_is_not_there_is_a_fault() {
    let paths = [PathBuf::from("/none/x.yaml")];
    let report = check(&paths, &mut std::io::empty(), &SpecContext::default());
    assert!(texts(&report.errors).starts_with("/none/x.yaml: cannot be read"));
}

#[test]
fn the_standard_input_is_a_file_too() {
    let text = spec("a.x.v1", &[]) + "retires: 3\n";
    let paths = [PathBuf::from("-")];
    let report = check(&paths, &mut text.as_bytes(), &SpecContext::default());
    assert!(texts(&report.errors).starts_with("-:7:1: retires: "), "{report:?}");
}

#[test]
fn a_finding_is_one_json_object() {
    let error = SpecError {
        file: "x.yaml".to_owned(),
        line: 7,
        column: 1,
        path: "retires".to_owned(),
        message: "is unknown".to_owned(),
    };
    let value: serde_json::Value = serde_json::from_str(&as_json(&error, "error")).unwrap();
    let expected = json!({"file": "x.yaml", "line": 7, "column": 1, "path": "retires",
                          "message": "is unknown", "severity": "error"});
    assert_eq!(value, expected);
}

#[test]
fn a_file_given_twice_is_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.yaml"), spec("a.b.v1", &[])).unwrap();
    let paths = [dir.path().join("a.yaml"), dir.path().to_owned()];
    let report = check(&paths, &mut std::io::empty(), &SpecContext::default());
    assert_eq!((report.files, report.tasks, texts(&report.errors).as_str()), (1, 1, ""));
}

#[test]
fn what_is_not_there_is_4_and_what_is_wrong_6() {
    let exit_of = |path: &str| {
        let path = PathBuf::from(path);
        check(&[path], &mut std::io::empty(), &SpecContext::default()).exit
    };
    assert_eq!(exit_of("/none/x.yaml"), Exit::NotFound);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(exit_of(dir.path().to_str().unwrap()), Exit::Refused, "no specs in it");
    let missing = dir.path().join("nope.yaml");
    assert_eq!(context(Some(&missing)).unwrap_err().exit(), Exit::NotFound);
    std::fs::write(&missing, "nope: 1\n").unwrap();
    assert_eq!(context(Some(&missing)).unwrap_err().exit(), Exit::Refused);
}

#[test]
fn where_the_known_types_come_from_is_named() {
    let read = known_from(Some(Path::new("/etc/schedd/schedd.yaml")));
    assert!(read.contains("/etc/schedd/schedd.yaml") && read.contains("--config FILE"), "{read}");
    let none = known_from(None);
    assert!(none.contains("no configuration") && none.contains("--config FILE"), "{none}");
}

#[test]
fn a_clock_change_that_a_trigger_will_meet_is_told_where_the_trigger_stands() {
    let dir = tempfile::tempdir().unwrap();
    let text = spec("a.b.v1", &[]) + "timezone: Europe/Berlin\ntriggers: [cron: 30 2 * * *]\n";
    std::fs::write(dir.path().join("a.yaml"), text).unwrap();
    let context = SpecContext::default().at(Timestamp::parse("2026-12-01T00:00:00Z").unwrap());
    let report = check(&[dir.path().to_owned()], &mut std::io::empty(), &context);
    let text = texts(&report.warnings);
    let expected = "a.yaml:8:18: triggers[0].cron: in Europe/Berlin on 2027-03-28 02:30 does not \
                    exist: fires at 03:00 instead; on 2027-10-31 02:30 comes twice: fires at the \
                    first\n";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!((report.warnings.len(), report.errors.len()), (1, 0), "{text}");
    assert!(matches!(report.exit, Exit::Good));
}
