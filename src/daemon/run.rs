//! Start order and stop order of the daemon.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock::{self, Clock};
use super::desk::{Desk, Waiting};
use super::event_loop::EventLoop;
use super::print::Audience;
use super::signals::{self, SignalError, SignalEvent};
use super::spec_watch::{self, SpecSource, SpecWatch};
use super::{arrivals, outputs, systemd};
use crate::access::server::{Door, DoorArgs, DoorError};
use crate::access::spec_dir::{Cue, Halted, SpecDir};
use crate::config::Config;
use crate::execution::{ExecutionError, ExecutorPool, PoolArgs};
use crate::limits;
use crate::model::command::FileWatch;
use crate::model::event::{Definitions, Event};
use crate::model::history::History;
use crate::model::request::{FileChange, StopMode};
use crate::resource::{self, Opened, StoreError};
use crate::scheduling::{Engine, Process};

/// What ends the daemon otherwise than by a stop.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The store cannot be opened or written.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The socket cannot be made.
    #[error("the door cannot be opened")]
    Door(#[from] DoorError),
    /// Executors cannot be started.
    #[error("the executors cannot be started")]
    Execution(#[from] ExecutionError),
    /// Signals cannot be heard.
    #[error("signals cannot be heard")]
    Signals(#[from] SignalError),
    /// The system refuses what every program gets.
    #[error("the system refused {what}")]
    System {
        /// What.
        what: &'static str,
        /// Its word.
        #[source]
        source: std::io::Error,
    },
}

impl DaemonError {
    /// The exit status (contract §5): 74 write error, 75 state in use, 78 damaged state or a
    /// configuration that cannot work here.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Store(StoreError::InUse { .. }) => 75,
            // A full disk is no damage: what is durable is taken up by the next start.
            Self::Store(
                StoreError::Io { .. }
                | StoreError::Write { .. }
                | StoreError::Database { damaged: false, .. }
                | StoreError::Ended,
            ) => 74,
            Self::Store(StoreError::OutOfOrder { .. } | StoreError::Unwritable { .. }) => 70,
            Self::Store(_) | Self::Door(_) => 78,
            Self::Execution(_) | Self::Signals(_) | Self::System { .. } => 70,
        }
    }
}

impl SpecSource for SpecDir {
    fn scan(&mut self, cue: &Cue) -> Definitions {
        let found = Self::scan(self, cue);
        for path in self.take_ignored() {
            ::tracing::info!(
                "{path} is not read: the name of a spec file ends in .yaml or .yml and does not \
                 begin with a dot"
            );
        }
        found
    }

    fn look_again_at(&self) -> Option<Duration> {
        Self::look_again_at(self)
    }

    fn doubt(&mut self, path: &str, is_open: bool, at: Duration) {
        Self::doubt(self, path, is_open, at);
    }

    fn change(&mut self, changes: &[FileChange], uid: u32) -> Result<(), Halted> {
        Self::change(self, changes, uid)
    }
}

/// Runs the daemon until it is stopped. `program` is what executors are started from, `audience`
/// who reads its log.
///
/// # Errors
/// [`DaemonError`]; everything acknowledged is durable all the same.
pub fn run(config: Config, program: PathBuf, audience: Audience) -> Result<(), DaemonError> {
    let system = |what| move |source| DaemonError::System { what, source };
    // Before anything that takes time: an early TERM is a stop, not a death.
    let (signal_thread, signals) = signals::listen()?;
    for warning in &config.warnings {
        ::tracing::warn!("{warning}");
    }
    // A long journal takes its time to be read.
    systemd::extend_timeout(limits::START_WITHIN);
    let opened = resource::open(&config.state_dir, config.durability)?;
    let door = Door::bind(&config.socket)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(system("threads"))?;
    let start = Start { config, program, audience, opened, door, signals };
    let result = runtime.block_on(serve(start));
    runtime.shutdown_timeout(Duration::from_millis(200));
    signal_thread.close();
    result
}

/// What the runtime is entered with.
struct Start {
    config: Config,
    program: PathBuf,
    audience: Audience,
    opened: Opened,
    door: Door,
    signals: mpsc::Receiver<SignalEvent>,
}

async fn serve(start: Start) -> Result<(), DaemonError> {
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let waiting = Waiting::default();
    let event_loop = wire(start, &tracker, &stop, &waiting)?;
    let ended = event_loop.run().await;
    // Stop order: nobody waits for an answer, no more events, executors are let go, the last
    // commit is closed.
    systemd::stopping();
    waiting.dismiss();
    stop.cancel();
    tracker.close();
    let (mode, committer, pool) = ended?;
    pool.stop().await;
    if tokio::time::timeout(limits::STOP_WITHIN / 2, tracker.wait()).await.is_err() {
        ::tracing::warn!("some connections did not end in time and were cut");
    }
    committer.close().await?;
    ::tracing::info!(
        "schedd stopped; {}",
        match mode {
            StopMode::Handover => "running tasks go on",
            StopMode::Drain => "running tasks have ended",
            StopMode::Cancel => "running tasks were cancelled",
        }
    );
    Ok(())
}

