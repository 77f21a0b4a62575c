//! What is kept of an ended instance, and how an upstream stands for those that wait for it.

use std::sync::Arc;

use serde_json::Value;

use crate::model::cycle::Cycle;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Cause, Instance, InstanceState, Reason};
use crate::model::output::Outputs;
use crate::model::spec::JsonMap;
use crate::model::time::Timestamp;
use crate::model::view::LastInstance;

/// What is kept of an ended instance.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ended {
    pub(super) instance_id: InstanceId,
    pub(super) task_id: TaskId,
    pub(super) created_seq: u64,
    pub(super) cycle: Cycle,
    pub(super) scheduled_time: Timestamp,
    pub(super) attempt: u32,
    pub(super) revision: u64,
    pub(super) state: InstanceState,
    pub(super) reason: Option<Reason>,
    pub(super) runtime_params: Arc<JsonMap>,
    pub(super) output: Option<Value>,
    pub(super) outputs: Option<Arc<Outputs>>,
    pub(super) last: LastInstance,
    /// A backfill made it.
    pub(super) is_backfill: bool,
}

/// How an upstream stands, as an edge sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Still at it, or a retry is to come.
    Open,
    /// Ended well.
    Succeeded,
    /// Ended badly for good, or was cancelled.
    Failed,
    /// Was skipped: its dependents follow.
    Skipped,
}

/// How an instance in this state stands.
pub(super) fn standing(state: InstanceState, reason: Option<Reason>, open: bool) -> Standing {
    match state {
        _ if open => Standing::Open,
        InstanceState::Succeeded => Standing::Succeeded,
        InstanceState::Cancelled
            if matches!(
                reason,
                Some(
                    Reason::ConditionFalse
                        | Reason::UpstreamSkipped
                        | Reason::SkippedByUser
                        | Reason::FileGone
                )
            ) =>
        {
            Standing::Skipped
        }
        InstanceState::Pending
        | InstanceState::Blocked
        | InstanceState::Ready
        | InstanceState::Running
        | InstanceState::Failed
        | InstanceState::Timeout
        | InstanceState::Cancelled => Standing::Failed,
    }
}

/// Whether a person may have an ended instance tried again.
pub(super) fn may_be_retried(ended: InstanceState) -> bool {
    matches!(ended, InstanceState::Failed | InstanceState::Timeout)
}

/// Whether a backfill made an instance.
pub(super) fn is_backfill(i: &Instance) -> bool {
    matches!(i.trigger, Cause::Backfill { .. })
}

/// What a list of tasks shows of its newest instance.
pub(super) fn last(i: &Instance) -> LastInstance {
    LastInstance {
        instance_id: i.instance_id.clone(),
        state: i.state,
        cycle: i.cycle.label().to_owned(),
        started_at: i.started_at,
        finished_at: i.finished_at,
        error_code: i.error_code.clone(),
    }
}

/// The digest of an instance that has ended.
pub(super) fn ended(i: &Instance) -> Ended {
    Ended {
        last: last(i),
        is_backfill: is_backfill(i),
        instance_id: i.instance_id.clone(),
        task_id: i.task_id.clone(),
        created_seq: i.created_seq,
        cycle: i.cycle.clone(),
        scheduled_time: i.scheduled_time,
        attempt: i.attempt,
        revision: i.revision,
        state: i.state,
        reason: i.reason,
        runtime_params: Arc::clone(&i.runtime_params),
        output: i.output.clone(),
        outputs: i.outputs.clone(),
    }
}
