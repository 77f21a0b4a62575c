//! Files that arrived, each once (requirement E3), and what becomes of it when they go.

use std::collections::{BTreeMap, BTreeSet};

use super::super::graph::Source;
use super::super::turn::Turn;
use super::admit;
use super::fire::{self, Happening};
use crate::model::command::{Command, FileWatch};
use crate::model::event::FileArrival;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Cause, InstanceState, Reason};
use crate::model::record::Arrival;
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};
use crate::model::time::Timestamp;

/// A place in the dispatch queue: ready time and sequence.
type Place = (Timestamp, u64);

/// One instance per listening task, unless this arrival was taken before.
pub(in super::super) fn arrived(turn: &mut Turn<'_>, arrivals: Vec<FileArrival>) {
    for arrival in arrivals {
        let source = Source::Files(arrival.pattern.clone());
        for task in turn.state.registry.graph().listeners(&source) {
            take(turn, &task, &arrival);
        }
    }
}

fn take(turn: &mut Turn<'_>, task: &TaskId, arrival: &FileArrival) {
    if let Some(taken) = taken(turn, task, &arrival.pattern, &arrival.path)
        && taken.identity == arrival.identity
    {
        if taken.gone_at.is_some() {
            let back = Arrival { gone_at: None, ..taken };
            turn.put_arrival(back);
        }
        return;
    }
    let Some(spec) = turn.state.registry.spec(task).cloned() else { return };
    let matches =
        |t: &&Trigger| matches!(&t.when, TriggerKind::File(f) if f.pattern == arrival.pattern);
    let Some(trigger) = spec.triggers.iter().find(matches) else { return };
    if taken_otherwise(turn, &spec, arrival) {
        return;
    }
    let at = turn.now;
    if turn.state.registry.rollouts().is_taker(task) {
        // A lower version's triggers fire for it: the file is only noted, for the day it takes over.
    } else {
        // Before the new instance, so that a `dedupKey` made of the path is free.
        let place = replaced(turn, task, &arrival.path);
        if let Some((outcome, reason)) = fire::never(turn, &spec) {
            let path = &arrival.path;
            let reason = reason.map_or_else(|| path.clone(), |r| format!("{path}: {r}"));
            turn.fire_one((task, &trigger.key(), at), outcome, Some(reason), None);
        } else {
            let identity = identity(turn, arrival);
            let cause = Cause::File { path: arrival.path.clone() };
            let made =
                fire::make(turn, &spec, Happening { trigger, cause, at, identity: &identity });
            if let (Some(Ok(id)), Some(place)) = (made, place) {
                put_in(turn, &id, place);
            }
        }
    }
    turn.put_arrival(Arrival {
        task_id: task.clone(),
        pattern: arrival.pattern.clone(),
        path: arrival.path.clone(),
        identity: arrival.identity,
        gone_at: None,
    });
}

/// What a task has taken last of a path by a pattern.
fn taken(turn: &Turn<'_>, task: &TaskId, pattern: &str, path: &str) -> Option<Arrival> {
    let key = (task.clone(), pattern.to_owned());
    turn.state.arrivals.get(path)?.get(&key).cloned()
}

/// What makes an arrival different from all others. With its place in the log: a file may go and
/// come back as it was within one turn of the clock.
fn identity(turn: &Turn<'_>, arrival: &FileArrival) -> String {
    let (path, id, seq) = (&arrival.path, arrival.identity, turn.state.tip.0);
    format!("{path}\0{}\0{}\0{}\0{}\0{seq}", id.device, id.inode, id.size, id.mtime_ns)
}

/// Whether the task took this very arrival by another of its patterns.
fn taken_otherwise(turn: &Turn<'_>, spec: &TaskSpec, arrival: &FileArrival) -> bool {
    spec.triggers.iter().any(|trigger| {
        let TriggerKind::File(file) = &trigger.when else { return false };
        let taken = taken(turn, &spec.task_id, &file.pattern, &arrival.path);
        file.pattern != arrival.pattern && taken.is_some_and(|t| t.identity == arrival.identity)
    })
}

/// A file holds something new: what was made of it before and has not started would work on the
/// new content, which has an instance of its own. Gives the best place in the queue that this
/// made free.
fn replaced(turn: &mut Turn<'_>, task: &TaskId, path: &str) -> Option<Place> {
    let waiting = awaiting(turn, path, Some(task));
    let places = waiting.iter().filter_map(|(id, _)| {
        let i = turn.state.instances.get(id).filter(|i| i.state == InstanceState::Ready)?;
        Some((i.ready_at?, i.ready_seq))
    });
    let place = places.min();
    give_up(turn, waiting, &format!("{path} holds something else before the first start"));
    place
}

