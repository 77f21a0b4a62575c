//! Priority inheritance (requirement D5): an instance that waits and is CRITICAL or HIGH lends its
//! priority to what it waits for, at most [`EDGES_MAX`] edges deep, as long as it waits.
//!
//! Derived, never stored. For every instance that somebody waits for it is counted, per number of
//! edges, how many of its direct dependents bring it each priority: a dependent brings over `n + 1`
//! edges the best that it has itself over `n`. Only best values are carried on, so that a change
//! costs the edges over which a best value changes, however many paths there are.

use std::collections::BTreeMap;

use crate::model::id::InstanceId;
use crate::model::instance::Instance;
use crate::model::priority::{Level, Priority};

/// How far a priority is lent.
pub(super) const EDGES_MAX: usize = 3;
/// Priorities that are lent: CRITICAL 0 and HIGH 1 and 2.
const LENT: usize = 3;

/// What direct dependents bring one instance: over how many edges, of which priority, how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Brought([[u32; LENT]; EDGES_MAX]);

impl Brought {
    /// The best that comes over this many edges, counted from 0 for one.
    fn best(&self, edges: usize) -> Option<usize> {
        self.0.get(edges)?.iter().position(|count| *count > 0)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().flatten().all(|count| *count == 0)
    }

    fn count(&mut self, edges: usize, priority: Option<usize>, up: bool) {
        let counts = self.0.get_mut(edges);
        if let Some(count) = counts.zip(priority).and_then(|(counts, p)| counts.get_mut(p)) {
            *count = if up { *count + 1 } else { count.saturating_sub(1) };
        }
    }
}

/// What waiting instances lend to those they wait for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Inheritance {
    brought: BTreeMap<InstanceId, Brought>,
}

/// Instances whose best over some number of edges may have changed, with what it was.
type Touched = BTreeMap<InstanceId, Option<usize>>;

impl Inheritance {
    /// The priority with which an instance takes its place (design, 'Order').
    pub(super) fn effective(&self, instance: &Instance) -> Priority {
        acting(instance.priority, self.lent(&instance.instance_id))
    }

    /// The best that is lent to an instance.
    pub(super) fn lent(&self, id: &InstanceId) -> Option<Priority> {
        let brought = self.brought.get(id)?;
        let best = (0..EDGES_MAX).filter_map(|edges| brought.best(edges)).min()?;
        u8::try_from(best).ok().and_then(Priority::new)
    }

    /// An instance's row is another now; `row` gives those of all others. Gives whom something else
    /// is lent than before, with what that was.
    pub(super) fn replace<'a>(
        &mut self,
        old: Option<&Instance>,
        new: &Instance,
        row: impl Fn(&InstanceId) -> Option<&'a Instance>,
    ) -> Vec<(InstanceId, Option<Priority>)> {
        let id = &new.instance_id;
        let old = old.filter(|i| i.is_waiting());
        let new = Some(new).filter(|i| i.is_waiting());
        let has_same_edges = old.zip(new).is_some_and(|(old, new)| old.edges == new.edges);
        let mut lent_before = BTreeMap::new();
        let mut touched = Touched::new();
        for edges in 0..EDGES_MAX {
            let reached = std::mem::take(&mut touched);
            let mut bring = |this: &mut Self, to: Option<&Instance>, from, now| {
                for upstream in to.into_iter().flat_map(upstreams).filter(|_| from != now) {
                    lent_before.entry(upstream.clone()).or_insert_with(|| this.lent(upstream));
                    let before = || this.best(upstream, edges);
                    touched.entry(upstream.clone()).or_insert_with(before);
                    this.count(upstream, edges, from, now);
                }
            };
            // What it brings itself.
            let best = edges.checked_sub(1).and_then(|edges| self.best(id, edges));
            let best_before = reached.get(id).copied().unwrap_or(best);
            let from = old.and_then(|i| if edges == 0 { own(i) } else { best_before });
            let now = new.and_then(|i| if edges == 0 { own(i) } else { best });
            if has_same_edges {
                bring(self, new, from, now);
            } else {
                bring(self, old, from, None);
                bring(self, new, None, now);
            }
            // What those bring on whom it has reached. Their rows are as they were.
            for (other, from) in reached.iter().filter(|(other, _)| *other != id) {
                let now = edges.checked_sub(1).and_then(|edges| self.best(other, edges));
                bring(self, row(other).filter(|i| i.is_waiting()), *from, now);
            }
        }
        lent_before.into_iter().filter(|(id, before)| self.lent(id) != *before).collect()
    }

    fn best(&self, id: &InstanceId, edges: usize) -> Option<usize> {
        self.brought.get(id)?.best(edges)
    }

    fn count(&mut self, id: &InstanceId, edges: usize, from: Option<usize>, now: Option<usize>) {
        let brought = self.brought.entry(id.clone()).or_default();
        brought.count(edges, from, false);
        brought.count(edges, now, true);
        if brought.is_empty() {
            self.brought.remove(id);
        }
    }
}

/// The priority with which an instance acts that has its own and something lent.
pub(super) fn acting(own: Priority, lent: Option<Priority>) -> Priority {
    lent.map_or(own, |lent| lent.min(own))
}

/// What an instance has to lend.
fn own(i: &Instance) -> Option<usize> {
    let lends = matches!(i.priority.level(), Level::Critical | Level::High);
    lends.then(|| usize::from(i.priority.value()))
}

fn upstreams(i: &Instance) -> impl Iterator<Item = &InstanceId> {
    i.edges.iter().filter_map(|edge| edge.instance_id.as_ref())
}

#[cfg(test)]
mod tests;
