//! The daemon's side: keeps one process per configured executor alive and speaks to it.
//!
//! An executor that runs already when the daemon starts is left alone: it holds its lock and will
//! connect by itself. Nothing here waits for the core's sake: what cannot be delivered is dropped,
//! because the next Hello tells the core what an executor has.
//!
//! It is longer than 400 lines because starting, hearing and losing an executor change one state.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::environment::Paths;
use super::executor::lock_path;
use super::link::{self, Connection, Ended, Order, Service};
use super::process;
use super::session::{self, Identity};
use crate::limits;
use crate::model::command::Dispatch;
use crate::model::event::{AttemptRef, Event};
use crate::model::id::ExecutorId;
use crate::model::settings::Settings;
use nix::sys::signal::Signal;

/// Between the end of an executor's process and the start of the next.
const RESPAWN_FIRST: Duration = Duration::from_millis(200);
const RESPAWN_LAST: Duration = Duration::from_secs(10);
/// Between looks at a process that is not connected.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LAST: Duration = Duration::from_millis(100);
/// A process that holds its lock and does not connect for this long, or for three heartbeats if
/// that is longer, hangs.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Orders that wait for one executor's connection. Above that it does not keep up, and the
/// connection is given up rather than an order forgotten.
const ORDER_QUEUE: usize = 4 * limits::EVENT_QUEUE;

/// What a pool is started with.
#[derive(Debug)]
pub struct PoolArgs {
    /// Executors and heartbeat.
    pub settings: Arc<Settings>,
    /// The configuration's file, for the executors' command lines.
    pub config_file: Option<PathBuf>,
    /// The daemon's state directory, which it has locked.
    pub state_dir: PathBuf,
    /// Where task logs live.
    pub log_dir: PathBuf,
    /// The way to the core.
    pub events: mpsc::Sender<Event>,
    /// What the pool's tasks are tracked by.
    pub tracker: TaskTracker,
    /// Ends them.
    pub stop: CancellationToken,
    /// The schedd program.
    pub program: PathBuf,
}

/// Why there is no pool.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The state directory's path leaves no room for a socket in it.
    #[error(
        "the path {path} has {bytes} bytes; a socket's may have at most {max}: choose a shorter \
         stateDir",
        max = limits::SOCKET_PATH_BYTES_MAX
    )]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// An executor's id cannot be a file's name.
    #[error("executor id {0:?} cannot name a file; use letters, digits, '.', '-' and '_'")]
    Id(ExecutorId),
    /// A step of the start failed.
    #[error("cannot {step} {path}")]
    Start {
        /// Which.
        step: &'static str,
        /// Of what.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
}

/// The configured executors, as the daemon commands them (requirement F1).
#[derive(Debug)]
pub struct ExecutorPool {
    links: BTreeMap<ExecutorId, Arc<Link>>,
    socket: PathBuf,
    stop: CancellationToken,
    own: TaskTracker,
}

/// The way to one executor; closed while it is not connected.
#[derive(Debug, Default)]
struct Link {
    // Never held over an await: it guards one assignment.
    orders: Mutex<Option<mpsc::Sender<Order>>>,
}

impl Link {
    fn orders(&self) -> MutexGuard<'_, Option<mpsc::Sender<Order>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> mpsc::Receiver<Order> {
        let (sender, receiver) = mpsc::channel(ORDER_QUEUE);
        *self.orders() = Some(sender);
        receiver
    }

    fn close(&self) {
        *self.orders() = None;
    }
}

impl ExecutorPool {
    /// Opens the private socket and sees to it that every executor has a process. Must be called
    /// within the runtime.
    ///
    /// # Errors
    /// [`ExecutionError`]. An executor that cannot be started is no error: it is tried again.
    pub fn start(args: PoolArgs) -> Result<Self, ExecutionError> {
        let socket = args.state_dir.join("executors.sock");
        let listener = listen(&args.state_dir, &socket)?;
        let own = TaskTracker::new();
        let mut links = BTreeMap::new();
        let mut doors = BTreeMap::new();
        for executor in &args.settings.executors {
            let id = &executor.id;
            let fit = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            if id.as_str().is_empty()
                || id.as_str().starts_with('.')
                || !id.as_str().bytes().all(fit)
            {
                return Err(ExecutionError::Id(id.clone()));
            }
            let link = Arc::new(Link::default());
            let (door, connections) = mpsc::channel(1);
            let keeper = Keeper {
                id: id.clone(),
                link: Arc::clone(&link),
                connections,
                command: command(&args, id, &socket),
                program: args.program.clone(),
                lock: lock_path(&args.state_dir, id),
                log: args.state_dir.join("executors").join(format!("{id}.log")),
                paths: Paths { log_dir: args.log_dir.clone(), state_dir: args.state_dir.clone() },
                events: args.events.clone(),
                heartbeat: args.settings.heartbeat,
                stop: args.stop.clone(),
                child: None,
                incarnation: None,
            };
            links.insert(id.clone(), link);
            doors.insert(id.clone(), door);
            args.tracker.spawn(own.track_future(keeper.keep()));
        }
        let receive = receive(listener, doors, own.clone(), args.stop.clone());
        args.tracker.spawn(own.track_future(receive));
        Ok(Self { links, socket, stop: args.stop, own })
    }

