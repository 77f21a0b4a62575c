//! The spec directory and its files by their descriptors: what is checked is what is read.
//!
//! A file is first opened with `O_PATH`, which no device or pipe can notice, looked at, and only
//! then opened for reading through that same descriptor. Whatever is renamed or swapped meanwhile,
//! nothing is read that was not checked.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use crate::limits;

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// When anything about it changed last, by the file system's clock: milliseconds since the
    /// epoch.
    pub(super) fn changed_ms(&self) -> i64 {
        self.changed.0.saturating_mul(1000).saturating_add(self.changed.1 / 1_000_000)
    }
}

/// One name in the directory.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: Kind,
}

/// What a name stands for, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    Link,
    Regular,
    Other,
}

/// Whom the daemon must be able to trust.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trust {
    /// The daemon's user.
    pub(super) uid: u32,
}

impl Trust {
    /// Why root must not follow what others can write, as cron does.
    pub(super) fn objection(self, stat: &FileStat) -> Option<String> {
        if self.uid != 0 {
            return None;
        }
        if stat.st_uid != 0 {
            return Some(format!(
                "belongs to user {}, not to root, whom its tasks would run as; chown root it",
                stat.st_uid
            ));
        }
        let mode = stat.st_mode & 0o7777;
        (mode & 0o022 != 0).then(|| {
            format!(
                "has mode {mode:04o}: others than root can write it, and its tasks would run as \
                 root; chmod go-w it"
            )
        })
    }
}

/// The directory as it is now, held by a descriptor.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    device: u64,
    trust: Trust,
}

/// A file as found behind a name, not opened for reading yet.
#[derive(Debug)]
pub(super) struct Found {
    path_only: OwnedFd,
    pub(super) stat: FileStat,
}

/// What reading gave.
#[derive(Debug)]
pub(super) enum Content {
    /// All of it.
    Whole(Vec<u8>),
    /// It changed meanwhile.
    Torn,
    /// It must not be read; why.
    Refused(String),
}

impl Folder {
    /// Opens the directory.
    ///
    /// # Errors
    /// Why it cannot be read or is not to be trusted.
    pub(super) fn open(dir: &Path, trust: Trust) -> Result<Self, String> {
        let shown = dir.display();
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let cannot = |errno: Errno| format!("cannot read {shown}: {}", text(errno));
        let fd = nix::fcntl::open(dir, flags, Mode::empty()).map_err(cannot)?;
        let stat = fstat(&fd).map_err(cannot)?;
        match trust.objection(&stat) {
            Some(why) => Err(format!("{shown} {why}")),
            None => Ok(Self { fd, device: stat.st_dev, trust }),
        }
    }

    pub(super) fn device(&self) -> u64 {
        self.device
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// All names but `.` and `..`, sorted.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut open = Dir::openat(&self.fd, c".", flags, Mode::empty())?;
        let mut entries = Vec::new();
        for entry in open.iter() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                Some(Type::Directory) => Kind::Folder,
                Some(Type::Symlink) => Kind::Link,
                Some(Type::File) => Kind::Regular,
                Some(Type::Fifo | Type::CharacterDevice | Type::BlockDevice | Type::Socket) => {
                    Kind::Other
                }
                // Some file systems do not say.
                None => match self.entry(name) {
                    Ok(Some(entry)) => entry.kind,
                    Ok(None) => continue,
                    Err(errno) => return Err(errno),
                },
            };
            entries.push(Entry { name: owned(name), kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// One name; `None`: it is not there.
    pub(super) fn entry(&self, name: &CStr) -> Result<Option<Entry>, Errno> {
        match fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry { name: owned(name), kind: kind_of(&stat) })),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// What stat says of what a name leads to; opens nothing.
    pub(super) fn stamp(&self, name: &OsStr) -> Option<Stamp> {
        fstatat(&self.fd, name, AtFlags::empty()).ok().map(|stat| Stamp::of(&stat))
    }

    /// What a name leads to, links followed but those that the kernel makes up (`/proc/1/fd/3`),
    /// which lead where no path does. Not opened, so that nothing can act on it.
    pub(super) fn find(&self, name: &OsStr) -> Result<Found, Errno> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let path_only = match openat2(&self.fd, name, how) {
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::ENOSYS | Errno::EPERM) => openat(&self.fd, name, flags, Mode::empty())?,
            other => other?,
        };
        let stat = fstat(&path_only)?;
        Ok(Found { path_only, stat })
    }

    /// Reads what was found, if it may be read: at most [`limits::SPEC_FILE_BYTES_MAX`] bytes of a
    /// regular file that can be trusted.
    pub(super) fn read(&self, name: &OsStr, found: &Found) -> std::io::Result<Content> {
        if kind_of(&found.stat) != Kind::Regular {
            return Ok(Content::Refused("is not a regular file".to_owned()));
        }
        if let Some(why) = self.trust.objection(&found.stat) {
            return Ok(Content::Refused(why));
        }
        let max = limits::SPEC_FILE_BYTES_MAX;
        let size = usize::try_from(found.stat.st_size).unwrap_or(usize::MAX);
        if size > max {
            return Ok(Content::Refused(format!("has {size} bytes; at most {max} are read")));
        }
        let mut file = self.open_found(name, found)?;
        // One byte more than there ought to be, so that the end is seen with the first read.
        let mut bytes = Vec::with_capacity(size + 1);
        let bound = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
        file.by_ref().take(bound).read_to_end(&mut bytes)?;
        let after = fstat(&file)?;
        if bytes.len() != size || Stamp::of(&after) != Stamp::of(&found.stat) {
            return Ok(Content::Torn);
        }
        Ok(Content::Whole(bytes))
    }

    /// Opens the very file that was found: its descriptor leads to it whatever its name does now.
    /// Without `/proc` the name has to do, and what it leads to is compared by who reads.
    fn open_found(&self, name: &OsStr, found: &Found) -> std::io::Result<File> {
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let through = format!("/proc/self/fd/{}", found.path_only.as_raw_fd());
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(through);
        match opened {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let flags = flags | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
                Ok(File::from(openat(self.fd.as_fd(), name, flags, Mode::empty())?))
            }
            other => other,
        }
    }
}

/// An error as people read it, without a number.
pub(super) fn text(errno: Errno) -> String {
    errno.desc().to_owned()
}

fn kind_of(stat: &FileStat) -> Kind {
    let format = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits());
    if format == SFlag::S_IFDIR {
        Kind::Folder
    } else if format == SFlag::S_IFLNK {
        Kind::Link
    } else if format == SFlag::S_IFREG {
        Kind::Regular
    } else {
        Kind::Other
    }
}

impl Found {
    pub(super) fn is_folder(&self) -> bool {
        kind_of(&self.stat) == Kind::Folder
    }
}

fn owned(name: &CStr) -> OsString {
    OsString::from_vec(name.to_bytes().to_vec())
}

/// A name as the system calls want it; `None`: it holds a zero byte, which no name can.
pub(super) fn c_name(name: &OsStr) -> Option<std::ffi::CString> {
    std::ffi::CString::new(name.as_bytes()).ok()
}
