//! sled, the queryable table behind the journal: the only file that names it.
//!
//! Nothing here decides what has happened; that is the journal's. So sled may lose, tear or refuse
//! everything and the store is rebuilt; what it must not do is answer wrongly without a word, and
//! for that the applied position lies in the same batch as what was applied.
//!
//! How sled 0.34.7 is used, and why:
//! - `flush_every_ms(None)`: no thread that wakes an idle machine twice a second. That thread also
//!   rewrites sparse segments, but so does each replacement of a page (`PageCache::replace`): 500
//!   live values and a log of 2,000 entries, 60,000 batches of them, stayed at 15 MB. And its sync
//!   only logs an error.
//! - `flush()` writes without a sync on Linux: each one is followed by fdatasync on a descriptor
//!   of our own. `flush_async` deadlocks under load and is never used.
//! - one tree, one `Batch` per batch of the journal: all of it or nothing after a crash.
//! - a half-written `snap.*.generating` from a killed start would be taken for the newest
//!   snapshot: removed first. `snap.X` itself is never touched.
//! - values go in parts of at most 4 KiB: a page of 16 larger ones would become a file under
//!   `blobs/`, which sled never syncs.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use super::codec;
use super::error::StoreError;
use super::frame::Position;
use super::keys::{self, Range};
use super::lock::{LOOK_EVERY, LOOKS, make_private_dir, sync_dir};
use super::table::{Table, Visit, Write};

/// Bytes of sled's page cache.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of one stored value, its mark included.
const PART_BYTES: usize = 4096;
/// First byte of a value that stands as it is.
const WHOLE: u8 = 0;
/// First byte of a value in parts; their number follows, as four big-endian bytes.
const IN_PARTS: u8 = 1;

/// The table in sled.
pub(super) struct SledStore {
    db: sled::Db,
    /// Of `<dir>/db`, for the sync that sled leaves out; kept, so that the kernel reports
    /// write-back errors to it.
    data: File,
    dir: PathBuf,
    /// Held while the parts of one long value are read, against a batch that replaces them.
    parts: RwLock<()>,
}

fn open_once(dir: &Path) -> sled::Result<sled::Db> {
    sled::Config::new()
        .path(dir)
        .cache_capacity(CACHE_BYTES)
        .mode(sled::Mode::LowSpace)
        .use_compression(false)
        .flush_every_ms(None)
        .open()
}

/// sled tells a taken lock in words only.
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(io) if io.to_string().contains("could not acquire lock"))
}

