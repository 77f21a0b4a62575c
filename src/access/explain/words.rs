//! Explanations in sentences: made here and nowhere else, so that JSON and terminal say the same.
//!
//! Every line stands for itself; a line that begins with blanks belongs to the one above it.

mod task;
mod upstreams;
mod waits;

pub(super) use self::task::of_task;
use crate::model::distance;
use crate::model::explain::{InstanceExplanation, InstanceRef, PauseExplanation};
use crate::model::instance::{InstanceState, Reason};
use crate::model::record::Target;
use crate::model::time::Timestamp;

/// Why an instance is where it is, most important first.
pub(super) fn of_instance(told: &InstanceExplanation, now: Timestamp) -> Vec<String> {
    let mut lines = vec![head(told, now)];
    match told.state {
        InstanceState::Pending | InstanceState::Blocked => {
            upstreams::waiting(told, now, &mut lines);
        }
        InstanceState::Ready => waits::ready(told, now, &mut lines),
        InstanceState::Running => running(told, now, &mut lines),
        InstanceState::Succeeded => lines.push(format!("It needed {}.", attempts(told.attempt))),
        InstanceState::Failed | InstanceState::Timeout => failed(told, now, &mut lines),
        InstanceState::Cancelled => cancelled(told, now, &mut lines),
    }
    if told.degraded {
        lines.push("It goes on although dependencies did not hold (RUN_DEGRADED).".to_owned());
    }
    lines
}

fn head(told: &InstanceExplanation, now: Timestamp) -> String {
    let reason = told.reason.map(|r| format!(" ({})", r.as_str())).unwrap_or_default();
    let since = told.since.map(|at| format!(" since {}", time(at, now))).unwrap_or_default();
    let (task, id, cycle) = (&told.task_id, &told.instance_id, &told.cycle);
    format!("{task} (instance {id}, cycle {cycle}) is {}{reason}{since}.", told.state)
}

fn running(told: &InstanceExplanation, now: Timestamp, lines: &mut Vec<String>) {
    let on = told.executor_id.as_ref().map_or("?", |id| id.as_str());
    let attempt = told.attempt;
    lines.push(match told.started_at {
        Some(at) => format!("Attempt {attempt} runs on executor {on} since {}.", time(at, now)),
        None => format!(
            "Attempt {attempt} was given to executor {on}, which has not told yet that it started."
        ),
    });
    if told.reason == Some(Reason::Cancelling) {
        let by = told.cancelled_by.map(|uid| format!(" by uid {uid}")).unwrap_or_default();
        lines.push(format!("It was told to end{by}; its processes are not gone yet."));
    }
    if told.reason == Some(Reason::Frozen) {
        lines.push("Its processes are stopped; its timeout stands still.".to_owned());
    }
    if let Some(at) = told.timeout_at.filter(|_| told.reason != Some(Reason::Frozen)) {
        lines.push(format!("It is ended as TIMEOUT if it still runs {}.", time(at, now)));
    }
    pauses(&told.pauses, now, lines);
}

fn failed(told: &InstanceExplanation, now: Timestamp, lines: &mut Vec<String>) {
    let how = end(told.error_code.as_deref(), told.exit_code, told.signal);
    let message = told.message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
    lines.push(format!("Attempt {} ended with {how}{message}.", told.attempt));
    log(&told.log, "", lines);
    match told.next_retry_at {
        Some(at) => {
            let left = attempts(told.attempts_left);
            lines.push(format!("It is tried again {}; {left} left.", time(at, now)));
            pauses(&told.pauses, now, lines);
        }
        None => {
            let id = &told.instance_id;
            let why = if told.attempts_left == 0 {
                "No attempt is left"
            } else {
                "It is not tried again by itself: the error code or the task does not allow it"
            };
            lines.push(format!("{why}. Once it is repaired: schedctl retry {id}"));
        }
    }
}

