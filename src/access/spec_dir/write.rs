//! Changes of the spec directory that somebody asked for at the door: whole or not at all, and on
//! the disk before they count.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, fsync, unlinkat};

use super::folder::{Entry, Folder, Kind, c_name};
use super::{SpecDir, is_spec_name};
use crate::access::spec_yaml::content_hash;
use crate::limits;
use crate::model::request::{FileChange, Rejection, RejectionCode};

impl SpecDir {
    /// Carries out a change, synced to the disk. The next reading has to hear of the name as
    /// [`super::Heard::Ours`]; what it then finds is said to come from `uid`.
    ///
    /// # Errors
    /// A refusal with what, where and why; nothing has changed then, unless it says otherwise.
    pub fn change(&mut self, change: &FileChange, uid: u32) -> Result<(), Rejection> {
        let name = match change {
            FileChange::Write { name, .. } | FileChange::Remove { name } => name,
        };
        check_name(name)?;
        let folder = self.open().map_err(|why| {
            Rejection::new(RejectionCode::Conflict, format!("nothing is written: {why}"))
        })?;
        let place = Place { folder: &folder, dir: &self.dir, name };
        match change {
            FileChange::Write { text, .. } => {
                place.write(text)?;
                self.authors.insert(name.into(), (content_hash(text), uid));
            }
            FileChange::Remove { .. } => place.remove()?,
        }
        Ok(())
    }
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
        if let Some(entry) = self.entry()? {
            self.check_kind(&entry)?;
        }
        // Never read, since it begins with a dot, and of this process alone.
        let draft = format!(".schedd.{}.tmp", std::process::id());
        let written = self.draft(&draft, content).and_then(|()| {
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
        written.and_then(|()| self.sync("written"))
    }

    fn draft(&self, draft: &str, content: &[u8]) -> Result<(), Rejection> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o644);
        let open = || openat(self.folder.fd(), draft, flags, mode);
        let fd = match open() {
            // A crash left it behind.
            Err(Errno::EEXIST) => {
                unlinkat(self.folder.fd(), draft, UnlinkatFlags::NoRemoveDir).and_then(|()| open())
            }
            other => other,
        };
        let mut file = File::from(fd.map_err(|errno| self.failed("made", errno))?);
        file.write_all(content)
            .and_then(|()| file.sync_all())
            .map_err(|error| self.failed("written", error))
    }

    fn remove(&self) -> Result<(), Rejection> {
        let Some(entry) = self.entry()? else {
            let detail = format!("there is no file {}", self.path());
            return Err(Rejection::new(RejectionCode::NotFound, detail));
        };
        if entry.kind != Kind::Link {
            self.check_kind(&entry)?;
        }
        unlinkat(self.folder.fd(), self.name, UnlinkatFlags::NoRemoveDir)
            .map_err(|errno| self.failed("removed", errno))?;
        self.sync("removed")
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

    /// Until the directory is synced, a crash may undo the change.
    fn sync(&self, done: &str) -> Result<(), Rejection> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        openat(self.folder.fd(), ".", flags, Mode::empty()).and_then(fsync).map_err(|errno| {
            let error = std::io::Error::from(errno);
            let detail = format!(
                "{} is {done}, but a power failure could undo that: the directory cannot be \
                     synced: {error}",
                self.path()
            );
            Rejection::new(code_of(&error), detail)
        })
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
