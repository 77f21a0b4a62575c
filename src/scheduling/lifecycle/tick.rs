//! Time has passed: fires, retries, deadlines and ends of pauses that are due by now.

use std::collections::{BTreeMap, BTreeSet};

use super::super::agenda::Due;
use super::super::turn::Turn;
use super::misfire::{self, Unseen};
use super::{admit, empty, fire, pause};
use crate::limits;
use crate::model::id::TaskId;
use crate::model::instance::InstanceState;
use crate::model::time::Timestamp;

/// Handles what is due, one due time after the other. After many fires the rest is left for the
/// next turn, which is due at once.
pub(in super::super) fn all(turn: &mut Turn<'_>) {
    if !turn.state.opened {
        return;
    }
    let mut left = limits::FIRES_PER_TURN;
    while left > 0
        && let Some((at, due)) = turn.state.agenda.take_due(turn.now)
    {
        let mut fires = Vec::new();
        for entry in due {
            match entry {
                Due::Fire { task, trigger } => fires.push((task, trigger)),
                Due::Retry(id) => {
                    turn.transition(&id, InstanceState::Ready, None, |_| {});
                }
                Due::NotBefore(id) => {
                    turn.update(&id, "time has come", |i| {
                        let begins = i.not_before.take();
                        i.held_since = i.held_since.max(i.held_since.and(begins));
                    });
                    turn.admit_later(id);
                }
                Due::DependencyDeadline(id) => admit::deadline(turn, &id),
                Due::Expires(id) => admit::expire(turn, &id),
                Due::PauseEnds(target) => pause::ends(turn, &target),
                Due::Forget(key) => turn.drop_arrival(&key),
                Due::ForgetCycle(task, cycle) => empty::forget(turn, &task, &cycle),
                Due::ForgetAnswer(key) => turn.drop_submission(&key),
            }
        }
        let handled = fire_in_order(turn, at, fires, left);
        left = left.saturating_sub(handled);
        admit::all(turn);
    }
}

/// Fires due at one instant happen from upstream to downstream. Two triggers of one task at one
/// instant are one fire: that of the first key. Says how many were handled; of those that nobody
/// saw become due, `most`.
fn fire_in_order(
    turn: &mut Turn<'_>,
    at: Timestamp,
    fires: Vec<(TaskId, String)>,
    most: usize,
) -> usize {
    let graph = turn.state.registry.graph();
    let mut by_task: BTreeMap<(usize, TaskId), BTreeSet<String>> = BTreeMap::new();
    for (task, trigger) in fires {
        by_task.entry((graph.level(&task), task)).or_default().insert(trigger);
    }
    let (unseen_to, why) = turn.state.unseen;
    let unseen = if at <= unseen_to {
        Some(why)
    } else {
        (turn.now.since(at) > limits::FIRE_LATE).then_some(Unseen::Asleep)
    };
    let mut handled = 0;
    for ((_, task), triggers) in by_task {
        if let Some(why) = unseen {
            if handled < most {
                handled += misfire::of_task(turn, &task, why, most - handled);
            } else {
                turn.state.schedule(&task);
            }
            continue;
        }
        for trigger in &triggers {
            turn.state.next_fires.remove(&(task.clone(), trigger.clone()));
        }
        if let Some(first) = triggers.first() {
            fire::due(turn, &task, first, at);
        }
        fire::advance(turn, &task, &triggers, at);
        handled += 1;
    }
    handled
}
