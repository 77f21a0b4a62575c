//! Giving up a slot to one of a higher level that lacks nothing else (requirement D4; design,
//! 'Order').

use super::lent::Lent;
use super::{Checker, Instance, InstanceId, Reason, Rows, Running, Verdict, ensure, instance};
use crate::model::id::ExecutorId;

/// Most times that one gives way.
pub(super) const PREEMPTIONS: u32 = 3;

impl Checker {
    /// Whether what an instance runs may be ended for another.
    pub(super) fn may_give_way(&self, i: &Instance, rows: &Rows) -> Result<bool, String> {
        let spec = self.spec(rows, i)?;
        Ok(spec.preemptible && spec.may_run_again())
    }

    /// Running, not asked to end, not frozen, and not too often a victim.
    fn victims<'a>(
        &'a self,
        on: &'a ExecutorId,
        rows: &'a Rows,
    ) -> impl Iterator<Item = &'a Instance> {
        let rows_of = self.running.iter().filter_map(|id| instance(rows, id));
        rows_of.filter(move |i| {
            let seen = self.seen.get(&i.instance_id);
            i.state == Running
                && i.executor_id.as_ref() == Some(on)
                && i.paused.is_none()
                && i.stopping.is_none()
                && seen.is_some_and(|s| !s.asked_to_end && s.preemptions < PREEMPTIONS)
                && self.may_give_way(i, rows) == Ok(true)
        })
    }

    /// Whether a READY one lacks a slot on this executor and nothing else, once all that is being
    /// ended has ended.
    fn lacks_a_slot_on(&self, id: &InstanceId, on: &ExecutorId, rows: &Rows) -> bool {
        let Some(i) = instance(rows, id) else { return false };
        let Ok(spec) = self.spec(rows, i) else { return false };
        let takes = self.settings.executors.iter().find(|e| e.id == *on);
        takes.is_some_and(|e| e.takes(&spec.task_type, &spec.executor_labels))
            && !self.is_paused(i)
            && (self.files_read || i.awaited_file().is_none())
            && !(i.awaits_upstream && self.an_upstream_is_at_it(i))
            && self.full_but_for(i, &spec, |seen| !seen.asked_to_end).is_none()
    }

    /// Who was told to give way in this turn, had to.
    pub(super) fn gave_way_for_a_reason(&mut self, rows: &Rows) -> Verdict {
        let lent = self.lent(rows);
        for id in &self.gives_way {
            let Some(victim) = instance(rows, id).filter(|i| i.state == Running) else { continue };
            self.marks.hit("told to give up its slot");
            ensure(victim.reason == Some(Reason::Cancelling), || format!("{id}: {victim:?}"))?;
            ensure(self.may_give_way(victim, rows)?, || format!("{id} need not give way"))?;
            let on = victim.executor_id.as_ref().ok_or("runs nowhere")?;
            let level = self.effective(victim, &lent).level();
            // Or to one that gives way itself, and could go on here.
            let gives_way = |id: &&InstanceId| {
                *id != &victim.instance_id && self.seen.get(*id).is_some_and(|s| s.preempted)
            };
            let others = self.running.iter().filter(gives_way);
            let higher = self.ready.iter().chain(others).any(|id| {
                let row = instance(rows, id);
                row.is_some_and(|row| self.effective(row, &lent).level() < level)
                    && self.lacks_a_slot_on(id, on, rows)
            });
            ensure(higher, || format!("{id} of level {level:?} gives way to nobody"))?;
            self.is_the_lowest(victim, on, &lent, rows)?;
        }
        self.somebody_gives_way(&lent, rows)
    }

    /// The lowest, then youngest, goes. (In queues that share by level, one that had its turn stays.)
    fn is_the_lowest(
        &self,
        victim: &Instance,
        on: &ExecutorId,
        lent: &Lent,
        rows: &Rows,
    ) -> Verdict {
        if self.settings.queues.iter().any(|q| self.weights_of_levels(&q.name).is_some()) {
            return Ok(());
        }
        let standing = |i: &Instance| (self.effective(i, lent), i.lease().map(|lease| lease.0));
        let mine = standing(victim);
        let lower = self.victims(on, rows).find(|other| standing(other) > mine);
        ensure(lower.is_none(), || {
            format!("{} at {mine:?} gives way before {lower:?}", victim.instance_id)
        })
    }

    /// Where all that wait lack only a slot, and are of a higher level than one that gives way,
    /// somebody does.
    fn somebody_gives_way(&mut self, lent: &Lent, rows: &Rows) -> Verdict {
        if !self.opened || self.stopping || self.running.iter().any(|id| self.is_ending(id)) {
            return Ok(());
        }
        for executor in &self.settings.executors {
            if !self.connected.contains(executor.id.as_str()) {
                continue;
            }
            for victim in self.victims(&executor.id, rows) {
                let level = self.effective(victim, lent).level();
                let waiting = || self.ready.iter().filter_map(|id| instance(rows, id));
                let is_clear = waiting().all(|i| {
                    self.effective(i, lent).level() < level
                        && self.lacks_a_slot_on(&i.instance_id, &executor.id, rows)
                });
                ensure(!is_clear || self.ready.is_empty(), || {
                    format!("{} keeps its slot from all that wait", victim.instance_id)
                })?;
            }
        }
        Ok(())
    }

    fn is_ending(&self, id: &InstanceId) -> bool {
        self.seen.get(id).is_some_and(|seen| seen.asked_to_end)
    }
}
