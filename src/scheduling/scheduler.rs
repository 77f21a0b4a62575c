//! The scheduler (调度决策器): which instance starts next, and where. It has no state of its own.

use super::order::Quotas;
use super::queue::{Class, Entry, Room as _};
use super::roster;
use super::round_robin::Turns;
use super::state::State;
use crate::model::id::{ExecutorId, InstanceId, QueueName};
use crate::model::instance::{Instance, Reason};
use crate::model::priority::Level;
use crate::model::record::Target;
use crate::model::settings::{Discipline, LevelWeights, QueueSettings};
use crate::model::spec::TaskSpec;

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) instance: InstanceId,
    pub(super) executor: ExecutorId,
    pub(super) queue: QueueName,
    pub(super) level: Level,
    /// When it became ready, as a position in the log.
    pub(super) ready_seq: u64,
    /// The queues that could have used the slot, with their weights.
    competitors: Vec<(QueueName, u32)>,
    /// In a queue that shares by level: the levels that could have used it, with their weights.
    levels: Vec<(Level, u32)>,
}

impl Assignment {
    /// Notes whose turn it was.
    pub(super) fn charge(&self, turns: &mut Turns) {
        turns.queues.charge(&self.competitors, &self.queue);
        if self.levels.is_empty() {
            turns.levels.remove(&self.queue);
        } else {
            let levels = turns.levels.entry(self.queue.clone()).or_default();
            levels.charge(&self.levels, &self.level);
        }
    }
}

/// What one queue would start now.
struct Candidate<'a> {
    queue: &'a QueueName,
    entry: &'a Entry,
    class: &'a Class,
    levels: Vec<(Level, u32)>,
}

/// Whether anything may start at all.
pub(super) fn is_open(state: &State) -> bool {
    state.stopping.is_none() && state.opened && !state.holds.contains_key(&Target::All)
}

/// The next instance to start and its executor; `None`: nothing can start now.
pub(super) fn assign(state: &State) -> Option<Assignment> {
    if !is_open(state) {
        return None;
    }
    let free = roster::free(&state.settings, &state.roster, &state.usage);
    if free.iter().all(|slots| *slots == 0) {
        return None;
    }
    let candidates: Vec<Candidate<'_>> =
        open_queues(state).filter_map(|queue| candidate(state, queue, &free)).collect();
    // A queue in which nothing can be placed takes no part and saves up nothing for later.
    let competitors: Vec<(QueueName, u32)> =
        candidates.iter().map(|c| (c.queue.clone(), weight(state, c.queue))).collect();
    let order = state.turns.queues.order(&competitors);
    let in_order = || order.iter().filter_map(|q| candidates.iter().find(|c| c.queue == q));
    let first = in_order().next()?;
    let above = || in_order().find(|c| c.class.level < first.class.level);
    let chosen = if yields(state, first) { above().unwrap_or(first) } else { first };
    let executor = place(state, &chosen.class.executors, &free)?;
    Some(Assignment {
        instance: chosen.entry.instance.clone(),
        executor,
        queue: chosen.queue.clone(),
        level: chosen.class.level,
        ready_seq: chosen.entry.ready_seq,
        levels: chosen.levels.clone(),
        competitors,
    })
}

/// Queues in which something waits and that may start one more.
pub(super) fn open_queues(state: &State) -> impl Iterator<Item = &QueueName> {
    state.queue.waiting().filter(|queue| {
        let held = state.holds.contains_key(&Target::Queue((*queue).clone()));
        !held && !quota_is_full(state, queue)
    })
}

/// Whether what waits in a class may start at all as far as is known: not whether files that it is
/// for are still there, before they have been looked at.
pub(super) fn is_sure(state: &State, class: &Class) -> bool {
    !(class.awaits_file && state.files_unread)
}

