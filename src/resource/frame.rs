//! One frame of the journal: its header, its checksum, its place in the chain of hashes.
//!
//! Bytes only: no file is opened here and no payload understood.
//!
//! | bytes | field (little-endian) |
//! |---|---|
//! | 4 | `b"SJF1"`, to find frames behind a damaged one |
//! | 4 | CRC-32 of all that follows in the frame |
//! | 4 | payload's length |
//! | 4 | log entries in it |
//! | 8 | batch number, contiguous from 1 |
//! | 8 | first log position (the next one, if there are no entries) |
//! | 8 | newest batch that was known to be synced when this was written |
//! | 32 | SHA-256 over the previous frame's hash (zeros at first), entries, batch, first and payload |
//! | … | the payload |

use std::io::Read;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::StoreError;
use crate::model::id::LogSeq;

/// What each frame begins with.
const MARK: &[u8; 4] = b"SJF1";
/// Bytes before a payload.
pub(super) const HEADER: usize = 72;

/// A place in the journal: the end of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Position {
    /// Its number; 0: before the first.
    pub(super) batch: u64,
    /// The last log position up to there.
    pub(super) seq: LogSeq,
    /// The hash of the chain up to there.
    pub(super) hash: [u8; 32],
}

/// A frame's numbers.
pub(super) struct Header {
    crc: u32,
    len: u32,
    entries: u32,
    /// Its batch.
    pub(super) batch: u64,
    first: u64,
    /// The newest batch that was known to be synced when this was written.
    pub(super) synced: u64,
    hash: [u8; 32],
}

impl Header {
    /// Reads the first [`HEADER`] bytes of a frame; missing ones count as zeros.
    pub(super) fn of(frame: &[u8]) -> Self {
        fn at<const N: usize>(frame: &[u8], offset: usize) -> [u8; N] {
            frame.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
        }
        Self {
            crc: u32::from_le_bytes(at(frame, 4)),
            len: u32::from_le_bytes(at(frame, 8)),
            entries: u32::from_le_bytes(at(frame, 12)),
            batch: u64::from_le_bytes(at(frame, 16)),
            first: u64::from_le_bytes(at(frame, 24)),
            synced: u64::from_le_bytes(at(frame, 32)),
            hash: at(frame, 40),
        }
    }

    /// The header of a whole frame that `bytes` begin with; `None` if there is none.
    pub(super) fn of_whole(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(MARK) {
            return None;
        }
        let header = Self::of(bytes);
        let frame = bytes.get(..HEADER + usize::try_from(header.len).ok()?)?;
        (crc(frame) == header.crc).then_some(header)
    }

    /// The position behind this frame, if it is the one that comes after `before`.
    ///
    /// # Errors
    /// What was found, what is expected.
    pub(super) fn follows(&self, before: &Position, payload: &[u8]) -> Result<Position, String> {
        let (batch, first) = (before.batch + 1, before.seq.0 + 1);
        if (self.batch, self.first) != (batch, first) {
            return Err(format!(
                "batch {} with log entry {} stands where batch {batch} with log entry {first} is \
                 expected",
                self.batch, self.first
            ));
        }
        if self.hash != self.chain(before, payload) {
            return Err(format!("batch {batch} does not continue the chain of hashes"));
        }
        Ok(self.end(before))
    }

    fn end(&self, before: &Position) -> Position {
        let seq = LogSeq(before.seq.0 + u64::from(self.entries));
        Position { batch: self.batch, seq, hash: self.hash }
    }

    fn chain(&self, before: &Position, payload: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(before.hash);
        hash.update(self.entries.to_le_bytes());
        hash.update(self.batch.to_le_bytes());
        hash.update(self.first.to_le_bytes());
        hash.update(payload);
        hash.finalize().into()
    }
}

/// The checksum of a whole frame: of all behind its own field.
fn crc(frame: &[u8]) -> u32 {
    crc32fast::hash(frame.get(8..).unwrap_or_default())
}

/// Reads one whole frame into `frame`, of `left` bytes at most; the inner error says why there is
/// none.
///
/// # Errors
/// Those of the reader.
pub(super) fn read(
    reader: &mut impl Read,
    left: u64,
    frame: &mut Vec<u8>,
) -> std::io::Result<Result<(), String>> {
    if left < HEADER as u64 {
        return Ok(Err(format!("{left} bytes are left, a frame's header has {HEADER}")));
    }
    frame.resize(HEADER, 0);
    reader.read_exact(frame)?;
    if !frame.starts_with(MARK) {
        return Ok(Err("no frame begins here".to_owned()));
    }
    let len = Header::of(frame).len;
    if u64::from(len) > left - HEADER as u64 {
        return Ok(Err(format!("a frame of {len} bytes begins here, {left} are left")));
    }
    let payload = usize::try_from(len).map_err(std::io::Error::other)?;
    frame.resize(HEADER + payload, 0);
    reader.read_exact(frame.get_mut(HEADER..).unwrap_or_default())?;
    let whole = Header::of_whole(frame).is_some();
    Ok(if whole { Ok(()) } else { Err("the frame's checksum is wrong".to_owned()) })
}

/// Appends the frame that comes after `before` to `out`; gives the position behind it.
///
/// # Errors
/// [`StoreError::Unwritable`] for a payload of 4 GiB or 2³² entries.
pub(super) fn append(
    out: &mut Vec<u8>,
    before: &Position,
    synced: u64,
    payload: &[u8],
    entries: usize,
) -> Result<Position, StoreError> {
    let unwritable = |source: std::num::TryFromIntError| StoreError::Unwritable {
        what: "batch",
        problem: source.to_string(),
    };
    let mut header = Header {
        crc: 0,
        len: u32::try_from(payload.len()).map_err(unwritable)?,
        entries: u32::try_from(entries).map_err(unwritable)?,
        batch: before.batch + 1,
        first: before.seq.0 + 1,
        synced,
        hash: [0; 32],
    };
    header.hash = header.chain(before, payload);
    let start = out.len();
    out.extend_from_slice(MARK);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header.len.to_le_bytes());
    out.extend_from_slice(&header.entries.to_le_bytes());
    out.extend_from_slice(&header.batch.to_le_bytes());
    out.extend_from_slice(&header.first.to_le_bytes());
    out.extend_from_slice(&header.synced.to_le_bytes());
    out.extend_from_slice(&header.hash);
    out.extend_from_slice(payload);
    let sum = crc(out.get(start..).unwrap_or_default());
    if let Some(field) = out.get_mut(start + 4..start + 8) {
        field.copy_from_slice(&sum.to_le_bytes());
    }
    Ok(header.end(before))
}
