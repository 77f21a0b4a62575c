//! What a simulation starts from: what the scheduler remembers, and how tasks did before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::id::{LogSeq, TaskId};
use crate::model::instance::{Attempt, Instance, InstanceState};
use crate::model::record::Row;
use crate::model::settings::Settings;
use crate::model::time::Timestamp;

/// What a simulation starts from. It is what a daemon would load that starts now, and so what the
/// core makes of it is what that daemon would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Basis {
    /// As of when.
    pub at: Timestamp,
    /// What of the configuration the decisions depend on; task types' commands are left out.
    pub settings: Settings,
    /// Names of task types beside the built-in ones.
    #[serde(default)]
    pub task_types: Vec<String>,
    /// The last log entry.
    pub tip: LogSeq,
    /// The machine's boot.
    pub boot_id: String,
    /// Tasks, their revisions in use, pauses, cursors, open instances and those that edges may
    /// bind to.
    pub rows: Vec<Row>,
    /// How tasks did before; those that never ended have none.
    #[serde(default)]
    pub history: Vec<TaskHistory>,
}

impl Basis {
    /// Where there is no daemon: these settings, and nothing that is remembered. What is due at
    /// `from` is still to come.
    #[must_use]
    pub fn bare(from: Timestamp, settings: Settings) -> Self {
        Self {
            at: from.just_before(),
            task_types: settings.task_types.keys().cloned().collect(),
            settings,
            tip: LogSeq(0),
            boot_id: "simulated".to_owned(),
            rows: Vec::new(),
            history: Vec::new(),
        }
    }
}

/// How a task's last instances did. Attempts that ended by no fault of the task (cancelled,
/// preempted, executor lost) do not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskHistory {
    /// The task.
    pub task_id: TaskId,
    /// How long attempts took that succeeded, in milliseconds, ascending.
    pub succeeded_ms: Vec<u64>,
    /// How long attempts took that did not, in milliseconds, ascending.
    pub failed_ms: Vec<u64>,
    /// How most instances ended: SUCCEEDED, FAILED or TIMEOUT.
    pub outcome: InstanceState,
    /// Attempts that failed before the one that succeeded: the median of those instances.
    pub failures: u32,
    /// How most attempts failed that did.
    pub error_code: Option<String>,
    /// The newest output, for conditions on edges.
    pub output: Option<Value>,
}

/// How attempts end that the task is not to blame for.
const NO_FAULT: [&str; 3] = ["CANCEL_REQUESTED", "PREEMPTED", "EXECUTOR_LOST"];

impl TaskHistory {
    /// The history of a task whose instances that ended for good are these, the newest first.
    /// `None`: no attempt of theirs counts.
    #[must_use]
    pub fn of(task_id: &TaskId, instances: &[Instance]) -> Option<Self> {
        let ended = instances.iter().filter(|i| !i.is_open());
        let mut history = Self {
            task_id: task_id.clone(),
            succeeded_ms: Vec::new(),
            failed_ms: Vec::new(),
            outcome: InstanceState::Succeeded,
            failures: 0,
            error_code: None,
            output: None,
        };
        let mut ends: BTreeMap<InstanceState, usize> = BTreeMap::new();
        let mut failures = Vec::new();
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        for instance in ended {
            let mut failed = 0;
            for (attempt, ms) in instance.attempts.iter().filter_map(timed) {
                match &attempt.error_code {
                    None => history.succeeded_ms.push(ms),
                    Some(code) => {
                        history.failed_ms.push(ms);
                        *codes.entry(code).or_default() += 1;
                        failed += 1;
                    }
                }
            }
            if instance.state == InstanceState::Succeeded {
                failures.push(failed);
            }
            if instance.state != InstanceState::Cancelled {
                *ends.entry(instance.state).or_default() += 1;
            }
            if history.output.is_none() {
                history.output.clone_from(&instance.output);
            }
        }
        if history.succeeded_ms.is_empty() && history.failed_ms.is_empty() {
            return None;
        }
        history.succeeded_ms.sort_unstable();
        history.failed_ms.sort_unstable();
        failures.sort_unstable();
        history.failures = quantile(&failures, 50).unwrap_or(0);
        // Of as many, the first in the order of the states: SUCCEEDED before FAILED before TIMEOUT.
        let most = ends.iter().max_by_key(|(state, n)| (**n, std::cmp::Reverse(**state)));
        history.outcome = most.map_or(InstanceState::Succeeded, |(state, _)| *state);
        let code = codes.iter().max_by_key(|(code, n)| (**n, std::cmp::Reverse(**code)));
        history.error_code = code.map(|(code, _)| (*code).to_owned());
        Some(history)
    }
}