/// Starts all that sends events or waits for answers, and joins it to the loop.
fn wire(
    start: Start,
    tracker: &TaskTracker,
    stop: &CancellationToken,
    waiting: &Waiting,
) -> Result<EventLoop, DaemonError> {
    let Start { config, program, audience, opened, door, signals } = start;
    let system = |what| move |source| DaemonError::System { what, source };
    let clock = Clock::new();
    let process = Process {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        boot_id: clock::boot_id().map_err(system("the boot id"))?,
        started_at: clock.now(),
    };
    let settings = Arc::clone(&config.settings);
    let engine = Engine::load(Arc::clone(&settings), process, opened.rows, opened.tip);
    let (events, receiver) = mpsc::channel(limits::EVENT_QUEUE);
    let (feed, _) = broadcast::channel(limits::FEED_QUEUE);
    let pool = ExecutorPool::start(PoolArgs {
        settings: Arc::clone(&settings),
        retiring: engine.executors_at_work(),
        config_file: config.file.clone(),
        state_dir: config.state_dir.clone(),
        log_dir: config.log_dir.clone(),
        events: events.clone(),
        tracker: tracker.clone(),
        stop: stop.clone(),
        program,
    })?;
    let specs = spec_watch::start(
        config.spec_dir.clone(),
        Box::new(SpecDir::new(config.spec_dir.clone(), config.spec_context())),
        clock.clone(),
        events.clone(),
        tracker,
        stop.clone(),
    );
    let (taken, history) = (engine.files_taken(), Arc::clone(&opened.history));
    let eyes = watch_files(taken, history, &clock, &events, tracker, stop);
    let on_stop = settings.on_stop;
    let heed = heed(signals, events.clone(), specs.clone(), on_stop, tracker.clone(), stop.clone());
    tracker.spawn(heed);
    let door_clock = clock.clone();
    tracker.spawn(open(
        door,
        DoorArgs {
            ask: Arc::new(Desk::new(events, waiting.clone(), specs, eyes.hindrances)),
            history: opened.history,
            feed: feed.clone(),
            log_dir: config.log_dir.clone(),
            spec_dir: config.spec_dir.clone(),
            spec_context: config.spec_context(),
            now: Arc::new(move || door_clock.now()),
            tracker: tracker.clone(),
            stop: stop.clone(),
        },
    ));
    say_started(&config);
    Ok(EventLoop {
        engine,
        alarm: clock.alarm().map_err(system("a timer"))?,
        steps: clock.steps(),
        clock,
        events: receiver,
        committer: opened.committer,
        pool,
        waiting: waiting.clone(),
        feed,
        files: eyes.files,
        outputs: eyes.outputs,
        watchdog: systemd::watchdog_period(),
        audience,
    })
}

/// What is to be looked at of the world's files, and what stands in the way of it.
struct Eyes {
    files: watch::Sender<Vec<FileWatch>>,
    outputs: watch::Sender<outputs::Wanted>,
    hindrances: Vec<watch::Receiver<Vec<String>>>,
}

/// Starts to look for files that arrive and for outputs that are waited for.
fn watch_files(
    taken: Vec<(String, String)>,
    history: Arc<dyn History>,
    clock: &Clock,
    events: &mpsc::Sender<Event>,
    tracker: &TaskTracker,
    stop: &CancellationToken,
) -> Eyes {
    let (files, watches) = watch::channel(Vec::new());
    let arriving =
        arrivals::start(watches, taken, clock.clone(), events.clone(), tracker, stop.clone());
    let (wanted_sender, wanted) = watch::channel(outputs::Wanted::new());
    let searching =
        outputs::start(wanted, history, clock.clone(), events.clone(), tracker, stop.clone());
    Eyes { files, outputs: wanted_sender, hindrances: vec![arriving, searching] }
}

fn say_started(config: &Config) {
    ::tracing::info!(
        specs = %config.spec_dir.display(),
        state = %config.state_dir.display(),
        socket = %config.socket.path.display(),
        timezone = config.settings.timezone,
        "schedd {} started",
        env!("CARGO_PKG_VERSION")
    );
}

/// Serves the door. A daemon whose door failed goes on with its tasks, and says so.
async fn open(door: Door, args: DoorArgs) {
    if let Err(error) = door.serve(args).await {
        ::tracing::error!(%error, "nobody can reach the daemon any more; restart it");
    }
}

/// Turns signals into events and reloads.
async fn heed(
    mut signals: mpsc::Receiver<SignalEvent>,
    events: mpsc::Sender<Event>,
    specs: SpecWatch,
    on_stop: StopMode,
    tracker: TaskTracker,
    stop: CancellationToken,
) {
    while let Some(Some(signal)) = stop.run_until_cancelled(signals.recv()).await {
        let event = match signal {
            SignalEvent::Stop => Event::Stop(on_stop),
            SignalEvent::StopNow => Event::Stop(StopMode::Handover),
            SignalEvent::Reload => {
                systemd::reloading();
                // Zones may have new rules; they are read again when next asked for.
                jiff::tz::db().reset();
                if events.send(Event::ZonesReread).await.is_err() {
                    return;
                }
                // A directory that hangs must not keep a later TERM from being heard.
                let specs = specs.clone();
                tracker.spawn(async move {
                    if specs.reload().await.is_ok() {
                        systemd::ready();
                    }
                });
                continue;
            }
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_cannot_be_written_is_a_write_error_and_a_damaged_one_is_not() {
        let failed = |damaged| {
            let (operation, dir) = ("write to", PathBuf::from("/state/db"));
            let problem = "No space left on device".to_owned();
            DaemonError::Store(StoreError::Database { operation, dir, problem, damaged })
        };
        assert_eq!(failed(false).exit_status(), 74);
        assert_eq!(failed(true).exit_status(), 78);
    }
}
