//! Fires that made no instance end the open edges to their cycle (docs/waves.md, rule 7).

use super::super::edges;
use super::super::nominal::{Nominal, Run};
use super::super::turn::Turn;
use super::fire;
use crate::limits;
use crate::model::cycle::{Cycle, CycleRange, CycleUnit};
use crate::model::empty_cycle::EmptyCycle;
use crate::model::id::TaskId;
use crate::model::jump::Span;
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;

/// Whether a fire of this outcome leaves its cycle without an instance.
const fn makes_nothing(outcome: FireOutcome) -> bool {
    match outcome {
        FireOutcome::SkippedOverlap
        | FireOutcome::Missed
        | FireOutcome::Coalesced
        | FireOutcome::Paused
        | FireOutcome::Disabled
        | FireOutcome::Unresolved
        | FireOutcome::RejectedParams => true,
        FireOutcome::Instance | FireOutcome::Duplicate | FireOutcome::RolledOutElsewhere => false,
    }
}

/// One fire had its outcome.
pub(in super::super) fn one(
    turn: &mut Turn<'_>,
    (task, trigger, at): (&TaskId, &str, Timestamp),
    outcome: FireOutcome,
    reason: Option<&str>,
) {
    let Some(spec) = turn.state.registry.spec(task).filter(|_| makes_nothing(outcome)) else {
        return;
    };
    let cycle = fire::cycle_of(turn.state, spec, at, trigger);
    note(turn, task, cycle, (at, at), (outcome, reason));
}

/// A stretch of fires had one outcome: each of its newest cycles is noted, found from the end on, so
/// that millions of fires cost no more than the cycles that are kept.
pub(super) fn run(
    turn: &mut Turn<'_>,
    (spec, trigger, times): (&TaskSpec, &str, &Nominal),
    run: Run,
    outcome: FireOutcome,
    reason: Option<&str>,
) {
    // Of a task that is gone the unit is not known, and edges on it are blocked in any case.
    if !makes_nothing(outcome) || turn.state.registry.spec(&spec.task_id).is_none() {
        return;
    }
    let after = run.first.just_before();
    let mut to = run.last;
    for _ in 0..limits::EMPTY_CYCLES_MAX {
        let Some(last) = times.last(Span { after, to }) else { return };
        let cycle = fire::cycle_of(turn.state, spec, last, trigger);
        let Some(begins) = begins(turn, spec, &cycle) else { return };
        let before = begins.just_before().max(after);
        let first = times.next(before).map_or(last, |first| first.min(last));
        if !note(turn, &spec.task_id, cycle, (first, last), (outcome, reason)) {
            return;
        }
        to = before.min(last.just_before());
    }
}

/// When the first time of a cycle is; `None`: it is a run, or lies outside the calendar.
fn begins(turn: &Turn<'_>, spec: &TaskSpec, cycle: &Cycle) -> Option<Timestamp> {
    if cycle.unit() == CycleUnit::Run {
        return None;
    }
    let zone = turn.state.zone(spec.timezone.as_deref());
    let range = CycleRange::parse(cycle.label(), cycle.label(), cycle.unit(), &zone).ok()?;
    Some(range.scheduled(turn.state.registry.rule(&spec.task_id).offset).0)
}

/// Notes fires of a cycle, unless it has an instance. Says whether earlier ones may still matter.
fn note(
    turn: &mut Turn<'_>,
    task: &TaskId,
    cycle: Cycle,
    (first, last): (Timestamp, Timestamp),
    (outcome, reason): (FireOutcome, Option<&str>),
) -> bool {
    // Each run is a cycle of its own, which nobody else waits for.
    if cycle.unit() == CycleUnit::Run || turn.state.forget_cycle_at(last) <= turn.now {
        return false;
    }
    let versions = turn.state.registry.rollouts().of(task);
    if turn.state.instances.newest_in(versions, &cycle).is_some() {
        return true;
    }
    let reason = reason.map(str::to_owned);
    let task_id = task.clone();
    let mut empty = EmptyCycle { task_id, cycle, first, last, outcome, reason };
    if let Some(old) = turn.state.empty_cycles.get(task, &empty.cycle) {
        empty.first = empty.first.min(old.first);
        if old.last > last {
            empty = EmptyCycle { first: empty.first, ..old.clone() };
        }
    }
    let cycle = empty.cycle.clone();
    turn.put_empty_cycle(empty);
    wake(turn, task, &cycle);
    while let Some(oldest) =
        turn.state.empty_cycles.oldest_beyond(task, limits::EMPTY_CYCLES_MAX).cloned()
    {
        forget(turn, task, &oldest);
    }
    true
}

/// An instance of the cycle was made: that is what counts from now on.
pub(super) fn filled(turn: &mut Turn<'_>, task: &TaskId, cycle: &Cycle) {
    let versions = turn.state.registry.rollouts().of(task).to_vec();
    for version in &versions {
        // It also ends what cycles of another unit say that match it.
        let was_empty = turn.state.empty_cycles.of(version).next().is_some();
        turn.drop_empty_cycle(version, cycle);
        if was_empty {
            wake(turn, version, cycle);
        }
    }
}

/// A cycle is no longer known to be empty.
pub(super) fn forget(turn: &mut Turn<'_>, task: &TaskId, cycle: &Cycle) {
    if turn.drop_empty_cycle(task, cycle) {
        wake(turn, task, cycle);
    }
}

/// The clock had been ahead: what a ledger row said of times that have yet to come is no longer so.
pub(super) fn take_back(turn: &mut Turn<'_>, row: &Fire) {
    let now = turn.now;
    let to_come = |empty: &&EmptyCycle| {
        empty.first > now
            && (row.from..=row.to).contains(&empty.first)
            && empty.outcome == row.outcome
    };
    let of_task = turn.state.empty_cycles.of(&row.task_id);
    let cycles: Vec<Cycle> = of_task.filter(to_come).map(|empty| empty.cycle.clone()).collect();
    for cycle in cycles {
        forget(turn, &row.task_id, &cycle);
    }
}

/// Open edges that look for the cycle are looked at again.
fn wake(turn: &mut Turn<'_>, task: &TaskId, cycle: &Cycle) {
    for version in turn.state.registry.rollouts().of(task).to_vec() {
        for waiting in edges::open_edges_for(turn.state, &version, cycle) {
            turn.admit_later(waiting);
        }
    }
}
