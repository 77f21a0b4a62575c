//! How often what happens in a run: drawn per seed, so that some runs never crash and others do
//! nothing else.

use std::collections::BTreeMap;

use super::{faults, people};
use crate::rng::Rng;

/// See the module. Chances are in percent.
#[derive(Debug)]
pub(super) struct Swarm {
    pub(super) crash: u64,
    pub(super) fail: u64,
    pub(super) long: u64,
    pub(super) batch: u64,
    /// Most milliseconds by which a deadline is met late.
    pub(super) late: i64,
    pub(super) deed_every: i64,
    pub(super) fault_every: i64,
    /// Shares of what people do and of what goes wrong, by name.
    weights: BTreeMap<&'static str, u64>,
}

impl Swarm {
    pub(super) fn random(rng: &mut Rng) -> Self {
        let mut some = |most: u64| if rng.chance(30) { 0 } else { rng.below(most + 1) };
        let kinds = people::DEEDS.iter().map(|d| (d.name, d.most));
        let kinds = kinds.chain(faults::FAULTS.iter().map(|f| (f.name, f.most)));
        let weights = kinds.map(|(name, most)| (name, some(most))).collect();
        Self {
            crash: some(4),
            fail: some(50),
            long: some(30),
            batch: some(60),
            late: if some(1) == 0 { 0 } else { 400 },
            deed_every: 300 + i64::try_from(some(3000)).unwrap_or(0),
            fault_every: 2000 + i64::try_from(some(20_000)).unwrap_or(0),
            weights,
        }
    }

    /// One of these kinds, each as often as its share; `None` if none has any.
    pub(super) fn choose(&self, rng: &mut Rng, kinds: &[&'static str]) -> Option<usize> {
        let share = |name: &&'static str| self.weights.get(*name).copied().unwrap_or(0);
        let total: u64 = kinds.iter().map(share).sum();
        if total == 0 {
            return None;
        }
        let mut left = rng.below(total);
        kinds.iter().position(|name| {
            let mine = share(name);
            let is_it = left < mine;
            left = left.saturating_sub(mine);
            is_it
        })
    }
}
