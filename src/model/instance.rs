//! One run of one task for one fire: its states, the only table of moves, and all that is kept.
//!
//! It is longer than 400 lines because an instance's states, reasons and stored form are read
//! together.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cycle::Cycle;
use super::id::{ExecutorId, InstanceId, Lease, QueueName, TaskId};
use super::output::Outputs;
use super::priority::Priority;
use super::spec::{DepType, JsonMap, Strength};
use super::time::Timestamp;

/// The eight states (requirement B1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InstanceState {
    /// Created; waits for time or for dependencies.
    Pending,
    /// A dependency failed for good; goes on when that is repaired.
    Blocked,
    /// May run; waits for a slot.
    Ready,
    /// An attempt is on.
    Running,
    /// Ended well. Final.
    Succeeded,
    /// Ended badly; final unless a retry is to come.
    Failed,
    /// Took too long; final unless a retry is to come.
    Timeout,
    /// Ended without success by decision. Final.
    Cancelled,
}

impl InstanceState {
    /// All states, in the order of the requirements.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Blocked,
        Self::Ready,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Timeout,
        Self::Cancelled,
    ];

    /// Whether an instance in this state may move to `to`: the only transition table.
    #[must_use]
    pub const fn may_become(self, to: Self) -> bool {
        match self {
            Self::Pending => matches!(to, Self::Ready | Self::Blocked | Self::Cancelled),
            Self::Blocked => matches!(to, Self::Pending | Self::Ready | Self::Cancelled),
            Self::Ready => matches!(to, Self::Running | Self::Cancelled),
            Self::Running => matches!(to, Self::Succeeded | Self::Failed | Self::Timeout),
            Self::Failed | Self::Timeout => matches!(to, Self::Ready | Self::Cancelled),
            Self::Succeeded | Self::Cancelled => false,
        }
    }

    /// The name as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Blocked => "BLOCKED",
            Self::Ready => "READY",
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Timeout => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Reads the contract's name, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why an instance is where it is (design, end of 'Pause, cancel, retry').
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// PENDING: its own time has not come (`--at`).
    WaitingTrigger,
    /// PENDING: an upstream is not done.
    WaitingDependency,
    /// BLOCKED: a strong upstream finally failed or was cancelled.
    UpstreamFailed,
    /// BLOCKED or CANCELLED: a strong upstream was skipped.
    UpstreamSkipped,
    /// BLOCKED: the upstream's definition is gone.
    SpecRemoved,
    /// BLOCKED: the condition could not be evaluated.
    ConditionError,
    /// READY: the instance, its task, its queue or everything is paused. Derived, never stored.
    Paused,
    /// READY: no executor fits. Derived, never stored.
    NoExecutor,
    /// READY: a quota is used up. Derived, never stored.
    Quota,
    /// READY: no slot is free. Derived, never stored.
    NoSlot,
    /// RUNNING: its processes are being ended.
    Cancelling,
    /// RUNNING: its processes are stopped.
    Frozen,
    /// FAILED, TIMEOUT: a retry is to come.
    RetryWait,
    /// CANCELLED by a person.
    CancelledByUser,
    /// CANCELLED: its condition was false.
    ConditionFalse,
    /// CANCELLED: waited too long for dependencies.
    DependencyTimeout,
    /// CANCELLED for a newer instance.
    Replaced,
    /// CANCELLED by `skip`.
    SkippedByUser,
    /// CANCELLED: parameters missing or bad when its edges held.
    RejectedParams,
    /// CANCELLED: waited longer than anything may.
    Expired,
    /// CANCELLED: the file that it was made for went, or got new content, before the first start.
    FileGone,
}

