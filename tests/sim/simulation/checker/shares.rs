//! Shares of the queues, and of the levels in a queue that shares by them: smooth weighted round
//! robin, as nginx does it, written out once more (design, 'Order'). It begins anew with each daemon.

use std::collections::BTreeMap;

use super::lent::Lent;
use super::order::Place;
use super::{Checker, Instance, InstanceId, Rows, Verdict, ensure, instance};
use crate::model::id::QueueName;
use crate::model::priority::Level;
use crate::model::settings::{Discipline, LevelWeights};

/// What each has saved up.
#[derive(Debug, Clone)]
pub(super) struct Credit<K>(BTreeMap<K, i64>);

impl<K> Default for Credit<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Credit<K> {
    /// Who competes, the one whose turn it is first.
    fn order(&self, weights: &BTreeMap<K, u32>) -> Vec<K> {
        let standing = |name: &K| {
            let credit = self.0.get(name).copied().unwrap_or(0);
            credit + i64::from(weights.get(name).copied().unwrap_or(0))
        };
        let mut names: Vec<K> = weights.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(standing(name)));
        names
    }

    /// One of them got the turn; who did not compete saves up nothing.
    fn charge(&mut self, weights: &BTreeMap<K, u32>, taken: &K) {
        let total: i64 = weights.values().map(|weight| i64::from(*weight)).sum();
        let before = std::mem::take(&mut self.0);
        for (name, weight) in weights {
            let gain = before.get(name).copied().unwrap_or(0) + i64::from(*weight);
            let paid = if name == taken { total } else { 0 };
            self.0.insert(name.clone(), gain - paid);
        }
    }
}

/// Those of a queue that could start, by level, the first of each.
type Heads = BTreeMap<Level, (Place, InstanceId)>;

impl Checker {
    fn weight(&self, queue: &QueueName) -> u32 {
        self.settings.queues.iter().find(|q| q.name == *queue).map_or(1, |q| q.weight)
    }

    /// The shares of the levels of a queue; `None`: it has a strict order.
    pub(super) fn weights_of_levels(&self, queue: &QueueName) -> Option<LevelWeights> {
        match self.settings.queues.iter().find(|q| q.name == *queue)?.discipline {
            Discipline::Strict => None,
            Discipline::Weighted(weights) => Some(weights),
        }
    }

    /// What could start now.
    fn competitors(&self, rows: &Rows, lent: &Lent) -> Result<BTreeMap<QueueName, Heads>, String> {
        let mut able: BTreeMap<QueueName, Heads> = BTreeMap::new();
        for id in &self.ready {
            let Some(row) = instance(rows, id) else { continue };
            let row = Self::as_it_waited(row);
            let spec = self.spec(rows, &row)?;
            if self.held(&row, &spec).is_some() {
                continue;
            }
            let place = self.place(&row, lent)?;
            let heads = able.entry(row.queue.clone()).or_default();
            let head = heads.entry(place.0.level()).or_insert_with(|| (place, id.clone()));
            if place < head.0 {
                *head = (place, id.clone());
            }
        }
        Ok(able)
    }

    /// The shares of the levels that could use a slot of a queue.
    fn shares(&self, queue: &QueueName, heads: &Heads) -> Option<BTreeMap<Level, u32>> {
        let weights = self.weights_of_levels(queue)?;
        Some(heads.keys().map(|level| (*level, weights.of(*level))).collect())
    }

    /// What a queue would start.
    fn next_of(&self, queue: &QueueName, heads: &Heads) -> Option<(Level, InstanceId)> {
        let level = match self.shares(queue, heads) {
            None => *heads.keys().next()?,
            Some(shares) => {
                let credit = self.credit_of_levels.get(queue).cloned().unwrap_or_default();
                credit.order(&shares).into_iter().next()?
            }
        };
        Some((level, heads.get(&level)?.1.clone()))
    }

    /// The slot goes to the queue whose turn it is, and in it to the level whose turn it is; but one
    /// that would give it up to a higher level right away leaves it to that.
    pub(super) fn is_its_turn(&mut self, chosen: &Instance, rows: &Rows) -> Verdict {
        let able = self.competitors(rows, &self.lent(rows))?;
        if able.len() > 1 {
            self.marks.hit("queues competed for a slot");
        }
        let weights: BTreeMap<QueueName, u32> =
            able.keys().map(|queue| (queue.clone(), self.weight(queue))).collect();
        let order = self.credit.order(&weights);
        let nexts: Vec<(&QueueName, Level, InstanceId)> = order
            .iter()
            .filter_map(|queue| {
                let (level, id) = self.next_of(queue, able.get(queue)?)?;
                Some((queue, level, id))
            })
            .collect();
        let mut first = nexts.first().ok_or("starts where nothing could")?;
        let row = Self::as_it_waited(instance(rows, &first.2).ok_or("no row")?);
        if self.may_give_way(&row, rows)?
            && let Some(above) = nexts.iter().find(|next| next.1 < first.1)
        {
            self.marks.hit("one that would give way stood aside");
            first = above;
        }
        ensure(first.2 == chosen.instance_id, || {
            format!(
                "a slot of queue {} goes to {}, but it was the turn of {first:?}: {:?} {:?}",
                chosen.queue, chosen.instance_id, self.credit, self.credit_of_levels
            )
        })?;
        self.credit.charge(&weights, &chosen.queue);
        let level = first.1;
        if let Some(heads) = able.get(&chosen.queue)
            && let Some(shares) = self.shares(&chosen.queue, heads)
        {
            if shares.len() > 1 {
                self.marks.hit("levels competed for a slot");
            }
            let credit = self.credit_of_levels.entry(chosen.queue.clone()).or_default();
            credit.charge(&shares, &level);
        }
        Ok(())
    }
}
