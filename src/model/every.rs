//! Fixed-rate times for `every:` triggers. Knows no zones: a period is a stretch of real time.

use std::time::Duration;

use super::time::Timestamp;

/// The first multiple of a period, counted from the epoch, strictly after a time.
///
/// Aligned to the epoch, so that a restart changes nothing. Periods count in whole milliseconds;
/// less than one is one.
#[must_use]
pub fn next_every(period: Duration, after: Timestamp) -> Timestamp {
    let period = millis(period);
    let next = after.as_millis().div_euclid(period).saturating_add(1).saturating_mul(period);
    Timestamp::from_millis(next)
}

/// How many multiples of a period lie in (after, until]; 0 if that is empty.
#[must_use]
pub fn count_every(period: Duration, after: Timestamp, until: Timestamp) -> u64 {
    let before = |at: Timestamp| at.as_millis().div_euclid(millis(period));
    if until <= after { 0 } else { before(until).abs_diff(before(after)) }
}

/// The last multiple of a period in (after, until]; `None`: there is none.
#[must_use]
pub fn last_every(period: Duration, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
    let period = millis(period);
    let last = until.as_millis().div_euclid(period).saturating_mul(period);
    Some(Timestamp::from_millis(last)).filter(|last| *last > after)
}

/// Whether a time is a multiple of a period.
#[must_use]
pub fn is_every(period: Duration, at: Timestamp) -> bool {
    at.as_millis().rem_euclid(millis(period)) == 0
}

fn millis(period: Duration) -> i64 {
    i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1)
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

    #[test]
    fn multiples_are_counted_over_what_excludes_its_start_and_includes_its_end() {
        for (period_ms, after, until, count, last) in [
            (1000, 0, 0, 0, None),
            (1000, 0, 999, 0, None),
            (1000, 0, 1000, 1, Some(1000)),
            (1000, -1, 1000, 2, Some(1000)),
            (1000, -2500, 2500, 5, Some(2000)),
            (1000, 2500, -2500, 0, None),
            (7, -15, -14, 1, Some(-14)),
            (0, 5, 9, 4, Some(9)),
            (1, i64::MIN, i64::MAX, u64::MAX, Some(i64::MAX)),
            // The greatest number is a multiple of 7: eight to the power of 21, less one.
            (7, i64::MIN, i64::MIN + 1, 1, Some(i64::MIN + 1)),
            (7, i64::MIN, i64::MIN, 0, None),
        ] {
            let period = Duration::from_millis(period_ms);
            let (after, until) = (Timestamp::from_millis(after), Timestamp::from_millis(until));
            assert_eq!(count_every(period, after, until), count, "{period_ms} {after} {until}");
            let found = last_every(period, after, until).map(Timestamp::as_millis);
            assert_eq!(found, last, "{period_ms} {after} {until}");
        }
        let period = Duration::from_secs(300);
        let found =
            [-300_000, -1, 0, 1, 300_000].map(|ms| is_every(period, Timestamp::from_millis(ms)));
        assert_eq!(found, [true, false, true, false, true]);
    }

    proptest::proptest! {
        #[test]
        fn counting_is_stepping(period_ms in 0_u64..50, after in -500_i64..500, length in -9_i64..500) {
            let period = Duration::from_millis(period_ms);
            let (after, until) = (Timestamp::from_millis(after), Timestamp::from_millis(after + length));
            let step = |at: &Timestamp| Some(next_every(period, *at)).filter(|at| *at <= until);
            let fires: Vec<Timestamp> = std::iter::successors(step(&after), step).collect();
            proptest::prop_assert_eq!(count_every(period, after, until), fires.len() as u64);
            proptest::prop_assert_eq!(last_every(period, after, until), fires.last().copied());
            proptest::prop_assert!(fires.iter().all(|at| is_every(period, *at)));
        }
    }
}
