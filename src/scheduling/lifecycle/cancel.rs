//! Ending an instance for good, in whatever state it is (design, 'Cancel').

use std::collections::{BTreeSet, VecDeque};

use super::super::turn::Turn;
use super::dispatch::attempt_ref;
use crate::model::command::Command;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState, Reason, Stopping};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};

/// `schedctl cancel`: a no-op on one that is final; what waits below it is cancelled all the same,
/// if that was asked for.
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
    let now = turn.now;
    // A newer instance takes the place of one without anybody's order about it.
    let uid = turn.asker().filter(|_| why == Stopping::Cancel);
    if i.state == InstanceState::Running {
        if i.stopping.is_some_and(Stopping::is_for_good) {
            return;
        }
        // One that gives up its slot has had its TERM; it does not come back now.
        let kill = attempt_ref(i).zip(i.executor_id.clone()).filter(|_| i.stopping.is_none());
        turn.update(id, "cancelling", |i| {
            // A frozen one goes on, so that it hears that it shall end.
            i.count_frozen(now);
            i.paused = None;
            i.stopping = Some(why);
            i.cancelled_by = uid;
            i.reason = Some(Reason::Cancelling);
            i.message = said(i);
        });
        if let Some((of, executor)) = kill {
            turn.command(Command::Kill { executor, of });
        }
    } else {
        // One that does not run holds no slot to give up.
        let Some(reason) = reason(why) else { return };
        turn.transition(id, InstanceState::Cancelled, Some(reason), |i| {
            (i.stopping, i.cancelled_by) = (Some(why), uid);
            i.message = said(i);
            i.stopping = None;
        });
    }
}

/// The reason of an instance that was ended so; `None`: it is queued again.
pub(super) const fn reason(why: Stopping) -> Option<Reason> {
    match why {
        Stopping::Cancel => Some(Reason::CancelledByUser),
        Stopping::Replace => Some(Reason::Replaced),
        Stopping::Preempt => None,
    }
}

/// Who ends an instance, in words for those who look at it.
pub(super) fn said(i: &Instance) -> Option<String> {
    match (i.stopping?, i.cancelled_by) {
        (Stopping::Cancel, Some(uid)) => Some(format!("cancelled by uid {uid}")),
        (Stopping::Cancel, None) => Some("cancelled by the stop of the daemon".to_owned()),
        (Stopping::Replace, _) => Some("replaced by a newer instance".to_owned()),
        // `preempt` says for whom.
        (Stopping::Preempt, _) => None,
    }
}

/// All waiting instances below one, near ones first; also what waits for others below it that have
/// failed, but nothing beyond one that is at it.
fn waiting_below(turn: &Turn<'_>, id: &InstanceId) -> Vec<InstanceId> {
    let table = &turn.state.instances;
    let waits = |i: &Instance| i.is_waiting() || i.awaits_upstream;
    let mut seen = BTreeSet::from([id.clone()]);
    let mut found = Vec::new();
    let mut near = VecDeque::from([id.clone()]);
    while let Some(id) = near.pop_front() {
        for below in table.bound_to(&id) {
            let open = table.get(&below).filter(|i| i.is_open());
            if open.is_some_and(|i| !waits(i)) || !seen.insert(below.clone()) {
                continue;
            }
            if open.is_some() {
                found.push(below.clone());
            }
            near.push_back(below);
        }
    }
    found
}
