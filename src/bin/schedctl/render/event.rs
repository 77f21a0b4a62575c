//! Entries of the log for people: one line each.

use std::fmt::Write as _;

use sched::model::record::{LogRecord, Record, Target};

use super::{clean, pause, relative, task};
use crate::output::Output;
use crate::time_text;

/// One line.
pub(crate) fn line(record: &LogRecord, output: &Output) -> String {
    let at = time_text::local(record.at, &output.zone);
    let who = record.uid.map_or_else(String::new, |uid| format!(" [uid {uid}]"));
    format!("{:>6}  {at}  {}{who}", record.seq.0, clean(&what(&record.what, output)))
}

fn what(record: &Record, output: &Output) -> String {
    match record {
        Record::Created { instance_id, task_id, cycle, trigger } => {
            format!("{task_id} {instance_id} made by {trigger} for {cycle}")
        }
        Record::Moved { .. } => moved(record, output),
        Record::Started { instance_id, task_id, attempt, pid } => {
            format!("{task_id} {instance_id} attempt {attempt} started, pid {pid}")
        }
        Record::Updated { instance_id, task_id, what } => {
            format!("{task_id} {instance_id} changed: {what}")
        }
        Record::Fire(fire) => {
            let (outcome, _) = task::outcome_text(fire.outcome);
            let from = time_text::local(fire.from, &output.zone);
            let many = if fire.count == 1 { String::new() } else { format!(" ×{}", fire.count) };
            let reason = fire.reason.as_ref().map_or_else(String::new, |r| format!(": {r}"));
            format!(
                "{} fired by {} for {from}{many}: {outcome}{reason}",
                fire.task_id, fire.trigger
            )
        }
        Record::FireAmended { of, fire } => {
            let (outcome, _) = task::outcome_text(fire.outcome);
            let left = match fire.count {
                0 => "is taken back".to_owned(),
                count => format!("counts {count} from now on"),
            };
            format!("{} ledger row {outcome} of entry {} {left}", fire.task_id, of.0)
        }
        Record::ClockStepped { by_ms } => {
            let way = if *by_ms < 0 { "back" } else { "forward" };
            let by = std::time::Duration::from_millis(by_ms.unsigned_abs());
            format!("the wall clock was set {way} by {by:?}")
        }
        Record::DefinitionLoaded { task_id, revision, file } => {
            format!("{task_id} revision {revision} loaded from {file}")
        }
        Record::DefinitionRemoved { task_id, file } => {
            format!("{task_id} removed with {file}")
        }
        Record::DefinitionPinned { task_id, revision } => {
            format!("{task_id} rolled back to revision {revision} and pinned")
        }
        Record::DefinitionUnpinned { task_id, revision, why } => {
            format!("{task_id} is no longer pinned to revision {revision}: {why}")
        }
        Record::DefinitionRefused(error) => format!("refused {error}"),
        Record::Paused { target, pause: held } => {
            format!("{} {}", target_text(target), pause(held, output.now))
        }
        Record::Resumed { target } => format!("{} resumed", target_text(target)),
        Record::PriorityChanged { target, priority } => match priority {
            Some(priority) => format!("{} has priority {priority}", target_text(target)),
            None => format!("{} has the priority of its definition again", target_text(target)),
        },
        Record::Emitted { name, instances } => format!("event {name} made {instances} instances"),
        Record::ExecutorConnected { executor_id, incarnation, pid } => {
            format!("executor {executor_id} connected, pid {pid}, incarnation {incarnation}")
        }
        Record::ExecutorLost { executor_id, why } => format!("executor {executor_id} lost: {why}"),
        Record::DaemonStarted { version, pid } => format!("schedd {version} started, pid {pid}"),
        Record::DaemonStopping => "schedd is stopping".to_owned(),
    }
}

fn moved(record: &Record, output: &Output) -> String {
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
    } = record
    else {
        return String::new();
    };
    let mut text = format!("{task_id} {instance_id} {from} → {to}");
    let mut words: Vec<String> = Vec::new();
    words.extend(error_code.clone());
    words.extend(reason.map(|r| r.as_str().to_owned()));
    words.extend(executor_id.as_ref().map(|id| format!("attempt {attempt} on {id}")));
    words.extend(next_retry_at.map(|at| format!("again {}", relative(output.now, Some(at)))));
    if !words.is_empty() {
        let _infallible = write!(text, " ({})", words.join(", "));
    }
    text
}

fn target_text(target: &Target) -> String {
    match target {
        Target::Instance(id) => id.to_string(),
        Target::Task(id) => id.to_string(),
        Target::Queue(name) => format!("queue {name}"),
        Target::All => "everything".to_owned(),
    }
}
