//! A person tries a finally failed instance again (design, 'Pause, cancel, retry').

use std::sync::Arc;

use super::super::turn::Turn;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};

/// `schedctl retry`: READY again under the definition in force, with a fresh `maxAttempts`.
pub(in super::super) fn request(
    turn: &mut Turn<'_>,
    id: &InstanceId,
    stored: Option<Instance>,
) -> Answer {
    let refuse = |detail: String| Err(Rejection::new(RejectionCode::Conflict, detail));
    let held = turn.state.instances.get(id).cloned();
    // The row was read before this turn: it counts only if nothing has happened to it since.
    let ended = turn.state.instances.ended(id).map(|e| (e.state, e.attempt));
    let outdated = held.is_none()
        && stored.as_ref().is_some_and(|i| {
            matches!(i.state, InstanceState::Failed | InstanceState::Timeout)
                && ended != Some((i.state, i.attempt))
        });
    if outdated {
        return refuse(format!("instance {id} has changed in the meantime; look at it again"));
    }
    let Some(i) = held.or(stored) else {
        return Err(Rejection::new(RejectionCode::NotFound, format!("no instance {id}")));
    };
    match i.state {
        InstanceState::Failed | InstanceState::Timeout => {}
        InstanceState::Succeeded | InstanceState::Cancelled => {
            return refuse(format!(
                "instance {id} is {}; only a failed one can be tried again; to run the task for \
                 that cycle anew: schedctl run {} --cycle {}",
                i.state,
                i.task_id,
                i.cycle.label()
            ));
        }
        InstanceState::Pending
        | InstanceState::Blocked
        | InstanceState::Ready
        | InstanceState::Running => {
            return refuse(format!("instance {id} is {}; it has not ended yet", i.state));
        }
    }
    let in_force = turn.state.registry.row(&i.task_id).and_then(|r| r.revision);
    let revision = in_force.unwrap_or(i.revision);
    if let Some(key) = &i.dedup_key
        && let Some(holder) = turn.state.instances.dedup_holder(i.task_id.base(), key)
        && holder != id
    {
        return refuse(format!("dedupKey {key} of instance {id} is taken by instance {holder}"));
    }
    let Some(spec) =
        turn.state.registry.revision(&i.task_id, revision).map(|r| Arc::clone(&r.spec))
    else {
        return refuse(format!("the definition of {} is gone", i.task_id));
    };
    if turn.state.instances.get(id).is_none() {
        turn.revive(i);
    }
    turn.transition(id, InstanceState::Ready, None, |i| {
        i.revision = revision;
        i.max_attempts = i.faults + spec.retry.max_attempts;
        i.requeues = 0;
        i.spawn_retries = 0;
        i.queue = spec.queue.clone();
        i.static_params = Arc::new(spec.static_params.clone());
        i.finished_at = None;
        i.stopping = None;
    });
    Ok(Reply::Done)
}
