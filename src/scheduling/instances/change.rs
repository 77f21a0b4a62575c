//! How the table's indexes follow a change of an instance: only those that it touches move.

use std::sync::Arc;

use super::InstanceTable;
use super::index::{entry, remove};
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState};

impl InstanceTable {
    /// Puts in an instance that the table does not hold.
    pub(super) fn index(&mut self, i: &Instance) {
        let age = (i.scheduled_time, i.created_seq);
        let dates = self.by_cycle.entry(i.task_id.clone()).or_default();
        let ages = entry(dates, i.cycle.date()).entry(i.cycle.clone()).or_default();
        if let Some((newest, id)) = ages.last_key_value()
            && *newest < age
        {
            // It is the newest no more.
            self.loose.insert(id.clone());
        }
        ages.insert(age, i.instance_id.clone());
        let open_of = self.open_of.entry(i.task_id.clone()).or_default();
        open_of.insert(i.created_seq, i.instance_id.clone());
        self.bind(i);
        self.index_file(i);
    }

    /// Brings the indexes in line with a change of an instance, whose task, cycle and age are always
    /// the same. Says whether it may wait for something else now.
    pub(super) fn reindex(&mut self, old: &Instance, new: &Instance) -> bool {
        let rebound = !Arc::ptr_eq(&old.edges, &new.edges) && old.edges != new.edges;
        if rebound {
            self.unbind(old);
            self.bind(new);
            self.loose.extend(old.edges.iter().filter_map(|e| e.instance_id.clone()));
        }
        if old.awaited_file() != new.awaited_file() {
            self.unindex_file(old);
            self.index_file(new);
        }
        if old.dedup_key != new.dedup_key
            && let Some(key) = &old.dedup_key
        {
            self.forget_key(&(old.task_id.base().to_owned(), key.clone()), &old.instance_id);
        }
        if !new.is_waiting() {
            self.deciding.remove(&new.instance_id);
        }
        rebound || old.is_waiting() != new.is_waiting()
    }

    /// Takes or gives back an instance's `dedupKey`.
    pub(super) fn index_key(&mut self, i: &Instance) {
        let Some(key) = &i.dedup_key else { return };
        let key = (i.task_id.base().to_owned(), key.clone());
        if i.is_open() || i.state == InstanceState::Succeeded {
            // Who came first keeps it; `admit` and the makers of instances ask before.
            self.dedup.entry(key).or_insert_with(|| i.instance_id.clone());
        } else {
            self.forget_key(&key, &i.instance_id);
        }
    }

    fn forget_key(&mut self, key: &(String, String), holder: &InstanceId) {
        if self.dedup.get(key) == Some(holder) {
            self.dedup.remove(key);
        }
    }

    fn index_file(&mut self, i: &Instance) {
        if let Some(path) = i.awaited_file() {
            entry(&mut self.awaiting_file, path).insert(i.instance_id.clone());
        }
    }

    fn unindex_file(&mut self, i: &Instance) {
        if let Some(path) = i.awaited_file() {
            remove(&mut self.awaiting_file, path, |ids| {
                ids.remove(&i.instance_id);
                ids.is_empty()
            });
        }
    }

    pub(super) fn bind(&mut self, i: &Instance) {
        for (at, edge) in i.edges.iter().enumerate() {
            if let Some(upstream) = &edge.instance_id {
                let bound = self.bound_to.entry(upstream.clone()).or_default();
                bound.insert((i.instance_id.clone(), at));
            }
        }
    }

    fn unbind(&mut self, i: &Instance) {
        for (at, edge) in i.edges.iter().enumerate() {
            if let Some(upstream) = &edge.instance_id {
                remove(&mut self.bound_to, upstream, |bound| {
                    bound.remove(&(i.instance_id.clone(), at));
                    bound.is_empty()
                });
            }
        }
    }

    /// Notes which edge of a waiting instance decided.
    pub(in crate::scheduling) fn decides(&mut self, id: &InstanceId, edge: Option<usize>) {
        match edge {
            Some(edge) => self.deciding.insert(id.clone(), edge),
            None => self.deciding.remove(id),
        };
    }

    /// Takes all of an instance's entries out but its place among its cycle's ages and its key.
    pub(super) fn unindex_open(&mut self, i: &Instance) {
        remove(&mut self.open_of, &i.task_id, |m| {
            m.remove(&i.created_seq);
            m.is_empty()
        });
        self.unbind(i);
        self.unindex_file(i);
    }
}
