//! Looks for the outputs of runs that somebody waits for (docs/waves.md, rule 8).
//!
//! While nothing is waited for there is no look and no wake-up. What is waited for is looked at
//! again and again, soon at first and then about once a second: events of the kernel tell nothing of
//! what comes by a remote file system, and a look is a `stat` or two. Files are never opened.
//!
//! Outputs in the same folders are looked at together, on a blocking thread. A look that takes longer
//! than [`HANGS_AFTER`] is taken to hang in its file system: it holds up what lies in these folders
//! and nothing else, and is told of.
//!
//! This file is the thin shell: [`rounds`] says when, [`look`] touches the file system, and what
//! the sights mean is the model's and the core's to say.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

pub(super) use self::rounds::Wanted;
use self::rounds::{Folders, Rounds};
use super::clock::Clock;
use crate::limits;
use crate::model::event::Event;
use crate::model::history::History;
use crate::model::id::InstanceId;
use crate::model::instance::Instance;
use crate::model::output::{Outputs, OutputsLook, Sight};

mod look;
mod rounds;

/// A look that takes longer hangs in its file system.
const HANGS_AFTER: Duration = Duration::from_secs(2);

/// Folders named in the daemon's status.
const NOTES_MAX: usize = 10;

/// Says what stands at a path.
type LookAt = fn(&Path) -> Sight;

/// What a look gives: where it was, and what was seen.
type Looked = (Folders, Vec<OutputsLook>);

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
    rounds: Rounds,
    /// What the core was told last that an instance's outputs lack.
    told: BTreeMap<InstanceId, Vec<String>>,
    looking: JoinSet<Looked>,
    hangs_after: Duration,
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
            rounds: Rounds::default(),
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
            let pause = self.rounds.next_wake(self.hangs_after);
            let pause = pause.saturating_sub(self.clock.elapsed());
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
        let wanted = self.wanted.borrow_and_update().clone();
        self.told.retain(|id, _| wanted.contains_key(id));
        self.rounds.follow(wanted, self.clock.elapsed());
    }

    /// Begins the looks that are due.
    fn begin(&mut self) {
        let now = self.clock.elapsed();
        while let Some((folders, wanted)) = self.rounds.begin(now) {
            let (history, look_at) = (Arc::clone(&self.history), self.look_at);
            self.looking.spawn_blocking(move || {
                let looks = wanted.iter().map(|(id, outputs)| one(id, outputs, look_at, &*history));
                let looks = looks.collect();
                (folders, looks)
            });
        }
    }

    /// A look is over.
    async fn end(&mut self, looked: Result<Looked, JoinError>) -> Result<(), SendError<Event>> {
        match looked {
            Ok((folders, looks)) => {
                self.rounds.end(&folders, self.clock.elapsed());
                self.tell_status();
                self.tell(looks).await
            }
            Err(error) => {
                error!(%error, "a look for outputs broke down; who waits for them waits on");
                Ok(())
            }
        }
    }

    /// Tells of looks that have begun to hang.
    async fn tell_hanging(&mut self) -> Result<(), SendError<Event>> {
        let held = self.rounds.hanging(self.clock.elapsed(), self.hangs_after);
        let silent = |(instance_id, outputs): (InstanceId, Arc<Outputs>)| {
            let silent = Sight::Unknown("the file system does not answer".to_owned());
            let sights = vec![silent; outputs.paths.len()];
            OutputsLook { instance_id, sights, stored: None }
        };
        let looks = held.into_iter().map(silent).collect();
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
        let notes: Vec<String> = self.rounds.stuck().take(NOTES_MAX).map(note).collect();
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
