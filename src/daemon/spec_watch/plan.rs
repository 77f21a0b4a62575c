//! When to read the directory next, and in how many events a reading is told.
//!
//! All times are those of a clock that never steps.

use std::time::Duration;

use crate::limits;
use crate::model::event::Definitions;

/// Period of looking when the kernel's events do not work.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// From a change that is not complete to the look that notes it. A file that is written to without
/// a pause is looked at no more often.
const GLANCE_AFTER: Duration = Duration::from_millis(10);

/// When to read next.
#[derive(Debug)]
pub(super) struct Plan {
    /// What was heard of, or may still be changing; [`Duration::MAX`]: there is none.
    part: Duration,
    /// Everything.
    whole: Duration,
    /// Readings of either kind take half of the time at most: one of everything holds up no look
    /// at a single file.
    part_not_before: Duration,
    whole_not_before: Duration,
    /// Nothing that was looked at may still be changing.
    is_quiet: bool,
}

impl Plan {
    /// Everything, at once.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            part: Duration::MAX,
            whole: now,
            part_not_before: Duration::ZERO,
            whole_not_before: Duration::ZERO,
            is_quiet: false,
        }
    }

    pub(super) fn next(&self) -> Duration {
        self.part.max(self.part_not_before).min(self.whole.max(self.whole_not_before))
    }

    /// Whether a reading is due, and if so whether it is one of everything.
    pub(super) fn due(&self, now: Duration) -> Option<bool> {
        (self.next() <= now).then(|| self.whole.max(self.whole_not_before) <= now)
    }

    /// Whether all changes that were looked at were complete.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Something was heard of a file; a change that is complete is looked at once.
    pub(super) fn hinted(&mut self, now: Duration, is_complete: bool) {
        self.part = self.part.min(if is_complete { now } else { now + GLANCE_AFTER });
    }

    /// Something was heard that concerns everything.
    pub(super) fn whole(&mut self, now: Duration) {
        self.whole = self.whole.min(now);
    }

    pub(super) fn done(
        &mut self,
        began: Duration,
        now: Duration,
        was_whole: bool,
        is_polled: bool,
        look_again_at: Option<Duration>,
    ) {
        let rest = now + now.saturating_sub(began);
        if was_whole {
            self.whole = now + if is_polled { POLL_EVERY } else { limits::RESCAN_EVERY };
            self.whole_not_before = rest;
        } else {
            self.part_not_before = rest;
        }
        self.is_quiet = look_again_at.is_none();
        let again = |at: Duration| at.max(now + GLANCE_AFTER);
        self.part = look_again_at.map_or(Duration::MAX, again);
    }
}

/// Cuts a reading into events of a bounded number of files that changed, then of files that are
/// gone: only when all changes are known is it known what has moved elsewhere. What is there is
/// told in the last one.
pub(super) fn parts(mut found: Definitions) -> Vec<Definitions> {
    if found.changed.len() + found.removed.len() <= limits::SPEC_FILES_PER_EVENT {
        return vec![found];
    }
    let part = || Definitions { more: true, ..Definitions::default() };
    let changed = cut(std::mem::take(&mut found.changed));
    let removed = cut(std::mem::take(&mut found.removed));
    let mut parts: Vec<_> =
        changed.into_iter().map(|changed| Definitions { changed, ..part() }).collect();
    parts.extend(removed.into_iter().map(|removed| Definitions { removed, ..part() }));
    if let Some(last) = parts.pop() {
        parts.push(Definitions { changed: last.changed, removed: last.removed, ..found });
    }
    parts
}

fn cut<T>(all: Vec<T>) -> Vec<Vec<T>> {
    let mut all = all.into_iter();
    let mut parts = Vec::new();
    loop {
        let part: Vec<T> = all.by_ref().take(limits::SPEC_FILES_PER_EVENT).collect();
        if part.is_empty() {
            return parts;
        }
        parts.push(part);
    }
}

#[cfg(test)]
mod tests;
