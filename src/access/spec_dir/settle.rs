//! Which changes are complete: no half-written save is taken (design, F6).
//!
//! A file is taken when it was closed after writing or renamed into place, else when nothing about
//! it has changed for a while: shortly, or for longer while somebody is known to have it open for
//! writing. The quiet time is measured between looks on a clock that never steps; what the file
//! system says of times only tells old files from young ones at the first reading. A name that is
//! gone has to be quiet too: editors move a file away before they write it anew.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::folder::Stamp;
use crate::limits;

/// The last thing heard of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Closed after writing, or renamed into place.
    Saved,
    /// Made or written to, and not closed since.
    AtWork,
    /// Something else: its attributes, or that it went.
    Touched,
    /// Changed by the daemon itself, completely.
    Ours,
}

/// What a look at a name finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Not looked at yet.
    NotYet,
    /// No file: gone, or a link that leads nowhere.
    Nothing,
    /// A file.
    File(Stamp),
}

impl Seen {
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::File(stamp) if stamp.is_empty())
    }
}

/// A name whose change is not taken yet.
#[derive(Debug)]
struct Unsettled {
    seen: Seen,
    /// Since when nothing has changed.
    since: Duration,
    /// Somebody is known to have it open for writing.
    is_open: bool,
    /// It was seen to lack something that it defined.
    is_loss: bool,
}

impl Unsettled {
    fn quiet_at(&self) -> Duration {
        let quiet = if self.is_open { limits::SPEC_OPEN_SETTLE } else { limits::SPEC_SETTLE };
        self.since.saturating_add(quiet)
    }
}

/// Names whose changes are not taken yet.
#[derive(Debug, Default)]
pub(super) struct Settling(BTreeMap<OsString, Unsettled>);

impl Settling {
    /// Takes note of something heard.
    pub(super) fn hear(&mut self, name: &OsStr, heard: Heard, at: Duration) {
        match heard {
            Heard::Saved | Heard::Ours => {
                if let Some(unsettled) = self.0.get_mut(name) {
                    unsettled.is_open = false;
                }
            }
            Heard::AtWork | Heard::Touched => {
                let fresh =
                    || Unsettled { seen: Seen::NotYet, since: at, is_open: false, is_loss: false };
                let unsettled = self.0.entry(name.to_owned()).or_insert_with(fresh);
                unsettled.since = at;
                unsettled.is_open |= heard == Heard::AtWork;
            }
        }
    }

    /// Whether what is seen of a name has been quiet for long enough.
    pub(super) fn is_quiet(&self, name: &OsStr, seen: Seen, at: Duration) -> bool {
        self.0.get(name).is_some_and(|known| known.seen == seen && known.quiet_at() <= at)
    }

    /// For how long a name that is not taken yet has been as it is seen now.
    pub(super) fn quiet_for(&self, name: &OsStr, seen: Seen, at: Duration) -> Option<Duration> {
        let known = self.0.get(name).filter(|known| known.seen == seen)?;
        Some(at.saturating_sub(known.since))
    }

    /// Whether a change of a name waits to be taken.
    pub(super) fn holds(&self, name: &OsStr) -> bool {
        self.0.contains_key(name)
    }

    /// Notes what was seen of a name that is not taken yet. `is_linked`: a link, or a file of
    /// several names, which appears without ever being closed.
    pub(super) fn wait(&mut self, name: &OsStr, seen: Seen, at: Duration, is_linked: bool) {
        let fresh = || Unsettled { seen, since: at, is_open: false, is_loss: false };
        let unsettled = self.0.entry(name.to_owned()).or_insert_with(fresh);
        if unsettled.seen != seen {
            // What was heard since counts from then; a change that nobody told of from now.
            if unsettled.seen != Seen::NotYet {
                unsettled.since = at;
            }
            unsettled.seen = seen;
        }
        if seen == Seen::Nothing || is_linked {
            unsettled.is_open = false;
        }
    }

    /// Notes that a name which waits lacks something that it defined.
    pub(super) fn lost(&mut self, name: &OsStr) {
        if let Some(unsettled) = self.0.get_mut(name) {
            unsettled.is_loss = true;
        }
    }

    pub(super) fn is_loss(&self, name: &OsStr) -> bool {
        self.0.get(name).is_some_and(|unsettled| unsettled.is_loss)
    }

    /// Starts to wait anew, for a writer if one is known.
    pub(super) fn doubt(&mut self, name: &OsStr, is_open: bool, at: Duration) {
        self.0.insert(
            name.to_owned(),
            Unsettled { seen: Seen::NotYet, since: at, is_open, is_loss: false },
        );
    }

    /// A name was taken as it is.
    pub(super) fn taken(&mut self, name: &OsStr) {
        self.0.remove(name);
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &OsString> {
        self.0.keys()
    }

    /// When the first of them will have been quiet for long enough; `None`: there are none.
    pub(super) fn next(&self) -> Option<Duration> {
        self.0.values().map(Unsettled::quiet_at).min()
    }
}
