//! The dispatch queue (调度队列): READY instances in the order in which they may start.
//!
//! Per named queue, instances of one task form a group, for they need the same; only the heads of
//! the groups are looked at, so what cannot be placed costs nothing and blocks nothing
//! (design, 'Order'). Between queues the slots are shared by smooth weighted round robin.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::id::{InstanceId, QueueName, TaskId};
use crate::model::instance::Instance;
use crate::model::priority::Priority;
use crate::model::time::Timestamp;

/// One instance's place: effective priority, ready time, sequence (requirement D1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    priority: Priority,
    ready_at: Timestamp,
    ready_seq: u64,
    pub(super) task: TaskId,
    pub(super) instance: InstanceId,
}

impl Entry {
    fn of(instance: &Instance) -> Self {
        Self {
            priority: instance.priority,
            ready_at: instance.ready_at.unwrap_or(instance.created_at),
            ready_seq: instance.ready_seq,
            task: instance.task_id.clone(),
            instance: instance.instance_id.clone(),
        }
    }
}

/// READY instances of all queues.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DispatchQueue {
    queues: BTreeMap<QueueName, Groups>,
}

/// One queue's instances by task, and the heads of these groups in order.
#[derive(Debug, Clone, Default, PartialEq)]
struct Groups {
    by_task: BTreeMap<TaskId, BTreeSet<Entry>>,
    heads: BTreeSet<Entry>,
    len: usize,
}

impl DispatchQueue {
    /// Puts a READY instance in its place.
    pub(super) fn insert(&mut self, instance: &Instance) {
        let entry = Entry::of(instance);
        let groups = self.queues.entry(instance.queue.clone()).or_default();
        let group = groups.by_task.entry(entry.task.clone()).or_default();
        let old_head = group.first().cloned();
        if group.insert(entry) {
            groups.len += 1;
        }
        let new_head = group.first().cloned();
        groups.replace_head(old_head, new_head);
    }

    /// Takes an instance out, given the values with which it was put in.
    pub(super) fn remove(&mut self, instance: &Instance) {
        let Some(groups) = self.queues.get_mut(&instance.queue) else { return };
        let Some(group) = groups.by_task.get_mut(&instance.task_id) else { return };
        let old_head = group.first().cloned();
        if group.remove(&Entry::of(instance)) {
            groups.len -= 1;
        }
        let new_head = group.first().cloned();
        if new_head.is_none() {
            groups.by_task.remove(&instance.task_id);
        }
        groups.replace_head(old_head, new_head);
        if groups.len == 0 {
            self.queues.remove(&instance.queue);
        }
    }

    /// Names of queues in which something waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &QueueName> {
        self.queues.keys()
    }

    /// The first of each task in a queue, in order.
    pub(super) fn heads(&self, queue: &QueueName) -> impl Iterator<Item = &Entry> {
        self.queues.get(queue).into_iter().flat_map(|g| &g.heads)
    }

    /// All that waits in a queue, in no order.
    pub(super) fn entries(&self, queue: &QueueName) -> impl Iterator<Item = &Entry> {
        self.queues.get(queue).into_iter().flat_map(|g| g.by_task.values().flatten())
    }

    /// Instances waiting in a queue.
    pub(super) fn len(&self, queue: &QueueName) -> usize {
        self.queues.get(queue).map_or(0, |g| g.len)
    }
}

impl Groups {
    fn replace_head(&mut self, old: Option<Entry>, new: Option<Entry>) {
        if old != new {
            if let Some(old) = old {
                self.heads.remove(&old);
            }
            self.heads.extend(new);
        }
    }
}

/// Smooth weighted round robin between queues (requirement D3). Not remembered: after a restart
/// the turn starts anew.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundRobin {
    credit: BTreeMap<QueueName, i64>,
}

impl RoundRobin {
    /// The order in which the queues are to be tried for the next slot.
    pub(super) fn order(&self, queues: &[(QueueName, u32)]) -> Vec<QueueName> {
        let mut order: Vec<(i64, &QueueName)> = queues
            .iter()
            .map(|(name, weight)| (self.credit(name) + i64::from(*weight), name))
            .collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        order.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// Notes that `taken` among `queues` got the slot.
    pub(super) fn charge(&mut self, queues: &[(QueueName, u32)], taken: &QueueName) {
        let total: i64 = queues.iter().map(|(_, w)| i64::from(*w)).sum();
        for (name, weight) in queues {
            *self.credit.entry(name.clone()).or_default() += i64::from(*weight);
        }
        *self.credit.entry(taken.clone()).or_default() -= total;
        self.credit.retain(|name, _| queues.iter().any(|(q, _)| q == name));
    }

    fn credit(&self, name: &QueueName) -> i64 {
        self.credit.get(name).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_four_to_two_to_one_share_seven_slots_smoothly() {
        let queues: Vec<(QueueName, u32)> =
            [("a", 4), ("b", 2), ("c", 1)].map(|(n, w)| (QueueName::from(n), w)).to_vec();
        let mut turn = RoundRobin::default();
        let served: String = (0..7)
            .map(|_| {
                let first = turn.order(&queues)[0].clone();
                turn.charge(&queues, &first);
                first.to_string()
            })
            .collect();
        // nginx's worked example of smooth weighted round robin for 4, 2, 1.
        assert_eq!(served, "abacaba");
    }
}
