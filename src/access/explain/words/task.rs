//! Why a task has no instance now, and what became of one of its times.

use super::{pauses, plain, time};
use crate::model::explain::{FireExplanation, RecentInstance, TaskExplanation};
use crate::model::instance::InstanceState;
use crate::model::record::{Fire, FireOutcome};
use crate::model::time::Timestamp;
use crate::model::view::TaskStatus;

/// The time asked for first, then the task as it is now.
pub(in super::super) fn of_task(told: &TaskExplanation, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(asked) = &told.at {
        at(told, asked, now, &mut lines);
    }
    lines.push(status(told));
    lines.extend(told.spec_errors.iter().map(|e| format!("  its file is wrong now: {e}")));
    pauses(&told.pauses, now, &mut lines);
    lines.push(match told.open {
        0 => "It has no open instance.".to_owned(),
        1 => "It has 1 open instance.".to_owned(),
        n => format!("It has {n} open instances."),
    });
    lines.push(next(told, now));
    if told.recent.is_empty() {
        lines.push("It has never had an instance, or none is kept.".to_owned());
    } else {
        lines.push("Its newest instances:".to_owned());
        lines.extend(told.recent.iter().map(|i| format!("  {}", short(i, now))));
    }
    lines
}

fn status(told: &TaskExplanation) -> String {
    let task = &told.task_id;
    match told.status {
        TaskStatus::Active => format!("{task} is ACTIVE."),
        TaskStatus::Pinned => {
            format!("{task} is ACTIVE; an earlier revision is in force (schedctl unpin {task}).")
        }
        TaskStatus::Paused => format!("{task} is PAUSED: its fires make nothing."),
        TaskStatus::Disabled => {
            format!("{task} is DISABLED (enabled: false): nothing triggers it.")
        }
        TaskStatus::Unresolved => {
            let unknown: Vec<&str> = told.unresolved.iter().map(|t| t.as_str()).collect();
            let unknown = unknown.join(", ");
            format!(
                "{task} is UNRESOLVED: no file defines {unknown}; it gets no instances until one does."
            )
        }
    }
}

fn next(told: &TaskExplanation, now: Timestamp) -> String {
    let with = told.fires_with.as_ref();
    let with = with.map_or_else(String::new, |t| format!(", with {t}, as its rollout has it"));
    if let Some(at) = told.next_fire_time {
        let cycle = told.next_cycle.as_ref().map_or_else(String::new, |c| format!(", cycle {c}"));
        let note = told
            .next_note
            .as_ref()
            .map_or_else(String::new, |n| format!("; as things stand that {n}"));
        return format!("It fires next {}{cycle}{with}{note}.", time(at, now));
    }
    if told.is_derived {
        let above: Vec<&str> = told.upstreams.iter().map(|t| t.as_str()).collect();
        return format!(
            "It has no triggers of its own: it gets an instance when one is made of what it runs after, {}.",
            above.join(", ")
        );
    }
    if told.schedule.is_empty() {
        return "It has no triggers: only schedctl run starts it.".to_owned();
    }
    format!("No time starts it; it is started by: {}.", told.schedule)
}

fn at(told: &TaskExplanation, asked: &FireExplanation, now: Timestamp, lines: &mut Vec<String>) {
    let (task, when) = (&told.task_id, time(asked.at, now));
    let made = asked.instance.as_ref().map(|i| short(i, now));
    if let Some(fire) = &asked.fire {
        lines.push(outcome(fire, &when));
        lines.extend(made.map(|i| format!("  {i}")));
        return;
    }
    if let Some(made) = made {
        lines.push(format!("{task} has an instance of {when}: {made}"));
        return;
    }
    if asked.triggers.is_empty() {
        lines.push(format!("No trigger of {task} has the time {when}."));
    } else if asked.to_come {
        lines.push(format!("{task} is to fire at {when}: that has not come yet."));
    } else if asked.at < asked.defined_at {
        lines.push(format!(
            "{task} was first defined at {}: {when} was before that, so nothing fired.",
            plain(asked.defined_at)
        ));
    } else {
        lines.push(format!(
            "{task} has a trigger for {when}, but the ledger has no row of it: the trigger is newer \
             than that time, the row was trimmed, or it is being handled now."
        ));
    }
    let near = match (asked.before, asked.after) {
        (Some(before), Some(after)) => {
            format!("  the nearest fires are {} and {}", plain(before), plain(after))
        }
        (Some(before), None) => {
            format!("  the fire before it is {}, none comes after", plain(before))
        }
        (None, Some(after)) => format!("  the first fire after it is {}", plain(after)),
        (None, None) => "  no time starts it".to_owned(),
    };
    lines.push(near);
}

fn outcome(fire: &Fire, when: &str) -> String {
    let why = fire.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let task = &fire.task_id;
    let what = match fire.outcome {
        FireOutcome::Instance => "made an instance (INSTANCE)",
        FireOutcome::SkippedOverlap => {
            "made nothing (SKIPPED_OVERLAP): an earlier instance was still at it"
        }
        FireOutcome::Missed => {
            "made nothing (MISSED): no daemon ran then, or the clock went past it"
        }
        FireOutcome::Coalesced => "made nothing (COALESCED): a newer missed fire stands for it",
        FireOutcome::Paused => "made nothing (PAUSED): the task was paused",
        FireOutcome::Disabled => "made nothing (DISABLED): the task was disabled",
        FireOutcome::Unresolved => "made nothing (UNRESOLVED): an upstream was unknown",
        FireOutcome::RejectedParams => "made nothing (REJECTED_PARAMS): its parameters were wrong",
        FireOutcome::Duplicate => "made nothing (DUPLICATE): its dedupKey was taken",
        FireOutcome::RolledOutElsewhere => {
            "made nothing here (ROLLED_OUT_ELSEWHERE): another version took the cycle"
        }
    };
    let with = match fire.count {
        0 | 1 => String::new(),
        n => format!("; one row counts {n} fires from {} to {}", plain(fire.from), plain(fire.to)),
    };
    format!("The fire of {task} at {when} {what}{why}{with}.")
}

/// `2026-11-30 01k…: FAILED with EXIT_1 2026-11-30T02:00:00Z (3m ago)`.
fn short(i: &RecentInstance, now: Timestamp) -> String {
    let code = i.error_code.as_ref().map_or_else(String::new, |code| format!(" with {code}"));
    let reason = i.reason.map(|r| format!(" ({})", r.as_str())).unwrap_or_default();
    let is_over = match i.state {
        InstanceState::Succeeded
        | InstanceState::Failed
        | InstanceState::Timeout
        | InstanceState::Cancelled => true,
        InstanceState::Pending
        | InstanceState::Blocked
        | InstanceState::Ready
        | InstanceState::Running => false,
    };
    let when = match i.finished_at.filter(|_| is_over) {
        Some(end) => format!(", ended {}", time(end, now)),
        None => format!(", made {}", time(i.created_at, now)),
    };
    format!("{} {}: {}{reason}{code}{when}", i.cycle, i.instance_id, i.state)
}
