//! The spec directory as a source of events: whenever something in it may have changed, it is
//! read and what was found is sent as [`Event::Definitions`].
//!
//! Level-triggered: hints only say when to look, the reading says what is there (design F6,
//! known faults B033 to B046). It knows nothing of the content of a file; that is the
//! [`SpecSource`]'s.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, warn};

use super::clock::Clock;
use super::watch::{DirWatch, HintReader, Hints, on_the_way};
use crate::limits;
use crate::model::event::{Definitions, Event};

/// Quiet times that a file which never becomes quiet can hold up the others.
const SETTLES_MAX: u32 = 10;

/// Period of looking when the kernel's events do not work.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Reloads that wait for an answer.
const RELOADS_MAX: usize = 64;

/// Times that the watches are set again because the way to the directory changed meanwhile. One
/// that goes on changing tells so by events.
const WAY_CHANGES_MAX: usize = 8;

/// Reads the spec directory.
pub trait SpecSource: Send + 'static {
    /// Reads all that may have changed since the last call. Blocking.
    fn scan(&mut self) -> Definitions;

    /// Whether the last reading saw something that may still be changing, so that another reading
    /// is due soon although no event may come.
    fn needs_rescan(&self) -> bool;
}

/// Where to ask for a reading.
#[derive(Debug, Clone)]
pub struct SpecWatch {
    reloads: mpsc::Sender<oneshot::Sender<()>>,
    status: watch::Receiver<Option<String>>,
}

/// The watch has ended, as it does at a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the spec directory is not watched any more")]
pub struct Stopped;

impl SpecWatch {
    /// Reads the directory now; resolves once what was found has been sent to the loop (or
    /// nothing had changed). A `SIGHUP`, `schedctl reload` and an `apply` come here.
    ///
    /// Cancel safe: the reading then takes place all the same.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn reload(&self) -> Result<(), Stopped> {
        let (done, answer) = oneshot::channel();
        self.reloads.send(done).await.map_err(|_closed| Stopped)?;
        answer.await.map_err(|_dropped| Stopped)
    }

    /// Why changes are seen late, if they are: for the daemon's status.
    #[must_use]
    pub fn status(&self) -> Option<String> {
        self.status.borrow().clone()
    }
}

