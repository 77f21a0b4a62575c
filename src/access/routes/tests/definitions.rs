//! Definitions and their revisions through the door, the core being a list of tasks.

use super::*;
use crate::access::fakes::SPECS;
use crate::model::event::SpecError;
use crate::model::plan::{FieldChange, PlanView, TaskChange, TaskPlan};
use crate::model::request::FileChange;
use crate::model::view::{StatusView, TaskView};

/// What the core says, and what it was asked to plan.
#[derive(Clone, Default)]
pub(super) struct Core {
    pub(super) tasks: Vec<TaskView>,
    /// Tasks that are there once a file was written.
    pub(super) later: Vec<TaskView>,
    pub(super) errors: Vec<SpecError>,
    pub(super) plan: PlanView,
}

impl Core {
    pub(super) fn house(self) -> House {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        House::new(FakeCore::new(move |request| {
            let find = |tasks: &[TaskView], id: &TaskId| {
                let found = tasks.iter().find(|view| view.task_id == *id).cloned();
                let none = || Rejection::new(RejectionCode::NotFound, format!("no task {id}"));
                found.map(|view| Reply::Task(Box::new(view))).ok_or_else(none)
            };
            if let Request::Tasks = request {
                return Ok(Reply::Tasks(self.tasks.clone()));
            }
            if let Request::Task(id) = request {
                let is_first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
                let (now, then) = (&self.tasks, &self.later);
                let (one, other) = if is_first { (now, then) } else { (then, now) };
                return find(one, id).or_else(|_none| find(other, id));
            }
            if let Request::Status = request {
                return Ok(Reply::Status(Box::new(status(&self.errors))));
            }
            if let Request::Plan { .. } = request {
                return Ok(Reply::Plan(Box::new(self.plan.clone())));
            }
            Ok(Reply::Done)
        }))
    }
}

fn status(errors: &[SpecError]) -> StatusView {
    serde_json::from_value(json!({
        "version": "0", "pid": 1, "startedAt": "2026-11-30T10:00:00Z", "timezone": "UTC",
        "instances": {"open": 0, "pending": 0, "blocked": 0, "ready": 0, "running": 0,
                      "retrying": 0},
        "tasks": 0, "queues": [], "executors": [], "specErrors": errors, "degraded": [],
        "paused": null, "stopping": false
    }))
    .unwrap()
}

pub(super) fn path(file: &str) -> String {
    format!("{SPECS}/{file}")
}

/// A task in force, out of a file of the spec directory.
pub(super) fn task(id: &str, file: &str) -> TaskView {
    serde_json::from_value(json!({
        "taskId": id, "version": 1, "revision": 2, "createdAt": "2026-11-01T00:00:00Z",
        "file": path(file), "status": "ACTIVE", "unresolved": [], "paused": null,
        "pinned": false, "owner": "o", "taskType": "SHELL", "priority": 4, "queue": "default",
        "schedule": "", "nextFireTime": null, "lastInstance": null, "labels": {},
        "spec": spec(id)
    }))
    .unwrap()
}

pub(super) fn error(file: &str, message: &str) -> SpecError {
    let message = message.to_owned();
    SpecError { file: path(file), line: 0, column: 0, path: String::new(), message }
}

/// A task of a plan, nothing of it being told.
pub(super) fn planned_task(id: &str, file: &str, change: TaskChange) -> TaskPlan {
    TaskPlan {
        task_id: TaskId::parse(id).unwrap(),
        change,
        file: path(file),
        changes: Vec::new(),
        next_fire_time: None,
        next_fire_time_after: None,
        unresolved: Vec::new(),
        broken_dependents: Vec::new(),
        instances: Vec::new(),
    }
}

pub(super) fn yaml(id: &str) -> String {
    format!("taskId: {id}\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: 'true'\n")
}

pub(super) fn planned(house: &House) -> Vec<(Vec<String>, bool)> {
    let orders = house.core.orders();
    let plans = orders.iter().filter_map(|order| {
        let Request::Plan { files, whole } = order else { return None };
        Some((files.iter().map(|f| f.path.clone()).collect(), *whole))
    });
    plans.collect()
}

pub(super) fn changed(house: &House) -> Vec<FileChange> {
    house.core.changed.lock().unwrap().clone()
}

