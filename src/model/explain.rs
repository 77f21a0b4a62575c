//! Why an instance is where it is, and why a task has no instance: the answers of `explain`
//! (requirement C6).
//!
//! The core fills in what it alone knows, the door what the store and the logs know, and then the
//! words. Absent values are null, never left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::{ExecutorId, InstanceId, QueueName, TaskId};
use super::instance::{Cause, Edge, Instance, InstanceState, Pause, Reason};
use super::priority::Priority;
use super::record::Target;
use super::spec::{DepType, Strength};
use super::time::Timestamp;
use super::view::{TaskStatus, Upstream};

mod task;

pub use self::task::{FireExplanation, RecentInstance, TaskExplanation};

/// Why an instance is where it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceExplanation {
    /// Which.
    pub instance_id: InstanceId,
    /// Its task.
    pub task_id: TaskId,
    /// Its cycle's label.
    pub cycle: String,
    /// Where it is.
    pub state: InstanceState,
    /// Why, READY's derived reasons included.
    pub reason: Option<Reason>,
    /// Since when it is there; null where nothing says so.
    pub since: Option<Timestamp>,
    /// Whether it stays there for good, unless a person has it tried again.
    pub is_final: bool,
    /// All of the below in sentences, most important first.
    pub summary: Vec<String>,
    /// What made it.
    pub trigger: Cause,
    /// What it waits for, or waited for.
    pub edges: Vec<EdgeExplanation>,
    /// Down to the root causes: the upstreams that its edges are not satisfied with.
    pub blocked_by: Vec<Blocker>,
    /// Who holds it, its task, its queue or everything.
    pub pauses: Vec<PauseExplanation>,
    /// The quotas that are full, and by whom.
    pub quotas: Vec<QuotaExplanation>,
    /// What it asks of an executor and what there is; of a READY one.
    pub placement: Option<Placement>,
    /// Its place in the queue; of a READY one that is not held itself.
    pub place: Option<Place>,
    /// Own and effective priority.
    pub priority: PriorityExplanation,
    /// What keeps the daemon as a whole from starting anything now.
    pub daemon: Vec<DaemonHold>,
    /// Not before this time (`--at`), while it is to come.
    pub not_before: Option<Timestamp>,
    /// When waiting for dependencies runs out, while that is to come.
    pub dependency_deadline: Option<Timestamp>,
    /// Attempts begun.
    pub attempt: u32,
    /// Attempts that may still end by the task's own fault.
    pub attempts_left: u32,
    /// When the next attempt is due.
    pub next_retry_at: Option<Timestamp>,
    /// Where it runs or last ran.
    pub executor_id: Option<ExecutorId>,
    /// When the newest attempt's process started.
    pub started_at: Option<Timestamp>,
    /// When the attempt that is on will be ended; a clock that is set moves this.
    pub timeout_at: Option<Timestamp>,
    /// When the newest attempt ended, or it was cancelled.
    pub finished_at: Option<Timestamp>,
    /// Of the newest attempt.
    pub exit_code: Option<i32>,
    /// Of the newest attempt.
    pub signal: Option<i32>,
    /// Of the newest attempt.
    pub error_code: Option<String>,
    /// What is to be known of the newest end, or of what it waits for.
    pub message: Option<String>,
    /// Who had it cancelled; null where nobody had, or it is not known.
    pub cancelled_by: Option<u32>,
    /// Runs, or ran, although dependencies did not hold.
    pub degraded: bool,
    /// The last lines of the newest attempt's log, of one that ended badly.
    pub log: Vec<String>,
}

