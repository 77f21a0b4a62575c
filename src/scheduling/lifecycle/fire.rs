//! A time trigger's nominal fire: an instance, or a reason why not, in one ledger row.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::fill::Facts;
use super::super::turn::Turn;
use super::wave::{self, Birth, Made};
use super::{cancel, dispatch};
use crate::model::cycle::Cycle;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Cause, Instance, InstanceState, Stopping};
use crate::model::params;
use crate::model::record::{Cursor, FireOutcome};
use crate::model::spec::{JsonMap, Overlap, TaskSpec, Trigger, TriggerKind};
use crate::model::time::Timestamp;
use crate::model::view::TaskStatus;

/// A nominal fire that is due while the daemon runs.
pub(in super::super) fn due(turn: &mut Turn<'_>, task: &TaskId, key: &str, at: Timestamp) {
    let Some(spec) = turn.state.registry.spec(task).cloned() else { return };
    if let Some(trigger) = spec.triggers.iter().find(|t| t.key() == key) {
        one(turn, &spec, trigger, at);
    }
}

/// Moves the cursors of triggers that fired together and puts the next fires on the agenda.
pub(super) fn advance(
    turn: &mut Turn<'_>,
    task: &TaskId,
    triggers: &BTreeSet<String>,
    at: Timestamp,
) {
    for trigger in triggers {
        let (task_id, trigger) = (task.clone(), trigger.clone());
        turn.put_cursor(Cursor { task_id, trigger, handled_to: at });
    }
    turn.state.schedule(task);
}

/// Gives one nominal fire its outcome.
pub(super) fn one(turn: &mut Turn<'_>, spec: &Arc<TaskSpec>, trigger: &Trigger, at: Timestamp) {
    let key = trigger.key();
    let fired = (&spec.task_id, key.as_str(), at);
    if let Some((outcome, reason)) = not_now(turn, spec) {
        return turn.fire_one(fired, outcome, reason, None);
    }
    let busy = busy(turn, &spec.task_id);
    match overlap(trigger) {
        Overlap::Skip if !busy.is_empty() => {
            let reason = format!("instance {} is not done", busy[0]);
            return turn.fire_one(fired, FireOutcome::SkippedOverlap, Some(reason), None);
        }
        Overlap::Replace => {
            for id in &busy {
                cancel::one(turn, id, Stopping::Replace);
            }
        }
        Overlap::Skip | Overlap::Queue | Overlap::Allow => {}
    }
    let cause = match &trigger.when {
        TriggerKind::Cron(t) => Cause::Cron { expr: t.expr.as_str().to_owned() },
        TriggerKind::Every(t) => {
            Cause::Every { period_ms: u64::try_from(t.period.as_millis()).unwrap_or(u64::MAX) }
        }
        TriggerKind::Boot | TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_) => {
            Cause::Boot
        }
    };
    let happening = Happening { trigger, cause, at, identity: &key, file: None, event: None };
    make(turn, spec, happening);
    // What this fire made READY starts before the next fire looks at what is running.
    super::admit::all(turn);
    dispatch::all(turn);
}

/// Something a trigger listens to.
pub(super) struct Happening<'a> {
    pub(super) trigger: &'a Trigger,
    pub(super) cause: Cause,
    pub(super) at: Timestamp,
    /// What makes this happening different from others of the trigger.
    pub(super) identity: &'a str,
    pub(super) file: Option<&'a str>,
    pub(super) event: Option<&'a JsonMap>,
}

