//! What the door may ask of the core, and what it may be told.

use std::pin::Pin;

use serde::{Deserialize, Serialize};

use super::backfill::{BackfillBody, Backfilled};
use super::event::SpecFile;
use super::explain::{InstanceExplanation, TaskExplanation};
use super::graph::GraphView;
use super::id::{InstanceId, TaskId};
use super::instance::Instance;
use super::plan::PlanView;
use super::priority::Priority;
use super::record::{Revision, Target};
use super::simulation::Basis;
use super::spec::JsonMap;
use super::spec_error::SpecError;
use super::time::Timestamp;
pub use super::view::{EmitRejection, EmitReply, Retried, RetryRejection, Submitted};
use super::view::{ExecutorView, Live, NextFire, QueueView, StatusView, TaskView};

/// A caller's own name for one order, hashed: sent again, the order is not carried out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey([u8; 16]);

impl RequestKey {
    /// The key of a text such as the header `Idempotency-Key`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(text.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Self(key)
    }
}

impl std::fmt::Display for RequestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Who asks, as the kernel says, and what the order is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Process id; 0: unknown.
    pub pid: u32,
    /// Makes the repetition of an order harmless.
    pub key: Option<RequestKey>,
}

/// What a stop does with running tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StopMode {
    /// They go on; the next daemon takes them up.
    Handover,
    /// They end first; nothing new is started.
    Drain,
    /// They are cancelled.
    Cancel,
}

/// One question or order. Orders are answered once they are durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Make an instance (`schedctl run`).
    Submit {
        /// Of which task.
        task: TaskId,
        /// How.
        submission: Box<SubmitBody>,
    },
    /// Fill in past cycles.
    Backfill {
        /// Of which task.
        task: TaskId,
        /// Which, and how.
        body: BackfillBody,
    },
    /// End an instance for good.
    Cancel {
        /// Which.
        instance: InstanceId,
        /// And all that waits for it.
        downstream: bool,
        /// The stored row, if it is final: the core does not keep those.
        stored: Option<Box<Instance>>,
    },
    /// End an instance that has not started, so that what depends on it strongly is skipped too.
    Skip {
        /// Which.
        instance: InstanceId,
        /// The stored row, if it is final: the core does not keep those.
        stored: Option<Box<Instance>>,
    },
    /// Try a finally failed instance again.
    Retry {
        /// Which.
        instance: InstanceId,
        /// By the definition of its first start, not by the one in force.
        same_revision: bool,
        /// The stored row, if it is final: the core does not keep those.
        stored: Option<Box<Instance>>,
        /// `Some`: finally failed ones below it, as stored, are to be tried again after it.
        below: Option<Vec<Instance>>,
    },
    /// Which finally failed instances lie below one.
    FailedBelow(InstanceId),
    /// Hold an instance, a task, a queue or everything.
    Pause {
        /// What.
        target: Target,
        /// Why.
        reason: Option<String>,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// Hold an instance; if it is RUNNING, stop its processes.
    Freeze {
        /// Which.
        instance: InstanceId,
        /// Why.
        reason: Option<String>,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// End a hold.
    Resume {
        /// Of what.
        target: Target,
    },
    /// Change a priority.
    SetPriority {
        /// Of a task or an instance.
        target: Target,
        /// To what.
        priority: Priority,
    },
    /// Undo a change of priority: the definition's, or for an instance its task's, counts again.
    ResetPriority {
        /// Of a task or an instance.
        target: Target,
    },
    /// Tell that a named event happened.
    Emit {
        /// Its name.
        name: String,
        /// Its parameters.
        params: JsonMap,
    },
    /// All tasks.
    Tasks,
    /// One task.
    Task(TaskId),
    /// What only the core knows of these instances (reason of READY, effective priority).
    Live(Vec<InstanceId>),
    /// The daemon.
    Status,
    /// Queues.
    Queues,
    /// Executors.
    Executors,
    /// Coming fires.
    Next {
        /// Of one task or all.
        task: Option<TaskId>,
        /// Strictly after; `None`: now.
        from: Option<Timestamp>,
        /// How many per task.
        count: u32,
    },
    /// Put an earlier revision in force and pin it.
    Rollback {
        /// Of which task.
        task: TaskId,
        /// The stored revision: the core keeps only those in use.
        revision: Box<Revision>,
    },
    /// End a rollback: what the file says counts again.
    Unpin {
        /// Of which task.
        task: TaskId,
    },
    /// Say what taking these files into the spec directory would change, and change nothing.
    Plan {
        /// As they would be read there.
        files: Vec<SpecFile>,
        /// They are all that the directory would hold; else they join or replace what is there.
        whole: bool,
    },
    /// Why an instance is where it is.
    Explain(InstanceId),
    /// Why a task has no instance, or did not run at a time.
    ExplainTask {
        /// Which.
        task: TaskId,
        /// The time; `None`: it is about now.
        at: Option<Timestamp>,
    },
    /// The definitions in force and what comes after what.
    Graph,
    /// What a simulation starts from, as far as the core knows it: without a history.
    SimulationBasis,
    /// Stop the daemon.
    Shutdown(StopMode),
}

/// The body of a submission (contract §6).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SubmitBody {
    /// Runtime parameters.
    pub params: JsonMap,
    /// A cycle's label, or the id of a root instance on a RUN task.
    pub cycle: Option<String>,
    /// A business date.
    pub date: Option<String>,
    /// Instead of the task's: 0..=9 or a level's name.
    pub priority: Option<PriorityText>,
    /// Not before.
    pub at: Option<Timestamp>,
    /// Wait for nothing.
    pub ignore_deps: bool,
    /// Make nothing below.
    pub no_downstream: bool,
    /// Say what would be made, and make nothing.
    pub dry_run: bool,
}

