//! What people and programs see: the JSON shapes at the end of the contract.
//!
//! Absent values are null, never left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{ExecutorId, InstanceId, QueueName, TaskId};
use super::instance::{Attempt, Cause, Instance, InstanceState, Pause, Reason};
use super::priority::Priority;
use super::settings::LevelWeights;
use super::spec::{DepType, JsonMap, Strength, TaskSpec};
use super::spec_error::SpecError;
use super::time::Timestamp;

/// An instance as the contract shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract, documented in `Instance`")]
pub struct InstanceView {
    pub instance_id: InstanceId,
    pub task_id: TaskId,
    pub version: u32,
    pub revision: u64,
    pub state: InstanceState,
    pub reason: Option<Reason>,
    pub attempt: u32,
    pub max_attempts: u32,
    pub cycle: String,
    pub date: String,
    pub scheduled_time: Timestamp,
    pub trigger: Cause,
    pub root: InstanceId,
    pub priority: Priority,
    pub effective_priority: Priority,
    pub queue: QueueName,
    pub executor_id: Option<ExecutorId>,
    pub created_at: Timestamp,
    pub ready_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub next_retry_at: Option<Timestamp>,
    pub duration_ms: Option<u64>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub error_code: Option<String>,
    pub message: Option<String>,
    pub static_params: JsonMap,
    pub runtime_params: JsonMap,
    pub output: Option<Value>,
    pub dependencies: Vec<DependencyView>,
    pub degraded: bool,
    pub paused: Option<Pause>,
    pub dedup_key: Option<String>,
    pub attempts: Vec<Attempt>,
}

/// An edge as the contract shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract, documented in `Edge`")]
pub struct DependencyView {
    pub task_id: TaskId,
    pub dep_type: DepType,
    pub strength: Strength,
    pub instance_id: Option<InstanceId>,
    pub state: Option<InstanceState>,
    pub satisfied: bool,
}

/// How the instance stands that an edge is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upstream {
    /// Where it is.
    pub state: InstanceState,
    /// Whether it has ended for good.
    pub is_final: bool,
    /// Whether the outputs that it declares, if any, have been found.
    pub has_data: bool,
}

impl Upstream {
    /// How a stored instance stands.
    #[must_use]
    pub fn of(instance: &Instance) -> Self {
        let has_data = instance.outputs.as_ref().is_none_or(|outputs| outputs.found.is_some());
        Self { state: instance.state, is_final: !instance.is_open(), has_data }
    }

    /// Whether that is enough for an edge.
    #[must_use]
    pub fn satisfies(self, strength: Strength, dep_type: DepType) -> bool {
        match (self.state, strength, dep_type) {
            (InstanceState::Succeeded, _, DepType::Success) => true,
            (InstanceState::Succeeded, _, DepType::DataReady) => self.has_data,
            (_, Strength::Weak, _) => self.is_final,
            (_, Strength::Strong, _) => false,
        }
    }
}

