//! File arrivals as a source of events (requirement E3): every file that matches a `file:`
//! trigger's pattern is reported once, when it has stopped changing.
//!
//! A file has stopped changing when it was closed after writing or renamed into place, or has
//! kept its size, time and inode for the trigger's settle time. A writer that closes and opens
//! again to append makes an arrival each time it closes: write under a temporary name and rename.
//! Names that start with a dot or end in `.part`, `.tmp` or `~` never match a wildcard; only
//! regular files and links to them count; nothing is ever opened. Files that are there at the
//! start, or when a pattern is new, are all reported: what was taken before is the core's to know.
//!
//! Where others change files without an event here ([`file_system`]), and where a trigger says so,
//! everything is looked at now and then.
//!
//! This file is the thin shell; [`tracker`] decides, [`look`] touches the file system.

use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, warn};

use self::file_system::file_system;
use self::look::Looker;
use self::tracker::Found;
pub(super) use self::walk::{identity, is_absence};
use super::clock::Clock;
use super::watch::HintReader;
use crate::limits;
use crate::model::command::FileWatch;
use crate::model::event::Event;

mod file_system;
mod look;
mod pattern;
mod tracker;
mod walk;

/// Pause between two looks for hints, so that one fast writer costs a bounded share of the time.
const HINT_PAUSE: Duration = Duration::from_millis(10);

/// What the status says while a look takes longer than [`limits::LOOK_WITHIN`].
const LATE: &str = "looking for files takes long: a mount may hang; file triggers wait for it";

/// Starts to follow the patterns that `watches` holds, now and whenever it changes. Returns what
/// stands in the way of seeing files at once ("waiting for folder …"), for the daemon's status.
/// `taken`: the patterns and paths of earlier arrivals; which of them are gone is told first, and
/// then [`Event::FilesRead`]. That comes without them where a look takes too long: a file system that
/// hangs holds up what it has to tell, and nothing else.
/// Ends with `stop`, or when nobody takes events or sets patterns any more.
pub fn start(
    watches: watch::Receiver<Vec<FileWatch>>,
    taken: Vec<(String, String)>,
    clock: Clock,
    events: mpsc::Sender<Event>,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> watch::Receiver<Vec<String>> {
    let (status_sender, status) = watch::channel(Vec::new());
    let (looker, hints) = Looker::new(clock.clone(), file_system, taken);
    let follower = Follower {
        looker: Some(looker),
        hints,
        clock,
        watches,
        events,
        status: status_sender,
        within: limits::LOOK_WITHIN,
        has_read: false,
    };
    tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = follower.run() => {}
        }
    });
    status
}

/// The waiting half. Dropping it at any await loses hints and sightings only.
struct Follower {
    looker: Option<Looker>,
    hints: HintReader,
    clock: Clock,
    watches: watch::Receiver<Vec<FileWatch>>,
    events: mpsc::Sender<Event>,
    status: watch::Sender<Vec<String>>,
    /// A look that takes longer is told of.
    within: Duration,
    /// All patterns have been looked at once, or that took too long: nobody waits for it.
    has_read: bool,
}

impl Follower {
    async fn run(mut self) {
        let mut next_look = Duration::MAX;
        let mut hints_from = Duration::ZERO;
        loop {
            let now = self.clock.elapsed();
            let hinted = async {
                tokio::time::sleep(hints_from.saturating_sub(now)).await;
                self.hints.changed().await;
            };
            let is_new = tokio::select! {
                changed = self.watches.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => return,
                },
                () = hinted => false,
                () = tokio::time::sleep(next_look.saturating_sub(now)) => false,
            };
            let watches = is_new.then(|| self.watches.borrow_and_update().clone());
            let Some((looker, found)) = self.look(watches).await else {
                // Whoever waits for the first look waits no longer.
                self.tell(Event::FilesRead).await.ok();
                return;
            };
            next_look = looker.next_look();
            self.tell_status(looker.notes());
            let is_first = looker.is_following() && !self.has_read;
            self.looker = Some(looker);
            if self.send(found, is_first).await.is_err() {
                return;
            }
            hints_from = self.clock.elapsed() + HINT_PAUSE;
        }
    }

    async fn look(&mut self, watches: Option<Vec<FileWatch>>) -> Option<(Looker, Found)> {
        let mut looker = self.looker.take()?;
        let is_first = (watches.is_some() || looker.is_following()) && !self.has_read;
        let mut looking = tokio::task::spawn_blocking(move || {
            if let Some(watches) = watches {
                looker.follow(watches);
            }
            let found = looker.look();
            (looker, found)
        });
        let looked = match tokio::time::timeout(self.within, &mut looking).await {
            Ok(looked) => looked,
            Err(_late) => {
                self.tell_late(is_first).await;
                // No thread can be called back from a file system that hangs.
                looking.await
            }
        };
        match looked {
            Ok(done) => Some(done),
            Err(error) => {
                error!(%error, "looking for files broke down; file triggers do not fire any more");
                self.status.send_replace(vec!["file triggers do not fire any more".to_owned()]);
                None
            }
        }
    }

    async fn tell_late(&mut self, is_first: bool) {
        let mut notes = self.status.borrow().clone();
        notes.insert(0, LATE.to_owned());
        self.tell_status(notes);
        if is_first {
            // That nobody takes events any more shows in the next one.
            self.tell(Event::FilesRead).await.ok();
            self.has_read = true;
        }
    }

    async fn send(&mut self, found: Found, is_first: bool) -> Result<(), SendError<()>> {
        let gone: Vec<String> = found.gone.iter().map(ToString::to_string).collect();
        for some in gone.chunks(limits::ARRIVALS_MAX) {
            self.tell(Event::FilesGone(some.to_vec())).await?;
        }
        if is_first {
            self.tell(Event::FilesRead).await?;
            self.has_read = true;
        }
        for some in found.arrived.chunks(limits::ARRIVALS_MAX) {
            self.tell(Event::FilesArrived(some.to_vec())).await?;
        }
        Ok(())
    }

    /// Tells the core once it has few events to handle (known fault B162).
    async fn tell(&self, event: Event) -> Result<(), SendError<()>> {
        let room = self.events.max_capacity().saturating_sub(limits::ARRIVAL_EVENTS_MAX) + 1;
        let mut room = self.events.reserve_many(room).await?;
        if let Some(place) = room.next() {
            place.send(event);
        }
        Ok(())
    }

    fn tell_status(&self, notes: Vec<String>) {
        self.status.send_if_modified(|told| {
            if *told == notes {
                return false;
            }
            for note in notes.iter().filter(|note| !told.contains(note)) {
                warn!(note, "file triggers are held up");
            }
            *told = notes;
            true
        });
    }
}

#[cfg(test)]
mod tests;
