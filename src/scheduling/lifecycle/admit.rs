//! Whether a waiting instance may run: its own time, then its edges (docs/waves.md, rules 5 and 6).

use std::sync::Arc;

use super::super::edges::{self, Verdict};
use super::super::fill;
use super::super::turn::Turn;
use super::{latest, retry, wave};
use crate::model::id::InstanceId;
use crate::model::instance::{Cause, Edge, Instance, InstanceState, Reason};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{DepType, JsonMap, OnDependencyTimeout, TaskSpec};

/// Looks at every instance whose edges may have changed, until none is left.
pub(in super::super) fn all(turn: &mut Turn<'_>) {
    while let Some((id, edge)) = turn.next_admission() {
        if !edge.is_some_and(|edge| changes_nothing(turn, &id, edge)) {
            one(turn, &id);
        }
    }
}

/// Whether one edge alone, whose upstream has changed, leaves an instance as it is, because the edge
/// that decided before still does. So one that waits for n others costs n looks, not n times n.
fn changes_nothing(turn: &Turn<'_>, id: &InstanceId, changed: usize) -> bool {
    let Some(i) = turn.state.instances.get(id) else { return true };
    let decided = turn.state.instances.deciding(id).filter(|decided| *decided != changed);
    let Some(decided) = decided else { return !i.is_waiting() && !i.awaits_upstream };
    // An edge that waits for data is told of in words.
    let waits_for_data = |edge: &Edge| {
        let upstream = edge.instance_id.as_ref().filter(|_| edge.dep_type == DepType::DataReady);
        upstream.is_some_and(|id| turn.state.instances.outputs_of(id).is_some())
    };
    if i.edges.get(changed).is_none_or(waits_for_data) {
        return false;
    }
    let spec = turn.state.spec_of(i);
    let look = |at| i.edges.get(at).map(|_| edges::of_edge(turn.state, spec.as_deref(), i, at));
    let still = match look(decided) {
        Some(Verdict::Waiting(_)) => i.state == InstanceState::Pending,
        Some(Verdict::Blocked(reason, message)) => i.reason == Some(reason) && i.message == message,
        Some(Verdict::Satisfied | Verdict::Ends(_)) | None => false,
    };
    still
        && match look(changed) {
            Some(Verdict::Satisfied | Verdict::Waiting(_)) => true,
            // That a condition has no answer is noted at its edge, whichever other decides.
            Some(Verdict::Blocked(Reason::ConditionError, _)) => false,
            // Of several, the first one's reason is told.
            Some(Verdict::Blocked(..)) => i.state == InstanceState::Blocked && changed > decided,
            Some(Verdict::Ends(_)) | None => false,
        }
}

fn one(turn: &mut Turn<'_>, id: &InstanceId) {
    let Some(i) = turn.state.instances.get(id) else { return };
    if i.awaits_upstream && retry::upstreams_have_ended(turn.state, i) {
        turn.update(id, "upstreams have ended", |i| i.awaits_upstream = false);
        return;
    }
    if !i.is_waiting() || i.not_before.is_some_and(|at| at > turn.now) {
        return;
    }
    let state = i.state;
    let (verdict, decided) = edges::verdict(turn.state, i);
    let unanswered = match &verdict {
        Verdict::Blocked(..) => edges::unanswered(turn.state, i),
        Verdict::Satisfied | Verdict::Waiting(_) | Verdict::Ends(_) => Vec::new(),
    };
    turn.state.instances.decides(id, decided);
    match verdict {
        Verdict::Satisfied => ready(turn, id, false),
        Verdict::Ends(reason) => {
            turn.transition(id, InstanceState::Cancelled, Some(reason), |i| i.message = None);
        }
        Verdict::Blocked(reason, message) => {
            let tell = |i: &mut Instance| {
                mark(i, &unanswered);
                i.reason = Some(reason);
                i.message = message;
            };
            if state == InstanceState::Pending {
                turn.transition(id, InstanceState::Blocked, Some(reason), tell);
            } else {
                turn.update(id, "reason", tell);
            }
        }
        Verdict::Waiting(message) => {
            let reason = Some(Reason::WaitingDependency);
            let tell = |i: &mut Instance| {
                i.reason = reason;
                i.message = message;
            };
            if state == InstanceState::Blocked {
                turn.transition(id, InstanceState::Pending, reason, |i| {
                    tell(i);
                    mark(i, &[]);
                });
            } else {
                turn.update(id, "reason", tell);
            }
        }
    }
}

