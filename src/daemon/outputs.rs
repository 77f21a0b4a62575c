//! Looks for the outputs of runs that somebody waits for (docs/waves.md, rule 8).
//!
//! While nothing is waited for there is no look and no wake-up. What is waited for is looked at
//! again and again, soon at first and then every [`PAUSE_MOST`]: events of the kernel tell nothing
//! of what comes by a remote file system, and a look is a `stat` or two. Files are never opened.
//!
//! Outputs in the same folders are looked at together, on a blocking thread. A look that takes longer
//! than [`HANGS_AFTER`] is taken to hang in its file system: it holds up what lies in these folders
//! and nothing else, and is told of.
//!
//! What is seen and what it means is decided elsewhere: [`look`] touches the file system, the core
//! knows the rule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use super::clock::Clock;
use crate::limits;
use crate::model::event::Event;
use crate::model::history::History;
use crate::model::id::InstanceId;
use crate::model::instance::Instance;
use crate::model::output::{Outputs, OutputsLook, Sight};

mod look;

/// Pause after the first look; each one after it is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// The longest pause: with the look itself, what comes is seen within a second.
const PAUSE_MOST: Duration = Duration::from_millis(800);

/// After a look that took this long the pause is so many times as long: however much is waited for,
/// looking stays a small share of the time.
const REST: u32 = 4;

/// A look that takes longer hangs in its file system.
const HANGS_AFTER: Duration = Duration::from_secs(2);

/// Looks that are on at a time, beside those that hang.
const LOOKS_MAX: usize = 4;

/// Looks that may hang; when there are more, none begins until one of them returns.
const HANGING_MAX: usize = 32;

/// Folders named in the daemon's status.
const NOTES_MAX: usize = 10;

/// What is looked for: of which instances, and what.
pub(super) type Wanted = BTreeMap<InstanceId, Arc<Outputs>>;

/// Says what stands at a path.
type LookAt = fn(&Path) -> Sight;

/// The folders that outputs lie in.
type Folders = BTreeSet<PathBuf>;

/// What a look gives: whose outputs it was about, what was seen, and how long it took.
type Looked = (Folders, Vec<OutputsLook>, Duration);

/// Starts to look for what `wanted` holds, now and whenever it changes; `history` has the rows of
/// those whose outputs are found. Returns what cannot be looked at, for the daemon's status. Ends
/// with `stop`, or when nobody takes events or says what is wanted any more.
pub(super) fn start(
    wanted: watch::Receiver<Wanted>,
    history: Arc<dyn History>,
    clock: Clock,
    events: mpsc::Sender<Event>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> watch::Receiver<Vec<String>> {
    let (searcher, status) = Searcher::new(wanted, history, clock, events, look::look_at);
    tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = searcher.run() => {}
        }
    });
    status
}

/// The waiting half. Dropping it at any await loses sightings only.
struct Searcher {
    wanted: watch::Receiver<Wanted>,
    history: Arc<dyn History>,
    clock: Clock,
    events: mpsc::Sender<Event>,
    status: watch::Sender<Vec<String>>,
    look_at: LookAt,
    groups: BTreeMap<Folders, Group>,
    /// What the core was told last that an instance's outputs lack.
    told: BTreeMap<InstanceId, Vec<String>>,
    looking: JoinSet<Looked>,
    hangs_after: Duration,
}

/// Outputs in the same folders.
struct Group {
    wanted: Wanted,
    /// The next look; [`Duration::MAX`] while one is on, unless more has come to be wanted.
    next: Duration,
    pause: Duration,
    /// Since when a look is on.
    since: Option<Duration>,
    hangs: bool,
}

