//! The dependency clock of what is held stands still (docs/waves.md, rule 11): while the instance,
//! its task, its queue or everything is paused, or several of these one after the other.

use super::super::state::State;
use super::super::turn::Turn;
use crate::model::id::{InstanceId, QueueName, TaskId};
use crate::model::instance::Instance;
use crate::model::record::Target;
use crate::model::time::Timestamp;

/// Whether instances of a task in a queue are held, whichever they are.
pub(super) fn holds(state: &State, task: &TaskId, queue: &QueueName) -> bool {
    let is_paused = || state.registry.row(task).is_some_and(|row| row.paused.is_some());
    !state.holds.is_empty()
        && (state.holds.contains_key(&Target::All)
            || state.holds.contains_key(&Target::Queue(queue.clone())))
        || is_paused()
}

/// A pause of this began or ended at a time: clocks stop, or go on.
pub(super) fn changed(turn: &mut Turn<'_>, target: &Target, at: Timestamp) {
    let table = &turn.state.instances;
    let has_clock = |i: &&Instance| i.is_waiting() && i.dependency_deadline.is_some();
    let ids = |of: &mut dyn Iterator<Item = &Instance>| -> Vec<InstanceId> {
        of.filter(has_clock).map(|i| i.instance_id.clone()).collect()
    };
    let affected = match target {
        Target::Instance(id) => vec![id.clone()],
        Target::Task(task) => ids(&mut table.open_of(task)),
        Target::Queue(queue) => ids(&mut table.open().filter(|i| i.queue == *queue)),
        Target::All => ids(&mut table.open()),
    };
    for id in affected {
        one(turn, &id, at);
    }
}

/// Stops an instance's clock at a time if something holds it, or lets it go on if nothing does.
pub(super) fn one(turn: &mut Turn<'_>, id: &InstanceId, at: Timestamp) {
    let Some(i) = turn.state.instances.get(id).filter(|i| i.is_waiting()) else { return };
    let is_held = i.paused.is_some() || holds(turn.state, &i.task_id, &i.queue);
    match i.held_since {
        None if is_held && i.dependency_deadline.is_some() => {
            turn.update(id, "held", |i| i.held_since = Some(at));
        }
        Some(since) if !is_held => {
            // Before its own time has come the clock does not run anyway.
            let stood = at.since(i.not_before.map_or(since, |begins| since.max(begins)));
            turn.update(id, "no longer held", |i| {
                i.held_since = None;
                i.dependency_deadline = i.dependency_deadline.map(|due| due.plus(stood));
            });
        }
        None | Some(_) => {}
    }
}

/// What an earlier version of the program did not note of waiting instances: since when they are
/// held, and when they expire.
pub(in super::super) fn complete(turn: &mut Turn<'_>) {
    let is_incomplete = |i: &&Instance| {
        i.is_waiting()
            && (i.expires_at.is_none() || i.held_since.is_none() && i.dependency_deadline.is_some())
    };
    let incomplete: Vec<InstanceId> =
        turn.state.instances.open().filter(is_incomplete).map(|i| i.instance_id.clone()).collect();
    for id in incomplete {
        let Some(i) = turn.state.instances.get(&id) else { continue };
        let since = i.paused.as_ref().map_or(turn.now, |pause| pause.since.min(turn.now));
        let begins = i.not_before.unwrap_or(i.created_at.min(turn.now));
        let retention = turn.state.retention(turn.state.spec_of(i).as_deref());
        turn.update(&id, "expiry", |i| {
            i.expires_at = i.expires_at.or(Some(begins.plus(retention)));
        });
        one(turn, &id, since);
    }
}
