//! What waits for upstreams: which run of each, and down to the root causes.

use super::{end, log, pauses, plain, time};
use crate::model::explain::{Blocker, EdgeExplanation, InstanceExplanation, OpenEdge};
use crate::model::instance::{InstanceState, Reason};
use crate::model::spec::{DepType, Strength};
use crate::model::time::Timestamp;
use crate::model::view::TaskStatus;

/// Of a PENDING or BLOCKED one.
pub(super) fn waiting(told: &InstanceExplanation, now: Timestamp, lines: &mut Vec<String>) {
    if let Some(at) = told.not_before.filter(|at| *at > now) {
        lines.push(format!("Its own time has not come: it was asked for at {}.", time(at, now)));
    }
    if told.reason == Some(Reason::ConditionError)
        && let Some(message) = &told.message
    {
        lines.push(format!("Its condition cannot be evaluated: {message}"));
    }
    for edge in told.edges.iter().filter(|edge| !edge.satisfied) {
        lines.push(unsatisfied(edge, &told.cycle, now));
    }
    let (done, all) = (told.edges.iter().filter(|e| e.satisfied).count(), told.edges.len());
    if done > 0 {
        let are = if done == 1 { "is" } else { "are" };
        lines.push(format!("{done} of its {all} upstreams {are} done."));
    }
    tree(&told.blocked_by, now, lines);
    pauses(&told.pauses, now, lines);
    if let Some(at) = told.dependency_deadline {
        lines.push(format!("Waiting for its upstreams runs out {}.", time(at, now)));
    }
}

fn unsatisfied(edge: &EdgeExplanation, cycle: &str, now: Timestamp) -> String {
    let weak = match edge.strength {
        Strength::Strong => "",
        Strength::Weak => ", whatever its end (WEAK)",
    };
    let data = match edge.dep_type {
        DepType::Success => "",
        DepType::DataReady => " and its outputs (DATA_READY)",
    };
    let task = &edge.task_id;
    let cycle = edge.wanted_cycle.as_deref().unwrap_or(cycle);
    let Some(id) = &edge.instance_id else {
        if let Some(skipped) = &edge.skipped {
            return format!("It waits for {task}{data}{weak}: {skipped}.");
        }
        let what = edge.open.as_ref().map_or_else(String::new, |open| to_come(open, now));
        return format!(
            "It waits for {task}{data}{weak}, which has no run of cycle {cycle} yet{what}."
        );
    };
    let Some(state) = edge.state else {
        return format!("It waits for {task}{data}: instance {id} is no longer in the store.");
    };
    let reason = edge.reason.map(|r| format!(" ({})", r.as_str())).unwrap_or_default();
    let since = edge.since.map(|at| format!(" since {}", time(at, now))).unwrap_or_default();
    let final_end = if edge.is_final { " for good" } else { "" };
    let missing = match edge.missing.as_slice() {
        [] => String::new(),
        missing => format!("; not there yet: {}", missing.join(", ")),
    };
    let held = match edge.reason {
        Some(Reason::Paused | Reason::Quota | Reason::NoSlot | Reason::NoExecutor) => {
            format!(" (schedctl explain {id} says more)")
        }
        Some(_) | None => String::new(),
    };
    format!(
        "It waits for {task}{data}{weak}: instance {id} is {state}{final_end}{reason}{since}{missing}\
         {held}."
    )
}

/// What is to be expected of an upstream without a run that counts.
fn to_come(open: &OpenEdge, now: Timestamp) -> String {
    let status = match open.status {
        None => return ": no file defines it any more".to_owned(),
        Some(TaskStatus::Disabled) => return ": it is disabled".to_owned(),
        Some(TaskStatus::Unresolved) => {
            return ": it is UNRESOLVED, an upstream of it is unknown".to_owned();
        }
        Some(TaskStatus::Paused) => ": it is paused",
        Some(TaskStatus::Active | TaskStatus::Pinned) => "",
    };
    let by = open.paused.as_ref().map(|p| format!(" by uid {}", p.uid)).unwrap_or_default();
    let next = match (open.next_fire_time, &open.next_cycle) {
        (Some(at), Some(cycle)) => {
            format!("; it fires next {}, which is cycle {cycle}", time(at, now))
        }
        (Some(at), None) => format!("; it fires next {}", time(at, now)),
        (None, _) if open.is_derived => format!("; it runs {}", open.schedule),
        (None, _) if open.schedule.is_empty() => "; only a submission starts it".to_owned(),
        (None, _) => format!("; it is started by: {}", open.schedule),
    };
    let counts = match open.matching_fire_time {
        Some(at) if open.next_fire_time != Some(at) => {
            format!("; its first fire that counts here is {}", plain(at))
        }
        None if open.next_fire_time.is_some() => {
            "; none of its next fires is of that cycle: schedctl run or backfill makes it"
                .to_owned()
        }
        Some(_) | None => String::new(),
    };
    format!("{status}{by}{next}{counts}")
}

/// What is above the upstreams already named, and how the root causes ended.
pub(super) fn tree(blockers: &[Blocker], now: Timestamp, lines: &mut Vec<String>) {
    let is_told = |b: &Blocker| b.blocked_by.is_empty() && !is_broken(b);
    if blockers.iter().all(is_told) {
        return;
    }
    lines.push("Down to the cause:".to_owned());
    for blocker in blockers {
        branch(blocker, 1, now, lines);
    }
    let mut roots = Vec::new();
    find_failed(blockers, &mut roots);
    if !roots.is_empty() {
        let ids = roots.join(" ");
        lines.push(format!(
            "Once that is repaired: schedctl retry {ids}; what waits goes on by itself."
        ));
    }
}

fn branch(blocker: &Blocker, depth: usize, now: Timestamp, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    let task = &blocker.task_id;
    let id = blocker.instance_id.as_ref().map_or_else(String::new, |id| format!(" {id}"));
    let state = blocker.state.map_or("no run yet", InstanceState::as_str);
    let reason = blocker.reason.map(|r| format!(" ({})", r.as_str())).unwrap_or_default();
    let ended = if has_failed(blocker) {
        format!(" with {}", end(blocker.error_code.as_deref(), blocker.exit_code, blocker.signal))
    } else {
        String::new()
    };
    let since = blocker.since.map(|at| format!(" since {}", time(at, now))).unwrap_or_default();
    let message = blocker.message.as_ref().map(|m| format!(": {m}")).unwrap_or_default();
    let again = if blocker.repeated { " (see above)" } else { "" };
    lines.push(format!("{indent}{task}{id}: {state}{reason}{ended}{since}{message}{again}"));
    log(&blocker.log, &format!("{indent}  "), lines);
    for above in &blocker.blocked_by {
        branch(above, depth + 1, now, lines);
    }
}

fn has_failed(blocker: &Blocker) -> bool {
    matches!(blocker.state, Some(InstanceState::Failed | InstanceState::Timeout))
}

fn is_broken(blocker: &Blocker) -> bool {
    has_failed(blocker) || blocker.state == Some(InstanceState::Cancelled)
}

/// Ids of those that failed for good.
fn find_failed(blockers: &[Blocker], found: &mut Vec<String>) {
    for blocker in blockers.iter().filter(|b| !b.repeated) {
        if has_failed(blocker) && blocker.is_final {
            found.extend(blocker.instance_id.as_ref().map(ToString::to_string));
        }
        find_failed(&blocker.blocked_by, found);
    }
}
