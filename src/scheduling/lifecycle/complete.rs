//! What is missing below a root that has SUCCEEDED (docs/waves.md, rule 15): derived tasks that
//! have no instance of its cycle, because they came later or because theirs ended badly.

use super::super::ended::Standing;
use super::super::turn::Turn;
use super::wave::{self, Source, Wave};
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
    wave::bind_waiting(turn, &fresh);
    made
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
