//! The spec directory as a source of events: whenever something in it may have changed, it is
//! read and what was found is sent as [`Event::Definitions`].
//!
//! Level-triggered: hints only say where and when to look, the reading says what is there (design
//! F6, known faults B033 to B046). Whoever asks for a change of the directory is served here too,
//! so that one task alone touches it. It knows nothing of the content of a file; that is the
//! [`SpecSource`]'s.

mod news;
mod plan;
mod reader;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, warn};

use self::news::News;
use self::plan::{Plan, parts};
use self::reader::Reader;
use super::clock::Clock;
use super::watch::{DirWatch, HintReader, Hints, Writer};
use crate::access::spec_dir::{Cue, Halted, Heard};
use crate::limits;
use crate::model::event::{Definitions, Event};
use crate::model::request::{FileChange, Rejection};

/// What is told once reading has broken down.
const BROKEN_DOWN: &str = "the spec directory is not read any more; restart schedd";

/// Orders that wait for an answer.
const ORDERS_MAX: usize = 64;

/// Reads the spec directory, and changes it.
pub trait SpecSource: Send + 'static {
    /// Reads all that may have changed since the last call. Blocking.
    fn scan(&mut self, cue: &Cue) -> Definitions;

    /// When to look again at what may still be changing, although no event may come.
    fn look_again_at(&self) -> Option<Duration>;

    /// What the last reading found in this file may have been half of a change.
    fn doubt(&mut self, path: &str, is_open: bool, at: Duration);

    /// Changes files, on somebody's behalf. Blocking.
    ///
    /// # Errors
    /// A refusal, and how many of them have changed all the same.
    fn change(&mut self, changes: &[FileChange], uid: u32) -> Result<(), Halted>;
}

/// What is asked of the watch.
#[derive(Debug)]
enum Order {
    Reload(oneshot::Sender<Option<String>>),
    Change { changes: Vec<FileChange>, uid: u32, done: oneshot::Sender<Result<(), Rejection>> },
}

/// Where to ask for a reading or a change.
#[derive(Debug, Clone)]
pub struct SpecWatch {
    orders: mpsc::Sender<Order>,
    status: watch::Receiver<Option<String>>,
}

/// Why the watch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// As it does at a stop.
    #[error("the daemon is stopping; ask the next one")]
    Stopped,
    /// By a fault.
    #[error("{BROKEN_DOWN}")]
    BrokenDown,
}

impl SpecWatch {
    /// Reads the directory now; resolves once what was found has been sent to the loop (or
    /// nothing had changed). What is being saved just then is waited for, for
    /// [`limits::SPEC_OPEN_SETTLE`] at most. A `SIGHUP` and `schedctl reload` come here. `Some`: why
    /// the directory could not be read.
    ///
    /// Cancel safe: the reading then takes place all the same.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn reload(&self) -> Result<Option<String>, Ended> {
        let (done, answer) = oneshot::channel();
        self.orders.send(Order::Reload(done)).await.map_err(|_closed| self.ended())?;
        answer.await.map_err(|_dropped| self.ended())
    }

    /// Changes files of the directory and reads them, all in one reading; resolves once what was
    /// found has been sent to the loop, or with the refusal. They count as coming from the user
    /// `uid`.
    ///
    /// Cancel safe: once sent, the changes are carried out all the same.
    ///
    /// # Errors
    /// [`Ended`].
    pub async fn change(
        &self,
        changes: Vec<FileChange>,
        uid: u32,
    ) -> Result<Result<(), Rejection>, Ended> {
        let (done, answer) = oneshot::channel();
        let order = Order::Change { changes, uid, done };
        self.orders.send(order).await.map_err(|_closed| self.ended())?;
        answer.await.map_err(|_dropped| self.ended())
    }

    /// That of a breakdown is told before those who wait are let go.
    fn ended(&self) -> Ended {
        let is_broken = self.status.borrow().as_deref() == Some(BROKEN_DOWN);
        if is_broken { Ended::BrokenDown } else { Ended::Stopped }
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
    start_with(DirWatch::new(), Reads { dir, source, clock, events }, tasks, stop)
}

/// What is read, and where what is found goes.
struct Reads {
    dir: PathBuf,
    source: Box<dyn SpecSource>,
    clock: Clock,
    events: mpsc::Sender<Event>,
}

