//! The spec directory: which files are definitions, and what of them changed since the last look.
//!
//! The directory is the truth: a whole reading looks at every file, so no lost hint of a watcher
//! can lose a change for longer than the period of those. Between them, only what was heard of is
//! looked at. Blocking; belongs on a thread that may wait for a disk. It does not watch, wait or
//! know what a definition does.

mod folder;
mod look;
mod moves;
mod settle;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::folder::{Entry, Folder, Kind, Stamp, Trust, c_name, text};
use self::look::{Look, Looking, Parse, look_at_all, path_text};
use self::moves::Moves;
pub use self::settle::Heard;
use self::settle::{Seen, Settling};
pub use self::write::Halted;
use super::spec_yaml::{self, SpecContext, content_hash};
use crate::limits;
use crate::model::event::{Definitions, SpecError, SpecFile};
use crate::model::id::TaskId;
use crate::model::time::Timestamp;

/// Whether a file of this name is read (contract §2): `*.yaml` and `*.yml` but no dot-files.
///
/// Editors' and package managers' leftovers (`x.yaml~`, `x.yaml.swp`, `x.yaml.dpkg-old`) end
/// differently and fall out by that.
#[must_use]
pub fn is_spec_name(name: &str) -> bool {
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"));
    stem.is_some_and(|stem| !stem.is_empty()) && !name.starts_with('.')
}

/// What to read, when, and what has been heard since the last reading.
#[derive(Debug, Clone, Default)]
pub struct Cue {
    /// Now, on a clock that never steps.
    pub at: Duration,
    /// Now, by the wall clock.
    pub wall: Timestamp,
    /// Read the whole directory, not only what was heard of.
    pub is_whole: bool,
    /// The last thing heard of each name in the directory.
    pub heard: BTreeMap<OsString, Heard>,
}

/// The spec directory with what was last seen in it.
#[derive(Debug)]
pub struct SpecDir {
    dir: PathBuf,
    context: SpecContext,
    /// What the outside does, replaced in tests that need it to fail.
    parse: Parse,
    sync: write::Sync,
    trust: Trust,
    device: Option<u64>,
    known: BTreeMap<OsString, Known>,
    /// What was known before the last reading of files that it took as saved: [`Self::doubt`].
    before: BTreeMap<OsString, Known>,
    settling: Settling,
    /// Who asked for what the daemon itself wrote: content hash and user, by name.
    authors: BTreeMap<OsString, (String, u32)>,
    /// Regular files that are not read and have been named.
    ignored: BTreeSet<OsString>,
    to_name: Vec<String>,
    has_read: bool,
}

/// One file as last taken. One that was told to be there and could not be taken yet is known too:
/// its end has to be told.
#[derive(Debug, Clone, Default)]
struct Known {
    /// `None`: look at the content whatever stat says.
    stamp: Option<Stamp>,
    /// Two readings with this stamp gave the same content: only then stat alone is believed, for
    /// two writes within one tick of the file system's clock leave the same stamp.
    confirmed: bool,
    /// Empty: not taken yet.
    hash: String,
    is_link: bool,
    /// What it defined when it was last good.
    tasks: Vec<TaskId>,
}

impl Known {
    fn is_read(&self) -> bool {
        !self.hash.is_empty()
    }
}

impl SpecDir {
    /// A directory that nothing is known of yet; reads nothing.
    #[must_use]
    pub fn new(dir: PathBuf, context: SpecContext) -> Self {
        Self::owned_by(dir, context, nix::unistd::geteuid().as_raw())
    }

