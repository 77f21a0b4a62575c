//! The executor's one door for signals.
//!
//! TERM, INT and HUP are heard and not obeyed. The executor is a session of its own, and whoever
//! stops the daemon, a terminal or a service by its group must not thereby end everybody's tasks;
//! it ends by itself once it is idle and no daemon is connected.

use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;

use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

/// The signals of one executor process.
pub(super) struct Signals {
    ended: UnixStream,
    asked: UnixStream,
    registered: Vec<SigId>,
}

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Children may have ended: reap all.
    ChildEnded,
    /// Somebody asks the executor to end; it does not.
    AskedToEnd,
}

impl Signals {
    /// Takes over the signals. Must be called within the runtime.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn install() -> io::Result<Self> {
        let mut registered = Vec::new();
        Ok(Self {
            ended: listen(&[SIGCHLD], &mut registered)?,
            asked: listen(&[SIGTERM, SIGINT, SIGHUP], &mut registered)?,
            registered,
        })
    }

    /// Waits for the next signal; several of a kind may come as one. Cancel safe.
    ///
    /// # Errors
    /// The system's; not in ordinary operation.
    pub(super) async fn next(&mut self) -> io::Result<Heard> {
        let mut ended = [0_u8; 64];
        let mut asked = [0_u8; 64];
        let (heard, read) = tokio::select! {
            read = self.ended.read(&mut ended) => (Heard::ChildEnded, read),
            read = self.asked.read(&mut asked) => (Heard::AskedToEnd, read),
        };
        match read? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(heard),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // The action writes to a socket that nobody reads any more.
        for id in self.registered.drain(..) {
            unregister(id);
        }
    }
}

fn listen(signals: &[i32], registered: &mut Vec<SigId>) -> io::Result<UnixStream> {
    let (reader, writer) = StdUnixStream::pair()?;
    reader.set_nonblocking(true)?;
    for signal in signals {
        registered.push(pipe::register(*signal, writer.try_clone()?)?);
    }
    UnixStream::from_std(reader)
}