fn start_with(
    (dirs, hints): (DirWatch, HintReader),
    reads: Reads,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> SpecWatch {
    let Reads { dir, source, clock, events } = reads;
    let (orders, requests) = mpsc::channel(ORDERS_MAX);
    let (status_sender, status) = watch::channel(None);
    let now = clock.elapsed();
    let plan = Plan::new(now);
    let watcher = Watcher {
        reader: Some(Reader { dir: dir.clone(), dirs, source }),
        dir,
        hints,
        clock,
        events,
        status: status_sender,
        plan,
        heard: BTreeMap::new(),
        reloads: Vec::new(),
        news: News::default(),
        opens_by: now + limits::SPEC_OPEN_SETTLE,
    };
    tasks.spawn(watcher.run(requests, stop));
    SpecWatch { orders, status }
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
    /// What was heard of names in the directory since the last reading.
    heard: BTreeMap<OsString, Heard>,
    /// Who waits for a reading, and until when.
    reloads: Vec<(oneshot::Sender<Option<String>>, Duration)>,
    news: News,
    /// When the core begins although a file still cannot be read.
    opens_by: Duration,
}

impl Watcher {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>, stop: CancellationToken) {
        loop {
            let wait = self.plan.next().saturating_sub(self.clock.elapsed());
            let order = tokio::select! {
                () = stop.cancelled() => return,
                Some(order) = orders.recv() => Some(order),
                () = self.hints.changed() => None,
                () = tokio::time::sleep(wait) => None,
            };
            let step = async {
                match order {
                    Some(Order::Reload(done)) => {
                        let until = self.clock.elapsed() + limits::SPEC_OPEN_SETTLE;
                        self.reloads.push((done, until));
                        self.note_hints();
                        self.read_and_send(true).await
                    }
                    Some(Order::Change { changes, uid, done }) => {
                        self.change(changes, uid, done).await
                    }
                    None => {
                        self.note_hints();
                        match self.plan.due(self.clock.elapsed()) {
                            Some(is_whole) => self.read_and_send(is_whole).await,
                            None => true,
                        }
                    }
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                goes_on = step => if !goes_on { return },
            }
            self.answer_reloads();
        }
    }

    /// Takes what was heard since the last time.
    fn note_hints(&mut self) {
        let now = self.clock.elapsed();
        let hints: Hints = self.hints.take();
        if hints.everything || !hints.dirs.is_empty() {
            self.plan.whole(now);
        }
        for (path, writer) in hints.paths {
            if path.parent() == Some(self.dir.as_path())
                && let Some(name) = path.file_name()
            {
                self.plan.hinted(now, writer == Writer::Done);
                let heard = self.heard.entry(name.to_owned()).or_insert(Heard::Touched);
                match writer {
                    Writer::Done => *heard = Heard::Saved,
                    Writer::AtIt => *heard = Heard::AtWork,
                    Writer::Unknown => {}
                }
            } else if self.dir.starts_with(&path) {
                self.plan.whole(now);
            }
        }
    }

    /// Those who asked for a reading have it, unless something is being saved just now.
    fn answer_reloads(&mut self) {
        let now = self.clock.elapsed();
        let is_quiet = self.plan.is_quiet();
        let is_over = |until: Duration| is_quiet || until <= now;
        for (done, _) in self.reloads.extract_if(.., |(_, until)| is_over(*until)) {
            if done.send(self.news.unreadable().map(str::to_owned)).is_err() {
                debug!("whoever asked for a reading has gone");
            }
        }
    }

    /// Carries out changes and reads them, those too after which it came to a halt; whether there is
    /// any use in going on.
    async fn change(
        &mut self,
        changes: Vec<FileChange>,
        uid: u32,
        done: oneshot::Sender<Result<(), Rejection>>,
    ) -> bool {
        let names: Vec<OsString> = changes.iter().map(|change| change.name().into()).collect();
        let Some(changed) = self.blocking(move |r| r.source.change(&changes, uid)).await else {
            return self.break_down().await;
        };
        let mut goes_on = true;
        let count = changed.as_ref().map_or_else(|halted| halted.done, |()| names.len());
        if count > 0 {
            self.note_hints();
            self.heard.extend(names.into_iter().take(count).map(|name| (name, Heard::Ours)));
            goes_on = self.read_and_send(false).await;
        }
        // Without a reading it is not known what has become of it.
        if goes_on && done.send(changed.map_err(|halted| halted.why)).is_err() {
            debug!("whoever asked for a change has gone");
        }
        goes_on
    }

    /// Tells everybody that nothing is read any more; there is no use in going on.
    async fn break_down(&mut self) -> bool {
        self.status.send_replace(Some(BROKEN_DOWN.to_owned()));
        // The core waits for the first reading: it goes on with what it remembers.
        let unreadable = Some(BROKEN_DOWN.to_owned());
        let broken = Definitions { unreadable, ..Definitions::default() };
        if self.events.send(Event::Definitions(broken)).await.is_err() {
            debug!("nobody takes events any more");
        }
        false
    }

    /// One reading; whether there is any use in another.
    async fn read_and_send(&mut self, is_whole: bool) -> bool {
        let began = self.clock.elapsed();
        let is_whole = is_whole || self.news.needs_all();
        let heard = std::mem::take(&mut self.heard);
        let cue = Cue { at: began, wall: self.clock.now(), is_whole, heard };
        let Some(reading) = self.blocking(move |reader| reader.read(&cue)).await else {
            return self.break_down().await;
        };
        let is_polled = reading.status.is_some();
        let now = self.clock.elapsed();
        self.plan.done(began, now, is_whole, is_polled, reading.look_again_at);
        self.tell_status(reading.status);
        if !self.news.is_news(&reading.found) {
            return true;
        }
        if let Some(problem) = self.news.told(&reading.found) {
            warn!("{problem}; what was defined before stays in force");
        }
        for warning in reading.found.changed.iter().flat_map(|file| &file.warnings) {
            warn!("{warning}");
        }
        // A file that was put there just before the start belongs to it: its boot is this one, and
        // what it missed is made up for. It is waited for, but not for long.
        let is_held_back = reading.look_again_at.is_some() && reading.found.unreadable.is_none();
        let waits = self.news.is_opening() && is_held_back && now < self.opens_by;
        if !waits {
            self.news.opened();
        }
        for mut part in parts(reading.found) {
            part.more |= waits;
            if self.events.send(Event::Definitions(part)).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Has the blocking half do something; `None`: it broke down.
    async fn blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Reader) -> T + Send + 'static,
    ) -> Option<T> {
        let mut reader = self.reader.take()?;
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&mut reader);
            (reader, result)
        });
        match done.await {
            Ok((reader, result)) => {
                self.reader = Some(reader);
                Some(result)
            }
            Err(error) => {
                error!(%error, "reading the spec directory broke down; definitions stay as they are");
                None
            }
        }
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

#[cfg(test)]
mod tests;
