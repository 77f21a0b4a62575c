//! What the log's records look like to a person: one line, or one tracing event, per change.
//!
//! It prints committed records only and knows no rules.

use std::time::Duration;

use tracing::{debug, info, warn};

use crate::model::id::{ExecutorId, InstanceId, TaskId};
use crate::model::instance::{InstanceState, Reason};
use crate::model::record::{Fire, FireOutcome, LogRecord, Record, Target};

/// Who reads the daemon's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Somebody at a terminal: one sentence per change.
    Person,
    /// The journal, a file, a program: a constant message with fields.
    Program,
}

/// One line for a person at a terminal, without time and end; `None` for records that are not
/// worth one. Such as `order.settle.v2 RUNNING attempt 1 on local (0s7m2k9qx4)`.
#[must_use]
pub fn line(record: &LogRecord) -> Option<String> {
    Some(match &record.what {
        Record::Created { instance_id, task_id, cycle, trigger } => {
            format!("{task_id} {cycle} created by {trigger} ({instance_id})")
        }
        Record::Moved { .. } => moved(record)?,
        Record::Fire(fire) => fired(fire)?,
        Record::ClockStepped { by_ms } => stepped(*by_ms),
        Record::DefinitionLoaded { task_id, revision, file } => {
            format!("{task_id} revision {revision} loaded from {file}")
        }
        Record::DefinitionRemoved { task_id, file } => format!("{task_id} removed with {file}"),
        Record::DefinitionPinned { task_id, revision } => {
            format!("{task_id} rolled back to revision {revision} and pinned")
        }
        Record::DefinitionUnpinned { task_id, revision, why } => {
            format!("{task_id} is no longer pinned to revision {revision}: {why}")
        }
        Record::DefinitionRefused(error) => format!("refused {error}"),
        Record::Paused { target, pause } => {
            let reason = pause.reason.as_deref().unwrap_or("no reason given");
            format!("{} paused by uid {}: {reason}", name(target), pause.uid)
        }
        Record::Resumed { target } => format!("{} resumed", name(target)),
        Record::PriorityChanged { target, priority } => match priority {
            Some(priority) => format!("{} has priority {priority}", name(target)),
            None => format!("{} has its own priority again", name(target)),
        },
        Record::Emitted { name, instances } => {
            format!("event {name} came, {instances} instances made")
        }
        Record::ExecutorConnected { executor_id, pid, .. } => {
            format!("executor {executor_id} is there (pid {pid})")
        }
        Record::ExecutorLost { executor_id, why } => format!("executor {executor_id} lost: {why}"),
        Record::DaemonStopping => "schedd is stopping".to_owned(),
        // The start has been told with its places.
        Record::Started { .. }
        | Record::Updated { .. }
        | Record::FireAmended { .. }
        | Record::DaemonStarted { .. } => {
            return None;
        }
    })
}

fn moved(record: &LogRecord) -> Option<String> {
    let Record::Moved {
        instance_id,
        task_id,
        to,
        reason,
        attempt,
        executor_id,
        error_code,
        next_retry_at,
        ..
    } = &record.what
    else {
        return None;
    };
    let mut text = format!("{task_id} {to}");
    let mut say = |words: String| text.push_str(&words);
    if let Some(reason) = reason {
        say(format!(" {}", reason.as_str()));
    }
    if *attempt > 0 {
        say(format!(" attempt {attempt}"));
    }
    if let Some(executor) = executor_id {
        say(format!(" on {executor}"));
    }
    if let Some(code) = error_code {
        say(format!(" {code}"));
    }
    if let Some(next) = next_retry_at {
        say(format!(", again in {}", short(next.since(record.at))));
    }
    say(format!(" ({instance_id})"));
    Some(text)
}

/// A fire that made an instance has that instance's line.
fn fired(fire: &Fire) -> Option<String> {
    if fire.outcome == FireOutcome::Instance {
        return None;
    }
    let Fire { task_id, trigger, from, to, count, outcome, reason, .. } = fire;
    let outcome = outcome_name(*outcome);
    let span = if count > &1 { format!("{count} fires {from} to {to}") } else { format!("{from}") };
    let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(format!("{task_id} {outcome} {trigger} {span}{why}"))
}

