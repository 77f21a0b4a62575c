//! Filling in past cycles: what is asked for and what came of it (docs/waves.md, rule 15).

use serde::{Deserialize, Serialize};

use super::id::{InstanceId, TaskId};
use super::time::Timestamp;

/// The body of a backfill (contract §6).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackfillBody {
    /// The first cycle's label.
    pub from: String,
    /// The last cycle's label.
    pub to: String,
    /// Cycles that have SUCCEEDED or are under way too.
    #[serde(default)]
    pub again: bool,
    /// The newest cycle is made, and so runs, first.
    #[serde(default)]
    pub newest_first: bool,
    /// Say what would be made, and make nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a backfill made; on a dry run, what it would make, with the ids it would have now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backfilled {
    /// The task's new instances, in the order in which they were made.
    pub instances: Vec<InstanceId>,
    /// The first cycle, as the range was taken.
    pub from: String,
    /// The last cycle, as the range was taken.
    pub to: String,
    /// What became of each nominal time in the range that has come, in the order in which they
    /// were gone through.
    pub cycles: Vec<CycleFill>,
    /// The first nominal time in the range that is still to come: it and those after it are left
    /// to the task's triggers.
    pub not_due_from: Option<Timestamp>,
    /// Nothing was made; the ids are of nobody.
    #[serde(default)]
    pub dry_run: bool,
    /// The key was seen before: this is what was made then.
    pub repeated: bool,
}

/// What became of one nominal time of a range: an instance, or why none was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleFill {
    /// The cycle's label.
    pub cycle: String,
    /// The instance's scheduled time.
    pub scheduled_time: Timestamp,
    /// The new instance.
    pub instance_id: Option<InstanceId>,
    /// Why there is none.
    pub skipped: Option<Skipped>,
    /// What was made below it, or below the one that has SUCCEEDED before.
    pub downstream: Vec<MadeBelow>,
}

/// Why a nominal time got no new instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// What to branch on.
    pub reason: SkipReason,
    /// The instance that is in its place.
    pub instance_id: InstanceId,
}

/// Why a nominal time got no new instance: what to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SkipReason {
    /// An instance of the cycle has SUCCEEDED.
    Succeeded,
    /// An instance of the cycle is open: it waits, runs or will be tried again.
    Open,
    /// The `dedupKey` is taken.
    Duplicate,
}

/// An instance of a derived task that was made with a root, or below one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeBelow {
    /// The task.
    pub task_id: TaskId,
    /// Its new instance.
    pub instance_id: InstanceId,
}
