//! Waiting instances whose edges may still be bound: what a wave asks for (docs/waves.md, rules 3
//! and 4), so that many instances of one cycle which wait for something else cost it nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::index::matching;
use super::{InstanceTable, remove};
use crate::model::cycle::{Cycle, Lag};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Edge, Instance};
use crate::scheduling::ended::Standing;

/// Why an edge may take another instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::scheduling) enum Need {
    /// It has none yet.
    Open,
    /// The one that it has finally failed, was cancelled, is gone from the store, or gives its
    /// condition no answer.
    Broken,
}

/// What of an instance is filed here.
#[derive(Debug, Clone, PartialEq)]
struct Filed {
    task: TaskId,
    cycle: Cycle,
    created_seq: u64,
    /// The open and the broken edges, by their place among the instance's.
    edges: BTreeMap<usize, Lacking>,
}

/// An open or broken edge: its upstream, its offset and what it needs. An instance has one edge to
/// an upstream at most.
type Lacking = (TaskId, i32, Need);

impl Filed {
    fn of(i: &Instance) -> Self {
        let (task, cycle, created_seq) = (i.task_id.clone(), i.cycle.clone(), i.created_seq);
        Self { task, cycle, created_seq, edges: BTreeMap::new() }
    }
}

/// Instances by what their edges to one upstream need, and by their task.
type Needing = BTreeMap<(Need, TaskId), BTreeSet<InstanceId>>;

/// PENDING and BLOCKED instances with an edge that is open or broken.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Waiting {
    filed: BTreeMap<InstanceId, Filed>,
    /// Those of a task and cycle, in the order of their creation.
    of: BTreeMap<(TaskId, Cycle), BTreeMap<u64, InstanceId>>,
    /// By the upstream of such an edge, its offset, and the waiting instance's own date and cycle.
    on: BTreeMap<(TaskId, i32, String), BTreeMap<Cycle, Needing>>,
}

impl Waiting {
    /// Files an instance in the place of what was filed of it.
    fn put(&mut self, id: &InstanceId, new: Option<Filed>) {
        if self.filed.get(id) == new.as_ref() {
            return;
        }
        if let Some(old) = self.filed.remove(id) {
            old.edges.values().for_each(|edge| self.take_out(id, &old, edge));
            self.keep(id, Filed { edges: BTreeMap::new(), ..old });
        }
        if let Some(new) = new {
            new.edges.values().for_each(|edge| self.put_in(id, &new, edge));
            self.keep(id, new);
        }
    }

    /// Files one edge of an instance in the place of what was filed of it: of many that break one by
    /// one, each costs itself and not all.
    fn put_edge(&mut self, i: &Instance, at: usize, new: Option<Lacking>) {
        let id = &i.instance_id;
        let mut filed = self.filed.remove(id).unwrap_or_else(|| Filed::of(i));
        if let Some(old) = filed.edges.remove(&at) {
            self.take_out(id, &filed, &old);
        }
        if let Some(new) = new {
            self.put_in(id, &filed, &new);
            filed.edges.insert(at, new);
        }
        self.keep(id, filed);
    }

    /// Keeps what is filed of an instance whose edges are filed; nothing, if there are none.
    fn keep(&mut self, id: &InstanceId, filed: Filed) {
        let key = (filed.task.clone(), filed.cycle.clone());
        if filed.edges.is_empty() {
            remove(&mut self.of, &key, |of| {
                of.remove(&filed.created_seq);
                of.is_empty()
            });
        } else {
            self.of.entry(key).or_default().insert(filed.created_seq, id.clone());
            self.filed.insert(id.clone(), filed);
        }
    }

    fn put_in(&mut self, id: &InstanceId, of: &Filed, (upstream, offset, need): &Lacking) {
        let key = (upstream.clone(), *offset, of.cycle.date().to_owned());
        let needing = self.on.entry(key).or_default().entry(of.cycle.clone()).or_default();
        needing.entry((*need, of.task.clone())).or_default().insert(id.clone());
    }

    fn take_out(&mut self, id: &InstanceId, of: &Filed, (upstream, offset, need): &Lacking) {
        let key = (upstream.clone(), *offset, of.cycle.date().to_owned());
        remove(&mut self.on, &key, |cycles| {
            remove(cycles, &of.cycle, |needing| {
                remove(needing, &(*need, of.task.clone()), |ids| {
                    ids.remove(id);
                    ids.is_empty()
                });
                needing.is_empty()
            });
            cycles.is_empty()
        });
    }

