//! Everything that is remembered: the append-only log, the rows beside it, and the batch that
//! makes both durable together.
//!
//! It is longer than 400 lines because the entries of the log and the rows beside it are one closed
//! list.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::backfill::Backfilled;
use super::empty_cycle::EmptyCycle;
use super::id::{ExecutorId, InstanceId, LogSeq, QueueName, TaskId};
use super::instance::{Instance, InstanceState, Pause, Reason};
use super::jump::Jumps;
use super::priority::Priority;
use super::spec::TaskSpec;
use super::spec_error::SpecError;
use super::time::Timestamp;
use super::view::{EmitReply, Retried, Submitted};

/// One entry of the append-only log. Its JSON form is what `GET /events` gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogRecord {
    /// Its position.
    pub seq: LogSeq,
    /// When.
    pub at: Timestamp,
    /// Who asked for it; `None`: the scheduler itself.
    pub uid: Option<u32>,
    /// What.
    #[serde(flatten)]
    pub what: Record,
}

/// What a log entry tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Record {
    /// A new instance.
    Created {
        /// It.
        instance_id: InstanceId,
        /// Its task.
        task_id: TaskId,
        /// Its cycle's label.
        cycle: String,
        /// The trigger's kind.
        trigger: String,
    },
    /// An instance moved.
    Moved {
        /// Which.
        instance_id: InstanceId,
        /// Its task.
        task_id: TaskId,
        /// From.
        from: InstanceState,
        /// To.
        to: InstanceState,
        /// Why.
        reason: Option<Reason>,
        /// Attempts so far.
        attempt: u32,
        /// Where, on a move to RUNNING.
        executor_id: Option<ExecutorId>,
        /// How the attempt failed, on a move to FAILED or TIMEOUT.
        error_code: Option<String>,
        /// When the next attempt is due.
        next_retry_at: Option<Timestamp>,
        /// Whether it is over for good.
        is_final: bool,
    },
    /// An attempt's process is there.
    Started {
        /// Of which instance.
        instance_id: InstanceId,
        /// Its task.
        task_id: TaskId,
        /// Which attempt.
        attempt: u32,
        /// The leader.
        pid: u32,
    },
    /// An instance changed in another way than by a move: its reason, edges or root.
    Updated {
        /// Which.
        instance_id: InstanceId,
        /// Its task.
        task_id: TaskId,
        /// In what.
        what: String,
    },
    /// A nominal fire, or a run of them, had an outcome: a row of the ledger.
    Fire(Fire),
    /// A row of the ledger says less now: the clock had been ahead, and what it went past is still
    /// to come.
    FireAmended {
        /// The entry that wrote the row.
        of: LogSeq,
        /// What the row says from now on; without a count it is gone.
        fire: Fire,
    },
    /// The wall clock was set.
    ClockStepped {
        /// By how much, in milliseconds; less than 0: back.
        by_ms: i64,
    },
    /// A definition was taken into force.
    DefinitionLoaded {
        /// The task.
        task_id: TaskId,
        /// Its revision.
        revision: u64,
        /// Where from.
        file: String,
    },
    /// A definition is no longer in force.
    DefinitionRemoved {
        /// The task.
        task_id: TaskId,
        /// Where it came from.
        file: String,
    },
    /// An earlier revision was put in force and stays until it is unpinned or its file changes.
    DefinitionPinned {
        /// The task.
        task_id: TaskId,
        /// Its revision.
        revision: u64,
    },
    /// What the file says counts again.
    DefinitionUnpinned {
        /// The task.
        task_id: TaskId,
        /// The revision that was pinned.
        revision: u64,
        /// Why: a person asked, or the file changed.
        why: String,
    },
    /// A file was refused; what it defined before stays in force.
    DefinitionRefused(SpecError),
    /// Something was paused.
    Paused {
        /// What.
        target: Target,
        /// Why and for how long.
        pause: Pause,
    },
    /// Something was resumed.
    Resumed {
        /// What.
        target: Target,
    },
    /// A priority was changed.
    PriorityChanged {
        /// Whose.
        target: Target,
        /// To what; `None`: back to the definition's.
        priority: Option<Priority>,
    },
    /// An event came from outside.
    Emitted {
        /// Its name.
        name: String,
        /// Instances it made.
        instances: u64,
    },
    /// An executor is there.
    ExecutorConnected {
        /// Who.
        executor_id: ExecutorId,
        /// Which process of it.
        incarnation: u64,
        /// Its process id.
        pid: u32,
    },
    /// An executor is gone.
    ExecutorLost {
        /// Who.
        executor_id: ExecutorId,
        /// How that is known.
        why: String,
    },
    /// The daemon started.
    DaemonStarted {
        /// The program's version.
        version: String,
        /// Its process id.
        pid: u32,
    },
    /// The daemon was asked to stop.
    DaemonStopping,
}

