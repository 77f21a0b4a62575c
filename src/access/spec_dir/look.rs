//! One look at each file: whether it is as it was, may be taken, and what it holds.
//!
//! A look changes nothing of what is known, so that many files are looked at on several threads.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::FileStat;

use super::folder::{Content, Entry, Folder, Kind, Stamp, text};
use super::settle::{Heard, Seen, Settling};
use super::{Cue, Known};
use crate::access::spec_yaml::{SpecContext, content_hash};
use crate::limits;
use crate::model::event::SpecFile;

/// Files below which one thread looks at all of them.
const FILES_FOR_THREADS: usize = 128;

/// Threads that look: a reload must leave room for what runs.
const THREADS_MAX: usize = 4;

/// How a file's content is read.
pub(super) type Parse = fn(&str, &[u8], &SpecContext) -> SpecFile;

/// What one look at a file found.
#[derive(Debug)]
pub(super) enum Look {
    /// As it was.
    Same,
    /// No file but a folder, or a link to one.
    Folder,
    /// It may still be changing.
    Unsettled {
        /// What is seen of it now.
        seen: Seen,
        /// It has several names.
        is_linked: bool,
        /// It could be taken, but for what it no longer defines.
        is_loss: bool,
    },
    /// It changed under our eyes.
    Torn,
    /// Content.
    Content {
        /// What stat said of it.
        stamp: Stamp,
        /// Of the content.
        hash: String,
        /// What it says; `None`: as before.
        file: Option<Box<SpecFile>>,
    },
    /// There, and not to be read.
    Refused {
        /// What stat said; `None`: look again each time.
        stamp: Option<Stamp>,
        /// Why.
        why: String,
    },
}

/// All that looks need to know.
#[derive(Debug)]
pub(super) struct Looking<'a> {
    pub(super) folder: &'a Folder,
    pub(super) dir: &'a Path,
    pub(super) known: &'a BTreeMap<OsString, Known>,
    pub(super) settling: &'a Settling,
    pub(super) authors: &'a BTreeMap<OsString, (String, u32)>,
    pub(super) context: &'a SpecContext,
    pub(super) parse: Parse,
    pub(super) cue: &'a Cue,
    /// Nothing has been read before.
    pub(super) is_first: bool,
}

/// One look at each, in their order; at many on several threads.
pub(super) fn look_at_all(looking: &Looking<'_>, files: &[Entry]) -> Vec<Look> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(THREADS_MAX);
    if files.len() < FILES_FOR_THREADS || threads == 1 {
        return files.iter().map(|entry| looking.look(entry)).collect();
    }
    let look_at = |part: &[Entry]| part.iter().map(|e| looking.look(e)).collect::<Vec<_>>();
    let parts: Vec<&[Entry]> = files.chunks(files.len().div_ceil(threads)).collect();
    std::thread::scope(|scope| {
        let Some((own, others)) = parts.split_first() else { return Vec::new() };
        let started: Vec<_> = others
            .iter()
            .map(|part| {
                let named = std::thread::Builder::new().name("spec-reader".to_owned());
                (part, named.spawn_scoped(scope, || look_at(part)))
            })
            .collect();
        let mut looks = look_at(own);
        for (part, thread) in started {
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(theirs)) => looks.extend(theirs),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // No thread to be had: then without one.
                Err(_) => looks.extend(look_at(part)),
            }
        }
        looks
    })
}

