//! `schedctl run`: a person's or a program's instance (docs/waves.md, rules 5 and 10).

use std::sync::Arc;

use super::super::answers;
use super::super::turn::Turn;
use super::wave::{self, Birth, Made};
use crate::model::cycle::{Cycle, CycleUnit};
use crate::model::event::SpecError;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Cause;
use crate::model::params;
use crate::model::request::{Answer, Rejection, RejectionCode, Reply, SubmitBody, Submitted};
use crate::model::spec::{JsonMap, TaskSpec};

/// Open instances of the same cycle that an answer names.
const OPEN_NAMED_MAX: usize = 20;

/// Makes an instance, or says why not.
pub(in super::super) fn request(turn: &mut Turn<'_>, task: &TaskId, body: &SubmitBody) -> Answer {
    let Some(spec) = turn.state.registry.spec(task).cloned() else {
        return Err(answers::no_task(turn.state, task));
    };
    let unknown = turn.state.registry.unresolved(&spec);
    if !unknown.is_empty() && !body.ignore_deps {
        let unknown: Vec<&str> = unknown.iter().map(TaskId::as_str).collect();
        return Err(Rejection::new(
            RejectionCode::Conflict,
            format!(
                "task {task} waits for tasks that no file defines: {}; define them, or run it with \
                 --ignore-deps",
                unknown.join(", ")
            ),
        ));
    }
    let params = checked_params(turn, &spec, body)?;
    // Two submissions of one millisecond are two: the log position tells them apart.
    let id = wave::id_of(turn.now, task, &format!("submit\0{}", turn.state.tip.0));
    let cycle = cycle(turn, &spec, body, &id)?;
    let open = turn.state.instances.open_in(task, &cycle).map(|i| i.instance_id.clone());
    let open_in_cycle: Vec<InstanceId> = open.take(OPEN_NAMED_MAX).collect();
    let submitted = Submitted { instance_id: id.clone(), open_in_cycle, repeated: false };
    if body.dry_run {
        return Ok(Reply::Submitted(submitted));
    }
    let birth = Birth {
        spec: Arc::clone(&spec),
        id: id.clone(),
        trigger: Cause::Submit { uid: turn.caller() },
        scheduled_time: turn.now,
        cycle,
        params,
        priority: body.priority.map(|p| p.0),
        not_before: body.at.filter(|at| *at > turn.now),
        ignore_deps: body.ignore_deps,
        no_downstream: body.no_downstream,
    };
    match wave::create(turn, birth) {
        Made::New(_) => {}
        Made::Before => {
            let detail = format!("instance {id} exists already");
            return Err(Rejection::new(RejectionCode::Conflict, detail));
        }
        Made::Duplicate { detail, .. } => {
            return Err(Rejection::new(RejectionCode::Conflict, detail));
        }
    }
    Ok(Reply::Submitted(submitted))
}

/// All parameters that are wrong, or missing with nothing that could still bring them.
fn checked_params(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    body: &SubmitBody,
) -> Result<JsonMap, Rejection> {
    let mut problems = Vec::new();
    let params = params::check_given(&spec.runtime_params, &body.params).unwrap_or_else(|errors| {
        problems.extend(errors.into_iter().map(|e| (e.name, e.problem)));
        body.params.clone()
    });
    for name in missing(turn, spec, &params, body.ignore_deps) {
        let how = format!("is required; give it with -p {name}=VALUE");
        problems.push((name, how));
    }
    if problems.is_empty() {
        return Ok(params);
    }
    let names: Vec<&str> = problems.iter().map(|(name, _)| name.as_str()).collect();
    Err(Rejection {
        code: RejectionCode::Invalid,
        detail: format!(
            "task {} was not run: parameters missing or wrong: {}",
            spec.task_id,
            names.join(", ")
        ),
        errors: problems
            .into_iter()
            .map(|(name, message)| SpecError {
                file: String::new(),
                line: 0,
                column: 0,
                path: format!("params.{name}"),
                message,
            })
            .collect(),
    })
}

/// Required parameters that nothing gives and that no direct upstream could still bring
/// (docs/waves.md, rule 5).
pub(super) fn missing(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    given: &JsonMap,
    ignore_deps: bool,
) -> Vec<String> {
    let flows = |name: &String| {
        !ignore_deps
            && spec.depends_on.iter().any(|d| {
                let upstream = turn.state.registry.spec(&d.task_id);
                upstream.is_some_and(|upstream| upstream.runtime_params.contains_key(name))
            })
    };
    let required = spec
        .runtime_params
        .iter()
        .filter(|(_, schema)| schema.required && schema.default.is_none());
    let names = required.map(|(name, _)| name);
    names.filter(|name| !given.contains_key(*name) && !flows(name)).cloned().collect()
}

/// The cycle that the submission names, or now's (design, 'cycles and waves').
fn cycle(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    body: &SubmitBody,
    id: &InstanceId,
) -> Result<Cycle, Rejection> {
    let invalid = |detail: String| Rejection::new(RejectionCode::Invalid, detail);
    let rule = turn.state.registry.rule(&spec.task_id);
    let zone = turn.state.zone(spec.timezone.as_deref());
    let named = match (&body.cycle, &body.date) {
        (Some(_), Some(_)) => {
            return Err(invalid("both a cycle and a date were given; give one".to_owned()));
        }
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => return Ok(Cycle::of(turn.now, &zone, rule, id)),
    };
    if rule.unit == CycleUnit::Run {
        // On a RUN task a submission joins the named run.
        let run = turn.state.instances.cycle_of(&InstanceId::from_text(named));
        return run.filter(|c| c.unit() == CycleUnit::Run).cloned().ok_or_else(|| {
            invalid(format!(
                "{named:?} is no run of task {}; its cycles are runs, named by the id of their \
                 root instance",
                spec.task_id
            ))
        });
    }
    let cycle = Cycle::parse(named).map_err(|e| invalid(e.to_string()))?;
    Ok(cycle.cut_to(rule.unit))
}
