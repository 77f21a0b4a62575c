//! What can go wrong with the store, by the operation that failed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::id::LogSeq;

/// Why the store cannot be opened, written or read.
///
/// It is `Clone` because one failed sync is the answer to every commit that waited for it.
/// Contract §5 gives the exit status: 75 for [`InUse`](Self::InUse), 74 for
/// [`Io`](Self::Io), [`Write`](Self::Write), [`Database`](Self::Database) and
/// [`Ended`](Self::Ended), 70 for [`OutOfOrder`](Self::OutOfOrder) and
/// [`Unwritable`](Self::Unwritable), 78 for the others, which mean damaged state.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another daemon has the state directory.
    #[error(
        "the state directory {dir} is in use by {}; stop that daemon, or give this one another \
         `stateDir`",
        pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    InUse {
        /// Whose lock it is; `None`: the lock file does not say yet.
        pid: Option<u32>,
        /// The state directory.
        dir: PathBuf,
    },
    /// A file or directory cannot be prepared or read at start.
    #[error("cannot {operation} {path}")]
    Io {
        /// In the infinitive.
        operation: &'static str,
        /// Of what.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: Arc<io::Error>,
    },
    /// Writing or syncing what was to be kept failed. Fatal, never tried again: after a failed
    /// sync nobody knows what the disk holds (reliability F2).
    #[error("cannot {operation} {path}; nothing is acknowledged from here on")]
    Write {
        /// In the infinitive.
        operation: &'static str,
        /// Of what.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: Arc<io::Error>,
    },
    /// The journal is damaged before its end.
    #[error(
        "the journal {file} is damaged at byte {offset}: {problem}; restore it from a backup, the \
         daemon does not start without what was acknowledged"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where the first bad frame begins.
        offset: u64,
        /// What was found, what is expected.
        problem: String,
    },
    /// The journal ends before what the database already holds: acknowledged batches are gone.
    #[error(
        "the journal {file} ends at batch {found}, but the database beside it holds batch \
         {expected}; restore the journal from a backup"
    )]
    JournalShort {
        /// The file.
        file: PathBuf,
        /// The last batch of the journal.
        found: u64,
        /// The last batch of the database.
        expected: u64,
    },
    /// The database was made from another journal.
    #[error(
        "the database {dir} does not belong to the journal {file}: batch {batch} differs; put the \
         files of one state directory back together, or move the database away to have it rebuilt"
    )]
    Diverged {
        /// The database's directory.
        dir: PathBuf,
        /// The journal.
        file: PathBuf,
        /// Where they differ.
        batch: u64,
    },
    /// A newer program wrote this.
    #[error("the state has schema {found}; this program reads up to {known}: start the newer one")]
    Schema {
        /// What was found.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// Stored bytes do not read as what they should be.
    #[error("cannot read a stored {what}: {problem}")]
    Unreadable {
        /// Of which kind.
        what: &'static str,
        /// The parser's words.
        problem: String,
    },
    /// Something does not go into its stored form.
    #[error("cannot write a {what} in its stored form: {problem}")]
    Unwritable {
        /// Of which kind.
        what: &'static str,
        /// The serializer's words.
        problem: String,
    },
    /// The database behind the journal failed.
    #[error("cannot {operation} the database {dir}: {problem}")]
    Database {
        /// In the infinitive.
        operation: &'static str,
        /// Its directory.
        dir: PathBuf,
        /// Its own words.
        problem: String,
        /// It is the content that is bad, not its surroundings: a rebuild from the journal heals.
        damaged: bool,
    },
    /// The records of a batch do not follow the log's tip. A broken invariant of the caller.
    #[error("a batch begins at log entry {}, but the log goes on at {}", found.0, expected.0)]
    OutOfOrder {
        /// The next position.
        expected: LogSeq,
        /// What the batch has there.
        found: LogSeq,
    },
    /// The store's thread is gone.
    #[error("the store has ended")]
    Ended,
}

impl StoreError {
    /// For `map_err` on what prepares or reads a file.
    pub(super) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { operation, path, source: Arc::new(source) }
    }

    /// For `map_err` on what writes or syncs a file.
    pub(super) fn write(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Write { operation, path, source: Arc::new(source) }
    }

    /// Whether a database rebuilt from the journal would be without this fault.
    pub(super) fn heals_by_rebuild(&self) -> bool {
        matches!(self, Self::Database { damaged: true, .. } | Self::Unreadable { .. })
    }
}
