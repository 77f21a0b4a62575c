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

/// A change that was refused, or not carried out to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeFailed {
    /// What, where and why.
    pub rejection: Rejection,
    /// The directory has it all the same, so it counts; only a power failure may undo it.
    pub is_done: bool,
}

impl From<Rejection> for ChangeFailed {
    fn from(rejection: Rejection) -> Self {
        Self { rejection, is_done: false }
    }
}

impl SpecDir {
    /// Carries out a change, synced to the disk. The next reading has to hear of the name as
    /// [`super::Heard::Ours`]; what it then finds is said to come from `uid`. Blocking.
    ///
    /// # Errors
    /// [`ChangeFailed`], which says whether anything has changed.
    pub fn change(&mut self, change: &FileChange, uid: u32) -> Result<(), ChangeFailed> {
        let name = match change {
            FileChange::Write { name, .. } | FileChange::Remove { name, .. } => name,
        };
        check_name(name)?;
        let folder = self.open().map_err(|why| {
            Rejection::new(RejectionCode::Conflict, format!("nothing is written: {why}"))
        })?;
        let place = Place { folder: &folder, dir: &self.dir, name };
        let done = match change {
            FileChange::Write { text, .. } => {
                place.write(text)?;
                self.authors.insert(name.into(), (content_hash(text), uid));
                "written"
            }
            FileChange::Remove { tasks, .. } => {
                let parse = |path: &str, text: &[u8]| (self.parse)(path, text, &self.context);
                place.remove(tasks, parse)?;
                "removed"
            }
        };
        // Until the directory is synced, a crash may undo the change.
        (self.sync)(folder.fd()).map_err(|errno| {
            let error = std::io::Error::from(errno);
            let detail = format!(
                "{} is {done} and that is in force, but a power failure could undo it: the \
                 directory cannot be synced: {error}; repair the disk and ask again",
                place.path()
            );
            ChangeFailed { rejection: Rejection::new(code_of(&error), detail), is_done: true }
        })
    }
}

/// Puts what happened to the directory's names on the disk.
pub(super) fn sync_directory(folder: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat(folder, ".", flags, Mode::empty()).and_then(fsync)
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
    name: &'a str,
}

impl Place<'_> {
    fn write(&self, content: &[u8]) -> Result<(), Rejection> {
        let max = limits::SPEC_FILE_BYTES_MAX;
        if content.len() > max {
            let size = content.len();
            let detail = format!("{} would have {size} bytes; at most {max} are read", self.name);
            return Err(Rejection::new(RejectionCode::Invalid, detail));
        }
        let mut mode = NEW_MODE;
        if let Some(entry) = self.entry()? {
            self.check_kind(&entry)?;
            mode = self.mode()?;
        }
        // Never read, since it begins with a dot, and of this process alone.
        let draft = format!(".schedd.{}.tmp", std::process::id());
        let written = self.draft(&draft, content, mode).and_then(|()| {
            renameat(self.folder.fd(), draft.as_str(), self.folder.fd(), self.name)
                .map_err(|errno| self.failed("put in place", errno))
        });
        if written.is_err()
            && let Err(errno) =
                unlinkat(self.folder.fd(), draft.as_str(), UnlinkatFlags::NoRemoveDir)
            && errno != Errno::ENOENT
        {
            tracing::warn!(file = draft, dir = %self.dir.display(), %errno, "draft left behind");
        }
        written
    }

    /// The mode of the file that is replaced: whom its owner kept out stays out. Who could write
    /// it could make the daemon refuse it, and the daemon has to read it.
    fn mode(&self) -> Result<Mode, Rejection> {
        let stat = fstatat(self.folder.fd(), self.name, AtFlags::AT_SYMLINK_NOFOLLOW)
            .map_err(|errno| self.failed("looked at", errno))?;
        Ok(Mode::from_bits_truncate(stat.st_mode & 0o755 | 0o400))
    }

    fn draft(&self, draft: &str, content: &[u8], mode: Mode) -> Result<(), Rejection> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
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

    fn remove(
        &self,
        tasks: &[TaskId],
        parse: impl Fn(&str, &[u8]) -> SpecFile,
    ) -> Result<(), Rejection> {
        let Some(entry) = self.entry()? else {
            let detail = format!("there is no file {}", self.path());
            return Err(Rejection::new(RejectionCode::NotFound, detail));
        };
        if entry.kind != Kind::Link {
            self.check_kind(&entry)?;
        }
        self.check_content(tasks, parse)?;
        unlinkat(self.folder.fd(), self.name, UnlinkatFlags::NoRemoveDir)
            .map_err(|errno| self.failed("removed", errno))
    }

    /// Whoever asked saw a file that defines nothing but these tasks: another one is not theirs to
    /// take away.
    fn check_content(
        &self,
        tasks: &[TaskId],
        parse: impl Fn(&str, &[u8]) -> SpecFile,
    ) -> Result<(), Rejection> {
        let name = OsStr::new(self.name);
        let found = self.folder.find(name).map_err(|errno| self.failed("looked at", errno))?;
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
        let Some(name) = c_name(OsStr::new(self.name)) else { return Ok(None) };
        self.folder.entry(&name).map_err(|errno| self.failed("looked at", errno))
    }

    /// A link is somebody's own arrangement: the file it leads to is theirs to change.
    fn check_kind(&self, entry: &Entry) -> Result<(), Rejection> {
        let found = match entry.kind {
            Kind::Regular => return Ok(()),
            Kind::Folder => "is a directory".to_owned(),
            Kind::Other => "is not a regular file".to_owned(),
            Kind::Link => {
                let to = readlinkat(self.folder.fd(), self.name).unwrap_or_default();
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
        let detail = format!("{} cannot be {step}: {error}; nothing has changed", self.path());
        Rejection::new(code_of(&error), detail)
    }

    fn path(&self) -> String {
        self.dir.join(self.name).to_string_lossy().into_owned()
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
