//! Why a task has no instance now, and what became of one of its times.

use serde::{Deserialize, Serialize};

use super::PauseExplanation;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState, Reason};
use crate::model::record::Fire;
use crate::model::time::Timestamp;
use crate::model::view::TaskStatus;

/// Why a task has no instance now, or did not run at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskExplanation {
    /// Which.
    pub task_id: TaskId,
    /// Whether it gets instances.
    pub status: TaskStatus,
    /// All of the below in sentences, most important first.
    pub summary: Vec<String>,
    /// What starts it, in short.
    pub schedule: String,
    /// Whether it has no triggers of its own: it runs after its upstreams.
    pub is_derived: bool,
    /// The upstreams that it names.
    pub upstreams: Vec<TaskId>,
    /// Those of them that no file defines.
    pub unresolved: Vec<TaskId>,
    /// Who holds it, its queue or everything.
    pub pauses: Vec<PauseExplanation>,
    /// A rollback keeps an earlier revision in force.
    pub pinned: bool,
    /// What is wrong with its file now, in words.
    pub spec_errors: Vec<String>,
    /// The lower version whose triggers fire for this one.
    pub fires_with: Option<TaskId>,
    /// When it fires next.
    pub next_fire_time: Option<Timestamp>,
    /// The cycle that this will be.
    pub next_cycle: Option<String>,
    /// What of that fire a pause or the like makes.
    pub next_note: Option<String>,
    /// Open instances.
    pub open: u64,
    /// The newest instances, newest first.
    pub recent: Vec<RecentInstance>,
    /// Of the time asked for.
    pub at: Option<FireExplanation>,
}

/// An instance of a task, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract, documented in `Instance`")]
pub struct RecentInstance {
    pub instance_id: InstanceId,
    pub cycle: String,
    pub state: InstanceState,
    pub reason: Option<Reason>,
    pub error_code: Option<String>,
    pub scheduled_time: Timestamp,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub next_retry_at: Option<Timestamp>,
}

/// What became of one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FireExplanation {
    /// The time asked for.
    pub at: Timestamp,
    /// The triggers that have it, by their keys.
    pub triggers: Vec<String>,
    /// The row of the ledger that counts it.
    pub fire: Option<Fire>,
    /// The instance that it made, or whose nominal time it is.
    pub instance: Option<RecentInstance>,
    /// The nearest time of any trigger before it.
    pub before: Option<Timestamp>,
    /// The nearest after it.
    pub after: Option<Timestamp>,
    /// Whether it has not come yet.
    pub to_come: bool,
    /// When the task was first defined: nothing before that is a fire of it.
    pub defined_at: Timestamp,
}

impl RecentInstance {
    /// A row in short.
    #[must_use]
    pub fn of(i: &Instance) -> Self {
        Self {
            instance_id: i.instance_id.clone(),
            cycle: i.cycle.label().to_owned(),
            state: i.state,
            reason: i.reason,
            error_code: i.error_code.clone(),
            scheduled_time: i.scheduled_time,
            created_at: i.created_at,
            finished_at: i.finished_at,
            next_retry_at: i.next_retry_at,
        }
    }
}
