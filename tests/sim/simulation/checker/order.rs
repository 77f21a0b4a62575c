//! Starts: within slots and quotas, where labels and type fit, what is not paused, the first in
//! the queue first; and nothing that can start is left to wait (design, 'Order').

use super::lent::Lent;
use super::{Checker, Instance, LogRecord, Record, Rows, Seen, Target, Verdict, ensure, instance};
use crate::model::priority::Priority;
use crate::model::settings::ExecutorSettings;
use crate::model::spec::TaskSpec;

/// Effective priority, when it became READY, at which log entry.
pub(super) type Place = (Priority, i64, u64);

impl Checker {
    pub(super) fn running(&self, same: impl Fn(&Seen) -> bool) -> u32 {
        let running = self.running.iter().filter_map(|id| self.seen.get(id));
        u32::try_from(running.filter(|seen| same(seen)).count()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_paused(&self, i: &Instance) -> bool {
        let targets = [
            Target::All,
            Target::Queue(i.queue.clone()),
            Target::Task(i.task_id.clone()),
            Target::Instance(i.instance_id.clone()),
        ];
        targets.iter().any(|target| self.paused.contains(target))
    }

    /// A quota that is full.
    pub(super) fn full(&self, i: &Instance, spec: &TaskSpec) -> Option<String> {
        self.full_but_for(i, spec, |_| true)
    }

    /// A quota that is full, if only these count.
    pub(super) fn full_but_for(
        &self,
        i: &Instance,
        spec: &TaskSpec,
        counts: impl Fn(&Seen) -> bool,
    ) -> Option<String> {
        let reached = |max: Option<u32>, running: u32| max.filter(|max| running >= *max);
        let of_task = self.running(|s| s.task == i.task_id && counts(s));
        if let Some(max) = reached(spec.max_concurrent, of_task) {
            return Some(format!("{of_task} of {} run; maxConcurrent is {max}", i.task_id));
        }
        let of_owner = self.running(|s| s.owner == spec.owner && counts(s));
        let max = self.settings.owner_quota.get(&spec.owner).copied();
        if let Some(max) = reached(max, of_owner) {
            return Some(format!("{of_owner} of owner {} run; at most {max}", spec.owner));
        }
        let in_queue = self.running(|s| s.queue == i.queue.as_str() && counts(s));
        let max = self.settings.queues.iter().find(|q| q.name == i.queue);
        let max = reached(max.and_then(|q| q.max_running), in_queue)?;
        Some(format!("{in_queue} of queue {} run; at most {max}", i.queue))
    }

    fn is_free(&self, executor: &ExecutorSettings) -> bool {
        let running = self.running(|s| s.executor.as_deref() == Some(executor.id.as_str()));
        self.connected.contains(executor.id.as_str()) && running < executor.slots
    }

    /// Why a READY instance cannot start now; `None`: it can.
    pub(super) fn held(&self, i: &Instance, spec: &TaskSpec) -> Option<String> {
        if self.is_paused(i) {
            return Some("it is paused".to_owned());
        }
        if !self.files_read && i.awaited_file().is_some() {
            return Some("its file has not been looked at".to_owned());
        }
        if i.awaits_upstream && self.an_upstream_is_at_it(i) {
            return Some("an upstream is tried again before it".to_owned());
        }
        let takes = |e: &&ExecutorSettings| e.takes(&spec.task_type, &spec.executor_labels);
        let mut takers = self.settings.executors.iter().filter(takes);
        self.full(i, spec).or_else(|| {
            let none = !takers.any(|e| self.is_free(e));
            none.then(|| "no executor that takes it is free".to_owned())
        })
    }

    /// The instance as it was when it was READY: its row may be that of its next attempt already.
    pub(super) fn as_it_waited(row: &Instance) -> Instance {
        let attempt = row.attempt.saturating_sub(u32::from(row.state == super::Running));
        Instance { attempt, state: super::Ready, ..row.clone() }
    }

    /// Checks a start before it is counted.
    pub(super) fn may_start(&mut self, record: &LogRecord, rows: &Rows) -> Verdict {
        let Record::Moved { instance_id: id, executor_id, .. } = &record.what else {
            return Ok(());
        };
        self.marks.hit("started");
        ensure(self.opened, || format!("{id} starts before the first reading"))?;
        ensure(!self.stopping, || format!("{id} starts while the daemon stops"))?;
        let row = Self::as_it_waited(instance(rows, id).ok_or("no row")?);
        let spec = self.spec(rows, &row)?;
        let on = executor_id.as_ref().ok_or("starts nowhere")?;
        let on = self.settings.executors.iter().find(|e| e.id == *on).ok_or("starts elsewhere")?;
        ensure(on.takes(&spec.task_type, &spec.executor_labels), || {
            format!("{} does not take {id}: {} {:?}", on.id, spec.task_type, spec.executor_labels)
        })?;
        if let Some(why) = self.full(&row, &spec) {
            return Err(format!("{id} starts although {why}"));
        }
        ensure(self.is_free(on), || {
            format!("{id} starts on {}, which is gone or has no slot of {} left", on.id, on.slots)
        })?;
        if let Some(why) = self.held(&row, &spec) {
            return Err(format!("{id} starts although {why}"));
        }
        self.is_the_first(&row, rows)?;
        self.is_its_turn(&row, rows)?;
        let queue = row.queue.to_string();
        if let Some(seen) = self.seen.get_mut(id) {
            seen.queue = queue;
            seen.owner.clone_from(&spec.owner);
        }
        Ok(())
    }

    /// The place in its queue: effective priority, when it became READY, at which log entry.
    pub(super) fn place(&self, i: &Instance, lent: &Lent) -> Result<Place, String> {
        let seen = self.known(&i.instance_id)?;
        Ok((self.effective(i, lent), seen.ready.0, seen.ready.1))
    }

    /// Nobody of the same queue with a better place could have started.
    fn is_the_first(&mut self, chosen: &Instance, rows: &Rows) -> Verdict {
        let lent = self.lent(rows);
        let mine = self.place(chosen, &lent)?;
        let shares = self.weights_of_levels(&chosen.queue).is_some();
        let mut others = 0;
        for id in self.ready.iter().filter(|id| **id != chosen.instance_id) {
            let Some(row) = instance(rows, id).filter(|i| i.queue == chosen.queue) else {
                continue;
            };
            others += 1;
            let place = self.place(row, &lent)?;
            let other_level = place.0.level() != mine.0.level();
            if place > mine || (shares && other_level) {
                continue;
            }
            let row = Self::as_it_waited(row);
            let spec = self.spec(rows, &row)?;
            ensure(self.held(&row, &spec).is_some(), || {
                format!("{id} at {place:?} was passed over for {} at {mine:?}", chosen.instance_id)
            })?;
        }
        if lent.contains_key(&chosen.instance_id) {
            self.marks.hit("started by a lent priority");
        }
        if others > 0 {
            self.marks.hit("started before others of its queue");
        }
        Ok(())
    }

    /// After a turn nothing that can start waits.
    pub(super) fn nothing_idles(&mut self, rows: &Rows) -> Verdict {
        if !self.opened || self.stopping {
            return Ok(());
        }
        for id in &self.ready {
            let row = instance(rows, id).ok_or_else(|| format!("{id} is READY without a row"))?;
            let spec = self.spec(rows, row)?;
            ensure(self.held(row, &spec).is_some(), || {
                format!(
                    "{id} is READY and left to wait, though nothing holds it: {row:?}; {spec:?}"
                )
            })?;
        }
        if !self.ready.is_empty() {
            self.marks.hit("a turn left something READY");
        }
        Ok(())
    }
}