impl Looking<'_> {
    fn look(&self, entry: &Entry) -> Look {
        let name = entry.name.as_os_str();
        let known = self.known.get(name);
        let heard = self.cue.heard.get(name).copied();
        if heard.is_none()
            && known.is_some_and(|k| {
                k.confirmed && k.stamp.is_some() && k.stamp == self.folder.stamp(name)
            })
        {
            return Look::Same;
        }
        let refused = |why: String| Look::Refused { stamp: None, why };
        let found = match self.folder.find(name) {
            Ok(found) => found,
            Err(Errno::ENOENT) => {
                let is_link = entry.kind == Kind::Link;
                return if is_link && self.may_take(name, Seen::Nothing, heard) {
                    refused("is a link that leads nowhere".to_owned())
                } else {
                    Look::Unsettled { seen: Seen::Nothing, is_linked: is_link, is_loss: false }
                };
            }
            Err(Errno::ELOOP) => {
                return refused(
                    "is a link in a circle or through /proc, which is not followed; link to a \
                     file's own path"
                        .to_owned(),
                );
            }
            Err(errno) => return refused(format!("cannot be read: {}", text(errno))),
        };
        if found.is_folder() {
            return Look::Folder;
        }
        let stamp = Stamp::of(&found.stat);
        if !self.may_take(name, Seen::File(stamp), heard) {
            let is_linked = found.stat.st_nlink > 1;
            return Look::Unsettled { seen: Seen::File(stamp), is_linked, is_loss: false };
        }
        match self.folder.read(name, &found) {
            Ok(Content::Whole(bytes)) => self.content(name, &found.stat, &bytes),
            Ok(Content::Torn) => Look::Torn,
            Ok(Content::Refused(why)) => Look::Refused { stamp: Some(stamp), why },
            Err(error) => refused(format!("cannot be read: {error}")),
        }
    }

    /// Whether what is seen of a name is no half of a change.
    fn may_take(&self, name: &OsStr, seen: Seen, heard: Option<Heard>) -> bool {
        let known = self.known.get(name);
        match heard {
            Some(Heard::Ours) => return true,
            // An empty one may just have been cut for the next save: the kernel tells of that only
            // when it is done.
            Some(Heard::Saved) if !seen.is_empty() => return true,
            Some(Heard::Saved | Heard::AtWork | Heard::Touched) | None => {}
        }
        if self.settling.holds(name) {
            return self.settling.is_quiet(name, seen, self.cue.at);
        }
        if heard.is_some() {
            return false;
        }
        let is_as_before = known.is_some_and(|k| k.stamp.map(Seen::File) == Some(seen));
        is_as_before || self.is_first && self.is_old(seen)
    }

    /// Whether a file is old by the file system's clock. One from the future may be new.
    fn is_old(&self, seen: Seen) -> bool {
        let Seen::File(stamp) = seen else { return true };
        let age = self.cue.wall.as_millis().saturating_sub(stamp.changed_ms());
        u64::try_from(age).is_ok_and(|age| u128::from(age) >= limits::SPEC_SETTLE.as_millis())
    }

    fn content(&self, name: &OsStr, stat: &FileStat, bytes: &[u8]) -> Look {
        let stamp = Stamp::of(stat);
        if name.to_str().is_none() {
            let why = "has a name that is not UTF-8; rename it";
            return Look::Refused { stamp: Some(stamp), why: why.to_owned() };
        }
        let hash = content_hash(bytes);
        if self.known.get(name).is_some_and(|known| known.hash == hash) {
            return Look::Content { stamp, hash, file: None };
        }
        // A fault in reading one file is told as that file's, and the others are read.
        let path = path_text(self.dir, name);
        let read = AssertUnwindSafe(|| (self.parse)(&path, bytes, self.context));
        let Ok(mut file) = catch_unwind(read) else {
            let why = "could not be read: a fault of schedd; please report it with the file";
            return Look::Refused { stamp: Some(stamp), why: why.to_owned() };
        };
        let author = self.authors.get(name).filter(|(written, _)| *written == hash);
        file.uid = Some(author.map_or(stat.st_uid, |(_, uid)| *uid));
        Look::Content { stamp, hash, file: Some(Box::new(file)) }
    }
}

/// A file's path as messages and the core name it. What is not UTF-8 is escaped, behind a slash
/// that no readable name can have: it is nobody else's path.
pub(super) fn path_text(dir: &Path, name: &OsStr) -> String {
    let text = match name.to_str() {
        Some(name) => name.to_owned(),
        None => format!("(not UTF-8)/{}", name.as_bytes().escape_ascii()),
    };
    dir.join(text).to_string_lossy().into_owned()
}
