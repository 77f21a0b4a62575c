//! The only clock of these tests: bounds of waits, and the pause between two looks.
#![expect(clippy::disallowed_methods, reason = "waits of tests are bounded by the real clock")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until there is something to see; `None`: there was nothing within the bound.
pub(crate) fn look_until<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + within;
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Lets a seeded time pass, to kill at a moment that nobody chose. Not for synchronisation.
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
