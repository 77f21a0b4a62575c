//! The read side: everything acknowledged, whether sled has it yet or not.
//!
//! [`View`] is sled under an overlay of what was acknowledged and not yet applied. The committer
//! puts a batch into the overlay before it acknowledges, and takes it out after sled has it; a
//! reader looks into the overlay first. So what was acknowledged is seen by every later read. A
//! list is not a snapshot: it may show one batch of those that arrive while it is read and not
//! another.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::error::StoreError;
use super::frame::Position;
use super::keys::Range;
use super::lock::StateLock;
use super::sled_store::SledStore;
use super::table::{self, Table, Visit, Write, unreadable};
use crate::model::history::{History, HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, LogSeq, TaskId};
use crate::model::instance::Instance;
use crate::model::record::{Fire, LogRecord, Revision};
use crate::model::time::Timestamp;

/// One change that sled does not have yet.
struct Pending {
    /// The batch that made it.
    batch: u64,
    value: Option<Arc<[u8]>>,
}

/// sled and what is acknowledged but not yet in it.
pub(super) struct View {
    sled: SledStore,
    overlay: RwLock<BTreeMap<Vec<u8>, Pending>>,
    tip: AtomicU64,
    /// sled has something that no checkpoint covers.
    dirty: AtomicBool,
    /// Last, so that it is dropped last: whoever gets the lock finds sled closed.
    _lock: StateLock,
}

impl View {
    /// A view in which all is applied.
    pub(super) fn new(sled: SledStore, tip: LogSeq, lock: StateLock) -> Self {
        Self {
            sled,
            overlay: RwLock::default(),
            tip: AtomicU64::new(tip.0),
            dirty: AtomicBool::new(false),
            _lock: lock,
        }
    }

    /// The last log position that can be read.
    pub(super) fn tip(&self) -> LogSeq {
        LogSeq(self.tip.load(Ordering::Acquire))
    }

    /// Makes a batch, which ends at `position`, visible.
    pub(super) fn publish(&self, writes: &[Write], position: &Position) {
        let mut overlay = self.overlay.write().unwrap_or_else(PoisonError::into_inner);
        for write in writes {
            let pending = Pending { batch: position.batch, value: write.value.clone() };
            overlay.insert(write.key.clone(), pending);
        }
        drop(overlay);
        self.tip.store(position.seq.0, Ordering::Release);
    }

    /// Applies a published batch to sled and takes it out of the overlay.
    ///
    /// # Errors
    /// [`StoreError::Database`]; the overlay then keeps it.
    pub(super) fn apply(&self, writes: &[Write], position: &Position) -> Result<(), StoreError> {
        self.dirty.store(true, Ordering::Relaxed);
        self.sled.apply(writes, position)?;
        let mut overlay = self.overlay.write().unwrap_or_else(PoisonError::into_inner);
        for write in writes {
            // A later batch may have put a newer value there.
            if overlay.get(&write.key).is_some_and(|p| p.batch == position.batch) {
                overlay.remove(&write.key);
            }
        }
        Ok(())
    }

    /// Up to where sled has it.
    #[cfg(test)]
    pub(super) fn applied(&self) -> Result<Position, StoreError> {
        self.sled.applied()
    }

