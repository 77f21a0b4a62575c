//! Changes of the spec directory that somebody asked for at the door: whole or not at all, and on
//! the disk before they count.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{Mode, fchmod, fstatat};
use nix::unistd::{UnlinkatFlags, fsync, unlinkat};

use super::folder::{Content, Entry, Folder, Kind, c_name};
use super::{SpecDir, is_spec_name};
use crate::access::spec_yaml::content_hash;
use crate::limits;
use crate::model::event::SpecFile;
use crate::model::id::TaskId;
use crate::model::request::{FileChange, Rejection, RejectionCode};

/// Of a new file: a spec may hold what is not everybody's to read.
const NEW_MODE: Mode = Mode::from_bits_truncate(0o640);

/// How a directory is synced.
pub(super) type Sync = fn(&OwnedFd) -> Result<(), Errno>;

/// Why changes came to a halt, and how far they had come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halted {
    /// So many of them, from the first, were made all the same.
    pub done: usize,
    /// What, where and why, and what was made by then.
    pub why: Rejection,
}

impl SpecDir {
    /// Carries out changes, synced to the disk. The next reading has to hear of the names as
    /// [`super::Heard::Ours`]; what it then finds is said to come from `uid`.
    ///
    /// All files are on the disk under hidden names before the first takes its place, so that a full
    /// disk or a name in the way leaves everything as it was.
    ///
    /// # Errors
    /// A refusal, and how many changes were made before it.
    pub fn change(&mut self, changes: &[FileChange], uid: u32) -> Result<(), Halted> {
        let nothing = |why: Rejection| Halted { done: 0, why };
        changes.iter().try_for_each(|change| check_name(change.name())).map_err(nothing)?;
        let folder = self.open().map_err(|why| {
            nothing(Rejection::new(RejectionCode::Conflict, format!("nothing is written: {why}")))
        })?;
        let place = |(number, change): (usize, &FileChange)| Place {
            folder: &folder,
            dir: &self.dir,
            name: change.name().to_owned(),
            // Never read, since it begins with a dot, and of this process alone.
            draft: format!(".schedd.{}.{number}.tmp", std::process::id()),
        };
        let places: Vec<Place<'_>> = changes.iter().enumerate().map(place).collect();
        let mut done = 0;
        let made = places
            .iter()
            .zip(changes)
            .try_for_each(|(place, change)| place.prepare(change))
            .and_then(|()| {
                places.iter().zip(changes).try_for_each(|(place, change)| {
                    if let FileChange::Remove { tasks, .. } = change {
                        let parse =
                            |path: &str, text: &[u8]| (self.parse)(path, text, &self.context);
                        place.check_content(tasks, parse)?;
                    }
                    place.carry_out(change)?;
                    done += 1;
                    Ok(())
                })
            });
        if made.is_err() {
            places.iter().skip(done).for_each(Place::drop_draft);
        }
        let synced = if done > 0 { (self.sync)(folder.fd()) } else { Ok(()) };
        for change in changes.iter().take(done) {
            if let FileChange::Write { name, text } = change {
                self.authors.insert(name.into(), (content_hash(text), uid));
            }
        }
        let halted = |why: Rejection| Halted { done, why: so_far(why, changes, done) };
        made.map_err(halted)?;
        synced.map_err(|errno| Halted { done, why: self.unsynced(changes, errno) })
    }

    /// Until the directory is synced, a crash may undo the changes.
    fn unsynced(&self, changes: &[FileChange], errno: Errno) -> Rejection {
        let error = std::io::Error::from(errno);
        let names: Vec<&str> = changes.iter().map(FileChange::name).collect();
        let detail = format!(
            "{} is changed ({}) and that is in force, but a power failure could undo it: the \
             directory cannot be synced: {error}; repair the disk and ask again",
            self.dir.display(),
            names.join(", "),
        );
        Rejection::new(code_of(&error), detail)
    }
}

