//! A simulated night, for people.

use std::time::Duration;

use sched::model::id::TaskId;
use sched::model::instance::Reason;
use sched::model::record::FireOutcome;
use sched::model::simulation::{
    FirePeak, LateInstance, SimulatedInstance, SimulationView, SkippedFires, WaitingInstance,
};
use sched::model::time::Timestamp;

use super::{Field, Tone, counted, state, table};
use crate::output::Output;
use crate::time_text;

#[cfg(test)]
mod tests;

/// Tasks that one row names.
const NAMED_MAX: usize = 3;
/// Rows of the tables beside the timeline.
const ROWS_MAX: usize = 20;

/// What matters first: in few words, what is late, the timeline, collisions, waits, what is left.
pub(crate) fn pages(view: &SimulationView, limit: usize, output: &Output) -> String {
    let mut pages = vec![headline(view, output)];
    if !view.late.is_empty() {
        pages.push(late(&view.late, output));
    }
    if !view.instances.is_empty() {
        pages.push(timeline(&view.instances, limit, output));
    }
    if !view.skipped.is_empty() {
        pages.push(skipped(&view.skipped, output));
    }
    if !view.peaks.is_empty() {
        pages.push(peaks(&view.peaks, output));
    }
    if !view.instances.is_empty() {
        pages.push(queues(view, output));
    }
    if !view.waiting.is_empty() {
        pages.push(waiting(&view.waiting, output));
    }
    pages.join("\n")
}

/// What a person should know beside it.
pub(crate) fn notes(view: &SimulationView, limit: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if view.instances.len() > limit {
        let left = view.instances.len() - limit;
        notes.push(format!("{left} more rows of the timeline; --limit 0 shows all"));
    }
    if !view.assumed.is_empty() {
        notes.push(format!(
            "{} without a history took as long as --assume says: {}",
            counted(view.assumed.len(), "task"),
            named(&view.assumed)
        ));
    }
    if !view.unstarted.is_empty() {
        let tasks = counted(view.unstarted.len(), "task");
        let of = view.unstarted.iter().take(NAMED_MAX);
        let of: Vec<String> =
            of.map(|task| format!("{} ({})", task.task_id, task.waits_for.join(", "))).collect();
        let more = view.unstarted.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        notes.push(format!(
            "{tasks} that only a file or an event starts did not run: {}{more}",
            of.join(", ")
        ));
    }
    notes
}

fn duration(ms: u64) -> String {
    time_text::short(Duration::from_millis(ms))
}

fn at(output: &Output, at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| time_text::local(at, &output.zone))
}

