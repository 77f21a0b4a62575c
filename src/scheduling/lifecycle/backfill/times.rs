//! The nominal times of a task in a range of cycles: what a backfill goes through (docs/waves.md,
//! rule 15).

use std::collections::BTreeMap;

use super::super::super::turn::Turn;
use super::super::fire;
use crate::limits;
use crate::model::cycle::{Cycle, CycleRange};
use crate::model::spec::{TaskSpec, Trigger};
use crate::model::time::Timestamp;

/// One nominal time.
pub(super) struct Time<'a> {
    pub(super) at: Timestamp,
    pub(super) cycle: Cycle,
    /// Whose fire it is; `None`: no time starts the task, so each cycle counts once.
    pub(super) trigger: Option<&'a Trigger>,
}

/// The nominal times in a range.
#[derive(Default)]
pub(super) struct Within<'a> {
    /// Those that have come, oldest first.
    pub(super) due: Vec<Time<'a>>,
    /// The first that is still to come.
    pub(super) not_due_from: Option<Timestamp>,
}

/// There are more than [`limits::BACKFILL_MAX`].
pub(super) struct TooMany;

/// The nominal fires of the task's time triggers whose cycle lies in the range; the cycles
/// themselves if it has no such trigger.
pub(super) fn within<'a>(
    turn: &Turn<'_>,
    spec: &'a TaskSpec,
    range: &CycleRange,
) -> Result<Within<'a>, TooMany> {
    let is_timed = |trigger: &&Trigger| fire::timed(trigger).is_some();
    let mut triggers: Vec<&Trigger> = spec.triggers.iter().filter(is_timed).collect();
    if triggers.is_empty() {
        return cycles(turn, range);
    }
    // Two triggers at one instant are one fire: that of the first key.
    triggers.sort_by_key(|trigger| trigger.key());
    fires(turn, spec, &triggers, range)
}

fn fires<'a>(
    turn: &Turn<'_>,
    spec: &'a TaskSpec,
    triggers: &[&'a Trigger],
    range: &CycleRange,
) -> Result<Within<'a>, TooMany> {
    let (from, to) = range.scheduled(turn.state.registry.rule(&spec.task_id).offset);
    let mut found: BTreeMap<Timestamp, &'a Trigger> = BTreeMap::new();
    let mut later: Option<Timestamp> = None;
    let mut looks = 0;
    for trigger in triggers {
        let handled_to = handled_to(turn, spec, trigger);
        let mut after = from.just_before();
        while let Some(at) = turn.state.next_after(spec, trigger, after).filter(|at| *at < to) {
            if at > handled_to {
                later = Some(later.map_or(at, |later| later.min(at)));
                break;
            }
            looks += 1;
            if looks > limits::BACKFILL_MAX {
                return Err(TooMany);
            }
            found.entry(at).or_insert(trigger);
            after = at;
        }
    }
    let cycle = |at| fire::cycle_of(turn.state, spec, at, "");
    let due = found.into_iter().map(|(at, trigger)| Time {
        at,
        cycle: cycle(at),
        trigger: Some(trigger),
    });
    Ok(Within { due: due.collect(), not_due_from: later })
}

/// Up to when a trigger's fires have had their turn. Those that were missed and have not yet are
/// left to the trigger's `misfire`.
fn handled_to(turn: &Turn<'_>, spec: &TaskSpec, trigger: &Trigger) -> Timestamp {
    let pending = turn.state.next_fires.get(&(spec.task_id.clone(), trigger.key()));
    pending.map_or(turn.now, |at| at.just_before()).min(turn.now)
}

/// The instance of such a cycle is scheduled now, as one of `schedctl run --cycle` is: so it is
/// newer than what the cycle has already.
fn cycles<'a>(turn: &Turn<'_>, range: &CycleRange) -> Result<Within<'a>, TooMany> {
    let mut within = Within::default();
    for (begins, cycle) in range.cycles() {
        if begins > turn.now {
            within.not_due_from = Some(begins);
            break;
        }
        if within.due.len() == limits::BACKFILL_MAX {
            return Err(TooMany);
        }
        within.due.push(Time { at: turn.now, cycle, trigger: None });
    }
    Ok(within)
}
