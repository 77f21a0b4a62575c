//! The wall clock was set, or zones have other rules (design, 'Clock, disk, faults' T3, T4).
//!
//! Nominal times belong to the wall clock, waits to real time. So a step moves the deadlines of
//! waits along with it, and a nominal time is counted once however often the clock shows it: what
//! a clock that was ahead went past is taken back and becomes due in its own time, what it made is
//! not made again.

use std::time::Duration;

use super::super::nominal::{Nominal, Other, Own};
use super::super::turn::Turn;
use super::misfire::{self, Unseen};
use super::{boot, empty, report};
use crate::limits;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::jump::{Jumps, Skipped, Span};
use crate::model::record::{Arrival, Cursor, Fire, Record, Submission};
use crate::model::spec::{Trigger, TriggerKind};
use crate::model::time::Timestamp;

/// The wall clock was set; now is the time that it shows since.
pub(in super::super) fn stepped(turn: &mut Turn<'_>, by_ms: i64) {
    turn.record(Record::ClockStepped { by_ms });
    shift_waits(turn, by_ms);
    if !turn.state.opened {
        return;
    }
    if by_ms < 0 {
        return set_back(turn);
    }
    let by = Duration::from_millis(by_ms.unsigned_abs());
    let is_correction = by > limits::CLOCK_CORRECTION;
    misfire::all(turn, if is_correction { Unseen::Corrected } else { Unseen::Jumped });
}

/// Waits take as long as they would have: for the next attempt, for upstreams, in the queue, for
/// what is kept for a while to be forgotten.
fn shift_waits(turn: &mut Turn<'_>, by_ms: i64) {
    let shifted = |at: Timestamp| Timestamp::from_millis(at.as_millis().saturating_add(by_ms));
    // Files of a run that began by a clock that was ahead would seem older than it.
    let is_ahead = |i: &Instance| by_ms < 0 && i.state == InstanceState::Running;
    let waits = |i: &&Instance| {
        let is_due_some_time = i.next_retry_at.is_some() || i.dependency_deadline.is_some();
        is_due_some_time
            || i.paused.is_some()
            || i.is_waiting()
            || i.state == InstanceState::Ready
            || is_ahead(i)
    };
    let waiting: Vec<InstanceId> =
        turn.state.instances.open().filter(waits).map(|i| i.instance_id.clone()).collect();
    let now = turn.now;
    for id in waiting {
        turn.update(&id, "the clock was set", |i| {
            i.next_retry_at = i.next_retry_at.map(shifted);
            // Clocks that have not begun to run begin at `--at`, or now if that is past.
            let begins = i.not_before;
            let counted = |at: Timestamp| begins.map_or(shifted(at), |at0| at.plus(now.since(at0)));
            i.dependency_deadline = i.dependency_deadline.map(counted);
            i.expires_at = i.expires_at.map(counted);
            i.held_since = i.held_since.map(shifted);
            i.ready_at = i.ready_at.map(shifted);
            if is_ahead(i) {
                i.started_at = i.started_at.map(shifted);
            }
            if let Some(pause) = &mut i.paused {
                pause.since = shifted(pause.since);
            }
        });
    }
    let gone: Vec<Arrival> =
        turn.state.arrivals().filter(|a| a.gone_at.is_some()).cloned().collect();
    for arrival in gone {
        let gone_at = arrival.gone_at.map(shifted);
        turn.put_arrival(Arrival { gone_at, ..arrival });
    }
    let kept: Vec<Submission> = turn.state.submissions.values().cloned().collect();
    for submission in kept {
        turn.put_submission(Submission { at: shifted(submission.at), ..submission });
    }
    if let Some(stopping) = &mut turn.state.stopping {
        stopping.hears_until = stopping.hears_until.map(shifted);
    }
}

/// Waits that were begun by a clock that was ahead of this one: none lasts longer, from now on, than
/// it would have from its beginning.
pub(in super::super) fn bound_waits(turn: &mut Turn<'_>) {
    let now = turn.now;
    let waiting: Vec<Instance> = turn
        .state
        .instances
        .open()
        .filter(|i| i.next_retry_at.is_some() || i.dependency_deadline.is_some() || i.is_waiting())
        .cloned()
        .collect();
    for i in waiting {
        let Some(spec) = turn.state.spec_of(&i) else { continue };
        let retry = now.plus(report::longest_wait(&i, &spec));
        let begins = i.not_before.unwrap_or(now).max(now);
        let deadline = spec.dependency_timeout.map(|timeout| begins.plus(timeout));
        let expires = begins.plus(turn.state.retention(Some(&spec)));
        turn.update(&i.instance_id, "the clock was ahead", |i| {
            i.held_since = i.held_since.map(|at| at.min(now));
            i.expires_at = i.expires_at.map(|at| at.min(expires));
            i.next_retry_at = i.next_retry_at.map(|at| at.min(retry));
            i.dependency_deadline =
                i.dependency_deadline.map(|at| deadline.map_or(at, |most| at.min(most)));
        });
    }
}

