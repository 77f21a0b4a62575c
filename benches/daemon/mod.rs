//! A real daemon to measure, and a clock to do it with.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

pub(crate) fn start_daemon(config: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_schedd"))
        .arg("--config")
        .arg(config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Asks, or orders with this body; `None`: nobody is there.
pub(crate) fn ask(socket: &Path, head: &str, body: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let length = body.len();
    let more = "Host: x\r\nConnection: close\r\nContent-Type: application/json";
    let asked = format!("{head} HTTP/1.1\r\n{more}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(asked.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

pub(crate) fn wait_for(socket: &Path, path: &str, word: &str) {
    let began = Instant::now();
    while !ask(socket, &format!("GET {path}"), "{}").is_some_and(|answer| answer.contains(word)) {
        assert!(began.elapsed() < Duration::from_secs(60), "no {word} in {path}");
        // A daemon that is asked without pause has no time left for its work.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Its tasks end with it; its executors end by themselves once they are idle for a minute.
pub(crate) fn stop(daemon: &mut Child, socket: &Path) {
    ask(socket, "POST /shutdown", "{\"mode\":\"CANCEL\"}");
    daemon.wait().unwrap();
}
