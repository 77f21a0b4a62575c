//! The dispatch queue (调度队列): READY instances in the order in which they may start.
//!
//! Per named queue, instances that need the same form a *group*: one task's, of one revision and
//! one level. A group whose task has a full quota or is paused is *shut*; so is an owner's *line*,
//! the heads of the groups of one owner, when the owner's quota is full. What is shut does not
//! stand among the heads that the scheduler looks at, and comes back when there is room. The heads
//! of the lines are kept by *class*, the executors that would take them: a class whose executors
//! have no free slot is passed over as a whole. So looking for what starts next costs about the
//! same whatever waits, and what cannot be placed blocks nothing (design, 'Order').
//!
//! It knows no rule: what is full is told by [`Room`], whose word must be asked again, by
//! [`DispatchQueue::task_changed`] and [`DispatchQueue::owner_changed`], whenever it may be
//! another. Then the queue is a function of the instances in it and of the room.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::id::{InstanceId, QueueName, TaskId};
use crate::model::instance::Instance;
use crate::model::priority::{Level, Priority};
use crate::model::time::Timestamp;

/// One instance's place: effective priority, ready time, sequence (requirement D1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) priority: Priority,
    ready_at: Timestamp,
    pub(super) ready_seq: u64,
    pub(super) instance: InstanceId,
}

impl Entry {
    fn of(instance: &Instance, priority: Priority) -> Self {
        Self {
            priority,
            ready_at: instance.ready_at.unwrap_or(instance.created_at),
            ready_seq: instance.ready_seq,
            instance: instance.instance_id.clone(),
        }
    }
}

/// What is full now.
pub(super) trait Room {
    /// Whether a task may start one more where its definition allows so many at a time.
    fn task_is_open(&self, task: &TaskId, max_concurrent: Option<u32>) -> bool;
    /// Whether an owner's tasks may start one more.
    fn owner_is_open(&self, owner: &str) -> bool;
}

/// What a group's instances need, from their definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Need {
    pub(super) owner: String,
    pub(super) max_concurrent: Option<u32>,
    /// The executors that take them, by their place in the configuration.
    pub(super) executors: Vec<usize>,
}

/// What makes entries alike for the question of whether a slot is free for them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class {
    pub(super) level: Level,
    /// They wait for a first attempt on a file, which may be gone.
    pub(super) awaits_file: bool,
    /// The executors that take them, by their place in the configuration.
    pub(super) executors: Vec<usize>,
}

/// A group within its task: revision, level, and whether it is for files.
type Kind = (u64, Level, bool);

/// Instances that need the same, and whether their task has room for one more.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    entries: BTreeSet<Entry>,
    owner: String,
    max_concurrent: Option<u32>,
    class: Class,
    is_open: bool,
}

impl Group {
    fn head(&self) -> Option<&Entry> {
        self.entries.first().filter(|_| self.is_open)
    }
}

/// The heads of one owner's open groups of one class, and whether the owner has room for one more.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    heads: BTreeSet<Entry>,
    is_open: bool,
}

impl Line {
    fn head(&self) -> Option<&Entry> {
        self.heads.first().filter(|_| self.is_open)
    }
}

/// One queue.
#[derive(Debug, Clone, Default, PartialEq)]
struct Waiting {
    groups: BTreeMap<TaskId, BTreeMap<Kind, Group>>,
    lines: BTreeMap<String, BTreeMap<Class, Line>>,
    /// The heads of the open lines.
    heads: BTreeMap<Class, BTreeSet<Entry>>,
    len: usize,
}

/// READY instances of all queues.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DispatchQueue {
    queues: BTreeMap<QueueName, Waiting>,
}

impl DispatchQueue {
    /// All that wait in a queue, in no order.
    pub(super) fn entries(&self, queue: &QueueName) -> impl Iterator<Item = &Entry> {
        let groups = self.queues.get(queue).into_iter().flat_map(|waiting| waiting.groups.values());
        groups.flat_map(BTreeMap::values).flat_map(|group| &group.entries)
    }

    /// Puts a READY instance in its place.
    pub(super) fn insert(
        &mut self,
        instance: &Instance,
        priority: Priority,
        need: impl FnOnce() -> Need,
        room: &impl Room,
    ) {
        let waiting = self.queues.entry(instance.queue.clone()).or_default();
        let kinds = waiting.groups.entry(instance.task_id.clone()).or_default();
        let group = kinds.entry(kind(instance, priority)).or_insert_with(|| {
            let Need { owner, max_concurrent, executors } = need();
            let awaits_file = instance.awaited_file().is_some();
            let is_open = room.task_is_open(&instance.task_id, max_concurrent);
            let class = Class { level: priority.level(), awaits_file, executors };
            Group { entries: BTreeSet::new(), owner, max_concurrent, class, is_open }
        });
        let moved = Moved::of(group, |group| {
            if group.entries.insert(Entry::of(instance, priority)) {
                waiting.len += 1;
            }
        });
        waiting.moved(moved, room);
    }

