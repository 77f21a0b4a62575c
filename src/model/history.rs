//! The read side of the store, as the door sees it.

use super::id::{InstanceId, LogSeq, TaskId};
use super::instance::{Instance, InstanceState};
use super::record::{Fire, LogRecord, Revision};
use super::time::Timestamp;

/// What cannot be read, and why, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store cannot be read: {0}")]
pub struct HistoryError(pub String);

/// Which instances a list wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceFilter {
    /// Any of these; empty: all.
    pub states: Vec<InstanceState>,
    /// Of this task.
    pub task: Option<TaskId>,
    /// Of this cycle's label.
    pub cycle: Option<String>,
    /// Of this queue.
    pub queue: Option<String>,
    /// Made at or after.
    pub since: Option<Timestamp>,
    /// Made strictly before this creation sequence: the next page.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: usize,
}

/// Everything acknowledged can be read here. The calls block; async code uses `spawn_blocking`.
pub trait History: Send + Sync {
    /// One instance.
    ///
    /// # Errors
    /// If the store cannot be read; so for all below.
    fn instance(&self, id: &InstanceId) -> Result<Option<Instance>, HistoryError>;

    /// Ids that begin with `prefix`, at most `limit`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<InstanceId>, HistoryError>;

    /// Instances, newest made first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn instances(&self, filter: &InstanceFilter) -> Result<Vec<Instance>, HistoryError>;

    /// Log entries strictly after `since`, oldest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn records(&self, since: LogSeq, limit: usize) -> Result<Vec<LogRecord>, HistoryError>;

    /// The last log entry's position.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn tip(&self) -> Result<LogSeq, HistoryError>;

    /// Ledger rows of a task, newest last.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn fires(&self, task: &TaskId, limit: usize) -> Result<Vec<Fire>, HistoryError>;

    /// The ledger row of one of these triggers that counts a time, the newest if there are several;
    /// `None`: there is none among the newest `rows_max` of the task.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn fire_at(
        &self,
        task: &TaskId,
        triggers: &[String],
        at: Timestamp,
        rows_max: usize,
    ) -> Result<Option<Fire>, HistoryError>;

    /// Revisions of a task, oldest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn revisions(&self, task: &TaskId) -> Result<Vec<Revision>, HistoryError>;
}
