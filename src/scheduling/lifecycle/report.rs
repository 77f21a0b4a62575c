//! How an attempt ended: result, retry or final, fenced by attempt and lease (requirement B3).

use std::time::Duration;

use super::super::retry;
use super::super::turn::Turn;
use super::dispatch::attempt_ref;
use super::{cancel, data, preempt};
use crate::limits;
use crate::model::command::Command;
use crate::model::event::{AttemptRef, Finished, Outcome, Started};
use crate::model::id::{ExecutorId, InstanceId};
use crate::model::instance::{Instance, InstanceState, Reason, Stopping};
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;

/// An end, told apart as the rules need it.
struct End {
    becomes: InstanceState,
    error_code: Option<String>,
    message: Option<String>,
    exit_code: Option<i32>,
    signal: Option<i32>,
}

/// Whether a report speaks of the attempt that is on; any other changes nothing.
fn is_current(turn: &Turn<'_>, of: &AttemptRef) -> bool {
    turn.state
        .instances
        .get(&of.instance_id)
        .is_some_and(|i| i.state == InstanceState::Running && attempt_ref(i).as_ref() == Some(of))
}

/// The process is there. Never forces a sync by itself: it rides with its batch.
pub(in super::super) fn started(turn: &mut Turn<'_>, started: &Started) {
    if !is_current(turn, &started.of) {
        return;
    }
    let at = started.at;
    turn.started(&started.of.instance_id, started.pid, |i| {
        i.started_at = Some(at);
        if let Some(attempt) = i.attempts.last_mut() {
            attempt.started_at = Some(at);
        }
    });
}

/// The attempt is over. Acknowledged whether or not it still mattered.
pub(in super::super) fn finished(turn: &mut Turn<'_>, executor: &ExecutorId, done: &Finished) {
    if is_current(turn, &done.of) {
        conclude(turn, done);
    }
    turn.command(Command::Acknowledge { executor: executor.clone(), of: done.of.clone() });
}

fn conclude(turn: &mut Turn<'_>, done: &Finished) {
    let id = &done.of.instance_id;
    let Some(i) = turn.state.instances.get(id).cloned() else { return };
    let Some(spec) = turn.state.spec_of(&i) else { return };
    // After TERM was sent at our wish the exit status no longer counts (design, 'Cancel').
    let was_cancelled = i.stopping.is_some_and(Stopping::is_for_good);
    if let Some(stopping) = i.stopping.filter(|_| done.killed && done.outcome != Outcome::TimedOut)
    {
        return match stopping {
            Stopping::Cancel | Stopping::Replace => cancelled(turn, id, Some(done)),
            Stopping::Preempt => preempt::ended(turn, id, Some(done)),
        };
    }
    let mut end = end_of(done, &spec);
    if end.becomes == InstanceState::Succeeded {
        let output = done.result.output.clone();
        let outputs = data::left_behind(turn, &spec, &i, done);
        turn.transition(id, InstanceState::Succeeded, None, |i| {
            close(i, done, &end);
            i.output = output;
            i.outputs = outputs;
            (i.stopping, i.cancelled_by) = (None, None);
        });
        return;
    }
    let transient = matches!(done.outcome, Outcome::SpawnFailed { transient: true, .. })
        && i.spawn_retries < limits::SPAWN_RETRIES_MAX;
    let faults = i.faults + u32::from(!transient);
    let spawn_retries = i.spawn_retries + u32::from(transient);
    // By another clock, before it was set right, the end may lie ahead.
    let ended = done.finished_at.min(turn.now);
    let due = if transient {
        Some(ended.plus(retry::spawn_delay(spawn_retries)))
    } else {
        next_attempt(&i, &spec, faults, &end, ended)
    };
    if let Some(message) = &mut end.message {
        message.truncate(message.floor_char_boundary(limits::MESSAGE_BYTES_MAX));
    }
    let crosses = was_cancelled && due.is_some() && !done.killed;
    failed(turn, id, done, &end, due.filter(|_| !was_cancelled), |i| {
        i.faults = faults;
        i.spawn_retries = spawn_retries;
        i.stopping = None;
        i.cancelled_by = i.cancelled_by.filter(|_| crosses);
    });
    if crosses {
        // The cancel crossed the end: it is as if it had met an instance that waits for its retry.
        let message = cancel::said(&i);
        turn.transition(id, InstanceState::Cancelled, stopped_reason(i.stopping), |i| {
            i.message = message;
        });
    }
}

fn failed(
    turn: &mut Turn<'_>,
    id: &InstanceId,
    done: &Finished,
    end: &End,
    retry_at: Option<Timestamp>,
    count: impl FnOnce(&mut Instance),
) {
    let reason = retry_at.map(|_| Reason::RetryWait);
    turn.transition(id, end.becomes, reason, |i| {
        close(i, done, end);
        i.next_retry_at = retry_at;
        count(i);
    });
}

/// When the next attempt is due; `None`: this end is final.
fn next_attempt(
    i: &Instance,
    spec: &TaskSpec,
    faults: u32,
    end: &End,
    finished_at: Timestamp,
) -> Option<Timestamp> {
    let code = end.error_code.as_deref().unwrap_or("");
    let again =
        faults < i.max_attempts && spec.may_run_again() && retry::is_listed(&spec.retry, code);
    again.then(|| finished_at.plus(wait(i, spec, faults)))
}

/// The wait after so many faults.
fn wait(i: &Instance, spec: &TaskSpec, faults: u32) -> Duration {
    // A person's retry grants a fresh count of attempts, and with it a fresh row of waits.
    let before = i.max_attempts.saturating_sub(spec.retry.max_attempts);
    retry::delay(&spec.retry, faults.saturating_sub(before).max(1), &i.instance_id)
}