impl InstanceView {
    /// The view of a stored instance; `live` adds what only the core knows, `upstream` how an edge's
    /// instance stands.
    #[must_use]
    pub fn new(
        instance: &Instance,
        live: Option<&Live>,
        upstream: &dyn Fn(&InstanceId) -> Option<Upstream>,
    ) -> Self {
        let i = instance.clone();
        let dependencies = i
            .edges
            .iter()
            .map(|edge| {
                let end = edge.instance_id.as_ref().and_then(upstream);
                // A WEAK edge without an instance that held: a cycle that made none ended it
                // (docs/waves.md, rule 7).
                let ended = edge.instance_id.is_none()
                    && edge.strength == Strength::Weak
                    && i.ready_at.is_some()
                    && !i.degraded;
                let satisfied =
                    end.map_or(ended, |upstream| upstream.satisfies(edge.strength, edge.dep_type));
                DependencyView {
                    task_id: edge.task_id.clone(),
                    dep_type: edge.dep_type,
                    strength: edge.strength,
                    instance_id: edge.instance_id.clone(),
                    state: end.map(|upstream| upstream.state),
                    satisfied,
                }
            })
            .collect();
        let duration = match (i.started_at, i.finished_at) {
            (Some(start), Some(end)) => Some(end.since(start)),
            _ => None,
        };
        Self {
            reason: live.and_then(|l| l.reason).or(i.reason),
            effective_priority: live.map_or(i.priority, |l| l.effective_priority),
            cycle: i.cycle.label().to_owned(),
            date: i.cycle.date().to_owned(),
            duration_ms: duration.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            static_params: (*i.static_params).clone(),
            instance_id: i.instance_id,
            task_id: i.task_id,
            version: i.version,
            revision: i.revision,
            state: i.state,
            attempt: i.attempt,
            max_attempts: i.max_attempts,
            scheduled_time: i.scheduled_time,
            trigger: i.trigger,
            root: i.root,
            priority: i.priority,
            queue: i.queue,
            executor_id: i.executor_id,
            created_at: i.created_at,
            ready_at: i.ready_at,
            started_at: i.started_at,
            finished_at: i.finished_at,
            next_retry_at: i.next_retry_at,
            exit_code: i.exit_code,
            signal: i.signal,
            error_code: i.error_code,
            message: i.message,
            runtime_params: (*i.runtime_params).clone(),
            output: i.output,
            dependencies,
            degraded: i.degraded,
            paused: i.paused,
            dedup_key: i.dedup_key,
            attempts: i.attempts,
        }
    }
}

/// What only the core knows of an open instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Which.
    pub instance_id: InstanceId,
    /// Where it is.
    pub state: InstanceState,
    /// Whether it has ended for good.
    pub is_final: bool,
    /// Why, READY's derived reasons included.
    pub reason: Option<Reason>,
    /// After inheritance.
    pub effective_priority: Priority,
}

/// Whether a task gets instances, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    /// It does.
    Active,
    /// Held by a person.
    Paused,
    /// An earlier revision is in force by a person's rollback.
    Pinned,
    /// `enabled: false`.
    Disabled,
    /// An upstream is unknown.
    Unresolved,
}

/// A task as the contract shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub struct TaskView {
    pub task_id: TaskId,
    pub version: u32,
    pub revision: u64,
    pub created_at: Timestamp,
    pub file: String,
    pub status: TaskStatus,
    /// Upstreams that no file defines.
    pub unresolved: Vec<TaskId>,
    pub paused: Option<Pause>,
    /// A rollback keeps `revision` in force, whatever the file says; `status` may hide it.
    #[serde(default)]
    pub pinned: bool,
    pub owner: String,
    pub task_type: String,
    pub priority: Priority,
    pub queue: QueueName,
    /// A short text of the triggers or of what it waits for.
    pub schedule: String,
    pub next_fire_time: Option<Timestamp>,
    pub last_instance: Option<LastInstance>,
    /// What is wrong with its file now; what is in force is what the file said before.
    #[serde(default)]
    pub spec_errors: Vec<SpecError>,
    pub labels: BTreeMap<String, String>,
    /// In `show` only; null in lists.
    pub spec: Option<std::sync::Arc<TaskSpec>>,
}

/// The newest instance of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub struct LastInstance {
    pub instance_id: InstanceId,
    pub state: InstanceState,
    pub cycle: String,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub error_code: Option<String>,
}

/// The daemon as the contract shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub struct StatusView {
    pub version: String,
    pub pid: u32,
    pub started_at: Timestamp,
    /// Zone of tasks that name none.
    pub timezone: String,
    pub instances: InstanceCounts,
    pub tasks: u64,
    pub queues: Vec<QueueView>,
    pub executors: Vec<ExecutorView>,
    /// Files refused, each error once.
    pub spec_errors: Vec<SpecError>,
    /// Why the daemon cannot do all it should; empty: it can.
    pub degraded: Vec<String>,
    /// A hold on everything.
    pub paused: Option<Pause>,
    /// It is on its way down.
    pub stopping: bool,
}

/// Open instances by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub struct InstanceCounts {
    pub open: u64,
    pub pending: u64,
    pub blocked: u64,
    pub ready: u64,
    pub running: u64,
    pub retrying: u64,
}

