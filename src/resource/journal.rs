//! The journal: the one file that decides what has happened.
//!
//! Append-only, one frame per batch, synced before anything is acknowledged. It knows nothing of
//! what a payload says. Everything else in the state directory can be rebuilt from it.
//!
//! `<state>/journal/0000000000000001.log`: [`MAGIC`], then frames (`super::frame`).
//!
//! A write that a crash cut short was never acknowledged and is cut off. Several frames may be
//! written before one sync, and a power failure may then lose an early page of them and keep a
//! later one; the last-synced number tells that from damage: a bad frame is damage only if a later
//! one was written knowing it safe.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::frame::{self, HEADER, Header, Position};
use super::lock::{make_private_dir, sync_dir};

/// What the file begins with: name and format.
const MAGIC: &[u8; 8] = b"SCHEDJ1\n";
/// The file's name: the number of its first batch.
const FILE_NAME: &str = "0000000000000001.log";

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

/// The journal's file in its directory.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
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
    let path = path(dir);
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
    let mut bytes = Vec::new();
    while scanned.end < len {
        match frame::read(&mut reader, len - scanned.end, &mut bytes).map_err(read_error())? {
            Ok(()) => {}
            Err(problem) => {
                scanned.check_torn(&problem)?;
                scanned.torn = problem;
                break;
            }
        }
        let header = Header::of(&bytes);
        let payload = bytes.get(HEADER..).unwrap_or_default();
        let position = header
            .follows(&scanned.last, payload)
            .map_err(|problem| damaged(&path, scanned.end, problem))?;
        visit(&Entry { position, offset: scanned.end, payload })?;
        scanned.last = position;
        scanned.end += bytes.len() as u64;
    }
    Ok(scanned)
}

/// Makes an empty journal so that a crash leaves it whole or not there at all.
fn create(dir: &Path, path: &Path) -> Result<(), StoreError> {
    make_private_dir(dir)?;
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
        for at in 1..rest.len() {
            let later = rest.get(at..).and_then(Header::of_whole);
            if let Some(later) = later.filter(|later| later.synced >= lost) {
                let problem = format!(
                    "{problem}; batch {} behind it, at byte {}, is whole",
                    later.batch,
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
        self.last = frame::append(&mut self.unwritten, &self.last, self.synced, payload, entries)?;
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
