//! Verbs against a small daemon that answers what each test says.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;

use clap::Parser as _;
use sched::access::client::Client;
use serde_json::json;

use crate::cli::{Cli, Format};
use crate::exit::{Exit, Failure};
use crate::render::tests::{instance_json, output, task_view};
use crate::session::Session;

mod definitions;
mod simulate;

/// Answers one connection: what was asked, and where the answer goes.
type Answer = Box<dyn Fn(&str, &mut UnixStream) + Send + Sync>;

struct Daemon {
    dir: tempfile::TempDir,
    asked: mpsc::Receiver<String>,
}

/// A daemon that gives every connection to `answer`, each in a thread of its own.
fn daemon(answer: impl Fn(&str, &mut UnixStream) + Send + Sync + 'static) -> Daemon {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("s.sock")).unwrap();
    let (note, asked) = mpsc::channel();
    let answer: std::sync::Arc<Answer> = std::sync::Arc::new(Box::new(answer));
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let (answer, note) = (std::sync::Arc::clone(&answer), note.clone());
            std::thread::spawn(move || {
                let request = read_request(&mut stream);
                // The test may be over already.
                let _ended = note.send(request.clone());
                answer(&request, &mut stream);
            });
        }
    });
    Daemon { dir, asked }
}

impl Daemon {
    /// Runs one command line against it.
    fn run(&self, line: &str) -> Result<Exit, Failure> {
        self.run_as(line, Format::Jsonl)
    }

    fn run_as(&self, line: &str, format: Format) -> Result<Exit, Failure> {
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        let client = Client::at(&self.dir.path().join("s.sock")).unwrap();
        let session = Session { client, output: output(format) };
        crate::ask(&session, &cli.verb.unwrap())
    }

    /// First line and body of all that was asked so far.
    fn asked(&self) -> Vec<String> {
        let short = |request: String| {
            let line = request.split(" HTTP/1.1").next().unwrap_or_default().to_owned();
            let body = request.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
            format!("{line} {body}").trim_end().to_owned()
        };
        self.asked.try_iter().map(short).collect()
    }
}

