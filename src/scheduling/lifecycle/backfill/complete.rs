//! What is missing below a root that has SUCCEEDED (docs/waves.md, rule 15): derived tasks that
//! have no instance of its cycle, because they came later or because theirs ended badly.

use std::sync::Arc;

use super::super::super::ended::Standing;
use super::super::super::turn::Turn;
use super::super::bind;
use super::super::wave::{self, Source, Wave};
use crate::model::backfill::MadeBelow;
use crate::model::cycle::Cycle;
use crate::model::id::{InstanceId, TaskId};

/// Makes it, bound to the root and to what is there; tells what was made, from upstream to
/// downstream.
pub(super) fn below(turn: &mut Turn<'_>, root: &InstanceId) -> Vec<MadeBelow> {
    let Some(ended) = turn.state.instances.ended(root) else { return Vec::new() };
    let task = ended.task_id.clone();
    let source = Source {
        root: root.clone(),
        cycle: ended.cycle.clone(),
        scheduled_time: ended.scheduled_time,
    };
    let Some(spec) = turn.state.registry.spec(&task).cloned() else { return Vec::new() };
    let (mut all, mut fresh) = (Wave::new(), Wave::new());
    wave::enter(turn, &mut all, &task, root);
    let mut made = Vec::new();
    for spec in wave::reach(turn, &spec) {
        let Some((spec, cycle)) = wave::part(turn, spec, &source.cycle) else { continue };
        if let Some(there) = present(turn, &spec.task_id, &cycle) {
            mend(turn, &there, &all);
            wave::enter(turn, &mut all, &spec.task_id, &there);
            continue;
        }
        // The root's own wave may have made one already, under the root's id.
        let identity = format!("{root}\0{}", turn.state.tip.0);
        let id = wave::derive(turn, &spec, cycle, &source, &identity, &all);
        wave::enter(turn, &mut all, &spec.task_id, &id);
        wave::enter(turn, &mut fresh, &spec.task_id, &id);
        turn.admit_later(id.clone());
        made.push(MadeBelow { task_id: spec.task_id.clone(), instance_id: id });
    }
    bind::bind_waiting(turn, &fresh);
    made
}

/// Edges of a waiting instance that are open, or lead to what ended badly, take what is there or was
/// made: as in a wave (rule 3), a chain that was blocked goes on and is not doubled.
fn mend(turn: &mut Turn<'_>, id: &InstanceId, all: &Wave) {
    let Some(i) = turn.state.instances.get(id).filter(|i| i.is_waiting()) else { return };
    let mut edges = Vec::clone(&i.edges);
    for edge in &mut edges {
        let holds = |bound: &InstanceId| !turn.state.instances.is_broken(bound);
        if edge.cycle_offset == 0
            && !edge.instance_id.as_ref().is_some_and(holds)
            && let Some(there) = all.get(&edge.task_id)
        {
            edge.instance_id = Some(there.clone());
        }
    }
    turn.update(id, "edges", |i| i.edges = Arc::new(edges));
    turn.admit_later(id.clone());
}

/// The instance that a task has in a cycle: one that is open or has SUCCEEDED, or its newest if
/// that was skipped, which is a decision and no gap.
fn present(turn: &Turn<'_>, task: &TaskId, cycle: &Cycle) -> Option<InstanceId> {
    let table = &turn.state.instances;
    let versions = turn.state.registry.rollouts().of(task);
    let counts = |id: &&InstanceId| match table.standing(id) {
        Some(Standing::Open | Standing::Succeeded | Standing::Skipped) => true,
        Some(Standing::Failed) | None => false,
    };
    let open = || versions.iter().find_map(|version| table.open_in(version, cycle).last());
    let newest = table.newest_in(versions, cycle).filter(counts);
    let earlier = newest.or_else(|| open().map(|i| &i.instance_id));
    earlier.or_else(|| table.succeeded_in(versions, cycle)).cloned()
}
