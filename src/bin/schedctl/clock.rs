//! The client's only clock: the time that "2m ago" is counted from, and the end of a wait.

use std::time::{Duration, Instant};

use sched::model::time::Timestamp;

/// The time now.
#[expect(clippy::disallowed_methods, reason = "the client's only reading of the wall clock")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
    Timestamp::from_millis(ms)
}

/// The end of a wait, on a clock that nobody sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// This far from now; `None`: never.
    pub(crate) fn after(wait: Option<Duration>) -> Self {
        Self(wait.and_then(|wait| monotonic().checked_add(wait)))
    }

    /// What is left; zero once it is over, `None` if it never is.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(monotonic()))
    }
}

#[expect(clippy::disallowed_methods, reason = "a wait must not depend on the wall clock")]
fn monotonic() -> Instant {
    Instant::now()
}
