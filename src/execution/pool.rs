//! The daemon's side: keeps one process per configured executor alive and speaks to it.
//!
//! An executor that runs already when the daemon starts is left alone: it holds its lock and will
//! connect by itself. Nothing here waits for the core's sake: what cannot be delivered is dropped,
//! because the next Hello tells the core what an executor has.
//!
//! It is longer than 400 lines because starting, hearing and losing an executor change one state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::environment::Paths;
use super::keeper::{Keeper, Link};
use super::link::{self, Connection, Order};
use super::takeover::lock_path;
use crate::limits;
use crate::model::command::Dispatch;
use crate::model::event::{AttemptRef, Event, Hello};
use crate::model::id::ExecutorId;
use crate::model::settings::Settings;

/// After a connection that could not be accepted.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a pool is started with.
#[derive(Debug)]
pub struct PoolArgs {
    /// Executors and heartbeat.
    pub settings: Arc<Settings>,
    /// Executors that are configured no more and have RUNNING attempts: each is kept like the
    /// others, so that these attempts end or are lost. One that is configured too counts once.
    pub retiring: Vec<ExecutorId>,
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

/// The configured executors and those that retire, as the daemon commands them (requirement F1).
#[derive(Debug)]
pub struct ExecutorPool {
    links: BTreeMap<ExecutorId, Arc<Link>>,
    socket: PathBuf,
    stop: CancellationToken,
    own: TaskTracker,
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
        let configured = args.settings.executors.iter().map(|executor| &executor.id);
        let ids: BTreeSet<&ExecutorId> = configured.chain(&args.retiring).collect();
        for id in ids {
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
            args.tracker.spawn(own.track_future(keeper.keep_until_stopped()));
        }
        let heartbeat = args.settings.heartbeat;
        let receive = receive(listener, doors, heartbeat, own.clone(), args.stop.clone());
        args.tracker.spawn(own.track_future(receive));
        Ok(Self { links, socket, stop: args.stop, own })
    }

    /// Lets orders go over a connection whose Hello has been heard. Never waits; one that has been
    /// replaced by a newer connection is left alone.
    pub fn attach(&self, executor: &ExecutorId, connection: u64) {
        if let Some(link) = self.links.get(executor) {
            link.attach(connection);
        }
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

    /// Orders that an attempt's processes stop. Never waits.
    pub fn freeze(&self, executor: &ExecutorId, of: AttemptRef) {
        self.order(executor, Order::Freeze(of));
    }

    /// Orders that a frozen attempt goes on. Never waits.
    pub fn thaw(&self, executor: &ExecutorId, of: AttemptRef) {
        self.order(executor, Order::Thaw(of));
    }

    /// Says that an attempt's end, or its loss, is durable. Never waits.
    pub fn acknowledge(&self, executor: &ExecutorId, of: AttemptRef) {
        self.order(executor, Order::Acknowledge(of));
    }

    fn order(&self, executor: &ExecutorId, order: Order) {
        let Some(link) = self.links.get(executor) else {
            tracing::debug!(%executor, "an order for an executor that is not kept");
            return;
        };
        link.order(executor, order);
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

/// Who was turned away because nobody keeps it. It comes again and again as long as it has
/// attempts, and is told of once.
#[derive(Default)]
struct Refused {
    // Never held over an await: it guards one look.
    incarnations: Mutex<BTreeMap<ExecutorId, u64>>,
}

impl Refused {
    fn note(&self, hello: &Hello) {
        if !self.is_new(hello) {
            return;
        }
        let (executor, running) = (&hello.executor, hello.running.len());
        tracing::warn!(
            %executor, incarnation = hello.incarnation, pid = hello.pid, running,
            "an executor that is not configured is refused; it ends by itself when idle"
        );
    }

    fn is_new(&self, hello: &Hello) -> bool {
        let mut known = self.incarnations.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(hello.executor.clone(), hello.incarnation) != Some(hello.incarnation)
    }
}

/// Receives connections and brings each to the keeper of its executor.
async fn receive(
    listener: UnixListener,
    doors: BTreeMap<ExecutorId, mpsc::Sender<Connection>>,
    heartbeat: Duration,
    tracker: TaskTracker,
    stop: CancellationToken,
) {
    let doors = Arc::new(doors);
    let refused = Arc::new(Refused::default());
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
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            }
        };
        let (doors, refused, stop) = (Arc::clone(&doors), Arc::clone(&refused), stop.clone());
        let greeting = async move {
            let mut connection = match link::greet(stream).await {
                Ok(connection) => connection,
                Err(why) => return tracing::warn!(why, "an executor's connection is refused"),
            };
            let Some(door) = doors.get(&connection.hello.executor) else {
                return refused.note(&connection.hello);
            };
            if let Err(why) = connection.welcome(heartbeat).await {
                return tracing::warn!(why, "an executor's connection broke");
            }
            // A keeper that is gone has stopped.
            drop(door.send(connection).await);
        };
        tracker.spawn(async move {
            tokio::select! {
                () = greeting => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

#[cfg(test)]
mod tests;