pub(super) fn write(name: &str, text: &str) -> FileChange {
    FileChange::Write { name: name.to_owned(), text: text.as_bytes().to_vec() }
}

// Bringing

#[tokio::test]
async fn a_new_task_is_written_under_its_id_and_created() {
    let house = Core { later: vec![task("a.b.v1", "a.b.v1.yaml")], ..Core::default() }.house();
    let answer = post(&house, "/tasks", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.json);
    assert_eq!(answer.headers[header::LOCATION], "/tasks/a.b.v1");
    assert_eq!((&answer.json["taskId"], &answer.json["revision"]), (&json!("a.b.v1"), &json!(2)));
    assert_eq!(answer.json["spec"]["runtimeParams"]["pw"]["default"], "***");
    assert_eq!(changed(&house), [write("a.b.v1.yaml", &yaml("a.b.v1"))]);
    assert_eq!(planned(&house), [(vec![path("a.b.v1.yaml")], false)]);
}

#[tokio::test]
async fn a_task_is_replaced_in_the_file_where_it_stands_alone() {
    let tasks = vec![task("a.b.v1", "odd.yml"), task("c.d.v1", "c.yaml")];
    for target in ["/tasks", "/v1/tasks?file=odd.yml"] {
        let house = Core { tasks: tasks.clone(), ..Core::default() }.house();
        let answer = post(&house, target, &yaml("a.b.v1")).await;
        assert_eq!(answer.status, StatusCode::OK, "{target}: {}", answer.json);
        assert_eq!(changed(&house), [write("odd.yml", &yaml("a.b.v1"))], "{target}");
    }
}

#[tokio::test]
async fn a_file_of_several_tasks_is_brought_as_a_whole_under_its_name() {
    let both = format!("{}---\n{}", yaml("a.b.v1"), yaml("c.d.v1"));
    let tasks = vec![task("a.b.v1", "two.yaml"), task("c.d.v1", "two.yaml")];
    let house = Core { tasks: tasks.clone(), ..Core::default() }.house();
    let answer = post(&house, "/tasks?file=two.yaml", &both).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    let ids: Vec<&Value> = answer.json.as_array().unwrap().iter().map(|t| &t["taskId"]).collect();
    assert_eq!(ids, ["a.b.v1", "c.d.v1"]);
    assert_eq!(changed(&house), [write("two.yaml", &both)]);

    let house = Core::default().house();
    let answer = post(&house, "/tasks", &both).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.json["errors"][0]["message"].as_str().unwrap().contains("name"));

    let house = Core { tasks, ..Core::default() }.house();
    let answer = post(&house, "/tasks", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(detail(&answer).contains("two.yaml") && detail(&answer).contains("c.d.v1"));
    assert!(changed(&house).is_empty());
}

#[tokio::test]
async fn an_id_that_lives_in_another_file_is_a_conflict_that_names_it() {
    let house = Core { tasks: vec![task("a.b.v1", "old.yaml")], ..Core::default() }.house();
    let answer = post(&house, "/tasks?file=new.yaml", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.json["code"], "CONFLICT");
    assert!(detail(&answer).contains(&path("old.yaml")), "{}", detail(&answer));
    assert!(changed(&house).is_empty());
}

#[tokio::test]
async fn a_spec_with_errors_is_refused_with_all_their_places_and_nothing_is_written() {
    let house = Core::default().house();
    let text = "taskId: a.b.v1\nversion: 2\nowner: o\ntaskType: SHELL\nretires: 3\n";
    let answer = post(&house, "/tasks?file=a.yaml", text).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer.json["code"], "INVALID");
    let places: Vec<(u64, &str)> = answer.json["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["line"].as_u64().unwrap(), e["path"].as_str().unwrap()))
        .collect();
    for place in [(2, "version"), (5, "retires")] {
        assert!(places.contains(&place), "{places:?}");
    }
    assert!(answer.json["errors"][0]["file"] == path("a.yaml"));
    for (text, word) in [("", "no task"), ("# nothing\n", "no task")] {
        let answer = post(&house, "/tasks", text).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{text:?}");
        assert!(detail(&answer).contains(word), "{}", detail(&answer));
    }
    assert!(changed(&house).is_empty());
}

