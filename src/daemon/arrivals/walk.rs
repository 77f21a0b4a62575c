//! Reads the directories on a pattern's way. Blocking; it only lists and stats, never opens a
//! file, so that a FIFO or a device that matches does no harm (known fault B164).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::file_system::FileSystem;
use super::pattern::{Part, Pattern, is_hidden};
use super::tracker::Sight;
use crate::daemon::clock::Clock;
use crate::model::event::FileIdentity;

/// How far one walk goes; what lies beyond is seen only when something tells of it. A pattern such
/// as `/**` holds nothing else up for long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Directories that are watched.
    pub(super) dirs: usize,
    /// Matches.
    pub(super) files: usize,
    /// Names in one directory.
    pub(super) names: usize,
    /// Time.
    pub(super) within: Duration,
}

impl Bounds {
    pub(super) const USUAL: Self =
        Self { dirs: 10_000, files: 200_000, names: 500_000, within: Duration::from_secs(10) };
}

/// What a walk along one pattern gave.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// What matches, each with the time of its sighting.
    pub(super) seen: BTreeMap<Arc<str>, (Sight, Duration)>,
    /// The directories whose events tell of changes of `seen` and of this set.
    pub(super) dirs: BTreeSet<PathBuf>,
    /// Directories that could not be read, or are waited for; for the daemon's status.
    pub(super) notes: BTreeSet<String>,
    /// A directory of it is on a file system on which changes made elsewhere give no event: which,
    /// and on what.
    pub(super) remote: Option<(PathBuf, &'static str)>,
    /// Nothing was left out.
    pub(super) is_complete: bool,
}

/// Walks along patterns; a directory that several of them share is read once.
pub(super) struct Walker<'a> {
    clock: &'a Clock,
    file_system: FileSystemOf,
    bounds: Bounds,
    until: Duration,
    listings: BTreeMap<PathBuf, Rc<Listing>>,
}

/// Says what a directory is on.
pub(super) type FileSystemOf = fn(&Path) -> FileSystem;

struct Listing {
    entries: Vec<(OsString, Option<FileType>)>,
    file_system: FileSystem,
    is_whole: bool,
    failure: Option<io::Error>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(clock: &'a Clock, file_system: FileSystemOf, bounds: Bounds) -> Self {
        let (until, listings) = (Duration::MAX, BTreeMap::new());
        Self { clock, file_system, bounds, until, listings }
    }

    pub(super) fn walk(&mut self, pattern: &Pattern) -> Walked {
        self.until = self.clock.elapsed().saturating_add(self.bounds.within);
        let mut walked = Walked { is_complete: true, ..Walked::default() };
        self.descend(Path::new("/"), pattern.parts(), &mut walked);
        walked
    }

    fn descend(&mut self, dir: &Path, parts: &[Part], walked: &mut Walked) {
        if walked.dirs.len() >= self.bounds.dirs {
            let max = self.bounds.dirs;
            return walked.cut_short(format!("more than {max} folders: not all are watched"));
        }
        if self.clock.elapsed() >= self.until {
            let max = self.bounds.within;
            return walked.cut_short(format!("not all folders are looked at within {max:?}"));
        }
        match parts {
            [] => {}
            [last] => self.files(dir, last, walked),
            [Part::Literal(name), later @ ..] => self.literal(dir, name, later, walked),
            [part @ Part::Glob(_), later @ ..] => {
                for (name, file_type) in &self.list(dir, walked).entries {
                    let next = dir.join(name);
                    if part.accepts(name) && is_dir(&next, *file_type) {
                        self.descend(&next, later, walked);
                    }
                }
            }
            [Part::AnyDepth, later @ ..] => {
                self.descend(dir, later, walked);
                for (name, file_type) in &self.list(dir, walked).entries {
                    // Links are not followed here: they can lead in a circle.
                    let is_real_dir = file_type.is_some_and(|t| t.is_dir());
                    if is_real_dir && !is_hidden(name) {
                        self.descend(&dir.join(name), parts, walked);
                    }
                }
            }
        }
    }

    fn literal(&mut self, dir: &Path, name: &str, later: &[Part], walked: &mut Walked) {
        let next = dir.join(name);
        if std::fs::symlink_metadata(&next).is_ok_and(|meta| meta.is_symlink()) {
            walked.dirs.insert(dir.to_owned());
        }
        match std::fs::metadata(&next) {
            Ok(meta) if meta.is_dir() => return self.descend(&next, later, walked),
            Ok(_) => {
                walked.notes.insert(format!("{} is not a folder", next.display()));
            }
            Err(error) if is_absence(&error) => {
                walked.notes.insert(format!("waiting for folder {}", next.display()));
            }
            Err(error) => {
                walked.is_complete = false;
                walked.notes.insert(format!("cannot look at {}: {error}", next.display()));
            }
        }
        walked.dirs.insert(dir.to_owned());
    }

