//! `schedctl backfill`: instances for past cycles (docs/waves.md, rule 15).
//!
//! First it is decided about every nominal time of the range, then all of it is made, or nothing.
//! A backfill is a submission: the ledger, which has a row for each of these fires, stays as it is.

use std::sync::Arc;

use super::super::answers;
use super::super::state::State;
use super::super::turn::Turn;
use super::fire::{self, Happening};
use super::submit;
use super::wave::{self, Birth, Made};
use crate::limits;
use crate::model::backfill::{BackfillBody, Backfilled, CycleFill, SkipReason, Skipped};
use crate::model::cycle::{Cycle, CycleRange, CycleUnit};
use crate::model::event::SpecError;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Cause;
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};
use crate::model::spec::{JsonMap, TaskSpec, Trigger};
use crate::model::time::Timestamp;

mod complete;
mod times;

use self::times::Time;

/// Fills in a range of cycles, or says why not.
pub(in super::super) fn request(turn: &mut Turn<'_>, task: &TaskId, body: &BackfillBody) -> Answer {
    let Some(spec) = turn.state.registry.spec(task).cloned() else {
        return Err(answers::no_task(turn.state, task));
    };
    let unknown = turn.state.registry.unresolved(&spec);
    if !unknown.is_empty() {
        let unknown: Vec<&str> = unknown.iter().map(TaskId::as_str).collect();
        let unknown = unknown.join(", ");
        return Err(Rejection::new(
            RejectionCode::Conflict,
            format!("task {task} waits for tasks that no file defines: {unknown}; define them"),
        ));
    }
    let range = range(turn.state, &spec, body)?;
    let within = times::within(turn, &spec, &range).map_err(|times::TooMany| {
        too_much(&format!(
            "more than {} nominal times of task {task} lie in {} to {}",
            limits::BACKFILL_MAX,
            range.first(),
            range.last()
        ))
    })?;
    let mut steps = steps(turn, &spec, within.due, body.again)?;
    check_size(turn, &spec, &steps)?;
    if body.newest_first {
        steps.reverse();
    }
    let cycles = if body.dry_run {
        // The same on a copy that is thrown away: what is told is what would be done.
        let (now, uid, mut copy) = (turn.now, turn.caller(), turn.state.clone());
        carry_out(&mut Turn::new(&mut copy, now, Some(uid)), steps)
    } else {
        carry_out(turn, steps)
    };
    Ok(Reply::Backfilled(Backfilled {
        instances: cycles.iter().filter_map(|fill| fill.instance_id.clone()).collect(),
        from: range.first().label().to_owned(),
        to: range.last().label().to_owned(),
        cycles,
        not_due_from: within.not_due_from,
        dry_run: body.dry_run,
        repeated: false,
    }))
}

/// The cycles that are asked for, in the task's own unit and zone.
fn range(state: &State, spec: &TaskSpec, body: &BackfillBody) -> Result<CycleRange, Rejection> {
    let invalid = |detail: String| Rejection::new(RejectionCode::Invalid, detail);
    let task = &spec.task_id;
    let unit = state.registry.rule(task).unit;
    if unit == CycleUnit::Run {
        return Err(invalid(format!(
            "each run of task {task} is a cycle of its own, so no range names what is missing; \
             make the runs one by one with schedctl run {task}, or give the task a cycle of unit \
             DAY, HOUR or MINUTE"
        )));
    }
    let zone = state.zone(spec.timezone.as_deref());
    CycleRange::parse(&body.from, &body.to, unit, &zone).map_err(|error| invalid(error.to_string()))
}

fn too_much(found: &str) -> Rejection {
    let max = limits::BACKFILL_MAX;
    let detail = format!("{found}; one backfill takes at most {max}: split the range");
    Rejection::new(RejectionCode::Invalid, detail)
}

/// What is to be done about one nominal time.
struct Step {
    at: Timestamp,
    cycle: Cycle,
    what: What,
}

enum What {
    Make(Box<Birth>),
    /// The cycle has this instance.
    Leave(SkipReason, InstanceId),
}

/// Decides about each nominal time by what its cycle has now. Parameters that cannot be refuse all
/// of it: what is wrong with one cycle is mostly wrong with each.
fn steps(
    turn: &Turn<'_>,
    spec: &Arc<TaskSpec>,
    times: Vec<Time<'_>>,
    again: bool,
) -> Result<Vec<Step>, Rejection> {
    let mut faults = Vec::new();
    let mut steps = Vec::with_capacity(times.len());
    for time in times {
        let what = match had(turn, &spec.task_id, &time.cycle).filter(|_| !again) {
            Some((reason, instance)) => What::Leave(reason, instance),
            None => match birth(turn, spec, &time) {
                Ok(birth) => What::Make(Box::new(birth)),
                Err(problem) => {
                    faults.push((time.cycle.clone(), problem));
                    continue;
                }
            },
        };
        steps.push(Step { at: time.at, cycle: time.cycle, what });
    }
    if faults.is_empty() { Ok(steps) } else { Err(refused(spec, faults)) }
}