fn candidate<'a>(state: &'a State, queue: &'a QueueName, free: &[u32]) -> Option<Candidate<'a>> {
    let has_slot = |at: &usize| free.get(*at).is_some_and(|slots| *slots > 0);
    let can_be_placed =
        |class: &Class| class.executors.iter().any(has_slot) && is_sure(state, class);
    let heads = state.queue.heads(queue, can_be_placed);
    let Some(weights) = level_weights(state, queue) else {
        let (entry, class) = heads.first().copied()?;
        return Some(Candidate { queue, entry, class, levels: Vec::new() });
    };
    let levels: Vec<(Level, u32)> =
        heads.iter().map(|(_, class)| (class.level, weights.of(class.level))).collect();
    let turns = state.turns.levels.get(queue).cloned().unwrap_or_default();
    let next = turns.order(&levels).into_iter().next()?;
    let (entry, class) = heads.into_iter().find(|(_, class)| class.level == next)?;
    Some(Candidate { queue, entry, class, levels })
}

/// One that would give up its slot to a higher level does not take a slot before it either.
fn yields(state: &State, candidate: &Candidate<'_>) -> bool {
    let instance = state.instances.get(&candidate.entry.instance);
    let spec = instance.and_then(|i| state.spec_of(i));
    spec.is_some_and(|spec| spec.preemptible && spec.may_run_again())
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
    let executors = state.settings.executors.iter().enumerate();
    let fits: Vec<usize> = executors
        .filter(|(_, e)| e.takes(&spec.task_type, &spec.executor_labels))
        .filter(|(_, e)| state.roster.connection(&e.id).is_some())
        .map(|(at, _)| at)
        .collect();
    if fits.is_empty() {
        return Some(Reason::NoExecutor);
    }
    let quotas =
        Quotas { settings: &state.settings, registry: &state.registry, usage: &state.usage };
    let has_room = quotas.task_is_open(&instance.task_id, spec.max_concurrent)
        && quotas.owner_is_open(&spec.owner)
        && !quota_is_full(state, &instance.queue);
    if !has_room {
        return Some(Reason::Quota);
    }
    let free = roster::free(&state.settings, &state.roster, &state.usage);
    place(state, &fits, &free).is_none().then_some(Reason::NoSlot)
}

/// Of these executors the one with the most free slots; among equals the one that reports the
/// lower load.
fn place(state: &State, executors: &[usize], free: &[u32]) -> Option<ExecutorId> {
    let settings = |at: &usize| Some((free.get(*at)?, state.settings.executors.get(*at)?));
    let load = |id| {
        let connection = state.roster.connection(id);
        connection.and_then(|c| c.load).map_or(0.0, |load| load.load1)
    };
    executors
        .iter()
        .filter_map(settings)
        .filter(|(slots, _)| **slots > 0)
        .max_by(|(slots_a, a), (slots_b, b)| {
            let by_load = || load(&b.id).total_cmp(&load(&a.id));
            slots_a.cmp(slots_b).then_with(by_load).then_with(|| b.id.cmp(&a.id))
        })
        .map(|(_, e)| e.id.clone())
}

fn quota_is_full(state: &State, queue: &QueueName) -> bool {
    let max = settings_of(state, queue).and_then(|q| q.max_running);
    max.is_some_and(|max| state.usage.queue(queue) >= max)
}

/// A queue's weight; one that the configuration no longer names still gets its turn.
fn weight(state: &State, queue: &QueueName) -> u32 {
    settings_of(state, queue).map_or(1, |q| q.weight)
}

/// The shares of the levels of a queue; `None`: it is strict.
pub(super) fn level_weights(state: &State, queue: &QueueName) -> Option<LevelWeights> {
    match settings_of(state, queue)?.discipline {
        Discipline::Strict => None,
        Discipline::Weighted(weights) => Some(weights),
    }
}

fn settings_of<'a>(state: &'a State, queue: &QueueName) -> Option<&'a QueueSettings> {
    state.settings.queues.iter().find(|q| q.name == *queue)
}
