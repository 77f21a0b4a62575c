//! Fires that nobody saw become due: no daemon ran, the clock was set past them, the machine slept
//! (requirement E2; contract 'misfire', 'catchUpMs'; design, 'Clock, disk, faults' T2, T3).
//!
//! What it takes does not grow with how many there are, but for those that RUN_ALL wants and those
//! that triggers of one task share. Of these a part has its turn, and then the other events have.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::nominal::{Nominal, Other, Own, Run};
use super::super::turn::Turn;
use super::{empty, fire};
use crate::limits;
use crate::model::id::TaskId;
use crate::model::jump::{Skipped, Span};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{FirePolicy, Misfire, TaskSpec, Trigger};
use crate::model::time::Timestamp;

/// Why nobody saw a fire become due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Unseen {
    /// No daemon ran.
    Down,
    /// The clock was set forward past it.
    Jumped,
    /// The clock was set forward past it by so much that it was wrong before.
    Corrected,
    /// The daemon looked too late.
    Asleep,
    /// Its trigger changed, or went, before it had its turn.
    Unheld,
}

impl Unseen {
    const fn words(self) -> &'static str {
        match self {
            Self::Down => "due while no daemon ran",
            Self::Jumped => "the clock was set past it",
            Self::Corrected => "the clock was set past it by more than three hours",
            Self::Asleep => "due while the machine slept or the daemon was stopped",
            Self::Unheld => "its trigger changed or went before it had its turn",
        }
    }
}

/// Brings the time triggers up to now, in topological order of the tasks; what is too much for one
/// turn stays on the agenda.
pub(super) fn all(turn: &mut Turn<'_>, why: Unseen) {
    turn.state.unseen = (turn.now, why);
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
    let mut left = limits::FIRES_PER_TURN;
    for (_, task) in tasks {
        if left == 0 {
            return;
        }
        left = left.saturating_sub(of_task(turn, &task, why, left));
    }
}

/// Brings a task's time triggers up to now, or so far that others may have their turn: `most` fires
/// are made one by one, at least one. Says what it took, in such fires.
pub(super) fn of_task(turn: &mut Turn<'_>, task: &TaskId, why: Unseen, most: usize) -> usize {
    if turn.state.unseen.0 < turn.now {
        turn.state.unseen = (turn.now, why);
    }
    let Some(spec) = fire::listening(turn, task) else { return 1 };
    let timed = timed(turn, &spec);
    let (to, looks) = reach(turn.now, &timed, why, most);
    let mut catch_up = CatchUp { spec: &spec, why, others: Vec::new(), to, handled: 1 };
    for one in &timed {
        catch_up.trigger(turn, one);
    }
    let looks = looks / (limits::SHARED_LOOKS_MAX / limits::FIRES_PER_TURN as u64);
    let handled = catch_up.handled.saturating_add(usize::try_from(looks).unwrap_or(usize::MAX));
    turn.state.schedule(task);
    handled
}

/// A time trigger with its times, its policy and its cursor.
struct Timed<'a> {
    trigger: &'a Trigger,
    times: Nominal,
    policy: FirePolicy,
    after: Timestamp,
}

/// A task's time triggers in the order of their keys, as fires of one instant are counted while the
/// daemon runs.
fn timed<'a>(turn: &Turn<'_>, spec: &'a TaskSpec) -> Vec<Timed<'a>> {
    let one = |trigger: &'a Trigger| {
        let (_, policy) = fire::timed(trigger)?;
        let times = turn.state.nominal(spec, trigger)?;
        let after = turn.state.cursors.get(&(spec.task_id.clone(), trigger.key())).copied()?;
        Some(Timed { trigger, times, policy, after })
    };
    let mut timed: Vec<Timed<'_>> = spec.triggers.iter().filter_map(one).collect();
    timed.sort_by_key(|one| one.trigger.key());
    timed
}

