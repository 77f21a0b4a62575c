//! Smooth weighted round robin: who is next when several share by weight (requirement D3).
//!
//! Not remembered: after a restart the turns start anew. Whoever cannot use a turn takes no part in
//! it and saves up nothing for later.

use std::collections::BTreeMap;

use crate::model::id::QueueName;
use crate::model::priority::Level;

/// Turns among sharers named by `K`.
#[derive(Debug, Clone)]
pub(super) struct RoundRobin<K> {
    credit: BTreeMap<K, i64>,
}

impl<K> Default for RoundRobin<K> {
    fn default() -> Self {
        Self { credit: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> RoundRobin<K> {
    /// The order in which those who compete are to be tried for the next turn.
    pub(super) fn order(&self, competitors: &[(K, u32)]) -> Vec<K> {
        let mut order: Vec<(i64, &K)> = competitors
            .iter()
            .map(|(name, weight)| (self.credit(name) + i64::from(*weight), name))
            .collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        order.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// Notes that `taken` among those who competed got the turn.
    pub(super) fn charge(&mut self, competitors: &[(K, u32)], taken: &K) {
        let total: i64 = competitors.iter().map(|(_, w)| i64::from(*w)).sum();
        for (name, weight) in competitors {
            *self.credit.entry(name.clone()).or_default() += i64::from(*weight);
        }
        *self.credit.entry(taken.clone()).or_default() -= total;
        self.credit.retain(|name, _| competitors.iter().any(|(q, _)| q == name));
    }

    fn credit(&self, name: &K) -> i64 {
        self.credit.get(name).copied().unwrap_or(0)
    }
}

/// Whose turn it is: among the queues, and among the levels of each queue that shares by level.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    pub(super) queues: RoundRobin<QueueName>,
    pub(super) levels: BTreeMap<QueueName, RoundRobin<Level>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(turns: usize, competitors: &[(&str, u32)], robin: &mut RoundRobin<String>) -> String {
        let competitors: Vec<(String, u32)> =
            competitors.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
        let mut one = || {
            let first = robin.order(&competitors)[0].clone();
            robin.charge(&competitors, &first);
            first
        };
        (0..turns).map(|_| one()).collect()
    }

    #[test]
    fn weights_four_to_two_to_one_share_seven_slots_smoothly() {
        let mut robin = RoundRobin::default();
        // nginx's worked example of smooth weighted round robin for 4, 2, 1.
        assert_eq!(served(7, &[("a", 4), ("b", 2), ("c", 1)], &mut robin), "abacaba");
    }

    #[test]
    fn who_takes_no_part_saves_up_nothing() {
        let mut robin = RoundRobin::default();
        assert_eq!(served(6, &[("a", 1), ("b", 1)], &mut robin), "ababab");
        // c comes back after six turns and gets its share, no more.
        assert_eq!(served(6, &[("a", 1), ("b", 1), ("c", 1)], &mut robin), "abcabc");
    }
}
