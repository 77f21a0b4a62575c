//! What becomes of each instance in a simulation, read off the log as it is written.

use std::collections::BTreeMap;

use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::record::{Batch, Fire, FireOutcome, LogRecord, Record, Row};
use crate::model::simulation::{SimulatedAttempt, SimulatedInstance};
use crate::model::time::Timestamp;

/// All instances of a simulation, and all fires that were counted.
pub(super) struct Timeline {
    lives: BTreeMap<InstanceId, Life>,
    /// Nominal fires that made an instance, with the tasks.
    pub(super) fires: BTreeMap<Timestamp, Vec<TaskId>>,
    /// Rows of the ledger that tell of no instance.
    pub(super) skipped: Vec<Fire>,
}

/// One instance.
pub(super) struct Life {
    pub(super) instance: SimulatedInstance,
    pub(super) created_seq: u64,
    /// When it stood READY; without an end: it still does.
    pub(super) waits: Vec<(Timestamp, Option<Timestamp>)>,
}

impl Timeline {
    pub(super) const fn new() -> Self {
        Self { lives: BTreeMap::new(), fires: BTreeMap::new(), skipped: Vec::new() }
    }

    /// Instances so far.
    pub(super) fn len(&self) -> usize {
        self.lives.len()
    }

    /// An instance that was there before.
    pub(super) fn take_over(&mut self, instance: &Instance) {
        let mut life = Life::new(instance);
        life.instance.taken_over = true;
        life.instance.state = instance.state;
        life.instance.reason = instance.reason;
        life.instance.ready_at = instance.ready_at;
        let ready_at = instance.ready_at.unwrap_or(instance.created_at);
        if instance.state == InstanceState::Ready {
            life.waits.push((ready_at, None));
        }
        if let Some(on) = instance.attempts.last().filter(|a| a.finished_at.is_none()) {
            let started_at = on.started_at.unwrap_or(ready_at);
            life.waits.push((ready_at, Some(started_at)));
            life.instance.started_at = Some(started_at);
            life.instance.attempts.push(SimulatedAttempt {
                attempt: on.attempt,
                executor_id: on.executor_id.clone(),
                slot: 0,
                ready_at,
                started_at,
                finished_at: None,
                state: InstanceState::Running,
                error_code: None,
            });
        }
        self.lives.insert(instance.instance_id.clone(), life);
    }

    /// The newest attempt of an instance has this slot.
    pub(super) fn on_slot(&mut self, of: &InstanceId, slot: u32) {
        let life = self.lives.get_mut(of);
        if let Some(attempt) = life.and_then(|life| life.instance.attempts.last_mut()) {
            attempt.slot = slot;
        }
    }

    /// Takes what one turn wrote.
    pub(super) fn take(&mut self, batch: Batch) {
        let Batch { records, rows } = batch;
        for row in rows.values().flatten() {
            if let Row::Instance(i) = row
                && !self.lives.contains_key(&i.instance_id)
            {
                self.lives.insert(i.instance_id.clone(), Life::new(i));
            }
        }
        records.into_iter().for_each(|record| self.record(record));
        // A reason may change without a move.
        for row in rows.values().flatten() {
            if let Row::Instance(i) = row
                && let Some(life) = self.lives.get_mut(&i.instance_id)
            {
                life.instance.reason = i.reason;
            }
        }
    }

    fn record(&mut self, LogRecord { at, what, .. }: LogRecord) {
        if let Record::Fire(fire) = what {
            self.fire(fire);
        } else if let Record::Moved {
            instance_id,
            from,
            to,
            attempt,
            executor_id,
            error_code,
            is_final,
            ..
        } = what
            && let Some(life) = self.lives.get_mut(&instance_id)
        {
            if from == InstanceState::Ready {
                life.waited(at);
            }
            if from == InstanceState::Running {
                life.ended(at, to, error_code);
            }
            if to == InstanceState::Ready {
                life.instance.ready_at = life.instance.ready_at.or(Some(at));
                life.waits.push((at, None));
            }
            if let Some(executor_id) = executor_id {
                let ready_at = life.waits.last().map_or(at, |(since, _)| *since);
                life.instance.started_at = life.instance.started_at.or(Some(at));
                life.instance.attempts.push(SimulatedAttempt {
                    attempt,
                    executor_id,
                    slot: 0,
                    ready_at,
                    started_at: at,
                    finished_at: None,
                    state: to,
                    error_code: None,
                });
            }
            life.instance.state = to;
            life.instance.finished_at = is_final.then_some(at);
        }
    }

    fn fire(&mut self, fire: Fire) {
        match fire.outcome {
            FireOutcome::Instance | FireOutcome::RolledOutElsewhere => {
                self.fires.entry(fire.from).or_default().push(fire.task_id);
            }
            FireOutcome::SkippedOverlap
            | FireOutcome::Missed
            | FireOutcome::Coalesced
            | FireOutcome::Paused
            | FireOutcome::Disabled
            | FireOutcome::Unresolved
            | FireOutcome::RejectedParams
            | FireOutcome::Duplicate => self.skipped.push(fire),
        }
    }

    /// Instances that are made, or still open, at or after a time, in the order of their creation.
    pub(super) fn since(&mut self, from: Timestamp) -> Vec<Life> {
        let mut lives: Vec<Life> = std::mem::take(&mut self.lives).into_values().collect();
        lives.retain(|life| {
            let i = &life.instance;
            i.created_at >= from || i.finished_at.is_none_or(|end| end >= from)
        });
        lives.sort_by_key(|life| life.created_seq);
        lives
    }
}

impl Life {
    fn new(i: &Instance) -> Self {
        let instance = SimulatedInstance {
            instance_id: i.instance_id.clone(),
            task_id: i.task_id.clone(),
            cycle: i.cycle.label().to_owned(),
            trigger: i.trigger.kind().to_owned(),
            scheduled_time: i.scheduled_time,
            queue: i.queue.clone(),
            taken_over: false,
            created_at: i.created_at,
            ready_at: None,
            started_at: None,
            finished_at: None,
            state: InstanceState::Pending,
            reason: None,
            queue_wait_ms: 0,
            deadline: None,
            late: false,
            attempts: Vec::new(),
        };
        Self { instance, created_seq: i.created_seq, waits: Vec::new() }
    }

    fn waited(&mut self, until: Timestamp) {
        if let Some((_, end)) = self.waits.last_mut() {
            *end = Some(until);
        }
    }

    fn ended(&mut self, at: Timestamp, state: InstanceState, error_code: Option<String>) {
        if let Some(attempt) = self.instance.attempts.last_mut() {
            attempt.finished_at = Some(at);
            attempt.state = state;
            attempt.error_code = error_code;
        }
    }
}
