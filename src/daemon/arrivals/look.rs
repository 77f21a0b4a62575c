//! The blocking half of the arrivals: follows the patterns, sets the watches, decides which
//! paths to look at, and feeds the tracker.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::pattern::{Pattern, names};
use super::tracker::{Found, Key, Tracker, Wanted};
use super::walk::{Bounds, FileSystemOf, Walked, Walker, look_at};
use crate::daemon::clock::Clock;
use crate::daemon::watch::{DirIdentity, DirWatch, HintReader, Writer, identity};
use crate::limits;
use crate::model::command::FileWatch;

/// Period of looking when the kernel's events do not work.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// After a walk that took this long, none comes for this many times as long unless it is the
/// slow rescan: however much changes, walking stays a small share of the time.
const WALK_REST: u32 = 4;

/// Times that a walk is repeated because it found directories that were not yet watched. What
/// comes later is told by the watches, or by the slow rescan.
const WALKS_MAX: usize = 8;

/// Notes in the daemon's status.
const NOTES_MAX: usize = 100;

/// All that looking needs.
pub(super) struct Looker {
    clock: Clock,
    file_system: FileSystemOf,
    dirs: DirWatch,
    hints: HintReader,
    tracker: Tracker,
    routes: BTreeMap<Arc<str>, Route>,
    /// What `routes` were made from; `None`: nothing has been asked for yet.
    followed: Option<Vec<FileWatch>>,
    /// Patterns that cannot be followed, and why.
    refused: Vec<String>,
    /// The next slow rescan.
    rescan: Duration,
    /// Watched directories whose parent is not, and which they are.
    tops: BTreeMap<PathBuf, Option<DirIdentity>>,
    /// The next check that they are still the same.
    next_check: Duration,
    /// Directories came or went: all patterns have to be walked again.
    is_restructured: bool,
    /// The earliest time for that.
    walk_not_before: Duration,
}

/// One pattern.
struct Route {
    pattern: Pattern,
    settle: Duration,
    poll: Option<Duration>,
    /// See [`Walked::remote`].
    remote: Option<(PathBuf, &'static str)>,
    next_poll: Duration,
    dirs: BTreeSet<PathBuf>,
    notes: BTreeSet<String>,
}

impl Looker {
    /// Looks for nothing yet. `taken`: patterns with the paths that an earlier process reported.
    pub(super) fn new(
        clock: Clock,
        file_system: FileSystemOf,
        taken: Vec<(String, String)>,
    ) -> (Self, HintReader) {
        let (dirs, hints) = DirWatch::new();
        let reader = hints.clone();
        let looker = Self {
            clock,
            file_system,
            dirs,
            hints,
            tracker: Tracker::knowing(taken),
            routes: BTreeMap::new(),
            followed: None,
            refused: Vec::new(),
            rescan: Duration::MAX,
            tops: BTreeMap::new(),
            next_check: Duration::MAX,
            is_restructured: false,
            walk_not_before: Duration::ZERO,
        };
        (looker, reader)
    }

    /// Follows exactly these. Two triggers of one pattern are followed as one, with the longer
    /// settle time and the shorter period.
    pub(super) fn follow(&mut self, watches: Vec<FileWatch>) {
        if self.followed.as_ref() == Some(&watches) {
            return;
        }
        let mut wanted: BTreeMap<Arc<str>, Wanted> = BTreeMap::new();
        let mut routes: BTreeMap<Arc<str>, Route> = BTreeMap::new();
        self.refused.clear();
        for watch in &watches {
            let text: Arc<str> = Arc::from(watch.pattern.as_str());
            if let Some(route) = routes.get_mut(&text) {
                route.poll = route.poll.into_iter().chain(watch.poll).min();
            } else {
                match Pattern::parse(&text) {
                    Ok(pattern) => {
                        routes.insert(Arc::clone(&text), Route::new(pattern, watch.poll));
                    }
                    Err(why) => {
                        self.refused.push(why);
                        continue;
                    }
                }
            }
            let wanted = wanted.entry(text).or_default();
            wanted.settle = watch.settle.max(wanted.settle);
            wanted.listeners.insert(watch.task_id.clone());
        }
        for (text, route) in &mut routes {
            route.settle = wanted.get(text).map_or(Duration::ZERO, |wanted| wanted.settle);
        }
        self.routes = routes;
        self.followed = Some(watches);
        self.tracker.follow(&wanted);
        self.rescan = if wanted.is_empty() { Duration::MAX } else { Duration::ZERO };
    }

