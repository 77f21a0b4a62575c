//! Stored bytes: JSON in an envelope with a schema number, `{"v":1,"is":…}`.
//!
//! Knows neither files nor keys. A record or row is encoded once; the journal's payload is put
//! together from the same bytes that the views keep.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use crate::model::empty_cycle::EmptyCycle;
use crate::model::instance::Instance;
use crate::model::jump::Jumps;
use crate::model::record::{
    Arrival, Batch, Cursor, Hold, LogRecord, Revision, Row, RowKey, Submission, TaskRow,
};

/// The schema that is written. Older ones are read for ever, newer ones are refused.
const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u32,
    is: T,
}

#[derive(Deserialize)]
struct SchemaOnly {
    v: u32,
}

/// A row, tagged from outside: the model's own form is tagged inside, which makes serde buffer
/// the value and lose maps with number keys (`exitCodes`).
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum StoredRow<'a> {
    Instance(Cow<'a, Arc<Instance>>),
    Revision(#[serde(with = "super::revision")] Cow<'a, Revision>),
    Task(Cow<'a, TaskRow>),
    Cursor(Cow<'a, Cursor>),
    Arrival(Cow<'a, Arrival>),
    Submission(Cow<'a, Submission>),
    Hold(Cow<'a, Hold>),
    Jumps(Cow<'a, Jumps>),
    EmptyCycle(Cow<'a, EmptyCycle>),
}

#[derive(Deserialize)]
struct StoredBatch {
    records: Vec<Envelope<LogRecord>>,
    rows: Vec<Envelope<StoredRow<'static>>>,
    gone: Vec<RowKey>,
}

/// A batch in its stored parts.
pub(super) struct EncodedBatch {
    /// One per record, in order.
    pub(super) records: Vec<Vec<u8>>,
    /// One per row, in the order of the batch's map; `None`: the row goes.
    pub(super) rows: Vec<Option<Vec<u8>>>,
    /// The keys of the rows that go.
    gone: Vec<Vec<u8>>,
}

impl EncodedBatch {
    /// Encodes each part.
    ///
    /// # Errors
    /// [`StoreError::Unwritable`].
    pub(super) fn of(batch: &Batch) -> Result<Self, StoreError> {
        let mut rows = Vec::with_capacity(batch.rows.len());
        let mut gone = Vec::new();
        for (key, row) in &batch.rows {
            match row {
                Some(row) => rows.push(Some(row_bytes(row)?)),
                None => {
                    gone.push(to_bytes("row key", key)?);
                    rows.push(None);
                }
            }
        }
        let records = batch.records.iter().map(record_bytes).collect::<Result<_, _>>()?;
        Ok(Self { records, rows, gone })
    }

    /// The journal's payload of the whole batch.
    pub(super) fn payload(&self) -> Vec<u8> {
        let parts = self.records.iter().chain(self.rows.iter().flatten()).chain(&self.gone);
        let mut out = Vec::with_capacity(64 + parts.map(|part| part.len() + 1).sum::<usize>());
        out.extend_from_slice(format!(r#"{{"v":{SCHEMA},"is":{{"records":["#).as_bytes());
        join(self.records.iter(), &mut out);
        out.extend_from_slice(br#"],"rows":["#);
        join(self.rows.iter().flatten(), &mut out);
        out.extend_from_slice(br#"],"gone":["#);
        join(self.gone.iter(), &mut out);
        out.extend_from_slice(b"]}}");
        out
    }
}

fn join<P: AsRef<[u8]>>(parts: impl Iterator<Item = P>, out: &mut Vec<u8>) {
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(part.as_ref());
    }
}

/// Reads a journal's payload.
///
/// # Errors
/// [`StoreError::Unreadable`], [`StoreError::Schema`].
pub(super) fn batch(bytes: &[u8]) -> Result<Batch, StoreError> {
    let stored: StoredBatch = open("batch", bytes)?;
    let mut rows: BTreeMap<RowKey, Option<Row>> =
        stored.gone.into_iter().map(|key| (key, None)).collect();
    rows.extend(stored.rows.into_iter().map(|stored| {
        let row = owned(stored.is);
        (row.key(), Some(row))
    }));
    Ok(Batch { records: stored.records.into_iter().map(|r| r.is).collect(), rows })
}

/// Reads a row.
///
/// # Errors
/// [`StoreError::Unreadable`], [`StoreError::Schema`].
pub(super) fn row(bytes: &[u8]) -> Result<Row, StoreError> {
    open("row", bytes).map(owned)
}

/// Reads a row that must be an instance.
///
/// # Errors
/// [`StoreError::Unreadable`], [`StoreError::Schema`].
pub(super) fn instance(bytes: &[u8]) -> Result<Instance, StoreError> {
    match open("instance", bytes)? {
        StoredRow::Instance(instance) => Ok(Arc::unwrap_or_clone(instance.into_owned())),
        StoredRow::Revision(_)
        | StoredRow::Task(_)
        | StoredRow::Cursor(_)
        | StoredRow::Arrival(_)
        | StoredRow::Submission(_)
        | StoredRow::Hold(_)
        | StoredRow::Jumps(_)
        | StoredRow::EmptyCycle(_) => Err(StoreError::Unreadable {
            what: "instance",
            problem: "it is a row of another kind".to_owned(),
        }),
    }
}

/// Reads a log entry.
///
/// # Errors
/// [`StoreError::Unreadable`], [`StoreError::Schema`].
pub(super) fn record(bytes: &[u8]) -> Result<LogRecord, StoreError> {
    open("log entry", bytes)
}

/// Any other small thing in the same envelope.
///
/// # Errors
/// [`StoreError::Unwritable`].
pub(super) fn seal<T: Serialize>(what: &'static str, is: &T) -> Result<Vec<u8>, StoreError> {
    to_bytes(what, &Envelope { v: SCHEMA, is })
}

/// Opens an envelope.
///
/// # Errors
/// [`StoreError::Unreadable`], [`StoreError::Schema`].
pub(super) fn open<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    let read = serde_json::from_slice::<Envelope<T>>(bytes);
    if let Ok(Envelope { v: SCHEMA, is }) = read {
        return Ok(is);
    }
    // A newer schema may also have another shape, so its number is looked for on its own.
    match (serde_json::from_slice::<SchemaOnly>(bytes), read) {
        (Ok(SchemaOnly { v }), _) if v != SCHEMA => {
            Err(StoreError::Schema { found: v, known: SCHEMA })
        }
        (_, Err(error)) => Err(StoreError::Unreadable { what, problem: error.to_string() }),
        (_, Ok(Envelope { v, .. })) => Err(StoreError::Schema { found: v, known: SCHEMA }),
    }
}

fn row_bytes(row: &Row) -> Result<Vec<u8>, StoreError> {
    let stored = match row {
        Row::Instance(i) => StoredRow::Instance(Cow::Borrowed(i)),
        Row::Revision(r) => StoredRow::Revision(Cow::Borrowed(r)),
        Row::Task(t) => StoredRow::Task(Cow::Borrowed(t)),
        Row::Cursor(c) => StoredRow::Cursor(Cow::Borrowed(c)),
        Row::Arrival(a) => StoredRow::Arrival(Cow::Borrowed(a)),
        Row::Submission(s) => StoredRow::Submission(Cow::Borrowed(s)),
        Row::Hold(h) => StoredRow::Hold(Cow::Borrowed(h)),
        Row::Jumps(j) => StoredRow::Jumps(Cow::Borrowed(j)),
        Row::EmptyCycle(e) => StoredRow::EmptyCycle(Cow::Borrowed(e)),
    };
    seal("row", &stored)
}

fn owned(stored: StoredRow<'_>) -> Row {
    match stored {
        StoredRow::Instance(i) => Row::Instance(i.into_owned()),
        StoredRow::Revision(r) => Row::Revision(r.into_owned()),
        StoredRow::Task(t) => Row::Task(t.into_owned()),
        StoredRow::Cursor(c) => Row::Cursor(c.into_owned()),
        StoredRow::Arrival(a) => Row::Arrival(a.into_owned()),
        StoredRow::Submission(s) => Row::Submission(s.into_owned()),
        StoredRow::Hold(h) => Row::Hold(h.into_owned()),
        StoredRow::Jumps(j) => Row::Jumps(j.into_owned()),
        StoredRow::EmptyCycle(e) => Row::EmptyCycle(e.into_owned()),
    }
}

fn record_bytes(record: &LogRecord) -> Result<Vec<u8>, StoreError> {
    seal("log entry", record)
}

fn to_bytes<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value)
        .map_err(|error| StoreError::Unwritable { what, problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn every_kind_of_row_and_record_comes_back_as_it_went() {
        let batch = fixture::one_of_each();
        let encoded = EncodedBatch::of(&batch).unwrap();
        assert_eq!(super::batch(&encoded.payload()).unwrap(), batch);
        for (bytes, expected) in encoded.records.iter().zip(&batch.records) {
            assert_eq!(&record(bytes).unwrap(), expected);
        }
        for (bytes, expected) in encoded.rows.iter().zip(batch.rows.values()) {
            assert_eq!(bytes.as_ref().map(|b| row(b).unwrap()).as_ref(), expected.as_ref());
        }
    }

    #[test]
    fn a_newer_schema_is_refused_by_its_number_whatever_its_shape() {
        for text in [r#"{"v":2,"is":{}}"#, r#"{"v":2,"other":[1]}"#] {
            match row(text.as_bytes()) {
                Err(StoreError::Schema { found: 2, known: 1 }) => {}
                other => panic!("{other:?}"),
            }
        }
        for text in ["", "{}", r#"{"v":1,"is":{"nothing":{}}}"#, "\0\0"] {
            assert!(matches!(row(text.as_bytes()), Err(StoreError::Unreadable { .. })), "{text:?}");
        }
    }
}
