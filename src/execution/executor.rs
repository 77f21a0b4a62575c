//! The executor's process, `schedd executor`: takes assignments, runs them, reports, remembers
//! results until they are acknowledged. It outlives the daemon (design, 'Executors').
//!
//! One thread: whatever forks, signals or reaps a process happens in one order, so no process is
//! reaped by somebody who does not wait for it and no number is signalled after it was given away.
//! Only what comes before a fork and may hang (files, the user database) is done beside it.
//!
//! It is longer than 400 lines because one thread's state stands with every step that changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio_util::task::TaskTracker;

use super::clock;
use super::freeze::{Wish, orders};
use super::hands::Hands;
use super::journal::Journal;
use super::runner::{self, never_started};
use super::signals::{Heard, Signals};
use super::start::StartError;
use super::takeover::{Places, attempts_dir, end_left, incarnation, lock};
use super::wire::{Assignment, Frames, FromExecutor, PROTOCOL, ToExecutor, encode, frames};
use crate::limits;
use crate::model::event::{AttemptRef, Finished, Hello, Load, Report};
use crate::model::id::ExecutorId;

/// Longest wait between two tries to reach the daemon.
const RECONNECT_EVERY: Duration = Duration::from_millis(200);
const RECONNECT_FIRST: Duration = Duration::from_millis(10);
/// The same after the daemon took the connection and gave no welcome: it does not know this
/// executor. A daemon that knows it again gives it the time of two such waits.
pub(super) const REFUSED_EVERY: Duration = Duration::from_secs(5);
/// Idle and unconnected for this long, the process ends.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Reports that wait for the connection.
const REPORT_QUEUE: usize = 256;

/// What the command line gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorArgs {
    /// The executor's id.
    pub id: ExecutorId,
    /// The daemon's state directory.
    pub state_dir: PathBuf,
    /// Where task logs live.
    pub log_dir: PathBuf,
    /// The daemon's private socket.
    pub socket: PathBuf,
    /// Period of the heartbeat.
    pub heartbeat: Duration,
}

/// Why an executor does not run.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// Another process of this id is alive.
    #[error("executor {id} runs already: {lock} is locked by another process")]
    Running {
        /// The id.
        id: ExecutorId,
        /// The lock file.
        lock: PathBuf,
    },
    /// A step of the start failed.
    #[error("cannot {step}")]
    Start {
        /// Which.
        step: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
}

pub(super) fn failed(step: impl Into<String>) -> impl FnOnce(io::Error) -> ExecutorError {
    move |source| ExecutorError::Start { step: step.into(), source }
}

/// Runs an executor until it is idle and no daemon has been there for a minute. Blocks.
///
/// # Errors
/// [`ExecutorError`]: it could not begin.
pub fn run(args: ExecutorArgs) -> Result<(), ExecutorError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("start the runtime"))?;
    let served = LocalSet::new().block_on(&runtime, async move {
        let places = Places::new(&args.state_dir, &args.id);
        places.make()?;
        // Held until the process ends: it says that an executor of this id is alive.
        let lock = lock(&places.lock, &args.id).await?;
        let mut signals = Signals::install().map_err(failed("listen to signals"))?;
        nix::sys::prctl::set_child_subreaper(true)
            .map_err(|e| failed("become the subreaper")(e.into()))?;
        let executor = Executor::take_over(args, &places).await?;
        let hands = Rc::clone(&executor.hands);
        tokio::select! {
            () = executor.serve() => {}
            never = hands.look_after_orphans() => match never {},
            error = reap(&mut signals, &hands) => return Err(failed("hear signals")(error)),
        }
        drop(lock);
        Ok(())
    });
    // A start that hangs, and that nobody waits for any more, must not hold up the end.
    runtime.shutdown_background();
    served
}

/// Reaps for ever.
async fn reap(signals: &mut Signals, hands: &Hands) -> io::Error {
    loop {
        match signals.next().await {
            Ok(Heard::ChildEnded) => hands.children.reap(),
            Ok(Heard::AskedToEnd) => {
                tracing::info!("asked to end by a signal; an executor ends by itself when idle");
            }
            Err(error) => return error,
        }
    }
}

/// One attempt that is not forgotten yet.
struct Slot {
    wish: Wish,
    finished: Option<Box<Finished>>,
}

struct Executor {
    args: ExecutorArgs,
    incarnation: u64,
    /// Period of the heartbeat: the command line's, until a daemon's Welcome names another.
    heartbeat: Duration,
    /// Whether the daemon at the other end of the last connection has welcomed this executor.
    welcomed: bool,
    hands: Rc<Hands>,
    slots: BTreeMap<AttemptRef, Slot>,
    lost: BTreeSet<AttemptRef>,
    runners: TaskTracker,
    tell: mpsc::Sender<Report>,
    told: mpsc::Receiver<Report>,
}

