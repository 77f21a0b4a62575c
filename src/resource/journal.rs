//! The journal: the one file that decides what has happened.
//!
//! Append-only, one frame per batch, synced before anything is acknowledged. It knows nothing of
//! what a payload says. Everything else in the state directory can be rebuilt from it.
//!
//! `<state>/journal/0000000000000001.log`: [`MAGIC`], then frames of a [`HEADER`] and a payload:
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
//! | 32 | SHA-256 over the previous frame's hash (zeros at first), the three numbers before the last and the payload |
//!
//! A write that a crash cut short was never acknowledged and is cut off. Several frames may be
//! written before one sync, and a power failure may then lose an early page of them and keep a
//! later one; the last-synced number tells that from damage: a bad frame is damage only if a later
//! one was written knowing it safe.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::StoreError;
use super::lock::{make_private_dir, sync_dir};
use crate::model::id::LogSeq;

/// What the file begins with: name and format.
const MAGIC: &[u8; 8] = b"SCHEDJ1\n";
/// What each frame begins with.
const FRAME: &[u8; 4] = b"SJF1";
/// Bytes before a payload.
const HEADER: usize = 72;
/// The file's name: the number of its first batch.
const FILE_NAME: &str = "0000000000000001.log";

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

/// One frame, read.
pub(super) struct Entry<'a> {
    /// Where it ends.
    pub(super) position: Position,
    /// The file's byte it begins at.
    pub(super) offset: u64,
    /// What it carries.
    pub(super) payload: &'a [u8],
}

/// The journal, open for appending.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    last: Position,
    synced: u64,
    unwritten: Vec<u8>,
}

/// A journal that has been read to its end and not yet been changed.
pub(super) struct Scanned {
    file: File,
    path: PathBuf,
    /// The end of the last good frame.
    end: u64,
    /// The file's length.
    len: u64,
    last: Position,
    /// What is wrong at `end`, if `len` is beyond it.
    torn: String,
}

/// Opens the journal under `dir`, making an empty one if there is none, and gives each frame in
/// order to `visit`. A torn end is seen, not yet cut.
///
/// The file is synced first: what a killed process wrote and never synced becomes durable before
/// anybody acts on it.
///
/// # Errors
/// [`StoreError::Damaged`], [`StoreError::Io`], or what `visit` gives.
pub(super) fn scan(
    dir: &Path,
    visit: &mut dyn FnMut(&Entry<'_>) -> Result<(), StoreError>,
) -> Result<Scanned, StoreError> {
    let path = dir.join(FILE_NAME);
    if !path.try_exists().map_err(StoreError::io("look for the journal", &path))? {
        create(dir, &path)?;
    }
    let file = File::options()
        .read(true)
        .append(true)
        .open(&path)
        .map_err(StoreError::io("open the journal", &path))?;
    file.sync_data().map_err(StoreError::write("sync the journal", &path))?;
    let read_error = || StoreError::io("read the journal", &path);
    let len = file.metadata().map_err(read_error())?.len();
    let mut reader = BufReader::with_capacity(1 << 16, &file);
    let mut magic = [0; MAGIC.len()];
    if len < magic.len() as u64 {
        return Err(damaged(&path, 0, "the file is shorter than its first line".to_owned()));
    }
    reader.read_exact(&mut magic).map_err(read_error())?;
    if magic != *MAGIC {
        return Err(damaged(&path, 0, format!("it begins with {magic:?}, not {MAGIC:?}")));
    }
    let mut scanned = Scanned {
        end: magic.len() as u64,
        len,
        last: Position::default(),
        torn: String::new(),
        path: path.clone(),
        file: file.try_clone().map_err(read_error())?,
    };
    let mut frame = Vec::new();
    while scanned.end < len {
        match read_frame(&mut reader, len - scanned.end, &mut frame).map_err(read_error())? {
            Ok(()) => {}
            Err(problem) => {
                scanned.check_torn(&problem)?;
                scanned.torn = problem;
                break;
            }
        }
        let header = Header::of(&frame);
        let payload = frame.get(HEADER..).unwrap_or_default();
        let position = header
            .follows(&scanned.last, payload)
            .map_err(|problem| damaged(&path, scanned.end, problem))?;
        visit(&Entry { position, offset: scanned.end, payload })?;
        scanned.last = position;
        scanned.end += frame.len() as u64;
    }
    Ok(scanned)
}

/// Makes an empty journal so that a crash leaves it whole or not there at all.
fn create(dir: &Path, path: &Path) -> Result<(), StoreError> {
    make_private_dir(dir)?;
    if let Some(parent) = dir.parent() {
        sync_dir(parent)?;
    }
    let young = path.with_extension("new");
    let made = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&young)
        .and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&young, path));
    made.map_err(StoreError::io("make the journal", path))?;
    sync_dir(dir)
}

fn damaged(file: &Path, offset: u64, problem: String) -> StoreError {
    StoreError::Damaged { file: file.to_path_buf(), offset, problem }
}