fn read_request(stream: &mut UnixStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |n| n.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn reply(stream: &mut UnixStream, status: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
}

fn chunk(stream: &mut UnixStream, text: &str) {
    write!(stream, "{:x}\r\n{text}\r\n", text.len()).unwrap();
}

const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// A daemon whose instance `01a` runs when first read; its end is told on the event stream.
fn ends_as(state: &'static str, told: bool) -> Daemon {
    let (read, was_read) = mpsc::channel();
    let was_read = std::sync::Mutex::new(was_read);
    let reads = std::sync::atomic::AtomicUsize::new(0);
    daemon(move |request, stream| {
        if request.starts_with("POST") {
            let body = json!({"instanceId": "01a", "openInCycle": [], "repeated": false});
            reply(stream, "201 Created", &body.to_string());
        } else if request.starts_with("GET /v1/events") {
            stream.write_all(STREAM).unwrap();
            // An earlier end of the same instance, which a retry has undone since.
            let record = json!({"kind": "moved", "instanceId": "01a", "to": "FAILED"});
            chunk(stream, &format!("{record}\n"));
            let was_read = was_read.lock().unwrap();
            was_read.recv().unwrap();
            was_read.recv().unwrap();
            if told {
                let record = json!({"kind": "moved", "instanceId": "01a", "to": state});
                chunk(stream, &format!("{record}\n"));
            }
            // Held open until the client leaves.
            let _left = stream.read(&mut [0]);
        } else {
            let n = reads.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let state = if n < 2 { "RUNNING" } else { state };
            reply(stream, "200 OK", &instance_json("01a", state, &json!({})).to_string());
            let _ended = read.send(());
        }
    })
}

#[test]
fn a_wait_ends_with_the_instance_and_mirrors_its_end() {
    assert_eq!(ends_as("SUCCEEDED", true).run("schedctl wait 01a").unwrap(), Exit::Good);
    assert_eq!(ends_as("FAILED", true).run("schedctl wait 01a").unwrap(), Exit::Failed);
    let daemon = ends_as("CANCELLED", true);
    assert_eq!(daemon.run("schedctl run a.b.v1 --wait").unwrap(), Exit::Failed);
    let asked = daemon.asked();
    assert!(asked[0].starts_with("POST /v1/tasks/a.b.v1/instances"), "{asked:?}");
    assert_eq!(asked[1], "GET /v1/events?follow=true", "the stream is open before states are read");
}

#[test]
fn a_wait_that_runs_out_is_124() {
    let daemon = ends_as("SUCCEEDED", false);
    let failure = daemon.run("schedctl wait 01a --timeout 50ms").unwrap_err();
    assert_eq!(failure.exit(), Exit::TimedOut);
    assert!(failure.text().contains("01a"), "{}", failure.text());
}

#[test]
fn a_wait_for_what_has_ended_needs_no_event() {
    let daemon = daemon(|request, stream| {
        if request.starts_with("GET /v1/events") {
            stream.write_all(STREAM).unwrap();
            let _left = stream.read(&mut [0]);
        } else {
            reply(stream, "200 OK", &instance_json("01a", "SUCCEEDED", &json!({})).to_string());
        }
    });
    assert_eq!(daemon.run("schedctl wait 01a a.b.v1@latest").unwrap(), Exit::Good);
    assert_eq!(daemon.asked()[1..], ["GET /v1/instances/01a", "GET /v1/instances/a.b.v1%40latest"]);
}

#[test]
fn orders_go_to_the_routes_of_the_contract() {
    let daemon = daemon(|request, stream| {
        let retried = r#"{"instanceId": "01a", "below": [], "rejected": []}"#;
        reply(stream, "200 OK", if request.contains("/retry ") { retried } else { "{}" });
    });
    let paused = r#"{"freeze":false,"reason":"why","until":"2026-11-30T14:00:00.000Z"}"#;
    for (line, asked) in [
        ("cancel 01a -y", r#"POST /v1/instances/01a/cancel {"downstream":false}"#.to_owned()),
        ("skip 01a -y", "POST /v1/instances/01a/skip {}".to_owned()),
        (
            "cancel 01a -y --downstream",
            r#"POST /v1/instances/01a/cancel {"downstream":true}"#.to_owned(),
        ),
        (
            "retry 01a --with-downstream --same-revision",
            r#"POST /v1/instances/01a/retry {"sameRevision":true,"withDownstream":true}"#
                .to_owned(),
        ),
        (
            "pause 01a --freeze",
            r#"POST /v1/instances/01a/pause {"freeze":true,"reason":null,"until":null}"#.to_owned(),
        ),
        ("pause a.b.v1 --until 2h --reason why", format!("POST /v1/tasks/a.b.v1/pause {paused}")),
        ("resume 01a", "POST /v1/instances/01a/resume {}".to_owned()),
        ("resume a.b.v1@latest", "POST /v1/instances/a.b.v1%40latest/resume {}".to_owned()),
        ("resume --queue q", "POST /v1/queues/q/resume {}".to_owned()),
        ("resume --all", "POST /v1/resume {}".to_owned()),
        ("priority a.b.v1 HIGH", r#"POST /v1/tasks/a.b.v1/priority {"priority":1}"#.to_owned()),
        (
            "priority a.b.v1 default",
            r#"POST /v1/tasks/a.b.v1/priority {"priority":"default"}"#.to_owned(),
        ),
        ("shutdown --drain -y", r#"POST /v1/shutdown {"mode":"DRAIN"}"#.to_owned()),
        ("shutdown -y", "POST /v1/shutdown {}".to_owned()),
    ] {
        assert_eq!(daemon.run(&format!("schedctl {line}")).unwrap(), Exit::Good, "{line}");
        let mut given = daemon.asked();
        // Some look, for the eye, at what the order came to.
        given.retain(|request| request.starts_with("POST"));
        assert_eq!(given, [asked], "{line}");
    }
}

#[test]
fn a_retry_tells_what_below_cannot_be_tried_again_and_is_6() {
    let daemon = daemon(|request, stream| {
        let rejected = if request.contains("/01a/") {
            json!([{"instanceId": "01c", "detail": "its key is taken"}])
        } else {
            json!([])
        };
        let body = json!({"instanceId": "01a", "below": ["01b"], "rejected": rejected});
        reply(stream, "200 OK", &body.to_string());
    });
    assert_eq!(daemon.run("schedctl retry 02a --with-downstream").unwrap(), Exit::Good);
    assert_eq!(daemon.run("schedctl retry 01a 02a --with-downstream").unwrap(), Exit::Refused);
    let posts = daemon.asked().into_iter().filter(|request| request.starts_with("POST"));
    assert_eq!(posts.count(), 3, "the refusal stops nothing");
}

#[test]
fn a_submission_carries_what_was_given() {
    let daemon = daemon(|_, stream| {
        let body = json!({"instanceId": "01a", "openInCycle": [], "repeated": false});
        reply(stream, "201 Created", &body.to_string());
    });
    daemon.run("schedctl run a.b.v1 -p n=1 --cycle 2026-11-30 --priority 0 -q").unwrap();
    let asked = daemon.asked();
    let body = asked[0].strip_prefix("POST /v1/tasks/a.b.v1/instances ").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let expected = json!({"params": {"n": "1"}, "cycle": "2026-11-30", "date": null, "priority": 0,
        "at": null, "ignoreDeps": false, "noDownstream": false, "dryRun": false});
    assert_eq!(body, expected);
}

#[test]
fn a_backfill_carries_its_range_and_to_have_nothing_to_do_is_good() {
    let daemon = daemon(|_, stream| {
        let body = json!({"instances": [], "from": "2026-11-01", "to": "2026-11-02", "cycles": [],
            "notDueFrom": null, "repeated": false});
        reply(stream, "200 OK", &body.to_string());
    });
    let line = "schedctl backfill a.b.v1 --from 2026-11-01 --to 2026-11-02";
    assert_eq!(
        daemon.run(&format!("{line} --again --newest-first --dry-run")).unwrap(),
        Exit::Good
    );
    assert_eq!(daemon.run_as(line, Format::Table).unwrap(), Exit::Good);
    let body = |yes: bool| {
        let keys = format!(r#""again":{yes},"newestFirst":{yes},"dryRun":{yes}"#);
        format!(
            r#"POST /v1/tasks/a.b.v1/backfill {{"from":"2026-11-01","to":"2026-11-02",{keys}}}"#
        )
    };
    assert_eq!(daemon.asked(), [body(true), body(false)]);
}

#[test]
fn pages_are_followed_up_to_the_limit() {
    let daemon = daemon(|request, stream| {
        let rows = |ids: &[&str]| {
            let rows = ids.iter().map(|id| instance_json(id, "SUCCEEDED", &json!({})));
            serde_json::Value::from(rows.collect::<Vec<_>>()).to_string()
        };
        if request.contains("cursor=") {
            reply(stream, "200 OK", &rows(&["c"]));
        } else {
            let head = "200 OK\r\nlink: </v1/instances?cursor=9>; rel=\"next\"";
            reply(stream, head, &rows(&["a", "b"]));
        }
    });
    daemon.run("schedctl ps --state FAILED,READY --task a.b.v1 --since 1h").unwrap();
    let asked = daemon.asked();
    let first = "GET /v1/instances?state=FAILED%2CREADY&taskId=a.b.v1\
                 &since=2026-11-30T11%3A00%3A00.000Z&limit=1000";
    assert_eq!(asked, [first, "GET /v1/instances?cursor=9"]);
    daemon.run("schedctl ps --limit 2").unwrap();
    assert_eq!(daemon.asked(), ["GET /v1/instances?limit=2"]);
}

#[test]
fn status_of_a_held_task_is_3() {
    for (status, exit) in [
        ("ACTIVE", Exit::Good),
        ("UNRESOLVED", Exit::Good),
        ("PAUSED", Exit::Held),
        ("DISABLED", Exit::Held),
    ] {
        let mut view = serde_json::to_value(task_view("a.b.v1", None)).unwrap();
        view["status"] = json!(status);
        let daemon = daemon(move |_, stream| reply(stream, "200 OK", &view.to_string()));
        assert_eq!(daemon.run("schedctl status a.b.v1").unwrap(), exit, "{status}");
    }
}

#[test]
fn an_event_whose_parameters_are_refused_is_6() {
    let daemon = daemon(|_, stream| {
        let body = json!({"instances": [], "rejected": [{"taskId": "a.b.v1", "detail": "no int"}]});
        reply(stream, "200 OK", &body.to_string());
    });
    assert_eq!(daemon.run("schedctl emit ev -p n=abc").unwrap(), Exit::Refused);
    assert_eq!(daemon.asked(), [r#"POST /v1/events/ev {"params":{"n":"abc"}}"#]);
}

#[test]
fn several_orders_are_all_given_and_the_first_refusal_counts() {
    let daemon = daemon(|request, stream| {
        if request.contains("/bad/") {
            reply(stream, "404 Not Found", r#"{"code":"NOT_FOUND","detail":"no bad"}"#);
        } else {
            reply(stream, "200 OK", "{}");
        }
    });
    assert_eq!(daemon.run("schedctl cancel -y bad 01a").unwrap(), Exit::NotFound);
    let orders = daemon.asked().into_iter().filter(|request| request.starts_with("POST"));
    assert_eq!(orders.count(), 2);
}

#[test]
fn the_log_is_read_to_its_end_page_by_page() {
    let daemon = daemon(|request, stream| {
        let rows: Vec<_> = if request.contains("since=1000&") {
            vec![json!({"seq": 1001})]
        } else {
            (1..=1000).map(|seq| json!({"seq": seq})).collect()
        };
        reply(stream, "200 OK", &serde_json::Value::from(rows).to_string());
    });
    daemon.run("schedctl events --since 0").unwrap();
    let page = |since: u64| format!("GET /v1/events?since={since}&limit=1000");
    assert_eq!(daemon.asked(), [page(0), page(1000)]);
}

#[test]
fn a_stream_that_ends_again_and_again_is_no_daemon() {
    let daemon = daemon(|request, stream| {
        if request.starts_with("GET /v1/events") {
            stream.write_all(STREAM).and_then(|()| stream.write_all(b"0\r\n\r\n")).unwrap();
        } else {
            reply(stream, "200 OK", &instance_json("01a", "RUNNING", &json!({})).to_string());
        }
    });
    let args = "schedctl wait 01a --timeout 60";
    assert_eq!(daemon.run(args).unwrap_err().exit(), Exit::Unreachable);
}