    /// Takes an instance out, given the values with which it was put in.
    pub(super) fn remove(&mut self, instance: &Instance, priority: Priority, room: &impl Room) {
        let Some(waiting) = self.queues.get_mut(&instance.queue) else { return };
        let Some(kinds) = waiting.groups.get_mut(&instance.task_id) else { return };
        let kind = kind(instance, priority);
        let Some(group) = kinds.get_mut(&kind) else { return };
        let moved = Moved::of(group, |group| {
            if group.entries.remove(&Entry::of(instance, priority)) {
                waiting.len -= 1;
            }
        });
        if group.entries.is_empty() {
            kinds.remove(&kind);
        }
        if kinds.is_empty() {
            waiting.groups.remove(&instance.task_id);
        }
        waiting.moved(moved, room);
        if waiting.len == 0 {
            self.queues.remove(&instance.queue);
        }
    }

    /// A task's quota, or whether it is paused, may be another now.
    pub(super) fn task_changed(&mut self, task: &TaskId, room: &impl Room) {
        for waiting in self.queues.values_mut() {
            let Some(kinds) = waiting.groups.get_mut(task) else { continue };
            let opens = |group: &Group| room.task_is_open(task, group.max_concurrent);
            let changed: Vec<Option<Moved>> = kinds
                .values_mut()
                .filter(|group| group.is_open != opens(group))
                .map(|group| Moved::of(group, |group| group.is_open = !group.is_open))
                .collect();
            changed.into_iter().for_each(|moved| waiting.moved(moved, room));
        }
    }

    /// An owner's quota may be another now.
    pub(super) fn owner_changed(&mut self, owner: &str, room: &impl Room) {
        let is_open = room.owner_is_open(owner);
        for waiting in self.queues.values_mut() {
            let Some(lines) = waiting.lines.get_mut(owner) else { continue };
            for (class, line) in lines.iter_mut().filter(|(_, line)| line.is_open != is_open) {
                let before = line.head().cloned();
                line.is_open = is_open;
                replace_head(&mut waiting.heads, class, before, line.head().cloned());
            }
        }
    }

    /// Names of queues in which something waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &QueueName> {
        self.queues.keys()
    }

    /// The classes of what waits in a queue and is not shut.
    pub(super) fn classes(&self, queue: &QueueName) -> impl Iterator<Item = &Class> {
        self.queues.get(queue).into_iter().flat_map(|waiting| waiting.heads.keys())
    }

    /// The first of each level of a queue among the classes that can be placed, in order.
    pub(super) fn heads(
        &self,
        queue: &QueueName,
        can_be_placed: impl Fn(&Class) -> bool,
    ) -> Vec<(&Entry, &Class)> {
        let mut first: Vec<(&Entry, &Class)> = Vec::new();
        let heads = self.queues.get(queue).into_iter().flat_map(|waiting| &waiting.heads);
        for (class, entries) in heads.filter(|(class, _)| can_be_placed(class)) {
            let Some(entry) = entries.first() else { continue };
            match first.last_mut() {
                Some(last) if last.1.level == class.level => {
                    if entry < last.0 {
                        *last = (entry, class);
                    }
                }
                Some(_) | None => first.push((entry, class)),
            }
        }
        first
    }

    /// Instances waiting in a queue.
    pub(super) fn len(&self, queue: &QueueName) -> usize {
        self.queues.get(queue).map_or(0, |waiting| waiting.len)
    }
}

fn kind(instance: &Instance, priority: Priority) -> Kind {
    (instance.revision, priority.level(), instance.awaited_file().is_some())
}

/// A change of a group's head, to be carried on to its line.
struct Moved {
    owner: String,
    class: Class,
    before: Option<Entry>,
    after: Option<Entry>,
}

impl Moved {
    /// Changes a group; `None` if its head stays.
    fn of(group: &mut Group, change: impl FnOnce(&mut Group)) -> Option<Self> {
        let before = group.head().cloned();
        change(group);
        let after = group.head().cloned();
        let (owner, class) = (&group.owner, &group.class);
        (before != after).then(|| Self {
            owner: owner.clone(),
            class: class.clone(),
            before,
            after,
        })
    }
}

impl Waiting {
    fn moved(&mut self, moved: Option<Moved>, room: &impl Room) {
        let Some(Moved { owner, class, before, after }) = moved else { return };
        let lines = self.lines.entry(owner.clone()).or_default();
        let new = || Line { heads: BTreeSet::new(), is_open: room.owner_is_open(&owner) };
        let line = lines.entry(class.clone()).or_insert_with(new);
        let old_head = line.head().cloned();
        if let Some(before) = before {
            line.heads.remove(&before);
        }
        line.heads.extend(after);
        let new_head = line.head().cloned();
        if line.heads.is_empty() {
            lines.remove(&class);
        }
        if lines.is_empty() {
            self.lines.remove(&owner);
        }
        replace_head(&mut self.heads, &class, old_head, new_head);
    }
}

/// A line's head is another now.
fn replace_head(
    heads: &mut BTreeMap<Class, BTreeSet<Entry>>,
    class: &Class,
    old: Option<Entry>,
    new: Option<Entry>,
) {
    if old == new {
        return;
    }
    let of_class = heads.entry(class.clone()).or_default();
    if let Some(old) = old {
        of_class.remove(&old);
    }
    of_class.extend(new);
    if of_class.is_empty() {
        heads.remove(class);
    }
}

#[cfg(test)]
mod tests;
