//! The executors of a simulation: they start nothing and report all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::runtimes::{Course, Runtimes};
use crate::model::command::Dispatch;
use crate::model::event::{AttemptRef, Event, Finished, Outcome, Report, Started};
use crate::model::id::{ExecutorId, TaskId};
use crate::model::instance::{Instance, Reason};
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;

/// All executors.
pub(super) struct Hands {
    runtimes: Runtimes,
    on: BTreeMap<AttemptRef, On>,
    /// Ends to come: when, and in the order of the starts.
    ends: BTreeMap<(Timestamp, u64), AttemptRef>,
    slots: BTreeMap<ExecutorId, BTreeSet<u32>>,
    starts: u64,
}

/// One attempt that is on.
struct On {
    executor: ExecutorId,
    slot: u32,
    started_at: Timestamp,
    end: (Timestamp, u64),
    course: Course,
}

impl Hands {
    pub(super) fn new(runtimes: Runtimes) -> Self {
        let (on, ends, slots) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { runtimes, on, ends, slots, starts: 0 }
    }

    /// When the next attempt ends.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.ends.first_key_value().map(|((at, _), _)| *at)
    }

    /// Starts an attempt: its slot, and the report of its start.
    pub(super) fn run(&mut self, dispatch: &Dispatch, now: Timestamp) -> (u32, Event) {
        let faults = dispatch.instance.faults;
        let course = self.runtimes.course(&dispatch.spec, faults, Duration::ZERO);
        let slot = self.put(dispatch.of.clone(), dispatch.executor.clone(), now, course);
        let started = Started { of: dispatch.of.clone(), pid: 1, at: now };
        (slot, report(dispatch.executor.clone(), Report::Started(started)))
    }

    /// Takes up an attempt that was on before; its slot. `None`: it was never begun.
    pub(super) fn take_up(
        &mut self,
        instance: &Instance,
        spec: &TaskSpec,
        now: Timestamp,
    ) -> Option<u32> {
        let attempt = instance.attempts.last()?;
        let of = AttemptRef {
            instance_id: instance.instance_id.clone(),
            attempt: attempt.attempt,
            lease: attempt.lease,
        };
        let started_at = attempt.started_at.unwrap_or(now).min(now);
        let course = self.runtimes.course(spec, instance.faults, now.since(started_at));
        let slot = self.put(of.clone(), attempt.executor_id.clone(), started_at, course);
        if instance.reason == Some(Reason::Frozen)
            && let Some(on) = self.on.get(&of)
        {
            // Stopped by a person, it stays so.
            self.ends.remove(&on.end);
        }
        Some(slot)
    }

    /// What runs on an executor.
    pub(super) fn running(&self, executor: &ExecutorId) -> Vec<AttemptRef> {
        let its = self.on.iter().filter(|(_, on)| on.executor == *executor);
        its.map(|(of, _)| of.clone()).collect()
    }

    /// The report of the next attempt that has ended by now.
    pub(super) fn ended(&mut self, now: Timestamp) -> Option<Event> {
        let ((at, _), of) = self.ends.first_key_value()?;
        if *at > now {
            return None;
        }
        let of = of.clone();
        self.finish(&of, now, None)
    }

    /// Ends an attempt at once; `None`: it is not on.
    pub(super) fn kill(&mut self, of: &AttemptRef, now: Timestamp) -> Option<Event> {
        let outcome = Outcome::Signalled { signal: 15, name: "TERM".to_owned() };
        self.finish(of, now, Some(outcome))
    }

    /// Tasks whose attempts took as long as was assumed for all without a history.
    pub(super) fn into_assumed(self) -> Vec<TaskId> {
        self.runtimes.into_assumed()
    }

    fn put(
        &mut self,
        of: AttemptRef,
        executor: ExecutorId,
        started_at: Timestamp,
        course: Course,
    ) -> u32 {
        self.starts += 1;
        let end = (started_at.plus(course.length), self.starts);
        let taken = self.slots.entry(executor.clone()).or_default();
        let slot = (1..).find(|slot| !taken.contains(slot)).unwrap_or(u32::MAX);
        taken.insert(slot);
        self.ends.insert(end, of.clone());
        self.on.insert(of, On { executor, slot, started_at, end, course });
        slot
    }

    /// `killed`: how it ended, if not by itself.
    fn finish(
        &mut self,
        of: &AttemptRef,
        now: Timestamp,
        killed: Option<Outcome>,
    ) -> Option<Event> {
        let on = self.on.remove(of)?;
        self.ends.remove(&on.end);
        if let Some(taken) = self.slots.get_mut(&on.executor) {
            taken.remove(&on.slot);
        }
        let Course { outcome, result, .. } = on.course;
        let finished = Finished {
            of: of.clone(),
            started_at: Some(on.started_at),
            finished_at: now,
            killed: killed.is_some(),
            outcome: killed.unwrap_or(outcome),
            result,
            user_ms: None,
            system_ms: None,
            max_rss_bytes: None,
            output_bytes: None,
        };
        Some(report(on.executor, Report::Finished(Box::new(finished))))
    }
}

fn report(executor: ExecutorId, report: Report) -> Event {
    Event::ExecutorReport { executor, incarnation: 1, report }
}