    /// Hands an attempt to its executor. Never waits; without a connection it does nothing, and
    /// the executor's next Hello shows the core that the attempt was not accepted. A dispatch of
    /// which no process can be made comes back as a Finished event.
    pub fn run(&self, dispatch: Dispatch) {
        let executor = dispatch.executor.clone();
        self.order(&executor, Order::Run(Box::new(dispatch)));
    }

    /// Orders the end of an attempt's processes. Never waits.
    pub fn kill(&self, executor: &ExecutorId, of: AttemptRef) {
        self.order(executor, Order::Kill(of));
    }

    /// Says that an attempt's end, or its loss, is durable. Never waits.
    pub fn acknowledge(&self, executor: &ExecutorId, of: AttemptRef) {
        self.order(executor, Order::Acknowledge(of));
    }

    fn order(&self, executor: &ExecutorId, order: Order) {
        let Some(link) = self.links.get(executor) else {
            tracing::debug!(%executor, "an order for an executor that is not configured");
            return;
        };
        let mut orders = link.orders();
        let sent = orders.as_ref().map(|sender| sender.try_send(order));
        match sent {
            Some(Ok(())) => {}
            Some(Err(_)) => {
                tracing::warn!(%executor, "an executor does not keep up; connecting anew");
                *orders = None;
            }
            None => tracing::debug!(%executor, "an order for an executor that is not connected"),
        }
    }

    /// Closes all connections and removes the socket. Executors and their tasks go on.
    ///
    /// Cancel safe but for the socket's file, which then stays.
    pub async fn stop(self) {
        self.stop.cancel();
        self.own.close();
        self.own.wait().await;
        if let Err(error) = fs::remove_file(&self.socket) {
            tracing::debug!(path = %self.socket.display(), %error, "cannot remove a socket");
        }
    }
}

fn listen(state_dir: &Path, socket: &Path) -> Result<UnixListener, ExecutionError> {
    let bytes = socket.as_os_str().len();
    if bytes > limits::SOCKET_PATH_BYTES_MAX {
        return Err(ExecutionError::SocketPath { path: socket.to_owned(), bytes });
    }
    let failed = |step, path: &Path| {
        let path = path.to_owned();
        move |source| ExecutionError::Start { step, path, source }
    };
    let dir = state_dir.join("executors");
    DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(&dir)
        .map_err(failed("make the directory", &dir))?;
    // The state directory is locked by this daemon, so a socket that is there is nobody's.
    match fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", socket)(error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(socket).map_err(failed("listen on", socket))?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))
        .map_err(failed("set the mode of", socket))?;
    Ok(listener)
}

fn command(args: &PoolArgs, id: &ExecutorId, socket: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut command = Vec::new();
    if let Some(file) = &args.config_file {
        command.extend(["--config".to_owned(), text(file)]);
    }
    command.push("executor".to_owned());
    for (option, value) in [
        ("--id", id.to_string()),
        ("--state", text(&args.state_dir)),
        ("--logs", text(&args.log_dir)),
        ("--socket", text(socket)),
        ("--heartbeat-ms", args.settings.heartbeat.as_millis().to_string()),
    ] {
        command.extend([option.to_owned(), value]);
    }
    command
}

/// Receives connections and brings each to the keeper of its executor.
async fn receive(
    listener: UnixListener,
    doors: BTreeMap<ExecutorId, mpsc::Sender<Connection>>,
    tracker: TaskTracker,
    stop: CancellationToken,
) {
    let doors = Arc::new(doors);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, as a rule: the connection waits until some are free.
                tracing::warn!(%error, "cannot accept an executor's connection");
                tokio::time::sleep(LOOK_LAST).await;
                continue;
            }
        };
        let (doors, stop) = (Arc::clone(&doors), stop.clone());
        let greeting = async move {
            let connection = match link::greet(stream).await {
                Ok(connection) => connection,
                Err(why) => return tracing::warn!(why, "an executor's connection is refused"),
            };
            let id = &connection.hello.executor;
            match doors.get(id) {
                // A keeper that is gone has stopped.
                Some(door) => drop(door.send(connection).await),
                None => tracing::warn!(executor = %id, "an executor that is not configured"),
            }
        };
        tracker.spawn(async move {
            tokio::select! {
                () = greeting => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// Keeps one executor.
struct Keeper {
    id: ExecutorId,
    link: Arc<Link>,
    connections: mpsc::Receiver<Connection>,
    command: Vec<String>,
    program: PathBuf,
    lock: PathBuf,
    log: PathBuf,
    paths: Paths,
    events: mpsc::Sender<Event>,
    heartbeat: Duration,
    stop: CancellationToken,
    /// The process, if this daemon started it.
    child: Option<Child>,
    /// What last connected.
    incarnation: Option<u64>,
}

/// What became of a process.
enum Gone {
    Stopped,
    Lost(String),
}

impl Keeper {
    /// Keeps the executor until the daemon stops.
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
            Ok(Err(fs::TryLockError::WouldBlock)) => true,
            Ok(Ok(()) | Err(fs::TryLockError::Error(_))) | Err(_) => false,
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
    async fn converse(&mut self, connection: Connection) -> Ended {
        let peer = connection.peer;
        self.incarnation = Some(connection.hello.incarnation);
        let orders = self.link.open();
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

#[cfg(test)]
mod tests;
