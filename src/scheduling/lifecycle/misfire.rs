//! Fires that nobody saw become due: no daemon ran, the clock was set past them, the machine slept
//! (requirement E2; contract 'misfire', 'catchUpMs'; design, 'Clock, disk, faults' T2, T3).
//!
//! What it takes does not grow with how many there are, but for those that RUN_ALL wants.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::super::nominal::{Nominal, Other, Own, Run};
use super::super::turn::Turn;
use super::fire;
use crate::limits;
use crate::model::id::TaskId;
use crate::model::jump::{Skipped, Span};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{FirePolicy, Misfire, TaskSpec, Trigger};
use crate::model::time::Timestamp;

const MS: Duration = Duration::from_millis(1);

/// Why nobody saw a fire become due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unseen {
    /// No daemon ran.
    Down,
    /// The clock was set forward past it.
    Jumped,
    /// The clock was set forward past it by so much that it was wrong before.
    Corrected,
    /// The daemon looked too late.
    Asleep,
}

impl Unseen {
    const fn words(self) -> &'static str {
        match self {
            Self::Down => "due while no daemon ran",
            Self::Jumped => "the clock was set past it",
            Self::Corrected => "the clock was set past it by more than three hours",
            Self::Asleep => "due while the machine slept or the daemon was stopped",
        }
    }
}

/// Brings every time trigger up to now, in topological order of the tasks.
pub(super) fn all(turn: &mut Turn<'_>, why: Unseen) {
    let graph = turn.state.registry.graph();
    let mut tasks: Vec<(usize, TaskId)> = Vec::new();
    let mut last = None;
    for ((task, _), at) in &turn.state.next_fires {
        if *at <= turn.now && last != Some(task) {
            tasks.push((graph.level(task), task.clone()));
            last = Some(task);
        }
    }
    tasks.sort();
    for (_, task) in tasks {
        of_task(turn, &task, why);
    }
}

/// Brings a task's time triggers up to now, or so far that others may have their turn. Says how
/// many fires were handled one by one, at least one.
pub(super) fn of_task(turn: &mut Turn<'_>, task: &TaskId, why: Unseen) -> usize {
    turn.state.unseen_to = turn.state.unseen_to.max(turn.now);
    let Some(spec) = fire::listening(turn, task) else { return 1 };
    // In the order of the keys, as fires of one instant are counted while the daemon runs.
    let mut triggers: Vec<&Trigger> = spec.triggers.iter().collect();
    triggers.sort_by_key(|trigger| trigger.key());
    let timed = triggers.iter().filter(|t| fire::timed(t).is_some()).count();
    let mut catch_up = CatchUp {
        spec: &spec,
        why,
        others: Vec::new(),
        // Triggers of one task go on together, or it would be forgotten which times they share.
        most: if timed == 1 { limits::FIRES_PER_TURN } else { usize::MAX },
        handled: 1,
    };
    for trigger in triggers {
        if let Some((_, policy)) = fire::timed(trigger) {
            catch_up.trigger(turn, trigger, policy);
        }
    }
    let handled = catch_up.handled;
    turn.state.schedule(task);
    handled
}

/// One task's catching up.
struct CatchUp<'a> {
    spec: &'a Arc<TaskSpec>,
    why: Unseen,
    /// The task's triggers that have had their turn, with their cursors before it.
    others: Vec<Other>,
    /// Fires that are made one by one at most.
    most: usize,
    handled: usize,
}