    /// Looks at whatever deserves it by now.
    pub(super) fn look(&mut self) -> Found {
        let mut found = Found::default();
        self.tracker.tell_news(&mut found);
        self.follow_hints(&mut found);
        for key in self.tracker.due(self.clock.elapsed()) {
            let (sight, _) = look_at(Path::new(&*key.1));
            self.tracker.see(self.clock.elapsed(), &key, sight, false, &mut found);
        }
        let now = self.clock.elapsed();
        if now >= self.next_check {
            self.is_restructured |= self.tops.iter().any(|(dir, is)| identity(dir) != *is);
            self.next_check = now + limits::FOLDER_CHECK_EVERY;
        }
        if now >= self.rescan || (self.is_restructured && now >= self.walk_not_before) {
            self.walk_all(&mut found);
        } else {
            self.poll(now, &mut found);
        }
        found
    }

    /// Whether there is something that it was asked to follow, be it nothing.
    pub(super) const fn is_following(&self) -> bool {
        self.followed.is_some()
    }

    /// When [`Self::look`] has something to do without a hint.
    pub(super) fn next_look(&self) -> Duration {
        let restructured = if self.is_restructured { self.walk_not_before } else { Duration::MAX };
        let polls = self.routes.values().filter(|route| self.period(route).is_some());
        polls
            .map(|route| route.next_poll)
            .chain(self.tracker.next_deadline())
            .chain([self.rescan, restructured, self.next_check])
            .min()
            .unwrap_or(Duration::MAX)
    }

    /// What stands in the way of seeing files at once.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.refused.clone();
        notes.extend(self.dirs.status().map(|why| format!("file triggers: {why}")));
        for (text, route) in &self.routes {
            let notes_of = route.notes.iter().cloned().chain(route.remote_note());
            notes.extend(notes_of.map(|note| format!("file trigger {text}: {note}")));
        }
        notes.truncate(NOTES_MAX);
        notes
    }

    fn period(&self, route: &Route) -> Option<Duration> {
        let by_need = || {
            let deaf = self.dirs.status().map(|_| POLL_EVERY);
            let remote = route.remote.as_ref().map(|_| limits::POLL_REMOTE_EVERY);
            deaf.into_iter().chain(remote).min()
        };
        route.poll.or_else(by_need)
    }

    /// Bounded by the number of changes: each changed path is looked at once, whatever else is
    /// in its directory (known fault B162).
    fn follow_hints(&mut self, found: &mut Found) {
        let hints = self.hints.take();
        self.is_restructured |= hints.everything || !hints.dirs.is_empty();
        for (path, writer) in hints.paths {
            let is_closed = writer == Writer::Done;
            let parts = names(&path);
            let mut keys: Vec<Key> = Vec::new();
            let mut was_way = false;
            let mut is_way = false;
            for (text, route) in &self.routes {
                let fit = route.pattern.fit(&parts);
                is_way |= fit.is_way;
                was_way |= fit.is_way && route.leads_through(&path);
                if fit.is_match
                    && let Some(path) = path.to_str()
                {
                    keys.push((Arc::clone(text), Arc::from(path)));
                }
            }
            if keys.is_empty() && !is_way {
                continue;
            }
            let (sight, is_dir) = look_at(&path);
            self.is_restructured |= is_way && (is_dir || was_way);
            for key in keys {
                self.tracker.see(self.clock.elapsed(), &key, sight, is_closed, found);
            }
        }
    }

