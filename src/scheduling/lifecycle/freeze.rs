//! Stopping the processes of an instance that is RUNNING, and letting them go on
//! (design, 'Pause'): it keeps its slot, and its timeout stands still.
//!
//! What is remembered is the instance's pause; an executor is told, and told again at its Hello
//! if it says otherwise.

use super::super::turn::Turn;
use super::dispatch::attempt_ref;
use crate::model::command::Command;
use crate::model::event::{AttemptRef, Hello};
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, Pause, Reason};
use crate::model::request::{Rejection, RejectionCode};

/// Freezes an instance that is RUNNING.
///
/// # Errors
/// If it is being ended, or its executor is away or too old to stop processes.
pub(super) fn freeze(turn: &mut Turn<'_>, i: &Instance, pause: Pause) -> Result<(), Rejection> {
    let id = &i.instance_id;
    let refuse = |detail: String| Err(Rejection::new(RejectionCode::Conflict, detail));
    if i.stopping.is_some() {
        return refuse(format!("instance {id} is being ended; it cannot be frozen any more"));
    }
    let Some((of, executor)) = attempt_ref(i).zip(i.executor_id.clone()) else {
        return refuse(format!("instance {id} has no attempt that could be frozen"));
    };
    match turn.state.roster.connection(&executor) {
        None => {
            return refuse(format!(
                "instance {id} runs on executor {executor}, which is not connected; try again once \
                 schedctl executors shows it connected"
            ));
        }
        Some(connection) if !connection.can_freeze => {
            return refuse(format!(
                "instance {id} runs on executor {executor}, which an older schedd started and which \
                 cannot freeze; it is replaced once it is idle and no daemon has been there for a \
                 minute"
            ));
        }
        Some(_) => {}
    }
    turn.update(id, "frozen", |i| {
        i.paused = Some(pause);
        i.reason = Some(Reason::Frozen);
    });
    turn.command(Command::Freeze { executor, of });
    Ok(())
}

/// Lets a frozen instance go on.
pub(super) fn thaw(turn: &mut Turn<'_>, id: &InstanceId) {
    let now = turn.now;
    let Some(i) = turn.state.instances.get(id).filter(|i| i.is_frozen()) else { return };
    let order = attempt_ref(i).zip(i.executor_id.clone());
    turn.update(id, "thawed", |i| {
        i.count_frozen(now);
        i.paused = None;
        i.reason = None;
    });
    if let Some((of, executor)) = order {
        turn.command(Command::Thaw { executor, of });
    }
}

/// An executor that runs an attempt said hello: it learns what it missed.
pub(super) fn reconcile(turn: &mut Turn<'_>, hello: &Hello, i: &Instance, of: &AttemptRef) {
    let Some(frozen) = &hello.frozen else { return };
    let (executor, of) = (hello.executor.clone(), of.clone());
    match (i.is_frozen(), frozen.contains(&of)) {
        (true, false) => turn.command(Command::Freeze { executor, of }),
        (false, true) => turn.command(Command::Thaw { executor, of }),
        (true, true) | (false, false) => {}
    }
}
