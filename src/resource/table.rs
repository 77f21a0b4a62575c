//! An ordered table of bytes, what a batch writes into one, and the questions put to it.
//!
//! The same code serves sled, sled under its overlay, and the in-memory twin; it knows none of
//! them. An index entry follows from a row and is made here, so nobody above can forget one.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::codec::{self, EncodedBatch};
use super::error::StoreError;
use super::keys::{self, Range};
use crate::model::history::{HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, LogSeq, TaskId};
use crate::model::instance::Instance;
use crate::model::record::{Batch, Fire, LogRecord, Record, Revision, Row, RowKey};
use crate::model::time::Timestamp;

/// What a scan does with one entry; [`ControlFlow::Break`] ends it.
pub(super) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError> + 'a;

/// An ordered table of bytes.
pub(super) trait Table {
    /// One value.
    ///
    /// # Errors
    /// [`StoreError::Database`]; so for the other.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// The entries of a range, in order of their keys.
    ///
    /// # Errors
    /// [`StoreError::Database`], or what `visit` gives.
    fn scan(&self, range: &Range, visit: &mut Visit<'_>) -> Result<(), StoreError>;
}

/// One change of a table. Values are shared: overlay and backlog hold the same bytes.
pub(super) struct Write {
    /// Where.
    pub(super) key: Vec<u8>,
    /// What; `None`: the entry goes.
    pub(super) value: Option<Arc<[u8]>>,
}

impl Write {
    fn put(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self { key, value: Some(value.into()) }
    }

