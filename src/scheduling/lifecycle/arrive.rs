//! Files that arrived, each once (requirement E3).

use std::collections::BTreeSet;

use super::super::graph::Source;
use super::super::turn::Turn;
use super::fire::{self, Happening};
use crate::model::event::FileArrival;
use crate::model::instance::Cause;
use crate::model::record::{Arrival, ArrivalKey};
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};

/// One instance per listening task, unless this arrival was taken before.
pub(in super::super) fn arrived(turn: &mut Turn<'_>, arrivals: Vec<FileArrival>) {
    for arrival in arrivals {
        let source = Source::Files(arrival.pattern.clone());
        for task in turn.state.registry.graph().listeners(&source) {
            take(turn, &task, &arrival);
        }
    }
}

fn take(turn: &mut Turn<'_>, task: &crate::model::id::TaskId, arrival: &FileArrival) {
    let key = (task.clone(), arrival.pattern.clone(), arrival.path.clone());
    if let Some(taken) = turn.state.arrivals.get(&key)
        && taken.identity == arrival.identity
    {
        if taken.gone_at.is_some() {
            let back = Arrival { gone_at: None, ..taken.clone() };
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
    } else if let Some((outcome, reason)) = fire::never(turn, &spec) {
        let reason =
            reason.map_or_else(|| arrival.path.clone(), |r| format!("{}: {r}", arrival.path));
        turn.fire_one((task, &trigger.key(), at), outcome, Some(reason), None);
    } else {
        let id = arrival.identity;
        let identity =
            format!("{}\0{}\0{}\0{}\0{}", arrival.path, id.device, id.inode, id.size, id.mtime_ns);
        let what = Happening {
            trigger,
            cause: Cause::File { path: arrival.path.clone() },
            at,
            identity: &identity,
        };
        fire::make(turn, &spec, what);
    }
    turn.put_arrival(Arrival {
        task_id: task.clone(),
        pattern: arrival.pattern.clone(),
        path: arrival.path.clone(),
        identity: arrival.identity,
        gone_at: None,
    });
}

/// Whether the task took this very arrival by another of its patterns.
fn taken_otherwise(turn: &Turn<'_>, spec: &TaskSpec, arrival: &FileArrival) -> bool {
    spec.triggers.iter().any(|trigger| {
        let TriggerKind::File(file) = &trigger.when else { return false };
        let key = (spec.task_id.clone(), file.pattern.clone(), arrival.path.clone());
        let taken = turn.state.arrivals.get(&key);
        file.pattern != arrival.pattern && taken.is_some_and(|t| t.identity == arrival.identity)
    })
}

/// Files that are gone. Their identities are kept for a while: a directory that is moved away and
/// back, or a share that is unmounted and mounted again, brings no new arrival. A new file of the
/// same name has another identity anyway.
pub(in super::super) fn gone(turn: &mut Turn<'_>, paths: Vec<String>) {
    let paths: BTreeSet<String> = paths.into_iter().collect();
    let keys: Vec<ArrivalKey> =
        turn.state.arrivals.keys().filter(|(_, _, path)| paths.contains(path)).cloned().collect();
    for key in keys {
        if let Some(mut arrival) = turn.state.arrivals.get(&key).cloned()
            && arrival.gone_at.is_none()
        {
            arrival.gone_at = Some(turn.now);
            turn.put_arrival(arrival);
        }
    }
}