impl CatchUp<'_> {
    fn trigger(&mut self, turn: &mut Turn<'_>, trigger: &Trigger, policy: FirePolicy) {
        let key = (self.spec.task_id.clone(), trigger.key());
        let Some(times) = turn.state.nominal(self.spec, trigger) else { return };
        let Some(after) = turn.state.cursors.get(&key).copied() else { return };
        let done = turn.state.jumps.get(&key).map(|jumps| jumps.done.clone()).unwrap_or_default();
        let others = self.others.clone();
        self.others.push(Other { times: times.clone(), after });
        if times.next(after).is_none_or(|at| at > turn.now) {
            return;
        }
        let own = Own { times: &times, others: &others, done: &done };
        let after = self.held(turn, trigger, &own, after);
        let handled_to = self.missed(turn, (trigger, policy), &own, after);
        let trigger = BTreeSet::from([key.1]);
        fire::advance(turn, &self.spec.task_id, &trigger, handled_to);
    }

    /// Fires of a task that takes none: all that is due, or up to the end of its pause.
    fn held(
        &self,
        turn: &mut Turn<'_>,
        trigger: &Trigger,
        own: &Own<'_>,
        after: Timestamp,
    ) -> Timestamp {
        let Some(first) = own.next(Span { after, to: turn.now }) else { return after };
        let Some((outcome, reason)) = fire::not_now(turn, self.spec, first) else { return after };
        let mut to = turn.now;
        if outcome == FireOutcome::Paused {
            let paused =
                turn.state.registry.row(&self.spec.task_id).and_then(|r| r.paused.as_ref());
            to = paused.and_then(|p| p.until).map_or(to, |until| to.min(until.minus(MS)));
        }
        if let Some(run) = own.run(Span { after, to }) {
            self.row(turn, trigger, own, (run, outcome, reason));
        }
        to
    }

    /// Fires that the policy decides on; gives up to when all of them have had their row.
    fn missed(
        &mut self,
        turn: &mut Turn<'_>,
        (trigger, policy): (&Trigger, FirePolicy),
        own: &Own<'_>,
        after: Timestamp,
    ) -> Timestamp {
        let now = turn.now;
        let is_lost = policy.misfire == Misfire::Skip || self.why == Unseen::Corrected;
        let window = if is_lost { now } else { now.minus(policy.catch_up).minus(MS) };
        let window = window.max(after);
        let why = || Some(self.why.words().to_owned());
        if let Some(run) = own.run(Span { after, to: window }) {
            self.row(turn, trigger, own, (run, FireOutcome::Missed, why()));
        }
        let within = Span { after: window, to: now };
        match policy.misfire {
            Misfire::Skip => now,
            Misfire::RunOnce => {
                if let Some(Run { last, .. }) = own.run(within) {
                    if let Some(run) = own.run(Span { to: last.minus(MS), ..within }) {
                        self.row(turn, trigger, own, (run, FireOutcome::Coalesced, why()));
                    }
                    fire::one(turn, self.spec, trigger, last);
                }
                now
            }
            Misfire::RunAll => self.run_all(turn, trigger, own, within),
        }
    }

    /// All of them are wanted: overlap is a matter of fires that come in their own time.
    fn run_all(
        &mut self,
        turn: &mut Turn<'_>,
        trigger: &Trigger,
        own: &Own<'_>,
        within: Span,
    ) -> Timestamp {
        let mut after = within.after;
        while let Some(at) = own.next(Span { after, ..within }) {
            if self.handled > self.most {
                return after;
            }
            match fire::not_now(turn, self.spec, at) {
                Some((outcome, reason)) => {
                    let fired = (&self.spec.task_id, trigger.key(), at);
                    turn.fire_one((fired.0, &fired.1, fired.2), outcome, reason, None);
                }
                None => {
                    fire::regardless(turn, self.spec, trigger, at);
                }
            }
            self.handled += 1;
            after = at;
        }
        within.to
    }

    /// Writes a row that is taken back as far as the clock turns out to have been ahead.
    fn row(
        &self,
        turn: &mut Turn<'_>,
        trigger: &Trigger,
        own: &Own<'_>,
        (run, outcome, reason): (Run, FireOutcome, Option<String>),
    ) {
        let fire = row(self.spec, trigger, run, outcome, reason);
        let within = |span: &&Span| span.after < run.last && run.first <= span.to;
        let but = own.done.iter().filter(within).copied().collect();
        let seq = turn.fire(fire.clone());
        let mut jumps = turn.state.jumps_of(&(fire.task_id.clone(), fire.trigger.clone()));
        jumps.skip(Skipped { seq, fire, but });
        turn.put_jumps(jumps);
    }
}

/// Triggers of a definition that is no longer in force, but for those that `stay`: fires that were
/// due until now and had no row yet are missed.
pub(super) fn unheld(turn: &mut Turn<'_>, before: &Arc<TaskSpec>, stay: &BTreeSet<String>) {
    type Timed<'a> = (&'a Trigger, Nominal, Timestamp);
    let timed = before.triggers.iter().filter_map(|trigger| {
        let key = (before.task_id.clone(), trigger.key());
        let cursor = turn.state.cursors.get(&key).copied()?;
        Some((trigger, turn.state.nominal(before, trigger)?, cursor))
    });
    let (staying, gone): (Vec<Timed<'_>>, Vec<Timed<'_>>) =
        timed.partition(|(trigger, ..)| stay.contains(&trigger.key()));
    let mut others: Vec<Other> =
        staying.into_iter().map(|(_, times, after)| Other { times, after }).collect();
    for (trigger, times, after) in gone {
        let key = (before.task_id.clone(), trigger.key());
        let done = turn.state.jumps.get(&key).map(|jumps| jumps.done.clone()).unwrap_or_default();
        let own = Own { times: &times, others: &others, done: &done };
        if let Some(run) = own.run(Span { after, to: turn.now }) {
            let reason = Some(Unseen::Down.words().to_owned());
            turn.fire(row(before, trigger, run, FireOutcome::Missed, reason));
        }
        others.push(Other { times, after });
    }
}

fn row(
    spec: &TaskSpec,
    trigger: &Trigger,
    run: Run,
    outcome: FireOutcome,
    reason: Option<String>,
) -> Fire {
    Fire {
        task_id: spec.task_id.clone(),
        trigger: trigger.key(),
        from: run.first,
        to: run.last,
        count: run.count,
        outcome,
        reason,
        instance_id: None,
    }
}
