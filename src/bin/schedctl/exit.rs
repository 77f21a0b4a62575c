//! Exit statuses (contract §5) and what leads to them.

use std::fmt::Write as _;
use std::process::ExitCode;

use sched::access::client::{ClientError, Problem};

#[cfg(test)]
mod tests;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Good.
    Good = 0,
    /// The operation or the awaited instance failed.
    Failed = 1,
    /// Usage.
    Usage = 2,
    /// `status` of a paused or disabled task.
    Held = 3,
    /// No such object.
    NotFound = 4,
    /// The daemon cannot be reached.
    Unreachable = 5,
    /// Refused: validation, conflict, no space.
    Refused = 6,
    /// Refused: not permitted or rate limited.
    Forbidden = 7,
    /// The wait ran out.
    TimedOut = 124,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What went wrong, to be shown on stderr.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Between us and the daemon.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Something the client found by itself.
    #[error("{text}")]
    Said {
        /// How the program ends.
        exit: Exit,
        /// What is shown.
        text: String,
    },
    /// The output cannot be written.
    #[error("cannot write the output")]
    Output(#[source] std::io::Error),
}

impl Failure {
    /// One that the client found by itself.
    pub(crate) fn said(exit: Exit, text: impl Into<String>) -> Self {
        Self::Said { exit, text: text.into() }
    }

    /// Whether the reader of our output has gone, which is nobody's fault.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(e) if e.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// How the program ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Client(error) => exit_of(error),
            Self::Said { exit, .. } => *exit,
            Self::Output(_) => Exit::Failed,
        }
    }

    /// All that is shown of it: the chain of causes, then one line per fault.
    pub(crate) fn text(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            // Writing to a String cannot fail.
            let _infallible = write!(text, ": {cause}");
            source = cause.source();
        }
        if let Self::Client(ClientError::Refused(problem)) = self {
            for fault in &problem.errors {
                text.push_str("\n  ");
                text.push_str(&fault_line(fault));
            }
        }
        text
    }
}

/// `file:line:column: path: message`, without what is absent.
fn fault_line(fault: &sched::model::event::SpecError) -> String {
    if !fault.file.is_empty() {
        return fault.to_string();
    }
    if fault.path.is_empty() {
        return fault.message.clone();
    }
    format!("{}: {}", fault.path, fault.message)
}

fn exit_of(error: &ClientError) -> Exit {
    match error {
        ClientError::NoSocket { .. }
        | ClientError::DeadSocket { .. }
        | ClientError::Connect { .. }
        | ClientError::Broken { .. }
        | ClientError::Silent { .. } => Exit::Unreachable,
        ClientError::NotPermitted { .. } => Exit::Forbidden,
        ClientError::TimedOut => Exit::TimedOut,
        ClientError::Refused(problem) => exit_of_refusal(problem),
        ClientError::Runtime(_)
        | ClientError::Request { .. }
        | ClientError::Json { .. }
        | ClientError::TooLong { .. } => Exit::Failed,
    }
}

/// The code decides; without one that we know, the HTTP status does.
fn exit_of_refusal(problem: &Problem) -> Exit {
    match problem.code.as_str() {
        "NOT_FOUND" => Exit::NotFound,
        "CONFLICT" | "INVALID" | "NO_SPACE" => Exit::Refused,
        "NOT_PERMITTED" | "RATE_LIMITED" => Exit::Forbidden,
        "UNAVAILABLE" => Exit::Unreachable,
        _ => match problem.status {
            404 => Exit::NotFound,
            401 | 403 | 429 => Exit::Forbidden,
            503 => Exit::Unreachable,
            400..=499 | 507 => Exit::Refused,
            _ => Exit::Failed,
        },
    }
}
