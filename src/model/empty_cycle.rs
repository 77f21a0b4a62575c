//! A cycle in which a task fired but made no instance (docs/waves.md, rule 7).

use serde::{Deserialize, Serialize};

use super::cycle::Cycle;
use super::id::TaskId;
use super::record::FireOutcome;
use super::time::Timestamp;

/// A cycle of a task that has fires but no instance: it ends open edges to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyCycle {
    /// The task whose fires they were.
    pub task_id: TaskId,
    /// The cycle, never a run.
    pub cycle: Cycle,
    /// The first nominal time of it that made nothing.
    pub first: Timestamp,
    /// The last one so far.
    pub last: Timestamp,
    /// What became of that one.
    pub outcome: FireOutcome,
    /// More words of its ledger row.
    pub reason: Option<String>,
}
