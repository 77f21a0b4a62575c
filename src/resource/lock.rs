//! The state directory and the lock that makes it one daemon's.
//!
//! Knows nothing of what is kept there. The lock is the kernel's, on an open file, so it goes with
//! the process however that ends; the file itself stays and its content is only for people.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use super::error::StoreError;

/// The lock's file in the state directory.
const LOCK_FILE: &str = "schedd.lock";

/// A process that a daemon had just forked holds the daemon's locks until it is another program;
/// one whose daemon was killed at that very moment is waited for, so long.
pub(super) const LOOKS: u32 = 200;
/// Between two looks at a lock.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The state directory is ours for as long as this lives.
#[derive(Debug)]
pub(super) struct StateLock {
    /// Opened with O_CLOEXEC, as std always does: a child that inherited it would hold the lock
    /// beyond our end.
    _file: File,
}

impl StateLock {
    /// Makes `state_dir` if it is missing and takes its lock.
    ///
    /// Its mode is 0711: a task of another user must pass it on the way to its result file
    /// (contract §3), nobody may list it, and what is kept in it is closed to others itself.
    ///
    /// # Errors
    /// [`StoreError::InUse`] with the holder's process id; [`StoreError::Io`].
    pub(super) fn acquire(state_dir: &Path) -> Result<Self, StoreError> {
        make_dir(state_dir, 0o711)?;
        let path = state_dir.join(LOCK_FILE);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::io("open the lock", &path))?;
        let mut looks = 0;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let pid = read_pid(&mut file);
                    if looks == LOOKS || pid.is_some_and(is_alive) {
                        return Err(StoreError::InUse { pid, dir: state_dir.to_path_buf() });
                    }
                }
                Err(TryLockError::Error(source)) => {
                    return Err(StoreError::io("take the lock", &path)(source));
                }
            }
            looks += 1;
            std::thread::park_timeout(LOOK_EVERY);
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(StoreError::io("write the process id into", &path))?;
        Ok(Self { _file: file })
    }
}

/// Makes a directory of mode 0700 and its missing parents durable, unless it is there.
///
/// # Errors
/// [`StoreError::Io`].
pub(super) fn make_private_dir(dir: &Path) -> Result<(), StoreError> {
    make_dir(dir, 0o700)
}

fn make_dir(dir: &Path, mode: u32) -> Result<(), StoreError> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or(Ok(()), |parent| make_dir(parent, mode))?;
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(dir)
        .map_err(StoreError::io("make the directory", dir))?;
    parent.map_or(Ok(()), sync_dir)
}

/// Makes the entries of a directory durable: new, renamed and removed names.
///
/// # Errors
/// [`StoreError::Io`].
pub(super) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(StoreError::io("sync the directory", dir))
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_second_holder_is_refused_with_the_first_ones_pid_until_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/b");
        let first = StateLock::acquire(&state).unwrap();
        assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o711);
        match StateLock::acquire(&state) {
            Err(StoreError::InUse { pid, dir }) => {
                assert_eq!((pid, dir), (Some(std::process::id()), state.clone()));
            }
            other => panic!("{other:?}"),
        }
        drop(first);
        StateLock::acquire(&state).unwrap();
    }
}