/// A queue: the configured ones, and others in which something still waits or runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names speak")]
pub struct QueueView {
    pub name: QueueName,
    pub weight: u32,
    /// `STRICT` or `WEIGHTED`.
    #[serde(default)]
    pub discipline: String,
    /// The shares of the levels, under `WEIGHTED`.
    #[serde(default)]
    pub level_weights: Option<LevelWeights>,
    pub max_running: Option<u32>,
    pub ready: u64,
    pub running: u64,
    pub paused: Option<Pause>,
}

/// An executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names speak")]
pub struct ExecutorView {
    pub executor_id: ExecutorId,
    pub connected: bool,
    pub pid: Option<u32>,
    pub incarnation: Option<u64>,
    pub slots: u32,
    pub running: u32,
    pub task_types: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub last_heartbeat_at: Option<Timestamp>,
    pub load1: Option<f64>,
}

/// A coming fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextFire {
    /// The task.
    pub task_id: TaskId,
    /// When, UTC.
    pub at: Timestamp,
    /// When, in the trigger's zone.
    pub local: String,
    /// The trigger's key.
    pub trigger: String,
    /// What daylight saving does to it, or has dropped since the one before; why it makes nothing.
    pub note: Option<String>,
}

/// What a submission made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Submitted {
    /// The instance; on a dry run the id it would have had.
    pub instance_id: InstanceId,
    /// Other instances of the task that are open in that cycle.
    pub open_in_cycle: Vec<InstanceId>,
    /// The key was seen before: this is what it made then.
    pub repeated: bool,
}

/// What an event made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmitReply {
    /// Instances.
    pub instances: Vec<InstanceId>,
    /// Tasks that listen but refused the parameters.
    pub rejected: Vec<EmitRejection>,
}

/// A task that listens to an event but refused its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmitRejection {
    /// The task.
    pub task_id: TaskId,
    /// Why.
    pub detail: String,
}

/// What a retry came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    /// The instance that was asked about: READY again.
    pub instance_id: InstanceId,
    /// Failed ones below it that are tried again after it (`withDownstream`).
    pub below: Vec<InstanceId>,
    /// Those below it that cannot be tried again.
    pub rejected: Vec<RetryRejection>,
}

/// An instance below a retried one that cannot be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryRejection {
    /// The instance.
    pub instance_id: InstanceId,
    /// Why.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::fixture;
    use crate::model::instance::Edge;
    use crate::model::output::{Found, Outputs};

    /// docs/waves.md, rules 6 and 8.
    #[test]
    fn an_edge_is_satisfied_by_what_it_asks_for() {
        use InstanceState::{Failed, Succeeded};
        let id = |name: &str| TaskId::parse(&format!("{name}.v1")).unwrap();
        let at = Timestamp::default();
        let found = Outputs {
            since: at,
            paths: Vec::new(),
            problem: None,
            found: Some(Found { at, files: Vec::new() }),
        };
        let awaited = Outputs { found: None, ..found.clone() };
        let satisfied = |state, outputs: Option<&Outputs>, strength, dep_type| {
            let instance_id = InstanceId::from_text("up");
            let mut up = fixture::instance(instance_id.clone(), &id("up"), state, at);
            up.outputs = outputs.cloned().map(Arc::new);
            let mut down = fixture::instance(InstanceId::from_text("down"), &id("down"), state, at);
            let (task_id, instance_id) = (up.task_id.clone(), Some(instance_id));
            down.edges = vec![Edge {
                task_id,
                dep_type,
                strength,
                instance_id,
                cycle_offset: 0,
                unanswered: false,
            }]
            .into();
            let view = InstanceView::new(&down, None, &|_| Some(Upstream::of(&up)));
            view.dependencies[0].satisfied
        };
        let (data, strong, weak) = (DepType::DataReady, Strength::Strong, Strength::Weak);
        for strength in [strong, weak] {
            assert!(satisfied(Succeeded, Some(&awaited), strength, DepType::Success));
            assert!(!satisfied(Succeeded, Some(&awaited), strength, data));
            assert!(satisfied(Succeeded, Some(&found), strength, data));
            assert!(satisfied(Succeeded, None, strength, data));
        }
        assert!(satisfied(Failed, None, weak, data));
        assert!(!satisfied(Failed, None, strong, data));
    }
}
