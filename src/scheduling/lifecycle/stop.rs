//! The daemon's stop: hand over, drain or cancel (contract `onStop`, `shutdown`).

use super::super::state::Stopping;
use super::super::turn::Turn;
use super::cancel;
use crate::limits;
use crate::model::command::Command;
use crate::model::id::InstanceId;
use crate::model::instance::{self, Instance, InstanceState};
use crate::model::record::Record;
use crate::model::request::StopMode;

/// Asked to stop. A later wish replaces an earlier one; nothing new starts from now on.
pub(in super::super) fn request(turn: &mut Turn<'_>, mode: StopMode) {
    if turn.state.stopping.is_none() {
        turn.record(Record::DaemonStopping);
    }
    let hears_until = Some(turn.now.plus(limits::STOP_HEARS_WITHIN));
    turn.state.stopping = Some(Stopping { mode, hears_until });
    if mode == StopMode::Cancel {
        let running: Vec<InstanceId> = turn
            .state
            .instances
            .open()
            .filter(|i| runs(i))
            .map(|i| i.instance_id.clone())
            .collect();
        for id in running {
            cancel::one(turn, &id, instance::Stopping::Cancel);
        }
    }
}

/// Leaves once nothing holds the daemon. Attempts on an executor that is not connected hold it for
/// a short while only: after a start it may yet be heard of, but it may also never be.
pub(in super::super) fn leave(turn: &mut Turn<'_>) {
    let Some(Stopping { mode, hears_until }) = turn.state.stopping else { return };
    let hears_until = hears_until.filter(|until| turn.now < *until);
    turn.state.stopping = Some(Stopping { mode, hears_until });
    let heard = |i: &Instance| {
        let executor = i.executor_id.as_ref();
        executor.is_some_and(|e| turn.state.roster.connection(e).is_some())
    };
    let may_be_heard = hears_until.is_some();
    let holds = mode != StopMode::Handover
        // A frozen one would hold it for ever: it is handed over as it is.
        && turn.state.instances.open().any(|i| runs(i) && !i.is_frozen() && (may_be_heard || heard(i)));
    if !holds {
        turn.command(Command::Exit(mode));
    }
}

fn runs(i: &Instance) -> bool {
    i.state == InstanceState::Running
}