fn named(tasks: &[TaskId]) -> String {
    let more = tasks.len().saturating_sub(NAMED_MAX);
    let named: Vec<&str> = tasks.iter().take(NAMED_MAX).map(TaskId::as_str).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

fn headline(view: &SimulationView, output: &Output) -> String {
    let s = &view.summary;
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let ends = [
        (s.succeeded, "succeeded"),
        (s.failed, "failed"),
        (s.timeout, "timed out"),
        (s.cancelled, "cancelled"),
        (s.open, "open at the end"),
    ];
    let ends: Vec<String> =
        ends.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let ends = if ends.is_empty() { String::new() } else { format!(" ({})", ends.join(", ")) };
    let peak = s.peak_at.map(|_| format!(" at {}", at(output, s.peak_at))).unwrap_or_default();
    format!(
        "{} to {}: {}{ends}, {} late, {} skipped\n\
         at most {} of {} in use{peak}, longest wait for a start {}\n",
        at(output, Some(view.from)),
        at(output, Some(view.to)),
        counted(count(s.instances), "instance"),
        s.late,
        counted(count(s.skipped_fires), "fire"),
        s.peak_slots,
        counted(count(s.slots), "slot"),
        duration(s.longest_wait_ms),
    )
}

fn late(late: &[LateInstance], output: &Output) -> String {
    let rows = late.iter().take(ROWS_MAX).map(|l| {
        let by = duration(l.late_by_ms);
        let by = if l.finished_at.is_none() { format!("more than {by}") } else { by };
        vec![
            Field::toned(l.task_id.as_str(), Tone::Bad),
            Field::from(&l.cycle),
            at(output, Some(l.deadline)).into(),
            at(output, l.finished_at).into(),
            Field::toned(by, Tone::Bad),
            state(l.state),
        ]
    });
    let heads = ["LATE", "CYCLE", "DEADLINE", "ENDS", "BY", "STATE"];
    with_rest(table(&heads, rows.collect(), output), late.len(), ROWS_MAX)
}

fn timeline(instances: &[SimulatedInstance], limit: usize, output: &Output) -> String {
    let mut by_start: Vec<&SimulatedInstance> = instances.iter().collect();
    by_start.sort_by_key(|i| i.started_at.unwrap_or(i.created_at));
    let rows = by_start.into_iter().take(limit).map(|i| {
        let on = i.attempts.last().map(|a| format!("{}/{}", a.executor_id, a.slot));
        let attempts = i.attempts.len();
        let mut row = vec![
            Field::from(at(output, i.started_at)),
            at(output, i.finished_at).into(),
            i.task_id.as_str().into(),
            Field::from(&i.cycle),
            if i.queue_wait_ms > 0 { duration(i.queue_wait_ms) } else { String::new() }.into(),
            on.unwrap_or_default().into(),
            state(i.state),
            reason(i.reason),
        ];
        if output.is_wide() {
            row.extend([
                Field::from(at(output, Some(i.created_at))),
                Field::from(&i.trigger),
                Field::from(i.queue.as_str()),
                attempts.to_string().into(),
                i.instance_id.as_str().into(),
            ]);
        }
        row
    });
    let mut heads = vec!["START", "END", "TASK", "CYCLE", "WAITED", "SLOT", "STATE", "REASON"];
    if output.is_wide() {
        heads.extend(["CREATED", "TRIGGER", "QUEUE", "ATTEMPTS", "INSTANCE"]);
    }
    table(&heads, rows.collect(), output)
}

fn reason(reason: Option<Reason>) -> Field {
    Field::from(reason.map_or("", Reason::as_str))
}

fn skipped(skipped: &[SkippedFires], output: &Output) -> String {
    let rows = skipped.iter().take(ROWS_MAX).map(|s| {
        let outcome = match s.outcome {
            FireOutcome::Instance => "INSTANCE",
            FireOutcome::SkippedOverlap => "SKIPPED_OVERLAP",
            FireOutcome::Missed => "MISSED",
            FireOutcome::Coalesced => "COALESCED",
            FireOutcome::Paused => "PAUSED",
            FireOutcome::Disabled => "DISABLED",
            FireOutcome::Unresolved => "UNRESOLVED",
            FireOutcome::RejectedParams => "REJECTED_PARAMS",
            FireOutcome::Duplicate => "DUPLICATE",
            FireOutcome::RolledOutElsewhere => "ROLLED_OUT_ELSEWHERE",
        };
        vec![
            Field::from(s.task_id.as_str()),
            s.count.to_string().into(),
            Field::toned(outcome, Tone::Held),
            at(output, Some(s.from)).into(),
            at(output, Some(s.to)).into(),
        ]
    });
    let heads = ["NO INSTANCE OF", "FIRES", "OUTCOME", "FIRST", "LAST"];
    with_rest(table(&heads, rows.collect(), output), skipped.len(), ROWS_MAX)
}

fn peaks(peaks: &[FirePeak], output: &Output) -> String {
    let rows = peaks.iter().map(|peak| {
        vec![
            Field::from(at(output, Some(peak.at))),
            peak.instances.to_string().into(),
            named(&peak.tasks).into(),
        ]
    });
    table(&["FIRE TOGETHER", "INSTANCES", "TASKS"], rows.collect(), output)
}

fn queues(view: &SimulationView, output: &Output) -> String {
    let rows = view.queues.iter().map(|q| {
        vec![
            Field::from(q.name.as_str()),
            q.started.to_string().into(),
            duration(q.median_wait_ms).into(),
            duration(q.max_wait_ms).into(),
            q.peak_ready.to_string().into(),
            at(output, q.peak_at).into(),
        ]
    });
    let heads = ["QUEUE", "STARTED", "MEDIAN WAIT", "LONGEST WAIT", "MOST READY", "AT"];
    let queues = table(&heads, rows.collect(), output);
    let whole = u64::try_from(view.to.since(view.from).as_millis()).unwrap_or(u64::MAX);
    let rows = view.executors.iter().map(|e| {
        let all = whole.saturating_mul(e.slots.into()).max(1);
        vec![
            Field::from(e.executor_id.as_str()),
            e.slots.to_string().into(),
            e.peak.to_string().into(),
            format!("{} %", e.busy_ms.saturating_mul(100) / all).into(),
        ]
    });
    let executors = table(&["EXECUTOR", "SLOTS", "MOST IN USE", "BUSY"], rows.collect(), output);
    format!("{queues}\n{executors}")
}

fn waiting(waiting: &[WaitingInstance], output: &Output) -> String {
    let rows = waiting.iter().take(ROWS_MAX).map(|w| {
        vec![
            Field::from(w.task_id.as_str()),
            Field::from(&w.cycle),
            state(w.state),
            reason(w.reason),
            at(output, Some(w.created_at)).into(),
            named(&w.waits_for).into(),
        ]
    });
    let heads = ["STILL WAITS", "CYCLE", "STATE", "REASON", "CREATED", "FOR"];
    with_rest(table(&heads, rows.collect(), output), waiting.len(), ROWS_MAX)
}

/// A table of which only the first rows are shown.
fn with_rest(table: String, all: usize, shown: usize) -> String {
    if all <= shown { table } else { format!("{table}and {} more\n", all - shown) }
}
