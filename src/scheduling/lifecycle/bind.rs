//! Which instance of an upstream an edge takes (docs/waves.md, rules 2 to 4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::edges::lag;
use super::super::instances::Need;
use super::super::turn::Turn;
use super::wave::Wave;
use crate::model::cycle::Cycle;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Edge;
use crate::model::spec::TaskSpec;

/// Edges of a new instance: inside the wave to the wave's instances, else to the newest match. One
/// with an offset looks for another cycle than the wave's.
pub(super) fn edges(turn: &Turn<'_>, spec: &TaskSpec, cycle: &Cycle, wave: &Wave) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(spec.depends_on.len());
    for d in &spec.depends_on {
        let versions = turn.state.registry.rollouts().of(&d.task_id);
        let lag = lag(turn.state, &d.task_id, d.cycle_offset);
        let inside = wave.get(&d.task_id).filter(|_| lag.is_none()).cloned();
        let newest = || turn.state.instances.newest_matching(versions, cycle, lag.as_ref());
        edges.push(Edge {
            task_id: d.task_id.clone(),
            dep_type: d.dep_type,
            strength: d.strength,
            instance_id: inside.or_else(newest),
            cycle_offset: d.cycle_offset,
            unanswered: false,
        });
    }
    edges
}

/// The waiting instance that takes part in the wave instead of a new one (rule 3): the oldest of
/// that cycle with an open or broken edge, or with an edge on one that is gathered itself.
pub(super) fn gather(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    cycle: &Cycle,
    wave: &Wave,
    fresh: &BTreeSet<InstanceId>,
) -> Option<InstanceId> {
    let table = &turn.state.instances;
    let inside = spec.depends_on.iter().filter(|d| d.cycle_offset == 0);
    let gathered = inside.filter_map(|d| wave.get(&d.task_id)).filter(|id| !fresh.contains(*id));
    let bound = gathered.filter_map(|id| table.oldest_bound(&spec.task_id, cycle, id));
    let oldest = table.oldest_waiting(&spec.task_id, cycle).into_iter().chain(bound);
    oldest.min_by_key(|i| i.created_seq).map(|i| i.instance_id.clone())
}

/// Binds an instance's edges on tasks of the wave to the wave.
pub(super) fn rebind(turn: &mut Turn<'_>, id: &InstanceId, wave: &Wave) {
    turn.update(id, "edges", |i| {
        let edges = Arc::make_mut(&mut i.edges).iter_mut();
        for edge in edges.filter(|edge| edge.cycle_offset == 0) {
            if let Some(upstream) = wave.get(&edge.task_id) {
                edge.instance_id = Some(upstream.clone());
            }
        }
    });
}

/// Open edges of all other waiting instances that look for what is new take it; so do broken edges
/// that no wave would repair: of instances that are not derived, and those with an offset (rules 3
/// and 4).
pub(super) fn bind_waiting(turn: &mut Turn<'_>, wave: &Wave) {
    // Each waiting instance is changed once, however many of its edges take something.
    let mut taken: BTreeMap<InstanceId, BTreeMap<(&TaskId, i32), &InstanceId>> = BTreeMap::new();
    for (task, new) in wave {
        let state = &*turn.state;
        let Some(cycle) = state.instances.cycle_of(new) else { continue };
        let offset_of = |offset| lag(state, task, offset);
        for (offset, need, dependent, ids) in state.instances.waiting_for(task, cycle, &offset_of) {
            let of_first = || ids.first().and_then(|id| state.spec_of(state.instances.get(id)?));
            let spec = state.registry.spec(dependent).cloned();
            let is_derived = || spec.or_else(of_first).is_some_and(|spec| spec.is_derived());
            if need == Need::Open || offset != 0 || !is_derived() {
                for id in ids.iter().filter(|id| *id != new) {
                    taken.entry(id.clone()).or_default().insert((task, offset), new);
                }
            }
        }
    }
    for (id, taken) in taken {
        turn.update(&id, "edges", |i| {
            for edge in Arc::make_mut(&mut i.edges) {
                if let Some(new) = taken.get(&(&edge.task_id, edge.cycle_offset)) {
                    edge.instance_id = Some((*new).clone());
                }
            }
        });
        turn.admit_later(id);
    }
}
