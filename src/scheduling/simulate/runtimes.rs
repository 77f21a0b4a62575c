//! How long a simulated attempt takes, and how it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::time::Duration;

use crate::model::event::{Outcome, TaskResult};
use crate::model::id::TaskId;
use crate::model::instance::InstanceState;
use crate::model::simulation::{TaskHistory, quantile};
use crate::model::spec::TaskSpec;

/// What is known and assumed of tasks' attempts.
pub(super) struct Runtimes {
    history: BTreeMap<TaskId, TaskHistory>,
    percentile: u8,
    assume: Duration,
    assume_of: BTreeMap<TaskId, Duration>,
    /// Tasks whose attempts took as long as was assumed for all without a history.
    assumed: BTreeSet<TaskId>,
}

/// One attempt to come.
pub(super) struct Course {
    pub(super) length: Duration,
    pub(super) outcome: Outcome,
    pub(super) result: TaskResult,
}

impl Runtimes {
    pub(super) fn new(
        history: Vec<TaskHistory>,
        percentile: u8,
        assume: Duration,
        assume_of: BTreeMap<TaskId, Duration>,
    ) -> Self {
        let history = history.into_iter().map(|h| (h.task_id.clone(), h)).collect();
        Self { history, percentile, assume, assume_of, assumed: BTreeSet::new() }
    }

    /// The course of an attempt whose instance has failed `faults` times by its own fault and, if
    /// it is on already, for so long as `on_for`.
    ///
    /// It ends as most instances of its task did: if they mostly succeeded after some failures,
    /// it first fails as often. What would take longer than its definition allows is ended then.
    pub(super) fn course(&mut self, spec: &TaskSpec, faults: u32, on_for: Duration) -> Course {
        let task = &spec.task_id;
        let history = self.history.get(task).or_else(|| self.of_another_version(task));
        let end = match history {
            Some(h) if h.outcome == InstanceState::Succeeded && faults < h.failures => {
                InstanceState::Failed
            }
            Some(h) => h.outcome,
            None => InstanceState::Succeeded,
        };
        let good = end == InstanceState::Succeeded;
        let samples = history.map(|h| if good { &h.succeeded_ms } else { &h.failed_ms });
        let usual = samples.and_then(|ms| {
            let usual = Duration::from_millis(quantile(ms, self.percentile)?);
            // One that is on for longer than usual is like those that took longer still.
            let longer = ms.iter().map(|ms| Duration::from_millis(*ms)).find(|ms| *ms > on_for);
            Some(if on_for < usual { usual } else { longer.unwrap_or(on_for) })
        });
        let code = history.and_then(|h| h.error_code.clone());
        let output = history.and_then(|h| h.output.clone());
        let length = match (self.assume_of.get(task), usual) {
            (Some(said), _) => *said,
            (None, Some(usual)) => usual,
            (None, None) => {
                self.assumed.insert(task.clone());
                self.assume
            }
        };
        let mut result = TaskResult::default();
        let outcome =
            if spec.timeout.is_some_and(|most| length >= most) || end == InstanceState::Timeout {
                Outcome::TimedOut
            } else if good {
                result.output = output;
                Outcome::Exited { code: 0 }
            } else {
                result.error_code = code;
                Outcome::Exited { code: 1 }
            };
        let length = spec.timeout.map_or(length, |most| length.min(most)).max(on_for);
        Course { length, outcome, result }
    }

    /// A new version is taken to do as the newest other one of its task did.
    fn of_another_version(&self, task: &TaskId) -> Option<&TaskHistory> {
        let prefix = format!("{}.v", task.base());
        let from = (Included(prefix.as_str()), Unbounded);
        let near = self.history.range::<str, _>(from).map(|(_, history)| history);
        near.take_while(|h| h.task_id.as_str().starts_with(&prefix))
            .filter(|h| h.task_id.base() == task.base())
            .max_by_key(|h| h.task_id.version())
    }

    /// Tasks whose attempts took as long as was assumed for all without a history.
    pub(super) fn into_assumed(self) -> Vec<TaskId> {
        self.assumed.into_iter().collect()
    }
}
