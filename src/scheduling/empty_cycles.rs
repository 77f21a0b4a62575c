//! Cycles in which tasks fired without making an instance (docs/waves.md, rule 7), as an index
//! over their rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::agenda::Due;
use super::instances::{looked_for, remove};
use super::state::State;
use crate::model::cycle::{Cycle, Lag};
use crate::model::empty_cycle::EmptyCycle;
use crate::model::id::TaskId;
use crate::model::settings;
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;

/// The empty cycles of all tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EmptyCycles {
    /// Per task and date.
    of: BTreeMap<TaskId, BTreeMap<String, BTreeMap<Cycle, EmptyCycle>>>,
    /// Per task, by the last fire that made nothing.
    by_age: BTreeMap<TaskId, BTreeSet<(Timestamp, Cycle)>>,
}

impl EmptyCycles {
    pub(super) fn get(&self, task: &TaskId, cycle: &Cycle) -> Option<&EmptyCycle> {
        self.of.get(task)?.get(cycle.date())?.get(cycle)
    }

    /// All of them.
    pub(super) fn rows(&self) -> impl Iterator<Item = &EmptyCycle> {
        self.of.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }

    /// Those of a task.
    pub(super) fn of(&self, task: &TaskId) -> impl Iterator<Item = &EmptyCycle> {
        let dates = self.of.get(task).into_iter().flat_map(BTreeMap::values);
        dates.flat_map(BTreeMap::values)
    }

    /// The newest of any of these tasks that an edge of an instance of this cycle looks for.
    pub(super) fn newest(
        &self,
        tasks: &[TaskId],
        cycle: &Cycle,
        lag: Option<&Lag>,
    ) -> Option<&EmptyCycle> {
        let dates = tasks.iter().filter_map(|task| self.of.get(task));
        let found = dates.flat_map(|dates| looked_for(dates, cycle, lag));
        found.map(|(_, empty)| empty).max_by_key(|empty| empty.last)
    }

    /// The oldest of a task, if it has more than `most`.
    pub(super) fn oldest_beyond(&self, task: &TaskId, most: usize) -> Option<&Cycle> {
        let ages = self.by_age.get(task).filter(|ages| ages.len() > most)?;
        ages.first().map(|(_, cycle)| cycle)
    }

    pub(super) fn put(&mut self, empty: EmptyCycle) {
        self.remove(&empty.task_id, &empty.cycle);
        let ages = self.by_age.entry(empty.task_id.clone()).or_default();
        ages.insert((empty.last, empty.cycle.clone()));
        let dates = self.of.entry(empty.task_id.clone()).or_default();
        let cycles = dates.entry(empty.cycle.date().to_owned()).or_default();
        cycles.insert(empty.cycle.clone(), empty);
    }

    pub(super) fn remove(&mut self, task: &TaskId, cycle: &Cycle) -> Option<EmptyCycle> {
        let mut removed = None;
        remove(&mut self.of, task, |dates| {
            remove(dates, cycle.date(), |cycles| {
                removed = cycles.remove(cycle);
                cycles.is_empty()
            });
            dates.is_empty()
        });
        if let Some(old) = &removed {
            remove(&mut self.by_age, task, |ages| {
                ages.remove(&(old.last, cycle.clone()));
                ages.is_empty()
            });
        }
        removed
    }
}

impl State {
    /// Puts in a cycle without an instance, new or changed.
    pub(super) fn index_empty_cycle(&mut self, empty: EmptyCycle) {
        self.unindex_empty_cycle(&empty.task_id, &empty.cycle);
        let due = Due::ForgetCycle(empty.task_id.clone(), empty.cycle.clone());
        self.agenda.add(self.forget_cycle_at(empty.last), due);
        self.empty_cycles.put(empty);
    }

    /// Takes it out; says whether it was there.
    pub(super) fn unindex_empty_cycle(&mut self, task: &TaskId, cycle: &Cycle) -> bool {
        let Some(old) = self.empty_cycles.remove(task, cycle) else { return false };
        let due = Due::ForgetCycle(old.task_id, old.cycle);
        self.agenda.remove(self.forget_cycle_at(old.last), due);
        true
    }

    /// How long anything of a task may wait, and is kept.
    pub(super) fn retention(&self, spec: Option<&TaskSpec>) -> Duration {
        let own = spec.and_then(|spec| spec.retention).and_then(|retention| retention.days);
        own.map_or_else(|| self.settings.retention(), settings::days)
    }

    /// Until when a fire without an instance is remembered: as long as what ended is. Only a task whose
    /// own `retention.days` is longer may wait on, then as for a cycle that has not come.
    pub(super) fn forget_cycle_at(&self, fired: Timestamp) -> Timestamp {
        fired.plus(self.settings.retention())
    }
}
