//! Shares of the queues: smooth weighted round robin, as nginx does it, written out once more
//! (design, 'Order'). It begins anew with each daemon.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, Instance, Rows, Target, Verdict, ensure, instance};

impl Checker {
    fn weight(&self, queue: &str) -> i64 {
        let known = self.settings.queues.iter().find(|q| q.name.as_str() == queue);
        known.map_or(1, |q| i64::from(q.weight))
    }

    /// Queues that are open and in which something waits; and of them those where it could start.
    fn competitors(&self, rows: &Rows) -> Result<(BTreeSet<String>, BTreeSet<String>), String> {
        let (mut open, mut able) = (BTreeSet::new(), BTreeSet::new());
        for id in &self.ready {
            let Some(row) = instance(rows, id) else { continue };
            let row = Self::as_it_waited(row);
            let held = [Target::Queue(row.queue.clone()), Target::Instance(id.clone())];
            let max = self.settings.queues.iter().find(|q| q.name == row.queue);
            let running = self.running(|s| s.queue == row.queue.as_str());
            let full = max.and_then(|q| q.max_running).is_some_and(|max| running >= max);
            if full || held.iter().any(|target| self.paused.contains(target)) {
                continue;
            }
            let queue = row.queue.to_string();
            let spec = self.spec(rows, &row)?;
            let starts = self.held(&row, &spec).is_none() && !self.stands_behind(&row, rows)?;
            if starts {
                able.insert(queue.clone());
            }
            open.insert(queue);
        }
        Ok((open, able))
    }

    /// The slot goes to the queue whose turn it is; of a queue in which nothing can start the turn
    /// passes without a gain.
    pub(super) fn is_its_turn(&mut self, chosen: &Instance, rows: &Rows) -> Verdict {
        let (open, able) = self.competitors(rows)?;
        if able.len() > 1 {
            self.marks.hit("queues competed for a slot");
        }
        let standing = |name: &String| {
            let credit = self.credit.get(name).copied().unwrap_or(0);
            (std::cmp::Reverse(credit + self.weight(name)), name.clone())
        };
        let queue = chosen.queue.to_string();
        let first = able.iter().min_by_key(|name| standing(name));
        ensure(first == Some(&queue), || {
            format!(
                "a slot goes to queue {queue}, but it was the turn of {first:?}: {:?}",
                self.credit
            )
        })?;
        let mine = standing(&queue);
        let others: Vec<String> = open.into_iter().filter(|name| standing(name) >= mine).collect();
        let total: i64 = others.iter().map(|name| self.weight(name)).sum();
        let before = std::mem::take(&mut self.credit);
        let gains = others.into_iter().map(|name| {
            let credit = before.get(&name).copied().unwrap_or(0) + self.weight(&name);
            (name, credit)
        });
        let mut credit: BTreeMap<String, i64> = gains.collect();
        credit.entry(queue).and_modify(|credit| *credit -= total);
        self.credit = credit;
        Ok(())
    }
}