#[tokio::test]
async fn a_spec_that_does_not_fit_the_set_is_a_conflict_and_nothing_is_written() {
    let known = error("other.yaml", "is broken anyway");
    let cycle = error("a.b.v1.yaml", "closes the cycle a.b.v1 -> c.d.v1 -> a.b.v1");
    let core = |errors: Vec<SpecError>| Core {
        later: vec![task("a.b.v1", "a.b.v1.yaml")],
        errors: vec![known.clone()],
        plan: PlanView { errors, ..PlanView::default() },
        ..Core::default()
    };
    let house = core(vec![known.clone(), cycle.clone()]).house();
    let answer = post(&house, "/tasks", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.json["errors"], json!([cycle]));
    assert!(changed(&house).is_empty());
    // What is wrong elsewhere, and was before, is nobody's business here.
    let house = core(vec![known.clone()]).house();
    let answer = post(&house, "/tasks", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.json);
    // What this spec would do to another file is.
    let house = core(vec![error("third.yaml", "is ambiguous now")]).house();
    let answer = post(&house, "/tasks", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn names_that_the_directory_would_not_read_are_refused() {
    let house = Core::default().house();
    for name in ["a.txt", ".a.yaml", "..%2Fa.yaml", "a%2Fb.yaml", "a.yaml~", ""] {
        let answer = post(&house, &format!("/tasks?file={name}"), &yaml("a.b.v1")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{name}");
        assert!(detail(&answer).contains(".yaml"), "{}", detail(&answer));
    }
    assert!(changed(&house).is_empty());
}

#[tokio::test]
async fn a_body_has_the_bounds_and_the_type_of_a_spec_file() {
    let house = Core::default().house();
    let long = format!("# {}\n{}", "x".repeat(256 * 1024), yaml("a.b.v1"));
    for path in ["/tasks", "/v1/tasks"] {
        let answer = post(&house, path, &long).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        assert!(detail(&answer).contains("262144"), "{}", detail(&answer));
    }
    for (kind, status) in [
        ("application/yaml", StatusCode::CREATED),
        ("application/json; charset=utf-8", StatusCode::CREATED),
        ("text/plain", StatusCode::CREATED),
        ("multipart/form-data", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ] {
        let house = Core { later: vec![task("a.b.v1", "a.b.v1.yaml")], ..Core::default() }.house();
        let mut request = request(Method::POST, "/tasks", &yaml("a.b.v1"));
        request.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
        assert_eq!(send(&house, request).await.status, status, "{kind}");
    }
}

#[tokio::test]
async fn a_json_spec_without_an_id_gets_one() {
    let house = Core::default().house();
    let body = r#"{"owner": "o", "taskType": "SHELL", "handler": "true"}"#;
    // The core of this test does not take it in force, which is told.
    let answer = post(&house, "/tasks", body).await;
    assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.json);
    let [FileChange::Write { name, text }] = &changed(&house)[..] else { panic!() };
    let written: Value = serde_json::from_slice(text).unwrap();
    let id = written["taskId"].as_str().unwrap();
    assert_eq!(*name, format!("{id}.yaml"));
    assert!(id.starts_with("adhoc.") && id.ends_with(".v1"), "{id}");
}

#[tokio::test]
async fn a_file_that_is_written_but_not_in_force_is_told_with_its_errors() {
    let core = Core { errors: vec![error("a.b.v1.yaml", "came too late")], ..Core::default() };
    let answer = post(&core.house(), "/tasks", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.json["errors"][0]["message"], "came too late");
    // Nor is it if what the file said before is in force still.
    let late = vec![error("a.b.v1.yaml", "closes a cycle")];
    let before = TaskView { spec_errors: late.clone(), ..task("a.b.v1", "a.b.v1.yaml") };
    let core = Core { tasks: vec![before], errors: late, ..Core::default() };
    let answer = post(&core.house(), "/tasks", &yaml("a.b.v1")).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert_eq!(answer.json["errors"][0]["message"], "closes a cycle");
}

// Taking away

async fn delete(house: &House, path: &str) -> Answered {
    send(house, request(Method::DELETE, path, "")).await
}

#[tokio::test]
async fn a_dry_run_of_a_removal_names_who_would_lose_the_task_and_removes_nothing() {
    let mut removed = planned_task("a.b.v1", "a.yaml", TaskChange::Removed);
    removed.broken_dependents = vec![TaskId::parse("below.v1").unwrap()];
    let plan = PlanView { tasks: vec![removed], ..PlanView::default() };
    let house = Core { tasks: vec![task("a.b.v1", "a.yaml")], plan, ..Core::default() }.house();
    let answer = delete(&house, "/tasks/a.b.v1?dryRun").await;
    assert_eq!(answer.json["brokenDependents"], json!(["below.v1"]), "{}", answer.json);
    assert!(changed(&house).is_empty());
}

#[tokio::test]
async fn a_task_alone_in_its_file_is_removed_with_it() {
    let gone = std::sync::atomic::AtomicBool::new(false);
    let house = House::new(FakeCore::new(move |request| {
        if let Request::Tasks = request {
            return Ok(Reply::Tasks(vec![task("a.b.v1", "a.yaml")]));
        }
        if let Request::Status = request {
            return Ok(Reply::Status(Box::new(status(&[]))));
        }
        if let Request::Plan { files, .. } = request {
            assert!(files[0].path == path("a.yaml") && files[0].specs.is_empty());
            let mut removed = planned_task("a.b.v1", "a.yaml", TaskChange::Removed);
            removed.broken_dependents = vec![TaskId::parse("below.v1").unwrap()];
            return Ok(Reply::Plan(Box::new(PlanView {
                tasks: vec![removed],
                ..PlanView::default()
            })));
        }
        if gone.swap(true, std::sync::atomic::Ordering::SeqCst) {
            return Err(Rejection::new(RejectionCode::NotFound, "no task a.b.v1"));
        }
        Ok(Reply::Task(Box::new(task("a.b.v1", "a.yaml"))))
    }));
    let answer = delete(&house, "/v1/tasks/a.b.v1").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    let removed = json!({"taskId": "a.b.v1", "file": path("a.yaml"),
                         "brokenDependents": ["below.v1"]});
    assert_eq!(answer.json, removed);
    let tasks = vec![TaskId::parse("a.b.v1").unwrap()];
    assert_eq!(changed(&house), [FileChange::Remove { name: "a.yaml".to_owned(), tasks }]);
    // Asked again, it is not there.
    assert_eq!(delete(&house, "/v1/tasks/a.b.v1").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_file_that_holds_more_than_the_task_is_not_removed() {
    let two = vec![task("a.b.v1", "two.yaml"), task("c.d.v1", "two.yaml")];
    let broken = Core {
        tasks: vec![task("a.b.v1", "a.yaml")],
        errors: vec![error("a.yaml", "is torn")],
        ..Core::default()
    };
    let mut foreign = task("a.b.v1", "a.yaml");
    foreign.file = "/elsewhere/a.yaml".to_owned();
    for (core, word) in [
        (Core { tasks: two, ..Core::default() }, "c.d.v1"),
        (broken, "has errors"),
        (Core { tasks: vec![foreign], ..Core::default() }, "/elsewhere/a.yaml"),
    ] {
        let house = core.house();
        let answer = delete(&house, "/tasks/a.b.v1").await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{word}");
        assert!(detail(&answer).contains(word), "{}", detail(&answer));
        assert!(changed(&house).is_empty());
    }
    let house = Core::default().house();
    for id in ["no.such.v1", "no-version"] {
        let answer = delete(&house, &format!("/tasks/{id}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{id}");
    }
}

#[tokio::test]
async fn another_file_that_takes_over_is_told() {
    let core = Core {
        tasks: vec![task("a.b.v1", "a.yaml")],
        later: vec![task("a.b.v1", "b.yaml")],
        ..Core::default()
    };
    let answer = delete(&core.house(), "/tasks/a.b.v1").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(detail(&answer).contains(&path("b.yaml")), "{}", detail(&answer));
}

// Planning

#[tokio::test]
async fn a_plan_has_the_faults_of_the_files_and_those_of_the_set() {
    let known = error("other.yaml", "is broken anyway");
    let set = error("good.yaml", "closes a cycle");
    let core = Core {
        errors: vec![known.clone()],
        plan: PlanView { errors: vec![known.clone(), set.clone()], ..PlanView::default() },
        ..Core::default()
    };
    let body = json!({"files": [
        {"name": "good.yaml", "text": yaml("a.b.v1")},
        {"name": "bad.yaml", "text": "taskId: x\n"},
        {"name": "notes.txt", "text": yaml("c.d.v1")},
        {"text": yaml("e.f.v1")},
        {"name": null, "text": "taskId: [\n"},
    ]});
    let house = core.clone().house();
    let answer = post(&house, "/plan", &body.to_string()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    let paths = ["good.yaml", "bad.yaml", "e.f.v1.yaml"].map(path);
    assert_eq!(planned(&house), [(paths.to_vec(), false)]);
    let errors = answer.json["errors"].as_array().unwrap().clone();
    let about = |file: &str| errors.iter().filter(|e| e["file"] == file).count();
    assert_eq!((about("notes.txt"), about(&path("good.yaml"))), (1, 1), "{errors:#?}");
    assert!(about(&path("bad.yaml")) > 0 && about("-") > 0, "{errors:#?}");
    assert_eq!(about(&path("other.yaml")), 0, "{errors:#?}");
    assert!(changed(&house).is_empty());

    let body = json!({"files": [], "whole": true}).to_string();
    let house = core.house();
    let answer = post(&house, "/plan", &body).await;
    assert_eq!(planned(&house), [(Vec::new(), true)]);
    assert_eq!(answer.json["errors"], json!([known, set]));
}

#[tokio::test]
async fn a_plan_masks_what_is_or_was_secret() {
    let change = |path: &str| FieldChange {
        path: path.to_owned(),
        from: json!("HUNTER1"),
        to: json!("HUNTER2"),
    };
    let plan = TaskPlan {
        changes: vec![change("runtimeParams.pw.default"), change("runtimeParams.n.default")],
        ..planned_task("s.v1", "s.yaml", TaskChange::Changed)
    };
    let view = PlanView { tasks: vec![plan], ..PlanView::default() };
    let house = Core { plan: view, ..Core::default() }.house();
    house.history.revisions.lock().unwrap().push(revision(1, spec("s.v1")));
    let answer = post(&house, "/plan", r#"{"files": []}"#).await;
    let changes = &answer.json["tasks"][0]["changes"];
    assert_eq!((&changes[0]["from"], &changes[0]["to"]), (&json!("***"), &json!("***")));
    assert_eq!(changes[1]["from"], "HUNTER1");
}

#[tokio::test]
async fn a_plan_that_cannot_be_meant_is_refused() {
    let house = Core::default().house();
    let file = json!({"name": "a.yaml", "text": ""});
    let many = vec![json!({"name": "a.yaml", "text": ""}); 10_001];
    for body in [
        json!({"files": [file, file]}),
        json!({"files": many}),
        json!({}),
        json!({"files": [{"name": "a.yaml"}]}),
        json!({"files": [], "all": true}),
    ] {
        for path in ["/plan", "/apply"] {
            let answer = post(&house, path, &body.to_string()).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        }
    }
    // A plan may be longer than other bodies, up to its own bound.
    let large = json!({"files": [{"name": "a.yaml", "text": " ".repeat(2 << 20)}]}).to_string();
    assert_eq!(post(&house, "/v1/plan", &large).await.status, StatusCode::OK);
    let huge = " ".repeat(16 * 1024 * 1024 + 1);
    assert_eq!(post(&house, "/plan", &huge).await.status, StatusCode::PAYLOAD_TOO_LARGE);
}

// Revisions

fn revision(number: u64, spec: Arc<TaskSpec>) -> Revision {
    Revision {
        task_id: spec.task_id.clone(),
        revision: number,
        hash: format!("h{number}"),
        loaded_at: Timestamp::parse("2026-11-30T02:00:00Z").unwrap(),
        file: path("s.yaml"),
        uid: Some(1000),
        spec,
    }
}

/// A task of three revisions: a second attempt came, then another secret.
fn three_revisions(house: &House) {
    let first = spec("s.v1");
    let mut second = TaskSpec::clone(&first);
    second.retry.max_attempts = 2;
    let mut third = second.clone();
    third.runtime_params.get_mut("pw").unwrap().default = Some(json!("HUNTER2"));
    let all = [first, Arc::new(second), Arc::new(third)];
    let numbered = (1..).zip(all).map(|(number, spec)| revision(number, spec));
    house.history.revisions.lock().unwrap().extend(numbered);
}

#[tokio::test]
async fn the_history_is_told_oldest_first_with_what_changed_and_secrets_masked() {
    let house = Core { tasks: vec![task("s.v1", "s.yaml")], ..Core::default() }.house();
    three_revisions(&house);
    let answer = get(&house, "/v1/tasks/s.v1/history").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    let rows = answer.json.as_array().unwrap();
    let flags: Vec<(u64, bool, bool)> = rows
        .iter()
        .map(|r| {
            let flag = |key: &str| r[key].as_bool().unwrap();
            (r["revision"].as_u64().unwrap(), flag("active"), flag("pinned"))
        })
        .collect();
    assert_eq!(flags, [(1, false, false), (2, true, false), (3, false, false)]);
    assert_eq!(
        rows[0],
        json!({"revision": 1, "hash": "h1", "loadedAt": "2026-11-30T02:00:00.000Z",
               "file": path("s.yaml"), "uid": 1000, "active": false, "pinned": false,
               "changes": [], "spec": null})
    );
    let change = |path: &str, from: Value, to: Value| json!({"path": path, "from": from, "to": to});
    assert_eq!(rows[1]["changes"], json!([change("retry.maxAttempts", json!(1), json!(2))]));
    let secret = change("runtimeParams.pw.default", json!("***"), json!("***"));
    assert_eq!(rows[2]["changes"], json!([secret]));
    // With one's whole definition.
    let rows = get(&house, "/tasks/s.v1/history?revision=3").await.json;
    assert_eq!(
        (&rows[1]["spec"], &rows[2]["spec"]["retry"]["maxAttempts"]),
        (&json!(null), &json!(2))
    );
    assert_eq!(rows[2]["spec"]["runtimeParams"]["pw"]["default"], "***");
    assert_eq!(get(&house, "/tasks/s.v1/history?revision=4").await.status, StatusCode::NOT_FOUND);
    // Against a given one.
    let rows = get(&house, "/tasks/s.v1/history?against=3").await.json;
    let back = change("retry.maxAttempts", json!(2), json!(1));
    assert_eq!(rows[0]["changes"], json!([back, secret]));
    assert_eq!(rows[2]["changes"], json!([]));
    let answer = get(&house, "/tasks/s.v1/history?against=4").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(detail(&answer).contains("3, 2, 1"), "{}", detail(&answer));
}

#[tokio::test]
async fn a_pin_is_shown_on_the_revision_in_force_and_a_removed_task_keeps_its_history() {
    let mut pinned = task("s.v1", "s.yaml");
    pinned.pinned = true;
    // Paused as well: the status says that first.
    pinned.status = crate::model::view::TaskStatus::Paused;
    let house = Core { tasks: vec![pinned], ..Core::default() }.house();
    three_revisions(&house);
    let rows = get(&house, "/tasks/s.v1/history").await.json;
    let pins: Vec<&Value> = rows.as_array().unwrap().iter().map(|r| &r["pinned"]).collect();
    assert_eq!(pins, [&json!(false), &json!(true), &json!(false)]);

    let house = Core::default().house();
    three_revisions(&house);
    let rows = get(&house, "/tasks/s.v1/history").await.json;
    let rows = rows.as_array().unwrap();
    assert!(rows.len() == 3 && rows.iter().all(|r| r["active"] == false), "{rows:?}");
    for query in ["", "?revision=1"] {
        let answer = get(&house, &format!("/tasks/t.v1/history{query}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert!(detail(&answer).contains("no task t.v1"), "{}", detail(&answer));
    }
    house.history.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    let answer = get(&house, "/tasks/s.v1/history").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_rollback_brings_the_stored_revision() {
    let house = Core { tasks: vec![task("s.v1", "s.yaml")], ..Core::default() }.house();
    three_revisions(&house);
    let answer = post(&house, "/tasks/s.v1/rollback", r#"{"revision": 1}"#).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    assert_eq!(answer.json, json!({"taskId": "s.v1", "revision": 1}));
    let task = TaskId::parse("s.v1").unwrap();
    let stored = Box::new(revision(1, spec("s.v1")));
    assert_eq!(house.core.orders(), [Request::Rollback { task, revision: stored }]);
    for (path, body, status, word) in [
        ("/tasks/s.v1/rollback", r#"{"revision": 9}"#, 404, "3, 2, 1"),
        ("/tasks/t.v1/rollback", r#"{"revision": 1}"#, 404, "no task t.v1"),
        ("/tasks/s.v1/rollback", "{}", 422, "revision"),
        ("/tasks/s.v1/rollback", r#"{"revision": -1}"#, 422, "line 1"),
        ("/tasks/s.v1/rollback", r#"{"revision": 1, "x": 2}"#, 422, "x"),
    ] {
        let answer = post(&house, path, body).await;
        assert_eq!(answer.status.as_u16(), status, "{path} {body}");
        assert!(detail(&answer).contains(word), "{}", detail(&answer));
    }
}

#[tokio::test]
async fn a_removed_task_is_not_rolled_back_and_told_how_it_comes_back() {
    let house =
        House::new(FakeCore::new(|_| Err(Rejection::new(RejectionCode::NotFound, "no task s.v1"))));
    three_revisions(&house);
    let answer = post(&house, "/tasks/s.v1/rollback", r#"{"revision": 2}"#).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    for word in ["its file is gone", "schedctl apply", "schedctl history s.v1 --revision 2"] {
        assert!(detail(&answer).contains(word), "{}", detail(&answer));
    }
}

#[tokio::test]
async fn what_became_secret_is_masked_in_the_revisions_before_too() {
    let house = Core { tasks: vec![task("s.v1", "s.yaml")], ..Core::default() }.house();
    let now = spec("s.v1");
    let mut before = TaskSpec::clone(&now);
    before.runtime_params.get_mut("pw").unwrap().secret = false;
    let both = [revision(1, Arc::new(before)), revision(2, now)];
    house.history.revisions.lock().unwrap().extend(both);
    let rows = get(&house, "/tasks/s.v1/history?revision=1").await.json;
    assert_eq!(rows[0]["spec"]["runtimeParams"]["pw"]["default"], "***");
}

#[tokio::test]
async fn what_was_secret_once_is_masked_in_what_is_in_force_too() {
    let secret = spec("s.v1");
    let mut open = TaskSpec::clone(&secret);
    open.runtime_params.get_mut("pw").unwrap().secret = false;
    let view = TaskView { spec: Some(Arc::new(open.clone())), ..task("s.v1", "s.yaml") };
    let house = Core { tasks: vec![view], ..Core::default() }.house();
    let both = [revision(1, secret), revision(2, Arc::new(open))];
    house.history.revisions.lock().unwrap().extend(both);
    let shown = get(&house, "/tasks/s.v1").await.json;
    assert_eq!(shown["spec"]["runtimeParams"]["pw"]["default"], "***", "{shown}");
}

#[tokio::test]
async fn an_unpin_reaches_the_core_and_its_refusal_the_caller() {
    let mut pinned = task("s.v1", "s.yaml");
    for was_pinned in [true, false] {
        pinned.pinned = was_pinned;
        let house = Core { tasks: vec![pinned.clone()], ..Core::default() }.house();
        let answer = post(&house, "/tasks/s.v1/unpin", "").await;
        let told = json!({"taskId": "s.v1", "wasPinned": was_pinned});
        assert_eq!((answer.status, &answer.json), (StatusCode::OK, &told));
        let task = TaskId::parse("s.v1").unwrap();
        assert_eq!(house.core.orders()[1..], [Request::Unpin { task }]);
    }
    let refuse = |_: &Request| Err(Rejection::new(RejectionCode::Conflict, "is not pinned"));
    let house = House::new(FakeCore::new(refuse));
    assert_eq!(post(&house, "/tasks/s.v1/unpin", "").await.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_reload_tells_what_is_in_force_what_is_wrong_and_that_there_was_nothing_to_read() {
    let torn = error("a.yaml", "is torn");
    let house = Core { errors: vec![torn.clone()], ..Core::default() }.house();
    let answer = post(&house, "/reload", "").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    assert_eq!(answer.json, json!({"tasks": 0, "specErrors": [torn], "unreadable": null}));
    *house.core.unreadable.lock().unwrap() = Some("cannot read /srv/sched.d".to_owned());
    let answer = post(&house, "/v1/reload", "{}").await;
    assert_eq!(answer.json["unreadable"], "cannot read /srv/sched.d");
}
