//! A program that goes on writing, such as `logs -f`, read line by line with a bound.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::clock::look_until;

const WITHIN: Duration = Duration::from_secs(15);

/// The program and what it wrote.
#[derive(Debug)]
pub(crate) struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(WITHIN).expect("a line, in time")
    }

    /// Lines up to the first that fits.
    pub(crate) fn lines_until(&self, fits: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.line());
            if lines.last().is_some_and(|line| fits(line)) {
                return lines;
            }
        }
    }

    /// Its own end, and the lines that are left.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>) {
        let status =
            look_until(WITHIN, || self.child.try_wait().unwrap()).expect("its end, in time");
        (status, self.lines.iter().collect())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