impl Executor {
    /// Begins where an earlier process of this id stopped: what still runs of its attempts is
    /// ended, and what it knew is kept until it is acknowledged.
    async fn take_over(args: ExecutorArgs, places: &Places) -> Result<Self, ExecutorError> {
        let number = places.own.join("incarnation");
        let incarnation =
            incarnation(&number).map_err(failed(format!("write {}", number.display())))?;
        let dir = attempts_dir(&args.state_dir, &args.id);
        let reading = format!("read the journal {}", dir.display());
        let journal = Journal::open(dir).map_err(failed(reading.clone()))?;
        let left = journal.left().map_err(failed(reading))?;
        let hands = Rc::new(Hands::new(journal));
        end_left(&left, &hands.boot_id).await;
        let (tell, told) = mpsc::channel(REPORT_QUEUE);
        let mut slots = BTreeMap::new();
        let mut lost = BTreeSet::new();
        for one in left {
            match one.finished {
                Some(finished) => {
                    let slot = Slot { wish: orders().0, finished: Some(finished) };
                    slots.insert(one.of, slot);
                }
                None => {
                    lost.insert(one.of);
                }
            }
        }
        tracing::info!(
            executor = %args.id, incarnation, lost = lost.len(), kept = slots.len(), "begins"
        );
        let runners = TaskTracker::new();
        let heartbeat = args.heartbeat;
        Ok(Self {
            args,
            incarnation,
            heartbeat,
            welcomed: false,
            hands,
            slots,
            lost,
            runners,
            tell,
            told,
        })
    }

    /// Serves one daemon after the other; returns when idle and unconnected for long enough.
    async fn serve(mut self) {
        let mut since = clock::monotonic();
        let mut pause = RECONNECT_FIRST;
        loop {
            let mut pause_max = RECONNECT_EVERY;
            if let Ok(stream) = UnixStream::connect(&self.args.socket).await {
                self.welcomed = false;
                if let Err(error) = self.converse(stream).await {
                    let welcomed = self.welcomed;
                    tracing::info!(%error, welcomed, "the connection to the daemon ended");
                }
                if self.welcomed {
                    since = clock::monotonic();
                    pause = RECONNECT_FIRST;
                } else {
                    pause_max = REFUSED_EVERY;
                }
            }
            // Nobody is told meanwhile; the next Hello says it all.
            let waiting = async {
                loop {
                    let report = self.told.recv().await;
                    note(&mut self.slots, report.as_ref());
                }
            };
            drop(tokio::time::timeout(pause, waiting).await);
            pause = (pause * 2).min(pause_max);
            if !self.is_idle() {
                since = clock::monotonic();
            } else if clock::monotonic().saturating_sub(since) >= IDLE_MAX {
                tracing::info!("ends: idle, and no daemon is there");
                return;
            }
        }
    }

