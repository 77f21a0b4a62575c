//! What of the configuration the decisions depend on.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::id::{ExecutorId, QueueName};
use super::priority::Level;
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

impl Settings {
    /// How long finished things are kept that no task says otherwise about.
    #[must_use]
    pub fn retention(&self) -> Duration {
        days(self.retention_days)
    }
}

/// So many days of 24 hours.
#[must_use]
pub const fn days(days: u32) -> Duration {
    Duration::from_secs(days as u64 * 86_400)
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
    /// Who inside the queue goes first.
    pub discipline: Discipline,
}

impl QueueSettings {
    /// A queue of which nothing is configured.
    #[must_use]
    pub const fn plain(name: QueueName) -> Self {
        Self { name, weight: 1, max_running: None, discipline: Discipline::Strict }
    }
}

/// Who inside a queue goes first (requirement D3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Discipline {
    /// The lower priority number, always.
    #[default]
    Strict,
    /// The levels share the queue's slots by these weights.
    Weighted(LevelWeights),
}

impl Discipline {
    /// The name as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "STRICT",
            Self::Weighted(_) => "WEIGHTED",
        }
    }
}

/// The levels' shares of a queue's slots, each at least 1, so that no level starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are those of the levels")]
pub struct LevelWeights {
    pub critical: u32,
    pub high: u32,
    pub normal: u32,
    pub low: u32,
    pub background: u32,
}

impl Default for LevelWeights {
    fn default() -> Self {
        Self { critical: 16, high: 8, normal: 4, low: 2, background: 1 }
    }
}

impl LevelWeights {
    /// A level's share.
    #[must_use]
    pub const fn of(&self, level: Level) -> u32 {
        match level {
            Level::Critical => self.critical,
            Level::High => self.high,
            Level::Normal => self.normal,
            Level::Low => self.low,
            Level::Background => self.background,
        }
    }

    /// The place of a level's share.
    pub const fn of_mut(&mut self, level: Level) -> &mut u32 {
        match level {
            Level::Critical => &mut self.critical,
            Level::High => &mut self.high,
            Level::Normal => &mut self.normal,
            Level::Low => &mut self.low,
            Level::Background => &mut self.background,
        }
    }
}

/// A task type from the configuration: types are data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskType {
    /// The argument vector, placeholders allowed (`{handler}` and the rest).
    pub run: Vec<super::template::Template>,
    /// Environment added to each task of this type.
    pub env: BTreeMap<String, super::template::Template>,
}
