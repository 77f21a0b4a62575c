//! Data that is waited for: what a run is to leave behind, and when it is there (docs/waves.md,
//! rule 8).

use std::sync::Arc;

use super::super::fill;
use super::super::state::State;
use super::super::turn::Turn;
use crate::limits;
use crate::model::event::Finished;
use crate::model::id::InstanceId;
use crate::model::instance::{Edge, Instance};
use crate::model::output::{Outputs, OutputsLook, told};
use crate::model::placeholders::Known;
use crate::model::spec::{DepType, TaskSpec};

/// How the data of an edge stands, now that its upstream has ended.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Data {
    /// It is there, or nothing is asked for.
    There,
    /// Not yet; with words for a person.
    Awaited(String),
    /// It cannot be said what to look for; with words for a person.
    Unknowable(String),
}

/// What an instance that ends well is to leave behind; `None`: it declares nothing.
///
/// The paths are filled in now: the definition that it ran under may not be held for long.
pub(super) fn left_behind(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    i: &Instance,
    done: &Finished,
) -> Option<Arc<Outputs>> {
    if spec.outputs.is_empty() {
        return None;
    }
    // The clock may have been set back while it ran: then the earlier of the two is the bound.
    let started = done.started_at.into_iter().chain(i.started_at).min();
    let since = started.unwrap_or(i.created_at).min(done.finished_at);
    let (paths, problem) = match paths(turn.state, spec, i) {
        Ok(paths) => (paths, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    Some(Arc::new(Outputs { since, paths, problem, found: None }))
}

fn paths(state: &State, spec: &TaskSpec, i: &Instance) -> Result<Vec<String>, String> {
    let deps = fill::deps(state, i);
    let known = Known::of(spec, i, &i.runtime_params, Some(&deps));
    let mut bytes = 0;
    let mut paths = Vec::with_capacity(spec.outputs.len());
    for template in &spec.outputs {
        let path = known.text(template)?;
        bytes += path.len();
        if bytes > limits::OUTPUTS_BYTES_MAX {
            let max = limits::OUTPUTS_BYTES_MAX;
            return Err(format!("they have more than {max} bytes once they are filled in"));
        }
        if !path.starts_with('/') || path.contains('\0') {
            return Err(format!("{path:?} is no absolute path"));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// How the data stands that an edge asks for, once its upstream has ended so that the edge holds.
pub(in super::super) fn standing(state: &State, edge: &Edge) -> Data {
    let bound = edge.instance_id.as_ref().filter(|_| edge.dep_type == DepType::DataReady);
    let Some((id, outputs)) = bound.and_then(|id| Some((id, state.instances.outputs_of(id)?)))
    else {
        // On a WEAK edge an upstream that did not succeed left nothing to wait for.
        return Data::There;
    };
    let task = &edge.task_id;
    match (&outputs.problem, &outputs.found) {
        (Some(problem), _) => Data::Unknowable(format!("the outputs of {task} ({id}): {problem}")),
        (None, Some(_)) => Data::There,
        (None, None) => {
            let lacks = state.data_waits.lacks(id).map(told);
            let lacks = lacks.unwrap_or_else(|| "not looked at yet".to_owned());
            Data::Awaited(format!("waits for the outputs of {task} ({id}): {lacks}"))
        }
    }
}

/// What was seen of outputs that are waited for.
pub(in super::super) fn looked(turn: &mut Turn<'_>, looks: Vec<OutputsLook>) {
    for look in looks {
        if let Some(id) = take(turn, look) {
            for waiting in turn.state.data_waits.waiting_for(&id) {
                turn.admit_later(waiting);
            }
        }
    }
}

/// Takes one look; gives the instance if those who wait for it have to know.
fn take(turn: &mut Turn<'_>, look: OutputsLook) -> Option<InstanceId> {
    let OutputsLook { instance_id, sights, stored } = look;
    let outputs = Arc::clone(turn.state.data_waits.wanted(&instance_id)?);
    if sights.len() != outputs.paths.len() {
        return None;
    }
    if let Some(found) = outputs.found(turn.now, &sights) {
        // The row was read before this turn: it counts only if it is the one that is waited for.
        let is_it = |i: &Instance| i.outputs.as_ref() == Some(&outputs);
        let stored = stored.filter(|i| i.instance_id == instance_id && is_it(i))?;
        turn.found(*stored, Outputs { found: Some(found), ..(*outputs).clone() });
        return Some(instance_id);
    }
    let is_news = turn.state.data_waits.note(&instance_id, outputs.lacks(&sights));
    is_news.then_some(instance_id)
}

/// Tells whoever looks what is waited for now.
pub(in super::super) fn tell(turn: &mut Turn<'_>) {
    for command in turn.state.data_waits.news() {
        turn.command(command);
    }
}