/// Up to when a task catches up in one go, all its triggers together, or it would be forgotten
/// which times they share; and how many of those are looked at.
fn reach(now: Timestamp, timed: &[Timed<'_>], why: Unseen, most: usize) -> (Timestamp, u64) {
    let wants_all = |one: &&Timed<'_>| one.policy.misfire == Misfire::RunAll;
    let all: Vec<(&Nominal, Timestamp)> = timed
        .iter()
        .filter(|one| wants_all(one) && why != Unseen::Corrected)
        .map(|one| (&one.times, one.after.max(now.minus(one.policy.catch_up).just_before())))
        .collect();
    let mut to = now;
    let mut at = Timestamp::from_millis(i64::MIN);
    for made in 1..=most {
        let next = all.iter().filter_map(|(times, after)| times.next(at.max(*after))).min();
        match next.filter(|next| *next <= now) {
            None => break,
            Some(next) => at = next,
        }
        if made == most {
            to = at;
        }
    }
    let Some(from) = timed.iter().map(|one| one.after).min() else { return (to, 0) };
    loop {
        let looks = shared_looks(timed, to);
        if looks <= limits::SHARED_LOOKS_MAX {
            return (to, looks);
        }
        // Half of the way.
        let way = to.since(from) / 2;
        to = from.plus(way);
    }
}

/// How many times are looked at to tell which of them triggers share: of two, the fewer.
fn shared_looks(timed: &[Timed<'_>], to: Timestamp) -> u64 {
    let mut before = 0_u64;
    let mut looks = 0_u64;
    for one in timed {
        let own = one.times.count(Span { after: one.after, to });
        looks = looks.saturating_add(own.min(before));
        before = before.saturating_add(own);
    }
    looks
}

/// One task's catching up.
struct CatchUp<'a> {
    spec: &'a Arc<TaskSpec>,
    why: Unseen,
    /// The task's triggers that have had their turn, with their cursors before it.
    others: Vec<Other>,
    /// Up to when it goes.
    to: Timestamp,
    /// Fires that were made one by one.
    handled: usize,
}

impl CatchUp<'_> {
    fn trigger(&mut self, turn: &mut Turn<'_>, timed: &Timed<'_>) {
        let Timed { trigger, times, after, .. } = timed;
        let done = turn.state.jumps_of(&(self.spec.task_id.clone(), trigger.key())).done;
        let others = self.others.clone();
        self.others.push(Other { times: times.clone(), after: *after });
        if times.next(*after).is_none_or(|at| at > turn.now) {
            return;
        }
        let own = Own { times, others: &others, done: &done };
        let from = self.held(turn, trigger, &own, *after);
        self.missed(turn, timed, &own, from);
        let trigger = BTreeSet::from([trigger.key()]);
        // One of several may be further on than this part goes.
        fire::advance(turn, &self.spec.task_id, &trigger, self.to.max(*after));
    }

    /// Fires of a task that takes none: all that is due, or up to the end of its pause.
    fn held(
        &self,
        turn: &mut Turn<'_>,
        trigger: &Trigger,
        own: &Own<'_>,
        after: Timestamp,
    ) -> Timestamp {
        let Some(first) = own.next(Span { after, to: self.to }) else { return after };
        let Some((outcome, reason)) = fire::not_now(turn, self.spec, first) else { return after };
        let mut to = self.to;
        if outcome == FireOutcome::Paused {
            let paused =
                turn.state.registry.row(&self.spec.task_id).and_then(|r| r.paused.as_ref());
            let until = paused.and_then(|p| p.until).map(Timestamp::just_before);
            to = until.map_or(to, |until| to.min(until));
        }
        if let Some(run) = own.run(Span { after, to }) {
            self.row(turn, trigger, own, (run, outcome, reason));
        }
        to
    }

    /// Fires that the policy decides on.
    fn missed(
        &mut self,
        turn: &mut Turn<'_>,
        Timed { trigger, times, policy, .. }: &Timed<'_>,
        own: &Own<'_>,
        after: Timestamp,
    ) {
        let is_lost = policy.misfire == Misfire::Skip || self.why == Unseen::Corrected;
        let window = turn.now.minus(policy.catch_up).just_before();
        let window = if is_lost { self.to } else { window.min(self.to) }.max(after);
        let why = || Some(self.why.words().to_owned());
        if let Some(run) = own.run(Span { after, to: window }) {
            self.row(turn, trigger, own, (run, FireOutcome::Missed, why()));
        }
        let within = Span { after: window, to: self.to };
        match policy.misfire {
            Misfire::Skip => {}
            Misfire::RunOnce => {
                // One that is newer still is for a later turn.
                let newer = times.next(self.to).is_some_and(|at| at <= turn.now);
                let newest = own.run(within).map(|run| run.last).filter(|_| !newer);
                let folded = newest.map_or(within, |at| Span { to: at.just_before(), ..within });
                if let Some(run) = own.run(folded) {
                    self.row(turn, trigger, own, (run, FireOutcome::Coalesced, why()));
                }
                if let Some(at) = newest {
                    fire::one(turn, self.spec, trigger, at);
                }
            }
            Misfire::RunAll => self.run_all(turn, trigger, own, within),
        }
    }

    /// All of them are wanted: overlap is a matter of fires that come in their own time.
    fn run_all(&mut self, turn: &mut Turn<'_>, trigger: &Trigger, own: &Own<'_>, within: Span) {
        let mut after = within.after;
        while let Some(at) = own.next(Span { after, ..within }) {
            match fire::not_now(turn, self.spec, at) {
                Some((outcome, reason)) => {
                    let key = trigger.key();
                    turn.fire_one((&self.spec.task_id, &key, at), outcome, reason, None);
                }
                None => {
                    fire::regardless(turn, self.spec, trigger, at);
                }
            }
            self.handled += 1;
            after = at;
        }
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
        let words = fire.reason.as_deref();
        empty::run(turn, (self.spec, &fire.trigger, own.times), run, outcome, words);
        let within = |span: &&Span| span.after < run.last && run.first <= span.to;
        let but = own.done.iter().filter(within).copied().collect();
        let seq = turn.fire(fire.clone());
        let mut jumps = turn.state.jumps_of(&(fire.task_id.clone(), fire.trigger.clone()));
        jumps.skip(Skipped { seq, fire, but }, turn.now);
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
        let done = turn.state.jumps_of(&key).done;
        let own = Own { times: &times, others: &others, done: &done };
        if let Some(run) = own.run(Span { after, to: turn.now }) {
            let (words, key) = (Unseen::Unheld.words(), trigger.key());
            turn.fire(row(before, trigger, run, FireOutcome::Missed, Some(words.to_owned())));
            empty::run(turn, (before, &key, &times), run, FireOutcome::Missed, Some(words));
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
