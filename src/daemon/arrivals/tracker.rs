//! Which files have arrived: pure. Sightings and the time go in, arrivals come out, each once.
//!
//! It touches no file and reads no clock; times are durations since some fixed point.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::model::event::{FileArrival, FileIdentity};

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

#[derive(Debug)]
struct Watched {
    settle: Duration,
    files: BTreeMap<Arc<str>, Standing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Seen, not yet long enough.
    Changing { identity: FileIdentity, since: Duration, is_closed: bool, due: Duration },
    /// Reported.
    Taken { identity: FileIdentity },
}

impl Tracker {
    /// Follows exactly these patterns; what is known of the others is forgotten.
    pub(super) fn follow(&mut self, patterns: &BTreeMap<Arc<str>, Duration>) {
        self.patterns.retain(|pattern, _| patterns.contains_key(pattern));
        self.deadlines.retain(|(_, (pattern, _))| patterns.contains_key(pattern));
        for (pattern, settle) in patterns {
            self.patterns
                .entry(Arc::clone(pattern))
                .and_modify(|watched| watched.settle = *settle)
                .or_insert_with(|| Watched { settle: *settle, files: BTreeMap::new() });
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
            Sight::File(identity) => Some(step(before, identity, is_closed, watched.settle, now)),
            Sight::Absent => None,
            Sight::Unknown => before.map(|standing| put_off(standing, watched.settle, now)),
        };
        match after {
            None => {
                watched.files.remove(path);
                if matches!(before, Some(Standing::Taken { .. })) {
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
                        found.arrived.push(FileArrival {
                            pattern: pattern.to_string(),
                            path: path.to_string(),
                            identity,
                        });
                    }
                    Standing::Taken { .. } => {}
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
        Some(Standing::Changing { identity: last, since, is_closed: was_closed, .. })
            if last == identity =>
        {
            let is_closed = is_closed || was_closed;
            let due = since.saturating_add(quiet(is_closed, settle));
            if due <= now {
                Standing::Taken { identity }
            } else {
                Standing::Changing { identity, since, is_closed, due }
            }
        }
        None | Some(Standing::Taken { .. } | Standing::Changing { .. }) => {
            let due = now.saturating_add(quiet(is_closed, settle));
            Standing::Changing { identity, since: now, is_closed, due }
        }
    }
}

/// A look that told nothing starts the quiet time again.
fn put_off(standing: Standing, settle: Duration, now: Duration) -> Standing {
    match standing {
        Standing::Taken { .. } => standing,
        Standing::Changing { identity, is_closed, .. } => {
            let due = now.saturating_add(settle.max(CLOSE_SETTLE));
            Standing::Changing { identity, since: now, is_closed, due }
        }
    }
}

fn quiet(is_closed: bool, settle: Duration) -> Duration {
    if is_closed { settle.min(CLOSE_SETTLE) } else { settle }
}

#[cfg(test)]
mod tests;