impl Reason {
    /// The name as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WaitingTrigger => "WAITING_TRIGGER",
            Self::WaitingDependency => "WAITING_DEPENDENCY",
            Self::UpstreamFailed => "UPSTREAM_FAILED",
            Self::UpstreamSkipped => "UPSTREAM_SKIPPED",
            Self::SpecRemoved => "SPEC_REMOVED",
            Self::ConditionError => "CONDITION_ERROR",
            Self::Paused => "PAUSED",
            Self::NoExecutor => "NO_EXECUTOR",
            Self::Quota => "QUOTA",
            Self::NoSlot => "NO_SLOT",
            Self::Cancelling => "CANCELLING",
            Self::Frozen => "FROZEN",
            Self::RetryWait => "RETRY_WAIT",
            Self::CancelledByUser => "CANCELLED_BY_USER",
            Self::ConditionFalse => "CONDITION_FALSE",
            Self::DependencyTimeout => "DEPENDENCY_TIMEOUT",
            Self::Replaced => "REPLACED",
            Self::SkippedByUser => "SKIPPED_BY_USER",
            Self::RejectedParams => "REJECTED_PARAMS",
            Self::Expired => "EXPIRED",
            Self::FileGone => "FILE_GONE",
        }
    }
}

/// What made an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Cause {
    /// A cron time.
    Cron {
        /// The expression.
        expr: String,
    },
    /// A time of a fixed rate.
    Every {
        /// The period.
        period_ms: u64,
    },
    /// The machine's boot.
    Boot,
    /// A file.
    File {
        /// Its path.
        path: String,
    },
    /// A named event.
    Event {
        /// Its name.
        name: String,
        /// What came with it.
        params: JsonMap,
    },
    /// Another task's end.
    Task {
        /// The other task.
        task_id: TaskId,
        /// Its instance.
        instance_id: InstanceId,
        /// How it ended.
        state: InstanceState,
    },
    /// A person or program (`schedctl run`).
    Submit {
        /// Who.
        uid: u32,
    },
    /// A person or program that fills in a past cycle (`schedctl backfill`).
    Backfill {
        /// Who.
        uid: u32,
        /// The key of the trigger whose nominal fire it makes up for; `None`: a cycle's, of a task
        /// that no time starts.
        trigger: Option<String>,
    },
    /// A wave of an upstream root.
    Wave {
        /// The root instance.
        root: InstanceId,
    },
}

impl Cause {
    /// The kind's name, as `SCHED_TRIGGER` and lists show it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Every { .. } => "every",
            Self::Boot => "boot",
            Self::File { .. } => "file",
            Self::Event { .. } => "event",
            Self::Task { .. } => "task",
            Self::Submit { .. } => "submit",
            Self::Backfill { .. } => "backfill",
            Self::Wave { .. } => "wave",
        }
    }
}

/// An edge of one instance: the upstream task and the instance of it that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The upstream.
    pub task_id: TaskId,
    /// What of it is waited for.
    pub dep_type: DepType,
    /// Whether its failure holds this one back.
    pub strength: Strength,
    /// The instance that counts; `None`: the edge is open.
    pub instance_id: Option<InstanceId>,
    /// Which cycle of the upstream is waited for, in its own units: 0 its same one.
    #[serde(default)]
    pub cycle_offset: i32,
    /// Its condition has no answer from that instance: it takes the next one.
    #[serde(default)]
    pub unanswered: bool,
}

/// Who paused something, why and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// When.
    pub since: Timestamp,
    /// Who.
    pub uid: u32,
    /// Why.
    pub reason: Option<String>,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
}

/// What becomes of a running instance once its processes are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Stopping {
    /// CANCELLED(CANCELLED_BY_USER).
    Cancel,
    /// CANCELLED(REPLACED).
    Replace,
    /// FAILED(PREEMPTED), then READY: it gives up its slot.
    Preempt,
}

impl Stopping {
    /// Whether it does not come back by itself.
    #[must_use]
    pub const fn is_for_good(self) -> bool {
        match self {
            Self::Cancel | Self::Replace => true,
            Self::Preempt => false,
        }
    }
}

