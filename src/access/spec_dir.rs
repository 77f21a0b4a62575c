//! The spec directory: which files are definitions, and what of them changed since the last look.
//!
//! The directory is the truth: every scan is a full reading, so no lost hint of a watcher can lose
//! a change. Blocking; belongs on a thread that may wait for a disk. It does not watch, wait or
//! know what a definition does.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::spec_yaml::{self, SpecContext, content_hash};
use crate::limits;
use crate::model::event::{Definitions, SpecError, SpecFile};

/// Whether a file of this name is read (contract §2): `*.yaml` and `*.yml` but no dot-files.
///
/// Editors' and package managers' leftovers (`x.yaml~`, `x.yaml.swp`, `x.yaml.dpkg-old`) end
/// differently and fall out by that.
#[must_use]
pub fn is_spec_name(name: &str) -> bool {
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"));
    stem.is_some_and(|stem| !stem.is_empty()) && !name.starts_with('.')
}

/// The spec directory with what was last seen in it.
#[derive(Debug)]
pub struct SpecDir {
    dir: PathBuf,
    context: SpecContext,
    daemon_uid: u32,
    device: Option<u64>,
    known: BTreeMap<String, Known>,
    needs_rescan: bool,
}

/// One file as last seen.
#[derive(Debug, Default)]
struct Known {
    /// `None`: look at the content whatever stat says.
    stamp: Option<Stamp>,
    /// Two readings with this stamp gave the same content: only then stat alone is believed, for
    /// two writes within one tick of the file system's clock leave the same stamp.
    confirmed: bool,
    hash: String,
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// What one look at a file found.
enum Look {
    /// As it was.
    Same,
    /// Not there, or nothing that is read (a folder).
    Absent,
    /// It changed under our eyes; the next scan sees it whole.
    Torn,
    /// Content.
    Content(Stamp, Vec<u8>),
    /// There, and not to be read; why.
    Refused(String),
}

impl SpecDir {
    /// A directory that nothing is known of yet; reads nothing.
    #[must_use]
    pub fn new(dir: PathBuf, context: SpecContext) -> Self {
        Self::owned_by(dir, context, nix::unistd::geteuid().as_raw())
    }

    fn owned_by(dir: PathBuf, context: SpecContext, daemon_uid: u32) -> Self {
        Self { dir, context, daemon_uid, device: None, known: BTreeMap::new(), needs_rescan: false }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes a new context; the next scan reads and reports every file anew.
    pub fn set_context(&mut self, context: SpecContext) {
        self.context = context;
        for known in self.known.values_mut() {
            *known = Known::default();
        }
    }

    /// Whether a file changed while the last scan read it: scan again soon.
    #[must_use]
    pub fn needs_rescan(&self) -> bool {
        self.needs_rescan
    }

    /// Reads the directory: files that are new or changed, paths that are gone, all that are there.
    ///
    /// A directory that is missing, unreadable, not to be trusted or on another device than before
    /// gives only [`Definitions::unreadable`], and what was known stays known (design, F5). A file
    /// that cannot or must not be read counts as there and comes with an error.
    pub fn scan(&mut self) -> Definitions {
        self.needs_rescan = false;
        let names = match self.names() {
            Ok(names) => names,
            Err(why) => return Definitions { unreadable: Some(why), ..Definitions::default() },
        };
        let mut changed = Vec::new();
        let mut present = Vec::new();
        for name in names {
            let file = self.dir.join(&name);
            let path = file.to_string_lossy().into_owned();
            let look = self.look(&file, self.known.get(&path));
            if matches!(look, Look::Absent) {
                continue;
            }
            changed.extend(self.take(&path, look));
            present.push(path);
        }
        let gone = |path: &String| present.binary_search(path).is_err();
        let removed: Vec<String> = self.known.keys().filter(|p| gone(p)).cloned().collect();
        for path in &removed {
            self.known.remove(path);
        }
        Definitions { changed, removed, present: Some(present), unreadable: None, more: false }
    }

    /// The sorted names of spec files.
    fn names(&mut self) -> Result<Vec<std::ffi::OsString>, String> {
        let dir = self.dir.display();
        let meta = std::fs::metadata(&self.dir).map_err(|e| format!("cannot read {dir}: {e}"))?;
        if let Some(why) = self.distrust(&meta) {
            return Err(format!("{dir} {why}"));
        }
        if self.device.is_some_and(|device| device != meta.dev()) {
            return Err(format!(
                "{dir} is on another device than before; is a file system not mounted? \
                 Restart to accept it"
            ));
        }
        let entries =
            std::fs::read_dir(&self.dir).map_err(|e| format!("cannot read {dir}: {e}"))?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|e| format!("cannot read {dir}: {e}"))?.file_name();
            if is_spec_name(&name.to_string_lossy()) {
                names.push(name);
            }
        }
        names.sort();
        self.device = Some(meta.dev());
        Ok(names)
    }

