//! A derived task appears, or gains an edge: upstream instances that are not final count as just
//! created (docs/waves.md, rule 9), so what still runs tonight has its dependents tonight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::turn::Turn;
use super::bind;
use super::definitions::Changed;
use super::wave::{self, Source, Wave};
use crate::model::cycle::CycleUnit;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Instance;
use crate::model::spec::TaskSpec;

/// The instances that changed definitions get, from upstream to downstream.
pub(super) fn all(turn: &mut Turn<'_>, changed: &Changed) {
    let registry = &turn.state.registry;
    let mut appearing: Vec<(usize, Arc<TaskSpec>, BTreeSet<TaskId>)> = Vec::new();
    for (task, before) in changed {
        let Some(spec) = registry.spec(task).filter(|spec| spec.is_derived() && spec.enabled)
        else {
            continue;
        };
        let gained = gained(spec, before.as_deref());
        let able = registry.unresolved(spec).is_empty() && !registry.rollouts().is_taker(task);
        if able && !gained.is_empty() {
            appearing.push((registry.graph().level(task), Arc::clone(spec), gained));
        }
    }
    appearing.sort_by(|(a, x, _), (b, y, _)| (a, &x.task_id).cmp(&(b, &y.task_id)));
    for (_, spec, gained) in appearing {
        one(turn, &spec, &gained);
    }
}

/// The upstreams of edges that a definition has and the one before did not have: all of them if it
/// got no instances before. An edge with an offset starts nothing.
fn gained(spec: &TaskSpec, before: Option<&TaskSpec>) -> BTreeSet<TaskId> {
    let before = before.filter(|before| before.enabled && before.is_derived());
    let had = |task: &TaskId| {
        before
            .is_some_and(|b| b.depends_on.iter().any(|d| d.task_id == *task && d.cycle_offset == 0))
    };
    let own = spec.depends_on.iter().filter(|d| d.cycle_offset == 0);
    own.map(|d| &d.task_id).filter(|task| !had(task)).cloned().collect()
}

/// One root's instances of the gained upstreams.
struct Night {
    source: Source,
    wave: Wave,
}

fn one(turn: &mut Turn<'_>, spec: &Arc<TaskSpec>, gained: &BTreeSet<TaskId>) {
    for Night { source, mut wave } in sources(turn, spec, gained) {
        let mut below = vec![Arc::clone(spec)];
        below.extend(wave::reach(turn, spec));
        let mut fresh: BTreeSet<InstanceId> = wave.values().cloned().collect();
        // The root's own wave may have made one already, under the root's id.
        let identity = format!("{}\0{}", source.root, turn.state.tip.0);
        let upstreams: BTreeSet<TaskId> = wave.keys().cloned().collect();
        wave::carry(turn, below, (&source, &identity), (&mut wave, &mut fresh));
        wave.retain(|task, _| !upstreams.contains(task));
        bind::bind_waiting(turn, &wave);
    }
}

/// Upstream instances that are not final and have no instance of the task yet, by their root, the
/// oldest first.
fn sources(turn: &Turn<'_>, spec: &TaskSpec, gained: &BTreeSet<TaskId>) -> Vec<Night> {
    let table = &turn.state.instances;
    let registry = &turn.state.registry;
    let versions = registry.rollouts().of(&spec.task_id);
    let is_run = registry.rule(&spec.task_id).unit == CycleUnit::Run;
    let has_one = |i: &Instance| {
        let bound = table.bound_to(&i.instance_id);
        bound.iter().filter_map(|id| table.get(id)).any(|i| versions.contains(&i.task_id))
    };
    let upstreams: BTreeSet<&TaskId> =
        gained.iter().flat_map(|task| registry.rollouts().of(task)).collect();
    let open = upstreams.into_iter().flat_map(|task| table.open_of(task));
    // A daily side input never starts a task of unit RUN.
    let counts =
        |i: &&Instance| i.is_open() && !has_one(i) && (!is_run || i.cycle.unit() == CycleUnit::Run);
    let mut found: Vec<&Instance> = open.filter(counts).collect();
    found.sort_by_key(|i| i.created_seq);
    let mut order: Vec<InstanceId> = Vec::new();
    let mut of_root: BTreeMap<InstanceId, Night> = BTreeMap::new();
    for i in found {
        let of = of_root.entry(i.root.clone()).or_insert_with(|| {
            order.push(i.root.clone());
            let (root, cycle) = (i.root.clone(), i.cycle.clone());
            let scheduled_time = i.scheduled_time;
            Night { source: Source { root, cycle, scheduled_time }, wave: Wave::new() }
        });
        wave::enter(turn, &mut of.wave, &i.task_id, &i.instance_id);
    }
    order.iter().filter_map(|root| of_root.remove(root)).collect()
}
