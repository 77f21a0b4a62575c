//! The instances that the core needs: open ones in full, ended ones as far as an edge may still
//! bind to them.
//!
//! An ended instance stays as a digest while it is the newest of its task and cycle, or the newest
//! there that SUCCEEDED, while a person may still have it tried again, or while one that is open or
//! may be again is bound to it. All indexes are derived from the rows: loading the rows anew gives
//! an equal table.

mod index;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub(super) use self::index::{looked_for, remove};
pub(super) use self::waiting::Need;
use self::waiting::Waiting;
use super::ended::{Ended, Standing, ended, is_backfill, last, may_be_retried, standing};
use crate::model::cycle::{Cycle, CycleUnit, Lag};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::spec::JsonMap;
use crate::model::time::Timestamp;
use crate::model::view::LastInstance;

/// Order of "newest": by scheduled time, then creation (docs/waves.md, rule 2).
type Age = (Timestamp, u64);

/// The instances of one task and date.
type Cycles = BTreeMap<Cycle, BTreeMap<Age, InstanceId>>;

/// The instances the core needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InstanceTable {
    open: BTreeMap<InstanceId, Instance>,
    ended: BTreeMap<InstanceId, Ended>,
    /// Per task, date and cycle, oldest first.
    by_cycle: BTreeMap<TaskId, BTreeMap<String, Cycles>>,
    /// The newest of each task and cycle that SUCCEEDED. Not of runs: each is a cycle by itself,
    /// which nobody fills in later.
    succeeded: BTreeMap<TaskId, BTreeMap<Cycle, (Age, InstanceId)>>,
    /// Open instances of a task in the order of their creation.
    open_of: BTreeMap<TaskId, BTreeMap<u64, InstanceId>>,
    /// Instances that an edge binds to the key: open ones, and those that may be tried again.
    bound_to: BTreeMap<InstanceId, BTreeSet<InstanceId>>,
    /// PENDING and BLOCKED instances with an edge that is open or broken.
    waiting: Waiting,
    /// Instances that no attempt has been made of yet, by the file that they were made for.
    awaiting_file: BTreeMap<String, BTreeSet<InstanceId>>,
    /// Key taken by whom, per base id; open and succeeded ones only.
    dedup: BTreeMap<(String, String), InstanceId>,
    /// Instances that lost an edge since the last [`InstanceTable::settle`].
    loose: BTreeSet<InstanceId>,
}

impl InstanceTable {
    // Reading

    /// An open instance, or one that ended in this turn.
    pub(super) fn get(&self, id: &InstanceId) -> Option<&Instance> {
        self.open.get(id)
    }

    pub(super) fn ended(&self, id: &InstanceId) -> Option<&Ended> {
        self.ended.get(id)
    }

    /// Whether the id is taken, as far as the table knows.
    pub(super) fn knows(&self, id: &InstanceId) -> bool {
        self.open.contains_key(id) || self.ended.contains_key(id)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Instance> {
        self.open.values()
    }

    /// Open instances of a task, oldest first.
    pub(super) fn open_of(&self, task: &TaskId) -> impl Iterator<Item = &Instance> {
        self.open_of
            .get(task)
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|id| self.open.get(id))
    }

    /// Instances bound to this one: open ones, and those that may be tried again.
    pub(super) fn bound_to(&self, id: &InstanceId) -> Vec<InstanceId> {
        self.bound_to.get(id).into_iter().flatten().cloned().collect()
    }

    /// Instances made for this file that no attempt has been made of yet.
    pub(super) fn awaiting_file(&self, path: &str) -> impl Iterator<Item = &Instance> {
        let ids = self.awaiting_file.get(path).into_iter().flatten();
        ids.filter_map(|id| self.open.get(id))
    }

    /// Open instances of a task and cycle, oldest first.
    pub(super) fn open_in(&self, task: &TaskId, cycle: &Cycle) -> impl Iterator<Item = &Instance> {
        let ids = self.ages(task, cycle).into_iter().flat_map(BTreeMap::values);
        ids.filter_map(|id| self.open.get(id)).filter(|i| i.is_open())
    }

    /// The newest instance of any of these tasks and this very cycle that SUCCEEDED.
    pub(super) fn succeeded_in(&self, tasks: &[TaskId], cycle: &Cycle) -> Option<&InstanceId> {
        let successes = tasks.iter().filter_map(|task| self.succeeded.get(task)?.get(cycle));
        successes.max().map(|(_, id)| id)
    }

    /// The newest instance of any of these tasks and this very cycle.
    pub(super) fn newest_in(&self, tasks: &[TaskId], cycle: &Cycle) -> Option<&InstanceId> {
        let ages = tasks.iter().filter_map(|task| self.ages(task, cycle));
        ages.filter_map(BTreeMap::last_key_value).max().map(|(_, id)| id)
    }

    /// How an instance stands; `None`: unknown here.
    pub(super) fn standing(&self, id: &InstanceId) -> Option<Standing> {
        if let Some(i) = self.open.get(id) {
            return Some(standing(i.state, i.reason, i.is_open()));
        }
        self.ended.get(id).map(|e| standing(e.state, e.reason, false))
    }