impl InstanceExplanation {
    /// What an instance's row says of itself.
    #[must_use]
    pub fn of(i: &Instance) -> Self {
        Self {
            instance_id: i.instance_id.clone(),
            task_id: i.task_id.clone(),
            cycle: i.cycle.label().to_owned(),
            state: i.state,
            reason: i.reason,
            since: since(i),
            is_final: !i.is_open(),
            summary: Vec::new(),
            trigger: i.trigger.clone(),
            edges: i.edges.iter().map(EdgeExplanation::of).collect(),
            blocked_by: Vec::new(),
            pauses: Vec::new(),
            quotas: Vec::new(),
            placement: None,
            place: None,
            priority: PriorityExplanation {
                own: i.priority,
                effective: i.priority,
                inherited_from: None,
            },
            daemon: Vec::new(),
            not_before: i.not_before.filter(|_| i.is_waiting()),
            dependency_deadline: i.dependency_deadline.filter(|_| i.is_waiting()),
            attempt: i.attempt,
            attempts_left: i.max_attempts.saturating_sub(i.faults),
            next_retry_at: i.next_retry_at,
            executor_id: i.executor_id.clone(),
            started_at: i.started_at,
            timeout_at: None,
            finished_at: i.finished_at,
            exit_code: i.exit_code,
            signal: i.signal,
            error_code: i.error_code.clone(),
            message: i.message.clone(),
            cancelled_by: i.cancelled_by,
            degraded: i.degraded,
            log: Vec::new(),
        }
    }
}

/// Since when a row is in its state, as far as it says; a BLOCKED one does not.
fn since(i: &Instance) -> Option<Timestamp> {
    match i.state {
        InstanceState::Pending => Some(i.created_at),
        InstanceState::Blocked => None,
        InstanceState::Ready => i.ready_at,
        InstanceState::Running => i.started_at,
        InstanceState::Succeeded
        | InstanceState::Failed
        | InstanceState::Timeout
        | InstanceState::Cancelled => i.finished_at,
    }
}

/// One edge: the upstream, which run of it counts, and how that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeExplanation {
    /// The upstream.
    pub task_id: TaskId,
    /// What of it is waited for.
    pub dep_type: DepType,
    /// Whether its failure holds the dependent back.
    pub strength: Strength,
    /// The condition on it.
    pub when: Option<String>,
    /// The instance that counts; null: the edge is open.
    pub instance_id: Option<InstanceId>,
    /// That instance's cycle.
    pub cycle: Option<String>,
    /// Where that instance is.
    pub state: Option<InstanceState>,
    /// Why it is there.
    pub reason: Option<Reason>,
    /// Since when, as far as it is known.
    pub since: Option<Timestamp>,
    /// Whether it stays there for good.
    pub is_final: bool,
    /// Whether the edge holds nothing back, its condition aside.
    pub satisfied: bool,
    /// Of an open edge with a `cycleOffset`: the cycle that it looks for.
    pub wanted_cycle: Option<String>,
    /// Of an open edge: in words, that the upstream fired for the cycle and made no instance.
    pub skipped: Option<String>,
    /// What of the upstream's outputs is not there yet, in words; of a DATA_READY edge.
    pub missing: Vec<String>,
    /// Of an open edge: what is to come.
    pub open: Option<OpenEdge>,
}

impl EdgeExplanation {
    /// What an instance's row says of an edge.
    #[must_use]
    pub fn of(edge: &Edge) -> Self {
        Self {
            task_id: edge.task_id.clone(),
            dep_type: edge.dep_type,
            strength: edge.strength,
            when: None,
            instance_id: edge.instance_id.clone(),
            cycle: None,
            state: None,
            reason: None,
            since: None,
            is_final: false,
            satisfied: false,
            wanted_cycle: None,
            skipped: None,
            missing: Vec::new(),
            open: None,
        }
    }

    /// Takes in how the upstream's instance stands.
    pub fn stands(&mut self, upstream: Upstream) {
        self.state = Some(upstream.state);
        self.is_final = upstream.is_final;
        self.satisfied = upstream.satisfies(self.strength, self.dep_type);
    }
}