impl Searcher {
    fn new(
        wanted: watch::Receiver<Wanted>,
        history: Arc<dyn History>,
        clock: Clock,
        events: mpsc::Sender<Event>,
        look_at: LookAt,
    ) -> (Self, watch::Receiver<Vec<String>>) {
        let (status, told) = watch::channel(Vec::new());
        let searcher = Self {
            wanted,
            history,
            clock,
            events,
            status,
            look_at,
            groups: BTreeMap::new(),
            told: BTreeMap::new(),
            looking: JoinSet::new(),
            hangs_after: HANGS_AFTER,
        };
        (searcher, told)
    }

    async fn run(mut self) {
        self.follow();
        loop {
            self.begin();
            let pause = self.next_wake().saturating_sub(self.clock.elapsed());
            let told = tokio::select! {
                changed = self.wanted.changed() => match changed {
                    Ok(()) => {
                        self.follow();
                        Ok(())
                    }
                    Err(_) => return,
                },
                Some(looked) = self.looking.join_next() => self.end(looked).await,
                () = tokio::time::sleep(pause) => self.tell_hanging().await,
            };
            if told.is_err() {
                return;
            }
        }
    }

    /// Takes over what is wanted now.
    fn follow(&mut self) {
        let now = self.clock.elapsed();
        let wanted = self.wanted.borrow_and_update().clone();
        self.told.retain(|id, _| wanted.contains_key(id));
        for group in self.groups.values_mut() {
            group.wanted.retain(|id, _| wanted.contains_key(id));
        }
        for (id, outputs) in wanted {
            let group = self.groups.entry(folders(&outputs)).or_insert_with(|| Group {
                wanted: Wanted::new(),
                next: now,
                pause: PAUSE_FIRST,
                since: None,
                hangs: false,
            });
            if group.wanted.insert(id, outputs).is_none() {
                group.next = now;
                group.pause = PAUSE_FIRST;
            }
        }
        self.groups.retain(|_, group| !group.wanted.is_empty() || group.since.is_some());
    }

    /// Begins the looks that are due, the longest due first.
    fn begin(&mut self) {
        let now = self.clock.elapsed();
        let mut room = self.room();
        let mut due: Vec<(Duration, Folders)> = self
            .groups
            .iter()
            .filter(|(_, group)| group.since.is_none() && group.next <= now)
            .map(|(folders, group)| (group.next, folders.clone()))
            .collect();
        due.sort();
        for (_, folders) in due {
            let Some(group) = self.groups.get_mut(&folders).filter(|_| room > 0) else { return };
            room -= 1;
            group.since = Some(now);
            group.next = Duration::MAX;
            let (wanted, look_at) = (group.wanted.clone(), self.look_at);
            let (history, clock) = (Arc::clone(&self.history), self.clock.clone());
            self.looking.spawn_blocking(move || {
                let looks = wanted.iter().map(|(id, outputs)| one(id, outputs, look_at, &*history));
                let looks = looks.collect();
                (folders, looks, clock.elapsed().saturating_sub(now))
            });
        }
    }

    /// How many looks may begin.
    fn room(&self) -> usize {
        let on = self.groups.values().filter(|group| group.since.is_some());
        let (hanging, busy): (Vec<&Group>, Vec<&Group>) = on.partition(|group| group.hangs);
        if hanging.len() >= HANGING_MAX { 0 } else { LOOKS_MAX.saturating_sub(busy.len()) }
    }

    /// When something is to be done that nobody tells of.
    fn next_wake(&self) -> Duration {
        let has_room = self.room() > 0;
        let wakes = self.groups.values().filter_map(|group| match group.since {
            Some(since) => (!group.hangs).then(|| since.saturating_add(self.hangs_after)),
            None => has_room.then_some(group.next),
        });
        wakes.min().unwrap_or(Duration::MAX)
    }

