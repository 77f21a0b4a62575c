//! What a READY instance waits for: people, executors, quotas, its turn.

use super::{named, pauses};
use crate::model::explain::{
    DaemonHold, ExecutorOffer, InstanceExplanation, Placement, PriorityExplanation,
    QuotaExplanation, QuotaKind,
};
use crate::model::time::Timestamp;

pub(super) fn ready(told: &InstanceExplanation, now: Timestamp, lines: &mut Vec<String>) {
    lines.extend(told.daemon.iter().map(|hold| {
        match hold {
            DaemonHold::Stopping => "The daemon is stopping: nothing starts any more.",
            DaemonHold::SpecsUnread => {
                "The daemon has just started and has not read all spec files yet."
            }
            DaemonHold::FilesUnread => {
                "The daemon has just started and has not looked yet whether its file is still there."
            }
        }
        .to_owned()
    }));
    pauses(&told.pauses, now, lines);
    if let Some(placement) = told.placement.as_ref() {
        executors(placement, lines);
    }
    lines.extend(told.quotas.iter().map(quota));
    if let Some(place) = &told.place {
        let turn = match place.ahead {
            0 => format!("It is the first of {} in the queue {}", place.waiting, place.queue),
            ahead => format!(
                "{ahead} of the {} in the queue {} go first: {}",
                place.waiting,
                place.queue,
                named(&place.first, ahead)
            ),
        };
        lines.push(format!("{turn}."));
    }
    lines.extend(priority(&told.priority));
    if lines.len() == 2 && told.reason.is_none() {
        lines.push("Nothing holds it back: it starts now.".to_owned());
    }
}

/// Said only where no connected executor fits.
fn executors(placement: &Placement, lines: &mut Vec<String>) {
    if placement.executors.iter().any(|e| e.fits && e.connected) {
        return;
    }
    let labels: Vec<String> =
        placement.executor_labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let labels = if labels.is_empty() {
        String::new()
    } else {
        format!(" with the labels {}", labels.join(", "))
    };
    let task_type = &placement.task_type;
    lines.push(format!("It asks for an executor that takes {task_type}{labels}; none is there:"));
    lines.extend(placement.executors.iter().map(|e| format!("  {}", offer(e))));
}

fn offer(e: &ExecutorOffer) -> String {
    let labels: Vec<String> = e.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let labels = if labels.is_empty() { "no labels".to_owned() } else { labels.join(", ") };
    let types = e.task_types.join(", ");
    let state = match (e.fits, e.connected) {
        (true, false) => "fits, but is not connected",
        (true, true) => "fits",
        (false, _) => "does not fit",
    };
    format!("executor {} ({state}): takes {types}; {labels}", e.executor_id)
}

fn quota(quota: &QuotaExplanation) -> String {
    let (name, limit, used) = (&quota.name, quota.limit, quota.used);
    let what = match quota.kind {
        QuotaKind::Queue => format!("The queue {name} is full: {used} run, maxRunning is {limit}"),
        QuotaKind::Task => {
            format!("The task is at its bound: {used} run, maxConcurrent is {limit}")
        }
        QuotaKind::Owner => format!("The owner {name} is at the quota: {used} run of {limit}"),
        QuotaKind::Slots => format!("No slot is free on {name}: {used} of {limit} are taken"),
    };
    format!("{what}; held by {}.", named(&quota.held_by, u64::from(used)))
}

fn priority(priority: &PriorityExplanation) -> Option<String> {
    let (own, effective) = (priority.own, priority.effective);
    (own != effective).then(|| {
        let from = priority.inherited_from.as_ref();
        let from =
            from.map(|r| format!(", lent by {} {}, which waits for it", r.task_id, r.instance_id));
        format!("Its priority {own} acts as {effective}{}.", from.unwrap_or_default())
    })
}
