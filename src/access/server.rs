//! The door: accepts connections on the Unix socket and serves HTTP/1.1 on them (requirement G1).
//!
//! Knows who is at the other end and how much one connection may cost; knows no route's meaning.
//! A client that is slow, silent or gone holds its own connection and nothing else (B142, B144).

use std::io::{self, Write};
use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Socket;
use crate::limits;
use crate::model::history::History;
use crate::model::record::LogRecord;
use crate::model::request::{Ask, Caller};

use super::problem::Problem;
use super::routes;
pub use super::socket::DoorError;
use super::socket::{self, SocketFile};
use super::spec_yaml::SpecContext;
pub use super::state::Now;
use super::state::Shared;

/// Time in which a request's head must be there, and that an idle connection may stay.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Pause after a failed accept (out of descriptors): long enough not to spin (B146).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time that answers under way have once the door is told to stop.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// The door: a bound, listening socket that nobody serves yet.
#[derive(Debug)]
pub struct Door {
    listener: StdListener,
    file: SocketFile,
}

/// What the door needs of the house.
pub struct DoorArgs {
    /// The core.
    pub ask: Arc<dyn Ask>,
    /// The read side of the store; must show a record before the feed carries it.
    pub history: Arc<dyn History>,
    /// Each log entry once it is durable, in order.
    pub feed: broadcast::Sender<Arc<LogRecord>>,
    /// Where task logs live.
    pub log_dir: PathBuf,
    /// Where definitions live.
    pub spec_dir: PathBuf,
    /// What they may refer to.
    pub spec_context: SpecContext,
    /// The daemon's clock, for `since=1h`.
    pub now: Now,
    /// Holds the connections' tasks.
    pub tracker: TaskTracker,
    /// Ends the serving.
    pub stop: CancellationToken,
}

impl std::fmt::Debug for DoorArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DoorArgs").field("log_dir", &self.log_dir).finish_non_exhaustive()
    }
}

impl Door {
    /// Makes the socket and listens on it; clients that come wait until [`Door::serve`] runs.
    ///
    /// A stale socket is replaced only after a connect was refused; a live one is never stolen,
    /// something that is no socket never deleted. Blocks shortly; needs no runtime. Dropping the
    /// door removes the file, if it is still ours.
    ///
    /// # Errors
    /// [`DoorError`], naming the path and what to do.
    pub fn bind(socket: &Socket) -> Result<Self, DoorError> {
        let (listener, file) = socket::listen(socket)?;
        Ok(Self { listener, file })
    }

    /// Serves until `args.stop`, then removes the socket's file and gives answers under way one
    /// second to end.
    ///
    /// Not cancel safe: dropping the future leaves open connections to the tracker's owner.
    ///
    /// # Errors
    /// [`DoorError::System`] if the runtime does not take the socket.
    pub async fn serve(self, args: DoorArgs) -> Result<(), DoorError> {
        let Self { listener, file } = self;
        let listener = UnixListener::from_std(listener).map_err(|source| DoorError::System {
            step: "hand to the runtime",
            path: file.path().to_owned(),
            source,
        })?;
        let own_uid = nix::unistd::geteuid().as_raw();
        let hall = Hall {
            room: Arc::new(Semaphore::new(limits::CONNECTIONS_MAX)),
            tracker: args.tracker,
            stop: args.stop.clone(),
            router: routes::router(Arc::new(Shared {
                ask: args.ask,
                history: args.history,
                feed: args.feed,
                log_dir: args.log_dir,
                spec_dir: args.spec_dir,
                spec_context: Arc::new(args.spec_context),
                now: args.now,
                stop: args.stop,
                own_uid,
            })),
        };
        hall.accept_until_stop(&listener).await;
        // The file goes while we still listen: nobody else can have taken its place.
        drop(file);
        drop(listener);
        hall.close().await;
        Ok(())
    }
}

/// What accepting and closing share.
struct Hall {
    room: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
    router: Router,
}

impl Hall {
    async fn accept_until_stop(&self, listener: &UnixListener) {
        let mut failing = false;
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _address)) => {
                    failing = false;
                    self.welcome(stream);
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(%error, "cannot accept connections for now");
                    }
                    failing = true;
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn welcome(&self, stream: UnixStream) {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            turn_away(stream);
            return;
        };
        match peer(&stream) {
            Ok(caller) => {
                let serving = serve_connection(
                    stream,
                    self.router.clone(),
                    caller,
                    self.stop.clone(),
                    permit,
                );
                self.tracker.spawn(serving);
            }
            Err(error) => tracing::warn!(%error, "the peer of a connection is unknown; closed"),
        }
    }

    /// Waits until all connections are closed: each gives its place back when it ends.
    async fn close(&self) {
        let all = u32::try_from(limits::CONNECTIONS_MAX).unwrap_or(u32::MAX);
        match tokio::time::timeout(CLOSE_WITHIN * 3 / 2, self.room.acquire_many(all)).await {
            Ok(_all) => {}
            Err(_elapsed) => tracing::warn!("connections are still open at the door's end"),
        }
    }
}

fn peer(stream: &UnixStream) -> io::Result<Caller> {
    let cred = stream.peer_cred()?;
    let pid = cred.pid().and_then(|p| u32::try_from(p).ok()).unwrap_or(0);
    Ok(Caller { uid: cred.uid(), gid: cred.gid(), pid, key: None })
}

async fn serve_connection(
    stream: UnixStream,
    router: Router,
    caller: Caller,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(caller);
        router.call(request)
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(true);
    let mut connection = std::pin::pin!(server.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(CLOSE_WITHIN, connection.as_mut()).await {
                Ok(ended) => ended,
                Err(_elapsed) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, uid = caller.uid, pid = caller.pid, "connection broke off");
    }
}

/// Answers a connection too many without a task of its own, as far as that goes without waiting.
fn turn_away(stream: UnixStream) {
    let problem = Problem::unavailable(format!(
        "{} connections are open, more are not taken; try again",
        limits::CONNECTIONS_MAX
    ));
    let body = problem.to_json();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nconnection: close\r\nretry-after: 1\r\n\r\n{body}",
        body.len()
    );
    let sent = stream.into_std().and_then(|mut s| {
        // Unread bytes would turn the close into a reset that overtakes the answer.
        let _unread = io::Read::read(&mut s, &mut [0_u8; 4096]);
        s.write_all(answer.as_bytes())
    });
    if let Err(error) = sent {
        tracing::debug!(%error, "a connection too many was closed without an answer");
    }
}

#[cfg(test)]
mod tests;
