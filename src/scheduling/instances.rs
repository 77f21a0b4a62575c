//! The instances that the core needs: open ones in full, ended ones as far as an edge may still
//! bind to them.
//!
//! An ended instance stays as a digest while it is the newest of its task and cycle, or the newest
//! there that SUCCEEDED, while a person may still have it tried again, or while one that is open or
//! may be again is bound to it. All indexes are derived from the rows: loading the rows anew gives
//! an equal table.

mod change;
mod index;
mod outputs;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    open: BTreeMap<InstanceId, Arc<Instance>>,
    ended: BTreeMap<InstanceId, Ended>,
    /// Per task, date and cycle, oldest first.
    by_cycle: BTreeMap<TaskId, BTreeMap<String, Cycles>>,
    /// The newest of each task and cycle that SUCCEEDED. Not of runs: each is a cycle by itself,
    /// which nobody fills in later.
    succeeded: BTreeMap<TaskId, BTreeMap<Cycle, (Age, InstanceId)>>,
    /// Open instances of a task in the order of their creation.
    open_of: BTreeMap<TaskId, BTreeMap<u64, InstanceId>>,
    /// Instances that an edge binds to the key, with the edge's place among theirs: open ones, and
    /// those that may be tried again.
    bound_to: BTreeMap<InstanceId, BTreeSet<(InstanceId, usize)>>,
    /// PENDING and BLOCKED instances with an edge that is open or broken.
    waiting: Waiting,
    /// Instances that no attempt has been made of yet, by the file that they were made for.
    awaiting_file: BTreeMap<String, BTreeSet<InstanceId>>,
    /// Key taken by whom, per base id; open and succeeded ones only.
    dedup: BTreeMap<(String, String), InstanceId>,
    /// Of waiting instances, the edge that decided last. Only a hint: it is not compared.
    deciding: BTreeMap<InstanceId, usize>,
    /// Instances that lost an edge since the last [`InstanceTable::settle`].
    loose: BTreeSet<InstanceId>,
}

impl InstanceTable {
    // Reading

    /// An open instance, or one that ended in this turn.
    pub(super) fn get(&self, id: &InstanceId) -> Option<&Instance> {
        self.open.get(id).map(Arc::as_ref)
    }

    /// The same, to be kept.
    pub(super) fn shared(&self, id: &InstanceId) -> Option<&Arc<Instance>> {
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
        self.open.values().map(Arc::as_ref)
    }

    /// The same, to be kept.
    pub(super) fn shared_open(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.open.values()
    }

    /// Open instances of a task, oldest first.
    pub(super) fn open_of(&self, task: &TaskId) -> impl Iterator<Item = &Instance> {
        self.open_of.get(task).into_iter().flat_map(BTreeMap::values).filter_map(|id| self.get(id))
    }

    /// Instances bound to this one: open ones, and those that may be tried again.
    pub(super) fn bound_to(&self, id: &InstanceId) -> Vec<InstanceId> {
        let mut bound: Vec<InstanceId> = self.edges_to(id).map(|(id, _)| id.clone()).collect();
        bound.dedup();
        bound
    }

    /// The edges that are bound to this one: whose, and which of them.
    pub(super) fn edges_to(&self, id: &InstanceId) -> impl Iterator<Item = &(InstanceId, usize)> {
        self.bound_to.get(id).into_iter().flatten()
    }

    /// The edge that decided when all edges of an instance were looked at last. A hint, so that not
    /// all are looked at each time one of their upstreams ends.
    pub(super) fn deciding(&self, id: &InstanceId) -> Option<usize> {
        self.deciding.get(id).copied()
    }

    /// Instances made for this file that no attempt has been made of yet.
    pub(super) fn awaiting_file(&self, path: &str) -> impl Iterator<Item = &Instance> {
        let ids = self.awaiting_file.get(path).into_iter().flatten();
        ids.filter_map(|id| self.get(id))
    }

    /// Open instances of a task and cycle, oldest first.
    pub(super) fn open_in(&self, task: &TaskId, cycle: &Cycle) -> impl Iterator<Item = &Instance> {
        let ids = self.ages(task, cycle).into_iter().flat_map(BTreeMap::values);
        ids.filter_map(|id| self.get(id)).filter(|i| i.is_open())
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
        let open = self.get(id).map(is_backfill);
        open.or_else(|| self.ended.get(id).map(|e| e.is_backfill)).unwrap_or(false)
    }

    pub(super) fn cycle_of(&self, id: &InstanceId) -> Option<&Cycle> {
        let open = self.open.get(id).map(|i| &i.cycle);
        open.or_else(|| self.ended.get(id).map(|e| &e.cycle))
    }

    /// The runtime parameters of an instance, to be kept.
    pub(super) fn params_of(&self, id: &InstanceId) -> Option<&Arc<JsonMap>> {
        let open = self.get(id).map(|i| &i.runtime_params);
        open.or_else(|| self.ended.get(id).map(|e| &e.runtime_params))
    }

    /// Parameters and output of an instance.
    pub(super) fn result_of(&self, id: &InstanceId) -> Option<(&JsonMap, Option<&Value>)> {
        let open = self.open.get(id).map(|i| (&*i.runtime_params, i.output.as_ref()));
        open.or_else(|| self.ended.get(id).map(|e| (&*e.runtime_params, e.output.as_ref())))
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
        let open = self.get(id).map(last);
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
    pub(super) fn put(&mut self, new: &Arc<Instance>) {
        let id = new.instance_id.clone();
        let stood = self.standing(&id);
        self.index_key(new);
        let waits_anew = match self.open.insert(id.clone(), Arc::clone(new)) {
            Some(old) => self.reindex(&old, new),
            None => {
                self.ended.remove(&id);
                self.index(new);
                true
            }
        };
        if waits_anew {
            self.file(&id);
        }
        self.refile_bound(&id, stood);
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
                self.ended.insert(id.clone(), ended(&instance));
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
}
