//! Executors that come and go: what they still run is taken up, the rest is settled
//! (design, 'Executors').

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::turn::Turn;
use super::dispatch::{self, attempt_ref};
use super::{freeze, preempt, report};
use crate::model::command::Command;
use crate::model::event::{AttemptRef, Hello};
use crate::model::id::ExecutorId;
use crate::model::instance::{Instance, InstanceState, Stopping};
use crate::model::record::Record;

/// An executor said hello: every RUNNING instance of its is looked up in what it says.
pub(in super::super) fn hello(turn: &mut Turn<'_>, hello: &Hello) {
    turn.state.roster.connect(hello, turn.now);
    let (executor, connection) = (hello.executor.clone(), hello.connection);
    turn.command(Command::Attach { executor, connection });
    turn.record(Record::ExecutorConnected {
        executor_id: hello.executor.clone(),
        incarnation: hello.incarnation,
        pid: hello.pid,
    });
    for done in &hello.finished {
        report::finished(turn, &hello.executor, done);
    }
    let running: BTreeSet<&AttemptRef> = hello.running.iter().collect();
    let lost: BTreeSet<&AttemptRef> = hello.lost.iter().collect();
    let ours: Vec<Instance> = turn
        .state
        .instances
        .open()
        .filter(|i| {
            i.state == InstanceState::Running && i.executor_id.as_ref() == Some(&hello.executor)
        })
        .cloned()
        .collect();
    let mut expected = BTreeSet::new();
    for instance in ours {
        let Some(of) = attempt_ref(&instance) else { continue };
        if running.contains(&of) {
            if instance.stopping.is_some() {
                turn.command(Command::Kill { executor: hello.executor.clone(), of: of.clone() });
            } else {
                freeze::reconcile(turn, hello, &instance, &of);
            }
        } else {
            take_up(turn, hello, &instance, lost.contains(&of));
        }
        expected.insert(of);
    }
    for of in &hello.running {
        if !expected.contains(of) {
            // Nobody wants this attempt any more: its instance has moved on.
            turn.command(Command::Kill { executor: hello.executor.clone(), of: of.clone() });
        }
    }
    for of in &hello.lost {
        turn.command(Command::Acknowledge { executor: hello.executor.clone(), of: of.clone() });
    }
}

/// The executor does not run it. Never accepted in this boot: safely sent again, even if the task
/// is not idempotent. In another boot that cannot be told: lost.
fn take_up(turn: &mut Turn<'_>, hello: &Hello, instance: &Instance, lost: bool) {
    let id = &instance.instance_id;
    let same_boot = instance.attempts.last().is_some_and(|a| a.boot_id == hello.boot_id);
    if lost {
        report::lost(turn, id, "the executor's process ended while this attempt was on");
    } else if !same_boot {
        report::lost(turn, id, "the machine was started anew while this attempt was on");
    } else {
        match instance.stopping {
            Some(Stopping::Cancel | Stopping::Replace) => report::cancelled(turn, id, None),
            Some(Stopping::Preempt) => preempt::ended(turn, id, None),
            None => {
                dispatch::send(turn, Arc::new(instance.clone()));
                if let Some(of) = attempt_ref(instance) {
                    freeze::reconcile(turn, hello, instance, &of);
                }
            }
        }
    }
}

/// An executor's process is gone or silent. Its instances stay RUNNING until its next process has
/// said what became of them: only it can end what still runs.
pub(in super::super) fn gone(
    turn: &mut Turn<'_>,
    executor: &ExecutorId,
    incarnation: Option<u64>,
    why: &str,
) {
    if turn.state.roster.disconnect(executor, incarnation) {
        turn.record(Record::ExecutorLost { executor_id: executor.clone(), why: why.to_owned() });
    }
}
