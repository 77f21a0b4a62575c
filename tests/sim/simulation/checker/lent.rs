//! Priority inheritance (requirement D5), counted anew: who waits and is CRITICAL or HIGH lends its
//! priority to what it waits for, at most three edges deep, through those that wait themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, Instance, InstanceId, Rows, instance};
use crate::model::priority::{Level, Priority};

/// The best that is lent to an instance.
pub(super) type Lent = BTreeMap<InstanceId, Priority>;

impl Checker {
    /// What is lent now.
    pub(super) fn lent(&self, rows: &Rows) -> Lent {
        let mut lent = Lent::new();
        let waiting = || self.waiting.iter().filter_map(|id| instance(rows, id));
        for lender in waiting() {
            let priority = self.plant.meant(lender.priority);
            if !matches!(priority.level(), Level::Critical | Level::High) {
                continue;
            }
            let mut from = BTreeSet::from([&lender.instance_id]);
            for _ in 0..3 {
                let those = from.into_iter().filter(|id| self.waiting.contains(*id));
                let edges = those.filter_map(|id| instance(rows, id)).flat_map(|i| i.edges.iter());
                from = edges.filter_map(|edge| edge.instance_id.as_ref()).collect();
                for id in &from {
                    let best = lent.entry((*id).clone()).or_insert(priority);
                    *best = priority.min(*best);
                }
            }
        }
        lent
    }

    /// The priority by which an instance takes its place.
    pub(super) fn effective(&self, i: &Instance, lent: &Lent) -> Priority {
        let own = self.plant.meant(i.priority);
        lent.get(&i.instance_id).map_or(own, |lent| own.min(*lent))
    }

    /// Whether some upstream may still end.
    pub(super) fn an_upstream_is_at_it(&self, i: &Instance) -> bool {
        let mut ups = i.edges.iter().filter_map(|edge| edge.instance_id.as_ref());
        ups.any(|up| self.seen.get(up).is_some_and(|seen| !seen.is_final))
    }
}
