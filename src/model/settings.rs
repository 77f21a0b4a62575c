//! What of the configuration the decisions depend on.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::id::{ExecutorId, QueueName};
use super::request::StopMode;
use super::time::millis;

/// The part of the configuration that the core and the executors' environment need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Zone of tasks that name none; an IANA name.
    pub timezone: String,
    /// Executors, at least one.
    pub executors: Vec<ExecutorSettings>,
    /// Queues; `default` is always among them.
    pub queues: Vec<QueueSettings>,
    /// Types beside the built-in ones. Not told: their environment may hold what is secret.
    #[serde(skip)]
    pub task_types: BTreeMap<String, TaskType>,
    /// Running instances per owner.
    pub owner_quota: BTreeMap<String, u32>,
    /// Days that finished instances are kept.
    pub retention_days: u32,
    /// Finished instances kept per task.
    pub retention_instances: u64,
    /// What a stop does with running tasks.
    pub on_stop: StopMode,
    /// Period of an executor's heartbeat.
    #[serde(rename = "heartbeatMs", with = "millis")]
    pub heartbeat: Duration,
}

/// One executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorSettings {
    /// Its id.
    pub id: ExecutorId,
    /// Types it takes; `*`: all.
    pub task_types: Vec<String>,
    /// Labels that tasks may ask for.
    pub labels: BTreeMap<String, String>,
    /// Attempts at a time.
    pub slots: u32,
}

impl ExecutorSettings {
    /// Whether it takes a task of this type that asks for these labels.
    #[must_use]
    pub fn takes(&self, task_type: &str, labels: &BTreeMap<String, String>) -> bool {
        self.task_types.iter().any(|t| t == "*" || t == task_type)
            && labels.iter().all(|(k, v)| self.labels.get(k) == Some(v))
    }
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueSettings {
    /// Its name.
    pub name: QueueName,
    /// Its share of the slots.
    pub weight: u32,
    /// Running instances at a time; `None`: unlimited.
    pub max_running: Option<u32>,
}

/// A task type from the configuration: types are data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskType {
    /// The argument vector, placeholders allowed (`{handler}` and the rest).
    pub run: Vec<super::template::Template>,
    /// Environment added to each task of this type.
    pub env: BTreeMap<String, super::template::Template>,
}
