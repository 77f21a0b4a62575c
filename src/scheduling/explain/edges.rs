//! How the edges of an instance stand: the run of the upstream that counts, or what is to come.

use super::super::edges;
use super::super::lifecycle::fire;
use super::super::state::State;
use crate::model::cycle::Cycle;
use crate::model::explain::{EdgeExplanation, InstanceExplanation, OpenEdge};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState, Reason};
use crate::model::spec::{DepType, Strength, TaskSpec, Trigger};
use crate::model::time::Timestamp;
use crate::model::view::Upstream;

/// Coming fires of an upstream that are looked at for one whose cycle counts.
const FIRES_MAX: usize = 100;

/// Fills in the edges, and since when a broken one has held the instance back.
pub(super) fn tell(
    state: &State,
    i: &Instance,
    spec: Option<&TaskSpec>,
    told: &mut InstanceExplanation,
) {
    for edge in &mut told.edges {
        let named =
            spec.and_then(|spec| spec.depends_on.iter().find(|d| d.task_id == edge.task_id));
        edge.when = named.and_then(|d| d.when.as_ref()).map(|when| when.as_str().to_owned());
        let Some(id) = edge.instance_id.clone() else {
            let offset = named.map_or(0, |d| d.cycle_offset);
            look_for(state, &i.cycle, offset, edge);
            continue;
        };
        if let Some((ended, is_final)) = state.instances.state_of(&id) {
            let outputs = state.instances.outputs_of(&id);
            let has_data = outputs.is_none_or(|outputs| outputs.found.is_some());
            edge.stands(Upstream { state: ended, is_final, has_data });
        }
        if !edge.satisfied && edge.dep_type == DepType::DataReady {
            edge.missing = state.data_waits.lacks(&id).unwrap_or_default().to_vec();
        }
        edge.cycle = state.instances.cycle_of(&id).map(|cycle| cycle.label().to_owned());
        (edge.reason, edge.since) = since(state, &id);
    }
    if i.state == InstanceState::Blocked {
        let broken = told.edges.iter().filter(|e| e.is_final && !e.satisfied);
        told.since = broken.filter_map(|e| e.since).min().map(|at| at.max(i.created_at));
    }
}

fn since(state: &State, id: &InstanceId) -> (Option<Reason>, Option<Timestamp>) {
    if let Some(open) = state.instances.get(id) {
        return (open.reason, InstanceExplanation::of(open).since);
    }
    match state.instances.ended(id) {
        Some(ended) => (ended.reason, ended.last.finished_at),
        None => (None, None),
    }
}

/// Of an open edge: which cycle it looks for, whether that was left out, and what is to come.
fn look_for(state: &State, own: &Cycle, offset: i32, edge: &mut EdgeExplanation) {
    let lag = edges::lag(state, &edge.task_id, offset);
    let unit = state.registry.rule(&edge.task_id).unit;
    let behind = lag.as_ref().and_then(|lag| own.behind(unit, lag));
    edge.wanted_cycle = behind.map(|(first, last)| match first == last {
        true => first.label().to_owned(),
        false => format!("{} to {}", first.label(), last.label()),
    });
    if let Some(empty) = edges::empty_cycle(state, own, &edge.task_id, offset) {
        edge.satisfied = edge.strength == Strength::Weak;
        edge.skipped = Some(edges::made_nothing(empty));
    }
    let counts = |cycle: &Cycle| match &lag {
        Some(lag) => own.matches_behind(cycle, lag),
        None => cycle.matches(own),
    };
    edge.open = Some(open(state, &edge.task_id, &counts));
}

/// What is to come of an upstream that has no instance which counts.
fn open(state: &State, upstream: &TaskId, counts: &dyn Fn(&Cycle) -> bool) -> OpenEdge {
    let Some(spec) = state.registry.spec(upstream) else {
        return OpenEdge {
            status: None,
            paused: None,
            is_derived: false,
            schedule: String::new(),
            next_fire_time: None,
            next_cycle: None,
            matching_fire_time: None,
        };
    };
    let next = next_fire(state, spec);
    let row = state.registry.row(upstream);
    OpenEdge {
        status: Some(state.registry.status(spec)),
        paused: row.and_then(|row| row.paused.clone()),
        is_derived: spec.is_derived(),
        schedule: super::answers::schedule(state, spec),
        next_fire_time: next.as_ref().map(|(at, _)| *at),
        next_cycle: next.map(|(_, cycle)| cycle.label().to_owned()),
        matching_fire_time: matching(state, spec, counts),
    }
}

/// The next fire of a task's own time triggers, and its cycle.
pub(super) fn next_fire(state: &State, spec: &TaskSpec) -> Option<(Timestamp, Cycle)> {
    let fires = spec.triggers.iter().filter_map(|trigger| {
        let at = state.next_fires.get(&(spec.task_id.clone(), trigger.key()))?;
        Some((*at, trigger.key()))
    });
    let (at, key) = fires.min()?;
    Some((at, fire::cycle_of(state, spec, at, &key)))
}

/// The first coming fire whose cycle counts, among the next few of each trigger.
fn matching(state: &State, spec: &TaskSpec, counts: &dyn Fn(&Cycle) -> bool) -> Option<Timestamp> {
    let of_trigger = |trigger: &Trigger| {
        let key = trigger.key();
        let first = *state.next_fires.get(&(spec.task_id.clone(), key.clone()))?;
        let next = |at: &Timestamp| state.next_after(spec, trigger, *at);
        std::iter::successors(Some(first), next)
            .take(FIRES_MAX)
            .find(|at| counts(&fire::cycle_of(state, spec, *at, &key)))
    };
    spec.triggers.iter().filter_map(of_trigger).min()
}
