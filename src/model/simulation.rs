//! A simulation's outcome: what the scheduler is going to do, as people and programs see it.

mod basis;
mod deadline;

use serde::{Deserialize, Serialize};

pub(crate) use self::basis::quantile;
pub use self::basis::{Basis, TaskHistory};
pub use self::deadline::{DeadlineTime, Deadlines};
use super::id::{ExecutorId, InstanceId, QueueName, TaskId};
use super::instance::{InstanceState, Reason};
use super::record::FireOutcome;
use super::time::Timestamp;

/// What is going to happen between two times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulationView {
    /// From here, included.
    pub from: Timestamp,
    /// To here, not included.
    pub to: Timestamp,
    /// All of it in few numbers.
    pub summary: SimulationSummary,
    /// Instances that end after their deadline, or have not ended by then.
    pub late: Vec<LateInstance>,
    /// Instances that are made or still open in that time, in the order of their creation.
    pub instances: Vec<SimulatedInstance>,
    /// Nominal fires that make no instance, one entry per task and outcome.
    pub skipped: Vec<SkippedFires>,
    /// The times at which most time triggers fire together, the most first.
    pub peaks: Vec<FirePeak>,
    /// Queues.
    pub queues: Vec<SimulatedQueue>,
    /// Executors.
    pub executors: Vec<SimulatedExecutor>,
    /// Slots in use over time: each entry holds until the next.
    pub slots: Vec<SlotUse>,
    /// What still waits at the end, and for what.
    pub waiting: Vec<WaitingInstance>,
    /// Tasks that only a file or an event starts: neither comes by itself.
    pub unstarted: Vec<UnstartedTask>,
    /// Tasks that ran without a history: how long they took was assumed.
    pub assumed: Vec<TaskId>,
}

/// A simulation in few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the states' names speak")]
pub struct SimulationSummary {
    /// Instances in all.
    pub instances: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub timeout: u64,
    pub cancelled: u64,
    /// Not ended for good by the end of the time.
    pub open: u64,
    /// Those that end too late.
    pub late: u64,
    /// Nominal fires that make no instance.
    pub skipped_fires: u64,
    /// Slots of all executors.
    pub slots: u64,
    /// Most of them in use at a time.
    pub peak_slots: u64,
    /// When that is so first.
    pub peak_at: Option<Timestamp>,
    /// The longest wait of a READY instance for its start, in milliseconds.
    pub longest_wait_ms: u64,
}

/// One instance of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedInstance {
    /// Its id.
    pub instance_id: InstanceId,
    /// Its task.
    pub task_id: TaskId,
    /// Its cycle's label.
    pub cycle: String,
    /// The kind of what made it.
    pub trigger: String,
    /// The nominal time.
    pub scheduled_time: Timestamp,
    /// Its queue.
    pub queue: QueueName,
    /// It was there before the simulation began.
    pub taken_over: bool,
    /// When made.
    pub created_at: Timestamp,
    /// When first READY.
    pub ready_at: Option<Timestamp>,
    /// When first started.
    pub started_at: Option<Timestamp>,
    /// When it ended for good.
    pub finished_at: Option<Timestamp>,
    /// Where it is at its end, or at that of the simulation.
    pub state: InstanceState,
    /// Why.
    pub reason: Option<Reason>,
    /// How long it stood READY, over all attempts.
    pub queue_wait_ms: u64,
    /// By when it should have ended.
    pub deadline: Option<Timestamp>,
    /// It did not.
    pub late: bool,
    /// Attempts, oldest first.
    pub attempts: Vec<SimulatedAttempt>,
}

/// One attempt of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedAttempt {
    /// From 1.
    pub attempt: u32,
    /// Where.
    pub executor_id: ExecutorId,
    /// On which of its slots, from 1: the first that is free.
    pub slot: u32,
    /// When it became READY.
    pub ready_at: Timestamp,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; `None`: it is still on.
    pub finished_at: Option<Timestamp>,
    /// How it ended, RUNNING if it is still on.
    pub state: InstanceState,
    /// How it failed.
    pub error_code: Option<String>,
}

/// An instance that ends too late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LateInstance {
    /// Which.
    pub instance_id: InstanceId,
    /// Its task.
    pub task_id: TaskId,
    /// Its cycle's label.
    pub cycle: String,
    /// Where it is at its end, or at that of the simulation.
    pub state: InstanceState,
    /// By when it should have ended.
    pub deadline: Timestamp,
    /// When it ends; `None`: not within the simulation.
    pub finished_at: Option<Timestamp>,
    /// By how much it is late, to the end of the simulation if it does not end.
    pub late_by_ms: u64,
}

/// Nominal fires of a task that made no instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedFires {
    /// The task.
    pub task_id: TaskId,
    /// What became of them.
    pub outcome: FireOutcome,
    /// How many.
    pub count: u64,
    /// The first nominal time.
    pub from: Timestamp,
    /// The last nominal time.
    pub to: Timestamp,
    /// What is told of the first.
    pub reason: Option<String>,
}

/// A time at which several time triggers fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirePeak {
    /// When.
    pub at: Timestamp,
    /// How many instances they make, what waits for those not counted.
    pub instances: u64,
    /// Some of the tasks.
    pub tasks: Vec<TaskId>,
}

/// A queue in a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedQueue {
    /// Which.
    pub name: QueueName,
    /// Attempts that started from it.
    pub started: u64,
    /// How long the middle one of them stood READY.
    pub median_wait_ms: u64,
    /// How long that stood READY which waited longest, whether or not it started.
    pub max_wait_ms: u64,
    /// Most that were READY at a time.
    pub peak_ready: u64,
    /// When that was so first.
    pub peak_at: Option<Timestamp>,
}

/// An executor in a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedExecutor {
    /// Which.
    pub executor_id: ExecutorId,
    /// Attempts at a time.
    pub slots: u32,
    /// Most slots in use at a time.
    pub peak: u32,
    /// Time of all its slots together in which they were in use.
    pub busy_ms: u64,
}

/// How many attempts run, and how many instances wait for their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotUse {
    /// Since when.
    pub at: Timestamp,
    /// RUNNING.
    pub running: u64,
    /// READY.
    pub ready: u64,
}

/// What has not started, or waits for another attempt, at the end of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingInstance {
    /// Which.
    pub instance_id: InstanceId,
    /// Its task.
    pub task_id: TaskId,
    /// Its cycle's label.
    pub cycle: String,
    /// Where it is.
    pub state: InstanceState,
    /// Why.
    pub reason: Option<Reason>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Upstreams that have not ended well, or of which there is no instance for it.
    pub waits_for: Vec<TaskId>,
}

/// A task that nothing in the simulation starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnstartedTask {
    /// Which.
    pub task_id: TaskId,
    /// What it waits for, such as `event orders.arrived`.
    pub waits_for: Vec<String>,
}
