//! The daemon's end of one connection to an executor.
//!
//! Reading and writing are two flows: the reader waits for the core's queue, and that pressure is
//! meant to reach the executor; the writer must go on meanwhile, or both sides could wait for each
//! other. It knows nothing of processes; the pool keeps those.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::clock;
use super::environment::{Paths, assignment};
use super::runner::never_started;
use super::session::{self, Identity};
use super::start::StartError;
use super::wire::{Frames, FromExecutor, PROTOCOL, ToExecutor, encode, frames};
use crate::limits;
use crate::model::command::Dispatch;
use crate::model::event::{AttemptRef, Event, Hello, Report};
use crate::model::id::ExecutorId;

/// Time in which a new connection must have said Hello.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// What the core wants of an executor, in the order in which it wants it.
#[derive(Debug)]
pub(super) enum Order {
    /// Start this.
    Run(Box<Dispatch>),
    /// End this.
    Kill(AttemptRef),
    /// Stop this.
    Freeze(AttemptRef),
    /// Let this go on.
    Thaw(AttemptRef),
    /// Forget this.
    Acknowledge(AttemptRef),
}

/// A connection that has said who it is.
#[derive(Debug)]
pub(super) struct Connection {
    frames: Frames,
    /// Period of its heartbeat, as it said; it follows the daemon's only once it is welcomed.
    heartbeat: Option<Duration>,
    /// What it said.
    pub(super) hello: Hello,
    /// The process at the other end, as the kernel says.
    pub(super) peer: Option<Identity>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It broke, or the other end closed it.
    Closed,
    /// Too many heartbeats were missed.
    Silent,
    /// The daemon stops.
    Stopped,
}

/// Receives a new connection: checks whose it is and hears its Hello.
///
/// # Errors
/// Why it is turned away, in words.
pub(super) async fn greet(stream: UnixStream) -> Result<Connection, String> {
    let peer = stream.peer_cred().map_err(|e| e.to_string())?;
    let own = nix::unistd::geteuid().as_raw();
    if peer.uid() != 0 && peer.uid() != own {
        return Err(format!("user {} is neither root nor user {own}", peer.uid()));
    }
    let process = peer.pid().and_then(|p| u32::try_from(p).ok()).and_then(session::identify);
    let mut frames = frames(stream);
    let first = tokio::time::timeout(HELLO_WITHIN, frames.next())
        .await
        .map_err(|_elapsed| "it said nothing".to_owned())?
        .ok_or("it closed at once")?
        .map_err(|e| e.to_string())?;
    let (protocol, said, hello) = match serde_json::from_slice(&first) {
        Ok(FromExecutor::Hello { protocol, heartbeat, hello }) => (protocol, heartbeat, hello),
        Ok(FromExecutor::Report { .. }) => return Err("its first frame is not Hello".to_owned()),
        Err(error) => return Err(format!("its first frame is not Hello: {error}")),
    };
    if protocol != PROTOCOL {
        return Err(format!("it speaks protocol {protocol}; expected {PROTOCOL}"));
    }
    Ok(Connection { frames, heartbeat: said, hello: *hello, peer: process })
}

impl Connection {
    /// Welcomes the executor, with the period of the heartbeat that it is to keep. One that is
    /// not welcomed before its connection ends knows that it was refused, and takes its time.
    ///
    /// # Errors
    /// In words; the connection is broken.
    pub(super) async fn welcome(&mut self, heartbeat: Duration) -> Result<(), String> {
        let welcome = ToExecutor::Welcome { protocol: PROTOCOL, heartbeat: Some(heartbeat) };
        self.frames.send(encode(&welcome)?).await.map_err(|e| e.to_string())
    }
}

/// What a connection is served with.
pub(super) struct Service<'a> {
    /// Whose.
    pub(super) executor: &'a ExecutorId,
    /// Where its files lie.
    pub(super) paths: &'a Paths,
    /// The way to the core.
    pub(super) events: &'a mpsc::Sender<Event>,
    /// Period of the heartbeat.
    pub(super) heartbeat: Duration,
    /// Ends it.
    pub(super) stop: &'a CancellationToken,
}