    fn delete(key: Vec<u8>) -> Self {
        Self { key, value: None }
    }
}

/// Checks that a batch goes on where the log ends.
///
/// # Errors
/// [`StoreError::OutOfOrder`] with the first position that is wrong.
pub(super) fn check_order(batch: &Batch, tip: LogSeq) -> Result<(), StoreError> {
    let mut expected = tip;
    for record in &batch.records {
        expected.0 += 1;
        if record.seq != expected {
            return Err(StoreError::OutOfOrder { expected, found: record.seq });
        }
    }
    Ok(())
}

/// Everything that a batch writes into `table`, which has all earlier batches: rows, log entries
/// and the index entries that follow from them.
///
/// # Errors
/// Those of reading `table`.
pub(super) fn writes(
    batch: &Batch,
    encoded: EncodedBatch,
    table: &impl Table,
) -> Result<Vec<Write>, StoreError> {
    let mut out = Vec::with_capacity(batch.records.len() + batch.rows.len() + 8);
    for (record, bytes) in batch.records.iter().zip(encoded.records) {
        out.extend(ledger_write(record));
        out.push(Write::put(keys::log(record.seq), bytes));
    }
    for ((key, row), bytes) in batch.rows.iter().zip(encoded.rows) {
        let place = keys::row(key);
        match (key, row) {
            // What a listing says never changes, so only a new instance needs its two.
            (_, Some(Row::Instance(new))) if table.get(&place)?.is_none() => {
                let [all, task] = keys::listings(&new.task_id, new.created_seq);
                let value = keys::listed(&new.instance_id, new.created_at);
                out.push(Write::put(all, value.clone()));
                out.push(Write::put(task, value));
            }
            (RowKey::Instance { .. }, None) => {
                if let Some(old) = table.get(&place)? {
                    let old = codec::instance(&old)?;
                    out.extend(keys::listings(&old.task_id, old.created_seq).map(Write::delete));
                }
            }
            _ => {}
        }
        out.push(Write { key: place, value: bytes.map(Into::into) });
    }
    Ok(out)
}

/// What a log entry does to the index of the ledger.
fn ledger_write(record: &LogRecord) -> Option<Write> {
    if let Record::Fire(fire) = &record.what {
        return Some(Write::put(keys::fire(&fire.task_id, record.seq), Vec::new()));
    }
    let Record::FireAmended { of, fire } = &record.what else { return None };
    let row = keys::fire(&fire.task_id, *of);
    Some(match fire.count {
        0 => Write::delete(row),
        _ => Write::put(row, keys::amended(record.seq)),
    })
}

/// Every row, indexes and log left out.
///
/// # Errors
/// Those of reading.
pub(super) fn rows(table: &impl Table) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for prefix in keys::ROWS {
        table.scan(&Range::of(vec![prefix]), &mut |_key, value| {
            rows.push(codec::row(value)?);
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(rows)
}

/// One instance.
///
/// # Errors
/// Those of reading; so for all below.
pub(super) fn instance(
    table: &impl Table,
    id: &InstanceId,
) -> Result<Option<Instance>, StoreError> {
    table.get(&keys::instance(id))?.map(|bytes| codec::instance(&bytes)).transpose()
}

/// Ids that begin with `prefix`, in their order.
///
/// # Errors
/// Those of reading.
pub(super) fn ids_with_prefix(
    table: &impl Table,
    prefix: &str,
    limit: usize,
) -> Result<Vec<InstanceId>, StoreError> {
    collect(table, &keys::instances(prefix), limit, |key, _value| {
        keys::instance_id(key).map(Some).ok_or_else(|| bad_key("an instance id"))
    })
}

/// Instances that a filter wants, newest made first.
///
/// # Errors
/// Those of reading.
pub(super) fn instances(
    table: &impl Table,
    filter: &InstanceFilter,
) -> Result<Vec<Instance>, StoreError> {
    let range = keys::listing(filter.task.as_ref(), filter.before);
    collect(table, &range, filter.limit, |_key, value| {
        let (created_at, id) =
            keys::read_listed(value).ok_or_else(|| bad_key("a listing's value"))?;
        if filter.since.is_some_and(|since| created_at < since) {
            return Ok(None);
        }
        // Gone since the scan began: as if it had been gone before.
        Ok(instance(table, &id)?.filter(|i| wanted(filter, i)))
    })
}

fn wanted(filter: &InstanceFilter, instance: &Instance) -> bool {
    (filter.states.is_empty() || filter.states.contains(&instance.state))
        && filter.cycle.as_ref().is_none_or(|cycle| instance.cycle.label() == cycle)
        && filter.queue.as_ref().is_none_or(|queue| instance.queue.as_str() == queue)
}

/// Log entries strictly after `since`, oldest first.
///
/// # Errors
/// Those of reading.
pub(super) fn records(
    table: &impl Table,
    since: LogSeq,
    limit: usize,
) -> Result<Vec<LogRecord>, StoreError> {
    collect(table, &keys::log_after(since), limit, |_key, value| codec::record(value).map(Some))
}

/// The newest ledger rows of a task, the newest last.
///
/// # Errors
/// Those of reading.
pub(super) fn fires(
    table: &impl Table,
    task: &TaskId,
    limit: usize,
) -> Result<Vec<Fire>, StoreError> {
    let read = |key: &[u8], value: &[u8]| fire(table, key, value).map(Some);
    let mut fires = collect(table, &keys::fires(task), limit, read)?;
    fires.reverse();
    Ok(fires)
}

/// The ledger row that an index entry leads to.
fn fire(table: &impl Table, key: &[u8], value: &[u8]) -> Result<Fire, StoreError> {
    let seq = keys::read_amended(value).or_else(|| keys::fire_seq(key));
    let seq = seq.ok_or_else(|| bad_key("a ledger row's position"))?;
    let bytes = table.get(&keys::log(seq))?.ok_or_else(|| bad_key("a ledger row's entry"))?;
    let entry = codec::record(&bytes)?.what;
    if let Record::Fire(fire) | Record::FireAmended { fire, .. } = entry {
        Ok(fire)
    } else {
        Err(bad_key("a ledger row's entry"))
    }
}

/// The newest ledger row of a task that counts a time, among its newest `rows_max`: one of these
/// triggers, or one that begins or ends just then, whatever the definition says by now.
///
/// # Errors
/// Those of reading.
pub(super) fn fire_at(
    table: &impl Table,
    task: &TaskId,
    triggers: &[String],
    at: Timestamp,
    rows_max: usize,
) -> Result<Option<Fire>, StoreError> {
    let (mut found, mut rows) = (None, 0);
    table.scan(&keys::fires(task), &mut |key, value| {
        let row = fire(table, key, value)?;
        rows += 1;
        let is_in = row.from <= at && at <= row.to;
        let is_its = triggers.contains(&row.trigger) || row.from == at || row.to == at;
        found = (is_in && is_its).then_some(row);
        let over = found.is_some() || rows >= rows_max;
        Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// Revisions of a task, oldest first.
///
/// # Errors
/// Those of reading.
pub(super) fn revisions(table: &impl Table, task: &TaskId) -> Result<Vec<Revision>, StoreError> {
    collect(table, &keys::revisions(task), usize::MAX, |_key, value| {
        if let Row::Revision(revision) = codec::row(value)? {
            Ok(Some(revision))
        } else {
            Err(bad_key("a revision"))
        }
    })
}

fn collect<T>(
    table: &impl Table,
    range: &Range,
    limit: usize,
    mut read: impl FnMut(&[u8], &[u8]) -> Result<Option<T>, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    table.scan(range, &mut |key, value| {
        found.extend(read(key, value)?);
        Ok(if found.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

fn bad_key(what: &'static str) -> StoreError {
    StoreError::Unreadable { what, problem: "an index points at something else".to_owned() }
}

/// What the readers' trait says of an error.
pub(super) fn unreadable(error: &StoreError) -> HistoryError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    HistoryError(text)
}