    /// Why root must not follow what others can write, as cron does.
    fn distrust(&self, meta: &Metadata) -> Option<String> {
        if self.daemon_uid != 0 {
            return None;
        }
        if meta.uid() != 0 {
            return Some(format!(
                "belongs to user {}, not to root, whom its tasks would run as; chown root it",
                meta.uid()
            ));
        }
        let mode = meta.mode() & 0o7777;
        (mode & 0o022 != 0).then(|| {
            format!(
                "has mode {mode:04o}: others than root can write it, and its tasks would run as \
                 root; chmod go-w it"
            )
        })
    }

    fn look(&self, file: &Path, known: Option<&Known>) -> Look {
        let meta = match std::fs::metadata(file) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return match std::fs::symlink_metadata(file) {
                    Ok(_) => Look::Refused("is a link that leads nowhere".to_owned()),
                    Err(_gone) => Look::Absent,
                };
            }
            Err(error) => return Look::Refused(format!("cannot be read: {error}")),
        };
        if meta.is_dir() {
            return Look::Absent;
        }
        if known.is_some_and(|k| k.confirmed && k.stamp == Some(Stamp::of(&meta))) {
            return Look::Same;
        }
        // Not even opened: a device or a pipe may act on that.
        if !meta.is_file() {
            return Look::Refused("is not a regular file".to_owned());
        }
        self.content(file).unwrap_or_else(|error| Look::Refused(format!("cannot be read: {error}")))
    }

    fn content(&self, file: &Path) -> std::io::Result<Look> {
        // Should it have become a pipe since, opening it still does not wait.
        let mut open = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(file)?;
        let before = open.metadata()?;
        if !before.is_file() {
            return Ok(Look::Refused("is not a regular file".to_owned()));
        }
        if let Some(why) = self.distrust(&before) {
            return Ok(Look::Refused(why));
        }
        let max = limits::SPEC_FILE_BYTES_MAX;
        if before.size() > u64::try_from(max).unwrap_or(u64::MAX) {
            let size = before.size();
            return Ok(Look::Refused(format!("has {size} bytes; at most {max} are read")));
        }
        let bytes = read_bounded(&mut open, max)?;
        let whole = u64::try_from(bytes.len()).is_ok_and(|len| len == before.size());
        if !whole || Stamp::of(&open.metadata()?) != Stamp::of(&before) {
            return Ok(Look::Torn);
        }
        Ok(Look::Content(Stamp::of(&before), bytes))
    }

    /// Remembers what was seen of a file; gives it if it is new or changed.
    fn take(&mut self, path: &str, look: Look) -> Option<SpecFile> {
        match look {
            Look::Same | Look::Absent => None,
            Look::Torn => {
                self.needs_rescan = true;
                // In the directory it is; what is known of its content is looked at again.
                self.known.entry(path.to_owned()).or_default().stamp = None;
                None
            }
            Look::Content(stamp, bytes) => {
                let known = self.known.entry(path.to_owned()).or_default();
                let hash = content_hash(&bytes);
                known.confirmed = known.stamp == Some(stamp) && known.hash == hash;
                known.stamp = Some(stamp);
                if known.hash == hash {
                    return None;
                }
                known.hash = hash;
                Some(spec_yaml::read(path, &bytes, &self.context))
            }
            Look::Refused(why) => {
                let hash = content_hash(why.as_bytes());
                let known = Known { stamp: None, confirmed: false, hash: hash.clone() };
                let before = self.known.insert(path.to_owned(), known);
                if before.is_some_and(|b| b.hash == hash) {
                    return None;
                }
                Some(refused(path, hash, why))
            }
        }
    }
}

fn read_bounded(file: &mut File, max: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let bound = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(bound).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn refused(path: &str, hash: String, message: String) -> SpecFile {
    let error =
        SpecError { file: path.to_owned(), line: 0, column: 0, path: String::new(), message };
    SpecFile {
        path: path.to_owned(),
        hash,
        uid: None,
        specs: Vec::new(),
        errors: vec![error],
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
