//! A time trigger's nominal fire: an instance, or a reason why not, in one ledger row.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::fill;
use super::super::state::State;
use super::super::turn::Turn;
use super::cancel;
use super::wave::{self, Birth, Made};
use crate::limits;
use crate::model::cycle::{Cycle, CycleUnit};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Cause, Instance, InstanceState, Stopping};
use crate::model::jump::Span;
use crate::model::params;
use crate::model::placeholders::Known;
use crate::model::record::{Cursor, FireOutcome};
use crate::model::spec::{FirePolicy, JsonMap, Overlap, TaskSpec, Trigger, TriggerKind};
use crate::model::time::Timestamp;
use crate::model::view::TaskStatus;

/// A nominal fire that is due while the daemon runs.
pub(in super::super) fn due(turn: &mut Turn<'_>, task: &TaskId, key: &str, at: Timestamp) {
    let Some(spec) = turn.state.registry.spec(task).cloned() else { return };
    if turn.state.is_done(&spec, at) {
        return;
    }
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
        let key = (task.clone(), trigger.clone());
        // A clock that is set back may come to what was done before; not to what is long past.
        let is_old = |span: &Span| at.since(span.to) > limits::ARRIVAL_KEPT;
        if let Some(jumps) = turn.state.jumps.get(&key)
            && jumps.done.iter().any(is_old)
        {
            let mut jumps = jumps.clone();
            jumps.done.retain(|span| !is_old(span));
            turn.put_jumps(jumps);
        }
        turn.put_cursor(Cursor { task_id: key.0, trigger: key.1, handled_to: at });
    }
    turn.state.schedule(task);
}

/// What a time trigger's instances are caused by, and its policy; `None` for other triggers.
pub(super) fn timed(trigger: &Trigger) -> Option<(Cause, FirePolicy)> {
    match &trigger.when {
        TriggerKind::Cron(t) => Some((Cause::Cron { expr: t.expr.as_str().to_owned() }, t.policy)),
        TriggerKind::Every(t) => {
            let period_ms = u64::try_from(t.period.as_millis()).unwrap_or(u64::MAX);
            Some((Cause::Every { period_ms }, t.policy))
        }
        TriggerKind::Boot | TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_) => {
            None
        }
    }
}

/// Gives one nominal fire its outcome.
pub(super) fn one(turn: &mut Turn<'_>, spec: &Arc<TaskSpec>, trigger: &Trigger, at: Timestamp) {
    let Some((_, policy)) = timed(trigger) else { return };
    let key = trigger.key();
    let fired = (&spec.task_id, key.as_str(), at);
    if let Some((outcome, reason)) = not_now(turn, spec, at) {
        return turn.fire_one(fired, outcome, reason, None);
    }
    let earlier = match policy.overlap {
        Overlap::Skip => {
            let first = busy(turn, &spec.task_id).into_iter().next();
            if let Some(id) = first {
                let reason = format!("instance {id} is not done");
                return turn.fire_one(fired, FireOutcome::SkippedOverlap, Some(reason), None);
            }
            Vec::new()
        }
        Overlap::Replace => busy(turn, &spec.task_id),
        Overlap::Queue | Overlap::Allow => Vec::new(),
    };
    if regardless(turn, spec, trigger, at) {
        // Only now: a fire whose parameters are refused replaces nothing.
        for id in &earlier {
            cancel::one(turn, id, Stopping::Replace);
        }
    }
}

/// Makes the instance of a nominal fire whatever is at it already; says whether one was made.
pub(super) fn regardless(
    turn: &mut Turn<'_>,
    spec: &Arc<TaskSpec>,
    trigger: &Trigger,
    at: Timestamp,
) -> bool {
    let Some((cause, _)) = timed(trigger) else { return false };
    let key = trigger.key();
    let happening = Happening { trigger, cause, at, identity: &key };
    let made = make(turn, spec, happening);
    // The next fire finds it READY, or waiting. It starts at the end of the turn: the order of the
    // queue decides then, not the order of the fires (requirement D1).
    super::admit::all(turn);
    matches!(made, Some(Ok(_)))
}

/// The definition whose own triggers count; `None`: a lower version's fire for it (rule 16).
pub(super) fn listening(turn: &Turn<'_>, task: &TaskId) -> Option<Arc<TaskSpec>> {
    let registry = &turn.state.registry;
    registry.spec(task).filter(|_| !registry.rollouts().is_taker(task)).cloned()
}