impl SledStore {
    /// Opens or makes the database in `dir`. May panic inside sled: the caller catches.
    ///
    /// # Errors
    /// [`StoreError::Database`], whose `damaged` says whether a rebuild would help;
    /// [`StoreError::Io`].
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        // sled would make it with whatever the umask allows.
        make_private_dir(dir)?;
        remove_half_snapshots(dir)?;
        let young = !dir.join("conf").exists();
        let mut looks = 0;
        // Nobody else may have it, for the state directory is locked: see `LOOKS`.
        let db = loop {
            match open_once(dir) {
                Err(error) if is_locked(&error) && looks < LOOKS => {
                    looks += 1;
                    std::thread::park_timeout(LOOK_EVERY);
                }
                opened => break opened.map_err(failed("open", dir))?,
            }
        };
        let data_path = dir.join("db");
        let data = File::options()
            .read(true)
            .write(true)
            .open(&data_path)
            .map_err(StoreError::io("open", &data_path))?;
        let store = Self { db, data, dir: dir.to_path_buf(), parts: RwLock::new(()) };
        store.checkpoint()?;
        if young {
            store.settle_creation()?;
        }
        Ok(store)
    }

    /// sled syncs neither its `conf` nor any directory; a young database is lost without.
    fn settle_creation(&self) -> Result<(), StoreError> {
        let conf = self.dir.join("conf");
        File::open(&conf)
            .and_then(|conf| conf.sync_all())
            .map_err(StoreError::write("sync", &conf))?;
        sync_dir(&self.dir.join("blobs"))?;
        sync_dir(&self.dir)?;
        self.dir.parent().map_or(Ok(()), sync_dir)
    }

    /// Up to where the journal has been applied; the start of it for a new database.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Unreadable`].
    pub(super) fn applied(&self) -> Result<Position, StoreError> {
        match self.get(keys::APPLIED)? {
            Some(bytes) => codec::open("journal position", &bytes),
            None => Ok(Position::default()),
        }
    }

    /// Applies one batch, which ends at `position`, all or nothing.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub(super) fn apply(&self, writes: &[Write], position: &Position) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for write in writes {
            self.stage(&mut batch, &write.key, write.value.as_deref())?;
        }
        let position = codec::seal("journal position", position)?;
        self.stage(&mut batch, keys::APPLIED, Some(&position))?;
        let _parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        self.db.apply_batch(batch).map_err(failed("write to", &self.dir))
    }

    /// Puts a value into the batch: the one place where long values become parts.
    fn stage(
        &self,
        batch: &mut sled::Batch,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let old = self.db.get(key).map_err(failed("read", &self.dir))?;
        let old_parts = old.as_deref().and_then(parts_of).unwrap_or(0);
        let mut new_parts = 0;
        match value {
            None => batch.remove(key),
            Some(value) if value.len() < PART_BYTES => {
                let mut whole = Vec::with_capacity(1 + value.len());
                whole.push(WHOLE);
                whole.extend_from_slice(value);
                batch.insert(key, whole);
            }
            Some(value) => {
                for part in value.chunks(PART_BYTES) {
                    batch.insert(keys::part(key, new_parts), part);
                    new_parts += 1;
                }
                let mut head = vec![IN_PARTS];
                head.extend_from_slice(&new_parts.to_be_bytes());
                batch.insert(key, head);
            }
        }
        for gone in new_parts..old_parts {
            batch.remove(keys::part(key, gone));
        }
        Ok(())
    }

    /// Makes all that was applied durable.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Write`].
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        self.db.flush().map_err(failed("flush", &self.dir))?;
        self.data.sync_data().map_err(StoreError::write("sync", &self.dir.join("db")))
    }

    /// The value that a stored head stands for.
    fn whole(&self, key: &[u8], head: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some((&WHOLE, value)) = head.split_first() {
            return Ok(Some(value.to_vec()));
        }
        let _parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        // Read again: it may have been replaced before the lock was taken.
        let Some(head) = self.db.get(key).map_err(failed("read", &self.dir))? else {
            return Ok(None);
        };
        if let Some((&WHOLE, value)) = head.split_first() {
            return Ok(Some(value.to_vec()));
        }
        let missing = |problem: &str| StoreError::Unreadable {
            what: "long value",
            problem: problem.to_owned(),
        };
        let parts = parts_of(&head).ok_or_else(|| missing("its first byte is unknown"))?;
        let mut value = Vec::new();
        for number in 0..parts {
            let part = self
                .db
                .get(keys::part(key, number))
                .map_err(failed("read", &self.dir))?
                .ok_or_else(|| missing("a part is missing"))?;
            value.extend_from_slice(&part);
        }
        Ok(Some(value))
    }
}

/// How many parts a stored head names; `None`: it is none of those.
fn parts_of(head: &[u8]) -> Option<u32> {
    match head.split_first()? {
        (&IN_PARTS, number) => number.try_into().ok().map(u32::from_be_bytes),
        _ => None,
    }
}

impl Table for SledStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.db.get(key).map_err(failed("read", &self.dir))? {
            Some(head) => self.whole(key, &head),
            None => Ok(None),
        }
    }

    fn scan(&self, range: &Range, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        for entry in self.db.range(range.from.as_slice()..range.to.as_slice()) {
            let (key, head) = entry.map_err(failed("read", &self.dir))?;
            let step = match self.whole(&key, &head)? {
                Some(value) => visit(&key, &value)?,
                None => ControlFlow::Continue(()),
            };
            if step.is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn remove_half_snapshots(dir: &Path) -> Result<(), StoreError> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io("read the directory", dir)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(StoreError::io("read the directory", dir))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            let path = entry.path();
            std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            tracing::warn!(file = %path.display(), "removed a half-written snapshot of a killed start");
        }
    }
    Ok(())
}

fn failed(operation: &'static str, dir: &Path) -> impl FnOnce(sled::Error) -> StoreError {
    let dir = dir.to_path_buf();
    move |error| {
        let damaged = match &error {
            sled::Error::Io(error) => is_damage(error),
            sled::Error::CollectionNotFound(_)
            | sled::Error::Unsupported(_)
            | sled::Error::ReportableBug(_)
            | sled::Error::Corruption { .. } => true,
        };
        StoreError::Database { operation, dir, problem: error.to_string(), damaged }
    }
}

/// Whether an I/O error speaks of the files' content; a full disk, a missing right or a lock that
/// somebody holds would be there after a rebuild too.
fn is_damage(error: &io::Error) -> bool {
    let kind = error.kind();
    if kind == ErrorKind::Other {
        // sled speaks of its own lock in this way; there is no kind for it.
        return !error.to_string().contains("could not acquire lock");
    }
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::UnexpectedEof
            | ErrorKind::InvalidData
            | ErrorKind::InvalidInput
    )
}

#[cfg(test)]
mod tests;