/// One attempt of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// From 1.
    pub attempt: u32,
    /// Its fence.
    pub lease: Lease,
    /// Where.
    pub executor_id: ExecutorId,
    /// The boot of the machine in which it was dispatched.
    pub boot_id: Arc<str>,
    /// When its process started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Exit status, if it exited.
    pub exit_code: Option<i32>,
    /// Signal number, if one ended it.
    pub signal: Option<i32>,
    /// How it failed; `None`: it did not, or is still on.
    pub error_code: Option<String>,
    /// Milliseconds of processor time in user mode.
    pub user_ms: Option<u64>,
    /// Milliseconds of processor time in the kernel.
    pub system_ms: Option<u64>,
    /// Peak memory of the largest process.
    pub max_rss_bytes: Option<u64>,
    /// Bytes of output.
    pub output_bytes: Option<u64>,
    /// Milliseconds for which its processes were stopped by a freeze; `None`: never.
    #[serde(default)]
    pub frozen_ms: Option<u64>,
}

/// One instance: all that is remembered of it. This is the stored form.
///
/// What is large and seldom changes is shared, so that a copy costs little: each move makes one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its id.
    pub instance_id: InstanceId,
    /// Creation order over all instances.
    pub created_seq: u64,
    /// Its task.
    pub task_id: TaskId,
    /// The task's version.
    pub version: u32,
    /// The definition's revision: in force until the first start, pinned from then on.
    pub revision: u64,
    /// Where it is.
    pub state: InstanceState,
    /// Why, as far as stored.
    pub reason: Option<Reason>,
    /// Attempts begun; also the fence of reports.
    pub attempt: u32,
    /// Attempts that may end by the task's own fault, the person's retries included.
    pub max_attempts: u32,
    /// Attempts that ended by the task's own fault.
    pub faults: u32,
    /// Times queued again for a lost executor.
    pub requeues: u32,
    /// Times queued again for a preemption.
    #[serde(default)]
    pub preemptions: u32,
    /// Times queued again because a start failed for want of resources.
    pub spawn_retries: u32,
    /// Business cycle.
    pub cycle: Cycle,
    /// The nominal time.
    pub scheduled_time: Timestamp,
    /// What made it.
    pub trigger: Cause,
    /// The root of the wave that made it or last took it up; itself for a root.
    pub root: InstanceId,
    /// Own priority.
    pub priority: Priority,
    /// Queue.
    pub queue: QueueName,
    /// Where it runs or last ran.
    pub executor_id: Option<ExecutorId>,
    /// When made.
    pub created_at: Timestamp,
    /// Not ready before this (`--at`).
    pub not_before: Option<Timestamp>,
    /// When it last became ready; for a waiting file's new content, when the old one's did.
    pub ready_at: Option<Timestamp>,
    /// Order among those that became ready at one time.
    pub ready_seq: u64,
    /// When the newest attempt's process started.
    pub started_at: Option<Timestamp>,
    /// When the newest attempt ended, or it was cancelled.
    pub finished_at: Option<Timestamp>,
    /// When the next attempt is due.
    pub next_retry_at: Option<Timestamp>,
    /// Of the newest attempt.
    pub exit_code: Option<i32>,
    /// Of the newest attempt.
    pub signal: Option<i32>,
    /// Of the newest attempt.
    pub error_code: Option<String>,
    /// What is to be known of the newest end.
    pub message: Option<String>,
    /// Of the definition, as of the revision.
    pub static_params: Arc<JsonMap>,
    /// Given by the trigger or by `-p`; wins over what flows down the edges.
    pub given_params: Arc<JsonMap>,
    /// What the task gets; complete once it is READY.
    pub runtime_params: Arc<JsonMap>,
    /// The task's result.
    pub output: Option<Value>,
    /// Files that it was to leave behind; only of one that SUCCEEDED and declares some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Arc<Outputs>>,
    /// Upstream edges.
    pub edges: Arc<Vec<Edge>>,
    /// Waits for nothing, whatever its definition says (`--ignore-deps`).
    pub ignore_deps: bool,
    /// Runs although dependencies did not hold.
    pub degraded: bool,
    /// Held by a person; while RUNNING: its processes are stopped.
    pub paused: Option<Pause>,
    /// What becomes of it once its processes are gone.
    pub stopping: Option<Stopping>,
    /// Who ordered that it ends, or ended; `None`: nobody, the scheduler or the daemon's stop.
    #[serde(default)]
    pub cancelled_by: Option<u32>,
    /// READY by a person's retry, but not before its upstreams that are tried again have ended.
    #[serde(default)]
    pub awaits_upstream: bool,
    /// Its key, filled.
    pub dedup_key: Option<String>,
    /// When waiting for dependencies runs out.
    pub dependency_deadline: Option<Timestamp>,
    /// Since when that clock stands still, because something holds it: the instance, its task, its
    /// queue or everything is paused.
    #[serde(default)]
    pub held_since: Option<Timestamp>,
    /// When it has waited for longer than anything may; `None`: an earlier version made it.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// All attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

