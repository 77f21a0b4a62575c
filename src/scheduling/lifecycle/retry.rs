//! A person tries a finally failed instance again (design, 'Pause, cancel, retry').

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::ended::{Standing, may_be_retried};
use super::super::fill;
use super::super::state::State;
use super::super::turn::Turn;
use super::wave;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply, Retried, RetryRejection};

/// What of an instance is kept when it is tried again, and what it waits for.
#[derive(Debug, Clone, Copy)]
struct How {
    same_revision: bool,
    awaits_upstream: bool,
}

/// `schedctl retry`: READY again under the definition in force, or that of its first start, with a
/// fresh `maxAttempts`. `below`: finally failed instances below it are tried again after it; one
/// that cannot be is told of and holds up no other.
pub(in super::super) fn request(
    turn: &mut Turn<'_>,
    id: &InstanceId,
    same_revision: bool,
    stored: Option<Instance>,
    below: Option<Vec<Instance>>,
) -> Answer {
    let wanted = below.as_ref().map(|_| failed_below(turn.state, id)).unwrap_or_default();
    one(turn, id, stored, How { same_revision, awaits_upstream: false })?;
    let mut retried = Retried { instance_id: id.clone(), below: Vec::new(), rejected: Vec::new() };
    let rows = below.into_iter().flatten();
    let mut rows: BTreeMap<InstanceId, Instance> =
        rows.map(|row| (row.instance_id.clone(), row)).collect();
    for id in wanted {
        let stored = rows.remove(&id);
        match one(turn, &id, stored, How { same_revision, awaits_upstream: true }) {
            Ok(()) => {
                turn.admit_later(id.clone());
                retried.below.push(id);
            }
            Err(Rejection { detail, .. }) => {
                retried.rejected.push(RetryRejection { instance_id: id, detail });
            }
        }
    }
    Ok(Reply::Retried(retried))
}

/// Finally failed instances below one, near ones first: as far as instances lead that wait, run or
/// failed. Beyond one that SUCCEEDED or was cancelled nothing depends on this one any more.
pub(in super::super) fn failed_below(state: &State, id: &InstanceId) -> Vec<InstanceId> {
    let table = &state.instances;
    let mut seen = BTreeSet::from([id.clone()]);
    let mut order = vec![id.clone()];
    let mut at = 0;
    while let Some(id) = order.get(at) {
        let more = table.bound_to(id).into_iter().filter(|id| seen.insert(id.clone()));
        let more: Vec<InstanceId> = more.collect();
        order.extend(more);
        at += 1;
    }
    let failed = |id: &InstanceId| {
        table.state_of(id).is_some_and(|(state, is_final)| is_final && may_be_retried(state))
    };
    order.into_iter().skip(1).filter(failed).collect()
}

/// Whether an instance below a retried one need not wait any longer: no upstream of its is at it.
pub(super) fn upstreams_have_ended(state: &State, i: &Instance) -> bool {
    let mut upstreams = i.edges.iter().filter_map(|edge| edge.instance_id.as_ref());
    upstreams.all(|id| state.instances.standing(id) != Some(Standing::Open))
}

fn one(
    turn: &mut Turn<'_>,
    id: &InstanceId,
    stored: Option<Instance>,
    how: How,
) -> Result<(), Rejection> {
    let mut i =
        failed_for_good(turn, id, stored).map_err(|(code, detail)| Rejection::new(code, detail))?;
    let refuse = |detail: String| Err(Rejection::new(RejectionCode::Conflict, detail));
    let in_force = turn.state.registry.row(&i.task_id).and_then(|r| r.revision);
    if !how.same_revision {
        i.revision = in_force.unwrap_or(i.revision);
    }
    let Some(spec) = turn.state.spec_of(&i) else {
        return refuse(format!("revision {} of {} is gone", i.revision, i.task_id));
    };
    let completed = fill::complete(turn.state, &spec, &i)
        .and_then(|params| Ok((params, wave::dedup_key(turn, &spec, &i)?)));
    let (params, dedup_key) = match completed {
        Ok(completed) => completed,
        Err(problem) => {
            return refuse(format!(
                "instance {id} does not fit revision {} of {}: {problem}",
                i.revision, i.task_id
            ));
        }
    };
    if let Some(key) = &dedup_key
        && let Some(holder) = turn.state.instances.dedup_holder(i.task_id.base(), key)
        && holder != id
    {
        return refuse(format!("dedupKey {key} of instance {id} is taken by instance {holder}"));
    }
    let revision = i.revision;
    if turn.state.instances.get(id).is_none() {
        turn.revive(i);
    }
    turn.transition(id, InstanceState::Ready, None, |i| {
        i.revision = revision;
        i.runtime_params = Arc::new(params);
        i.dedup_key = dedup_key;
        i.max_attempts = i.faults + spec.retry.max_attempts;
        i.requeues = 0;
        i.preemptions = 0;
        i.spawn_retries = 0;
        i.queue = spec.queue.clone();
        i.static_params = Arc::new(spec.static_params.clone());
        i.finished_at = None;
        i.stopping = None;
        i.cancelled_by = None;
        i.awaits_upstream = how.awaits_upstream;
    });
    Ok(())
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
