//! The tree from an instance down to the root causes, as the store has it.

use std::collections::BTreeSet;

use crate::limits;
use crate::model::explain::{Blocker, InstanceExplanation};
use crate::model::history::{History, HistoryError};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState, Reason};
use crate::model::spec::{DepType, Strength};
use crate::model::view::Upstream;

/// Edges below one another that are followed.
const DEPTH_MAX: usize = 50;

/// Goes up the edges that are not satisfied.
struct Walk<'a> {
    history: &'a dyn History,
    seen: BTreeSet<InstanceId>,
    left: usize,
}

/// The upstreams that hold an instance back, or did when it was cancelled because of them.
pub(super) fn of(
    history: &dyn History,
    told: &InstanceExplanation,
) -> Result<Vec<Blocker>, HistoryError> {
    if !follows(told.state, told.reason) {
        return Ok(Vec::new());
    }
    let mut walk = Walk { history, seen: BTreeSet::new(), left: limits::BLOCKERS_MAX };
    let edges = told.edges.iter().filter(|edge| !edge.satisfied);
    let edges = edges.map(|e| (e.task_id.clone(), e.instance_id.clone(), (e.strength, e.dep_type)));
    walk.blockers(edges.collect(), 0)
}

/// Whether an instance in this state is held back by, or ended because of, what is above it.
const fn follows(state: InstanceState, reason: Option<Reason>) -> bool {
    match state {
        InstanceState::Pending | InstanceState::Blocked => true,
        InstanceState::Cancelled => {
            matches!(reason, Some(Reason::UpstreamSkipped | Reason::DependencyTimeout))
        }
        InstanceState::Ready
        | InstanceState::Running
        | InstanceState::Succeeded
        | InstanceState::Failed
        | InstanceState::Timeout => false,
    }
}

impl Walk<'_> {
    fn blockers(
        &mut self,
        edges: Vec<(TaskId, Option<InstanceId>, (Strength, DepType))>,
        depth: usize,
    ) -> Result<Vec<Blocker>, HistoryError> {
        let mut found = Vec::new();
        for (task, id, (strength, dep_type)) in edges {
            if self.left == 0 || depth > DEPTH_MAX {
                break;
            }
            let row = id.as_ref().map(|id| self.history.instance(id)).transpose()?.flatten();
            let holds =
                row.as_ref().is_none_or(|row| !Upstream::of(row).satisfies(strength, dep_type));
            if !holds {
                continue;
            }
            self.left -= 1;
            found.push(match row {
                Some(row) => self.blocker(&row, depth)?,
                None => unknown(task, id),
            });
        }
        Ok(found)
    }

    fn blocker(&mut self, row: &Instance, depth: usize) -> Result<Blocker, HistoryError> {
        let told = InstanceExplanation::of(row);
        let repeated = !self.seen.insert(row.instance_id.clone());
        let mut blocker = Blocker {
            instance_id: Some(told.instance_id),
            task_id: told.task_id,
            cycle: Some(told.cycle),
            state: Some(told.state),
            reason: told.reason,
            since: told.since,
            is_final: told.is_final,
            exit_code: told.exit_code,
            signal: told.signal,
            error_code: told.error_code,
            message: told.message,
            log: Vec::new(),
            repeated,
            blocked_by: Vec::new(),
        };
        if !repeated && follows(row.state, row.reason) {
            let edges = row.edges.iter();
            let edges =
                edges.map(|e| (e.task_id.clone(), e.instance_id.clone(), (e.strength, e.dep_type)));
            blocker.blocked_by = self.blockers(edges.collect(), depth + 1)?;
        }
        Ok(blocker)
    }
}

/// An open edge, or one on an instance that is no longer in the store.
fn unknown(task_id: TaskId, instance_id: Option<InstanceId>) -> Blocker {
    Blocker {
        instance_id,
        task_id,
        cycle: None,
        state: None,
        reason: None,
        since: None,
        is_final: false,
        exit_code: None,
        signal: None,
        error_code: None,
        message: None,
        log: Vec::new(),
        repeated: false,
        blocked_by: Vec::new(),
    }
}