/// Puts what happened to the directory's names on the disk.
pub(super) fn sync_directory(folder: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat(folder, ".", flags, Mode::empty()).and_then(fsync)
}

/// The refusal with what had been changed before it.
fn so_far(why: Rejection, changes: &[FileChange], done: usize) -> Rejection {
    let names: Vec<&str> = changes.iter().take(done).map(FileChange::name).collect();
    let detail = if names.is_empty() {
        format!("{}; nothing has changed", why.detail)
    } else {
        let (all, names) = (changes.len(), names.join(", "));
        format!("{}; {done} of {all} files were changed before that: {names}", why.detail)
    };
    Rejection { detail, ..why }
}

/// A name that the directory would read, and nothing but a name.
fn check_name(name: &str) -> Result<(), Rejection> {
    let wrong = if name.contains('/') || name.chars().any(char::is_control) {
        "holds a slash or a control character"
    } else if !is_spec_name(name) {
        "is not the name of a spec file"
    } else if name.len() > limits::FILE_NAME_BYTES_MAX {
        "is too long"
    } else {
        return Ok(());
    };
    Err(Rejection::new(
        RejectionCode::Invalid,
        format!(
            "{name:?} {wrong}; expected a name of at most {} bytes that ends in .yaml or .yml and \
             does not begin with a dot",
            limits::FILE_NAME_BYTES_MAX
        ),
    ))
}

/// A name in the directory, to be written or removed.
struct Place<'a> {
    folder: &'a Folder,
    dir: &'a Path,
    name: String,
    draft: String,
}