    /// Lost attempts hold nobody: they are in the journal for the next process of this id.
    fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.runners.is_empty()
    }

    /// Speaks on one connection until it breaks.
    async fn converse(&mut self, stream: UnixStream) -> Result<(), String> {
        let peer = stream.peer_cred().map_err(|e| e.to_string())?.uid();
        if peer != 0 && peer != nix::unistd::geteuid().as_raw() {
            return Err(format!("the socket belongs to user {peer}"));
        }
        let mut line = frames(stream);
        self.hello(&mut line).await?;
        let mut followed = self.heartbeat;
        let mut heartbeat = ticking(followed);
        enum Next {
            Frame(Option<io::Result<tokio_util::bytes::BytesMut>>),
            Report(Option<Report>),
            Heartbeat,
        }
        loop {
            let next = tokio::select! {
                frame = line.next() => Next::Frame(frame),
                report = self.told.recv() => Next::Report(report),
                _ = heartbeat.tick() => Next::Heartbeat,
            };
            match next {
                Next::Frame(None) => return Err("closed by the daemon".to_owned()),
                Next::Frame(Some(frame)) => {
                    let bytes = frame.map_err(|e| e.to_string())?;
                    if let Some(refusal) = self.obey(&bytes) {
                        send(&mut line, Report::Finished(refusal)).await?;
                    }
                    // The first of many begins before the last of them is read.
                    tokio::task::yield_now().await;
                    if self.heartbeat != followed {
                        followed = self.heartbeat;
                        heartbeat = ticking(followed);
                    }
                }
                Next::Report(report) => {
                    note(&mut self.slots, report.as_ref());
                    if let Some(report) = report {
                        send(&mut line, report).await?;
                    }
                }
                Next::Heartbeat => {
                    let report = Report::Heartbeat(self.load());
                    let frame = FromExecutor::Report { report, heartbeat: Some(followed) };
                    line.send(encode(&frame)?).await.map_err(|e| e.to_string())?;
                }
            }
        }
    }

    /// Says who this is and what it has. Results that would make the frame too large are named as
    /// running, so that nobody takes them for never accepted, and follow one by one.
    async fn hello(&self, line: &mut Frames) -> Result<(), String> {
        let mut budget = limits::FRAME_BYTES_MAX / 2;
        let mut running = Vec::new();
        let mut frozen = Vec::new();
        let mut finished = Vec::new();
        let mut later = Vec::new();
        for (of, slot) in &self.slots {
            let Some(end) = &slot.finished else {
                running.push(of.clone());
                frozen.extend(slot.wish.is_frozen().then(|| of.clone()));
                continue;
            };
            let bytes = serde_json::to_vec(end).map_or(usize::MAX, |b| b.len());
            match budget.checked_sub(bytes) {
                Some(left) => {
                    budget = left;
                    finished.push(Finished::clone(end));
                }
                None => {
                    running.push(of.clone());
                    later.push(end.clone());
                }
            }
        }
        let hello = Hello {
            executor: self.args.id.clone(),
            incarnation: self.incarnation,
            connection: 0,
            pid: std::process::id(),
            boot_id: Arc::clone(&self.hands.boot_id),
            running,
            frozen: Some(frozen),
            lost: self.lost.iter().cloned().collect(),
            finished,
        };
        let frame = FromExecutor::Hello {
            protocol: PROTOCOL,
            heartbeat: Some(self.heartbeat),
            hello: Box::new(hello),
        };
        line.send(encode(&frame)?).await.map_err(|e| e.to_string())?;
        for end in later {
            send(line, Report::Finished(end)).await?;
        }
        Ok(())
    }

    /// Carries out one frame; what is refused has its end at once.
    fn obey(&mut self, bytes: &[u8]) -> Option<Box<Finished>> {
        match serde_json::from_slice(bytes) {
            Ok(ToExecutor::Welcome { protocol, heartbeat }) => {
                tracing::info!(protocol, ?heartbeat, "welcomed by the daemon");
                self.welcomed = true;
                if let Some(period) = heartbeat.filter(|period| !period.is_zero()) {
                    self.heartbeat = period;
                }
                None
            }
            Ok(ToExecutor::Run(assignment)) => self.accept(*assignment),
            Ok(ToExecutor::Kill { of }) => {
                match self.slots.get(&of) {
                    // One that has ended keeps its result.
                    Some(slot) => slot.wish.kill(),
                    None => tracing::debug!(instance = %of.instance_id, "nothing to kill"),
                }
                None
            }
            Ok(ToExecutor::Freeze { of }) => self.freeze(&of, true),
            Ok(ToExecutor::Thaw { of }) => self.freeze(&of, false),
            Ok(ToExecutor::Acknowledge { of }) => {
                let ended = self.slots.get(&of).is_some_and(|s| s.finished.is_some());
                if ended || self.lost.contains(&of) {
                    self.slots.remove(&of);
                    self.lost.remove(&of);
                    self.forget(&of);
                }
                None
            }
            Err(error) => {
                tracing::warn!(%error, "a frame of the daemon is not understood");
                None
            }
        }
    }

    fn accept(&mut self, assignment: Assignment) -> Option<Box<Finished>> {
        let of = assignment.of.clone();
        if self.slots.contains_key(&of) {
            tracing::debug!(instance = %of.instance_id, "an assignment came twice");
            return None;
        }
        let same = |other: &AttemptRef| other.instance_id == of.instance_id;
        if let Some((old, _)) =
            self.slots.iter().find(|(old, slot)| same(old) && slot.finished.is_none())
        {
            let message =
                format!("attempt {} of this instance still runs on {}", old.attempt, self.args.id);
            tracing::warn!(instance = %of.instance_id, "refused: {message}");
            let error = StartError { message, transient: true };
            return Some(Box::new(never_started(&of, error, false)));
        }
        // A new dispatch says that the core knows of the loss of the earlier one.
        let known: Vec<AttemptRef> = self.lost.iter().filter(|l| same(l)).cloned().collect();
        for old in known {
            self.lost.remove(&old);
            self.forget(&old);
        }
        let (wish, orders) = orders();
        self.slots.insert(of, Slot { wish, finished: None });
        let hands = Rc::clone(&self.hands);
        self.runners.spawn_local(runner::run(hands, assignment, orders, self.tell.clone()));
        None
    }

    fn freeze(&self, of: &AttemptRef, frozen: bool) -> Option<Box<Finished>> {
        match self.slots.get(of) {
            Some(slot) => slot.wish.freeze(frozen),
            None => tracing::debug!(instance = %of.instance_id, frozen, "nothing to freeze"),
        }
        None
    }

    fn forget(&self, of: &AttemptRef) {
        if let Err(error) = self.hands.journal.forget(of) {
            tracing::warn!(instance = %of.instance_id, %error, "cannot forget an attempt");
        }
    }

    fn load(&self) -> Load {
        let running = self.slots.values().filter(|s| s.finished.is_none()).count();
        let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Load {
            running: u32::try_from(running).unwrap_or(u32::MAX),
            load1: average.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0),
        }
    }
}

fn note(slots: &mut BTreeMap<AttemptRef, Slot>, report: Option<&Report>) {
    if let Some(Report::Finished(end)) = report
        && let Some(slot) = slots.get_mut(&end.of)
    {
        slot.finished = Some(end.clone());
    }
}

/// Ticks at once and then with the period, late rather than in bursts.
fn ticking(period: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

async fn send(line: &mut Frames, report: Report) -> Result<(), String> {
    let bytes = encode(&FromExecutor::Report { report, heartbeat: None })?;
    line.send(bytes).await.map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
