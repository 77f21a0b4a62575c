//! Processor time and medians: what a decision costs, whatever else the machine is doing.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A value and the processor time that this thread took to make it.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let clock = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let start = clock();
    let value = work();
    (value, clock().saturating_sub(start))
}

/// The middle one.
pub(crate) fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
