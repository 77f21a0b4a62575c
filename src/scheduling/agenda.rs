//! What is due when: the core's only notion of waiting for time.

use std::collections::BTreeSet;

use crate::model::cycle::Cycle;
use crate::model::id::{InstanceId, TaskId};
use crate::model::record::{ArrivalKey, Target};
use crate::model::time::Timestamp;

/// One thing that becomes due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A time trigger's next nominal fire.
    Fire {
        /// Whose.
        task: TaskId,
        /// The trigger's key.
        trigger: String,
    },
    /// A failed instance's next attempt.
    Retry(InstanceId),
    /// A submitted instance's `--at`.
    NotBefore(InstanceId),
    /// The end of waiting for dependencies.
    DependencyDeadline(InstanceId),
    /// The end of waiting for whatever.
    Expires(InstanceId),
    /// The end of a pause.
    PauseEnds(Target),
    /// A file that was taken has been gone for long enough to be forgotten.
    Forget(ArrivalKey),
    /// A cycle without an instance has been remembered for long enough.
    ForgetCycle(TaskId, Cycle),
    /// An answer has been kept for a repetition for long enough.
    ForgetAnswer(String),
}

/// Everything that is due at some time. Derived from the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Agenda {
    entries: BTreeSet<(Timestamp, Due)>,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Timestamp, due: Due) {
        self.entries.insert((at, due));
    }

    pub(super) fn remove(&mut self, at: Timestamp, due: Due) {
        self.entries.remove(&(at, due));
    }

    /// When the next thing is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.entries.first().map(|(at, _)| *at)
    }

    /// Takes out all that is due at the earliest due time, if that is not after `now`.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<(Timestamp, Vec<Due>)> {
        let at = self.next().filter(|at| *at <= now)?;
        let mut due = Vec::new();
        while let Some((when, _)) = self.entries.first()
            && *when == at
            && let Some((_, entry)) = self.entries.pop_first()
        {
            due.push(entry);
        }
        Some((at, due))
    }
}