/// A priority as people write it: a number or a level's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityText(pub Priority);

impl Serialize for PriorityText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PriorityText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Priority::parse(&text).map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text} is no priority; expected 0 (first) to 9 (last), CRITICAL, HIGH, NORMAL, \
                 LOW or BACKGROUND"
            ))
        })
    }
}

/// The answer to a request.
pub type Answer = Result<Reply, Rejection>;

/// A good answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Done, durably; for an instance its id.
    Done,
    /// An instance was made.
    Submitted(Submitted),
    /// An event was told.
    Emitted(EmitReply),
    /// Past cycles were filled in.
    Backfilled(Backfilled),
    /// Instances are tried again.
    Retried(Retried),
    /// To `FailedBelow`: from upstream to downstream.
    Instances(Vec<InstanceId>),
    /// To `Tasks`.
    Tasks(Vec<TaskView>),
    /// To `Task`.
    Task(Box<TaskView>),
    /// To `Live`: those that the core holds.
    Live(Vec<Live>),
    /// To `Status`.
    Status(Box<StatusView>),
    /// To `Queues`.
    Queues(Vec<QueueView>),
    /// To `Executors`.
    Executors(Vec<ExecutorView>),
    /// To `Next`.
    Next(Vec<NextFire>),
    /// To `Plan`.
    Plan(Box<PlanView>),
    /// To `Explain`; `None`: the core does not hold the instance, its row says all.
    Explanation(Option<Box<InstanceExplanation>>),
    /// To `ExplainTask`.
    TaskExplanation(Box<TaskExplanation>),
    /// To `Graph`.
    Graph(Box<GraphView>),
    /// To `SimulationBasis`.
    SimulationBasis(Box<Basis>),
}

/// A change of the spec directory that somebody asked for at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// Put a file there, whole or not at all, in place of one of that name.
    Write {
        /// Its name in the directory.
        name: String,
        /// Its content.
        text: Vec<u8>,
    },
    /// Take a file away, unless it has come to define something else meanwhile.
    Remove {
        /// Its name in the directory.
        name: String,
        /// All that it may define.
        tasks: Vec<TaskId>,
    },
}

impl FileChange {
    /// The file's name in the directory.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Write { name, .. } | Self::Remove { name, .. } => name,
        }
    }
}

/// Kinds of refusal: what a program branches on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RejectionCode {
    /// No such object.
    NotFound,
    /// Not as things stand.
    Conflict,
    /// The request itself is wrong.
    Invalid,
    /// The caller may not.
    NotPermitted,
    /// No room on the disk.
    NoSpace,
    /// The daemon is stopping or cannot answer.
    Unavailable,
}

/// A refusal: what to branch on and what to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// What to branch on.
    pub code: RejectionCode,
    /// What was found, what is expected, what to do.
    pub detail: String,
    /// One entry per fault, where there can be several.
    pub errors: Vec<SpecError>,
}

impl Rejection {
    /// A refusal without a list.
    #[must_use]
    pub fn new(code: RejectionCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), errors: Vec::new() }
    }
}

/// What became of a reading that was asked for: `Some`, why there was nothing to be read.
pub type Reloaded = Result<Option<String>, Rejection>;

/// The core, as the door sees it: one question, one answer.
pub trait Ask: Send + Sync {
    /// Puts a request on the event channel and waits for its answer.
    ///
    /// Cancel safe: a dropped future's request is carried out all the same, unheard.
    fn ask(
        &self,
        request: Request,
        caller: Caller,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;

    /// Reads the spec directory again now (`schedctl reload`) and waits until the core has it.
    /// `Some`: why the directory could not be read; what was defined before stays in force then.
    fn reload(&self) -> Pin<Box<dyn Future<Output = Reloaded> + Send + '_>>;

    /// Changes files of the spec directory, synced to the disk, and waits until the core has
    /// taken note of all of them at once. What the files say must have been checked before.
    ///
    /// Cancel safe: once begun, the changes are carried out all the same.
    fn change_files(
        &self,
        changes: Vec<FileChange>,
        caller: Caller,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;
}
