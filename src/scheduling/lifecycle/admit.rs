//! Whether a waiting instance may run: its own time, then its edges (docs/waves.md, rules 5 and 6).

use std::sync::Arc;

use serde_json::Value;

use super::super::ended::Standing;
use super::super::fill;
use super::super::turn::Turn;
use super::data::{self, Data};
use super::wave;
use crate::limits;
use crate::model::condition::Condition;
use crate::model::id::InstanceId;
use crate::model::instance::{Cause, Edge, Instance, InstanceState, Reason};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{DepType, Dependency, JsonMap, OnDependencyTimeout, Strength, TaskSpec};

/// What the edges of an instance say together.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Satisfied,
    /// With words for a person, if there is more to say than that it waits.
    Waiting(Option<String>),
    /// With words for a person, where the reason does not say it all.
    Blocked(Reason, Option<String>),
    /// It ends without a start, for this reason.
    Ends(Reason),
}

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
    let Some(decided) = decided else { return !i.is_waiting() };
    // An edge that waits for data is told of in words.
    if i.edges.get(changed).is_none_or(|edge| edge.dep_type == DepType::DataReady) {
        return false;
    }
    let spec = turn.state.spec_of(i);
    let look = |at| i.edges.get(at).map(|edge| of_edge(turn, spec.as_deref(), at, edge));
    let still = match look(decided) {
        Some(Verdict::Waiting(_)) => i.state == InstanceState::Pending,
        Some(Verdict::Blocked(reason, message)) => i.reason == Some(reason) && i.message == message,
        Some(Verdict::Satisfied | Verdict::Ends(_)) | None => false,
    };
    still
        && match look(changed) {
            Some(Verdict::Satisfied | Verdict::Waiting(_)) => true,
            // Of several, the first one's reason is told.
            Some(Verdict::Blocked(..)) => i.state == InstanceState::Blocked && changed > decided,
            Some(Verdict::Ends(_)) | None => false,
        }
}

fn one(turn: &mut Turn<'_>, id: &InstanceId) {
    let Some(i) = turn.state.instances.get(id) else { return };
    if !i.is_waiting() || i.not_before.is_some_and(|at| at > turn.now) {
        return;
    }
    let state = i.state;
    let (verdict, decided) = verdict(turn, i);
    turn.state.instances.decides(id, decided);
    match verdict {
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
        Verdict::Waiting(message) => {
            let reason = Some(Reason::WaitingDependency);
            let tell = |i: &mut Instance| {
                i.reason = reason;
                i.message = message;
            };
            if state == InstanceState::Blocked {
                turn.transition(id, InstanceState::Pending, reason, tell);
            } else {
                turn.update(id, "reason", tell);
            }
        }
    }
}

/// What all edges say together, and the edge that decides it: the first that blocks, else one that
/// waits.
fn verdict(turn: &Turn<'_>, i: &Instance) -> (Verdict, Option<usize>) {
    let spec = turn.state.spec_of(i);
    let mut waiting: Option<(usize, Vec<String>)> = None;
    let mut blocked = None;
    for (at, edge) in i.edges.iter().enumerate() {
        match of_edge(turn, spec.as_deref(), at, edge) {
            Verdict::Satisfied => {}
            Verdict::Waiting(words) => waiting.get_or_insert((at, Vec::new())).1.extend(words),
            Verdict::Blocked(reason, message) => blocked = blocked.or(Some((reason, message, at))),
            Verdict::Ends(reason) => return (Verdict::Ends(reason), None),
        }
    }
    match (blocked, waiting) {
        (Some((reason, message, at)), _) => (Verdict::Blocked(reason, message), Some(at)),
        (None, Some((at, words))) => (Verdict::Waiting(in_one(&words)), Some(at)),
        (None, None) => (Verdict::Satisfied, None),
    }
}

fn in_one(words: &[String]) -> Option<String> {
    let mut text = words.join("; ");
    text.truncate(text.floor_char_boundary(limits::MESSAGE_BYTES_MAX));
    Some(text).filter(|text| !text.is_empty())
}

/// What one edge says, which stands at this place among those of its instance.
fn of_edge(turn: &Turn<'_>, spec: Option<&TaskSpec>, at: usize, edge: &Edge) -> Verdict {
    let mut found = standing(turn, edge);
    if found == Verdict::Satisfied {
        let declared = spec.and_then(|spec| {
            let same = |d: &&Dependency| d.task_id == edge.task_id;
            // Mostly in the same order.
            spec.depends_on.get(at).filter(same).or_else(|| spec.depends_on.iter().find(same))
        });
        if let Some(condition) = declared.and_then(|declared| declared.when.as_ref()) {
            found = asked(turn, edge, condition);
        }
    }
    // Last: what is skipped anyway waits for no data.
    if found == Verdict::Satisfied { with_data(turn, edge) } else { found }
}

/// What an edge says that holds but for the data it may ask for (docs/waves.md, rule 8).
fn with_data(turn: &Turn<'_>, edge: &Edge) -> Verdict {
    match data::standing(turn.state, edge) {
        Data::There => Verdict::Satisfied,
        Data::Awaited(words) => Verdict::Waiting(Some(words)),
        Data::Unknowable(words) => {
            Verdict::Blocked(Reason::ConditionError, in_one(std::slice::from_ref(&words)))
        }
    }
}

fn standing(turn: &Turn<'_>, edge: &Edge) -> Verdict {
    let bound = edge.instance_id.as_ref().map(|id| turn.state.instances.standing(id));
    match (bound, edge.strength) {
        (None, _) => {
            let known = turn.state.registry.spec(&edge.task_id).is_some_and(|s| s.enabled);
            if known { Verdict::Waiting(None) } else { Verdict::Blocked(Reason::SpecRemoved, None) }
        }
        (Some(Some(Standing::Open)), _) => Verdict::Waiting(None),
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
        i.runtime_params = Arc::new(params);
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
