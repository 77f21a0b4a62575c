//! Keeps one executor's process alive: starts it, notices its end, starts the next.
//!
//! The end is known by the process itself where this daemon started it, and by its lock, which
//! the kernel releases, where an earlier one did. It knows nothing of attempts.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::environment::Paths;
use super::executor::REFUSED_EVERY;
use super::journal::Journal;
use super::link::{Connection, Ended, Order, Service};
use super::session::{self, Identity};
use super::takeover::{self, attempts_dir};
use super::{clock, process};
use crate::limits;
use crate::model::event::Event;
use crate::model::id::ExecutorId;

/// Between the end of an executor's process and the start of the next.
const RESPAWN_FIRST: Duration = Duration::from_millis(200);
const RESPAWN_LAST: Duration = Duration::from_secs(10);
/// Between looks at a process that is not connected.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LAST: Duration = Duration::from_millis(100);
/// A process that holds its lock and does not connect for this long, or for three heartbeats if
/// that is longer, hangs.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const _: () = assert!(2 * REFUSED_EVERY.as_secs() <= CONNECT_WITHIN.as_secs());
/// Orders that wait for one executor's connection. Above that it does not keep up, and the
/// connection is given up rather than an order forgotten.
const ORDER_QUEUE: usize = 4 * limits::EVENT_QUEUE;

/// The way to one executor; closed while it is not connected.
#[derive(Debug, Default)]
pub(super) struct Link {
    // Never held over an await: it guards one assignment or one send that does not wait.
    line: Mutex<Option<Line>>,
    /// Connections so far.
    count: AtomicU64,
}

/// An open connection.
#[derive(Debug)]
struct Line {
    connection: u64,
    orders: mpsc::Sender<Order>,
    /// The core has heard its Hello. Until then orders are meant for the connection before.
    is_attached: bool,
}

impl Link {
    /// Opens a new connection; gives its number and what is ordered over it.
    pub(super) fn open(&self) -> (u64, mpsc::Receiver<Order>) {
        let (orders, receiver) = mpsc::channel(ORDER_QUEUE);
        let connection = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        *self.line() = Some(Line { connection, orders, is_attached: false });
        (connection, receiver)
    }

    pub(super) fn attach(&self, connection: u64) {
        if let Some(line) = self.line().as_mut().filter(|line| line.connection == connection) {
            line.is_attached = true;
        }
    }

    pub(super) fn order(&self, executor: &ExecutorId, order: Order) {
        let mut line = self.line();
        match line.as_ref().filter(|line| line.is_attached).map(|line| line.orders.try_send(order))
        {
            Some(Ok(())) => {}
            Some(Err(_)) => {
                tracing::warn!(%executor, "an executor does not keep up; connecting anew");
                *line = None;
            }
            None => tracing::debug!(%executor, "an order for an executor that is not connected"),
        }
    }

    pub(super) fn close(&self) {
        *self.line() = None;
    }

    fn line(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps one executor.
pub(super) struct Keeper {
    pub(super) id: ExecutorId,
    pub(super) link: Arc<Link>,
    pub(super) connections: mpsc::Receiver<Connection>,
    pub(super) command: Vec<String>,
    pub(super) program: PathBuf,
    pub(super) lock: PathBuf,
    pub(super) log: PathBuf,
    pub(super) paths: Paths,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) heartbeat: Duration,
    pub(super) stop: CancellationToken,
    /// The process, if this daemon started it.
    pub(super) child: Option<Child>,
    /// What last connected.
    pub(super) incarnation: Option<u64>,
}

/// What became of a process.
enum Gone {
    Stopped,
    Lost(String),
}

impl Keeper {
    /// Keeps the executor until the daemon stops; then its connection is closed, and that is all.
    pub(super) async fn keep_until_stopped(self) {
        let stop = self.stop.clone();
        tokio::select! {
            () = self.keep() => {}
            () = stop.cancelled() => {}
        }
    }

    async fn keep(mut self) {
        let mut pause = RESPAWN_FIRST;
        loop {
            self.spawn();
            let why = match self.attend().await {
                Gone::Stopped => return,
                Gone::Lost(why) => why,
            };
            tracing::warn!(executor = %self.id, why, "an executor's process is gone");
            // One that never connected had nothing that the core could lose.
            if let Some(incarnation) = self.incarnation.take() {
                pause = RESPAWN_FIRST;
                self.end_left().await;
                let executor = self.id.clone();
                let lost = Event::ExecutorLost { executor, incarnation: Some(incarnation), why };
                if self.events.send(lost).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => return,
            }
            pause = (pause * 2).min(RESPAWN_LAST);
        }
    }