    pub(super) fn state_of(&self, id: &InstanceId) -> Option<(InstanceState, bool)> {
        let open = self.open.get(id).map(|i| (i.state, !i.is_open()));
        open.or_else(|| self.ended.get(id).map(|e| (e.state, true)))
    }

    /// Whether a backfill made it, as far as the table knows.
    pub(super) fn is_backfill(&self, id: &InstanceId) -> bool {
        let open = self.open.get(id).map(is_backfill);
        open.or_else(|| self.ended.get(id).map(|e| e.is_backfill)).unwrap_or(false)
    }

    pub(super) fn cycle_of(&self, id: &InstanceId) -> Option<&Cycle> {
        let open = self.open.get(id).map(|i| &i.cycle);
        open.or_else(|| self.ended.get(id).map(|e| &e.cycle))
    }

    /// Parameters and output of an instance.
    pub(super) fn result_of(&self, id: &InstanceId) -> Option<(&JsonMap, Option<&Value>)> {
        let open = self.open.get(id).map(|i| (&i.runtime_params, i.output.as_ref()));
        open.or_else(|| self.ended.get(id).map(|e| (&e.runtime_params, e.output.as_ref())))
    }

    /// The newest instance of any of these tasks whose cycle an edge of an instance of this cycle
    /// looks for (docs/waves.md, rule 2).
    pub(super) fn newest_matching(
        &self,
        tasks: &[TaskId],
        cycle: &Cycle,
        lag: Option<&Lag>,
    ) -> Option<InstanceId> {
        let dates = tasks.iter().filter_map(|task| self.by_cycle.get(task));
        dates
            .flat_map(|dates| looked_for(dates, cycle, lag))
            .filter_map(|(_, ages)| ages.last_key_value())
            .max_by_key(|(age, _)| **age)
            .map(|(_, id)| id.clone())
    }

    /// The instance of a task made last, as far as the table knows.
    pub(super) fn last_of(&self, task: &TaskId) -> Option<LastInstance> {
        let cycles = self.by_cycle.get(task)?.values().flat_map(BTreeMap::values);
        let ids = cycles.filter_map(|ages| ages.last_key_value());
        let (_, id) = ids.max_by_key(|((_, seq), _)| *seq)?;
        let open = self.open.get(id).map(last);
        open.or_else(|| self.ended.get(id).map(|e| e.last.clone()))
    }

    /// The revisions that a task's instances follow, or would if they were tried again.
    pub(super) fn followed(&self, task: &TaskId) -> BTreeSet<u64> {
        let dates = self.by_cycle.get(task).into_iter().flat_map(BTreeMap::values);
        let ids = dates.flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        ids.filter_map(|id| {
            let again = |e: &&Ended| may_be_retried(e.state);
            let ended = || self.ended.get(id).filter(again).map(|e| e.revision);
            self.open.get(id).map(|i| i.revision).or_else(ended)
        })
        .collect()
    }

    pub(super) fn dedup_holder(&self, base: &str, key: &str) -> Option<&InstanceId> {
        self.dedup.get(&(base.to_owned(), key.to_owned()))
    }