fn refused(spec: &TaskSpec, faults: Vec<(Cycle, String)>) -> Rejection {
    let error = |(cycle, message): (Cycle, String)| SpecError {
        file: String::new(),
        line: 0,
        column: 0,
        path: format!("cycles.{cycle}"),
        message,
    };
    Rejection {
        code: RejectionCode::Invalid,
        detail: format!(
            "task {} was not backfilled: parameters are missing or wrong in {} of its runs, and \
             none was made",
            spec.task_id,
            faults.len()
        ),
        errors: faults.into_iter().take(limits::BACKFILL_FAULTS_MAX).map(error).collect(),
    }
}

/// What stands in the way of a new instance of a cycle, in any version that shares it. A second one
/// beside one that still waits or runs is as little wanted as one beside a success; one that ended
/// badly is in nobody's way.
fn had(turn: &Turn<'_>, task: &TaskId, cycle: &Cycle) -> Option<(SkipReason, InstanceId)> {
    let table = &turn.state.instances;
    let versions = turn.state.registry.rollouts().of(task);
    if let Some(id) = table.succeeded_in(versions, cycle) {
        return Some((SkipReason::Succeeded, id.clone()));
    }
    let open = versions.iter().find_map(|version| table.open_in(version, cycle).next());
    open.map(|i| (SkipReason::Open, i.instance_id.clone()))
}

/// The root instance of one nominal time, with the parameters that its fire would give it.
fn birth(turn: &Turn<'_>, spec: &Arc<TaskSpec>, time: &Time<'_>) -> Result<Birth, String> {
    // The log position makes the instances of two backfills two.
    let identity = format!("backfill\0{}\0{}", turn.state.tip.0, time.cycle);
    let id = wave::id_of(time.at, &spec.task_id, &identity);
    let cause = Cause::Backfill { uid: turn.caller(), trigger: time.trigger.map(Trigger::key) };
    let params = match time.trigger {
        Some(trigger) => {
            let (at, cause) = (time.at, cause.clone());
            let what = Happening { trigger, cause, at, identity: &identity };
            fire::given(spec, &id, &time.cycle, &what)?
        }
        None => JsonMap::new(),
    };
    if let Some(name) = submit::missing(turn, spec, &params, false).first() {
        return Err(format!("parameter {name} is required and nothing gives it"));
    }
    Ok(Birth {
        spec: Arc::clone(spec),
        id,
        trigger: cause,
        scheduled_time: time.at,
        cycle: time.cycle.clone(),
        params,
        priority: None,
        not_before: None,
        ignore_deps: false,
        no_downstream: false,
    })
}

/// All of it is one commit, so it is bounded before it begins.
fn check_size(turn: &Turn<'_>, spec: &TaskSpec, steps: &[Step]) -> Result<(), Rejection> {
    let below = wave::reach(turn, spec).len();
    let made = |step: &Step| match &step.what {
        What::Make(_) => 1 + below,
        What::Leave(SkipReason::Succeeded, _) => below,
        What::Leave(SkipReason::Open | SkipReason::Duplicate, _) => 0,
    };
    let most: usize = steps.iter().map(made).sum();
    if most <= limits::BACKFILL_MAX {
        return Ok(());
    }
    Err(too_much(&format!(
        "{} runs of task {} with up to {below} below each would be up to {most} instances",
        steps.len(),
        spec.task_id
    )))
}

fn carry_out(turn: &mut Turn<'_>, steps: Vec<Step>) -> Vec<CycleFill> {
    steps.into_iter().map(|step| fill(turn, step)).collect()
}

fn fill(turn: &mut Turn<'_>, step: Step) -> CycleFill {
    let mut fill = CycleFill {
        cycle: step.cycle.label().to_owned(),
        scheduled_time: step.at,
        instance_id: None,
        skipped: None,
        downstream: Vec::new(),
    };
    let skipped = |reason, instance_id| Some(Skipped { reason, instance_id });
    match step.what {
        What::Make(birth) => {
            let id = birth.id.clone();
            match wave::create(turn, *birth) {
                Made::New(below) => {
                    fill.instance_id = Some(id);
                    fill.downstream = below;
                }
                Made::Before => fill.skipped = skipped(SkipReason::Duplicate, id),
                Made::Duplicate { holder, .. } => {
                    fill.skipped = skipped(SkipReason::Duplicate, holder);
                }
            }
        }
        What::Leave(reason, instance) => {
            if reason == SkipReason::Succeeded {
                fill.downstream = complete::below(turn, &instance);
            }
            fill.skipped = skipped(reason, instance);
        }
    }
    fill
}