    /// Ends what the process left running, so that nothing is queued again while it still runs.
    async fn end_left(&self) {
        let dir = attempts_dir(&self.paths.state_dir, &self.id);
        match Journal::open(dir).and_then(|journal| journal.left()) {
            Ok(left) => takeover::end_left(&left, &clock::boot_id()).await,
            Err(error) => {
                tracing::warn!(executor = %self.id, %error, "cannot read what an executor left");
            }
        }
    }

    /// Starts the process, unless one of this id is alive.
    fn spawn(&mut self) {
        if self.is_locked() {
            return;
        }
        let started = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o640)
            .open(&self.log)
            .and_then(|log| process::spawn_executor(&self.program, &self.command, log));
        match started {
            Ok(child) => {
                tracing::info!(executor = %self.id, pid = child.id(), "started an executor");
                self.child = Some(child);
            }
            Err(error) => {
                let program = self.program.display();
                tracing::error!(executor = %self.id, %program, %error, "cannot start an executor");
            }
        }
    }

    /// Whether a process of this id is alive: its lock is the kernel's word for that.
    fn is_locked(&self) -> bool {
        match fs::File::open(&self.lock).map(|file| file.try_lock_shared()) {
            Ok(Ok(())) => false,
            Ok(Err(_)) => true,
            // Where it cannot be known, nobody is called lost.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Serves its connections until the process is gone.
    async fn attend(&mut self) -> Gone {
        let mut pause = LOOK_FIRST;
        let mut waited = Duration::ZERO;
        loop {
            let connection = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Gone::Stopped,
                connection = self.connections.recv() => connection,
                () = tokio::time::sleep(pause) => None,
            };
            if let Some(connection) = connection {
                match self.converse(connection).await {
                    Ended::Stopped => return Gone::Stopped,
                    Ended::Closed | Ended::Silent => {}
                }
                (pause, waited) = (LOOK_FIRST, Duration::ZERO);
            } else {
                // Time that was slept, not time that has passed: a stall here is nobody's fault.
                waited += pause;
                pause = (pause * 2).min(LOOK_LAST);
            }
            if let Some(why) = self.gone() {
                return Gone::Lost(why);
            }
            if waited > CONNECT_WITHIN.max(self.heartbeat * limits::HEARTBEATS_MISSED_MAX) {
                self.kill(self.holder(), "it does not connect");
                waited = Duration::ZERO;
            }
        }
    }

    /// Serves one connection. The link is open before the core hears of it, so that what the core
    /// orders upon Hello is delivered.
    async fn converse(&mut self, mut connection: Connection) -> Ended {
        let peer = connection.peer;
        self.incarnation = Some(connection.hello.incarnation);
        let (number, orders) = self.link.open();
        connection.hello.connection = number;
        let service = Service {
            executor: &self.id,
            paths: &self.paths,
            events: &self.events,
            heartbeat: self.heartbeat,
            stop: &self.stop,
        };
        let ended = service.serve(connection, orders).await;
        self.link.close();
        if ended == Ended::Silent {
            self.kill(peer, "it missed its heartbeats");
        }
        ended
    }

    /// How the process ended, if it did.
    fn gone(&mut self) -> Option<String> {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => None,
            Some(Ok(Some(status))) => {
                self.child = None;
                Some(format!("the executor's process ended: {status}"))
            }
            Some(Err(_)) | None => {
                self.child = None;
                (!self.is_locked()).then(|| "the executor's process ended".to_owned())
            }
        }
    }

    /// Who holds the lock, by its own word.
    fn holder(&self) -> Option<Identity> {
        let pid = fs::read_to_string(&self.lock).ok()?.trim().parse().ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let is_executor = command.split(|b| *b == 0).any(|argument| argument == b"executor");
        session::identify(pid).filter(|_| is_executor && self.is_locked())
    }

    fn kill(&self, process: Option<Identity>, why: &str) {
        tracing::warn!(executor = %self.id, why, "killing an executor's process");
        if let Some(process) = process {
            process::signal(process, Signal::SIGKILL);
        }
    }
}