    fn owned_by(dir: PathBuf, context: SpecContext, uid: u32) -> Self {
        Self {
            dir,
            context,
            parse: spec_yaml::read,
            sync: write::sync_directory,
            trust: Trust { uid },
            device: None,
            known: BTreeMap::new(),
            before: BTreeMap::new(),
            settling: Settling::default(),
            authors: BTreeMap::new(),
            ignored: BTreeSet::new(),
            to_name: Vec::new(),
            has_read: false,
        }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// When something that was not taken yet, because it may still be changing, will have been
    /// quiet for long enough: look again then, whether anything is heard or not.
    #[must_use]
    pub fn look_again_at(&self) -> Option<Duration> {
        self.settling.next()
    }

    /// Regular files that are not read, each named once: a person may think they are.
    #[must_use]
    pub fn take_ignored(&mut self) -> Vec<String> {
        std::mem::take(&mut self.to_name)
    }

    /// Reads all that is there, without waiting for anything to become quiet.
    pub fn scan_once(&mut self) -> Definitions {
        let wall = Timestamp::from_millis(i64::MAX);
        self.scan(&Cue { wall, is_whole: true, ..Cue::default() })
    }

    /// Reads the directory, or what was heard of: files that are new or changed, paths that are
    /// gone, and in a whole reading all that are there.
    ///
    /// A directory that is missing, unreadable, not to be trusted or on another device than before
    /// gives only [`Definitions::unreadable`], and what was known stays known (design, F5). A file
    /// that cannot or must not be read counts as there and comes with an error. One that may be in
    /// the middle of a change is left as it was, see [`Self::look_again_at`].
    pub fn scan(&mut self, cue: &Cue) -> Definitions {
        for (name, heard) in &cue.heard {
            self.settling.hear(name, *heard, cue.at);
        }
        let read = self.open().and_then(|folder| {
            let entries = self.entries(&folder, cue)?;
            Ok((folder, entries))
        });
        let (folder, entries) = match read {
            Ok(read) => read,
            Err(why) => {
                // What was heard of it does not matter any more: all of it is read when it is back.
                self.settling = Settling::default();
                return Definitions { unreadable: Some(why), ..Definitions::default() };
            }
        };
        if cue.is_whole {
            self.note_ignored(&entries);
        }
        let is_file = |e: &Entry| e.kind != Kind::Folder && is_spec_name(&e.name.to_string_lossy());
        let files: Vec<Entry> = entries.into_iter().filter(is_file).collect();
        let gone = self.gone(&files, cue);
        let looking = Looking {
            folder: &folder,
            dir: &self.dir,
            known: &self.known,
            settling: &self.settling,
            authors: &self.authors,
            context: &self.context,
            parse: self.parse,
            cue,
            is_first: !self.has_read,
        };
        let mut looks = look_at_all(&looking, &files);
        let moves = Moves { known: &self.known, settling: &self.settling, cue };
        let gone = moves.settle(gone, &files, &mut looks);
        let mut found = Definitions::default();
        for name in gone.told {
            self.forget(&name, &mut found);
        }
        let mut present = Vec::new();
        for name in gone.kept {
            self.settling.wait(&name, Seen::Nothing, cue.at, false);
            present.push(path_text(&self.dir, &name));
        }
        self.before.clear();
        for (entry, look) in files.into_iter().zip(looks) {
            if self.take(&entry, look, cue, &mut found) {
                present.push(path_text(&self.dir, &entry.name));
            }
        }
        if cue.is_whole {
            present.sort();
            found.present = Some(present);
            self.has_read = true;
        }
        found
    }

    /// What was read of this file may have been the middle of a change after all: it counts as
    /// not taken. `is_open`: somebody has it open for writing.
    pub fn doubt(&mut self, path: &str, is_open: bool, at: Duration) {
        let Some(name) = Path::new(path).file_name() else { return };
        if let Some(known) = self.known.get_mut(name) {
            let before = self.before.remove(name).unwrap_or_default();
            *known = Known { stamp: None, confirmed: false, is_link: known.is_link, ..before };
        }
        self.settling.doubt(name, is_open, at);
    }

    fn open(&mut self) -> Result<Folder, String> {
        let folder = Folder::open(&self.dir, self.trust)?;
        if self.device.is_some_and(|device| device != folder.device()) {
            return Err(format!(
                "{} is on another device than before; is a file system not mounted? Restart to \
                 accept it",
                self.dir.display()
            ));
        }
        Ok(folder)
    }

    /// The names to look at: all, or those that were heard of or wait to become quiet. What was
    /// heard of a name that is no spec's may stand behind links (a `..data` swap).
    fn entries(&mut self, folder: &Folder, cue: &Cue) -> Result<Vec<Entry>, String> {
        let cannot = |errno| format!("cannot read {}: {}", self.dir.display(), text(errno));
        if cue.is_whole {
            let entries = folder.entries().map_err(cannot)?;
            self.device = Some(folder.device());
            return Ok(entries);
        }
        let mut names: BTreeSet<&OsString> = self.settling.names().collect();
        names.extend(cue.heard.keys());
        if cue.heard.keys().any(|name| !is_spec_name(&name.to_string_lossy())) {
            names.extend(self.known.iter().filter(|(_, k)| k.is_link).map(|(name, _)| name));
        }
        let mut entries = Vec::new();
        for name in names.into_iter().filter_map(|name| c_name(name)) {
            entries.extend(folder.entry(&name).map_err(cannot)?);
        }
        Ok(entries)
    }

    /// The names that were told to be there and are not.
    fn gone(&mut self, files: &[Entry], cue: &Cue) -> Vec<OsString> {
        let is_there =
            |name: &OsStr| files.binary_search_by(|entry| entry.name.as_os_str().cmp(name)).is_ok();
        let mut names: BTreeSet<OsString> =
            self.settling.names().chain(cue.heard.keys()).cloned().collect();
        if cue.is_whole {
            names.extend(self.known.keys().cloned());
        }
        names.retain(|name| !is_there(name));
        let (known, unknown): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| self.known.contains_key(name));
        for name in unknown {
            self.settling.taken(&name);
        }
        known
    }

