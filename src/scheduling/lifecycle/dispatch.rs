//! READY to RUNNING: while the scheduler finds one that can start.

use super::super::turn::Turn;
use super::super::{fill, scheduler};
use crate::model::command::{Command, Dispatch};
use crate::model::event::AttemptRef;
use crate::model::id::Lease;
use crate::model::instance::{Attempt, Instance, InstanceState};
use std::sync::Arc;

/// Starts all that can start now.
pub(in super::super) fn all(turn: &mut Turn<'_>) {
    while let Some(chosen) = scheduler::assign(turn.state) {
        chosen.charge(&mut turn.state.turns);
        let Some(boot_id) =
            turn.state.roster.connection(&chosen.executor).map(|c| Arc::clone(&c.boot_id))
        else {
            return;
        };
        let lease = Lease(turn.state.tip.0 + 1);
        turn.transition(&chosen.instance, InstanceState::Running, None, |i| {
            i.attempt += 1;
            i.executor_id = Some(chosen.executor.clone());
            i.started_at = None;
            i.finished_at = None;
            i.exit_code = None;
            i.signal = None;
            i.error_code = None;
            i.message = None;
            i.output = None;
            i.attempts.push(Attempt {
                attempt: i.attempt,
                lease,
                executor_id: chosen.executor.clone(),
                boot_id,
                started_at: None,
                finished_at: None,
                exit_code: None,
                signal: None,
                error_code: None,
                user_ms: None,
                system_ms: None,
                max_rss_bytes: None,
                output_bytes: None,
                frozen_ms: None,
            });
        });
        if let Some(instance) = turn.state.instances.shared(&chosen.instance).cloned() {
            send(turn, instance);
        }
    }
}

/// Sends a RUNNING instance's newest attempt to its executor; sent twice, it starts once.
pub(super) fn send(turn: &mut Turn<'_>, instance: Arc<Instance>) {
    let (Some(spec), Some(of), Some(executor)) =
        (turn.state.spec_of(&instance), attempt_ref(&instance), instance.executor_id.clone())
    else {
        return;
    };
    let timezone = spec.timezone.clone().unwrap_or_else(|| turn.state.settings.timezone.clone());
    let deps = fill::deps(turn.state, &instance);
    let settings = Arc::clone(&turn.state.settings);
    let dispatch = Dispatch { executor, of, instance, spec, timezone, deps, settings };
    turn.command(Command::Run(Box::new(dispatch)));
}

/// The newest attempt of an instance.
pub(super) fn attempt_ref(instance: &Instance) -> Option<AttemptRef> {
    Some(AttemptRef {
        instance_id: instance.instance_id.clone(),
        attempt: instance.attempt,
        lease: instance.lease()?,
    })
}