    fn files(&mut self, dir: &Path, last: &Part, walked: &mut Walked) {
        if let Part::Literal(name) = last {
            if walked.enters(dir, (self.file_system)(dir)) {
                self.file(&dir.join(name), walked);
            }
            return;
        }
        for (name, _) in &self.list(dir, walked).entries {
            if last.accepts_file(name) {
                if walked.seen.len() >= self.bounds.files {
                    let max = self.bounds.files;
                    return walked.cut_short(format!(
                        "more than {max} files match: of the others only changes are seen"
                    ));
                }
                self.file(&dir.join(name), walked);
            } else if name.to_str().is_none() {
                walked.note_unreadable_name(dir);
            }
        }
    }

    fn file(&self, path: &Path, walked: &mut Walked) {
        let (sight, _) = look_at(path);
        if sight == Sight::Absent {
            return;
        }
        match path.to_str() {
            Some(path) => {
                walked.seen.insert(Arc::from(path), (sight, self.clock.elapsed()));
            }
            None => walked.note_unreadable_name(path.parent().unwrap_or(path)),
        }
    }

    fn list(&mut self, dir: &Path, walked: &mut Walked) -> Rc<Listing> {
        let listing = match self.listings.get(dir) {
            Some(listing) => Rc::clone(listing),
            None => {
                let listing = Rc::new(list(dir, (self.file_system)(dir), self.bounds.names));
                self.listings.insert(dir.to_owned(), Rc::clone(&listing));
                listing
            }
        };
        walked.enters(dir, listing.file_system);
        if !listing.is_whole {
            let max = self.bounds.names;
            walked.cut_short(format!(
                "{} holds more than {max} names: of the others only changes are seen",
                dir.display()
            ));
        }
        if let Some(error) = &listing.failure {
            // What cannot be read has not gone.
            walked.is_complete = false;
            walked.notes.insert(format!("cannot read folder {}: {error}", dir.display()));
        }
        listing
    }
}

impl Walked {
    fn cut_short(&mut self, why: String) {
        self.is_complete = false;
        self.notes.insert(why);
    }

    fn note_unreadable_name(&mut self, dir: &Path) {
        let dir = dir.display();
        self.notes.insert(format!("{dir} holds names that are not UTF-8; they do not arrive"));
    }

    /// Whether files of a directory can arrive; then it is watched.
    fn enters(&mut self, dir: &Path, on: FileSystem) -> bool {
        match on {
            FileSystem::Local => {}
            FileSystem::Remote(kind) => {
                self.remote.get_or_insert_with(|| (dir.to_owned(), kind));
            }
            FileSystem::Kernel(kind) => {
                let dir = dir.display();
                self.notes.insert(format!(
                    "{dir} shows the kernel's state ({kind}), not files; nothing in it arrives"
                ));
                return false;
            }
        }
        self.dirs.insert(dir.to_owned());
        true
    }
}

fn list(dir: &Path, file_system: FileSystem, names_max: usize) -> Listing {
    let mut listing = Listing { entries: Vec::new(), file_system, is_whole: true, failure: None };
    if matches!(file_system, FileSystem::Kernel(_)) {
        return listing;
    }
    let reader = match std::fs::read_dir(dir) {
        Ok(reader) => reader,
        Err(error) => {
            listing.failure = Some(error).filter(|error| !is_absence(error));
            return listing;
        }
    };
    for entry in reader {
        if listing.entries.len() >= names_max {
            listing.is_whole = false;
            break;
        }
        match entry {
            Ok(entry) => listing.entries.push((entry.file_name(), entry.file_type().ok())),
            Err(error) => {
                listing.failure = Some(error);
                break;
            }
        }
    }
    listing
}

fn is_dir(path: &Path, file_type: Option<FileType>) -> bool {
    match file_type {
        Some(known) if !known.is_symlink() => known.is_dir(),
        Some(_) | None => path.is_dir(),
    }
}

/// What stands at a path, and whether it is a directory. Links are followed.
pub(super) fn look_at(path: &Path) -> (Sight, bool) {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => (Sight::File(identity(&meta)), false),
        Ok(meta) => (Sight::Absent, meta.is_dir()),
        Err(error) if is_absence(&error) => (Sight::Absent, false),
        Err(_) => (Sight::Unknown, false),
    }
}

/// Gone, never there, or a link that leads nowhere.
pub(in crate::daemon) fn is_absence(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
}

/// What tells a file from others of its name.
pub(in crate::daemon) fn identity(meta: &Metadata) -> FileIdentity {
    let seconds = meta.mtime().saturating_mul(1_000_000_000);
    FileIdentity {
        device: meta.dev(),
        inode: meta.ino(),
        size: meta.size(),
        mtime_ns: seconds.saturating_add(meta.mtime_nsec()),
    }
}

#[cfg(test)]
mod tests;
