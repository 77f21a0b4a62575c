//! `onUpstream: LATEST`: of the instances that waves make of a task, only the newest need start
//! (docs/waves.md, rule 12).

use super::super::turn::Turn;
use super::cancel;
use crate::model::id::InstanceId;
use crate::model::instance::{Cause, Instance, InstanceState, Stopping};
use crate::model::spec::{OnUpstream, TaskSpec};
use crate::model::time::Timestamp;

/// A wave of this scheduled time has made this instance of a task, or taken it up: it replaces older
/// ones that waves made, are READY and were never started.
pub(super) fn by_wave(turn: &mut Turn<'_>, spec: &TaskSpec, id: &InstanceId, scheduled: Timestamp) {
    if spec.on_upstream == OnUpstream::Latest {
        replace(turn, spec, id, (scheduled, u64::MAX));
    }
}

/// An instance of a task has become READY: it replaces older ones that have become so since it was
/// made.
pub(super) fn by_ready(turn: &mut Turn<'_>, spec: &TaskSpec, id: &InstanceId) {
    if spec.on_upstream == OnUpstream::Latest
        && let Some(i) = turn.state.instances.get(id).filter(|i| is_of_wave(turn, i))
    {
        let age = (i.scheduled_time, i.created_seq);
        replace(turn, spec, id, age);
    }
}

fn replace(turn: &mut Turn<'_>, spec: &TaskSpec, newer: &InstanceId, age: (Timestamp, u64)) {
    let versions = turn.state.registry.rollouts().of(&spec.task_id);
    let open = versions.iter().flat_map(|version| turn.state.instances.open_of(version));
    let is_replaced = |i: &&Instance| {
        i.state == InstanceState::Ready
            && i.attempt == 0
            && i.instance_id != *newer
            && (i.scheduled_time, i.created_seq) < age
            && is_of_wave(turn, i)
    };
    let replaced: Vec<InstanceId> =
        open.filter(is_replaced).map(|i| i.instance_id.clone()).collect();
    for id in replaced {
        cancel::one(turn, &id, Stopping::Replace);
    }
}

/// Whether a wave made it. What a person ordered is not replaced, and a backfill wants each of its
/// cycles.
fn is_of_wave(turn: &Turn<'_>, i: &Instance) -> bool {
    matches!(i.trigger, Cause::Wave { .. }) && !turn.state.instances.is_backfill(&i.root)
}
