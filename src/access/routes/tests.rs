//! The routes, driven without a socket.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request as HttpRequest, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::access::fakes::{FakeCore, House, OWN, note, row};
use crate::model::backfill::Backfilled;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{InstanceState, Reason};
use crate::model::priority::Priority;
use crate::model::record::{Revision, Target};
use crate::model::request::{
    Caller, Rejection, RejectionCode, Reply, Request, RequestKey, Retried, RetryRejection,
    Submitted,
};
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;
use crate::model::view::Live;

use super::PATHS;

mod apply;
mod definitions;
mod explain;
mod simulation;

struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    json: Value,
}

async fn send(house: &House, request: HttpRequest<Body>) -> Answered {
    let response = house.router().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let json = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).into_owned()));
    Answered { status: head.status, headers: head.headers, json }
}

fn request(method: Method, path: &str, body: &str) -> HttpRequest<Body> {
    let builder = HttpRequest::builder().method(method).uri(path).extension(OWN);
    builder.body(Body::from(body.to_owned())).unwrap()
}

async fn get(house: &House, path: &str) -> Answered {
    send(house, request(Method::GET, path, "")).await
}

async fn post(house: &House, path: &str, body: &str) -> Answered {
    send(house, request(Method::POST, path, body)).await
}

fn ids(answer: &Answered) -> Vec<&str> {
    let rows = answer.json.as_array().unwrap();
    rows.iter().map(|row| row["instanceId"].as_str().unwrap()).collect()
}

fn detail(answer: &Answered) -> &str {
    answer.json["detail"].as_str().unwrap()
}

/// A task of one secret and one plain parameter.
fn spec(task: &str) -> Arc<TaskSpec> {
    let param = |secret: bool| {
        json!({"type": "string", "required": false, "default": "HUNTER1", "enum": [], "min": null,
               "max": null, "pattern": null, "secret": secret})
    };
    serde_json::from_value(json!({
        "taskId": task, "version": 1, "owner": "o", "name": null, "description": null,
        "labels": {}, "taskType": "SHELL", "handler": "true", "args": [], "staticParams": {},
        "runtimeParams": {"pw": param(true), "n": param(false)}, "env": {}, "workingDir": null,
        "user": null, "group": null, "umask": null, "nice": null, "limits": {},
        "timeoutMs": null, "killGraceMs": 10000,
        "retry": {"maxAttempts": 1, "backoff": "FIXED", "intervalMs": 1, "maxIntervalMs": 1,
                  "jitter": 0.0, "retryOn": null},
        "exitCodes": {}, "idempotent": true, "dedupKey": null, "outputs": [],
        "log": {"maxBytes": 1}, "triggers": [], "timezone": null, "cycle": null, "dependsOn": [],
        "onUpstream": "EACH", "dependencyTimeoutMs": null, "onDependencyTimeout": "CANCEL",
        "priority": 4, "queue": "default", "preemptible": false, "maxConcurrent": 1,
        "executorLabels": {}, "enabled": true,
    }))
    .unwrap()
}

