//! The in-memory twin of the store: the same codec, keys and questions over a plain map.
//!
//! For the simulation and for tests. It keeps nothing beyond the process and cannot fail but for
//! a broken invariant of its caller.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::codec::EncodedBatch;
use super::error::StoreError;
use super::keys::Range;
use super::table::{self, Table, Visit, unreadable};
use crate::model::history::{History, HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, LogSeq, TaskId};
use crate::model::instance::Instance;
use crate::model::record::{Batch, Fire, LogRecord, Revision, Row};
use crate::model::time::Timestamp;

/// A store without a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryStore {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    tip: LogSeq,
}

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a batch, all or nothing. It is visible at once.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] if its records do not go on where the log ends; the store is
    /// then as it was.
    #[expect(clippy::needless_pass_by_value, reason = "the committer's shape: a batch is spent")]
    pub fn commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        table::check_order(&batch, self.tip)?;
        for write in table::writes(&batch, EncodedBatch::of(&batch)?, self)? {
            match write.value {
                Some(value) => self.entries.insert(write.key, value.to_vec()),
                None => self.entries.remove(&write.key),
            };
        }
        self.tip = batch.records.last().map_or(self.tip, |record| record.seq);
        Ok(())
    }

    /// Every row: what a start loads.
    ///
    /// # Errors
    /// [`StoreError::Unreadable`], never for what [`commit`](Self::commit) took.
    pub fn rows(&self) -> Result<Vec<Row>, StoreError> {
        table::rows(self)
    }
}

impl Table for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.entries.get(key).cloned())
    }

    fn scan(&self, range: &Range, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let bounds = (Bound::Included(&range.from), Bound::Excluded(&range.to));
        for (key, value) in self.entries.range::<Vec<u8>, _>(bounds) {
            if visit(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl History for MemoryStore {
    fn instance(&self, id: &InstanceId) -> Result<Option<Instance>, HistoryError> {
        table::instance(self, id).map_err(|e| unreadable(&e))
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<InstanceId>, HistoryError> {
        table::ids_with_prefix(self, prefix, limit).map_err(|e| unreadable(&e))
    }

    fn instances(&self, filter: &InstanceFilter) -> Result<Vec<Instance>, HistoryError> {
        table::instances(self, filter).map_err(|e| unreadable(&e))
    }

    fn records(&self, since: LogSeq, limit: usize) -> Result<Vec<LogRecord>, HistoryError> {
        table::records(self, since, limit).map_err(|e| unreadable(&e))
    }

    fn tip(&self) -> Result<LogSeq, HistoryError> {
        Ok(self.tip)
    }

    fn fires(&self, task: &TaskId, limit: usize) -> Result<Vec<Fire>, HistoryError> {
        table::fires(self, task, limit).map_err(|e| unreadable(&e))
    }

    fn fire_at(
        &self,
        task: &TaskId,
        triggers: &[String],
        at: Timestamp,
        rows_max: usize,
    ) -> Result<Option<Fire>, HistoryError> {
        table::fire_at(self, task, triggers, at, rows_max).map_err(|e| unreadable(&e))
    }

    fn revisions(&self, task: &TaskId) -> Result<Vec<Revision>, HistoryError> {
        table::revisions(self, task).map_err(|e| unreadable(&e))
    }
}

#[cfg(test)]
mod tests;
