//! Everything that can happen: the one way into the core.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{ExecutorId, InstanceId, Lease, ReplyTo};
use super::output::OutputsLook;
pub use super::record::FileIdentity;
use super::request::{Caller, Request, StopMode};
use super::spec::TaskSpec;
pub use super::spec_error::SpecError;
use super::time::Timestamp;

/// What happened. Plain data, so that a run can be written down and repeated.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Time has passed; whatever is due by now is due.
    Tick,
    /// The wall clock was set: the only event whose time may lie before that of the event before.
    ClockStepped {
        /// By how much, in milliseconds; less than 0: back.
        by_ms: i64,
    },
    /// Time zones may have other rules now.
    ZonesReread,
    /// The spec directory was read.
    Definitions(Definitions),
    /// Files that match `file:` triggers and have stopped changing.
    FilesArrived(Vec<FileArrival>),
    /// Files of earlier arrivals that are gone. One that comes back as it was within a week is no new
    /// arrival if an attempt was made for it; anything else under its name is.
    FilesGone(Vec<String>),
    /// All patterns have been looked at once since the start: of files of earlier arrivals it has
    /// been told which are gone. Or that takes so long that nothing waits for it any more.
    FilesRead,
    /// Outputs that are waited for were looked at, and there is news of them.
    OutputsLooked(Vec<OutputsLook>),
    /// Somebody at the door asks for something.
    Request {
        /// What.
        request: Request,
        /// Who.
        caller: Caller,
        /// Where the answer goes.
        reply: ReplyTo,
    },
    /// An executor said hello on a new connection.
    ExecutorConnected(Hello),
    /// An executor reports about an attempt.
    ExecutorReport {
        /// Who.
        executor: ExecutorId,
        /// Which process of that id.
        incarnation: u64,
        /// What.
        report: Report,
    },
    /// An executor's process is gone or silent.
    ExecutorLost {
        /// Who.
        executor: ExecutorId,
        /// Which process of that id; `None`: whichever.
        incarnation: Option<u64>,
        /// How that is known.
        why: String,
    },
    /// The daemon was asked to stop.
    Stop(StopMode),
}

/// What a reading of the spec directory found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Definitions {
    /// Files that are new or whose content changed.
    pub changed: Vec<SpecFile>,
    /// Paths that are gone.
    pub removed: Vec<String>,
    /// `Some`: every path that the directory holds now (a full reading): definitions whose file
    /// is not among them are retired.
    pub present: Option<Vec<String>>,
    /// The directory itself cannot be read: the last good set stays (design, F5).
    pub unreadable: Option<String>,
    /// Another part of the same reading follows: a large reading comes in several events, so that
    /// none of them holds up the core for long. What is gone is told after all that changed, what
    /// is there in the last one.
    pub more: bool,
}

/// One spec file's content.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpecFile {
    /// Its path.
    pub path: String,
    /// Hash of its bytes.
    pub hash: String,
    /// Whose file it is, or who asked for it at the door; `None`: not known.
    pub uid: Option<u32>,
    /// Its definitions; empty if there is any error.
    pub specs: Vec<Arc<TaskSpec>>,
    /// Where they stand, in the same order.
    pub places: Vec<SpecPlaces>,
    /// Why it is refused.
    pub errors: Vec<SpecError>,
    /// What is accepted but deserves a word.
    pub warnings: Vec<SpecError>,
}

/// Where the keys of a definition stand that only the whole set can find fault with: line and
/// column, both from 1; (0, 0): not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpecPlaces {
    /// The value of `taskId`.
    pub task_id: (u32, u32),
    /// The value of `dependsOn`, or of `triggers` where there is none.
    pub depends_on: (u32, u32),
    /// The value of `cycle`.
    pub cycle: (u32, u32),
}

impl SpecPlaces {
    /// The place of one of these keys.
    #[must_use]
    pub fn of(&self, key: &str) -> (u32, u32) {
        match key {
            "taskId" => self.task_id,
            "dependsOn" | "triggers" => self.depends_on,
            "cycle" => self.cycle,
            _ => (0, 0),
        }
    }
}

/// A file that matches a trigger's pattern and has stopped changing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileArrival {
    /// The trigger's pattern.
    pub pattern: String,
    /// The file.
    pub path: String,
    /// What makes this arrival different from another of the same path.
    pub identity: FileIdentity,
}

/// What an executor says first on each connection (design, 'Executors').
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Its configured id.
    pub executor: ExecutorId,
    /// Which process of that id: grows with every start.
    pub incarnation: u64,
    /// Which connection, numbered by the daemon; not said by the executor.
    #[serde(skip)]
    pub connection: u64,
    /// Its process id.
    pub pid: u32,
    /// The machine's boot.
    pub boot_id: Arc<str>,
    /// Attempts that are on in this process.
    pub running: Vec<AttemptRef>,
    /// Those of them whose processes are stopped; `None`: an older executor, which cannot stop any.
    #[serde(default)]
    pub frozen: Option<Vec<AttemptRef>>,
    /// Attempts that an earlier process of this id accepted and whose end nobody saw. Whatever
    /// still ran of them has been ended.
    pub lost: Vec<AttemptRef>,
    /// Ends that were not yet acknowledged.
    pub finished: Vec<Finished>,
}

/// One dispatch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRef {
    /// The instance.
    pub instance_id: InstanceId,
    /// The attempt.
    pub attempt: u32,
    /// Its fence.
    pub lease: Lease,
}

/// What an executor reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "report")]
pub enum Report {
    /// The process is there.
    Started(Started),
    /// The attempt is over.
    Finished(Box<Finished>),
    /// Alive; observed, never recorded.
    Heartbeat(Load),
}

/// The process is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// Which dispatch.
    pub of: AttemptRef,
    /// The leader's process id.
    pub pid: u32,
    /// When.
    pub at: Timestamp,
}

/// The attempt is over and nothing of it runs as its leader any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// Which dispatch.
    pub of: AttemptRef,
    /// When its process started; `None`: it never did.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
    /// How.
    pub outcome: Outcome,
    /// What the task said of itself in its result file.
    pub result: TaskResult,
    /// TERM was sent before the leader ended, at the daemon's wish.
    pub killed: bool,
    /// Milliseconds of processor time in user mode.
    pub user_ms: Option<u64>,
    /// Milliseconds of processor time in the kernel.
    pub system_ms: Option<u64>,
    /// Peak memory of the largest process.
    pub max_rss_bytes: Option<u64>,
    /// Bytes of output.
    pub output_bytes: Option<u64>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "how")]
pub enum Outcome {
    /// The leader exited with this status.
    Exited {
        /// 0..=255.
        code: i32,
    },
    /// A signal ended the leader.
    Signalled {
        /// Its number.
        signal: i32,
        /// Its name without SIG, such as `SEGV`.
        name: String,
    },
    /// The time allowed was over and its processes were ended.
    TimedOut,
    /// No process came to be.
    SpawnFailed {
        /// Step, object and system error.
        message: String,
        /// For want of resources (EAGAIN, ENOMEM, EMFILE, ENFILE): worth trying again.
        transient: bool,
    },
}

/// What a task said of itself in its result file (contract §3).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult {
    /// Its output.
    pub output: Option<Value>,
    /// Its own error code.
    pub error_code: Option<String>,
    /// Its message.
    pub message: Option<String>,
    /// The file was there and was not one JSON object within bounds; why.
    pub invalid: Option<String>,
}

/// What an executor is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Attempts that are on.
    pub running: u32,
    /// The machine's one-minute load average.
    pub load1: f64,
}