    fn walk_all(&mut self, found: &mut Found) {
        let began = self.clock.elapsed();
        self.is_restructured = false;
        let all: Vec<Arc<str>> = self.routes.keys().cloned().collect();
        for _ in 0..WALKS_MAX {
            self.walk(&all, found);
            // What came between the reading of a directory and its watch is found by one more.
            if !self.set_watches() {
                break;
            }
        }
        let now = self.clock.elapsed();
        self.walk_not_before = now + now.saturating_sub(began) * WALK_REST;
        self.rescan = if all.is_empty() {
            Duration::MAX
        } else {
            self.walk_not_before.max(now + limits::RESCAN_EVERY)
        };
    }

    fn poll(&mut self, now: Duration, found: &mut Found) {
        let due: Vec<Arc<str>> = self
            .routes
            .iter()
            .filter(|(_, route)| self.period(route).is_some() && now >= route.next_poll)
            .map(|(text, _)| Arc::clone(text))
            .collect();
        if !due.is_empty() {
            self.walk(&due, found);
        }
    }

    fn walk(&mut self, texts: &[Arc<str>], found: &mut Found) {
        let clock = self.clock.clone();
        let mut walker = Walker::new(&clock, self.file_system, Bounds::USUAL);
        for text in texts {
            let began = clock.elapsed();
            let Some(route) = self.routes.get_mut(text) else { continue };
            let Walked { seen, dirs, notes, remote, is_complete } = walker.walk(&route.pattern);
            let now = clock.elapsed();
            let is_moved = route.dirs != dirs;
            (route.dirs, route.notes, route.remote) = (dirs, notes, remote);
            self.tracker.set_settle(text, route.settle());
            let Some(route) = self.routes.get(text) else { continue };
            let period = self.period(route);
            self.is_restructured |= period.is_some() && is_moved;
            let rest = now.saturating_sub(began) * WALK_REST;
            let next_poll = now + period.unwrap_or_default().max(rest);
            if let Some(route) = self.routes.get_mut(text) {
                route.next_poll = next_poll;
            }
            self.tracker.see_all(now, text, seen, is_complete, found);
        }
    }

    fn set_watches(&mut self) -> bool {
        let all = self.routes.values().flat_map(|route| route.dirs.iter().cloned());
        let wanted: BTreeSet<PathBuf> = all.collect();
        let is_top = |dir: &&PathBuf| dir.parent().is_none_or(|parent| !wanted.contains(parent));
        // Before they are watched: one that is replaced meanwhile is noticed by the next check.
        self.tops = wanted.iter().filter(is_top).map(|dir| (dir.clone(), identity(dir))).collect();
        let nothing = self.tops.is_empty();
        self.next_check =
            if nothing { Duration::MAX } else { self.clock.elapsed() + limits::FOLDER_CHECK_EVERY };
        self.dirs.set(&wanted)
    }
}

impl Route {
    const fn new(pattern: Pattern, poll: Option<Duration>) -> Self {
        Self {
            pattern,
            settle: Duration::ZERO,
            poll,
            remote: None,
            next_poll: Duration::ZERO,
            dirs: BTreeSet::new(),
            notes: BTreeSet::new(),
        }
    }

    /// Whether a watched directory is `path` or lies below it.
    fn leads_through(&self, path: &Path) -> bool {
        let mut from = self.dirs.range(path.to_owned()..);
        from.next().is_some_and(|dir| dir.starts_with(path))
    }

    /// Where attributes are cached, as on a remote file system, two looks within a moment may see
    /// the same although the file grows.
    fn settle(&self) -> Duration {
        if self.poll.is_none() && self.remote.is_some() {
            self.settle.max(limits::POLL_REMOTE_EVERY)
        } else {
            self.settle
        }
    }

    /// Why it is looked at now and then, if nobody asked for that.
    fn remote_note(&self) -> Option<String> {
        let (dir, kind) = self.remote.as_ref().filter(|_| self.poll.is_none())?;
        Some(format!(
            "{} is on a remote file system ({kind}), where changes made elsewhere give no event: \
             it is looked at every {:?}; pollMs sets another period",
            dir.display(),
            limits::POLL_REMOTE_EVERY
        ))
    }
}

#[cfg(test)]
mod tests;
