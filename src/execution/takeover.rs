//! How an executor's process begins: its lock, its number, and the end of what an earlier process
//! of its id left running.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::clock;
use super::executor::{ExecutorError, failed};
use super::journal::Left;
use super::session::{Identity, Orphans, Session};
use crate::model::id::ExecutorId;

/// Time in which an earlier process's tasks are ended before they are killed.
const LOST_GRACE: Duration = Duration::from_secs(1);
/// How long a start waits for the lock: the daemon looks at it now and then.
const LOCK_WITHIN: Duration = Duration::from_secs(1);
/// Between looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The files of one executor.
pub(super) struct Places {
    /// Locked while a process of this id is alive.
    pub(super) lock: PathBuf,
    /// Its own directory.
    pub(super) own: PathBuf,
}

impl Places {
    pub(super) fn new(state_dir: &Path, id: &ExecutorId) -> Self {
        let executors = state_dir.join("executors");
        Self { lock: lock_path(state_dir, id), own: executors.join(id.as_str()) }
    }

    /// Directories that a task of another user must pass on the way to its result file may be
    /// passed, not listed.
    pub(super) fn make(&self) -> Result<(), ExecutorError> {
        for dir in [self.own.clone(), self.own.join("results")] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o711)
                .create(&dir)
                .map_err(failed(format!("make the directory {}", dir.display())))?;
        }
        Ok(())
    }
}

/// The file whose lock says that an executor of this id is alive.
pub(super) fn lock_path(state_dir: &Path, id: &ExecutorId) -> PathBuf {
    state_dir.join("executors").join(format!("{id}.lock"))
}

/// Where an executor keeps its journal.
pub(super) fn attempts_dir(state_dir: &Path, id: &ExecutorId) -> PathBuf {
    state_dir.join("executors").join(id.as_str()).join("attempts")
}

/// Takes the lock and writes the process id into it.
///
/// # Errors
/// If another process of this id is alive.
pub(super) async fn lock(path: &Path, id: &ExecutorId) -> Result<File, ExecutorError> {
    let opening = failed(format!("open the lock {}", path.display()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(opening)?;
    let give_up = clock::monotonic() + LOCK_WITHIN;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(fs::TryLockError::WouldBlock) if clock::monotonic() < give_up => {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Err(fs::TryLockError::WouldBlock) => {
                return Err(ExecutorError::Running { id: id.clone(), lock: path.to_owned() });
            }
            Err(fs::TryLockError::Error(error)) => {
                return Err(failed(format!("lock {}", path.display()))(error));
            }
        }
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(failed(format!("write {}", path.display())))?;
    Ok(file)
}

/// The number of this process among those of its id: one more than the last. A damaged file must
/// not make it fall back, so the clock takes its place.
pub(super) fn incarnation(path: &Path) -> io::Result<u64> {
    let next = match fs::read_to_string(path) {
        Ok(text) => text.trim().parse::<u64>().ok().and_then(|n| n.checked_add(1)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(1),
        Err(_) => None,
    };
    let next = next.unwrap_or_else(|| u64::try_from(clock::now().as_millis()).unwrap_or(1));
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    writeln!(file, "{next}")?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    Ok(next)
}

/// Ends what still runs of an earlier process's attempts: TERM, a second, KILL. The daemon does so
/// before it calls an executor lost, and the next process of the id once more, for the case that
/// no daemon was there. In a copied directory nothing is ended: what it names is the original's,
/// and so is what carries an attempt's name in its environment.
pub(super) async fn end_left(left: &[Left], boot_id: &Arc<str>) {
    let sessions: Vec<Session> = left
        .iter()
        .filter(|one| one.is_own && one.boot_id.as_ref() == Some(boot_id))
        .map(|one| {
            // Without a line about its start there may be a process all the same.
            let leader = one.leader.unwrap_or(Identity::UNKNOWN);
            let session = Session::new(leader, &one.of, Orphans::Anywhere);
            session.know(one.seen.iter().copied());
            session
        })
        .collect();
    let signal =
        |signal: Signal| sessions.iter().map(|s| s.signal(&BTreeSet::new(), signal)).sum::<usize>();
    if sessions.is_empty() || signal(Signal::SIGTERM) == 0 {
        return;
    }
    let grace_ends = clock::monotonic() + LOST_GRACE;
    let give_up = grace_ends + LOST_GRACE;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = clock::monotonic();
        let left = if now >= grace_ends {
            signal(Signal::SIGKILL)
        } else {
            sessions.iter().map(|s| s.members(&BTreeSet::new()).len()).sum()
        };
        if left == 0 {
            return;
        }
        if now >= give_up {
            tracing::warn!(left, "processes of lost attempts hang in the kernel");
            return;
        }
    }
}
