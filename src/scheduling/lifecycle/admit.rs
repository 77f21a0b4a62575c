//! Whether a waiting instance may run: its own time, then its edges (docs/waves.md, rules 5 and 6).

use serde_json::Value;

use super::super::ended::Standing;
use super::super::fill;
use super::super::turn::Turn;
use super::{retry, wave};
use crate::model::condition::Condition;
use crate::model::id::InstanceId;
use crate::model::instance::{Cause, Edge, Instance, InstanceState, Reason};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{JsonMap, OnDependencyTimeout, Strength, TaskSpec};

/// What the edges of an instance say together.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Satisfied,
    Waiting,
    /// With words for a person, where the reason does not say it all.
    Blocked(Reason, Option<String>),
    /// It ends without a start, for this reason.
    Ends(Reason),
}

/// Looks at every instance whose edges may have changed, until none is left.
pub(in super::super) fn all(turn: &mut Turn<'_>) {
    while let Some(id) = turn.next_admission() {
        one(turn, &id);
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
    match verdict(turn, i) {
        Verdict::Satisfied => ready(turn, id, false),
        Verdict::Ends(reason) => {
            turn.transition(id, InstanceState::Cancelled, Some(reason), |_| {});
        }
        Verdict::Blocked(reason, message) => {
            let tell = |i: &mut Instance| {
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
                turn.transition(id, InstanceState::Pending, reason, |i| i.message = None);
            } else {
                turn.update(id, "reason", |i| i.reason = reason);
            }
        }
    }
}

fn verdict(turn: &Turn<'_>, i: &Instance) -> Verdict {
    let spec = turn.state.spec_of(i);
    let condition = |edge: &Edge| {
        let edges = spec.iter().flat_map(|spec| &spec.depends_on);
        edges.filter(|d| d.task_id == edge.task_id).find_map(|d| d.when.as_ref())
    };
    let mut waiting = false;
    let mut blocked = None;
    for edge in &i.edges {
        let found = match (standing(turn, edge), condition(edge)) {
            (Verdict::Satisfied, Some(condition)) => asked(turn, edge, condition),
            (found, _) => found,
        };
        match found {
            Verdict::Satisfied => {}
            Verdict::Waiting => waiting = true,
            Verdict::Blocked(reason, message) => blocked = blocked.or(Some((reason, message))),
            Verdict::Ends(reason) => return Verdict::Ends(reason),
        }
    }
    match blocked {
        Some((reason, message)) => Verdict::Blocked(reason, message),
        None if waiting => Verdict::Waiting,
        None => Verdict::Satisfied,
    }
}

fn standing(turn: &Turn<'_>, edge: &Edge) -> Verdict {
    let bound = edge.instance_id.as_ref().map(|id| turn.state.instances.standing(id));
    match (bound, edge.strength) {
        (None, _) => {
            let known = turn.state.registry.spec(&edge.task_id).is_some_and(|s| s.enabled);
            if known { Verdict::Waiting } else { Verdict::Blocked(Reason::SpecRemoved, None) }
        }
        (Some(Some(Standing::Open)), _) => Verdict::Waiting,
        (Some(Some(Standing::Succeeded)), _) | (Some(_), Strength::Weak) => Verdict::Satisfied,
        (Some(Some(Standing::Skipped)), Strength::Strong) => Verdict::Ends(Reason::UpstreamSkipped),
        (Some(Some(Standing::Failed) | None), Strength::Strong) => {
            Verdict::Blocked(Reason::UpstreamFailed, None)
        }
    }
}

/// What the condition of an edge says, now that its upstream has ended.
fn asked(turn: &Turn<'_>, edge: &Edge, condition: &Condition) -> Verdict {
    let error = |why: &str| {
        let text = format!("the condition on {} ({}): {why}", edge.task_id, condition.as_str());
        Verdict::Blocked(Reason::ConditionError, Some(text))
    };
    let table = &turn.state.instances;
    let upstream = edge.instance_id.as_ref();
    let result = upstream.and_then(|id| Some((table.result_of(id)?, table.state_of(id)?)));
    let Some(((params, output), (state, _))) = result else {
        return error("the instance is no longer in the store");
    };
    match condition.evaluate(output.unwrap_or(&Value::Null), params, &state.to_string()) {
        Ok(true) => Verdict::Satisfied,
        Ok(false) => Verdict::Ends(Reason::ConditionFalse),
        Err(problem) => error(&problem),
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
    });
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