    /// The offsets of filed edges to a task.
    fn offsets(&self, upstream: &TaskId) -> Vec<i32> {
        let mut found = Vec::new();
        let mut from = Some(i32::MIN);
        while let Some(offset) = from
            && let Some(((task, offset, _), _)) =
                self.on.range((upstream.clone(), offset, String::new())..).next()
            && task == upstream
        {
            found.push(*offset);
            from = offset.checked_add(1);
        }
        found
    }
}

impl InstanceTable {
    /// The oldest waiting instance of a task and cycle with an open or broken edge.
    pub(in crate::scheduling) fn oldest_waiting(
        &self,
        task: &TaskId,
        cycle: &Cycle,
    ) -> Option<&Instance> {
        let of = self.waiting.of.get(&(task.clone(), cycle.clone()))?;
        of.values().next().and_then(|id| self.get(id))
    }

    /// The oldest waiting instance of a task and cycle that is bound to this one.
    pub(in crate::scheduling) fn oldest_bound(
        &self,
        task: &TaskId,
        cycle: &Cycle,
        upstream: &InstanceId,
    ) -> Option<&Instance> {
        let open = self.edges_to(upstream).filter_map(|(id, _)| self.get(id));
        let of = open.filter(|i| i.task_id == *task && i.cycle == *cycle && i.is_waiting());
        of.min_by_key(|i| i.created_seq)
    }

    /// Waiting instances with an open edge to the task, of whatever cycle.
    pub(in crate::scheduling) fn open_edges_on(&self, upstream: &TaskId) -> Vec<InstanceId> {
        let from = (upstream.clone(), i32::MIN, String::new());
        let on = self.waiting.on.range(from..).take_while(|((task, ..), _)| task == upstream);
        let needing = on.flat_map(|(_, cycles)| cycles.values()).flatten();
        let open = needing.filter(|((need, _), _)| *need == Need::Open);
        open.flat_map(|(_, ids)| ids).cloned().collect()
    }

    /// Waiting instances with an open or broken edge to the task that looks for this cycle of it;
    /// `lag` tells what an offset means. Each with the edge's offset, its need and its own task.
    pub(in crate::scheduling) fn waiting_for<'a>(
        &'a self,
        upstream: &TaskId,
        cycle: &Cycle,
        lag: &dyn Fn(i32) -> Option<Lag>,
    ) -> Vec<(i32, Need, &'a TaskId, &'a BTreeSet<InstanceId>)> {
        let mut found = Vec::new();
        for offset in self.waiting.offsets(upstream) {
            let wanted = match lag(offset) {
                None => Some(cycle.clone()),
                Some(lag) => cycle.shifted(offset.saturating_neg(), &lag.zone),
            };
            let Some(wanted) = wanted else { continue };
            let key = (upstream.clone(), offset, wanted.date().to_owned());
            let Some(cycles) = self.waiting.on.get(&key) else { continue };
            let needing = matching(cycles, &wanted).flat_map(|(_, needing)| needing);
            found.extend(needing.map(|((need, task), ids)| (offset, *need, task, ids)));
        }
        found
    }

    /// Files an instance whose edges are others now, or that waits now or no more.
    pub(super) fn file(&mut self, id: &InstanceId) {
        let filed = self.filed(id);
        self.waiting.put(id, filed);
    }

    /// Files the edges anew that are bound to an instance which has broken, or holds again.
    pub(super) fn refile_bound(&mut self, id: &InstanceId, stood: Option<Standing>) {
        if is_broken(self.standing(id)) == is_broken(stood) {
            return;
        }
        let bound: Vec<(InstanceId, usize)> = self.edges_to(id).cloned().collect();
        for (dependent, at) in bound {
            let waiting = self.open.get(&dependent).filter(|i| i.is_waiting()).cloned();
            if let Some(i) = waiting {
                let edge = i.edges.get(at).and_then(|edge| self.lacking(edge));
                self.waiting.put_edge(&i, at, edge);
            }
        }
    }

    fn filed(&self, id: &InstanceId) -> Option<Filed> {
        let i = self.open.get(id).filter(|i| i.is_waiting())?;
        let lacking = |(at, edge)| Some((at, self.lacking(edge)?));
        let edges: BTreeMap<usize, Lacking> =
            i.edges.iter().enumerate().filter_map(lacking).collect();
        (!edges.is_empty()).then(|| Filed { edges, ..Filed::of(i) })
    }

    /// What is filed of an edge; `None`: it has an instance that holds or may hold yet.
    fn lacking(&self, edge: &Edge) -> Option<Lacking> {
        let need = match &edge.instance_id {
            None => Need::Open,
            Some(bound) if edge.unanswered || self.is_broken(bound) => Need::Broken,
            Some(_) => return None,
        };
        Some((edge.task_id.clone(), edge.cycle_offset, need))
    }

    /// Whether an upstream finally failed, was cancelled, or is gone from the store.
    pub(in crate::scheduling) fn is_broken(&self, upstream: &InstanceId) -> bool {
        is_broken(self.standing(upstream))
    }
}