/// Notes which edges have conditions without an answer.
fn mark(i: &mut Instance, unanswered: &[bool]) {
    let of = |at: usize| unanswered.get(at).copied().unwrap_or(false);
    if i.edges.iter().enumerate().all(|(at, edge)| edge.unanswered == of(at)) {
        return;
    }
    for (at, edge) in Arc::make_mut(&mut i.edges).iter_mut().enumerate() {
        edge.unanswered = of(at);
    }
}

/// All that it waited for is there: parameters are completed, then it is READY.
fn ready(turn: &mut Turn<'_>, id: &InstanceId, degraded: bool) {
    let Some(i) = turn.state.instances.get(id).cloned() else { return };
    let Some(spec) = turn.state.spec_of(&i) else { return };
    let (params, dedup_key) = match completed(turn, &spec, &i) {
        Ok(completed) => completed,
        Err(problem) => return reject(turn, &i, problem),
    };
    turn.transition(id, InstanceState::Ready, None, |i| {
        i.message = None;
        i.runtime_params = Arc::new(params);
        i.dedup_key = dedup_key;
        i.degraded = degraded;
        i.held_since = None;
        mark(i, &[]);
    });
    latest::by_ready(turn, &spec, id);
}

/// The parameters that an instance starts with, and its key, which nobody else may have.
fn completed(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    i: &Instance,
) -> Result<(JsonMap, Option<String>), String> {
    let params = fill::complete(turn.state, spec, i)?;
    let dedup_key = wave::dedup_key(turn, spec, i)?;
    if let Some(key) = &dedup_key {
        let holder = turn.state.instances.dedup_holder(i.task_id.base(), key);
        if holder.is_some_and(|holder| *holder != i.instance_id) {
            return Err(format!("dedupKey {key} is taken"));
        }
    }
    Ok((params, dedup_key))
}

/// A READY instance's definition changed before it was started: its parameters are completed once
/// more by the new one.
pub(super) fn again(turn: &mut Turn<'_>, id: &InstanceId) {
    let ready = turn.state.instances.get(id).filter(|i| i.state == InstanceState::Ready);
    let Some(i) = ready.cloned() else { return };
    let Some(spec) = turn.state.spec_of(&i) else { return };
    match completed(turn, &spec, &i) {
        Ok((params, dedup_key)) => turn.update(id, "parameters", |i| {
            i.runtime_params = Arc::new(params);
            i.dedup_key = dedup_key;
        }),
        Err(problem) => reject(turn, &i, problem),
    }
}

/// Its parameters are not complete or not right now that its edges hold: it never starts.
fn reject(turn: &mut Turn<'_>, i: &Instance, problem: String) {
    // A nominal fire has its row already, which counts it; what a wave or a person made has none.
    let counts = matches!(
        i.trigger,
        Cause::Wave { .. } | Cause::Submit { .. } | Cause::Backfill { trigger: None, .. }
    );
    turn.fire(Fire {
        task_id: i.task_id.clone(),
        trigger: i.trigger.kind().to_owned(),
        from: i.scheduled_time,
        to: i.scheduled_time,
        count: u64::from(counts),
        outcome: FireOutcome::RejectedParams,
        reason: Some(problem.clone()),
        instance_id: Some(i.instance_id.clone()),
    });
    let reason = Some(Reason::RejectedParams);
    turn.transition(&i.instance_id, InstanceState::Cancelled, reason, |i| {
        i.message = Some(problem);
    });
}

/// It has waited for longer than anything may (docs/waves.md, rule 13).
pub(in super::super) fn expire(turn: &mut Turn<'_>, id: &InstanceId) {
    if turn.state.instances.get(id).is_some_and(Instance::is_waiting) {
        turn.transition(id, InstanceState::Cancelled, Some(Reason::Expired), |_| {});
    }
}

/// Waiting for dependencies has taken too long (requirement C5).
pub(in super::super) fn deadline(turn: &mut Turn<'_>, id: &InstanceId) {
    let Some(i) = turn.state.instances.get(id) else { return };
    if !i.is_waiting() || i.not_before.is_some_and(|at| at > turn.now) {
        return;
    }
    let Some(spec) = turn.state.spec_of(i) else { return };
    match spec.on_dependency_timeout {
        OnDependencyTimeout::Cancel => {
            let reason = Some(Reason::DependencyTimeout);
            turn.transition(id, InstanceState::Cancelled, reason, |_| {});
        }
        OnDependencyTimeout::RunDegraded => ready(turn, id, true),
    }
}
