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
    check(&[dir.path().to_owned()], &SpecContext::default())
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
fn a_circle_is_spelled_out() {
    let report = checked(&[
        ("a.yaml", spec("a.x.v1", &["c.x.v1"])),
        ("b.yaml", spec("b.x.v1", &["a.x.v1"])),
        ("c.yaml", spec("c.x.v1", &["b.x.v1", "d.x.v1"])),
        ("d.yaml", spec("d.x.v1", &[])),
    ]);
    let text = texts(&report.errors);
    assert!(text.contains("a.x.v1 → c.x.v1 → b.x.v1 → a.x.v1"), "{text}");
    assert_eq!(report.errors.len(), 1, "{text}");
}

#[test]
fn one_id_in_two_files_is_a_fault_that_names_both() {
    let report = checked(&[("a.yaml", spec("a.x.v1", &[])), ("b.yaml", spec("a.x.v1", &[]))]);
    let text = texts(&report.errors);
    assert!(text.contains("a.yaml") && text.contains("b.yaml"), "{text}");
}

#[test]
fn an_unknown_upstream_is_a_warning() {
    let report = checked(&[("a.yaml", spec("a.x.v1", &["z.x.v1"]))]);
    assert_eq!(texts(&report.errors), "");
    assert!(texts(&report.warnings).contains("z.x.v1"));
}

#[test]
fn a_file_that_is_not_there_is_a_fault() {
    let report = check(&[PathBuf::from("/none/x.yaml")], &SpecContext::default());
    assert!(texts(&report.errors).starts_with("/none/x.yaml: cannot be read"));
}
