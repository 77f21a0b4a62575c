//! Cycles in which tasks fired without making an instance (docs/waves.md, rule 7), as an index
//! over their rows.

use std::collections::{BTreeMap, BTreeSet};

use super::instances::{looked_for, remove};
use crate::model::cycle::{Cycle, Lag};
use crate::model::empty_cycle::EmptyCycle;
use crate::model::id::TaskId;
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
