//! Holding and letting go: an instance, a task, a queue, everything (design, 'Pause').

use super::super::answers;
use super::super::turn::Turn;
use super::{freeze, hold};
use crate::model::id::InstanceId;
use crate::model::instance::{InstanceState, Pause};
use crate::model::record::{Record, Target};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};
use crate::model::time::Timestamp;

/// `schedctl pause`. Holding what is held already changes why and for how long. `freeze`: an
/// instance that is RUNNING too.
pub(in super::super) fn request(
    turn: &mut Turn<'_>,
    target: Target,
    reason: Option<String>,
    until: Option<Timestamp>,
    freeze: bool,
) -> Answer {
    if until.is_some_and(|until| until <= turn.now) {
        let detail = "the end of the pause is not in the future".to_owned();
        return Err(Rejection::new(RejectionCode::Invalid, detail));
    }
    exists(turn, &target)?;
    // Whoever pauses what is paused changes why and for how long, not since when.
    let since = held(turn, &target).map_or(turn.now, |pause| pause.since);
    let pause = Pause { since, uid: turn.caller(), reason, until };
    match &target {
        Target::Instance(id) => hold_instance(turn, id, &pause, freeze)?,
        Target::Task(task) => {
            if let Some(mut row) = turn.state.registry.row(task).cloned() {
                row.paused = Some(pause.clone());
                turn.put_task(row);
            }
        }
        Target::Queue(_) | Target::All => turn.put_hold(target.clone(), Some(pause.clone())),
    }
    hold::changed(turn, &target, turn.now);
    turn.record(Record::Paused { target, pause });
    Ok(Reply::Done)
}

/// `schedctl resume`. Letting go what is not held is no error.
pub(in super::super) fn resume(turn: &mut Turn<'_>, target: &Target) -> Answer {
    exists(turn, target)?;
    ends(turn, target);
    Ok(Reply::Done)
}

/// A hold ends, by a person or by its time.
pub(in super::super) fn ends(turn: &mut Turn<'_>, target: &Target) {
    let Some(pause) = held(turn, target) else { return };
    // It was over at its time, whoever was there to see it.
    let over = pause.until.map_or(turn.now, |until| until.min(turn.now));
    match target {
        Target::Instance(id) => let_go(turn, id),
        Target::Task(task) => {
            if let Some(mut row) = turn.state.registry.row(task).cloned() {
                row.paused = None;
                turn.put_task(row);
            }
        }
        Target::Queue(_) | Target::All => turn.put_hold(target.clone(), None),
    }
    hold::changed(turn, target, over);
    turn.record(Record::Resumed { target: target.clone() });
}

/// The hold on something.
fn held<'a>(turn: &'a Turn<'_>, target: &Target) -> Option<&'a Pause> {
    match target {
        Target::Instance(id) => turn.state.instances.get(id)?.paused.as_ref(),
        Target::Task(task) => turn.state.registry.row(task)?.paused.as_ref(),
        Target::Queue(_) | Target::All => turn.state.holds.get(target),
    }
}

/// Holds an instance; one that is RUNNING only if it may be frozen, or is so already.
fn hold_instance(
    turn: &mut Turn<'_>,
    id: &InstanceId,
    pause: &Pause,
    may_freeze: bool,
) -> Result<(), Rejection> {
    let refuse = |detail: String| Err(Rejection::new(RejectionCode::Conflict, detail));
    let Some(i) = turn.state.instances.get(id).filter(|i| i.is_open()) else {
        return refuse(format!("instance {id} has ended; there is nothing to hold"));
    };
    if i.state == InstanceState::Running && !i.is_frozen() {
        if may_freeze {
            return freeze::freeze(turn, &i.clone(), pause.clone());
        }
        return refuse(format!(
            "instance {id} is RUNNING; schedctl pause --freeze stops its processes; or cancel it, \
             or wait for its end"
        ));
    }
    turn.update(id, "paused", |i| i.paused = Some(pause.clone()));
    Ok(())
}

fn let_go(turn: &mut Turn<'_>, id: &InstanceId) {
    freeze::thaw(turn, id);
    turn.update(id, "resumed", |i| i.paused = None);
    turn.admit_later(id.clone());
}

fn exists(turn: &Turn<'_>, target: &Target) -> Result<(), Rejection> {
    let refuse = |detail: String| Err(Rejection::new(RejectionCode::NotFound, detail));
    match target {
        // One whose definition is gone may still have instances, and may still be held.
        Target::Task(task) if turn.state.registry.row(task).is_none() => {
            Err(answers::no_task(turn.state, task))
        }
        Target::Queue(_) if turn.state.holds.contains_key(target) => Ok(()),
        Target::Queue(name) if !turn.state.settings.queues.iter().any(|q| q.name == *name) => {
            let known: Vec<&str> =
                turn.state.settings.queues.iter().map(|q| q.name.as_str()).collect();
            refuse(format!("no queue {name}; there are: {}", known.join(", ")))
        }
        Target::Instance(id) if !turn.state.instances.knows(id) => {
            refuse(format!("no open instance {id}"))
        }
        Target::Task(_) | Target::Queue(_) | Target::Instance(_) | Target::All => Ok(()),
    }
}
