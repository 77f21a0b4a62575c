//! How many of some stretches of time go on at once.

use std::collections::BTreeMap;

use crate::model::time::Timestamp;

/// Ends and beginnings of stretches, by time.
#[derive(Default)]
pub(super) struct Sweep {
    changes: BTreeMap<Timestamp, i64>,
}

impl Sweep {
    /// Adds a stretch; one without an end goes on. Of one that is over before it begins nothing
    /// is seen.
    pub(super) fn add(&mut self, begin: Timestamp, end: Option<Timestamp>) {
        *self.changes.entry(begin).or_default() += 1;
        if let Some(end) = end {
            *self.changes.entry(end.max(begin)).or_default() -= 1;
        }
    }

    /// How many go on from each time at which that changes, from `from` on.
    pub(super) fn counts(&self, from: Timestamp) -> BTreeMap<Timestamp, u64> {
        let mut now = 0_i64;
        let mut counts = BTreeMap::new();
        for (at, change) in &self.changes {
            now += change;
            let count = u64::try_from(now).unwrap_or(0);
            if *at <= from {
                counts.insert(from, count);
            } else if *change != 0 {
                counts.insert(*at, count);
            }
        }
        counts
    }
}

/// The most of some counts, and when that is so first; `None`: never more than none.
pub(super) fn peak(counts: &BTreeMap<Timestamp, u64>) -> Option<(Timestamp, u64)> {
    let most = counts.values().max().filter(|most| **most > 0)?;
    counts.iter().find(|(_, count)| *count == most).map(|(at, count)| (*at, *count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn stretches_that_meet_do_not_overlap_and_empty_ones_are_not_seen() {
        let mut sweep = Sweep::default();
        for (begin, end) in [(10, Some(20)), (20, Some(30)), (15, Some(20)), (40, Some(40))] {
            sweep.add(at(begin), end.map(at));
        }
        sweep.add(at(25), None);
        let counts = sweep.counts(at(0));
        let told: Vec<(i64, u64)> = counts.iter().map(|(at, n)| (at.as_millis(), *n)).collect();
        assert_eq!(told, [(10, 1), (15, 2), (20, 1), (25, 2), (30, 1)]);
        assert_eq!(peak(&counts), Some((at(15), 2)));
        let later = sweep.counts(at(26));
        assert_eq!(later, BTreeMap::from([(at(26), 2), (at(30), 1)]));
        assert_eq!(peak(&BTreeMap::new()), None);
    }
}
