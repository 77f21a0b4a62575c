//! The socket without our client: HTTP as text, and callers that behave badly (contract §6).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::harness::{Answer, Sched, Value, exchange, json};

fn problem(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let body = answer.json();
    assert_eq!(body["code"], code, "{body:#}");
    assert!(body["detail"].as_str().is_some_and(|d| !d.is_empty()), "{body:#}");
    assert_eq!(body["status"], status, "{body:#}");
}

#[test]
fn plain_http_is_answered_and_a_connection_serves_several_requests() {
    let sched = Sched::new();
    sched.task("h.t.v1", "true");
    let mut stream = UnixStream::connect(sched.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for target in ["/tasks", "/v1/tasks"] {
        stream
            .write_all(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
            .unwrap();
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        let (mut length, mut kind) = (0, String::new());
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "content-type" => value.clone_into(&mut kind),
                _ => {}
            }
        }
        assert_eq!(kind, "application/json");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let tasks: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(tasks[0]["taskId"], "h.t.v1");
    }
}

#[test]
fn a_submission_and_its_repetition() {
    let sched = Sched::new();
    sched.task("h.t.v1", "true");
    let submit = |key: &str, body: &str| {
        let headers = [("Idempotency-Key", key)];
        exchange(&sched.socket(), "POST", "/tasks/h.t.v1/instances", &headers, body).unwrap()
    };
    let first = submit("k-1", r#"{"cycle": "2026-11-30"}"#);
    assert_eq!(first.status, 201, "{first:?}");
    let id = first.json()["instanceId"].as_str().unwrap().to_owned();
    assert_eq!(first.json()["openInCycle"], json!([]));
    assert_eq!(submit("k-1", r#"{"cycle": "2026-11-30"}"#).json()["instanceId"], json!(id));
    assert_ne!(submit("k-2", "{}").json()["instanceId"], json!(id));
    sched.until_over(&id, "SUCCEEDED");
    assert_eq!(sched.instance(&id)["cycle"], "2026-11-30");
    sched.until_idle();
    assert_eq!(sched.instances("h.t.v1").len(), 2);
}

#[test]
fn refusals_are_problem_documents() {
    let sched = Sched::new();
    sched.task("h.t.v1", "true");
    let ask = |method: &str, target: &str, body: &str| sched.ask(method, target, body).unwrap();
    problem(&ask("GET", "/tasks/none.t.v1", ""), 404, "NOT_FOUND");
    problem(&ask("GET", "/instances/zzzz", ""), 404, "NOT_FOUND");
    problem(&ask("GET", "/no/such/route", ""), 404, "NOT_FOUND");
    problem(&ask("POST", "/tasks/h.t.v1/instances", "{"), 400, "INVALID");
    problem(&ask("GET", "/instances?state=SLEEPING", ""), 422, "INVALID");
    let unknown = ask("POST", "/tasks/h.t.v1/instances", r#"{"parms": {}}"#);
    assert!([400, 422].contains(&unknown.status), "{unknown:?}");
    assert!(unknown.body.contains("parms"), "{unknown:?}");
    assert_eq!(ask("DELETE", "/status", "").status, 405);
    let huge = "x".repeat(2 << 20);
    // It may hang up before all of it is read; it must not stumble.
    if let Ok(answer) = sched.ask("POST", "/tasks/h.t.v1/instances", &huge) {
        assert_eq!(answer.status, 413, "{answer:?}");
    }
    assert_eq!(sched.get("/status")["pid"], sched.pid());
    assert!(sched.instances("h.t.v1").is_empty());
}

#[test]
fn a_list_comes_in_pages() {
    let sched = Sched::new();
    sched.task("h.t.v1", "true");
    let ids: Vec<String> = (0..7).map(|_| sched.run("h.t.v1", &[])).collect();
    let mut target = "/instances?taskId=h.t.v1&limit=3".to_owned();
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let answer = sched.ask("GET", &target, "").unwrap();
        let rows = answer.json();
        seen.extend(rows.as_array().unwrap().iter().map(|i| i["instanceId"].clone()));
        pages += 1;
        let Some(link) = answer.header("link") else { break };
        let next = link.split(['<', '>']).nth(1).unwrap();
        assert!(link.ends_with("rel=\"next\""), "{link}");
        next.clone_into(&mut target);
    }
    let newest_first: Vec<Value> = ids.iter().rev().map(|id| json!(id)).collect();
    assert_eq!((seen, pages), (newest_first, 3));
}

#[test]
fn callers_that_stop_half_way_hold_up_nobody() {
    let sched = Sched::new();
    sched.task("h.t.v1", "true");
    let half: Vec<UnixStream> = (0..100)
        .map(|_| {
            let mut stream = UnixStream::connect(sched.socket()).unwrap();
            stream.write_all(b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Le").unwrap();
            stream
        })
        .collect();
    let id = sched.run("h.t.v1", &[]);
    sched.until_over(&id, "SUCCEEDED");
    drop(half);
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody() {
    let sched = Sched::new();
    sched.task("big.t.v1", "seq 1 300000");
    let id = sched.run("big.t.v1", &[]);
    let mut follower = UnixStream::connect(sched.socket()).unwrap();
    let request = format!("GET /instances/{id}/logs?follow=true HTTP/1.1\r\nHost: x\r\n\r\n");
    follower.write_all(request.as_bytes()).unwrap();
    sched.until_over(&id, "SUCCEEDED");
    let again = sched.run("big.t.v1", &[]);
    sched.until_over(&again, "SUCCEEDED");
    // What it missed meanwhile is all there when it reads on.
    follower.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut reader = BufReader::new(follower);
    let mut line = String::new();
    while line.trim_end() != "300000" {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "the end comes first");
    }
}

#[test]
fn the_daemon_says_that_it_is_well() {
    let sched = Sched::new();
    sched.executor_pid();
    let health = sched.ask("GET", "/health", "").unwrap();
    assert_eq!(health.status, 200, "{health:?}");
    assert!(sched.get("/version")["version"].is_string());
    assert_eq!(sched.get("/executors")[0]["executorId"], "local");
    assert_eq!(sched.get("/queues")[0]["name"], "default");
}