/// Gives a new instance another's place: however often a file changes, its turn comes.
fn put_in(turn: &mut Turn<'_>, id: &InstanceId, (ready_at, ready_seq): Place) {
    admit::all(turn);
    if turn.state.instances.get(id).is_some_and(|i| i.state == InstanceState::Ready) {
        turn.update(id, "place", |i| {
            i.ready_at = Some(ready_at);
            i.ready_seq = ready_seq;
        });
    }
}

/// Files that are gone. What was made for one and has not started ends, and the file may come again
/// as it was: nothing has been done with it. Else its identity is kept for a while: a directory
/// that is moved away and back, or a share that is unmounted and mounted again, brings no new
/// arrival.
pub(in super::super) fn gone(turn: &mut Turn<'_>, paths: Vec<String>) {
    for path in paths {
        let waiting = awaiting(turn, &path, None);
        let unused: BTreeSet<TaskId> = waiting.iter().map(|(_, task)| task.clone()).collect();
        give_up(turn, waiting, &format!("{path} was gone before the first start"));
        for arrival in arrivals_of(turn, &path) {
            let versions = turn.state.registry.rollouts().of(&arrival.task_id);
            if versions.iter().any(|version| unused.contains(version)) {
                turn.drop_arrival(&arrival.key());
            } else if arrival.gone_at.is_none() {
                turn.put_arrival(Arrival { gone_at: Some(turn.now), ..arrival });
            }
        }
    }
}

/// All that is remembered of a path.
fn arrivals_of(turn: &Turn<'_>, path: &str) -> Vec<Arrival> {
    turn.state.arrivals.get(path).into_iter().flat_map(BTreeMap::values).cloned().collect()
}

/// Instances made for a file that no attempt has been made of yet, with their tasks: of all tasks,
/// or of one and the versions that share its cycles.
fn awaiting(turn: &Turn<'_>, path: &str, of: Option<&TaskId>) -> Vec<(InstanceId, TaskId)> {
    let versions = of.map(|task| turn.state.registry.rollouts().of(task));
    let instances = turn.state.instances.awaiting_file(path);
    instances
        .filter(|i| versions.is_none_or(|versions| versions.contains(&i.task_id)))
        .map(|i| (i.instance_id.clone(), i.task_id.clone()))
        .collect()
}

fn give_up(turn: &mut Turn<'_>, waiting: Vec<(InstanceId, TaskId)>, why: &str) {
    for (id, _) in waiting {
        turn.transition(&id, InstanceState::Cancelled, Some(Reason::FileGone), |i| {
            i.message = Some(why.to_owned());
        });
    }
}

/// Tells the watcher which files matter now. Arrivals of triggers that are no more are kept for a
/// while, as those of files that are gone.
pub(super) fn watch(turn: &mut Turn<'_>) {
    let wanted: BTreeSet<FileWatch> =
        turn.state.registry.specs().flat_map(|spec| watches(spec)).collect();
    let wanted: Vec<FileWatch> = wanted.into_iter().collect();
    if turn.state.watched.as_ref() == Some(&wanted) {
        return;
    }
    let listening: BTreeSet<(&TaskId, &str)> =
        wanted.iter().map(|watch| (&watch.task_id, watch.pattern.as_str())).collect();
    let unheard = |arrival: &&Arrival| {
        arrival.gone_at.is_none()
            && !listening.contains(&(&arrival.task_id, arrival.pattern.as_str()))
    };
    let unheard: Vec<Arrival> = turn.state.arrivals().filter(unheard).cloned().collect();
    for arrival in unheard {
        turn.put_arrival(Arrival { gone_at: Some(turn.now), ..arrival });
    }
    turn.state.watched = Some(wanted.clone());
    turn.command(Command::WatchFiles(wanted));
}

fn watches(spec: &TaskSpec) -> impl Iterator<Item = FileWatch> {
    spec.triggers.iter().filter_map(|trigger| match &trigger.when {
        TriggerKind::File(file) => Some(FileWatch {
            task_id: spec.task_id.clone(),
            pattern: file.pattern.clone(),
            settle: file.settle,
            poll: file.poll,
        }),
        TriggerKind::Cron(_)
        | TriggerKind::Every(_)
        | TriggerKind::Boot
        | TriggerKind::Event(_)
        | TriggerKind::Task(_) => None,
    })
}