/// Reads one whole frame into `frame`; the inner error says why there is none.
fn read_frame(
    reader: &mut impl Read,
    left: u64,
    frame: &mut Vec<u8>,
) -> std::io::Result<Result<(), String>> {
    if left < HEADER as u64 {
        return Ok(Err(format!("{left} bytes are left, a frame's header has {HEADER}")));
    }
    frame.resize(HEADER, 0);
    reader.read_exact(frame)?;
    if !frame.starts_with(FRAME) {
        return Ok(Err("no frame begins here".to_owned()));
    }
    let len = Header::of(frame).len;
    if u64::from(len) > left - HEADER as u64 {
        return Ok(Err(format!("a frame of {len} bytes begins here, {left} are left")));
    }
    let payload = usize::try_from(len).map_err(std::io::Error::other)?;
    frame.resize(HEADER + payload, 0);
    reader.read_exact(frame.get_mut(HEADER..).unwrap_or_default())?;
    if Header::of(frame).crc != crc(frame) {
        return Ok(Err("the frame's checksum is wrong".to_owned()));
    }
    Ok(Ok(()))
}

/// The checksum of a whole frame: of all behind its own field.
fn crc(frame: &[u8]) -> u32 {
    crc32fast::hash(frame.get(8..).unwrap_or_default())
}

/// A frame's numbers.
struct Header {
    crc: u32,
    len: u32,
    entries: u32,
    batch: u64,
    first: u64,
    synced: u64,
    hash: [u8; 32],
}

impl Header {
    /// Reads the first [`HEADER`] bytes; missing ones count as zeros.
    fn of(frame: &[u8]) -> Self {
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

    fn chain(&self, before: &Position, payload: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(before.hash);
        hash.update(self.entries.to_le_bytes());
        hash.update(self.batch.to_le_bytes());
        hash.update(self.first.to_le_bytes());
        hash.update(payload);
        hash.finalize().into()
    }

    /// The position behind this frame, if it is the one that comes after `before`.
    fn follows(&self, before: &Position, payload: &[u8]) -> Result<Position, String> {
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
        let seq = LogSeq(before.seq.0 + u64::from(self.entries));
        Ok(Position { batch, seq, hash: self.hash })
    }
}

impl Scanned {
    /// The end of the last good frame.
    pub(super) fn last(&self) -> Position {
        self.last
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that what follows `end` was never known to be synced.
    fn check_torn(&mut self, problem: &str) -> Result<(), StoreError> {
        let mut rest = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.end))
            .and_then(|_| self.file.read_to_end(&mut rest))
            .map_err(StoreError::io("read the journal", &self.path))?;
        let lost = self.last.batch + 1;
        for at in 1..rest.len().saturating_sub(HEADER - 1) {
            let later = rest.get(at..).unwrap_or_default();
            if !later.starts_with(FRAME) {
                continue;
            }
            let header = Header::of(later);
            let whole = usize::try_from(header.len).ok().and_then(|n| later.get(..HEADER + n));
            if whole.is_some_and(|frame| crc(frame) == header.crc) && header.synced >= lost {
                let problem = format!(
                    "{problem}; batch {} behind it, at byte {}, is whole",
                    header.batch,
                    self.end + at as u64
                );
                return Err(damaged(&self.path, self.end, problem));
            }
        }
        Ok(())
    }

    /// Cuts a torn end off and goes on from there.
    ///
    /// # Errors
    /// [`StoreError::Write`].
    pub(super) fn into_journal(self) -> Result<Journal, StoreError> {
        if self.end < self.len {
            tracing::warn!(
                file = %self.path.display(),
                offset = self.end,
                bytes = self.len - self.end,
                problem = self.torn,
                "cut an unfinished write off the journal's end; it was never acknowledged",
            );
            self.file
                .set_len(self.end)
                .and_then(|()| self.file.sync_all())
                .map_err(StoreError::write("cut the torn end off", &self.path))?;
        }
        Ok(Journal {
            file: self.file,
            path: self.path,
            last: self.last,
            synced: self.last.batch,
            unwritten: Vec::new(),
        })
    }
}

impl Journal {
    /// The end of the last batch appended.
    pub(super) fn last(&self) -> Position {
        self.last
    }

    /// Puts a batch behind the others, in memory: [`write`](Self::write) and
    /// [`sync`](Self::sync) follow.
    ///
    /// # Errors
    /// [`StoreError::Unwritable`] for more than 4 GiB or 2³² entries.
    pub(super) fn append(
        &mut self,
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
            batch: self.last.batch + 1,
            first: self.last.seq.0 + 1,
            synced: self.synced,
            hash: [0; 32],
        };
        header.hash = header.chain(&self.last, payload);
        let start = self.unwritten.len();
        let out = &mut self.unwritten;
        out.extend_from_slice(FRAME);
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
        let seq = LogSeq(self.last.seq.0 + u64::from(header.entries));
        self.last = Position { batch: header.batch, seq, hash: header.hash };
        Ok(self.last)
    }

    /// Hands what was appended to the kernel: it survives the end of this process.
    ///
    /// # Errors
    /// [`StoreError::Write`]; the journal must then not be used again.
    pub(super) fn write(&mut self) -> Result<(), StoreError> {
        self.file
            .write_all(&self.unwritten)
            .map_err(StoreError::write("write the journal", &self.path))?;
        self.unwritten.clear();
        Ok(())
    }

    /// Goes on with a file whose writes fail.
    #[cfg(test)]
    pub(super) fn break_for_test(&mut self, file: File) {
        self.file = file;
    }

    /// Makes what was written durable: it survives a power failure.
    ///
    /// # Errors
    /// [`StoreError::Write`]; the journal must then not be used again.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        if self.synced < self.last.batch {
            self.file.sync_data().map_err(StoreError::write("sync the journal", &self.path))?;
            self.synced = self.last.batch;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