/// What a pause or a priority is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "of", content = "id")]
pub enum Target {
    /// One instance.
    Instance(InstanceId),
    /// One task.
    Task(TaskId),
    /// One queue.
    Queue(QueueName),
    /// Everything.
    All,
}

/// How a nominal fire ended (contract §3, 'Fire outcomes').
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FireOutcome {
    /// It made an instance.
    Instance,
    /// An earlier instance was still at it.
    SkippedOverlap,
    /// It was due while no daemon ran.
    Missed,
    /// It was folded into a newer one.
    Coalesced,
    /// The task was paused.
    Paused,
    /// The task was disabled.
    Disabled,
    /// An upstream is unknown.
    Unresolved,
    /// Its parameters were bad.
    RejectedParams,
    /// Its `dedupKey` was taken.
    Duplicate,
    /// Another version of the task took the cycle (`rollout`).
    RolledOutElsewhere,
}

impl FireOutcome {
    /// The name as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "INSTANCE",
            Self::SkippedOverlap => "SKIPPED_OVERLAP",
            Self::Missed => "MISSED",
            Self::Coalesced => "COALESCED",
            Self::Paused => "PAUSED",
            Self::Disabled => "DISABLED",
            Self::Unresolved => "UNRESOLVED",
            Self::RejectedParams => "REJECTED_PARAMS",
            Self::Duplicate => "DUPLICATE",
            Self::RolledOutElsewhere => "ROLLED_OUT_ELSEWHERE",
        }
    }
}

/// A row of the ledger: `count` nominal fires from `from` to `to`, all with one outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fire {
    /// The task.
    pub task_id: TaskId,
    /// The trigger's key.
    pub trigger: String,
    /// The first nominal time.
    pub from: Timestamp,
    /// The last nominal time.
    pub to: Timestamp,
    /// How many.
    pub count: u64,
    /// What became of them.
    pub outcome: FireOutcome,
    /// More words.
    pub reason: Option<String>,
    /// The instance, if one was made.
    pub instance_id: Option<InstanceId>,
}

/// One accepted content of a definition (requirement A7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The task.
    pub task_id: TaskId,
    /// From 1 per task.
    pub revision: u64,
    /// Hash of the definition.
    pub hash: String,
    /// When.
    pub loaded_at: Timestamp,
    /// Where from.
    pub file: String,
    /// Whose file it was, or who asked for it at the door; `None`: not known.
    #[serde(default)]
    pub uid: Option<u32>,
    /// The definition.
    pub spec: Arc<TaskSpec>,
}

/// What is in force of a task, and what people decided about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRow {
    /// The task.
    pub task_id: TaskId,
    /// The revision in force; `None`: the definition was removed.
    pub revision: Option<u64>,
    /// The file that defines it, or did last.
    pub file: String,
    /// When first loaded.
    pub created_at: Timestamp,
    /// Revisions so far.
    pub revisions: u64,
    /// Hash of the newest of them: the same content once more is the same revision. `None`: an
    /// earlier version stored the row.
    #[serde(default)]
    pub newest_hash: Option<String>,
    /// Held by a person.
    pub paused: Option<Pause>,
    /// Priority set by a person.
    pub priority: Option<Priority>,
    /// An earlier revision is in force by a person's rollback.
    #[serde(default)]
    pub pinned: Option<Pin>,
}

/// A rollback: which content of the file it holds off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    /// The revision that would be in force without it.
    pub revision: u64,
    /// The definition that the file held when the rollback was asked for, by its hash: the pin
    /// ends when the file defines something else.
    pub ignored: String,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub uid: u32,
}

/// How far a time trigger has been handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cursor {
    /// The task.
    pub task_id: TaskId,
    /// The trigger's key.
    pub trigger: String,
    /// Every nominal fire up to and with this time has its ledger row.
    pub handled_to: Timestamp,
}

/// What makes one arrival of a path different from another (requirement E3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileIdentity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since the epoch.
    pub mtime_ns: i64,
}

/// A file that has been taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Arrival {
    /// The task that took it.
    pub task_id: TaskId,
    /// By which pattern.
    pub pattern: String,
    /// The file.
    pub path: String,
    /// Which arrival of it.
    pub identity: FileIdentity,
    /// Since when it is gone; `None`: it is there.
    pub gone_at: Option<Timestamp>,
}

