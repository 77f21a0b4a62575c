//! Fires that were due while no daemon ran (requirement E2; contract 'misfire', 'catchUpMs').

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::turn::Turn;
use super::fire;
use crate::model::id::TaskId;
use crate::model::instance::Cause;
use crate::model::record::{Cursor, Fire, FireOutcome};
use crate::model::spec::{FirePolicy, Misfire, TaskSpec, Trigger, TriggerKind};
use crate::model::time::Timestamp;

const MS: std::time::Duration = std::time::Duration::from_millis(1);

/// A run of nominal fires that share an outcome.
#[derive(Default)]
struct Run {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    count: u64,
}

impl Run {
    fn push(&mut self, at: Timestamp) {
        self.first = self.first.or(Some(at));
        self.last = Some(at);
        self.count += 1;
    }
}

/// Brings every time trigger up to now, in topological order of the tasks.
pub(in super::super) fn all(turn: &mut Turn<'_>) {
    let graph = turn.state.registry.graph();
    let mut tasks: Vec<(usize, TaskId)> =
        turn.state.registry.specs().map(|s| (graph.level(&s.task_id), s.task_id.clone())).collect();
    tasks.sort();
    for (_, task) in tasks {
        let Some(spec) = fire::listening(turn, &task) else { continue };
        let mut earlier = Vec::new();
        // In the order of the keys, as fires of one instant are counted while the daemon runs.
        let mut triggers: Vec<&Trigger> = spec.triggers.iter().collect();
        triggers.sort_by_key(|trigger| trigger.key());
        for trigger in triggers {
            if let Some((_, policy)) = fire::timed(trigger) {
                missed(turn, &spec, trigger, policy, &mut earlier);
            } else if trigger.when == TriggerKind::Boot {
                boot(turn, &spec, trigger);
            }
        }
    }
}

/// `earlier`: the task's triggers that had their turn, with their cursors before it. Two triggers
/// of one task at one instant are one fire.
fn missed<'a>(
    turn: &mut Turn<'_>,
    spec: &'a Arc<TaskSpec>,
    trigger: &'a Trigger,
    policy: FirePolicy,
    earlier: &mut Vec<(&'a Trigger, Timestamp)>,
) {
    let key = trigger.key();
    let Some(cursor) = turn.state.cursors.get(&(spec.task_id.clone(), key.clone())).copied() else {
        return;
    };
    let window = turn.now.minus(policy.catch_up);
    let (mut old, mut folded, mut run) = (Run::default(), Run::default(), Vec::new());
    let newest = due(turn, spec, (trigger, cursor), earlier, |at| {
        if at < window || policy.misfire == Misfire::Skip {
            old.push(at);
        } else {
            if policy.misfire == Misfire::RunOnce
                && let Some(earlier) = run.pop()
            {
                folded.push(earlier);
            }
            run.push(at);
        }
    });
    earlier.push((trigger, cursor));
    if newest == cursor {
        return;
    }
    row(turn, spec, &key, &old, FireOutcome::Missed);
    row(turn, spec, &key, &folded, FireOutcome::Coalesced);
    for at in run {
        match fire::not_now(turn, spec) {
            Some((outcome, reason)) => {
                turn.fire_one((&spec.task_id, &key, at), outcome, reason, None);
            }
            // All of them are wanted: overlap is a matter of fires that come in their own time.
            None if policy.misfire == Misfire::RunAll => {
                fire::regardless(turn, spec, trigger, at);
            }
            None => fire::one(turn, spec, trigger, at),
        }
    }
    fire::advance(turn, &spec.task_id, &BTreeSet::from([key]), newest);
}

/// Takes a trigger's nominal times after its cursor up to now that no other trigger counts, one by
/// one, and gives the last of all of them: there may be millions.
fn due(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    (trigger, cursor): (&Trigger, Timestamp),
    others: &[(&Trigger, Timestamp)],
    mut take: impl FnMut(Timestamp),
) -> Timestamp {
    let mut newest = cursor;
    while let Some(at) = turn.state.next_after(spec, trigger, newest).filter(|at| *at <= turn.now) {
        newest = at;
        let is_counted = |(t, from): &(&Trigger, Timestamp)| {
            *from < at && turn.state.next_after(spec, t, at.minus(MS)) == Some(at)
        };
        if !others.iter().any(is_counted) {
            take(at);
        }
    }
    newest
}

/// Triggers of a definition that is no longer in force, but for those that `stay`: fires that were
/// due until now and had no row yet are missed.
pub(super) fn unheld(turn: &mut Turn<'_>, before: &Arc<TaskSpec>, stay: &BTreeSet<String>) {
    let cursor = |turn: &Turn<'_>, t: &Trigger| {
        turn.state.cursors.get(&(before.task_id.clone(), t.key())).copied()
    };
    let is_timed = |t: &&Trigger| matches!(t.when, TriggerKind::Cron(_) | TriggerKind::Every(_));
    let (staying, gone): (Vec<&Trigger>, Vec<&Trigger>) =
        before.triggers.iter().filter(is_timed).partition(|t| stay.contains(&t.key()));
    let mut counted: Vec<(&Trigger, Timestamp)> =
        staying.into_iter().filter_map(|t| Some((t, cursor(turn, t)?))).collect();
    for trigger in gone {
        let Some(from) = cursor(turn, trigger) else { continue };
        let mut missed = Run::default();
        due(turn, before, (trigger, from), &counted, |at| missed.push(at));
        counted.push((trigger, from));
        row(turn, before, &trigger.key(), &missed, FireOutcome::Missed);
    }
}

fn row(turn: &mut Turn<'_>, spec: &TaskSpec, key: &str, run: &Run, outcome: FireOutcome) {
    if let (Some(from), Some(to)) = (run.first, run.last) {
        turn.fire(Fire {
            task_id: spec.task_id.clone(),
            trigger: key.to_owned(),
            from,
            to,
            count: run.count,
            outcome,
            reason: Some("due while no daemon ran".to_owned()),
            instance_id: None,
        });
    }
}

/// Once per boot of the machine, not per start of the daemon: the cursor carries the boot's id.
fn boot(turn: &mut Turn<'_>, spec: &Arc<TaskSpec>, trigger: &Trigger) {
    let identity = format!("boot:{}", turn.state.process.boot_id);
    if turn.state.cursors.contains_key(&(spec.task_id.clone(), identity.clone())) {
        return;
    }
    let at = turn.now;
    match fire::not_now(turn, spec) {
        Some((outcome, reason)) => {
            turn.fire_one((&spec.task_id, &trigger.key(), at), outcome, reason, None);
        }
        None => {
            let what = fire::Happening { trigger, cause: Cause::Boot, at, identity: &identity };
            fire::make(turn, spec, what);
        }
    }
    note_boot(turn, &spec.task_id);
}

/// Remembers that a task has had this boot's fire, and forgets earlier boots.
pub(super) fn note_boot(turn: &mut Turn<'_>, task: &TaskId) {
    let identity = format!("boot:{}", turn.state.process.boot_id);
    let earlier: Vec<(TaskId, String)> = turn
        .state
        .cursors
        .range((task.clone(), "boot:".to_owned())..(task.clone(), "boot;".to_owned()))
        .map(|(key, _)| key.clone())
        .filter(|(_, trigger)| *trigger != identity)
        .collect();
    for key in earlier {
        turn.drop_cursor(&key);
    }
    let handled_to = turn.now;
    turn.put_cursor(Cursor { task_id: task.clone(), trigger: identity, handled_to });
}