#[tokio::test]
async fn every_path_of_the_hint_is_a_route_with_and_without_v1() {
    let house = House::new(FakeCore::obedient());
    for path in PATHS {
        let path = path.replace("{id}", "x.v1").replace("{name}", "x");
        let bare = path.trim_start_matches("/v1");
        for path in [bare.to_owned(), format!("/v1{bare}")] {
            let answers = [get(&house, &path).await, post(&house, &path, "{}").await];
            assert!(
                answers.iter().any(|a| a.status != StatusCode::METHOD_NOT_ALLOWED
                    && !a.json["detail"].as_str().unwrap_or("").contains("no route")),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn only_the_daemons_user_and_root_are_let_in() {
    let house = House::new(FakeCore::obedient());
    for (uid, status) in [
        (Some(OWN.uid), StatusCode::OK),
        (Some(0), StatusCode::OK),
        (Some(1001), StatusCode::FORBIDDEN),
        (None, StatusCode::FORBIDDEN),
    ] {
        let mut request = HttpRequest::get("/version").body(Body::empty()).unwrap();
        if let Some(uid) = uid {
            request.extensions_mut().insert(Caller { uid, gid: 0, pid: 7, key: None });
        }
        let answer = send(&house, request).await;
        assert_eq!(answer.status, status, "{uid:?}");
        if status == StatusCode::FORBIDDEN {
            assert_eq!(answer.json["code"], "NOT_PERMITTED");
            assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
        }
    }
}

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_are_problems_with_advice() {
    let house = House::new(FakeCore::obedient());
    let answer = get(&house, "/instance").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json["code"], "NOT_FOUND");
    assert!(detail(&answer).contains("/instances"), "{}", detail(&answer));
    let answer = send(&house, request(Method::DELETE, "/v1/status", "")).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.headers[header::ALLOW], "GET,HEAD");
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/problem+json");
}

#[tokio::test]
async fn a_bad_body_is_refused_with_its_place_and_asks_nothing_of_the_core() {
    let house = House::new(FakeCore::obedient());
    let path = "/tasks/a.v1/instances";
    let answer = post(&house, path, "{\n\"params\": [}").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let fault = &answer.json["errors"][0];
    assert_eq!((fault["line"].as_u64(), fault["column"].as_u64()), (Some(2), Some(12)));
    for body in [r#"{"parms": {}}"#, r#"{"priority": 10}"#, r#"{"params": 3}"#] {
        let answer = post(&house, path, body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(answer.json["code"], "INVALID");
    }
    let answer = post(&house, path, &" ".repeat(1024 * 1024 + 1)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    for query in ["stat=READY", "state=SLEEPING", "limit=x", "limit=0", "since=then"] {
        let answer = get(&house, &format!("/instances?{query}")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
    }
    assert!(house.core.orders().is_empty());
}

#[tokio::test]
async fn each_kind_of_refusal_has_its_status() {
    use RejectionCode::{Conflict, Invalid, NoSpace, NotFound, NotPermitted, Unavailable};
    for (code, status) in [
        (NotFound, 404),
        (Conflict, 409),
        (Invalid, 422),
        (NotPermitted, 403),
        (NoSpace, 507),
        (Unavailable, 503),
    ] {
        let house = House::new(FakeCore::new(move |_| Err(Rejection::new(code, "because"))));
        let answer = get(&house, "/tasks").await;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.json["status"], status);
        assert_eq!(answer.json["code"], serde_json::to_value(code).unwrap());
        assert_eq!(detail(&answer), "because");
    }
}

#[tokio::test]
async fn a_submission_carries_its_key_and_is_created_unless_it_is_a_dry_run() {
    let made = Submitted {
        instance_id: InstanceId::from_text("0abc"),
        open_in_cycle: Vec::new(),
        repeated: false,
    };
    let house = House::new(FakeCore::new(move |_| Ok(Reply::Submitted(made.clone()))));
    let mut keyed = request(Method::POST, "/tasks/a.v1/instances", r#"{"priority": "HIGH"}"#);
    keyed.headers_mut().insert("Idempotency-Key", "k-1".parse().unwrap());
    let answer = send(&house, keyed).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.headers[header::LOCATION], "/instances/0abc");
    assert_eq!(answer.json["instanceId"], "0abc");
    let answer = post(&house, "/tasks/a.v1/instances", r#"{"dryRun": true}"#).await;
    assert_eq!(answer.status, StatusCode::OK);
    let orders = house.core.orders();
    let Request::Submit { task, submission } = &orders[0] else { panic!() };
    assert_eq!(task.as_str(), "a.v1");
    assert_eq!(submission.priority.unwrap().0, Priority::parse("HIGH").unwrap());
    assert_eq!(house.core.keys()[..2], [Some(RequestKey::of("k-1")), None]);
    let answer = post(&house, "/tasks/no-version/instances", "{}").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_backfill_needs_its_range_and_is_answered_with_what_it_made() {
    let made = Backfilled {
        instances: vec![InstanceId::from_text("0abc")],
        from: "2026-11-01".to_owned(),
        to: "2026-11-02".to_owned(),
        cycles: Vec::new(),
        not_due_from: None,
        dry_run: false,
        repeated: false,
    };
    let house = House::new(FakeCore::new(move |_| Ok(Reply::Backfilled(made.clone()))));
    let path = "/tasks/a.v1/backfill";
    for body in ["{}", r#"{"from": "2026-11-01"}"#, r#"{"from": "a", "to": "b", "newest": true}"#] {
        let answer = post(&house, path, body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
    assert!(house.core.orders().is_empty());
    let body = r#"{"from": "2026-11-01", "to": "2026-11-02", "newestFirst": true}"#;
    let answer = post(&house, path, body).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json["instances"], json!(["0abc"]));
    assert_eq!(answer.json["notDueFrom"], json!(null), "absent values are null");
    let Request::Backfill { task, body } = &house.core.orders()[0] else { panic!() };
    assert_eq!((task.as_str(), body.from.as_str()), ("a.v1", "2026-11-01"));
    assert!(body.newest_first && !body.again && !body.dry_run);
}

fn house_of_five() -> House {
    let house = House::new(FakeCore::obedient());
    for (seq, task) in [(1, "a.x.v1"), (2, "b.x.v1"), (3, "a.y.v1"), (4, "b.x.v1"), (5, "a.x.v1")] {
        house.history.put(row(&format!("0{seq}"), seq, task, InstanceState::Succeeded, 1));
    }
    house
}

#[tokio::test]
async fn lists_come_in_pages_newest_first_and_the_link_leads_on() {
    let house = house_of_five();
    let mut path = "/v1/instances?limit=2&state=SUCCEEDED,failed".to_owned();
    let mut seen: Vec<String> = Vec::new();
    loop {
        let answer = get(&house, &path).await;
        assert_eq!(answer.status, StatusCode::OK);
        seen.extend(ids(&answer).into_iter().map(str::to_owned));
        let Some(link) = answer.headers.get(header::LINK) else { break };
        let link = link.to_str().unwrap();
        assert!(link.ends_with(">; rel=\"next\""), "{link}");
        path = link[1..link.find('>').unwrap()].to_owned();
    }
    assert_eq!(seen, ["05", "04", "03", "02", "01"]);
}

#[tokio::test]
async fn lists_are_filtered_by_task_glob_and_time() {
    let house = house_of_five();
    assert_eq!(ids(&get(&house, "/instances?taskId=b.x.v1").await), ["04", "02"]);
    assert_eq!(ids(&get(&house, "/instances?taskId=a.*").await), ["05", "03", "01"]);
    let page = get(&house, "/instances?taskId=*.x.v1&limit=2").await;
    assert_eq!(ids(&page), ["05", "04"]);
    let link = page.headers[header::LINK].to_str().unwrap();
    assert!(link.contains("taskId=*.x.v1&limit=2&cursor=4"), "{link}");
    // Rows were made at 02:00; it is 12:00.
    assert_eq!(ids(&get(&house, "/instances?since=10h&limit=1").await), ["05"]);
    assert!(ids(&get(&house, "/instances?since=9h").await).is_empty());
    assert!(ids(&get(&house, "/instances?state=RUNNING").await).is_empty());
}

#[tokio::test]
async fn an_instance_is_named_by_id_prefix_newest_or_cycle() {
    let house = House::new(FakeCore::obedient());
    house.history.put(row("0aa1", 1, "a.v1", InstanceState::Failed, 1));
    house.history.put(row("0aa2", 2, "a.v1", InstanceState::Succeeded, 1));
    house.history.put(row("0b", 3, "b.v1", InstanceState::Succeeded, 1));
    house.history.put(row("0b9", 4, "b.v1", InstanceState::Succeeded, 1));
    for (name, id) in [
        ("0aa1", "0aa1"),
        ("0AA2", "0aa2"),
        ("0b", "0b"),
        ("a.v1@latest", "0aa2"),
        ("b.v1@2026-11-30", "0b9"),
    ] {
        assert_eq!(get(&house, &format!("/instances/{name}")).await.json["instanceId"], id);
    }
    let answer = get(&house, "/instances/0aa").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(detail(&answer).contains("0aa1, 0aa2"), "{}", detail(&answer));
    for name in ["0c", "a.v1@2026-11-29", "c.v1@latest", "..%2F..%2Fetc", "@latest", "%00"] {
        let answer = get(&house, &format!("/instances/{name}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{name}");
        assert_eq!(answer.json["code"], "NOT_FOUND");
    }
}

#[tokio::test]
async fn the_core_adds_priority_always_and_its_reason_only_about_the_same_state() {
    let live = |id: &str, state, reason| Live {
        instance_id: InstanceId::from_text(id),
        state,
        is_final: false,
        reason: Some(reason),
        effective_priority: Priority::parse("CRITICAL").unwrap(),
    };
    let house = House::new(FakeCore::new(move |request| {
        assert!(matches!(request, Request::Live(_) | Request::Task(_)));
        Ok(Reply::Live(vec![
            live("01", InstanceState::Ready, Reason::NoSlot),
            live("02", InstanceState::Ready, Reason::NoSlot),
        ]))
    }));
    house.history.put(row("01", 1, "a.v1", InstanceState::Ready, 0));
    house.history.put(row("02", 2, "a.v1", InstanceState::Running, 1));
    let first = get(&house, "/instances/01").await.json;
    assert_eq!((&first["reason"], &first["effectivePriority"]), (&json!("NO_SLOT"), &json!(0)));
    let second = get(&house, "/instances/02").await.json;
    assert_eq!((&second["reason"], &second["effectivePriority"]), (&Value::Null, &json!(0)));
}

#[tokio::test]
async fn an_upstreams_state_comes_from_the_core_or_else_from_the_store() {
    let house = House::new(FakeCore::obedient());
    let mut waiting = row("03", 3, "c.v1", InstanceState::Pending, 0);
    for (id, strength) in [("01", "STRONG"), ("02", "WEAK")] {
        let edge = json!({"taskId": "a.v1", "depType": "SUCCESS", "strength": strength,
                          "instanceId": id});
        std::sync::Arc::make_mut(&mut waiting.edges).push(serde_json::from_value(edge).unwrap());
    }
    house.history.put(waiting);
    house.history.put(row("01", 1, "a.v1", InstanceState::Cancelled, 0));
    house.history.put(row("02", 2, "a.v1", InstanceState::Cancelled, 0));
    let shown = get(&house, "/instances/03").await.json["dependencies"].clone();
    assert_eq!((&shown[0]["state"], &shown[0]["satisfied"]), (&json!("CANCELLED"), &json!(false)));
    assert_eq!((&shown[1]["state"], &shown[1]["satisfied"]), (&json!("CANCELLED"), &json!(true)));
}

#[tokio::test]
async fn secrets_are_masked_in_every_answer_about_instances() {
    let house = House::new(FakeCore::obedient());
    let mut secretive = row("01", 1, "s.v1", InstanceState::Succeeded, 1);
    let params = std::sync::Arc::make_mut(&mut secretive.runtime_params);
    params.insert("pw".to_owned(), json!("HUNTER2"));
    params.insert("n".to_owned(), json!("plain"));
    house.history.put(secretive);
    house.history.revisions.lock().unwrap().push(Revision {
        task_id: TaskId::parse("s.v1").unwrap(),
        revision: 1,
        hash: String::new(),
        loaded_at: Timestamp::default(),
        file: String::new(),
        uid: None,
        spec: spec("s.v1"),
    });
    let one = get(&house, "/instances/01").await.json;
    let many = get(&house, "/instances").await.json;
    for shown in [&one, &many[0]] {
        assert_eq!(shown["runtimeParams"], json!({"pw": "***", "n": "plain"}));
    }
    use crate::access::secrets::{masked_with, names_in};
    let masked = masked_with(&spec("s.v1"), &names_in(&spec("s.v1")).collect());
    assert_eq!(masked.runtime_params["pw"].default, Some(json!("***")));
    assert_eq!(masked.runtime_params["n"].default, Some(json!("HUNTER1")));
}

#[tokio::test]
async fn orders_about_final_instances_bring_their_row() {
    let house = House::new(FakeCore::obedient());
    let done = row("01", 1, "a.v1", InstanceState::Failed, 1);
    house.history.put(done.clone());
    house.history.put(row("02", 2, "a.v1", InstanceState::Running, 1));
    let answer = post(&house, "/instances/01/retry", "").await;
    assert_eq!((answer.status, &answer.json["instanceId"]), (StatusCode::OK, &json!("01")));
    post(&house, "/instances/02/cancel", r#"{"downstream": true}"#).await;
    let (first, second) = (InstanceId::from_text("01"), InstanceId::from_text("02"));
    assert_eq!(
        house.core.orders(),
        [
            Request::Retry {
                instance: first,
                same_revision: false,
                stored: Some(Box::new(done)),
                below: None
            },
            Request::Cancel { instance: second, downstream: true, stored: None },
        ]
    );
    let answer = post(&house, "/instances/01/pause", "{}").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    for path in ["/tasks/a.v1/pause", "/queues/default/pause", "/pause"] {
        let answer = post(&house, path, r#"{"freeze": true}"#).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        let detail = answer.json["detail"].as_str().unwrap();
        assert!(detail.contains("instances only"), "{detail}");
    }
    assert_eq!(house.core.orders().len(), 2);
    post(&house, "/instances/02/pause", r#"{"freeze": true, "reason": "why"}"#).await;
    post(&house, "/instances/02/skip", "").await;
    let instance = InstanceId::from_text("02");
    assert_eq!(
        house.core.orders()[2..],
        [
            Request::Freeze {
                instance: instance.clone(),
                reason: Some("why".to_owned()),
                until: None
            },
            Request::Skip { instance, stored: None },
        ]
    );
}

#[tokio::test]
async fn a_retry_brings_the_rows_of_what_failed_below() {
    let [root, below, gone] = ["01", "02", "03"].map(InstanceId::from_text);
    let retried = Retried {
        instance_id: root.clone(),
        below: vec![below.clone()],
        rejected: vec![RetryRejection { instance_id: gone.clone(), detail: "why".to_owned() }],
    };
    let (ids, answer) = (vec![below, gone], retried.clone());
    let house = House::new(FakeCore::new(move |request| {
        let asks = matches!(request, Request::FailedBelow(_));
        let retried = || Reply::Retried(answer.clone());
        Ok(if asks { Reply::Instances(ids.clone()) } else { retried() })
    }));
    let [first, second] =
        [1, 2].map(|n| row(&format!("0{n}"), n, "a.v1", InstanceState::Failed, 1));
    house.history.put(first.clone());
    house.history.put(second.clone());
    let body = r#"{"withDownstream": true, "sameRevision": true}"#;
    let answer = post(&house, "/instances/01/retry", body).await;
    assert_eq!((answer.status, answer.json), (StatusCode::OK, json!(retried)));
    assert_eq!(
        house.core.orders(),
        [
            Request::FailedBelow(root.clone()),
            Request::Retry {
                instance: root,
                same_revision: true,
                stored: Some(Box::new(first)),
                below: Some(vec![second]),
            },
        ]
    );
}

#[tokio::test]
async fn an_instance_that_ends_while_it_is_cancelled_is_asked_about_again_with_its_row() {
    let history: Arc<std::sync::OnceLock<Arc<crate::access::fakes::FakeHistory>>> = Arc::default();
    let seen = Arc::clone(&history);
    let core = FakeCore::new(move |request| {
        if let Request::Cancel { stored: None, .. } = request {
            seen.get().unwrap().put(row("01", 1, "a.v1", InstanceState::Succeeded, 1));
            return Err(Rejection::new(RejectionCode::NotFound, "no such instance"));
        }
        Ok(Reply::Done)
    });
    let house = House::new(core);
    assert!(history.set(Arc::clone(&house.history)).is_ok());
    house.history.put(row("01", 1, "a.v1", InstanceState::Running, 1));
    assert_eq!(post(&house, "/instances/01/cancel", "").await.status, StatusCode::OK);
    assert_eq!(house.core.orders().len(), 2);
}

#[tokio::test]
async fn holds_and_priorities_reach_what_they_name() {
    let house = House::new(FakeCore::obedient());
    let until = r#"{"reason": "audit", "until": "2026-12-01T00:00:00Z"}"#;
    for (path, body) in [
        ("/tasks/a.v1/pause", until),
        ("/queues/default/pause", ""),
        ("/resume", "{}"),
        ("/tasks/a.v1/priority", r#"{"priority": "LOW"}"#),
        ("/tasks/a.v1/priority", r#"{"priority": "default"}"#),
        ("/shutdown", r#"{"mode": "DRAIN"}"#),
    ] {
        assert_eq!(post(&house, path, body).await.status, StatusCode::OK, "{path}");
    }
    let task = Target::Task(TaskId::parse("a.v1").unwrap());
    assert_eq!(
        house.core.orders(),
        [
            Request::Pause {
                target: task.clone(),
                reason: Some("audit".to_owned()),
                until: Timestamp::parse("2026-12-01T00:00:00Z"),
            },
            Request::Pause { target: Target::Queue("default".into()), reason: None, until: None },
            Request::Resume { target: Target::All },
            Request::SetPriority {
                target: task.clone(),
                priority: Priority::parse("LOW").unwrap()
            },
            Request::ResetPriority { target: task },
            Request::Shutdown(crate::model::request::StopMode::Drain),
        ]
    );
}

#[tokio::test]
async fn the_log_is_read_from_a_position_a_time_or_its_end() {
    let house = House::new(FakeCore::obedient());
    house.history.log.lock().unwrap().extend((1..=5).map(note));
    let seqs = |answer: &Answered| -> Vec<u64> {
        answer.json.as_array().unwrap().iter().map(|r| r["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(seqs(&get(&house, "/events").await), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(&get(&house, "/events?limit=2").await), [4, 5]);
    let page = get(&house, "/events?since=1&limit=2").await;
    assert_eq!(seqs(&page), [2, 3]);
    assert_eq!(page.headers[header::LINK], "</events?limit=2&since=3>; rel=\"next\"");
    // Position n is n seconds after the epoch.
    for (time, expected) in [("00:00:03", 3), ("00:00:02.500", 3), ("00:00:00", 1)] {
        let answer = get(&house, &format!("/events?since=1970-01-01T{time}Z")).await;
        assert_eq!(seqs(&answer)[0], expected, "{time}");
    }
    assert!(seqs(&get(&house, "/events?since=1h").await).is_empty());
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_unavailable_not_empty() {
    let house = house_of_five();
    house.history.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    for path in ["/instances", "/instances/01", "/events", "/fires?taskId=a.v1"] {
        let answer = get(&house, path).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(answer.json["code"], "UNAVAILABLE");
    }
}
