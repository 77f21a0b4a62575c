//! Giving up a slot to one of a higher level that lacks nothing else (requirement D4).

use super::super::preemption::{self, Preemption};
use super::super::turn::Turn;
use super::dispatch::attempt_ref;
use super::report;
use crate::model::command::Command;
use crate::model::event::Finished;
use crate::model::id::InstanceId;
use crate::model::instance::{InstanceState, Reason, Stopping};

/// Ends whoever has to give way: TERM, grace, KILL.
pub(in super::super) fn all(turn: &mut Turn<'_>) {
    if turn.state.victims.is_empty() {
        return;
    }
    for Preemption { victim, gives_way_to } in preemption::plan(turn.state, turn.now) {
        let found = turn.state.instances.get(&victim);
        let Some((of, executor)) = found.and_then(|i| attempt_ref(i).zip(i.executor_id.clone()))
        else {
            continue;
        };
        let taker = turn.state.instances.get(&gives_way_to).map(|i| i.task_id.clone());
        let taker = taker.map(|task| format!("{task}, instance ")).unwrap_or_default();
        turn.update(&victim, "preempted", |i| {
            i.stopping = Some(Stopping::Preempt);
            i.reason = Some(Reason::Cancelling);
            i.message = Some(format!("preempted: gives its slot to {taker}{gives_way_to}"));
        });
        turn.command(Command::Kill { executor, of });
    }
}

/// Its processes are gone: FAILED(PREEMPTED), and READY at the back of its priority. The attempt is
/// not counted.
pub(super) fn ended(turn: &mut Turn<'_>, id: &InstanceId, done: Option<&Finished>) {
    let Some(i) = turn.state.instances.get(id) else { return };
    let now = turn.now;
    let end = report::stopped("PREEMPTED", i.message.clone(), done, now);
    turn.transition(id, InstanceState::Failed, None, |i| {
        end(i);
        i.preemptions += 1;
        i.stopping = None;
        // Not over for good: the log must not say so.
        i.next_retry_at = Some(now);
    });
    turn.transition(id, InstanceState::Ready, None, |_| {});
}
