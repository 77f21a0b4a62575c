//! Knowing that all has been heard which happened before now.
//!
//! The kernel tells what happens to everything that one watcher watches in one order. So among
//! what is watched there is a file of ours that nobody else can reach: when it is heard that it
//! was opened, whatever happened before that opening has been heard too.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::{Marks, PoisonError, RecommendedWatcher, RecursiveMode, Watcher};

/// A watched file in memory, without a name in any directory.
#[derive(Debug)]
pub(super) struct Echo {
    /// Leads to it as long as it is held.
    pub(super) path: PathBuf,
    _held: OwnedFd,
}

impl Echo {
    /// A new one.
    ///
    /// # Errors
    /// If the kernel gives no such file, `/proc` is not there, or nothing more can be watched.
    pub(super) fn watched_by(watcher: &mut RecommendedWatcher, marks: &Marks) -> io::Result<Self> {
        let held = memfd_create(c"schedd-echo", MFdFlags::MFD_CLOEXEC)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        watcher.watch(&path, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
        marks.lock().echo = Some((path.clone(), false));
        Ok(Self { path, _held: held })
    }

    /// Opens it and waits until that is heard, for `within` at most.
    pub(super) fn is_heard(&self, marks: &Marks, within: Duration) -> bool {
        let mut state = marks.lock();
        state.echo = Some((self.path.clone(), false));
        drop(state);
        if File::open(&self.path).is_err() {
            return false;
        }
        let is_silent = |state: &mut super::State| state.echo.as_ref().is_some_and(|(_, h)| !h);
        let waited = marks.echoed.wait_timeout_while(marks.lock(), within, is_silent);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.echo.as_ref().is_some_and(|(_, is_heard)| *is_heard)
    }
}