    fn forget(&mut self, name: &OsStr, found: &mut Definitions) {
        self.settling.taken(name);
        self.authors.remove(name);
        if self.known.remove(name).is_some() {
            found.removed.push(path_text(&self.dir, name));
        }
    }

    /// Remembers what was seen of a file, and tells it if it is new or changed. Whether the name
    /// is that of a spec file at all.
    fn take(&mut self, entry: &Entry, look: Look, cue: &Cue, found: &mut Definitions) -> bool {
        let name = entry.name.as_os_str();
        let is_link = entry.kind == Kind::Link;
        match look {
            Look::Same => self.settling.taken(name),
            Look::Folder => {
                self.forget(name, found);
                return false;
            }
            Look::Unsettled { seen, is_linked, is_loss } => {
                self.settling.wait(name, seen, cue.at, is_linked || is_link);
                if is_loss {
                    self.settling.lost(name);
                }
            }
            Look::Torn => self.settling.doubt(name, false, cue.at),
            Look::Content { stamp, hash, file } => {
                self.settling.taken(name);
                let known = self.known.entry(name.to_owned()).or_default();
                if file.is_some() && cue.heard.get(name) == Some(&Heard::Saved) {
                    self.before.insert(name.to_owned(), known.clone());
                }
                let confirmed = known.stamp == Some(stamp) && known.hash == hash;
                let good = file.as_ref().filter(|file| file.errors.is_empty());
                if let Some(file) = good {
                    known.tasks = file.specs.iter().map(|spec| spec.task_id.clone()).collect();
                }
                let tasks = std::mem::take(&mut known.tasks);
                *known = Known { stamp: Some(stamp), confirmed, hash, is_link, tasks };
                found.changed.extend(file.map(|file| *file));
            }
            Look::Refused { stamp, why } => {
                self.settling.taken(name);
                let hash = content_hash(why.as_bytes());
                let known = self.known.entry(name.to_owned()).or_default();
                let is_new = known.hash != hash;
                known.confirmed = stamp.is_some();
                (known.stamp, known.hash, known.is_link) = (stamp, hash.clone(), is_link);
                if is_new {
                    found.changed.push(refused(path_text(&self.dir, name), hash, why));
                }
            }
        }
        if cue.is_whole {
            // It is told to be there.
            self.known.entry(name.to_owned()).or_default();
        }
        true
    }

    fn note_ignored(&mut self, entries: &[Entry]) {
        for entry in entries.iter().filter(|entry| entry.kind == Kind::Regular) {
            let is_read = is_spec_name(&entry.name.to_string_lossy());
            if !is_read
                && self.ignored.len() < limits::SPEC_IGNORED_NAMED_MAX
                && self.ignored.insert(entry.name.clone())
            {
                self.to_name.push(path_text(&self.dir, &entry.name));
            }
        }
    }
}

fn refused(path: String, hash: String, message: String) -> SpecFile {
    let error = SpecError { file: path.clone(), line: 0, column: 0, path: String::new(), message };
    SpecFile {
        path,
        hash,
        uid: None,
        specs: Vec::new(),
        places: Vec::new(),
        errors: vec![error],
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