    /// A look is over.
    async fn end(&mut self, looked: Result<Looked, JoinError>) -> Result<(), SendError<Event>> {
        let (folders, looks, took) = match looked {
            Ok(looked) => looked,
            Err(error) => {
                error!(%error, "a look for outputs broke down; who waits for them waits on");
                return Ok(());
            }
        };
        let now = self.clock.elapsed();
        if let Some(group) = self.groups.get_mut(&folders) {
            // What came to be wanted while this look was on is looked at next.
            if group.next == Duration::MAX {
                group.next = now.saturating_add(group.pause.max(took.saturating_mul(REST)));
                group.pause = group.pause.saturating_mul(2).min(PAUSE_MOST);
            }
            group.since = None;
            group.hangs = false;
            if group.wanted.is_empty() {
                self.groups.remove(&folders);
            }
        }
        self.tell_status();
        self.tell(looks).await
    }

    /// Tells of looks that have begun to hang.
    async fn tell_hanging(&mut self) -> Result<(), SendError<Event>> {
        let now = self.clock.elapsed();
        let mut looks = Vec::new();
        for group in self.groups.values_mut().filter(|group| !group.hangs) {
            let Some(since) = group.since else { continue };
            if now < since.saturating_add(self.hangs_after) {
                continue;
            }
            group.hangs = true;
            for (id, outputs) in &group.wanted {
                let silent = Sight::Unknown("the file system does not answer".to_owned());
                let sights = vec![silent; outputs.paths.len()];
                looks.push(OutputsLook { instance_id: id.clone(), sights, stored: None });
            }
        }
        self.tell_status();
        self.tell(looks).await
    }

    /// Tells the core what is news to it.
    async fn tell(&mut self, looks: Vec<OutputsLook>) -> Result<(), SendError<Event>> {
        let mut news = Vec::new();
        {
            let wanted = self.wanted.borrow();
            for look in looks {
                let Some(outputs) = wanted.get(&look.instance_id) else { continue };
                let lacks = outputs.lacks(&look.sights);
                // What is there is told until it is no longer wanted; without its row it is no use.
                let is_news = if lacks.is_empty() {
                    look.stored.is_some()
                } else {
                    self.told.get(&look.instance_id) != Some(&lacks)
                };
                self.told.insert(look.instance_id.clone(), lacks);
                if is_news {
                    news.push(look);
                }
            }
        }
        while !news.is_empty() {
            let later = news.split_off(news.len().min(limits::ARRIVALS_MAX));
            self.events.send(Event::OutputsLooked(news)).await?;
            news = later;
        }
        Ok(())
    }

    fn tell_status(&self) {
        let hanging = self.groups.iter().filter(|(_, group)| group.hangs);
        let notes: Vec<String> =
            hanging.take(NOTES_MAX).map(|(folders, _)| note(folders)).collect();
        self.status.send_if_modified(|told| {
            if *told == notes {
                return false;
            }
            for note in notes.iter().filter(|note| !told.contains(note)) {
                warn!(note, "who waits for outputs is held up");
            }
            *told = notes;
            true
        });
    }
}

fn note(folders: &Folders) -> String {
    let names: Vec<String> = folders.iter().map(|dir| dir.display().to_string()).collect();
    format!(
        "looking for outputs in {} takes long: a mount may hang; who waits for them waits on",
        names.join(", ")
    )
}

fn folders(outputs: &Outputs) -> Folders {
    let parents = outputs.paths.iter().filter_map(|path| Path::new(path).parent());
    parents.map(Path::to_owned).collect()
}

/// Looks at one instance's outputs. Blocking.
fn one(id: &InstanceId, outputs: &Outputs, look_at: LookAt, history: &dyn History) -> OutputsLook {
    let sights: Vec<Sight> = outputs.paths.iter().map(|path| look_at(Path::new(path))).collect();
    let stored = if outputs.lacks(&sights).is_empty() { row(id, history) } else { None };
    OutputsLook { instance_id: id.clone(), sights, stored: stored.map(Box::new) }
}

/// The row in which the core notes what was found.
fn row(id: &InstanceId, history: &dyn History) -> Option<Instance> {
    history.instance(id).unwrap_or_else(|error| {
        warn!(%error, instance = %id, "outputs were found; that will be noted later");
        None
    })
}

#[cfg(test)]
mod tests;
