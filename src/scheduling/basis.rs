//! What a simulation starts from: the rows from which a daemon that starts now would load itself,
//! as far as the core holds them. What ended is the store's to add.

use std::sync::Arc;

use super::state::State;
use crate::model::record::{Cursor, Hold, Row};
use crate::model::settings::Settings;
use crate::model::simulation::Basis;
use crate::model::time::Timestamp;

/// All of it. Files that were taken and answers that are kept are left out: nothing that a
/// simulation does depends on them.
pub(super) fn basis(state: &State, now: Timestamp) -> Basis {
    let tasks = state.registry.rows().cloned().map(Row::Task);
    let revisions = state.registry.revisions().cloned().map(Row::Revision);
    let holds = state
        .holds
        .iter()
        .map(|(target, pause)| Row::Hold(Hold { target: target.clone(), pause: pause.clone() }));
    let cursors = state.cursors.iter().map(|((task, trigger), handled_to)| {
        Row::Cursor(Cursor {
            task_id: task.clone(),
            trigger: trigger.clone(),
            handled_to: *handled_to,
        })
    });
    let open = state.instances.shared_open().filter(|i| i.is_open());
    let instances = open.map(|i| Row::Instance(Arc::clone(i)));
    let jumps = state.jumps.values().cloned().map(Row::Jumps);
    let empty = state.empty_cycles.rows().cloned().map(Row::EmptyCycle);
    Basis {
        at: now,
        task_types: state.settings.task_types.keys().cloned().collect(),
        settings: Settings::clone(&state.settings),
        tip: state.tip,
        boot_id: state.process.boot_id.to_string(),
        rows: tasks
            .chain(revisions)
            .chain(holds)
            .chain(cursors)
            .chain(jumps)
            .chain(empty)
            .chain(instances)
            .collect(),
        history: Vec::new(),
    }
}
