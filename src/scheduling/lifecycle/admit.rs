//! Whether a waiting instance may run: its own time, then its edges (docs/waves.md, rules 5 and 6).

use super::super::edges::{self, Verdict};
use super::super::fill;
use super::super::turn::Turn;
use super::{latest, wave};
use crate::model::id::InstanceId;
use crate::model::instance::{Cause, Instance, InstanceState, Reason};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{JsonMap, OnDependencyTimeout, TaskSpec};

/// Looks at every instance whose edges may have changed, until none is left.
pub(in super::super) fn all(turn: &mut Turn<'_>) {
    while let Some(id) = turn.next_admission() {
        one(turn, &id);
    }
}

fn one(turn: &mut Turn<'_>, id: &InstanceId) {
    let Some(i) = turn.state.instances.get(id) else { return };
    if !i.is_waiting() || i.not_before.is_some_and(|at| at > turn.now) {
        return;
    }
    let state = i.state;
    match edges::verdict(turn.state, i) {
        Verdict::Satisfied => ready(turn, id, false),
        Verdict::Ends(reason) => {
            turn.transition(id, InstanceState::Cancelled, Some(reason), |_| {});
        }
        Verdict::Blocked(reason, message) => {
            let unanswered = edges::unanswered(turn.state, i);
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
        Verdict::Waiting => {
            let reason = Some(Reason::WaitingDependency);
            if state == InstanceState::Blocked {
                turn.transition(id, InstanceState::Pending, reason, |i| {
                    i.message = None;
                    mark(i, &[]);
                });
            } else {
                turn.update(id, "reason", |i| i.reason = reason);
            }
        }
    }
}

/// Notes which edges have conditions without an answer.
fn mark(i: &mut Instance, unanswered: &[bool]) {
    for (at, edge) in i.edges.iter_mut().enumerate() {
        edge.unanswered = unanswered.get(at).copied().unwrap_or(false);
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
        i.runtime_params = params;
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
            i.runtime_params = params;
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
