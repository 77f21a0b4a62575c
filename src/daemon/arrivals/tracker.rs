//! Which files have arrived: pure. Sightings and the time go in, arrivals come out, each once.
//!
//! It touches no file and reads no clock; times are durations since some fixed point.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::model::event::{FileArrival, FileIdentity};
use crate::model::id::TaskId;

/// A file that was closed after writing is looked at once more after this long: programs that
/// copy a file's times set them after they closed it, and that would be a second arrival.
pub(super) const CLOSE_SETTLE: Duration = Duration::from_millis(20);

/// What a look at a path found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// A regular file, or a link to one.
    File(FileIdentity),
    /// Nothing, or something that is not a file.
    Absent,
    /// It could not be found out.
    Unknown,
}

/// What has become certain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Files of earlier arrivals that are gone.
    pub(super) gone: BTreeSet<Arc<str>>,
    /// New arrivals.
    pub(super) arrived: Vec<FileArrival>,
}

/// A path under a pattern.
pub(super) type Key = (Arc<str>, Arc<str>);

/// All that is remembered of files that match.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    patterns: BTreeMap<Arc<str>, Watched>,
    /// When files that are changing deserve another look.
    deadlines: BTreeSet<(Duration, Key)>,
}

/// How a pattern is followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// How long a file must have been unchanged.
    pub(super) settle: Duration,
    /// For whom.
    pub(super) listeners: BTreeSet<TaskId>,
}

#[derive(Debug, Default)]
struct Watched {
    wanted: Wanted,
    /// Somebody new listens, who has not been told of what is there.
    has_news: bool,
    files: BTreeMap<Arc<str>, Standing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Reported by an earlier process, not seen by this one.
    Known,
    /// Seen, not yet long enough. `is_told`: an earlier arrival of the path was reported.
    Changing {
        identity: FileIdentity,
        since: Duration,
        is_closed: bool,
        due: Duration,
        is_told: bool,
    },
    /// Reported.
    Taken { identity: FileIdentity },
}

impl Standing {
    /// Whether whoever hears of arrivals has heard of the path, and must hear that it is gone.
    const fn is_told(self) -> bool {
        match self {
            Self::Known | Self::Taken { .. } => true,
            Self::Changing { is_told, .. } => is_told,
        }
    }
}

impl Tracker {
    /// A tracker that knows what an earlier process has reported: patterns with paths. Whatever of
    /// it is not there when the pattern is first read is gone.
    pub(super) fn knowing(taken: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut tracker = Self::default();
        for (pattern, path) in taken {
            let watched = tracker.patterns.entry(Arc::from(pattern)).or_default();
            watched.files.insert(Arc::from(path), Standing::Known);
        }
        tracker
    }

    /// Follows exactly these patterns; what is known of the others is forgotten.
    pub(super) fn follow(&mut self, patterns: &BTreeMap<Arc<str>, Wanted>) {
        self.patterns.retain(|pattern, _| patterns.contains_key(pattern));
        self.deadlines.retain(|(_, (pattern, _))| patterns.contains_key(pattern));
        for (pattern, wanted) in patterns {
            let watched = self.patterns.entry(Arc::clone(pattern)).or_default();
            watched.has_news |= !wanted.listeners.is_subset(&watched.wanted.listeners);
            watched.wanted = wanted.clone();
        }
    }

    /// How long a file must have been unchanged from now on.
    pub(super) fn set_settle(&mut self, pattern: &str, settle: Duration) {
        if let Some(watched) = self.patterns.get_mut(pattern) {
            watched.wanted.settle = settle;
        }
    }

    /// Reports once more what was reported of patterns to which somebody new listens: whoever has
    /// taken it before knows.
    pub(super) fn tell_news(&mut self, found: &mut Found) {
        for (pattern, watched) in self.patterns.iter_mut().filter(|(_, watched)| watched.has_news) {
            watched.has_news = false;
            for (path, standing) in &watched.files {
                if let Standing::Taken { identity } = *standing {
                    found.arrived.push(arrival(pattern, path, identity));
                }
            }
        }
    }