/// The longest that an instance may still have to wait for its next attempt.
pub(super) fn longest_wait(i: &Instance, spec: &TaskSpec) -> Duration {
    wait(i, spec, i.faults).max(retry::spawn_delay(i.spawn_retries))
}

/// Writes an end into the instance and its newest attempt.
fn close(i: &mut Instance, done: &Finished, end: &End) {
    i.count_frozen(done.finished_at);
    i.started_at = done.started_at.or(i.started_at);
    i.finished_at = Some(done.finished_at);
    i.exit_code = end.exit_code;
    i.signal = end.signal;
    i.error_code.clone_from(&end.error_code);
    i.message.clone_from(&end.message);
    if let Some(a) = i.attempts.last_mut() {
        a.started_at = done.started_at.or(a.started_at);
        a.finished_at = Some(done.finished_at);
        a.exit_code = end.exit_code;
        a.signal = end.signal;
        a.error_code.clone_from(&end.error_code);
        a.user_ms = done.user_ms;
        a.system_ms = done.system_ms;
        a.max_rss_bytes = done.max_rss_bytes;
        a.output_bytes = done.output_bytes;
    }
}

/// State and error code of an end (contract §3, 'Error codes').
fn end_of(done: &Finished, spec: &TaskSpec) -> End {
    let mut end = End {
        becomes: InstanceState::Failed,
        error_code: None,
        message: done.result.message.clone(),
        exit_code: None,
        signal: None,
    };
    match &done.outcome {
        Outcome::Exited { code } => {
            end.exit_code = Some(*code);
            if *code != 0 {
                let own = done.result.error_code.clone();
                let mapped = spec.exit_codes.get(code).cloned();
                end.error_code = own.or(mapped).or_else(|| Some(format!("EXIT_{code}")));
            } else if let Some(problem) = &done.result.invalid {
                // Only a success is spoilt by it: a failure has its own code.
                end.error_code = Some("RESULT_INVALID".to_owned());
                end.message = Some(problem.clone());
            } else {
                end.becomes = InstanceState::Succeeded;
            }
        }
        Outcome::Signalled { signal, name } => {
            end.signal = Some(*signal);
            end.error_code = Some(format!("SIGNAL_{name}"));
        }
        Outcome::TimedOut => {
            end.becomes = InstanceState::Timeout;
            end.error_code = Some("TIMEOUT".to_owned());
        }
        Outcome::SpawnFailed { message, .. } => {
            end.error_code = Some("SPAWN_FAILED".to_owned());
            end.message = Some(message.clone());
        }
    }
    end
}

/// Its processes are gone because somebody wanted that: FAILED(CANCEL_REQUESTED), CANCELLED
/// (requirement B4).
pub(super) fn cancelled(turn: &mut Turn<'_>, id: &InstanceId, done: Option<&Finished>) {
    let Some(i) = turn.state.instances.get(id) else { return };
    let (reason, message) = (stopped_reason(i.stopping), cancel::said(i));
    turn.transition(
        id,
        InstanceState::Failed,
        None,
        stopped("CANCEL_REQUESTED", message, done, turn.now),
    );
    turn.transition(id, InstanceState::Cancelled, reason, |i| {
        i.stopping = None;
    });
}

/// What an attempt's end is once its processes are gone at our wish: its exit status is kept, but
/// says nothing.
pub(super) fn stopped(
    error_code: &str,
    message: Option<String>,
    done: Option<&Finished>,
    now: Timestamp,
) -> impl FnOnce(&mut Instance) {
    let (exit_code, signal) = match done.map(|d| &d.outcome) {
        Some(Outcome::Exited { code }) => (Some(*code), None),
        Some(Outcome::Signalled { signal, .. }) => (None, Some(*signal)),
        Some(Outcome::TimedOut | Outcome::SpawnFailed { .. }) | None => (None, None),
    };
    let error_code = Some(error_code.to_owned());
    let end = End { becomes: InstanceState::Failed, error_code, message, exit_code, signal };
    move |i| match done {
        Some(done) => close(i, done, &end),
        None => close_unseen(i, &end, now),
    }
}

fn stopped_reason(stopping: Option<Stopping>) -> Option<Reason> {
    stopping.and_then(cancel::reason).or(Some(Reason::CancelledByUser))
}

/// Nobody saw the attempt's end (requirement F1): again if the task allows it, else final.
pub(super) fn lost(turn: &mut Turn<'_>, id: &InstanceId, why: &str) {
    let Some(i) = turn.state.instances.get(id).cloned() else { return };
    if i.state != InstanceState::Running {
        return;
    }
    if i.stopping.is_some_and(Stopping::is_for_good) {
        return cancelled(turn, id, None);
    }
    let Some(spec) = turn.state.spec_of(&i) else { return };
    let end = End {
        becomes: InstanceState::Failed,
        error_code: Some("EXECUTOR_LOST".to_owned()),
        message: Some(why.to_owned()),
        exit_code: None,
        signal: None,
    };
    let now = turn.now;
    let again = spec.may_run_again() && i.requeues < limits::REQUEUES_MAX;
    turn.transition(id, InstanceState::Failed, None, |i| {
        close_unseen(i, &end, now);
        i.requeues += 1;
        i.stopping = None;
        // Not over for good: the log must not say so.
        i.next_retry_at = again.then_some(now);
    });
    if again {
        turn.transition(id, InstanceState::Ready, None, |_| {});
    }
}

fn close_unseen(i: &mut Instance, end: &End, now: Timestamp) {
    i.count_frozen(now);
    i.finished_at = Some(now);
    i.error_code.clone_from(&end.error_code);
    i.message.clone_from(&end.message);
    if let Some(a) = i.attempts.last_mut() {
        a.finished_at = Some(now);
        a.error_code.clone_from(&end.error_code);
    }
}