fn cancelled(told: &InstanceExplanation, now: Timestamp, lines: &mut Vec<String>) {
    let by = told.cancelled_by.map_or_else(String::new, |uid| format!(" by uid {uid}"));
    let message = told.message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
    let line = match told.reason {
        Some(Reason::CancelledByUser) if by.is_empty() => format!("It was cancelled{message}."),
        Some(Reason::CancelledByUser) => format!("It was cancelled{by}."),
        Some(Reason::SkippedByUser) => format!("It was skipped{by}; its STRONG dependents follow."),
        Some(Reason::ConditionFalse) => {
            let conditions = told.edges.iter().filter_map(|edge| {
                let when = edge.when.as_ref()?;
                Some(format!("{when} on {}", edge.task_id))
            });
            let conditions: Vec<String> = conditions.collect();
            let named = if conditions.is_empty() {
                String::new()
            } else {
                format!(" ({})", conditions.join("; "))
            };
            format!("The condition on an upstream was false{named}, so this run was skipped.")
        }
        Some(Reason::UpstreamSkipped) => "An upstream that it needs was skipped.".to_owned(),
        Some(Reason::DependencyTimeout) => {
            "It waited longer for its upstreams than dependencyTimeoutMs allows.".to_owned()
        }
        Some(Reason::Replaced) => "A newer instance took its place.".to_owned(),
        Some(Reason::RejectedParams) => {
            format!("Its parameters were missing or wrong when it could have started{message}.")
        }
        Some(Reason::Expired) => "It waited longer than anything may (retention.days).".to_owned(),
        Some(Reason::FileGone) => format!(
            "The file that it was made for went, or got new content, before it started{message}."
        ),
        Some(
            Reason::WaitingTrigger
            | Reason::WaitingDependency
            | Reason::UpstreamFailed
            | Reason::SpecRemoved
            | Reason::ConditionError
            | Reason::Paused
            | Reason::NoExecutor
            | Reason::Quota
            | Reason::NoSlot
            | Reason::Cancelling
            | Reason::Frozen
            | Reason::RetryWait,
        )
        | None => format!("It was cancelled{by}{message}."),
    };
    lines.push(line);
    upstreams::tree(&told.blocked_by, now, lines);
}

/// Who holds what, why and until when.
pub(super) fn pauses(pauses: &[PauseExplanation], now: Timestamp, lines: &mut Vec<String>) {
    lines.extend(pauses.iter().map(|PauseExplanation { target, pause }| {
        let (what, resume) = match target {
            Target::Instance(id) => ("The instance".to_owned(), format!("schedctl resume {id}")),
            Target::Task(id) => (format!("The task {id}"), format!("schedctl resume {id}")),
            Target::Queue(name) => {
                (format!("The queue {name}"), format!("schedctl resume --queue {name}"))
            }
            Target::All => ("Everything".to_owned(), "schedctl resume --all".to_owned()),
        };
        let why = pause.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        let until = pause.until.map_or_else(
            || format!("until {resume}"),
            |at| format!("until {}, or {resume}", time(at, now)),
        );
        format!(
            "{what} is paused by uid {} since {}{why}, {until}",
            pause.uid,
            time(pause.since, now)
        )
    }));
}

/// How an attempt ended: `EXIT_1 (exit status 1)`.
fn end(code: Option<&str>, exit: Option<i32>, signal: Option<i32>) -> String {
    let code = code.unwrap_or("no error code");
    match (exit, signal) {
        (Some(status), _) => format!("{code} (exit status {status})"),
        (None, Some(number)) => format!("{code} (signal {number})"),
        (None, None) => code.to_owned(),
    }
}

fn log(lines_of_log: &[String], indent: &str, lines: &mut Vec<String>) {
    if !lines_of_log.is_empty() {
        lines.push(format!("{indent}The last lines of its log:"));
        lines.extend(lines_of_log.iter().map(|line| format!("{indent}  | {line}")));
    }
}

/// `3 attempts`.
fn attempts(n: u32) -> String {
    format!("{n} attempt{}", if n == 1 { "" } else { "s" })
}

/// `a.b.v1 01k…, c.d.v1 01m… and 7 more`.
fn named(first: &[InstanceRef], all: u64) -> String {
    let names = first.iter().map(|r| format!("{} {}", r.task_id, r.instance_id));
    let names: Vec<String> = names.collect();
    let more = all.saturating_sub(u64::try_from(first.len()).unwrap_or(u64::MAX));
    match (names.is_empty(), more) {
        (true, _) => format!("{all} instances"),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

/// `2026-11-30T02:00:00Z (3m ago)`.
fn time(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", plain(at), distance::relative(now, at))
}

/// `2026-11-30T02:00:00Z`: milliseconds only where there are any.
fn plain(at: Timestamp) -> String {
    at.to_string().replace(".000Z", "Z")
}

#[cfg(test)]
mod tests;