impl Place<'_> {
    /// All that can go wrong while nobody sees anything of it.
    fn prepare(&self, change: &FileChange) -> Result<(), Rejection> {
        match (change, self.entry()?) {
            (FileChange::Write { text, .. }, entry) => {
                let (size, max) = (text.len(), limits::SPEC_FILE_BYTES_MAX);
                if size > max {
                    let detail =
                        format!("{} would have {size} bytes; at most {max} are read", self.name);
                    return Err(Rejection::new(RejectionCode::Invalid, detail));
                }
                let mode = match entry {
                    Some(entry) => {
                        self.check_kind(&entry)?;
                        self.mode()?
                    }
                    None => NEW_MODE,
                };
                self.write_draft(text, mode)
            }
            (FileChange::Remove { .. }, None) => {
                let detail = format!("there is no file {}", self.path());
                Err(Rejection::new(RejectionCode::NotFound, detail))
            }
            // A link itself may go; what it leads to stays.
            (FileChange::Remove { .. }, Some(entry)) if entry.kind == Kind::Link => Ok(()),
            (FileChange::Remove { .. }, Some(entry)) => self.check_kind(&entry),
        }
    }

    fn carry_out(&self, change: &FileChange) -> Result<(), Rejection> {
        let (fd, name) = (self.folder.fd(), self.name.as_str());
        match change {
            FileChange::Write { .. } => renameat(fd, self.draft.as_str(), fd, name)
                .map_err(|errno| self.failed("put in place", errno)),
            FileChange::Remove { .. } => unlinkat(fd, name, UnlinkatFlags::NoRemoveDir)
                .map_err(|errno| self.failed("removed", errno)),
        }
    }

    fn drop_draft(&self) {
        let gone = unlinkat(self.folder.fd(), self.draft.as_str(), UnlinkatFlags::NoRemoveDir);
        if let Err(errno) = gone
            && errno != Errno::ENOENT
        {
            let (file, dir) = (&self.draft, self.dir.display());
            tracing::warn!(file, %dir, %errno, "draft left behind");
        }
    }

    /// The mode of the file that is replaced: whom its owner kept out stays out. Who could write
    /// it could make the daemon refuse it, and the daemon has to read it.
    fn mode(&self) -> Result<Mode, Rejection> {
        let stat = fstatat(self.folder.fd(), self.name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
            .map_err(|errno| self.failed("looked at", errno))?;
        Ok(Mode::from_bits_truncate(stat.st_mode & 0o755 | 0o400))
    }

    fn write_draft(&self, content: &[u8], mode: Mode) -> Result<(), Rejection> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let draft = self.draft.as_str();
        let open = || openat(self.folder.fd(), draft, flags, Mode::S_IRUSR | Mode::S_IWUSR);
        let fd = match open() {
            // A crash left it behind.
            Err(Errno::EEXIST) => {
                unlinkat(self.folder.fd(), draft, UnlinkatFlags::NoRemoveDir).and_then(|()| open())
            }
            other => other,
        };
        let mut file = File::from(fd.map_err(|errno| self.failed("made", errno))?);
        // Whatever the umask, and before anybody could read what is secret in it.
        fchmod(&file, mode).map_err(|errno| self.failed("given its mode", errno))?;
        file.write_all(content)
            .and_then(|()| file.sync_all())
            .map_err(|error| self.failed("written", error))
    }

    /// Whoever asked saw a file that defines nothing but these tasks: another one is not theirs to
    /// take away.
    fn check_content(
        &self,
        tasks: &[TaskId],
        parse: impl Fn(&str, &[u8]) -> SpecFile,
    ) -> Result<(), Rejection> {
        let name = OsStr::new(&self.name);
        let found = self.folder.find(name).map_err(|errno| self.failed("removed", errno))?;
        let content =
            self.folder.read(name, &found).map_err(|error| self.failed("looked at", error))?;
        let changed = |how: String| {
            let detail = format!(
                "{} has changed meanwhile: it {how}; nothing has been removed, look again",
                self.path()
            );
            Rejection::new(RejectionCode::Conflict, detail)
        };
        let bytes = match content {
            Content::Whole(bytes) => bytes,
            Content::Torn => return Err(changed("is being written just now".to_owned())),
            Content::Refused(why) => return Err(changed(why)),
        };
        let read = AssertUnwindSafe(|| parse(&self.path(), &bytes));
        let Ok(file) = catch_unwind(read) else {
            return Err(changed("could not be read, which is a fault of schedd".to_owned()));
        };
        if let Some(error) = file.errors.first() {
            return Err(changed(format!("is broken in line {}: {}", error.line, error.message)));
        }
        match file.specs.iter().find(|spec| !tasks.contains(&spec.task_id)) {
            Some(spec) => Err(changed(format!("defines {} too", spec.task_id))),
            None => Ok(()),
        }
    }

    fn entry(&self) -> Result<Option<Entry>, Rejection> {
        let Some(name) = c_name(OsStr::new(&self.name)) else { return Ok(None) };
        self.folder.entry(&name).map_err(|errno| self.failed("looked at", errno))
    }

    /// A link is somebody's own arrangement: the file it leads to is theirs to change.
    fn check_kind(&self, entry: &Entry) -> Result<(), Rejection> {
        let found = match entry.kind {
            Kind::Regular => return Ok(()),
            Kind::Folder => "is a directory".to_owned(),
            Kind::Other => "is not a regular file".to_owned(),
            Kind::Link => {
                let to = readlinkat(self.folder.fd(), self.name.as_str()).unwrap_or_default();
                format!(
                    "is a link to {}; change that file, or remove the link",
                    to.to_string_lossy()
                )
            }
        };
        Err(Rejection::new(RejectionCode::Conflict, format!("{} {found}", self.path())))
    }

    fn failed(&self, step: &str, error: impl Into<std::io::Error>) -> Rejection {
        let error = error.into();
        let detail = format!("{} cannot be {step}: {error}", self.path());
        Rejection::new(code_of(&error), detail)
    }

    fn path(&self) -> String {
        self.dir.join(&self.name).to_string_lossy().into_owned()
    }
}

pub(super) fn code_of(error: &std::io::Error) -> RejectionCode {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => RejectionCode::NoSpace,
        Some(libc::EIO) => RejectionCode::Unavailable,
        // Such as a directory that the daemon may not write (EACCES, EROFS).
        Some(_) | None => RejectionCode::Conflict,
    }
}