impl Instance {
    /// Whether it may still move by itself: not final, and FAILED or TIMEOUT only with a retry
    /// to come.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match self.state {
            InstanceState::Pending
            | InstanceState::Blocked
            | InstanceState::Ready
            | InstanceState::Running => true,
            InstanceState::Failed | InstanceState::Timeout => self.next_retry_at.is_some(),
            InstanceState::Succeeded | InstanceState::Cancelled => false,
        }
    }

    /// Whether it waits for its edges.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        matches!(self.state, InstanceState::Pending | InstanceState::Blocked)
    }

    /// The file that it was made for, until an attempt has had it.
    #[must_use]
    pub fn awaited_file(&self) -> Option<&str> {
        match &self.trigger {
            Cause::File { path } if self.attempt == 0 && self.is_open() => Some(path),
            Cause::File { .. }
            | Cause::Cron { .. }
            | Cause::Every { .. }
            | Cause::Boot
            | Cause::Event { .. }
            | Cause::Task { .. }
            | Cause::Submit { .. }
            | Cause::Backfill { .. }
            | Cause::Wave { .. } => None,
        }
    }

    /// Whether it may stand in the dispatch queue: one that is held, or that waits for an upstream
    /// which is tried again, does not, so it blocks nobody.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.state == InstanceState::Ready && self.paused.is_none() && !self.awaits_upstream
    }

    /// Whether its processes are stopped by a person's wish.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.state == InstanceState::Running && self.paused.is_some()
    }

    /// Adds the time since the freeze, which ends now, to the newest attempt's.
    pub fn count_frozen(&mut self, now: Timestamp) {
        if self.is_frozen()
            && let Some(pause) = &self.paused
            && let Some(attempt) = self.attempts.last_mut()
        {
            let frozen = u64::try_from(now.since(pause.since).as_millis()).unwrap_or(u64::MAX);
            attempt.frozen_ms = Some(attempt.frozen_ms.unwrap_or(0).saturating_add(frozen));
        }
    }

    /// The newest attempt's lease.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        self.attempts.last().map(|a| a.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::InstanceState::{
        Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded, Timeout,
    };
    use super::*;

    /// The table of requirement B1, written out once more.
    const LEGAL: [(InstanceState, &[InstanceState]); 8] = [
        (Pending, &[Ready, Blocked, Cancelled]),
        (Blocked, &[Pending, Ready, Cancelled]),
        (Ready, &[Running, Cancelled]),
        (Running, &[Succeeded, Failed, Timeout]),
        (Succeeded, &[]),
        (Failed, &[Ready, Cancelled]),
        (Timeout, &[Ready, Cancelled]),
        (Cancelled, &[]),
    ];

    #[test]
    fn all_sixty_four_moves_are_decided_by_the_table() {
        assert_eq!(LEGAL.map(|(from, _)| from), InstanceState::ALL, "each state has its row");
        for (from, legal) in LEGAL {
            for to in InstanceState::ALL {
                assert_eq!(from.may_become(to), legal.contains(&to), "{from} -> {to}");
            }
        }
    }
}