    /// Takes one sighting. `is_closed`: the last thing heard of it is that it was closed after
    /// writing or renamed into place.
    pub(super) fn see(
        &mut self,
        now: Duration,
        (pattern, path): &Key,
        sight: Sight,
        is_closed: bool,
        found: &mut Found,
    ) {
        let Some(watched) = self.patterns.get_mut(pattern) else { return };
        let before = watched.files.get(path).copied();
        if let Some(Standing::Changing { due, .. }) = before {
            self.deadlines.remove(&(due, (Arc::clone(pattern), Arc::clone(path))));
        }
        let after = match sight {
            Sight::File(identity) => {
                Some(step(before, identity, is_closed, watched.wanted.settle, now))
            }
            Sight::Absent => None,
            Sight::Unknown => before.map(|standing| put_off(standing, watched.wanted.settle, now)),
        };
        match after {
            None => {
                watched.files.remove(path);
                if before.is_some_and(Standing::is_told) {
                    found.gone.insert(Arc::clone(path));
                }
            }
            Some(standing) => {
                watched.files.insert(Arc::clone(path), standing);
                match standing {
                    Standing::Changing { due, .. } => {
                        self.deadlines.insert((due, (Arc::clone(pattern), Arc::clone(path))));
                    }
                    Standing::Taken { identity } if before != after => {
                        found.arrived.push(arrival(pattern, path, identity));
                    }
                    Standing::Taken { .. } | Standing::Known => {}
                }
            }
        }
    }

    /// Takes a reading of a whole pattern, each path with the time of its sighting. If it is
    /// complete, paths known under the pattern that are not in it are gone.
    pub(super) fn see_all(
        &mut self,
        now: Duration,
        pattern: &Arc<str>,
        seen: BTreeMap<Arc<str>, (Sight, Duration)>,
        is_complete: bool,
        found: &mut Found,
    ) {
        let Some(watched) = self.patterns.get(pattern) else { return };
        if is_complete {
            let known = watched.files.keys();
            let missing: Vec<_> = known.filter(|path| !seen.contains_key(*path)).cloned().collect();
            for path in missing {
                self.see(now, &(Arc::clone(pattern), path), Sight::Absent, false, found);
            }
        }
        for (path, (sight, at)) in seen {
            self.see(at, &(Arc::clone(pattern), path), sight, false, found);
        }
    }

    /// What deserves another look by now.
    pub(super) fn due(&self, now: Duration) -> Vec<Key> {
        let due = self.deadlines.iter().take_while(|(due, _)| *due <= now);
        due.map(|(_, key)| key.clone()).collect()
    }

    /// When something deserves another look; `None`: by itself never.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(due, _)| *due)
    }
}

fn arrival(pattern: &str, path: &str, identity: FileIdentity) -> FileArrival {
    FileArrival { pattern: pattern.to_owned(), path: path.to_owned(), identity }
}

/// A file seen with this identity.
fn step(
    before: Option<Standing>,
    identity: FileIdentity,
    is_closed: bool,
    settle: Duration,
    now: Duration,
) -> Standing {
    match before {
        Some(Standing::Taken { identity: taken }) if taken == identity => {
            Standing::Taken { identity }
        }
        Some(Standing::Changing {
            identity: last, since, is_closed: was_closed, is_told, ..
        }) if last == identity => {
            let is_closed = is_closed || was_closed;
            let due = since.saturating_add(quiet(is_closed, settle));
            if due <= now {
                Standing::Taken { identity }
            } else {
                Standing::Changing { identity, since, is_closed, due, is_told }
            }
        }
        None | Some(Standing::Known | Standing::Taken { .. } | Standing::Changing { .. }) => {
            let due = now.saturating_add(quiet(is_closed, settle));
            let is_told = before.is_some_and(Standing::is_told);
            Standing::Changing { identity, since: now, is_closed, due, is_told }
        }
    }
}

/// A look that told nothing starts the quiet time again.
fn put_off(standing: Standing, settle: Duration, now: Duration) -> Standing {
    match standing {
        Standing::Known | Standing::Taken { .. } => standing,
        Standing::Changing { identity, is_closed, is_told, .. } => {
            let due = now.saturating_add(settle.max(CLOSE_SETTLE));
            Standing::Changing { identity, since: now, is_closed, due, is_told }
        }
    }
}

fn quiet(is_closed: bool, settle: Duration) -> Duration {
    if is_closed { settle.min(CLOSE_SETTLE) } else { settle }
}

#[cfg(test)]
mod tests;
