//! `boot: true`: once per boot of the machine, not per start of the daemon.

use std::sync::Arc;

use super::super::turn::Turn;
use super::fire;
use crate::model::id::TaskId;
use crate::model::instance::Cause;
use crate::model::record::Cursor;
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};

/// How the cursors begin that say which boot a task has had: they carry the boot's id.
const MARK: &str = "boot:";

/// Whether a cursor's key is that of a boot.
pub(in super::super) fn is_mark(trigger: &str) -> bool {
    trigger.starts_with(MARK)
}

/// Fires of this boot that have not been, in topological order of the tasks.
pub(super) fn all(turn: &mut Turn<'_>) {
    let graph = turn.state.registry.graph();
    let on_boot = |t: &Trigger| t.when == TriggerKind::Boot;
    let specs = turn.state.registry.specs().filter(|spec| spec.triggers.iter().any(on_boot));
    let mut tasks: Vec<(usize, TaskId)> =
        specs.map(|spec| (graph.level(&spec.task_id), spec.task_id.clone())).collect();
    tasks.sort();
    for (_, task) in tasks {
        let Some(spec) = fire::listening(turn, &task) else { continue };
        if let Some(trigger) = spec.triggers.iter().find(|t| on_boot(t)) {
            one(turn, &spec, trigger);
        }
    }
}

fn one(turn: &mut Turn<'_>, spec: &Arc<TaskSpec>, trigger: &Trigger) {
    let identity = mark(turn);
    if turn.state.cursors.contains_key(&(spec.task_id.clone(), identity.clone())) {
        return;
    }
    let at = turn.now;
    match fire::never(turn, spec) {
        Some((outcome, reason)) => {
            turn.fire_one((&spec.task_id, &trigger.key(), at), outcome, reason, None);
        }
        None => {
            let what = fire::Happening { trigger, cause: Cause::Boot, at, identity: &identity };
            fire::make(turn, spec, what);
        }
    }
    note(turn, &spec.task_id);
}

/// Remembers that a task has had this boot's fire, and forgets earlier boots.
pub(super) fn note(turn: &mut Turn<'_>, task: &TaskId) {
    let identity = mark(turn);
    let earlier: Vec<(TaskId, String)> = turn
        .state
        .cursors
        .range((task.clone(), MARK.to_owned())..)
        .take_while(|((of, trigger), _)| of == task && is_mark(trigger))
        .map(|(key, _)| key.clone())
        .filter(|(_, trigger)| *trigger != identity)
        .collect();
    for key in earlier {
        turn.drop_cursor(&key);
    }
    let handled_to = turn.now;
    turn.put_cursor(Cursor { task_id: task.clone(), trigger: identity, handled_to });
}

fn mark(turn: &Turn<'_>) -> String {
    format!("{MARK}{}", turn.state.process.boot_id)
}
