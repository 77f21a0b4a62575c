//! A person tries a finally failed instance again (design, 'Pause, cancel, retry').

use std::sync::Arc;

use super::super::fill;
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
    let mut i =
        failed_for_good(turn, id, stored).map_err(|(code, detail)| Rejection::new(code, detail))?;
    let refuse = |detail: String| Err(Rejection::new(RejectionCode::Conflict, detail));
    let in_force = turn.state.registry.row(&i.task_id).and_then(|r| r.revision);
    i.revision = in_force.unwrap_or(i.revision);
    if let Some(key) = &i.dedup_key
        && let Some(holder) = turn.state.instances.dedup_holder(i.task_id.base(), key)
        && holder != id
    {
        return refuse(format!("dedupKey {key} of instance {id} is taken by instance {holder}"));
    }
    let Some(spec) = turn.state.spec_of(&i) else {
        return refuse(format!("the definition of {} is gone", i.task_id));
    };
    let params = match fill::complete(turn.state, &spec, &i) {
        Ok(params) => params,
        Err(problem) => {
            return refuse(format!(
                "instance {id} does not fit the definition in force: {problem}"
            ));
        }
    };
    let revision = i.revision;
    if turn.state.instances.get(id).is_none() {
        turn.revive(i);
    }
    turn.transition(id, InstanceState::Ready, None, |i| {
        i.revision = revision;
        i.runtime_params = params;
        i.max_attempts = i.faults + spec.retry.max_attempts;
        i.requeues = 0;
        i.preemptions = 0;
        i.spawn_retries = 0;
        i.queue = spec.queue.clone();
        i.static_params = Arc::new(spec.static_params.clone());
        i.finished_at = None;
        i.stopping = None;
    });
    Ok(Reply::Done)
}

/// The instance, if it can be tried again; else why not.
fn failed_for_good(
    turn: &Turn<'_>,
    id: &InstanceId,
    stored: Option<Instance>,
) -> Result<Instance, (RejectionCode, String)> {
    let refuse = |detail: String| Err((RejectionCode::Conflict, detail));
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
        return Err((RejectionCode::NotFound, format!("no instance {id}")));
    };
    match (i.state, i.next_retry_at) {
        (InstanceState::Failed | InstanceState::Timeout, None) => Ok(i),
        (InstanceState::Failed | InstanceState::Timeout, Some(at)) => {
            refuse(format!("instance {id} is {} and is tried again by itself at {at}", i.state))
        }
        (InstanceState::Succeeded | InstanceState::Cancelled, _) => refuse(format!(
            "instance {id} is {}; only a failed one can be tried again; to run the task for that \
             cycle anew: schedctl run {} --cycle {}",
            i.state,
            i.task_id,
            i.cycle.label()
        )),
        (
            InstanceState::Pending
            | InstanceState::Blocked
            | InstanceState::Ready
            | InstanceState::Running,
            _,
        ) => refuse(format!("instance {id} is {}; it has not ended yet", i.state)),
    }
}