fn stepped(by_ms: i64) -> String {
    let way = if by_ms < 0 { "back" } else { "forward" };
    format!("the wall clock was set {way} by {:?}", Duration::from_millis(by_ms.unsigned_abs()))
}

fn outcome_name(outcome: FireOutcome) -> String {
    serde_json::to_value(outcome)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_else(|| format!("{outcome:?}"))
}

fn name(target: &Target) -> String {
    match target {
        Target::Instance(id) => format!("instance {id}"),
        Target::Task(id) => id.to_string(),
        Target::Queue(queue) => format!("queue {queue}"),
        Target::All => "everything".to_owned(),
    }
}

/// Whole seconds, or milliseconds below one.
fn short(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}

/// Writes a committed record to the daemon's log.
pub fn announce(record: &LogRecord, audience: Audience) {
    match (audience, line(record)) {
        (Audience::Person, Some(line)) if needs_a_person(record) => warn!("{line}"),
        (Audience::Person, Some(line)) => info!("{line}"),
        (Audience::Person, None) => {}
        (Audience::Program, _) => announce_fields(record),
    }
}

fn needs_a_person(record: &LogRecord) -> bool {
    match &record.what {
        Record::Moved { to, is_final, .. } => {
            *is_final && matches!(to, InstanceState::Failed | InstanceState::Timeout)
        }
        Record::DefinitionRefused(_)
        | Record::ExecutorLost { .. }
        | Record::ClockStepped { .. } => true,
        Record::Created { .. }
        | Record::Started { .. }
        | Record::Updated { .. }
        | Record::Fire(_)
        | Record::FireAmended { .. }
        | Record::DefinitionLoaded { .. }
        | Record::DefinitionRemoved { .. }
        | Record::DefinitionPinned { .. }
        | Record::DefinitionUnpinned { .. }
        | Record::Paused { .. }
        | Record::Resumed { .. }
        | Record::PriorityChanged { .. }
        | Record::Emitted { .. }
        | Record::ExecutorConnected { .. }
        | Record::DaemonStarted { .. }
        | Record::DaemonStopping => false,
    }
}

/// As a constant message with fields: changes that an operator cares about at INFO,
/// what needs a person at WARN, the rest at DEBUG. Field names are the same everywhere.
fn announce_fields(record: &LogRecord) {
    let seq = record.seq.0;
    match &record.what {
        Record::Created { instance_id, task_id, cycle, trigger } => {
            info!(seq, task = %task_id, instance = %instance_id, cycle, trigger, "instance created");
        }
        Record::Moved { .. } => announce_move(record),
        Record::Started { instance_id, task_id, attempt, pid } => {
            debug!(seq, task = %task_id, instance = %instance_id, attempt, pid, "process started");
        }
        Record::Updated { instance_id, task_id, what } => {
            debug!(seq, task = %task_id, instance = %instance_id, what, "instance updated");
        }
        Record::Fire(fire) => announce_fire(seq, fire),
        Record::FireAmended { of, fire } => {
            info!(seq, task = %fire.task_id, of = of.0, count = fire.count, "ledger row amended");
        }
        Record::ClockStepped { by_ms } => warn!(seq, by_ms, "the wall clock was set"),
        Record::DefinitionLoaded { task_id, revision, file } => {
            info!(seq, task = %task_id, revision, file, "definition loaded");
        }
        Record::DefinitionRemoved { task_id, file } => {
            info!(seq, task = %task_id, file, "definition removed");
        }
        Record::DefinitionPinned { task_id, revision } => {
            info!(seq, task = %task_id, revision, uid = record.uid, "definition pinned");
        }
        Record::DefinitionUnpinned { task_id, revision, why } => {
            info!(seq, task = %task_id, revision, uid = record.uid, why, "definition unpinned");
        }
        Record::DefinitionRefused(error) => warn!(seq, %error, "definition refused"),
        Record::Paused { .. } | Record::Resumed { .. } | Record::PriorityChanged { .. } => {
            announce_decision(record);
        }
        Record::Emitted { name, instances } => info!(seq, name, instances, "event emitted"),
        Record::ExecutorConnected { executor_id, incarnation, pid } => {
            info!(seq, executor = %executor_id, incarnation, pid, "executor connected");
        }
        Record::ExecutorLost { executor_id, why } => {
            warn!(seq, executor = %executor_id, why, "executor lost");
        }
        Record::DaemonStarted { version, pid } => info!(seq, version, pid, "daemon started"),
        Record::DaemonStopping => info!(seq, uid = record.uid, "daemon stopping"),
    }
}