/// Task, pattern and path: what an arrival is known by.
pub type ArrivalKey = (TaskId, String, String);

impl Arrival {
    /// What it is known by.
    #[must_use]
    pub fn key(&self) -> ArrivalKey {
        (self.task_id.clone(), self.pattern.clone(), self.path.clone())
    }
}

/// An order that may be repeated without harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Submission {
    /// The caller's key, with the caller's uid in front.
    pub key: String,
    /// When.
    pub at: Timestamp,
    /// Hash of what was ordered: another order under the same key is refused.
    pub order: String,
    /// What was answered.
    pub answer: KeptAnswer,
}

/// The answer to an order, as a repetition gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KeptAnswer {
    /// It was done.
    Done,
    /// It made an instance.
    Submitted(Submitted),
    /// It had instances tried again.
    Retried(Retried),
    /// It told an event.
    Emitted(EmitReply),
    /// It filled in past cycles.
    Backfilled(Backfilled),
}

/// A pause of a queue or of everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// What.
    pub target: Target,
    /// Why and for how long.
    pub pause: Pause,
}

/// One row of the views: the newest value of something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "row")]
pub enum Row {
    /// An instance.
    Instance(Arc<Instance>),
    /// A revision of a definition; never changes.
    Revision(Revision),
    /// What is in force of a task.
    Task(TaskRow),
    /// How far a time trigger has been handled.
    Cursor(Cursor),
    /// A file that has been taken.
    Arrival(Arrival),
    /// A repeatable order.
    Submission(Submission),
    /// A pause of a queue or of everything.
    Hold(Hold),
    /// What jumps of the clock left behind at a time trigger.
    Jumps(Jumps),
    /// A cycle in which a task fired but made no instance.
    EmptyCycle(EmptyCycle),
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "key")]
pub enum RowKey {
    /// An instance.
    Instance {
        /// Its id.
        instance_id: InstanceId,
    },
    /// A revision.
    Revision {
        /// Of which task.
        task_id: TaskId,
        /// Its number.
        revision: u64,
    },
    /// A task.
    Task {
        /// Its id.
        task_id: TaskId,
    },
    /// A cursor.
    Cursor {
        /// Of which task.
        task_id: TaskId,
        /// Of which trigger.
        trigger: String,
    },
    /// An arrival.
    Arrival {
        /// By which task.
        task_id: TaskId,
        /// By which pattern.
        pattern: String,
        /// Of which file.
        path: String,
    },
    /// A submission.
    Submission {
        /// Its key.
        submission: String,
    },
    /// A hold.
    Hold {
        /// On what.
        target: Target,
    },
    /// Jumps of the clock.
    Jumps {
        /// Of which task.
        task_id: TaskId,
        /// Of which trigger.
        trigger: String,
    },
    /// An empty cycle.
    EmptyCycle {
        /// Of which task.
        task_id: TaskId,
        /// Its label.
        cycle: String,
    },
}

impl Row {
    /// What the row is about.
    #[must_use]
    pub fn key(&self) -> RowKey {
        match self {
            Self::Instance(i) => RowKey::Instance { instance_id: i.instance_id.clone() },
            Self::Revision(r) => {
                RowKey::Revision { task_id: r.task_id.clone(), revision: r.revision }
            }
            Self::Task(t) => RowKey::Task { task_id: t.task_id.clone() },
            Self::Cursor(c) => {
                RowKey::Cursor { task_id: c.task_id.clone(), trigger: c.trigger.clone() }
            }
            Self::Arrival(a) => RowKey::Arrival {
                task_id: a.task_id.clone(),
                pattern: a.pattern.clone(),
                path: a.path.clone(),
            },
            Self::Submission(s) => RowKey::Submission { submission: s.key.clone() },
            Self::Hold(h) => RowKey::Hold { target: h.target.clone() },
            Self::Jumps(j) => {
                RowKey::Jumps { task_id: j.task_id.clone(), trigger: j.trigger.clone() }
            }
            Self::EmptyCycle(e) => {
                RowKey::EmptyCycle { task_id: e.task_id.clone(), cycle: e.cycle.label().to_owned() }
            }
        }
    }
}

/// What one commit makes durable, all or nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// New log entries, contiguous, oldest first.
    pub records: Vec<LogRecord>,
    /// New values by key; `None`: the row goes.
    pub rows: BTreeMap<RowKey, Option<Row>>,
}

impl Batch {
    /// Nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.rows.is_empty()
    }

    /// Adds a later batch; rows written twice keep the later value.
    pub fn append(&mut self, later: Self) {
        self.records.extend(later.records);
        self.rows.extend(later.rows);
    }
}