/// An attempt that counts, with its length.
fn timed(attempt: &Attempt) -> Option<(&Attempt, u64)> {
    let length = attempt.finished_at?.since(attempt.started_at?);
    let blameless = attempt.error_code.as_deref().is_some_and(|code| NO_FAULT.contains(&code));
    (!blameless).then(|| (attempt, u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
}

/// The value at or below which so many per cent of the samples lie, by the nearest rank; samples
/// are ascending. `None`: there are none.
#[must_use]
pub(crate) fn quantile<T: Copy>(samples: &[T], percent: u8) -> Option<T> {
    let rank = (samples.len() * usize::from(percent.min(100))).div_ceil(100);
    samples.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fixture;
    use crate::model::id::{ExecutorId, InstanceId, Lease};
    use crate::model::record::Revision;

    /// What goes over the wire comes back as it was: statuses are keys, and keys are texts there.
    #[test]
    fn definitions_with_exit_codes_come_back_as_they_went() {
        let mut spec = fixture::spec(&TaskId::parse("a.t.v1").unwrap());
        spec.exit_codes = BTreeMap::from([(75, "CONN_RESET".to_owned())]);
        let row = Row::Revision(Revision {
            task_id: spec.task_id.clone(),
            revision: 1,
            hash: String::new(),
            loaded_at: Timestamp::from_millis(0),
            file: String::new(),
            uid: None,
            spec: spec.into(),
        });
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row, "{text}");
    }

    /// An instance that ended so, with attempts of these lengths in seconds and error codes.
    fn ended(state: InstanceState, attempts: &[(i64, Option<&str>)]) -> Instance {
        let (task, made) = (TaskId::parse("a.t.v1").unwrap(), Timestamp::from_millis(0));
        let attempts = attempts.iter().map(|(seconds, code)| Attempt {
            attempt: 1,
            lease: Lease(1),
            executor_id: ExecutorId::from("local"),
            boot_id: "boot".into(),
            started_at: Some(made),
            finished_at: Some(Timestamp::from_millis(seconds * 1000)),
            exit_code: None,
            signal: None,
            error_code: code.map(str::to_owned),
            user_ms: None,
            system_ms: None,
            max_rss_bytes: None,
            output_bytes: None,
            frozen_ms: None,
        });
        let attempts = attempts.collect();
        let id = InstanceId::from_text("01a");
        Instance { attempts, ..fixture::instance(id, &task, state, made) }
    }

    fn of(instances: &[Instance]) -> Option<TaskHistory> {
        TaskHistory::of(&TaskId::parse("a.t.v1").unwrap(), instances)
    }

    #[test]
    fn lengths_and_the_usual_end_come_from_what_ended() {
        use InstanceState::{Failed, Succeeded};
        let history = of(&[
            ended(Succeeded, &[(9, Some("CONN_RESET")), (30, None)]),
            ended(Succeeded, &[(10, None)]),
            ended(Succeeded, &[(7, Some("EXIT_1")), (8, Some("CONN_RESET")), (20, None)]),
            ended(Failed, &[(1, Some("CONN_RESET"))]),
        ])
        .unwrap();
        assert_eq!(history.succeeded_ms, [10_000, 20_000, 30_000]);
        assert_eq!(history.failed_ms, [1_000, 7_000, 8_000, 9_000]);
        assert_eq!(history.outcome, Succeeded);
        // 1, 0 and 2 failures before a success.
        assert_eq!(history.failures, 1);
        assert_eq!(history.error_code.as_deref(), Some("CONN_RESET"));
    }

    #[test]
    fn what_the_task_is_not_to_blame_for_does_not_count() {
        use InstanceState::{Cancelled, Succeeded, Timeout};
        let lost = ended(Succeeded, &[(99, Some("EXECUTOR_LOST")), (5, None)]);
        let history = of(&[lost, ended(Cancelled, &[(50, Some("CANCEL_REQUESTED"))])]).unwrap();
        assert_eq!((history.succeeded_ms, history.failed_ms), (vec![5_000], vec![]));
        assert_eq!(history.failures, 0);
        assert_eq!(of(&[ended(Cancelled, &[])]), None);
        let history = of(&[ended(Timeout, &[(60, Some("TIMEOUT"))])]).unwrap();
        assert_eq!(history.outcome, Timeout);
    }

    #[test]
    fn a_quantile_is_the_nearest_rank() {
        let samples: Vec<u64> = (1..=20).collect();
        assert_eq!(quantile(&samples, 50), Some(10));
        assert_eq!(quantile(&samples, 95), Some(19));
        assert_eq!(quantile(&samples, 100), Some(20));
        assert_eq!(quantile(&samples, 1), Some(1));
        assert_eq!(quantile(&[7_u64], 50), Some(7));
        assert_eq!(quantile::<u64>(&[], 50), None);
    }
}
