//! The daemon's stop: hand over, drain or cancel (contract `onStop`, `shutdown`).

use super::super::turn::Turn;
use super::cancel;
use crate::model::command::Command;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState, Stopping};
use crate::model::record::Record;
use crate::model::request::StopMode;

/// Asked to stop. A later, harder wish replaces an earlier one; nothing new starts from now on.
pub(in super::super) fn request(turn: &mut Turn<'_>, mode: StopMode) {
    if turn.state.stopping.is_none() {
        turn.record(Record::DaemonStopping);
    }
    turn.state.stopping = Some(mode);
    if mode == StopMode::Cancel {
        let running: Vec<InstanceId> = turn
            .state
            .instances
            .open()
            .filter(|i| runs(i))
            .map(|i| i.instance_id.clone())
            .collect();
        for id in running {
            cancel::one(turn, &id, Stopping::Cancel);
        }
    }
}

/// Leaves once nothing holds the daemon. Attempts on executors that are not connected do not:
/// nothing could be heard of them.
pub(in super::super) fn leave(turn: &mut Turn<'_>) {
    let Some(mode) = turn.state.stopping else { return };
    let heard = |i: &Instance| {
        i.executor_id.as_ref().is_some_and(|e| turn.state.roster.connection(e).is_some())
    };
    let holds =
        mode != StopMode::Handover && turn.state.instances.open().any(|i| runs(i) && heard(i));
    if !holds {
        turn.command(Command::Exit(mode));
    }
}

fn runs(i: &Instance) -> bool {
    i.state == InstanceState::Running
}