/// Time triggers whose cursor lies ahead of the clock go on from now.
pub(super) fn set_back(turn: &mut Turn<'_>) {
    let now = turn.now;
    turn.state.unseen.0 = turn.state.unseen.0.min(now);
    let ahead: Vec<((TaskId, String), Timestamp)> = turn
        .state
        .cursors
        .iter()
        .filter(|((_, trigger), cursor)| **cursor > now && !boot::is_mark(trigger))
        .map(|(key, cursor)| (key.clone(), *cursor))
        .collect();
    for (key, cursor) in ahead {
        take_back(turn, &key, cursor);
        let (task_id, trigger) = key;
        let task = task_id.clone();
        turn.put_cursor(Cursor { task_id, trigger, handled_to: now });
        turn.state.schedule(&task);
    }
}

/// Amends the rows of what the clock went past and has yet to come to; the other times up to the
/// cursor are done.
fn take_back(turn: &mut Turn<'_>, key: &(TaskId, String), cursor: Timestamp) {
    let now = turn.now;
    let Jumps { task_id, trigger, since, skipped, done } = turn.state.jumps_of(key);
    let mut again = vec![Span { after: now.max(since), to: cursor }];
    again.retain(|span| span.after < span.to);
    let mut kept = Vec::new();
    for Skipped { seq, fire, but } in skipped {
        if fire.to <= now {
            kept.push(Skipped { seq, fire, but });
            continue;
        }
        let mut to_come = vec![Span { after: fire.from.just_before().max(now), to: fire.to }];
        for other in &but {
            to_come = to_come.iter().flat_map(|span| span.without(other)).collect();
        }
        for part in to_come {
            again = again.iter().flat_map(|span| span.without(&part)).collect();
        }
        empty::take_back(turn, &fire);
        let fire = up_to_now(turn, key, &but, fire);
        turn.record(Record::FireAmended { of: seq, fire: fire.clone() });
        if fire.count > 0 {
            kept.push(Skipped { seq, fire, but });
        }
    }
    let mut jumps = Jumps { task_id, trigger, since: since.min(now), skipped: kept, done };
    again.into_iter().for_each(|span| jumps.add_done(span));
    turn.put_jumps(jumps);
}

/// What a row says of times that have come.
fn up_to_now(turn: &Turn<'_>, key: &(TaskId, String), but: &[Span], fire: Fire) -> Fire {
    let span = Span { after: fire.from.just_before(), to: turn.now };
    let run = timed_of(turn, &key.0).and_then(|mut triggers| {
        let own = triggers.iter().position(|(t, _)| *t == key.1)?;
        let (_, times) = triggers.swap_remove(own);
        let others: Vec<Other> = triggers
            .into_iter()
            .filter(|(t, _)| *t < key.1)
            .map(|(_, times)| Other { times, after: span.after })
            .collect();
        Own { times: &times, others: &others, done: but }.run(span)
    });
    match run {
        Some(run) => Fire { to: run.last, count: run.count.min(fire.count), ..fire },
        None => Fire { count: 0, ..fire },
    }
}

fn timed_of(turn: &Turn<'_>, task: &TaskId) -> Option<Vec<(String, Nominal)>> {
    let spec = turn.state.registry.spec(task)?;
    let timed = |t: &Trigger| Some((t.key(), turn.state.nominal(spec, t)?));
    Some(spec.triggers.iter().filter_map(timed).collect())
}

/// Fires of cron triggers are looked for anew. Times that have gone by only under the new rules
/// start nothing; what was due under the old ones still is.
pub(in super::super) fn zones_reread(turn: &mut Turn<'_>) {
    let now = turn.now;
    turn.state.zones.reread();
    let on_cron = |t: &&Trigger| matches!(t.when, TriggerKind::Cron(_));
    let specs =
        turn.state.registry.specs().filter(|spec| spec.triggers.iter().any(|t| on_cron(&t)));
    let specs: Vec<_> = specs.cloned().collect();
    for spec in specs {
        for trigger in spec.triggers.iter().filter(on_cron) {
            let key = (spec.task_id.clone(), trigger.key());
            let Some(cursor) = turn.state.cursors.get(&key).copied() else { continue };
            let was_due = turn.state.next_fires.get(&key).is_some_and(|at| *at <= now);
            let is_past = turn.state.next_after(&spec, trigger, cursor).is_some_and(|at| at <= now);
            if is_past && !was_due && turn.state.opened {
                let (task_id, trigger) = key;
                turn.put_cursor(Cursor { task_id, trigger, handled_to: now });
            }
        }
        turn.state.schedule(&spec.task_id);
    }
}