    /// Whether sled has something that no checkpoint covers; only the committer asks.
    pub(super) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Makes all that was applied durable in sled.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Write`].
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        self.sled.checkpoint()?;
        self.dirty.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Table for View {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(pending) = overlay.get(key) {
            return Ok(pending.value.as_ref().map(|value| value.to_vec()));
        }
        drop(overlay);
        self.sled.get(key)
    }

    fn scan(&self, range: &Range, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        let bounds = (Bound::Included(&range.from), Bound::Excluded(&range.to));
        let pending: Vec<_> = overlay
            .range::<Vec<u8>, _>(bounds)
            .map(|(key, pending)| (key.clone(), pending.value.clone()))
            .collect();
        drop(overlay);
        let mut pending = pending.into_iter().peekable();
        let mut ended = false;
        self.sled.scan(range, &mut |key, value| {
            let mut value = Some(value);
            let newer;
            while let Some((earlier, its)) = pending.next_if(|(k, _)| k.as_slice() < key) {
                if show(&earlier, its.as_deref(), visit)?.is_break() {
                    ended = true;
                    return Ok(ControlFlow::Break(()));
                }
            }
            if let Some((_, its)) = pending.next_if(|(k, _)| k == key) {
                newer = its;
                value = newer.as_deref();
            }
            let step = show(key, value, visit)?;
            ended = step.is_break();
            Ok(step)
        })?;
        while let Some((key, value)) = pending.next().filter(|_| !ended) {
            ended = show(&key, value.as_deref(), visit)?.is_break();
        }
        Ok(())
    }
}

/// Visits an entry unless it is one that goes.
fn show(
    key: &[u8],
    value: Option<&[u8]>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, StoreError> {
    value.map_or(Ok(ControlFlow::Continue(())), |value| visit(key, value))
}

/// Reads everything that was acknowledged. The calls block.
///
/// As long as one lives, the state directory stays locked.
pub struct Reader {
    view: Arc<View>,
}

impl Reader {
    pub(super) fn new(view: Arc<View>) -> Self {
        Self { view }
    }
}

impl History for Reader {
    fn instance(&self, id: &InstanceId) -> Result<Option<Instance>, HistoryError> {
        table::instance(&*self.view, id).map_err(|e| unreadable(&e))
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<InstanceId>, HistoryError> {
        table::ids_with_prefix(&*self.view, prefix, limit).map_err(|e| unreadable(&e))
    }

    fn instances(&self, filter: &InstanceFilter) -> Result<Vec<Instance>, HistoryError> {
        table::instances(&*self.view, filter).map_err(|e| unreadable(&e))
    }

    fn records(&self, since: LogSeq, limit: usize) -> Result<Vec<LogRecord>, HistoryError> {
        table::records(&*self.view, since, limit).map_err(|e| unreadable(&e))
    }

    fn tip(&self) -> Result<LogSeq, HistoryError> {
        Ok(self.view.tip())
    }

    fn fires(&self, task: &TaskId, limit: usize) -> Result<Vec<Fire>, HistoryError> {
        table::fires(&*self.view, task, limit).map_err(|e| unreadable(&e))
    }

    fn fire_at(
        &self,
        task: &TaskId,
        triggers: &[String],
        at: Timestamp,
        rows_max: usize,
    ) -> Result<Option<Fire>, HistoryError> {
        table::fire_at(&*self.view, task, triggers, at, rows_max).map_err(|e| unreadable(&e))
    }

    fn revisions(&self, task: &TaskId) -> Result<Vec<Revision>, HistoryError> {
        table::revisions(&*self.view, task).map_err(|e| unreadable(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_value_stays_visible_while_an_older_one_is_applied() {
        let dir = tempfile::tempdir().unwrap();
        let lock = StateLock::acquire(dir.path()).unwrap();
        let sled = SledStore::open(&dir.path().join("db")).unwrap();
        let view = View::new(sled, LogSeq(0), lock);
        let batch = |number: u64, value: Option<&[u8]>| {
            let write = Write { key: b"k".to_vec(), value: value.map(Into::into) };
            (vec![write], Position { batch: number, seq: LogSeq(number), ..Position::default() })
        };
        let batches = [batch(1, Some(b"old")), batch(2, Some(b"new")), batch(3, None)];
        for (writes, position) in batches.iter().take(2) {
            view.publish(writes, position);
        }
        view.apply(&batches[0].0, &batches[0].1).unwrap();
        assert_eq!(view.get(b"k").unwrap().as_deref(), Some(&b"new"[..]));
        view.publish(&batches[2].0, &batches[2].1);
        view.apply(&batches[1].0, &batches[1].1).unwrap();
        assert_eq!(view.get(b"k").unwrap(), None);
        view.apply(&batches[2].0, &batches[2].1).unwrap();
        assert_eq!(view.get(b"k").unwrap(), None);
        assert!(view.overlay.read().unwrap().is_empty());
        assert_eq!(view.tip(), LogSeq(3));
    }
}
