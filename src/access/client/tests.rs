//! The client against a small server that answers what each test says.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;

use super::*;

/// Answers each connection with the next of `answers`; what was asked comes out of the channel.
fn serve(path: &Path, answers: Vec<String>) -> mpsc::Receiver<String> {
    let listener = UnixListener::bind(path).unwrap();
    let (asked, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            asked.send(read_request(&mut stream)).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    requests
}

fn read_request(stream: &mut UnixStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |n| n.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_get_gives_status_body_and_the_next_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let link = "200 OK\r\nlink: </instances?limit=2&cursor=7>; rel=\"next\"";
    let requests = serve(&path, vec![answer(link, "[1,2]"), answer("200 OK", "[3]")]);
    let client = Client::at(&path).unwrap();
    let first = client.get(&Target::new("/instances").query("cycle", "2026-11-30 +é")).unwrap();
    assert_eq!((first.status, first.json::<Vec<u32>>().unwrap()), (200, vec![1, 2]));
    let asked = requests.recv().unwrap();
    assert!(asked.starts_with("GET /v1/instances?cycle=2026-11-30%20%2B%C3%A9 HTTP/1.1\r\n"));
    let next = first.next.unwrap();
    assert_eq!(next.as_str(), "/instances?limit=2&cursor=7");
    assert!(client.get(&next).unwrap().next.is_none());
}

#[test]
fn a_post_sends_json_and_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let requests = serve(&path, vec![answer("201 Created", "{}")]);
    let target = Target::new("/tasks").segment("a b/../c.v1").segment("instances");
    let body = serde_json::json!({"n": 1});
    Client::at(&path).unwrap().post_with(&target, &body, Some("k-1")).unwrap();
    let asked = requests.recv().unwrap();
    assert!(
        asked.starts_with("POST /v1/tasks/a%20b%2F..%2Fc.v1/instances HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(asked.contains("idempotency-key: k-1\r\n") && asked.ends_with("{\"n\":1}"), "{asked}");
}

#[test]
fn a_file_goes_as_it_is_and_a_delete_has_no_body() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let answers = vec![answer("200 OK", "{}"), answer("200 OK", "{}")];
    let requests = serve(&path, answers);
    let client = Client::at(&path).unwrap();
    let target = Target::new("/tasks").query("file", "a b.yaml");
    client.post_file(&target, "application/yaml", b"x: 1\n".to_vec()).unwrap();
    let asked = requests.recv().unwrap();
    assert!(asked.starts_with("POST /v1/tasks?file=a%20b.yaml HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("content-type: application/yaml\r\n"), "{asked}");
    assert!(asked.ends_with("\r\n\r\nx: 1\n"), "{asked}");
    client.delete(&Target::new("/tasks").segment("a.v1")).unwrap();
    let asked = requests.recv().unwrap();
    assert!(asked.starts_with("DELETE /v1/tasks/a.v1 HTTP/1.1\r\n"), "{asked}");
    assert!(asked.ends_with("\r\n\r\n"), "{asked}");
}

#[test]
fn a_refusal_carries_code_detail_and_every_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let problem = r#"{"type":"about:blank","title":"x","status":422,"code":"INVALID",
        "detail":"two parameters are wrong","errors":[
        {"file":"","line":0,"column":0,"path":"n","message":"abc is no int"},
        {"path":"d","message":"is missing"}]}"#;
    let refusals = [
        answer("422 Unprocessable Entity", problem),
        answer("500 Oops", "it <broke>"),
        answer("404 Not Found", r#"{"code":"NOT_FOUND","detail":"no task x.v1"}"#),
    ];
    let _requests = serve(&path, refusals.into());
    let client = Client::at(&path).unwrap();
    let target = Target::new("/tasks");
    let refused = |result: Result<Response, ClientError>| match result {
        Err(ClientError::Refused(problem)) => problem,
        other => panic!("{other:?}"),
    };
    let first = refused(client.post(&target, &()));
    assert_eq!((first.status, first.code.as_str()), (422, "INVALID"));
    assert_eq!(first.detail, "two parameters are wrong");
    let faults: Vec<_> =
        first.errors.iter().map(|e| (e.path.as_str(), e.message.as_str())).collect();
    assert_eq!(faults, [("n", "abc is no int"), ("d", "is missing")]);
    let second = refused(client.get(&target));
    assert_eq!((second.status, second.code.as_str()), (500, ""));
    assert!(second.detail.contains("500") && second.detail.contains("it <broke>"));
    let Err(ClientError::Refused(third)) = client.stream(&target) else { panic!() };
    assert_eq!(third.code, "NOT_FOUND");
}

#[test]
fn no_socket_dead_socket_and_closed_socket_differ() {
    let dir = tempfile::tempdir().unwrap();
    let get = |path: &Path| Client::at(path).unwrap().get(&Target::new("/status")).unwrap_err();
    let missing = get(&dir.path().join("none.sock"));
    assert!(matches!(missing, ClientError::NoSocket { .. }), "{missing:?}");

    let dead = dir.path().join("dead.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let refused = get(&dead);
    assert!(matches!(refused, ClientError::DeadSocket { .. }), "{refused:?}");

    let texts = [missing.to_string(), refused.to_string()];
    assert!(texts[0].contains("none.sock does not exist"), "{}", texts[0]);
    assert!(
        texts[1].contains("nobody listens at") && texts[1].contains("dead.sock"),
        "{}",
        texts[1]
    );

    // root may connect to everything: for it there is no such error.
    let closed = dir.path().join("closed.sock");
    let _listener = UnixListener::bind(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    if !nix::unistd::geteuid().is_root() {
        let error = get(&closed);
        assert!(matches!(error, ClientError::NotPermitted { .. }), "{error:?}");
    }
}

#[test]
fn a_connection_that_ends_early_is_broken_and_not_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1,".to_owned();
    let _requests = serve(&path, vec![String::new(), half]);
    let client = Client::at(&path).unwrap();
    for _ in 0..2 {
        let error = client.get(&Target::new("/tasks")).unwrap_err();
        assert!(matches!(error, ClientError::Broken { .. }), "{error:?}");
    }
}

#[test]
fn a_stream_gives_lines_across_chunks_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let chunks = ["{\"a\":1}\n{\"b\"", ":2}\n\n", "{\"c\":3}"];
    let mut body = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for chunk in chunks {
        body.push_str(&format!("{:x}\r\n{chunk}\r\n", chunk.len()));
    }
    body.push_str("0\r\n\r\n");
    let _requests = serve(&path, vec![body.clone(), body]);
    let client = Client::at(&path).unwrap();
    let mut stream = client.stream(&Target::new("/events")).unwrap();
    let mut lines = Vec::new();
    while let Some(line) = stream.line(None).unwrap() {
        lines.push(line);
    }
    assert_eq!(lines, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
    let mut stream = client.stream(&Target::new("/events")).unwrap();
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.chunk(None).unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    assert_eq!(bytes, chunks.concat().as_bytes());
}

#[test]
fn a_wait_for_a_silent_stream_runs_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (done, is_done) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        // Silent until the test is over.
        let _ended = is_done.recv();
    });
    let client = Client::at(&path).unwrap();
    let mut stream = client.stream(&Target::new("/events")).unwrap();
    let error = stream.line(Some(Duration::from_millis(20))).unwrap_err();
    assert!(matches!(error, ClientError::TimedOut), "{error:?}");
    drop(done);
}
