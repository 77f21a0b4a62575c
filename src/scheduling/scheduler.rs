//! The scheduler (调度决策器): which instance starts next, and where. It has no state of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::roster;
use super::state::State;
use crate::model::id::{ExecutorId, InstanceId, QueueName};
use crate::model::instance::{Instance, Reason};
use crate::model::record::Target;
use crate::model::spec::TaskSpec;

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) instance: InstanceId,
    pub(super) executor: ExecutorId,
    pub(super) queue: QueueName,
    /// The queues that competed for the slot, with their weights.
    pub(super) competitors: Vec<(QueueName, u32)>,
}

/// The next instance to start and its executor; `None`: nothing can start now.
pub(super) fn assign(state: &State) -> Option<Assignment> {
    if state.stopping.is_some() || !state.opened || state.holds.contains_key(&Target::All) {
        return None;
    }
    roster::free(&state.settings, &state.roster, &state.usage).next()?;
    let competitors: Vec<(QueueName, u32)> = state
        .queue
        .waiting()
        .filter(|queue| queue_is_open(state, queue))
        .map(|queue| (queue.clone(), weight(state, queue)))
        .collect();
    let mut tried = BTreeSet::new();
    for queue in state.round_robin.order(&competitors) {
        let placed = state.queue.heads(&queue).find_map(|head| {
            let instance = state.instances.get(&head.instance)?;
            let spec = state.spec_of(instance)?;
            // Whether the file is still there is not known yet.
            let unsure = state.files_unread && instance.awaited_file().is_some();
            let free = !unsure && held_back_by(state, instance, &spec).is_none();
            let executor = if free { place(state, &spec) } else { None };
            executor.map(|executor| (head.instance.clone(), executor))
        });
        if let Some((instance, executor)) = placed {
            // A queue in which nothing can be placed gains no credit for later.
            let competitors = competitors.into_iter().filter(|(q, _)| !tried.contains(q)).collect();
            return Some(Assignment { instance, executor, queue, competitors });
        }
        tried.insert(queue);
    }
    None
}

/// Why a READY instance does not start: the first that holds (design, 'State and reason'). That files
/// have not been looked at since the start has no name: it is over soon, whatever anybody does.
pub(super) fn held_by(state: &State, instance: &Instance, spec: &TaskSpec) -> Option<Reason> {
    let paused = instance.paused.is_some()
        || state.holds.contains_key(&Target::All)
        || state.holds.contains_key(&Target::Queue(instance.queue.clone()))
        || state.registry.row(&instance.task_id).is_some_and(|r| r.paused.is_some());
    if paused {
        return Some(Reason::Paused);
    }
    if instance.awaits_upstream {
        return Some(Reason::WaitingDependency);
    }
    let fits = state
        .settings
        .executors
        .iter()
        .filter(|e| e.takes(&spec.task_type, &spec.executor_labels))
        .any(|e| state.roster.connection(&e.id).is_some());
    if !fits {
        return Some(Reason::NoExecutor);
    }
    if held_back_by(state, instance, spec).is_some() || quota_is_full(state, &instance.queue) {
        return Some(Reason::Quota);
    }
    place(state, spec).is_none().then_some(Reason::NoSlot)
}

/// The executor with the most free slots that takes the task.
fn place(state: &State, spec: &TaskSpec) -> Option<ExecutorId> {
    roster::free(&state.settings, &state.roster, &state.usage)
        .filter(|(e, _)| e.takes(&spec.task_type, &spec.executor_labels))
        .max_by_key(|(e, left)| (*left, std::cmp::Reverse(e.id.clone())))
        .map(|(e, _)| e.id.clone())
}

/// What of the task or its owner holds an instance back.
fn held_back_by(state: &State, instance: &Instance, spec: &TaskSpec) -> Option<Reason> {
    if state.registry.row(&instance.task_id).is_some_and(|r| r.paused.is_some()) {
        return Some(Reason::Paused);
    }
    let task_full =
        spec.max_concurrent.is_some_and(|max| state.usage.task(&instance.task_id) >= max);
    let owner_full = state
        .settings
        .owner_quota
        .get(&spec.owner)
        .is_some_and(|max| state.usage.owner(&spec.owner) >= *max);
    (task_full || owner_full).then_some(Reason::Quota)
}

fn queue_is_open(state: &State, queue: &QueueName) -> bool {
    !state.holds.contains_key(&Target::Queue(queue.clone())) && !quota_is_full(state, queue)
}

fn quota_is_full(state: &State, queue: &QueueName) -> bool {
    state
        .settings
        .queues
        .iter()
        .find(|q| q.name == *queue)
        .and_then(|q| q.max_running)
        .is_some_and(|max| state.usage.queue(queue) >= max)
}

/// A queue's weight; one that the configuration no longer names still gets its turn.
fn weight(state: &State, queue: &QueueName) -> u32 {
    let weights: BTreeMap<&QueueName, u32> =
        state.settings.queues.iter().map(|q| (&q.name, q.weight)).collect();
    weights.get(queue).copied().unwrap_or(1)
}
