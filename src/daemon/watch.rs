//! Hints that something changed in a directory: the only file that names notify.
//!
//! A hint is never the truth, the directory is. So nothing needs to be queued: the callback marks
//! what is worth another look and returns; whoever waits takes all marks at once. When the kernel
//! dropped events, everything is marked. What notify cannot promise (its 'Known problems':
//! network mounts, a folder that goes with its parent, the kernel's limits) is met by slow
//! rescans in the users and by [`DirWatch::status`].

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, MetadataKind, ModifyKind, RenameMode};
use notify::{ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Marked paths above which whole directories are marked instead.
const PATHS_MAX: usize = 16_384;

/// What is worth another look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Whatever is watched: events were lost.
    pub everything: bool,
    /// These directories as a whole: they went, were replaced, or had too many changes to list.
    pub dirs: BTreeSet<PathBuf>,
    /// These entries of watched directories, and whether the last thing heard of each is that it
    /// was closed after writing or renamed into place.
    pub paths: BTreeMap<PathBuf, bool>,
}

impl Hints {
    /// Whether nothing is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.everything && self.dirs.is_empty() && self.paths.is_empty()
    }
}

/// The set of watched directories. It belongs to whoever does the blocking work: [`Self::set`]
/// touches the file system.
#[derive(Debug)]
pub struct DirWatch {
    marks: Arc<Marks>,
    watcher: Option<RecommendedWatcher>,
    held: BTreeMap<DirIdentity, PathBuf>,
    limit: Option<String>,
}

/// The other end: where marks are waited for and taken.
#[derive(Debug, Clone)]
pub struct HintReader {
    marks: Arc<Marks>,
}

/// Device and inode: the kernel watches a directory, not a name.
type DirIdentity = (u64, u64);

#[derive(Debug, Default)]
struct Marks {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    hints: Hints,
    /// Per watched path all the names under which its directory is wanted, itself included.
    names: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Watched paths that no longer lead to the watched directory.
    lost: BTreeSet<PathBuf>,
}

/// What an event says about a path's writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// Has closed it, or has renamed it into place.
    Done,
    /// May be at it.
    AtIt,
    /// Nothing.
    Unknown,
}

impl DirWatch {
    /// Watches nothing yet. If the kernel gives no watcher, [`Self::status`] says so and each
    /// [`Self::set`] tries again.
    #[must_use]
    pub fn new() -> (Self, HintReader) {
        let marks = Arc::new(Marks::default());
        let reader = HintReader { marks: Arc::clone(&marks) };
        (Self { marks, watcher: None, held: BTreeMap::new(), limit: None }, reader)
    }

    /// Watches these directories and no others. Those that do not exist are left out: watch their
    /// nearest existing parent ([`on_the_way`]). Returns whether any directory is newly watched,
    /// so that what is in it has to be read (again). Blocking.
    pub fn set(&mut self, wanted: &BTreeSet<PathBuf>) -> bool {
        self.limit = None;
        if self.watcher.is_none() && !wanted.is_empty() {
            self.open();
        }
        let mut groups: BTreeMap<DirIdentity, Vec<PathBuf>> = BTreeMap::new();
        for dir in wanted {
            if let Some(identity) = identity(dir) {
                groups.entry(identity).or_default().push(dir.clone());
            }
        }
        self.release(&groups);
        let mut added = false;
        for (identity, names) in groups {
            added |= self.hold(identity, names);
        }
        added
    }

    /// Why looking by events does not work, if it does not: then look at short intervals.
    #[must_use]
    pub fn status(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    fn open(&mut self) {
        let marks = Arc::clone(&self.marks);
        match notify::recommended_watcher(move |event| marks.hear(event)) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => self.limit = Some(limit_text(&error)),
        }
    }

    /// Lets go of what is not wanted, or is not what its path leads to any more.
    fn release(&mut self, groups: &BTreeMap<DirIdentity, Vec<PathBuf>>) {
        let mut state = self.marks.lock();
        let lost = std::mem::take(&mut state.lost);
        let mut released = Vec::new();
        self.held.retain(|identity, path| {
            let keep =
                !lost.contains(path) && groups.get(identity).is_some_and(|g| g.contains(path));
            if !keep {
                state.names.remove(path);
                released.push(path.clone());
            }
            keep
        });
        // notify's thread may be waiting for the lock while it ought to answer `unwatch`.
        drop(state);
        if let Some(watcher) = &mut self.watcher {
            for path in released {
                // It may be gone already: with its directory, or with a parent's.
                drop(watcher.unwatch(&path));
            }
        }
    }

    fn hold(&mut self, id: DirIdentity, names: Vec<PathBuf>) -> bool {
        if let Some(path) = self.held.get(&id) {
            self.marks.lock().names.insert(path.clone(), names);
            return false;
        }
        let (Some(watcher), Some(path)) = (&mut self.watcher, names.first().cloned()) else {
            return false;
        };
        // Before the watch, so that its first event finds its names.
        self.marks.lock().names.insert(path.clone(), names);
        match watcher.watch(&path, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.held.insert(id, path.clone());
                if identity(&path) != Some(id) {
                    // Replaced in between: what is watched now is not known.
                    self.marks.lose(&path);
                }
                true
            }
            Err(error) => {
                self.marks.lock().names.remove(&path);
                if !is_gone(&error) {
                    self.limit = Some(limit_text(&error));
                }
                false
            }
        }
    }
}

