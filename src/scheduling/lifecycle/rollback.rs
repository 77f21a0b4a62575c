//! A person puts an earlier revision in force, or ends that (requirement A7).

use std::sync::Arc;

use super::super::answers;
use super::super::registry;
use super::super::turn::Turn;
use super::definitions::{self, Changed};
use crate::model::id::TaskId;
use crate::model::record::{Pin, Record, Revision, TaskRow};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};

/// `schedctl rollback`: the revision is in force at once and stays, whatever the file says, until
/// `unpin` or until the file defines something else than now.
pub(in super::super) fn request(turn: &mut Turn<'_>, task: &TaskId, revision: Revision) -> Answer {
    let mut row = row(turn, task)?;
    if revision.task_id != *task {
        let detail = format!("revision {} is one of {}", revision.revision, revision.task_id);
        return Err(Rejection::new(RejectionCode::Invalid, detail));
    }
    let number = revision.revision;
    check(turn, &revision)?;
    let held_off = row.pinned.as_ref().map_or(row.revision.unwrap_or(number), |pin| pin.revision);
    // While the file says nothing that counts, what an earlier rollback holds off stays held off.
    let ignored = match (turn.state.registry.offered(task), &row.pinned) {
        (Some(offered), _) => registry::hash(offered),
        (None, Some(pin)) => pin.ignored.clone(),
        (None, None) => {
            let in_force = turn.state.registry.spec(task);
            in_force.map(|spec| registry::hash(spec)).unwrap_or_default()
        }
    };
    let uid = turn.caller();
    row.pinned = Some(Pin { revision: held_off, ignored, at: turn.now, uid });
    turn.record(Record::DefinitionPinned { task_id: task.clone(), revision: number });
    force(turn, row, revision);
    // What others' files say may be sound now.
    let plan = turn.state.registry.read_again(task);
    definitions::carry_out(turn, plan);
    Ok(Reply::Done)
}

/// `schedctl unpin`: what the file says counts again. Harmless where nothing is pinned.
pub(in super::super) fn unpin(turn: &mut Turn<'_>, task: &TaskId) -> Answer {
    let mut row = row(turn, task)?;
    let Some(pin) = row.pinned.take() else { return Ok(Reply::Done) };
    turn.record(Record::DefinitionUnpinned {
        task_id: task.clone(),
        revision: row.revision.unwrap_or_default(),
        why: format!("uid {} asked for it", turn.caller()),
    });
    turn.put_task(row);
    let says = turn.state.registry.offered(task).cloned();
    let plan = turn.state.registry.read_again(task);
    definitions::carry_out(turn, plan);
    let registry = &turn.state.registry;
    if says.is_some() && registry.spec(task) == says.as_ref() {
        return Ok(Reply::Done);
    }
    // The file is broken, or what it says is not sound: then what it said last counts.
    let row = registry.row(task).filter(|row| row.revision.is_some()).cloned();
    let held_off = registry.revision(task, pin.revision).cloned();
    if let (Some(row), Some(held_off)) = (row, held_off)
        && check(turn, &held_off).is_ok()
    {
        force(turn, row, held_off);
    }
    Ok(Reply::Done)
}

fn row(turn: &Turn<'_>, task: &TaskId) -> Result<TaskRow, Rejection> {
    let row = turn.state.registry.row(task).filter(|row| row.revision.is_some()).cloned();
    row.ok_or_else(|| answers::no_task(turn.state, task))
}

/// Whether a revision that was sound once still is, with the others as they are now.
fn check(turn: &mut Turn<'_>, revision: &Revision) -> Result<(), Rejection> {
    let (task, number) = (&revision.task_id, revision.revision);
    let refuse = |why: String| {
        let detail = format!("revision {number} of {task} cannot be in force: {why}");
        Err(Rejection::new(RejectionCode::Conflict, detail))
    };
    let queue = &revision.spec.queue;
    if !turn.state.settings.queues.iter().any(|q| q.name == *queue) {
        return refuse(format!("the configuration has no queue {queue}"));
    }
    match turn.state.registry.fault_with(&revision.spec) {
        Some(fault) => refuse(format!("it {fault}")),
        None => Ok(()),
    }
}

fn force(turn: &mut Turn<'_>, mut row: TaskRow, revision: Revision) {
    let task = row.task_id.clone();
    let before = turn.state.registry.spec(&task).cloned();
    row.revision = Some(revision.revision);
    let spec = Arc::clone(&revision.spec);
    turn.state.zones.learn_of(&revision.spec);
    turn.state.registry.put_revision(revision);
    turn.state.registry.place(&spec);
    turn.put_task(row);
    definitions::take_effect(turn, &Changed::from([(task, before)]));
}
