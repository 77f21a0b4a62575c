//! Verbs about definitions.

use super::*;

/// Files in a directory of their own.
fn files(named: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in named {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// An entry of a plan.
fn planned(id: &str, file: &str, change: &str) -> serde_json::Value {
    json!({"taskId": id, "change": change, "file": format!("/srv/{file}"), "changes": [],
           "nextFireTime": null, "nextFireTimeAfter": null, "unresolved": [],
           "brokenDependents": [], "instances": []})
}

fn plan(tasks: &[serde_json::Value], errors: &serde_json::Value) -> String {
    json!({"tasks": tasks, "errors": errors, "warnings": []}).to_string()
}

#[test]
fn orders_about_definitions_go_to_the_routes_of_the_contract() {
    let daemon = daemon(|_, stream| reply(stream, "200 OK", r#"{"file": "/srv/a.yaml"}"#));
    for (line, asked) in [
        ("rollback a.b.v1 3 -y", r#"POST /v1/tasks/a.b.v1/rollback {"revision":3}"#),
        ("unpin a.b.v1", "POST /v1/tasks/a.b.v1/unpin {}"),
        ("remove a.b.v1 -y", "DELETE /v1/tasks/a.b.v1"),
    ] {
        assert_eq!(daemon.run(&format!("schedctl {line}")).unwrap(), Exit::Good, "{line}");
        assert_eq!(daemon.asked(), [asked], "{line}");
    }
}

#[test]
fn refusals_about_definitions_have_their_exit_status() {
    for (status, code, exit) in [
        ("404 Not Found", "NOT_FOUND", Exit::NotFound),
        ("409 Conflict", "CONFLICT", Exit::Refused),
        ("422 Unprocessable Entity", "INVALID", Exit::Refused),
        ("507 Insufficient Storage", "NO_SPACE", Exit::Refused),
        ("403 Forbidden", "NOT_PERMITTED", Exit::Forbidden),
    ] {
        let body = json!({"code": code, "detail": "because"}).to_string();
        let daemon = daemon(move |_, stream| reply(stream, status, &body));
        for line in ["history a.b.v1", "rollback a.b.v1 3 -y", "unpin a.b.v1", "remove a.b.v1 -y"] {
            let failure = daemon.run(&format!("schedctl {line}")).unwrap_err();
            assert_eq!(failure.exit(), exit, "{line}");
        }
    }
}

#[test]
fn the_history_is_read_whole_or_against_a_revision() {
    let daemon = daemon(|_, stream| {
        let row = |n: u64| {
            json!({"revision": n, "hash": "h", "loadedAt": "2026-11-30T02:00:00Z",
                   "file": "/srv/a.yaml", "uid": null, "active": n == 2, "pinned": false,
                   "changes": []})
        };
        reply(stream, "200 OK", &json!([row(1), row(2)]).to_string());
    });
    for (line, asked) in [
        ("history a.b.v1", "GET /v1/tasks/a.b.v1/history"),
        ("history a.b.v1 --diff", "GET /v1/tasks/a.b.v1/history"),
        ("history a.b.v1 --diff 1..2", "GET /v1/tasks/a.b.v1/history?against=1"),
        ("history --diff=2..1 a.b.v1", "GET /v1/tasks/a.b.v1/history?against=2"),
    ] {
        assert_eq!(daemon.run(&format!("schedctl {line}")).unwrap(), Exit::Good, "{line}");
        assert_eq!(daemon.asked(), [asked], "{line}");
    }
    let failure = daemon.run("schedctl history a.b.v1 --diff 1..3").unwrap_err();
    assert_eq!(failure.exit(), Exit::NotFound);
}

#[test]
fn a_plan_sends_the_files_and_is_6_if_anything_is_refused() {
    let dir = files(&[("b.yaml", "B"), ("a.yml", "A"), ("notes.txt", "N")]);
    let path = dir.path().display();
    let sent = r#"{"files":[{"name":"a.yml","text":"A"},{"name":"b.yaml","text":"B"}],"whole":"#;
    let daemon = daemon(|request, stream| {
        let error =
            json!([{"file": "/srv/a.yml", "line": 1, "column": 1, "path": "", "message": "no"}]);
        let errors = if request.contains("true") { error } else { json!([]) };
        reply(stream, "200 OK", &plan(&[planned("a.b.v1", "a.yml", "ADDED")], &errors));
    });
    assert_eq!(daemon.run(&format!("schedctl plan {path}")).unwrap(), Exit::Good);
    assert_eq!(daemon.asked(), [format!("POST /v1/plan {sent}false}}")]);
    assert_eq!(daemon.run(&format!("schedctl plan --replace {path}")).unwrap(), Exit::Refused);
    assert_eq!(daemon.asked(), [format!("POST /v1/plan {sent}true}}")]);
    let one = format!("schedctl plan {path}/a.yml {path}/none.yaml");
    assert_eq!(daemon.run(&one).unwrap(), Exit::NotFound, "one of them is not there");
}

#[test]
fn files_are_planned_together_and_then_written_as_one_change() {
    let dir = files(&[("a.yaml", "A"), ("b.yaml", "B")]);
    let daemon = daemon(|request, stream| {
        if request.contains("/plan") {
            let tasks = [planned("a.b.v1", "a.yaml", "ADDED")];
            reply(stream, "200 OK", &plan(&tasks, &json!([])));
        } else {
            let task = json!({"taskId": "a.b.v1", "result": "created", "revision": 1,
                              "file": "/srv/a.yaml", "unresolved": [], "pinned": false,
                              "brokenDependents": []});
            reply(stream, "200 OK", &json!({"tasks": [task], "warnings": []}).to_string());
        }
    });
    let line = format!("schedctl apply {}", dir.path().display());
    assert_eq!(daemon.run(&line).unwrap(), Exit::Good);
    let sent = r#"{"files":[{"name":"a.yaml","text":"A"},{"name":"b.yaml","text":"B"}]"#;
    let asked = format!("POST /v1/plan {sent},\"whole\":false}}");
    assert_eq!(daemon.asked(), [asked.clone(), format!("POST /v1/apply {sent}}}")]);
    assert_eq!(daemon.run(&format!("{line} --dry-run")).unwrap(), Exit::Good);
    assert_eq!(daemon.asked(), [asked]);
}

#[test]
fn a_refusal_of_what_was_planned_well_names_the_files_as_they_were_given() {
    let dir = files(&[("a.yaml", "A")]);
    let daemon = daemon(|request, stream| {
        if request.contains("/plan") {
            reply(stream, "200 OK", &plan(&[], &json!([])));
        } else {
            let error = json!({"file": "/srv/a.yaml", "line": 2, "column": 1, "path": "",
                               "message": "came too late"});
            let body = json!({"code": "CONFLICT", "detail": "not so", "errors": [error]});
            reply(stream, "409 Conflict", &body.to_string());
        }
    });
    let given = dir.path().join("a.yaml");
    let line = format!("schedctl apply {}", given.display());
    let failure = daemon.run_as(&line, Format::Table).unwrap_err();
    assert_eq!(failure.exit(), Exit::Refused);
    let place = format!("{}:2:1: came too late", given.display());
    assert!(failure.text().contains(&place), "{}", failure.text());
}

#[test]
fn a_reload_is_1_if_there_was_nothing_to_read_and_6_if_a_file_is_bad() {
    for (unreadable, errors, exit) in [
        (json!(null), json!([]), Exit::Good),
        (
            json!(null),
            json!([{"file": "/srv/a.yaml", "line": 1, "column": 1, "path": "",
                              "message": "no"}]),
            Exit::Refused,
        ),
        (json!("/srv is not there"), json!([]), Exit::Failed),
    ] {
        let body = json!({"tasks": 1, "specErrors": errors, "unreadable": unreadable}).to_string();
        let daemon = daemon(move |_, stream| reply(stream, "200 OK", &body));
        for format in [Format::Table, Format::Json] {
            assert_eq!(daemon.run_as("schedctl reload", format).unwrap(), exit, "{unreadable}");
            assert_eq!(daemon.asked(), ["POST /v1/reload {}"]);
        }
    }
}

#[test]
fn one_revision_is_asked_for_as_a_whole() {
    let daemon = daemon(|_, stream| {
        let row = |n: u64, spec: serde_json::Value| {
            json!({"revision": n, "hash": "h", "loadedAt": "2026-11-30T02:00:00Z",
                   "file": "/srv/a.yaml", "uid": null, "active": n == 2, "pinned": false,
                   "changes": [], "spec": spec})
        };
        let rows = json!([row(1, json!({"taskId": "a.b.v1"})), row(2, json!(null))]);
        reply(stream, "200 OK", &rows.to_string());
    });
    assert_eq!(daemon.run("schedctl history a.b.v1 --revision 1").unwrap(), Exit::Good);
    assert_eq!(daemon.asked(), ["GET /v1/tasks/a.b.v1/history?revision=1"]);
    let failure = daemon.run("schedctl history a.b.v1 --revision 3").unwrap_err();
    assert_eq!(failure.exit(), Exit::NotFound);
}

#[test]
fn nothing_is_written_if_anything_is_wrong_with_any_file() {
    let dir = files(&[("a.yaml", "A"), ("b.yaml", "B")]);
    let daemon = daemon(|_, stream| {
        let error = json!([{"file": "/srv/b.yaml", "line": 3, "column": 1, "path": "owner",
                            "message": "is missing"}]);
        reply(stream, "200 OK", &plan(&[planned("a.b.v1", "a.yaml", "ADDED")], &error));
    });
    let line = format!("schedctl apply {}", dir.path().display());
    assert_eq!(daemon.run(&line).unwrap(), Exit::Refused);
    assert_eq!(daemon.asked().len(), 1, "the plan alone");

    // What cannot even be sent, and what cannot be read.
    std::fs::write(dir.path().join("latin1.yaml"), b"# caf\xe9\n").unwrap();
    assert_eq!(daemon.run(&line).unwrap(), Exit::Refused);
    let asked = daemon.asked();
    assert!(asked.len() == 1 && !asked[0].contains("latin1"), "{asked:?}");
}

#[test]
fn one_name_twice_is_refused_before_anybody_is_asked() {
    let (one, other) = (files(&[("a.yaml", "A")]), files(&[("a.yaml", "B")]));
    let daemon = daemon(|_, stream| reply(stream, "200 OK", "{}"));
    let paths = format!("{} {}/a.yaml", one.path().display(), other.path().display());
    for verb in ["plan", "apply"] {
        let failure = daemon.run(&format!("schedctl {verb} {paths}")).unwrap_err();
        assert_eq!(failure.exit(), Exit::Refused);
        assert!(failure.text().contains("a.yaml"), "{}", failure.text());
    }
    assert!(daemon.asked().is_empty());
}