/// Starts to watch `dir`: the first event is a full reading, sent even if nothing is there.
/// The directory need not exist. Ends with `stop`, or when nobody takes events.
pub fn start(
    dir: PathBuf,
    source: Box<dyn SpecSource>,
    clock: Clock,
    events: mpsc::Sender<Event>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> SpecWatch {
    let (reloads, requests) = mpsc::channel(RELOADS_MAX);
    let (status_sender, status) = watch::channel(None);
    let (dirs, hints) = DirWatch::new();
    let now = clock.elapsed();
    let watcher = Watcher {
        reader: Some(Reader { dir: dir.clone(), dirs, source }),
        dir,
        hints,
        clock,
        events,
        status: status_sender,
        plan: Plan { due: now, pending_since: None, rescan: now, not_before: Duration::ZERO },
        unreadable: None,
        is_first: true,
    };
    tasks.spawn(watcher.run(requests, stop));
    SpecWatch { reloads, status }
}

/// The blocking half.
struct Reader {
    dir: PathBuf,
    dirs: DirWatch,
    source: Box<dyn SpecSource>,
}

/// What one reading gave.
struct Reading {
    found: Definitions,
    again: bool,
    status: Option<String>,
}

/// The waiting half.
struct Watcher {
    reader: Option<Reader>,
    dir: PathBuf,
    hints: HintReader,
    clock: Clock,
    events: mpsc::Sender<Event>,
    status: watch::Sender<Option<String>>,
    plan: Plan,
    unreadable: Option<String>,
    is_first: bool,
}

/// When to read next. All times are those of [`Clock::elapsed`].
#[derive(Debug)]
struct Plan {
    /// Hints have settled; [`Duration::MAX`]: there are none.
    due: Duration,
    /// The first of the hints that have not settled.
    pending_since: Option<Duration>,
    /// The full rescan.
    rescan: Duration,
    /// Readings take half of the time at most.
    not_before: Duration,
}

impl Reader {
    /// Watch first, then read: what happens in between is then heard.
    fn read(&mut self) -> Reading {
        for _ in 0..WAY_CHANGES_MAX {
            if !self.dirs.set(&on_the_way(&self.dir)) {
                break;
            }
        }
        let found = self.source.scan();
        let status = self.dirs.status().map(|why| format!("{}: {why}", self.dir.display()));
        Reading { found, again: self.source.needs_rescan(), status }
    }
}

impl Plan {
    fn next(&self) -> Duration {
        self.due.min(self.rescan).max(self.not_before)
    }

    /// A change that is complete is read at once, any other after a quiet time.
    fn hinted(&mut self, now: Duration, is_complete: bool) {
        let since = *self.pending_since.get_or_insert(now);
        let quiet = now + limits::SPEC_SETTLE;
        let latest = since + limits::SPEC_SETTLE * SETTLES_MAX;
        self.due = if is_complete { now } else { quiet.min(latest) };
    }

    fn done(&mut self, began: Duration, now: Duration, again: bool, is_polled: bool) {
        self.pending_since = None;
        self.due = if again { now + limits::SPEC_SETTLE } else { Duration::MAX };
        self.rescan = now + if is_polled { POLL_EVERY } else { limits::RESCAN_EVERY };
        self.not_before = now + now.saturating_sub(began);
    }
}

impl Watcher {
    async fn run(
        mut self,
        mut requests: mpsc::Receiver<oneshot::Sender<()>>,
        stop: CancellationToken,
    ) {
        let mut waiting = Vec::new();
        loop {
            let wait = self.plan.next().saturating_sub(self.clock.elapsed());
            let is_due = tokio::select! {
                () = stop.cancelled() => return,
                Some(request) = requests.recv() => {
                    waiting.push(request);
                    true
                }
                () = self.hints.changed() => false,
                () = tokio::time::sleep(wait) => true,
            };
            let hints = self.hints.take();
            if !is_due {
                if let Some(is_complete) = meaning(&self.dir, &hints) {
                    self.plan.hinted(self.clock.elapsed(), is_complete);
                }
                continue;
            }
            while let Ok(request) = requests.try_recv() {
                waiting.push(request);
            }
            tokio::select! {
                () = stop.cancelled() => return,
                goes_on = self.read_and_send() => if !goes_on { return },
            }
            for request in waiting.drain(..) {
                if request.send(()).is_err() {
                    debug!("whoever asked for a reading has gone");
                }
            }
        }
    }

    /// One reading; whether there is any use in another.
    async fn read_and_send(&mut self) -> bool {
        let began = self.clock.elapsed();
        let Some(mut reader) = self.reader.take() else { return false };
        let read = tokio::task::spawn_blocking(move || {
            let reading = reader.read();
            (reader, reading)
        });
        let (reader, reading) = match read.await {
            Ok(done) => done,
            Err(error) => {
                error!(%error, "reading the spec directory broke down; definitions stay as they are");
                let told = "the spec directory is not read any more; restart schedd".to_owned();
                self.status.send_replace(Some(told.clone()));
                // The core waits for the first reading: it goes on with what it remembers.
                let broken = Definitions { unreadable: Some(told), ..Definitions::default() };
                if self.events.send(Event::Definitions(broken)).await.is_err() {
                    debug!("nobody takes events any more");
                }
                return false;
            }
        };
        self.reader = Some(reader);
        let is_polled = reading.status.is_some();
        self.plan.done(began, self.clock.elapsed(), reading.again, is_polled);
        self.tell_status(reading.status);
        if !self.is_news(&reading.found) {
            return true;
        }
        self.is_first = false;
        if let Some(problem) = reading
            .found
            .unreadable
            .as_ref()
            .filter(|_| reading.found.unreadable != self.unreadable)
        {
            warn!("{problem}; what was defined before stays in force");
        }
        self.unreadable.clone_from(&reading.found.unreadable);
        self.events.send(Event::Definitions(reading.found)).await.is_ok()
    }

    /// Nothing changed is no news, but for the first time and when the directory became
    /// unreadable or readable.
    fn is_news(&self, found: &Definitions) -> bool {
        self.is_first
            || !found.changed.is_empty()
            || !found.removed.is_empty()
            || found.unreadable != self.unreadable
    }

    fn tell_status(&self, status: Option<String>) {
        self.status.send_if_modified(|told| {
            if *told == status {
                return false;
            }
            if let Some(why) = &status {
                warn!(why, "changed definitions are seen late");
            }
            *told = status;
            true
        });
    }
}

/// Whether the hints are about `dir` at all, and if so whether some change is complete.
fn meaning(dir: &Path, hints: &Hints) -> Option<bool> {
    if hints.everything || !hints.dirs.is_empty() {
        return Some(true);
    }
    hints
        .paths
        .iter()
        .filter(|(path, _)| path.parent() == Some(dir) || dir.starts_with(path))
        .map(|(_, is_complete)| *is_complete)
        .reduce(|a, b| a || b)
}

#[cfg(test)]
mod tests;