/// An edge whose upstream has no instance that counts yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenEdge {
    /// Whether the upstream gets instances; null: no file defines it.
    pub status: Option<TaskStatus>,
    /// Who holds the upstream.
    pub paused: Option<Pause>,
    /// Whether it has no triggers of its own: it runs after what is above it.
    pub is_derived: bool,
    /// What starts it, in short.
    pub schedule: String,
    /// When it fires next.
    pub next_fire_time: Option<Timestamp>,
    /// The cycle that this will be.
    pub next_cycle: Option<String>,
    /// The first coming fire of a cycle that counts here, as far as was looked.
    pub matching_fire_time: Option<Timestamp>,
}

/// An upstream that is not done, and what it waits for in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// Which; null: an open edge.
    pub instance_id: Option<InstanceId>,
    /// Its task.
    pub task_id: TaskId,
    /// Its cycle.
    pub cycle: Option<String>,
    /// Where it is.
    pub state: Option<InstanceState>,
    /// Why.
    pub reason: Option<Reason>,
    /// Since when, as far as it is known.
    pub since: Option<Timestamp>,
    /// Whether it stays there for good.
    pub is_final: bool,
    /// Exit status.
    pub exit_code: Option<i32>,
    /// Signal number.
    pub signal: Option<i32>,
    /// How it failed.
    pub error_code: Option<String>,
    /// More words.
    pub message: Option<String>,
    /// The last lines of its log, if it failed.
    pub log: Vec<String>,
    /// It stands in the tree already; what is above it is not repeated here.
    pub repeated: bool,
    /// What it waits for.
    pub blocked_by: Vec<Self>,
}

/// A pause that counts here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseExplanation {
    /// What is paused.
    pub target: Target,
    /// By whom, why and how long.
    pub pause: Pause,
}

/// What a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum QuotaKind {
    /// `maxRunning` of the queue.
    Queue,
    /// `maxConcurrent` of the task.
    Task,
    /// `ownerQuota` of the owner.
    Owner,
    /// Slots of the executors that take the task.
    Slots,
}

/// A quota that is full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaExplanation {
    /// What it counts.
    pub kind: QuotaKind,
    /// Of which queue, task or owner; the executors' ids.
    pub name: String,
    /// How many may run.
    pub limit: u32,
    /// How many do.
    pub used: u32,
    /// Some of those that do.
    pub held_by: Vec<InstanceRef>,
}

/// An instance, named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRef {
    /// Which.
    pub instance_id: InstanceId,
    /// Its task.
    pub task_id: TaskId,
}

/// What is asked of an executor, and what there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The type that it must take.
    pub task_type: String,
    /// The labels that it must have.
    pub executor_labels: BTreeMap<String, String>,
    /// The executors of the configuration.
    pub executors: Vec<ExecutorOffer>,
}

/// What an executor offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorOffer {
    /// Which.
    pub executor_id: ExecutorId,
    /// Whether it is there.
    pub connected: bool,
    /// Whether it takes the type and has the labels.
    pub fits: bool,
    /// The types it takes.
    pub task_types: Vec<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Attempts at a time.
    pub slots: u32,
    /// Attempts now.
    pub running: u32,
}

/// A place in a queue: order among those of one queue, which says nothing of other queues' turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The queue.
    pub queue: QueueName,
    /// How many go first.
    pub ahead: u64,
    /// How many wait in all.
    pub waiting: u64,
    /// The very first of those ahead.
    pub first: Vec<InstanceRef>,
}

/// Own and effective priority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PriorityExplanation {
    /// Its own.
    pub own: Priority,
    /// That by which it stands in the queue.
    pub effective: Priority,
    /// The dependent that lifts it.
    pub inherited_from: Option<InstanceRef>,
}

/// What keeps the daemon as a whole from starting anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DaemonHold {
    /// It is stopping.
    Stopping,
    /// The spec directory has not been read to its end since the start.
    SpecsUnread,
    /// The files that instances were made for have not been looked at since the start.
    FilesUnread,
}