/// Makes the instance of a trigger, or refuses its parameters; either is a row of the ledger.
///
/// The error is the refusal's text.
pub(super) fn make(
    turn: &mut Turn<'_>,
    spec: &Arc<TaskSpec>,
    what: Happening<'_>,
) -> Option<Result<InstanceId, String>> {
    let key = what.trigger.key();
    let fired = (&spec.task_id, key.as_str(), what.at);
    let id = wave::id_of(what.at, &spec.task_id, what.identity);
    let timezone = match &what.trigger.when {
        TriggerKind::Cron(t) => t.timezone.as_deref().or(spec.timezone.as_deref()),
        TriggerKind::Every(_)
        | TriggerKind::Boot
        | TriggerKind::File(_)
        | TriggerKind::Event(_)
        | TriggerKind::Task(_) => spec.timezone.as_deref(),
    };
    let rule = turn.state.registry.rule(&spec.task_id);
    let cycle = Cycle::of(what.at, &turn.state.zone(timezone), rule, &id);
    let facts = Facts {
        spec,
        instance_id: &id,
        cycle: &cycle,
        scheduled_time: what.at,
        params: &JsonMap::new(),
        file: what.file,
        event: what.event,
    };
    let given = facts.map(&what.trigger.params).map(|mut given| {
        // An event's own parameters go where the task declares their names.
        for (name, value) in what.event.into_iter().flatten() {
            if spec.runtime_params.contains_key(name) && !given.contains_key(name) {
                given.insert(name.clone(), value.clone());
            }
        }
        given
    });
    let checked = given
        .and_then(|given| {
            params::check_given(&spec.runtime_params, &given).map_err(|e| problems(&e))
        })
        .and_then(|params| match unfillable(spec, &params).first() {
            Some(name) => Err(format!("parameter {name} is required and nothing gives it")),
            None => Ok(params),
        });
    let params = match checked {
        Ok(params) => params,
        Err(problem) => {
            let reason = Some(problem.clone());
            turn.fire_one(fired, FireOutcome::RejectedParams, reason, None);
            return Some(Err(problem));
        }
    };
    let birth = Birth {
        spec: Arc::clone(spec),
        id: id.clone(),
        trigger: what.cause,
        scheduled_time: what.at,
        cycle,
        params,
        priority: None,
        not_before: None,
        ignore_deps: false,
        no_downstream: false,
    };
    match wave::create(turn, birth) {
        Made::New => {
            turn.fire_one(fired, FireOutcome::Instance, None, Some(id.clone()));
            Some(Ok(id))
        }
        Made::Before => None,
        Made::Duplicate { holder, detail } => {
            let reason = Some(detail.clone());
            turn.fire_one(fired, FireOutcome::Duplicate, reason, Some(holder));
            Some(Err(detail))
        }
    }
}

/// Required parameters without a value that no upstream edge could bring either.
pub(super) fn unfillable(spec: &TaskSpec, given: &JsonMap) -> Vec<String> {
    let missing = spec.runtime_params.iter().filter(|(name, schema)| {
        schema.required && schema.default.is_none() && !given.contains_key(*name)
    });
    let missing = missing.map(|(name, _)| name.clone());
    if spec.depends_on.is_empty() { missing.collect() } else { Vec::new() }
}

/// All faults of parameters in one text.
pub(super) fn problems(errors: &[params::ParamError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Why a task takes no fire of a time trigger now.
pub(super) fn not_now(turn: &Turn<'_>, spec: &TaskSpec) -> Option<(FireOutcome, Option<String>)> {
    match turn.state.registry.status(spec) {
        TaskStatus::Active => None,
        TaskStatus::Paused => {
            let pause = turn.state.registry.row(&spec.task_id).and_then(|r| r.paused.clone());
            Some((FireOutcome::Paused, pause.and_then(|p| p.reason)))
        }
        TaskStatus::Disabled => Some((FireOutcome::Disabled, None)),
        TaskStatus::Unresolved => {
            let unknown = turn.state.registry.unresolved(spec);
            let unknown: Vec<&str> = unknown.iter().map(TaskId::as_str).collect();
            Some((FireOutcome::Unresolved, Some(format!("unknown: {}", unknown.join(", ")))))
        }
    }
}

fn overlap(trigger: &Trigger) -> Overlap {
    match &trigger.when {
        TriggerKind::Cron(t) => t.policy.overlap,
        TriggerKind::Every(t) => t.policy.overlap,
        TriggerKind::Boot | TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_) => {
            Overlap::Allow
        }
    }
}

/// Instances of the task that are READY, RUNNING or wait for a retry.
fn busy(turn: &Turn<'_>, task: &TaskId) -> Vec<InstanceId> {
    let at_it = |i: &&Instance| {
        matches!(i.state, InstanceState::Ready | InstanceState::Running)
            || i.next_retry_at.is_some()
    };
    turn.state.instances.open_of(task).filter(at_it).map(|i| i.instance_id.clone()).collect()
}
