//! Hints that something changed in a directory: the only file that names notify.
//!
//! A hint is never the truth, the directory is. So nothing needs to be queued: the callback marks
//! what is worth another look and returns; whoever waits takes all marks at once. When the kernel
//! dropped events, everything is marked. What notify cannot promise (its 'Known problems':
//! network mounts, a folder that goes with its parent, the kernel's limits) is met by slow
//! rescans in the users and by [`DirWatch::status`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, MetadataKind, ModifyKind, RenameMode};
use notify::{ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

mod echo;
mod way;

use self::echo::Echo;
pub use self::way::{DirIdentity, identity, on_the_way};

/// Marked paths above which whole directories are marked instead.
const PATHS_MAX: usize = 16_384;

/// What is worth another look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Whatever is watched: events were lost.
    pub everything: bool,
    /// These directories as a whole: they went, were replaced, or had too many changes to list.
    pub dirs: BTreeSet<PathBuf>,
    /// These entries of watched directories, and what was heard last of the writer of each.
    pub paths: BTreeMap<PathBuf, Writer>,
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
    open: Open,
    echo: Option<Echo>,
}

/// How a watcher is got from the kernel.
type Open = fn(Arc<Marks>) -> notify::Result<RecommendedWatcher>;

/// The other end: where marks are waited for and taken.
#[derive(Debug, Clone)]
pub struct HintReader {
    marks: Arc<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    state: Mutex<State>,
    changed: Notify,
    /// An echo was heard.
    echoed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    hints: Hints,
    /// Per watched path all the names under which its directory is wanted, itself included.
    names: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Watched paths that no longer lead to the watched directory.
    lost: BTreeSet<PathBuf>,
    /// The path whose opening is an echo, and whether it has been heard.
    echo: Option<(PathBuf, bool)>,
}

/// What events say about a path's writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
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
        Self::opened_by(|marks| notify::recommended_watcher(move |event| marks.hear(event)))
    }

    fn opened_by(open: Open) -> (Self, HintReader) {
        let marks = Arc::new(Marks::default());
        let reader = HintReader { marks: Arc::clone(&marks) };
        let held = BTreeMap::new();
        (Self { marks, watcher: None, held, limit: None, open, echo: None }, reader)
    }

    /// What the kernel gives when its limit of watchers is reached.
    #[cfg(test)]
    pub(super) fn refused_by_the_kernel() -> (Self, HintReader) {
        Self::opened_by(|_| Err(notify::Error::io(std::io::Error::from_raw_os_error(libc::EMFILE))))
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

    /// Which of these paths something was heard of since the marks were last taken, and what,
    /// counting all that happened before this call: see [`Echo`]. If that cannot be had within
    /// `within`, it is all of them. Blocking.
    pub fn heard_of(&mut self, paths: &[PathBuf], within: Duration) -> Vec<(PathBuf, Writer)> {
        let is_complete = self.is_all_heard(within);
        let state = self.marks.lock();
        let heard = |path: &PathBuf| match state.hints.paths.get(path) {
            Some(writer) => Some((path.clone(), *writer)),
            None => (!is_complete).then(|| (path.clone(), Writer::Unknown)),
        };
        paths.iter().filter_map(heard).collect()
    }

    /// Waits until all has been heard that happened before this call.
    fn is_all_heard(&mut self, within: Duration) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        if self.echo.is_none() {
            self.echo = Echo::watched_by(watcher, &self.marks).ok();
        }
        let is_heard = self.echo.as_ref().is_some_and(|echo| echo.is_heard(&self.marks, within));
        if !is_heard && let Some(echo) = self.echo.take() {
            // Its call may still be heard one day, and must not be taken for that of another.
            drop(watcher.unwatch(&echo.path));
        }
        is_heard
    }

    fn open(&mut self) {
        match (self.open)(Arc::clone(&self.marks)) {
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
        if matches!(event.kind, EventKind::Access(AccessKind::Open(_))) {
            return self.hear_opened(&event.paths);
        }
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

    fn hear_opened(&self, paths: &[PathBuf]) {
        if let Some((path, is_heard)) = &mut self.lock().echo
            && paths.contains(path)
        {
            *is_heard = true;
            self.echoed.notify_all();
        }
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
            let known = self.hints.paths.entry(dir.join(file)).or_insert(writer);
            // Who wrote what is gone does not matter for what comes after it.
            if gone || writer != Writer::Unknown {
                *known = writer;
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
    } else if is_going(kind)
        || matches!(kind, EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)))
    {
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

#[cfg(test)]
mod tests;
