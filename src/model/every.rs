//! Fixed-rate times for `every:` triggers. Knows no zones: a period is a stretch of real time.

use std::time::Duration;

use super::time::Timestamp;

/// The first multiple of a period, counted from the epoch, strictly after a time.
///
/// Aligned to the epoch, so that a restart changes nothing. Periods count in whole milliseconds;
/// less than one is one.
#[must_use]
pub fn next_every(period: Duration, after: Timestamp) -> Timestamp {
    let period = i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1);
    let next = after.as_millis().div_euclid(period).saturating_add(1).saturating_mul(period);
    Timestamp::from_millis(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_multiples_of_the_period_strictly_after() {
        for (period_ms, after, next) in [
            (300_000, 0, 300_000),
            (300_000, 299_999, 300_000),
            (300_000, 300_000, 600_000),
            (300_000, -1, 0),
            (300_000, -300_001, -300_000),
            (7, 50, 56),
            (0, 5, 6),
            (1000, i64::MAX, i64::MAX),
        ] {
            let period = Duration::from_millis(period_ms);
            let found = next_every(period, Timestamp::from_millis(after));
            assert_eq!(found.as_millis(), next, "{period_ms} {after}");
        }
        assert_eq!(next_every(Duration::MAX, Timestamp::default()).as_millis(), i64::MAX);
    }
}
