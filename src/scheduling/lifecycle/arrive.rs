//! Files that arrived, each once (requirement E3).

use super::super::graph::Source;
use super::super::turn::Turn;
use super::fire::{self, Happening};
use crate::model::event::FileArrival;
use crate::model::instance::Cause;
use crate::model::record::{Arrival, FireOutcome, Row, RowKey};
use crate::model::spec::TriggerKind;
use crate::model::view::TaskStatus;

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
    if turn.state.arrivals.get(&key) == Some(&arrival.identity) {
        return;
    }
    let Some(spec) = turn.state.registry.spec(task).cloned() else { return };
    let matches = |t: &&crate::model::spec::Trigger| matches!(&t.when, TriggerKind::File(f) if f.pattern == arrival.pattern);
    let Some(trigger) = spec.triggers.iter().find(matches) else { return };
    let at = turn.now;
    match turn.state.registry.status(&spec) {
        // A paused task's files make instances that wait (design, 'Pause').
        TaskStatus::Active | TaskStatus::Paused => {
            let id = arrival.identity;
            let identity = format!(
                "{}\0{}\0{}\0{}\0{}",
                arrival.path, id.device, id.inode, id.size, id.mtime_ns
            );
            let what = Happening {
                trigger,
                cause: Cause::File { path: arrival.path.clone() },
                at,
                identity: &identity,
                file: Some(&arrival.path),
                event: None,
            };
            fire::make(turn, &spec, what);
        }
        TaskStatus::Disabled => {
            let reason = Some(arrival.path.clone());
            let key = trigger.key();
            turn.fire_one((task, &key, at), FireOutcome::Disabled, reason, None);
        }
        TaskStatus::Unresolved => {
            let reason = Some(arrival.path.clone());
            let key = trigger.key();
            turn.fire_one((task, &key, at), FireOutcome::Unresolved, reason, None);
        }
    }
    turn.state.arrivals.insert(key, arrival.identity);
    turn.put_row(Row::Arrival(Arrival {
        task_id: task.clone(),
        pattern: arrival.pattern.clone(),
        path: arrival.path.clone(),
        identity: arrival.identity,
    }));
}

/// Files that are gone: the same name is a new arrival from now on.
pub(in super::super) fn gone(turn: &mut Turn<'_>, paths: &[String]) {
    let keys: Vec<_> =
        turn.state.arrivals.keys().filter(|(_, _, path)| paths.contains(path)).cloned().collect();
    for key in keys {
        turn.state.arrivals.remove(&key);
        let (task_id, pattern, path) = key;
        turn.drop_row(RowKey::Arrival { task_id, pattern, path });
    }
}
