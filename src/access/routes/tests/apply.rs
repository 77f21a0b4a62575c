//! Files put into the spec directory as one change.

use super::definitions::{Core, changed, error, path, planned, planned_task, task, write, yaml};
use super::*;
use crate::model::plan::{PlanView, TaskChange, TaskPlan};
use crate::model::view::TaskView;

fn body(files: &[(&str, &str)]) -> String {
    let files: Vec<Value> =
        files.iter().map(|(name, text)| json!({"name": name, "text": text})).collect();
    json!({ "files": files }).to_string()
}

fn plan(tasks: Vec<TaskPlan>) -> PlanView {
    PlanView { tasks, ..PlanView::default() }
}

#[tokio::test]
async fn files_are_planned_as_one_set_and_written_as_one_change() {
    let mut below = task("b.v1", "two.yaml");
    below.unresolved = vec![TaskId::parse("gone.v1").unwrap()];
    let mut removed = planned_task("gone.v1", "two.yaml", TaskChange::Removed);
    removed.broken_dependents = vec![below.task_id.clone()];
    let core = Core {
        tasks: vec![task("a.v1", "one.yaml"), below, task("c.v1", "two.yaml")],
        plan: plan(vec![
            planned_task("a.v1", "one.yaml", TaskChange::Added),
            planned_task("c.v1", "two.yaml", TaskChange::Moved),
            removed,
        ]),
        ..Core::default()
    };
    let two = format!("{}---\n{}", yaml("b.v1"), yaml("c.v1"));
    let house = core.house();
    let files = body(&[("one.yaml", &yaml("a.v1")), ("two.yaml", &two)]);
    let answer = post(&house, "/v1/apply", &files).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    assert_eq!(planned(&house), [(vec![path("one.yaml"), path("two.yaml")], false)]);
    assert_eq!(changed(&house), [write("one.yaml", &yaml("a.v1")), write("two.yaml", &two)]);
    let entry = |id: &str, result: &str, revision: Value, file: &str| {
        json!({"taskId": id, "result": result, "revision": revision, "file": path(file),
               "unresolved": [], "pinned": false, "brokenDependents": []})
    };
    let mut waits = entry("b.v1", "unchanged", json!(2), "two.yaml");
    waits["unresolved"] = json!(["gone.v1"]);
    let mut gone = entry("gone.v1", "removed", json!(null), "two.yaml");
    gone["brokenDependents"] = json!(["b.v1"]);
    let tasks = json!([
        entry("a.v1", "created", json!(2), "one.yaml"),
        waits,
        entry("c.v1", "configured", json!(2), "two.yaml"),
        gone,
    ]);
    assert_eq!(answer.json, json!({"tasks": tasks, "warnings": []}));
}

#[tokio::test]
async fn nothing_is_written_if_anything_is_wrong_and_a_plan_says_the_same() {
    let cycle = error("good.yaml", "closes a cycle");
    let set = PlanView { errors: vec![cycle.clone()], ..PlanView::default() };
    let good = yaml("a.v1");
    let bad = "taskId: x.v1\nretires: 3\n";
    for (core, files, status, errors) in [
        (set.clone(), body(&[("good.yaml", &good)]), 409, 1),
        (set, body(&[("good.yaml", &good), ("empty.yaml", "# later\n")]), 422, 2),
        (PlanView::default(), body(&[("good.yaml", &good), ("notes.txt", &good)]), 422, 1),
        (PlanView::default(), body(&[("bad.yaml", bad)]), 422, 5),
    ] {
        let house = Core { plan: core, ..Core::default() }.house();
        let refused = post(&house, "/apply", &files).await;
        assert_eq!(refused.status.as_u16(), status, "{files}: {}", refused.json);
        assert!(detail(&refused).ends_with("nothing was written"), "{}", refused.json);
        assert!(changed(&house).is_empty());
        let planned = post(&house, "/plan", &files).await;
        assert_eq!(planned.json["errors"], refused.json["errors"]);
        assert_eq!(planned.json["errors"].as_array().unwrap().len(), errors, "{}", planned.json);
    }
}

#[tokio::test]
async fn a_file_without_a_task_is_no_fault_of_a_whole_directory() {
    let house = Core::default().house();
    let files = |whole: bool| {
        json!({"files": [{"name": "a.yaml", "text": "# later\n"}], "whole": whole}).to_string()
    };
    let answer = post(&house, "/plan", &files(false)).await;
    let message = answer.json["errors"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("defines no task; "), "{message}");
    assert_eq!(post(&house, "/plan", &files(true)).await.json["errors"], json!([]));
}

#[tokio::test]
async fn faults_of_a_file_without_a_name_do_not_name_one() {
    let set = PlanView { errors: vec![error("a.b.v1.yaml", "clashes")], ..PlanView::default() };
    let house = Core { plan: set, ..Core::default() }.house();
    let files = json!({"files": [{"name": null, "text": yaml("a.b.v1")}]}).to_string();
    let answer = post(&house, "/apply", &files).await;
    assert_eq!(
        (answer.status, &answer.json["errors"][0]["file"]),
        (StatusCode::CONFLICT, &json!("-"))
    );
}

#[tokio::test]
async fn a_file_without_a_name_is_not_written_over_another_that_was_brought() {
    let house = Core::default().house();
    let files = json!({"files": [{"name": "a.b.v1.yaml", "text": yaml("c.d.v1")},
                                 {"text": yaml("a.b.v1")}]});
    let answer = post(&house, "/apply", &files.to_string()).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(detail(&answer).contains("a.b.v1.yaml is among the files twice"), "{}", answer.json);
    assert!(changed(&house).is_empty());
}

#[tokio::test]
async fn files_that_are_written_but_not_in_force_are_told_with_their_errors() {
    let elsewhere: Vec<TaskView> = vec![task("a.v1", "other.yaml")];
    let late = error("one.yaml", "came too late");
    let core = Core { tasks: elsewhere, errors: vec![late.clone()], ..Core::default() };
    let answer = post(&core.house(), "/apply", &body(&[("one.yaml", &yaml("a.v1"))])).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(detail(&answer).contains(&path("one.yaml")), "{}", detail(&answer));
    assert_eq!(answer.json["errors"], json!([late]));
}

#[tokio::test]
async fn a_plan_warns_of_the_clock_changes_that_a_trigger_will_meet() {
    let house = Core::default().house();
    let text = yaml("a.b.v1") + "timezone: Europe/Berlin\ntriggers: [cron: 30 2 * * *]\n";
    let files = json!({"files": [{"name": "a.yaml", "text": text}]}).to_string();
    let answer = post(&house, "/plan", &files).await;
    let warnings = answer.json["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{}", answer.json);
    let message = warnings[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("in Europe/Berlin on 2027-03-28 02:30 does not exist"),
        "{message}"
    );
}
