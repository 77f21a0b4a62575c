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

pub(crate) fn ask(socket: &Path, head: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream
        .write_all(format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n").as_bytes())
        .ok()?;
    stream.write_all(b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

pub(crate) fn wait_for(socket: &Path, path: &str, word: &str) {
    let began = Instant::now();
    while !ask(socket, &format!("GET {path}")).is_some_and(|answer| answer.contains(word)) {
        assert!(began.elapsed() < Duration::from_secs(60), "no {word} in {path}");
        // A daemon that is asked without pause has no time left for its work.
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn stop(daemon: &mut Child, socket: &Path) {
    ask(socket, "POST /shutdown");
    daemon.wait().unwrap();
}