/// A move to a final failure needs a person; any other is news.
fn announce_move(record: &LogRecord) {
    let Record::Moved {
        instance_id,
        task_id,
        from,
        to,
        reason,
        attempt,
        executor_id,
        error_code,
        next_retry_at,
        is_final: _,
    } = &record.what
    else {
        return;
    };
    let words = MoveWords {
        task: task_id,
        instance: instance_id,
        from: *from,
        to: *to,
        reason: reason.map(Reason::as_str),
        executor: executor_id.as_ref().map(ExecutorId::as_str),
        error_code: error_code.as_deref(),
        retry_at: next_retry_at.map(|at| at.to_string()),
    };
    // A macro's level is fixed where it stands, so the event is written twice.
    macro_rules! say {
        ($level:ident) => {
            $level!(
                seq = record.seq.0,
                task = %words.task,
                instance = %words.instance,
                from = %words.from,
                state = %words.to,
                reason = words.reason,
                attempt,
                executor = words.executor,
                error_code = words.error_code,
                next_retry_at = words.retry_at,
                uid = record.uid,
                "instance moved"
            )
        };
    }
    if needs_a_person(record) {
        say!(warn);
    } else {
        say!(info);
    }
}

/// The fields of a move in the form in which they are logged.
struct MoveWords<'a> {
    task: &'a TaskId,
    instance: &'a InstanceId,
    from: InstanceState,
    to: InstanceState,
    reason: Option<&'a str>,
    executor: Option<&'a str>,
    error_code: Option<&'a str>,
    retry_at: Option<String>,
}

fn announce_fire(seq: u64, fire: &Fire) {
    let Fire { task_id, trigger, from, to, count, outcome, reason, instance_id } = fire;
    let reason = reason.as_deref();
    let instance = instance_id.as_ref().map(InstanceId::as_str);
    if *outcome == FireOutcome::Instance {
        debug!(seq, task = %task_id, trigger, at = %from, instance, "fire made an instance");
    } else {
        let outcome = outcome_name(*outcome);
        info!(
            seq, task = %task_id, trigger, %from, %to, count, outcome, reason,
            "fire made no instance"
        );
    }
}

fn announce_decision(record: &LogRecord) {
    let seq = record.seq.0;
    match &record.what {
        Record::Paused { target, pause } => {
            let until = pause.until.map(|until| until.to_string());
            let reason = pause.reason.as_deref();
            info!(seq, target = name(target), uid = pause.uid, reason, until, "paused");
        }
        Record::Resumed { target } => {
            info!(seq, target = name(target), uid = record.uid, "resumed");
        }
        Record::PriorityChanged { target, priority } => {
            let priority = priority.map(|priority| priority.to_string());
            info!(seq, target = name(target), uid = record.uid, priority, "priority changed");
        }
        Record::Created { .. }
        | Record::Moved { .. }
        | Record::Started { .. }
        | Record::Updated { .. }
        | Record::Fire(_)
        | Record::FireAmended { .. }
        | Record::ClockStepped { .. }
        | Record::DefinitionLoaded { .. }
        | Record::DefinitionRemoved { .. }
        | Record::DefinitionPinned { .. }
        | Record::DefinitionUnpinned { .. }
        | Record::DefinitionRefused(_)
        | Record::Emitted { .. }
        | Record::ExecutorConnected { .. }
        | Record::ExecutorLost { .. }
        | Record::DaemonStarted { .. }
        | Record::DaemonStopping => {}
    }
}

#[cfg(test)]
mod tests;
