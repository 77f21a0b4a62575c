//! Fires: every nominal time in one row of the ledger, every event and end one row per listener.

use std::collections::{BTreeMap, BTreeSet};

use super::{Batch, Checker, Record, Row, Rows, TaskId, TaskSpec, Verdict, ensure, in_force};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::TriggerKind;

/// A stretch of time in which a fixed-rate trigger was in force: after `from`, up to `to`.
#[derive(Debug, Clone)]
pub(super) struct Span {
    period: i64,
    from: i64,
    to: Option<i64>,
}

impl Checker {
    pub(super) fn triggers(&mut self, task: &TaskId, spec: Option<&TaskSpec>, at: i64) {
        let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
        for trigger in spec.iter().flat_map(|s| &s.triggers) {
            if let TriggerKind::Every(t) = &trigger.when {
                wanted.insert(trigger.key(), i64::try_from(t.period.as_millis()).unwrap_or(1));
            }
        }
        for ((of, key), spans) in &mut self.spans {
            if of == task
                && !wanted.contains_key(key)
                && let Some(last) = spans.last_mut()
            {
                last.to = last.to.or(Some(at));
            }
        }
        for (key, period) in wanted {
            let spans = self.spans.entry((task.clone(), key)).or_default();
            if spans.last().is_none_or(|s| s.to.is_some()) {
                spans.push(Span { period, from: at, to: None });
            }
        }
    }

    pub(super) fn fire(&mut self, fire: &Fire) -> Verdict {
        self.marks.hit(match fire.outcome {
            FireOutcome::Instance => "fire: instance",
            FireOutcome::SkippedOverlap => "fire: skipped for overlap",
            FireOutcome::Missed => "fire: missed",
            FireOutcome::Coalesced => "fire: coalesced",
            FireOutcome::Paused => "fire: paused",
            FireOutcome::Disabled => "fire: disabled",
            FireOutcome::Unresolved => "fire: unresolved",
            FireOutcome::RejectedParams => "fire: parameters refused",
            FireOutcome::Duplicate => "fire: duplicate",
            FireOutcome::RolledOutElsewhere => "fire: rolled out elsewhere",
        });
        let Some(period) = fire.trigger.strip_prefix("every:") else { return Ok(()) };
        let period: i64 = period.parse().map_err(|e| format!("{fire:?}: {e}"))?;
        let (from, to) = (fire.from.as_millis(), fire.to.as_millis());
        ensure(from % period == 0 && to % period == 0 && from <= to && fire.count > 0, || {
            format!("not nominal: {fire:?}")
        })?;
        if fire.count == 1 && fire.outcome == FireOutcome::Instance {
            let key = (fire.task_id.clone(), fire.trigger.clone(), from);
            let fresh = self.single.insert(key);
            ensure(fresh, || format!("a second row of one nominal fire: {fire:?}"))?;
        }
        let made = matches!(fire.outcome, FireOutcome::Instance | FireOutcome::Duplicate);
        ensure(made == fire.instance_id.is_some(), || format!("outcome and id: {fire:?}"))?;
        *self.fired.entry(fire.task_id.clone()).or_default() += fire.count;
        Ok(())
    }

    /// Every nominal fire up to now is counted in exactly one row.
    pub(crate) fn ledger(&self, now: i64) -> Verdict {
        let mut nominal: BTreeMap<&TaskId, BTreeSet<i64>> = BTreeMap::new();
        for ((task, _), spans) in &self.spans {
            let times = nominal.entry(task).or_default();
            for span in spans {
                let to = span.to.unwrap_or(now);
                let mut at = (span.from.div_euclid(span.period) + 1) * span.period;
                while at <= to {
                    times.insert(at);
                    at += span.period;
                }
            }
        }
        for (task, times) in nominal {
            let counted = self.fired.get(task).copied().unwrap_or(0);
            ensure(counted == times.len() as u64, || {
                format!("{task} had {} nominal fires, its ledger counts {counted}", times.len())
            })?;
        }
        Ok(())
    }

    /// An event or an end of this turn has one row for each task that listens to it.
    pub(super) fn happenings(&mut self, batch: &Batch, rows: &Rows) -> Verdict {
        let events: Vec<&str> = batch
            .records
            .iter()
            .filter_map(|record| match &record.what {
                Record::Emitted { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let mut due: BTreeMap<(TaskId, String), u64> = BTreeMap::new();
        for row in rows.values() {
            let Row::Task(task) = row else { continue };
            let Some(spec) = in_force(rows, &task.task_id) else { continue };
            let mut listens = |heard: &dyn Fn(&TriggerKind) -> bool| {
                if let Some(trigger) = spec.triggers.iter().find(|t| heard(&t.when)) {
                    *due.entry((task.task_id.clone(), trigger.key())).or_default() += 1;
                }
            };
            for event in &events {
                listens(&|when| matches!(when, TriggerKind::Event(name) if name == event));
            }
            for seen in self.ended.iter().filter_map(|id| self.seen.get(id)) {
                listens(&|when| {
                    matches!(when, TriggerKind::Task(t)
                        if t.task_id == seen.task && t.states.contains(&seen.state))
                });
            }
        }
        let mut told: BTreeMap<(TaskId, String), u64> = BTreeMap::new();
        for record in &batch.records {
            if let Record::Fire(fire) = &record.what
                && (fire.trigger.starts_with("event:") || fire.trigger.starts_with("task:"))
            {
                *told.entry((fire.task_id.clone(), fire.trigger.clone())).or_default() += 1;
            }
        }
        ensure(due == told, || format!("happened for {due:?}, the ledger tells of {told:?}"))
    }
}