impl Service<'_> {
    /// Serves a connection until it ends: Hello and every report go to the core in their order.
    ///
    /// Not cancel safe: a report that was read and not yet handed on would be lost until the next
    /// Hello.
    pub(super) async fn serve(
        &self,
        connection: Connection,
        orders: mpsc::Receiver<Order>,
    ) -> Ended {
        let Connection { frames, heartbeat, hello, .. } = connection;
        let incarnation = hello.incarnation;
        if self.events.send(Event::ExecutorConnected(hello)).await.is_err() {
            return Ended::Stopped;
        }
        let (sink, stream) = frames.split();
        let write = async {
            match self.write(sink, orders, incarnation).await {
                // The reader sees the end too, after what the other side still said.
                Err(why) => {
                    tracing::debug!(executor = %self.executor, why, "cannot write to an executor");
                    std::future::pending().await
                }
                Ok(()) => Ended::Closed,
            }
        };
        tokio::select! {
            ended = self.read(stream, incarnation, heartbeat) => ended,
            ended = write => ended,
            () = self.stop.cancelled() => Ended::Stopped,
        }
    }

    /// Counts heartbeats with the daemon's period or the one the executor said last, if that is
    /// longer: it was started with another and follows only now (or, older than this daemon, not).
    async fn read(
        &self,
        mut stream: SplitStream<Frames>,
        incarnation: u64,
        said: Option<Duration>,
    ) -> Ended {
        let mut missed = 0;
        let mut period = self.heartbeat.max(said.unwrap_or_default());
        loop {
            let from = clock::monotonic();
            let next = tokio::time::timeout(period, stream.next()).await;
            let frame = match next {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    tracing::warn!(executor = %self.executor, %error, "a connection broke");
                    return Ended::Closed;
                }
                Ok(None) => return Ended::Closed,
                Err(_) => {
                    // Only a wait that took its time counts: after a stall of this process the
                    // executor has had no chance to be heard.
                    let took = clock::monotonic().saturating_sub(from);
                    missed = if took > period * 2 { 0 } else { missed + 1 };
                    if missed >= limits::HEARTBEATS_MISSED_MAX {
                        return Ended::Silent;
                    }
                    continue;
                }
            };
            missed = 0;
            let report = match serde_json::from_slice(&frame) {
                Ok(FromExecutor::Report { report, heartbeat }) => {
                    if let Some(said) = heartbeat {
                        period = self.heartbeat.max(said);
                    }
                    report
                }
                Ok(FromExecutor::Hello { .. }) => return Ended::Closed,
                Err(error) => {
                    tracing::warn!(executor = %self.executor, %error, "a frame is not understood");
                    continue;
                }
            };
            if self.tell(incarnation, report).await.is_err() {
                return Ended::Stopped;
            }
        }
    }

    async fn tell(&self, incarnation: u64, report: Report) -> Result<(), String> {
        let executor = self.executor.clone();
        self.events
            .send(Event::ExecutorReport { executor, incarnation, report })
            .await
            .map_err(|_closed| "the core takes no more events".to_owned())
    }

    /// Writes orders, as many at a time as there are; `Ok` once the pool gave the connection up.
    async fn write(
        &self,
        mut sink: SplitSink<Frames, Bytes>,
        mut orders: mpsc::Receiver<Order>,
        incarnation: u64,
    ) -> Result<(), String> {
        let mut batch = Vec::new();
        while orders.recv_many(&mut batch, limits::BATCH_MAX).await > 0 {
            for order in batch.drain(..) {
                match self.frame(order) {
                    Ok(bytes) => sink.feed(bytes).await.map_err(|e| e.to_string())?,
                    Err((of, message)) => {
                        let error = StartError { message, transient: false };
                        let end = Box::new(never_started(&of, error, false));
                        self.tell(incarnation, Report::Finished(end)).await?;
                    }
                }
            }
            sink.flush().await.map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn frame(&self, order: Order) -> Result<Bytes, (AttemptRef, String)> {
        let (of, frame) = match order {
            Order::Run(dispatch) => {
                let of = dispatch.of.clone();
                match assignment(&dispatch, self.paths) {
                    Ok(made) => (of, ToExecutor::Run(Box::new(made))),
                    Err(why) => return Err((of, why)),
                }
            }
            Order::Kill(of) => (of.clone(), ToExecutor::Kill { of }),
            Order::Freeze(of) => (of.clone(), ToExecutor::Freeze { of }),
            Order::Thaw(of) => (of.clone(), ToExecutor::Thaw { of }),
            Order::Acknowledge(of) => (of.clone(), ToExecutor::Acknowledge { of }),
        };
        encode(&frame).map_err(|why| (of, format!("cannot hand over the attempt: {why}")))
    }
}
