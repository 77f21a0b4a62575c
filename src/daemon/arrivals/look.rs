//! The blocking half of the arrivals: follows the patterns, sets the watches, decides which
//! paths to look at, and feeds the tracker.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::pattern::{Pattern, names};
use super::tracker::{Found, Key, Tracker};
use super::walk::{Walked, Walker, look_at};
use crate::daemon::clock::Clock;
use crate::daemon::watch::{DirWatch, HintReader, Writer};
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

/// Directories of a pattern whose file system is asked for.
const MOUNT_LOOKS_MAX: usize = 16;

/// Notes in the daemon's status.
const NOTES_MAX: usize = 100;

/// File systems, by the kernel's magic numbers, on which others change files without an event
/// here: NFS, SMB (three), FUSE, 9P, Ceph, AFS, Lustre.
const REMOTE: [u32; 9] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x00c3_6400,
    0x5346_414f,
    0x0bd0_0bd0,
];

/// All that looking needs.
pub(super) struct Looker {
    clock: Clock,
    dirs: DirWatch,
    hints: HintReader,
    tracker: Tracker,
    routes: BTreeMap<Arc<str>, Route>,
    /// What `routes` were made from.
    followed: Vec<FileWatch>,
    /// Patterns that cannot be followed, and why.
    refused: Vec<String>,
    /// The next slow rescan.
    rescan: Duration,
    /// Directories came or went: all patterns have to be walked again.
    is_restructured: bool,
    /// The earliest time for that.
    walk_not_before: Duration,
}

/// One pattern.
struct Route {
    pattern: Pattern,
    poll: Option<Duration>,
    next_poll: Duration,
    dirs: BTreeSet<PathBuf>,
    notes: BTreeSet<String>,
}

impl Looker {
    pub(super) fn new(clock: Clock) -> (Self, HintReader) {
        let (dirs, hints) = DirWatch::new();
        let reader = hints.clone();
        let looker = Self {
            clock,
            dirs,
            hints,
            tracker: Tracker::default(),
            routes: BTreeMap::new(),
            followed: Vec::new(),
            refused: Vec::new(),
            rescan: Duration::MAX,
            is_restructured: false,
            walk_not_before: Duration::ZERO,
        };
        (looker, reader)
    }

    /// Follows exactly these. Two triggers of one pattern are followed as one, with the longer
    /// settle time and the shorter period.
    pub(super) fn follow(&mut self, watches: Vec<FileWatch>) {
        if self.followed == watches {
            return;
        }
        let mut settles: BTreeMap<Arc<str>, Duration> = BTreeMap::new();
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
            let settle = settles.entry(text).or_default();
            *settle = watch.settle.max(*settle);
        }
        self.routes = routes;
        self.followed = watches;
        self.tracker.follow(&settles);
        self.rescan = if settles.is_empty() { Duration::MAX } else { Duration::ZERO };
    }

    /// Looks at whatever deserves it by now.
    pub(super) fn look(&mut self) -> Found {
        let mut found = Found::default();
        self.follow_hints(&mut found);
        for key in self.tracker.due(self.clock.elapsed()) {
            let (sight, _) = look_at(Path::new(&*key.1));
            self.tracker.see(self.clock.elapsed(), &key, sight, false, &mut found);
        }
        let now = self.clock.elapsed();
        if now >= self.rescan || (self.is_restructured && now >= self.walk_not_before) {
            self.walk_all(&mut found);
        } else {
            self.poll(now, &mut found);
        }
        found
    }

    /// When [`Self::look`] has something to do without a hint.
    pub(super) fn next_look(&self) -> Duration {
        let restructured = if self.is_restructured { self.walk_not_before } else { Duration::MAX };
        let polls = self.routes.values().filter(|route| self.period(route).is_some());
        polls
            .map(|route| route.next_poll)
            .chain(self.tracker.next_deadline())
            .fold(self.rescan.min(restructured), Duration::min)
    }

    /// What stands in the way of seeing files at once.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.refused.clone();
        notes.extend(self.dirs.status().map(|why| format!("file triggers: {why}")));
        for (text, route) in &self.routes {
            notes.extend(route.notes.iter().map(|note| format!("file trigger {text}: {note}")));
        }
        notes.truncate(NOTES_MAX);
        notes
    }

    fn period(&self, route: &Route) -> Option<Duration> {
        route.poll.or_else(|| self.dirs.status().map(|_| POLL_EVERY))
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
        let mut walker = Walker::new(&clock);
        for text in texts {
            let began = clock.elapsed();
            let Some(route) = self.routes.get(text) else { continue };
            let period = self.period(route);
            let walked = walker.walk(&route.pattern);
            let now = clock.elapsed();
            let Some(route) = self.routes.get_mut(text) else { continue };
            let rest = now.saturating_sub(began) * WALK_REST;
            route.next_poll = now + period.unwrap_or_default().max(rest);
            let Walked { seen, dirs, notes, is_complete } = walked;
            self.is_restructured |= period.is_some() && route.dirs != dirs;
            route.notes = notes;
            route.notes.extend(route.remote_note(&dirs));
            route.dirs = dirs;
            self.tracker.see_all(now, text, seen, is_complete, found);
        }
    }

    fn set_watches(&mut self) -> bool {
        let wanted = self.routes.values().flat_map(|route| route.dirs.iter().cloned()).collect();
        self.dirs.set(&wanted)
    }
}

impl Route {
    const fn new(pattern: Pattern, poll: Option<Duration>) -> Self {
        Self {
            pattern,
            poll,
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

    /// Known fault B161: such mounts give no events and no error.
    fn remote_note(&self, dirs: &BTreeSet<PathBuf>) -> Option<String> {
        if self.poll.is_some() {
            return None;
        }
        let dir = dirs.iter().take(MOUNT_LOOKS_MAX).find(|dir| is_remote(dir))?;
        Some(format!("{} gives no events for changes made elsewhere: set pollMs", dir.display()))
    }
}

fn is_remote(dir: &Path) -> bool {
    nix::sys::statfs::statfs(dir).is_ok_and(|fs| {
        // The numbers have 32 bits; some are negative where the field is signed.
        let magic = fs.filesystem_type().0 & 0xffff_ffff;
        REMOTE.iter().any(|remote| i64::from(*remote) == magic)
    })
}