    /// Which of the table's parts differ from another's.
    pub(super) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            ("open instances", self.open == other.open),
            ("ended instances", self.ended == other.ended),
            ("instances by cycle", self.by_cycle == other.by_cycle),
            ("successes by cycle", self.succeeded == other.succeeded),
            ("open instances by task", self.open_of == other.open_of),
            ("bound edges", self.bound_to == other.bound_to),
            ("waiting instances", self.waiting == other.waiting),
            ("instances by file", self.awaiting_file == other.awaiting_file),
            ("dedup keys", self.dedup == other.dedup),
            ("loose instances", self.loose == other.loose),
        ];
        parts.into_iter().filter(|(_, same)| !same).map(|(part, _)| part).collect()
    }

    // Changing: only through a turn

    /// Puts an instance in, new or changed, whatever its state.
    pub(super) fn put(&mut self, instance: Instance) {
        let stood = self.standing(&instance.instance_id);
        if let Some(old) = self.open.remove(&instance.instance_id) {
            self.unindex(&old);
            if old.dedup_key != instance.dedup_key
                && let Some(key) = old.dedup_key
            {
                let key = (old.task_id.base().to_owned(), key);
                if self.dedup.get(&key) == Some(&old.instance_id) {
                    self.dedup.remove(&key);
                }
            }
            self.loose.extend(old.edges.into_iter().filter_map(|e| e.instance_id));
        }
        self.ended.remove(&instance.instance_id);
        self.index(&instance);
        let id = instance.instance_id.clone();
        self.open.insert(id.clone(), instance);
        self.file(&id, stood);
    }

    /// Ends of a turn, or of loading: what has ended becomes a digest, or goes.
    pub(super) fn settle(&mut self, touched: &BTreeSet<InstanceId>) {
        let mut maybe_unneeded = std::mem::take(&mut self.loose);
        for id in touched {
            let Some(instance) = self.open.get(id) else { continue };
            if !instance.is_open() {
                let Some(instance) = self.open.remove(id) else { continue };
                self.unindex_open(&instance);
                if may_be_retried(instance.state) {
                    self.bind(&instance);
                }
                maybe_unneeded.extend(instance.edges.iter().filter_map(|e| e.instance_id.clone()));
                maybe_unneeded.insert(id.clone());
                maybe_unneeded.extend(self.note_success(&instance));
                self.ended.insert(id.clone(), ended(instance));
            }
        }
        for id in maybe_unneeded {
            self.drop_if_unneeded(&id);
        }
    }

    /// Notes the newest success of a cycle; the one that was it before is given back.
    fn note_success(&mut self, i: &Instance) -> Option<InstanceId> {
        if i.state != InstanceState::Succeeded || i.cycle.unit() == CycleUnit::Run {
            return None;
        }
        let age = (i.scheduled_time, i.created_seq);
        let cycles = self.succeeded.entry(i.task_id.clone()).or_default();
        if cycles.get(&i.cycle).is_some_and(|(newest, _)| *newest > age) {
            return None;
        }
        cycles.insert(i.cycle.clone(), (age, i.instance_id.clone())).map(|(_, before)| before)
    }

    fn ages(&self, task: &TaskId, cycle: &Cycle) -> Option<&BTreeMap<Age, InstanceId>> {
        self.by_cycle.get(task)?.get(cycle.date())?.get(cycle)
    }

    fn drop_if_unneeded(&mut self, id: &InstanceId) {
        let Some(ended) = self.ended.get(id) else { return };
        let newest = self.ages(&ended.task_id, &ended.cycle).and_then(BTreeMap::last_key_value);
        let success = self.succeeded.get(&ended.task_id).and_then(|c| c.get(&ended.cycle));
        let stands_for_its_cycle = newest.is_some_and(|(_, newest)| newest == id)
            || success.is_some_and(|(_, success)| success == id);
        let bound = self.bound_to.contains_key(id);
        if stands_for_its_cycle || bound || may_be_retried(ended.state) {
            return;
        }
        if let Some(ended) = self.ended.remove(id) {
            let age = (ended.scheduled_time, ended.created_seq);
            self.forget_age(&ended.task_id, &ended.cycle, age);
        }
    }

    fn forget_age(&mut self, task: &TaskId, cycle: &Cycle, age: Age) {
        remove(&mut self.by_cycle, task, |dates| {
            remove(dates, cycle.date(), |cycles| {
                remove(cycles, cycle, |ages| {
                    ages.remove(&age);
                    ages.is_empty()
                });
                cycles.is_empty()
            });
            dates.is_empty()
        });
    }

    fn index(&mut self, i: &Instance) {
        let age = (i.scheduled_time, i.created_seq);
        let dates = self.by_cycle.entry(i.task_id.clone()).or_default();
        let cycles = dates.entry(i.cycle.date().to_owned()).or_default();
        let ages = cycles.entry(i.cycle.clone()).or_default();
        if let Some((newest, id)) = ages.last_key_value()
            && *newest < age
        {
            // It is the newest no more.
            self.loose.insert(id.clone());
        }
        ages.insert(age, i.instance_id.clone());
        if let Some(key) = &i.dedup_key {
            let key = (i.task_id.base().to_owned(), key.clone());
            if i.is_open() || i.state == InstanceState::Succeeded {
                // Who came first keeps it; `admit` and the makers of instances ask before.
                self.dedup.entry(key).or_insert_with(|| i.instance_id.clone());
            } else if self.dedup.get(&key) == Some(&i.instance_id) {
                self.dedup.remove(&key);
            }
        }
        let open_of = self.open_of.entry(i.task_id.clone()).or_default();
        open_of.insert(i.created_seq, i.instance_id.clone());
        self.bind(i);
        if let Some(path) = i.awaited_file() {
            let awaiting = self.awaiting_file.entry(path.to_owned()).or_default();
            awaiting.insert(i.instance_id.clone());
        }
    }

    fn bind(&mut self, i: &Instance) {
        for upstream in i.edges.iter().filter_map(|e| e.instance_id.as_ref()) {
            let bound = self.bound_to.entry(upstream.clone()).or_default();
            bound.insert(i.instance_id.clone());
        }
    }

    /// Takes all of an instance's entries out but its place among its cycle's ages and its key.
    fn unindex_open(&mut self, i: &Instance) {
        remove(&mut self.open_of, &i.task_id, |m| {
            m.remove(&i.created_seq);
            m.is_empty()
        });
        for edge in &i.edges {
            if let Some(upstream) = &edge.instance_id {
                remove(&mut self.bound_to, upstream, |s| {
                    s.remove(&i.instance_id);
                    s.is_empty()
                });
            }
        }
        if let Some(path) = i.awaited_file() {
            remove(&mut self.awaiting_file, path, |ids| {
                ids.remove(&i.instance_id);
                ids.is_empty()
            });
        }
    }

    fn unindex(&mut self, i: &Instance) {
        self.unindex_open(i);
        self.forget_age(&i.task_id, &i.cycle, (i.scheduled_time, i.created_seq));
    }
}
