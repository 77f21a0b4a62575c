//! What the core alone knows of why something is as it is (requirement C6); nothing here changes
//! anything. The words are the door's.
//!
//! All of it is bounded by what is open: one pass over the open instances at most, whatever is
//! asked.

mod edges;
mod graph;
mod quotas;
mod task;

use std::collections::BTreeSet;

pub(super) use self::graph::graph;
pub(super) use self::task::task;
use super::answers;
use super::inheritance;
use super::state::State;
use crate::model::explain::{
    DaemonHold, ExecutorOffer, InstanceExplanation, InstanceRef, PauseExplanation, Place, Placement,
};
use crate::model::id::{InstanceId, QueueName, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::priority::{Level, Priority};
use crate::model::record::Target;
use crate::model::spec::TaskSpec;

/// Instances that a list names at most; the numbers beside it count all.
const NAMED_MAX: usize = 5;
/// Dependents that are looked at for who lends its priority.
const DEPENDENTS_MAX: usize = 1000;

/// Why an instance is where it is; `None`: the core does not hold it, its row says all.
pub(super) fn instance(state: &State, id: &InstanceId) -> Option<InstanceExplanation> {
    let i = state.instances.get(id)?;
    let spec = state.spec_of(i);
    let mut told = InstanceExplanation::of(i);
    edges::tell(state, i, spec.as_deref(), &mut told);
    told.pauses = pauses(state, &i.task_id, &i.queue);
    told.pauses.splice(
        0..0,
        i.paused.iter().map(|pause| PauseExplanation {
            target: Target::Instance(id.clone()),
            pause: pause.clone(),
        }),
    );
    if let Some(live) = answers::live(state, std::slice::from_ref(id)).pop() {
        told.reason = live.reason;
        told.priority.effective = live.effective_priority;
    }
    let lifted = told.priority.effective < told.priority.own;
    told.priority.inherited_from =
        if lifted { lender(state, id, told.priority.effective) } else { None };
    if i.state == InstanceState::Ready {
        told.daemon = daemon_holds(state, i);
        told.place = place(state, i);
        if let Some(spec) = &spec {
            told.placement = Some(placement(state, spec));
            told.quotas = quotas::full(state, i, spec);
        }
    }
    if i.state == InstanceState::Running {
        let timeout = spec.as_ref().and_then(|spec| spec.timeout);
        told.timeout_at = i.started_at.zip(timeout).map(|(start, timeout)| start.plus(timeout));
    }
    Some(told)
}

/// Who holds a task, its queue or everything.
fn pauses(state: &State, task: &TaskId, queue: &QueueName) -> Vec<PauseExplanation> {
    let of_task = state.registry.row(task).and_then(|row| row.paused.as_ref());
    let of_task = of_task.map(|pause| (Target::Task(task.clone()), pause));
    let held = [Target::Queue(queue.clone()), Target::All]
        .into_iter()
        .filter_map(|target| state.holds.get(&target).map(|pause| (target, pause)));
    of_task
        .into_iter()
        .chain(held)
        .map(|(target, pause)| PauseExplanation { target, pause: pause.clone() })
        .collect()
}

/// What keeps the daemon from starting anything, or this one.
fn daemon_holds(state: &State, i: &Instance) -> Vec<DaemonHold> {
    let unread = state.files_unread && i.awaited_file().is_some();
    [
        (state.stopping.is_some(), DaemonHold::Stopping),
        (!state.opened, DaemonHold::SpecsUnread),
        (unread, DaemonHold::FilesUnread),
    ]
    .into_iter()
    .filter_map(|(holds, what)| holds.then_some(what))
    .collect()
}

/// The place of a READY instance among those of its queue; `None`: it is held itself and stands in
/// none.
fn place(state: &State, i: &Instance) -> Option<Place> {
    let own = state.queue.entries(&i.queue).find(|entry| entry.instance == i.instance_id)?;
    let (mut ahead, mut waiting) = (0, 0);
    let mut first = BTreeSet::new();
    for entry in state.queue.entries(&i.queue) {
        waiting += 1;
        if entry >= own {
            continue;
        }
        ahead += 1;
        first.insert(entry);
        if first.len() > NAMED_MAX {
            first.pop_last();
        }
    }
    let first = first.into_iter().filter_map(|entry| {
        let task_id = state.instances.get(&entry.instance)?.task_id.clone();
        Some(InstanceRef { instance_id: entry.instance.clone(), task_id })
    });
    Some(Place { queue: i.queue.clone(), ahead, waiting, first: first.collect() })
}

/// What a task asks of an executor, and what there is.
fn placement(state: &State, spec: &TaskSpec) -> Placement {
    let offer = |e: &crate::model::settings::ExecutorSettings| ExecutorOffer {
        executor_id: e.id.clone(),
        connected: state.roster.connection(&e.id).is_some(),
        fits: e.takes(&spec.task_type, &spec.executor_labels),
        task_types: e.task_types.clone(),
        labels: e.labels.clone(),
        slots: e.slots,
        running: state.usage.executor(&e.id),
    };
    Placement {
        task_type: spec.task_type.clone(),
        executor_labels: spec.executor_labels.clone(),
        executors: state.settings.executors.iter().map(offer).collect(),
    }
}

/// The nearest dependent that lends its priority: CRITICAL or HIGH, waiting, few edges below.
fn lender(state: &State, id: &InstanceId, effective: Priority) -> Option<InstanceRef> {
    let mut seen = BTreeSet::from([id.clone()]);
    let mut near = vec![id.clone()];
    for _ in 0..inheritance::EDGES_MAX {
        let mut next = Vec::new();
        for below in near.iter().flat_map(|id| state.instances.bound_to(id)) {
            let Some(i) = state.instances.get(&below) else { continue };
            let lends = matches!(i.priority.level(), Level::Critical | Level::High);
            if lends && i.is_waiting() && i.priority == effective {
                return Some(InstanceRef { instance_id: below, task_id: i.task_id.clone() });
            }
            if seen.len() < DEPENDENTS_MAX && seen.insert(below.clone()) {
                next.push(below);
            }
        }
        near = next;
    }
    None
}
