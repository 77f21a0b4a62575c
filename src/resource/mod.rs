//! What outlives the daemon: the journal, sled behind it, and the way to read both.
//!
//! The layer keeps batches of `model::record` and answers `model::history`. It does not know what
//! an instance is for, which moves are allowed or who asks.
//!
//! `<state>/schedd.lock` says whose the directory is; `<state>/journal/` decides what has happened;
//! `<state>/db/` is sled, made anew from the journal whenever it is missing, behind or damaged.

mod codec;
mod committer;
mod error;
mod frame;
mod journal;
mod keys;
mod lock;
mod memory;
mod reader;
mod revision;
mod sled_store;
mod table;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

pub use self::committer::Committer;
pub use self::error::StoreError;
pub use self::memory::MemoryStore;
pub use self::reader::Reader;

use self::codec::EncodedBatch;
use self::lock::StateLock;
use self::reader::View;
use self::sled_store::SledStore;
use crate::config::Durability;
use crate::model::id::LogSeq;
use crate::model::record::Row;

/// Where sled lives in the state directory.
const DATABASE: &str = "db";
/// Where the journal lives in the state directory.
const JOURNAL: &str = "journal";

/// An open store.
pub struct Opened {
    /// The way in.
    pub committer: Committer,
    /// The way to read.
    pub history: Arc<Reader>,
    /// Every row, in no promised order; log entries and the ledger are read through `history`.
    pub rows: Vec<Row>,
    /// The last log position.
    pub tip: LogSeq,
}

/// Opens the store of a state directory, making it if it is missing (mode 0711).
///
/// Replays what the journal holds beyond sled; a sled that is missing, or damaged so that it does
/// not open or read (it is then set aside as `db.damaged-<n>`), is rebuilt from the whole journal.
/// Blocks for as long as that takes.
///
/// # Errors
/// [`StoreError::InUse`] if another daemon has the directory; otherwise what is wrong and where:
/// nothing that was acknowledged is ever left out in silence.
pub fn open(state_dir: &Path, durability: Durability) -> Result<Opened, StoreError> {
    let lock = StateLock::acquire(state_dir)?;
    let started = match start(state_dir) {
        Err(error) if error.heals_by_rebuild() => {
            set_aside(state_dir, &error)?;
            start(state_dir)?
        }
        other => other?,
    };
    let Started { sled, scanned, rows } = started;
    let journal = scanned.into_journal()?;
    let tip = journal.last().seq;
    let view = Arc::new(View::new(sled, tip, lock));
    let history = Arc::new(Reader::new(Arc::clone(&view)));
    let committer = Committer::start(journal, view, durability, state_dir)?;
    Ok(Opened { committer, history, rows, tip })
}

/// sled brought up to the journal's end.
struct Started {
    sled: SledStore,
    scanned: journal::Scanned,
    rows: Vec<Row>,
}

/// Brings sled up to the journal's end and loads the rows; a panic inside sled, which is how it
/// meets some damage, becomes an error.
fn start(state_dir: &Path) -> Result<Started, StoreError> {
    let dir = state_dir.join(DATABASE);
    catch_unwind(AssertUnwindSafe(|| replay(&dir, &state_dir.join(JOURNAL)))).unwrap_or_else(
        |panic| {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "it panicked".to_owned());
            Err(StoreError::Database { operation: "open", dir, problem: text, damaged: true })
        },
    )
}

fn replay(dir: &Path, journal_dir: &Path) -> Result<Started, StoreError> {
    let sled = SledStore::open(dir)?;
    let applied = sled.applied()?;
    let mut replayed = 0_u64;
    let scanned = journal::scan(journal_dir, &mut |entry| {
        if entry.position.batch <= applied.batch {
            return if entry.position.batch == applied.batch && entry.position != applied {
                Err(StoreError::Diverged {
                    dir: dir.to_path_buf(),
                    file: journal::path(journal_dir),
                    batch: applied.batch,
                })
            } else {
                Ok(())
            };
        }
        replayed += 1;
        let batch = codec::batch(entry.payload).map_err(|error| match error {
            StoreError::Unreadable { problem, .. } => StoreError::Damaged {
                file: journal::path(journal_dir),
                offset: entry.offset,
                problem,
            },
            other @ (StoreError::Schema { .. }
            | StoreError::InUse { .. }
            | StoreError::Io { .. }
            | StoreError::Write { .. }
            | StoreError::Damaged { .. }
            | StoreError::JournalShort { .. }
            | StoreError::Diverged { .. }
            | StoreError::Unwritable { .. }
            | StoreError::Database { .. }
            | StoreError::OutOfOrder { .. }
            | StoreError::Ended) => other,
        })?;
        let writes = table::writes(&batch, EncodedBatch::of(&batch)?, &sled)?;
        sled.apply(&writes, &entry.position)
    })?;
    if scanned.last().batch < applied.batch {
        return Err(StoreError::JournalShort {
            file: scanned.path().to_path_buf(),
            found: scanned.last().batch,
            expected: applied.batch,
        });
    }
    if replayed > 0 {
        sled.checkpoint()?;
        tracing::info!(batches = replayed, "replayed the journal");
    }
    let rows = table::rows(&sled)?;
    Ok(Started { sled, scanned, rows })
}

/// Renames a database that cannot be used, for whoever wants to look into it.
fn set_aside(state_dir: &Path, error: &StoreError) -> Result<(), StoreError> {
    let dir = state_dir.join(DATABASE);
    let mut number = 1_u32;
    let aside = loop {
        let aside = state_dir.join(format!("{DATABASE}.damaged-{number}"));
        if !aside.try_exists().map_err(StoreError::io("look for", &aside))? {
            break aside;
        }
        number += 1;
    };
    tracing::warn!(
        %error,
        aside = %aside.display(),
        "the database is damaged; it is set aside and rebuilt from the journal",
    );
    std::fs::rename(&dir, &aside).map_err(StoreError::io("set aside", &dir))?;
    lock::sync_dir(state_dir)
}
