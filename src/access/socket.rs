//! The socket's file: made without a moment in which more people can connect than may, replaced
//! only when nobody listens on it, removed only while it is ours (known faults B137, B140).

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::fcntl::AtFlags;
use nix::sys::socket as net;
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat};
use nix::unistd::{Gid, Group, Uid, fchownat};

use crate::config::Socket;
use crate::limits;

/// Why the door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The kernel's address has no room for the path.
    #[error(
        "the socket's path {path} is {bytes} bytes long; the system allows at most {max}, choose a \
         shorter one (socket.path)", max = limits::SOCKET_PATH_BYTES_MAX
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// Another process answers there.
    #[error("another daemon listens on the socket {path}; stop it or choose another socket.path")]
    Live {
        /// The path.
        path: PathBuf,
    },
    /// Something else stands there; it is left alone.
    #[error("{path} is in the way: it is no socket; move it or choose another socket.path")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system knows no such group.
    #[error("cannot give the socket {path} to group {group:?}: there is no such group")]
    NoGroup {
        /// The path.
        path: PathBuf,
        /// The group's name.
        group: String,
    },
    /// A step of making it failed.
    #[error("cannot {step} the socket {path}")]
    System {
        /// What was tried.
        step: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
}

/// The socket's file; removed on drop while it is still ours.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|m| m.dev() == self.device && m.ino() == self.inode);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "socket file not removed");
        }
    }
}

/// Makes the socket and listens on it.
///
/// The directory is locked meanwhile, so that two daemons that start at once cannot both find the
/// file stale: the second waits, then finds the first listening.
pub(super) fn listen(socket: &Socket) -> Result<(UnixListener, SocketFile), DoorError> {
    let path = socket.path.as_path();
    let bytes = path.as_os_str().as_bytes().len();
    if bytes > limits::SOCKET_PATH_BYTES_MAX {
        return Err(DoorError::PathTooLong { path: path.to_owned(), bytes });
    }
    let fail = |step: &'static str| {
        move |source| DoorError::System { step, path: path.to_owned(), source }
    };
    let group = group_id(socket)?;
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_directory(parent).map_err(fail("make the directory of"))?;
    let directory = File::open(parent).map_err(fail("open the directory of"))?;
    directory.lock().map_err(fail("lock the directory of"))?;
    clear_the_way(path)?;
    let fd = bind(path).map_err(fail("bind"))?;
    let meta = fs::symlink_metadata(path).map_err(fail("look at"))?;
    let file = SocketFile { path: path.to_owned(), device: meta.dev(), inode: meta.ino() };
    // Nobody can connect before `listen`, and the mode is the narrowest until the group is right.
    give(path, group, socket.mode).map_err(fail("set group and mode of"))?;
    net::listen(&fd, net::Backlog::MAXCONN).map_err(io::Error::from).map_err(fail("listen on"))?;
    Ok((UnixListener::from(fd), file))
}

fn group_id(socket: &Socket) -> Result<Option<Gid>, DoorError> {
    let Some(name) = &socket.group else { return Ok(None) };
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(Some(group.gid)),
        Ok(None) => Err(DoorError::NoGroup { path: socket.path.clone(), group: name.clone() }),
        Err(errno) => Err(DoorError::System {
            step: "look up the group of",
            path: socket.path.clone(),
            source: errno.into(),
        }),
    }
}

/// Makes missing directories: everybody may pass root's, only the user their own.
fn make_directory(directory: &Path) -> io::Result<()> {
    let mode = if Uid::effective().is_root() { 0o755 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(directory)
}

/// Removes a socket that nobody listens on; anything else stays and is an error.
fn clear_the_way(path: &Path) -> Result<(), DoorError> {
    let fail = |step: &'static str| {
        move |source| DoorError::System { step, path: path.to_owned(), source }
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fail("look at")(error)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(DoorError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(DoorError::Live { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(fail("remove the stale"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fail("find out who listens on")(error)),
    }
}

fn bind(path: &Path) -> io::Result<OwnedFd> {
    let flags = net::SockFlag::SOCK_CLOEXEC | net::SockFlag::SOCK_NONBLOCK;
    let fd = net::socket(net::AddressFamily::Unix, net::SockType::Stream, flags, None)?;
    // The file takes its first mode from the unbound socket: no umask, which is the whole
    // process's, has to be changed.
    fchmod(&fd, Mode::S_IRUSR | Mode::S_IWUSR)?;
    net::bind(fd.as_raw_fd(), &net::UnixAddr::new(path)?)?;
    Ok(fd)
}

fn give(path: &Path, group: Option<Gid>, mode: u32) -> io::Result<()> {
    let here = nix::fcntl::AT_FDCWD;
    if group.is_some() {
        fchownat(here, path, None, group, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    }
    let mode = Mode::from_bits_truncate(mode & 0o777);
    // Not "no follow": older kernels cannot do that; the directory's lock and owner guard it.
    fchmodat(here, path, mode, FchmodatFlags::FollowSymlink)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_bound_socket_is_its_owners_alone_and_takes_nobody_until_it_listens() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.sock");
        let _fd = bind(&path).unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let refused = UnixStream::connect(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