fn is_broken(standing: Option<Standing>) -> bool {
    match standing {
        Some(Standing::Failed | Standing::Skipped) | None => true,
        Some(Standing::Open | Standing::Succeeded) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::fixture;
    use crate::model::instance::InstanceState;
    use crate::model::spec::{DepType, Strength};
    use crate::model::time::Timestamp;

    fn task(name: &str) -> TaskId {
        TaskId::parse(&format!("{name}.v1")).unwrap()
    }

    fn instance(name: &str, seq: u64, state: InstanceState) -> Instance {
        let id = InstanceId::from_text(&format!("{name}-{seq}"));
        let at = Timestamp::from_millis(i64::try_from(seq).unwrap());
        Instance { created_seq: seq, ..fixture::instance(id, &task(name), state, at) }
    }

    fn bound(mut i: Instance, upstream: &str, to: Option<&Instance>) -> Instance {
        Arc::make_mut(&mut i.edges).push(Edge {
            task_id: task(upstream),
            dep_type: DepType::Success,
            strength: Strength::Strong,
            instance_id: to.map(|to| to.instance_id.clone()),
            cycle_offset: 0,
            unanswered: false,
        });
        i
    }

    fn needs(table: &InstanceTable, cycle: &Cycle) -> Vec<(Need, usize)> {
        let found = table.waiting_for(&task("a"), cycle, &|_| None);
        found.into_iter().map(|(_, need, _, ids)| (need, ids.len())).collect()
    }

    /// However many wait for instances that are still at it, a wave looks at none of them.
    #[test]
    fn only_open_and_broken_edges_are_found() {
        let mut table = InstanceTable::default();
        let a = instance("a", 1, InstanceState::Running);
        table.put(&Arc::new(a.clone()));
        for seq in 2..100 {
            let b = bound(instance("b", seq, InstanceState::Pending), "a", Some(&a));
            table.put(&Arc::new(b));
        }
        assert_eq!(table.oldest_waiting(&task("b"), &a.cycle), None);
        assert_eq!(needs(&table, &a.cycle), []);
        table.put(&Arc::new(bound(instance("b", 100, InstanceState::Pending), "a", None)));
        let oldest = table.oldest_waiting(&task("b"), &a.cycle).map(|i| i.created_seq);
        assert_eq!((oldest, needs(&table, &a.cycle)), (Some(100), vec![(Need::Open, 1)]));
        // The upstream ends badly: all that are bound to it may take another.
        let failed = instance("a", 1, InstanceState::Failed);
        table.put(&Arc::new(failed.clone()));
        table.settle(&BTreeSet::from([failed.instance_id]));
        let oldest = table.oldest_waiting(&task("b"), &a.cycle).map(|i| i.created_seq);
        assert_eq!(oldest, Some(2));
        assert_eq!(needs(&table, &a.cycle), [(Need::Open, 1), (Need::Broken, 98)]);
    }

    #[test]
    fn rows_in_any_order_give_the_same_table() {
        let a = instance("a", 1, InstanceState::Cancelled);
        let b = bound(instance("b", 2, InstanceState::Pending), "a", Some(&a));
        let c = bound(instance("c", 3, InstanceState::Blocked), "a", None);
        let ids: BTreeSet<InstanceId> =
            [&a, &b, &c].iter().map(|i| i.instance_id.clone()).collect();
        let loaded = |rows: [&Instance; 3]| {
            let mut table = InstanceTable::default();
            rows.into_iter().for_each(|row| table.put(&Arc::new(row.clone())));
            table.settle(&ids);
            table
        };
        let table = loaded([&a, &b, &c]);
        assert_eq!(table.differences(&loaded([&c, &b, &a])), [""; 0]);
        assert_eq!(needs(&table, &a.cycle), [(Need::Open, 1), (Need::Broken, 1)]);
    }
}
