//! Ending an instance for good, in whatever state it is (design, 'Cancel').

use super::super::turn::Turn;
use super::dispatch::attempt_ref;
use crate::model::command::Command;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState, Reason, Stopping};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};

/// `schedctl cancel`: a no-op on one that is final.
pub(in super::super) fn request(
    turn: &mut Turn<'_>,
    id: &InstanceId,
    downstream: bool,
    stored: Option<&Instance>,
) -> Answer {
    if turn.state.instances.get(id).is_none() && stored.is_none() {
        return Err(Rejection::new(RejectionCode::NotFound, format!("no instance {id}")));
    }
    let below = if downstream { waiting_below(turn, id) } else { Vec::new() };
    one(turn, id, Stopping::Cancel);
    for id in below {
        one(turn, &id, Stopping::Cancel);
    }
    Ok(Reply::Done)
}

/// Ends one instance: at once if it does not run, else once its processes are gone.
pub(in super::super) fn one(turn: &mut Turn<'_>, id: &InstanceId, why: Stopping) {
    let Some(i) = turn.state.instances.get(id).filter(|i| i.is_open()) else { return };
    if i.state == InstanceState::Running {
        if i.stopping.is_some_and(Stopping::is_for_good) {
            return;
        }
        // One that gives up its slot has had its TERM; it does not come back now.
        let kill = attempt_ref(i).zip(i.executor_id.clone()).filter(|_| i.stopping.is_none());
        turn.update(id, "cancelling", |i| {
            i.stopping = Some(why);
            i.reason = Some(Reason::Cancelling);
            i.message = None;
        });
        if let Some((of, executor)) = kill {
            turn.command(Command::Kill { executor, of });
        }
    } else {
        let reason = match why {
            Stopping::Cancel => Reason::CancelledByUser,
            Stopping::Replace => Reason::Replaced,
            // It holds no slot.
            Stopping::Preempt => return,
        };
        turn.transition(id, InstanceState::Cancelled, Some(reason), |_| {});
    }
}

/// All waiting instances below one, near ones first.
fn waiting_below(turn: &Turn<'_>, id: &InstanceId) -> Vec<InstanceId> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut next = turn.state.instances.bound_to(id);
    loop {
        for id in next {
            let waits = turn.state.instances.get(&id).is_some_and(Instance::is_waiting);
            if waits && !found.contains(&id) {
                found.push(id);
            }
        }
        let Some(id) = found.get(at) else { return found };
        next = turn.state.instances.bound_to(id);
        at += 1;
    }
}