impl HintReader {
    /// Waits until something is marked. Marks set while nobody waits are not forgotten.
    ///
    /// Cancel safe.
    pub async fn changed(&self) {
        self.marks.changed.notified().await;
    }

    /// Takes all marks.
    #[must_use]
    pub fn take(&self) -> Hints {
        std::mem::take(&mut self.marks.lock().hints)
    }
}

impl Marks {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The sections under this lock do not panic, and marks are only ever added.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, path: &Path) {
        let mut state = self.lock();
        state.lost.insert(path.to_owned());
        state.hints.dirs.insert(path.to_owned());
        drop(state);
        self.changed.notify_one();
    }

    /// notify's callback: marks, and never waits for anybody but a reader who takes the marks.
    fn hear(&self, event: notify::Result<notify::Event>) {
        let event = match event {
            Ok(event) if event.need_rescan() => return self.mark_everything(),
            Ok(event) => event,
            Err(_) => return self.mark_everything(),
        };
        // Reading, ours included, is not a change. A rename is told by its two halves too.
        if is_reading(event.kind) || is_rename_summary(event.kind) {
            return;
        }
        let writer = writer(event.kind);
        let gone = is_going(event.kind);
        let mut state = self.lock();
        for path in &event.paths {
            state.mark(path, writer, gone);
        }
        drop(state);
        self.changed.notify_one();
    }

    fn mark_everything(&self) {
        self.lock().hints.everything = true;
        self.changed.notify_one();
    }
}

impl State {
    fn mark(&mut self, path: &Path, writer: Writer, gone: bool) {
        if gone {
            self.mark_lost_under(path);
        }
        if let Some(names) = self.names.get(path) {
            self.hints.dirs.extend(names.iter().cloned());
        }
        let (Some(dir), Some(file)) = (path.parent(), path.file_name()) else { return };
        let Some(names) = self.names.get(dir) else { return };
        for dir in names {
            if self.hints.paths.len() >= PATHS_MAX {
                self.hints.dirs.insert(dir.clone());
                continue;
            }
            let done = self.hints.paths.entry(dir.join(file)).or_insert(false);
            match writer {
                Writer::Done => *done = true,
                Writer::AtIt => *done = false,
                Writer::Unknown => {}
            }
        }
    }

    /// When a directory goes, notify drops its watch and those below it without a word.
    fn mark_lost_under(&mut self, path: &Path) {
        let below = self
            .names
            .range(path.to_owned()..)
            .take_while(|(watched, _)| watched.starts_with(path));
        for (watched, names) in below {
            self.lost.insert(watched.clone());
            self.hints.dirs.extend(names.iter().cloned());
        }
    }
}

fn writer(kind: EventKind) -> Writer {
    if matches!(
        kind,
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(RenameMode::To))
    ) {
        Writer::Done
    } else if matches!(kind, EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any))) {
        Writer::Unknown
    } else {
        Writer::AtIt
    }
}

fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(_)) && writer(kind) != Writer::Done
}

fn is_rename_summary(kind: EventKind) -> bool {
    matches!(kind, EventKind::Modify(ModifyKind::Name(RenameMode::Both)))
}

fn is_going(kind: EventKind) -> bool {
    matches!(kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)))
}

fn is_gone(error: &notify::Error) -> bool {
    matches!(error.kind, ErrorKind::PathNotFound)
        || matches!(&error.kind, ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound)
}

fn limit_text(error: &notify::Error) -> String {
    let limit = match &error.kind {
        ErrorKind::MaxFilesWatch => "fs.inotify.max_user_watches is used up",
        ErrorKind::Io(io) if io.raw_os_error() == Some(libc::EMFILE) => {
            "fs.inotify.max_user_instances or the limit of open files is used up"
        }
        ErrorKind::Io(io) if io.raw_os_error() == Some(libc::ENOSPC) => {
            "fs.inotify.max_user_watches is used up"
        }
        ErrorKind::Io(_)
        | ErrorKind::Generic(_)
        | ErrorKind::PathNotFound
        | ErrorKind::WatchNotFound
        | ErrorKind::InvalidConfig(_) => {
            return format!(
                "the kernel's file events do not work ({error}); looking often instead"
            );
        }
    };
    format!("inotify limit: {limit}; looking often instead, raise it with sysctl")
}

fn identity(dir: &Path) -> Option<DirIdentity> {
    let meta = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino()))
}

/// The directories whose events together tell that `dir` appears, goes, or is replaced, and what
/// changes in it: itself, the parent of every symbolic link on its way, and if it does not exist
/// its nearest existing parent. That a parent was renamed together with it is not among what
/// they tell. Blocking.
#[must_use]
pub fn on_the_way(dir: &Path) -> BTreeSet<PathBuf> {
    let mut watched = BTreeSet::new();
    let mut at = PathBuf::new();
    for part in dir.components() {
        let next = at.join(part);
        if std::fs::symlink_metadata(&next).is_ok_and(|meta| meta.is_symlink()) {
            watched.insert(at.clone());
        }
        if !next.is_dir() {
            watched.insert(at);
            return watched;
        }
        at = next;
    }
    watched.insert(at);
    watched
}

#[cfg(test)]
mod tests;