/// Something a trigger listens to.
pub(super) struct Happening<'a> {
    pub(super) trigger: &'a Trigger,
    pub(super) cause: Cause,
    pub(super) at: Timestamp,
    /// What makes this happening different from others of the trigger.
    pub(super) identity: &'a str,
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
    let (spec, cycle) = match taker(turn, spec, &what) {
        Ok(Some(taken)) => taken,
        Ok(None) => return None,
        Err((outcome, reason)) => {
            turn.fire_one(fired, outcome, Some(reason.clone()), None);
            return Some(Err(reason));
        }
    };
    let id = wave::id_of(what.at, &spec.task_id, what.identity);
    let params = match given(&spec, &id, &cycle, &what) {
        Ok(params) => params,
        Err(problem) => {
            let reason = Some(problem.clone());
            turn.fire_one(fired, FireOutcome::RejectedParams, reason, None);
            return Some(Err(problem));
        }
    };
    let rolled_out = (*fired.0 != spec.task_id)
        .then(|| format!("{} took the cycle {} by its rollout", spec.task_id, cycle.label()));
    let birth = Birth {
        spec,
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
        Made::New(_) => {
            let outcome = match rolled_out {
                Some(_) => FireOutcome::RolledOutElsewhere,
                None => FireOutcome::Instance,
            };
            turn.fire_one(fired, outcome, rolled_out, Some(id.clone()));
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

/// A definition with the cycle that its instance is for.
type Taker = (Arc<TaskSpec>, Cycle);

/// Why a happening makes no instance.
type Refusal = (FireOutcome, String);

/// The cycle of what a trigger makes at a time.
pub(in super::super) fn cycle_of(
    state: &State,
    spec: &TaskSpec,
    at: Timestamp,
    identity: &str,
) -> Cycle {
    let rule = state.registry.rule(&spec.task_id);
    let zone = state.zone(spec.timezone.as_deref());
    Cycle::of(at, &zone, rule, &wave::id_of(at, &spec.task_id, identity))
}

/// The version whose instance a trigger's happening makes, with the cycle (docs/waves.md, rule
/// 16): mostly the task itself. `None`: one of the versions has had it before; an error: why the
/// version that takes the cycle makes nothing.
fn taker(
    turn: &Turn<'_>,
    spec: &Arc<TaskSpec>,
    what: &Happening<'_>,
) -> Result<Option<Taker>, Refusal> {
    let registry = &turn.state.registry;
    let id = |task: &TaskId| wave::id_of(what.at, task, what.identity);
    let versions = registry.rollouts().of(&spec.task_id);
    if versions.iter().any(|version| turn.state.instances.knows(&id(version))) {
        return Ok(None);
    }
    let cycle = cycle_of(turn.state, spec, what.at, what.identity);
    let chosen = registry.rollouts().choose(&spec.task_id, &cycle);
    let Some(taker) = registry.spec(chosen).filter(|_| *chosen != spec.task_id) else {
        return Ok(Some((Arc::clone(spec), cycle)));
    };
    let held = if timed(what.trigger).is_some() {
        not_now(turn, taker, what.at)
    } else {
        never(turn, taker)
    };
    if let Some((outcome, reason)) = held {
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err((outcome, format!("{chosen} took the cycle by its rollout{reason}")));
    }
    // A run is named by its own root.
    let cycle = match cycle.unit() {
        CycleUnit::Run => cycle_of(turn.state, taker, what.at, what.identity),
        CycleUnit::Day | CycleUnit::Hour | CycleUnit::Minute => cycle,
    };
    Ok(Some((Arc::clone(taker), cycle)))
}

/// The parameters that a trigger gives, filled and checked.
pub(super) fn given(
    spec: &TaskSpec,
    id: &InstanceId,
    cycle: &Cycle,
    what: &Happening<'_>,
) -> Result<JsonMap, String> {
    let known = Known {
        spec,
        instance_id: id,
        attempt: None,
        cycle,
        scheduled_time: what.at,
        params: &JsonMap::new(),
        trigger: &what.cause,
        deps: None,
    };
    let mut given = known.map(&what.trigger.params)?;
    // An event's own parameters go where the task declares their names.
    if let Cause::Event { params, .. } = &what.cause {
        for (name, value) in params {
            if spec.runtime_params.contains_key(name) && !given.contains_key(name) {
                given.insert(name.clone(), value.clone());
            }
        }
    }
    let params = params::check_given(&spec.runtime_params, &given).map_err(|e| fill::texts(&e))?;
    match unfillable(spec, &params).first() {
        Some(name) => Err(format!("parameter {name} is required and nothing gives it")),
        None => Ok(params),
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

/// Why a task takes no fire of a time trigger that is due at this time.
pub(super) fn not_now(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    at: Timestamp,
) -> Option<(FireOutcome, Option<String>)> {
    if turn.state.registry.status(spec) == TaskStatus::Paused {
        let pause = turn.state.registry.row(&spec.task_id).and_then(|r| r.paused.clone());
        // A pause that was to end before is over, if nobody was there to end it.
        if pause.as_ref().and_then(|p| p.until).is_none_or(|until| at < until) {
            return Some((FireOutcome::Paused, pause.and_then(|p| p.reason)));
        }
    }
    never(turn, spec)
}

/// Why a task takes nothing from outside now either. A paused one's files, events and upstream
/// ends make instances that wait (design, 'Pause').
pub(super) fn never(turn: &Turn<'_>, spec: &TaskSpec) -> Option<(FireOutcome, Option<String>)> {
    match turn.state.registry.status(spec) {
        TaskStatus::Active | TaskStatus::Pinned | TaskStatus::Paused => None,
        TaskStatus::Disabled => Some((FireOutcome::Disabled, None)),
        TaskStatus::Unresolved => {
            let unknown = turn.state.registry.unresolved(spec);
            let unknown: Vec<&str> = unknown.iter().map(TaskId::as_str).collect();
            Some((FireOutcome::Unresolved, Some(format!("unknown: {}", unknown.join(", ")))))
        }
    }
}

/// Instances of the task, and of versions that share its cycles, that are READY, RUNNING or wait
/// for a retry. A backfill's are of other times: they neither hold up what is due now nor give way
/// to it.
fn busy(turn: &Turn<'_>, task: &TaskId) -> Vec<InstanceId> {
    let at_it = |i: &&Instance| {
        let is_on = matches!(i.state, InstanceState::Ready | InstanceState::Running);
        (is_on || i.next_retry_at.is_some()) && !matches!(i.trigger, Cause::Backfill { .. })
    };
    let versions = turn.state.registry.rollouts().of(task);
    let open = versions.iter().flat_map(|version| turn.state.instances.open_of(version));
    open.filter(at_it).map(|i| i.instance_id.clone()).collect()
}
