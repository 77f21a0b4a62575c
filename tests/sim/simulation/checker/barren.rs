//! Cycles in which the upstream fired and made no instance (docs/waves.md, rule 7).
//!
//! Which of them are known at a time (the newest 256, none that a clock that was ahead went past) is
//! taken from the rows; that each tells of a fire is recomputed, that none is left out is not.

use jiff::tz::TimeZone;

use super::{Batch, Checker, Row, Rows, TaskId, Verdict, ensure, in_force, instances};
use crate::model::cycle::{Cycle, CycleRule, CycleUnit};
use crate::model::id::InstanceId;
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{TaskSpec, TriggerKind};
use crate::model::time::Timestamp;

/// A task's cycles: a run for what only comes from outside, else a day.
fn rule(spec: &TaskSpec) -> CycleRule {
    let outside = |t: &TriggerKind| {
        matches!(t, TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_))
    };
    let is_run = !spec.triggers.is_empty() && spec.triggers.iter().all(|t| outside(&t.when));
    spec.cycle.unwrap_or(if is_run { CycleRule::RUN } else { CycleRule::DAY })
}

impl Checker {
    /// Notes the cycles of fires that made nothing, one by one.
    pub(super) fn barren(&mut self, fire: &Fire, rows: &Rows) {
        let made = [FireOutcome::Instance, FireOutcome::Duplicate, FireOutcome::RolledOutElsewhere];
        if made.contains(&fire.outcome) || fire.instance_id.is_some() {
            return;
        }
        let Some(spec) = in_force(rows, &fire.task_id) else { return };
        let rule = rule(spec);
        if rule.unit == CycleUnit::Run {
            return;
        }
        let period = fire.trigger.strip_prefix("every:").and_then(|period| period.parse().ok());
        let period: i64 = period.unwrap_or(i64::MAX / 2);
        let cycles = self.barren.entry(fire.task_id.clone()).or_default();
        let mut at = fire.from.as_millis();
        while at <= fire.to.as_millis() {
            let nobody = InstanceId::from_text("");
            cycles.insert(Cycle::of(Timestamp::from_millis(at), &TimeZone::UTC, rule, &nobody));
            at = at.saturating_add(period);
        }
        self.marks.hit("a fire made nothing");
    }

    /// A cycle that is noted as empty had a fire that made nothing.
    pub(super) fn empty_cycles_are_true(&self, batch: &Batch) -> Verdict {
        for row in batch.rows.values().flatten() {
            if let Row::EmptyCycle(empty) = row {
                let fired = self.barren.get(&empty.task_id);
                ensure(fired.is_some_and(|cycles| cycles.contains(&empty.cycle)), || {
                    format!("noted as empty without such a fire: {empty:?}")
                })?;
            }
        }
        Ok(())
    }

    /// Whether the upstream had fires of the cycle and has no instance of it.
    pub(super) fn makes_nothing(rows: &Rows, cycle: &Cycle, upstream: &TaskId) -> bool {
        let fired = rows.values().any(|row| match row {
            Row::EmptyCycle(empty) => empty.task_id == *upstream && empty.cycle.matches(cycle),
            _ => false,
        });
        fired && !instances(rows).any(|i| i.task_id == *upstream && i.cycle.matches(cycle))
    }
}
