//! Who waits for the data of whom (docs/waves.md, rule 8): derived from the instances' rows, so that
//! what has to be looked for is known without going through all that wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::instances::InstanceTable;
use crate::model::command::Command;
use crate::model::id::InstanceId;
use crate::model::instance::Instance;
use crate::model::output::Outputs;
use crate::model::spec::DepType;

/// Waits for data, and what has been seen of it.
#[derive(Debug, Clone, Default)]
pub(super) struct DataWaits {
    /// PENDING and BLOCKED instances by the instance that a DATA_READY edge of theirs is bound to.
    waiting: BTreeMap<InstanceId, BTreeSet<InstanceId>>,
    /// Of these upstreams the ones that ended well and whose outputs have not been found.
    wanted: BTreeMap<InstanceId, Arc<Outputs>>,
    /// What the wanted ones lacked when they were last looked at. Observed, not remembered.
    lacks: BTreeMap<InstanceId, Vec<String>>,
    /// Upstreams that became wanted, or ceased to be, since that was last told.
    changed: BTreeSet<InstanceId>,
    /// Upstreams that somebody was told to look for.
    told: BTreeSet<InstanceId>,
}

impl DataWaits {
    /// Brings the waits in line with an instance's new value. `table` may still hold its old one.
    pub(super) fn reindex(
        &mut self,
        table: &InstanceTable,
        old: Option<&Instance>,
        new: &Instance,
    ) {
        let before = old.map(waits_for).unwrap_or_default();
        let after = waits_for(new);
        if before != after {
            for upstream in &before {
                if let Some(waiting) = self.waiting.get_mut(*upstream) {
                    waiting.remove(&new.instance_id);
                    if waiting.is_empty() {
                        self.waiting.remove(*upstream);
                    }
                }
            }
            for upstream in &after {
                let waiting = self.waiting.entry((*upstream).clone()).or_default();
                waiting.insert(new.instance_id.clone());
            }
            for upstream in before.union(&after) {
                self.consider(upstream, table.outputs_of(upstream));
            }
        }
        self.consider(&new.instance_id, new.outputs.as_ref());
    }

    fn consider(&mut self, upstream: &InstanceId, outputs: Option<&Arc<Outputs>>) {
        let due =
            outputs.filter(|outputs| outputs.are_due() && self.waiting.contains_key(upstream));
        let is_news = match due {
            Some(outputs) => self.wanted.insert(upstream.clone(), Arc::clone(outputs)).is_none(),
            None => {
                self.lacks.remove(upstream);
                self.wanted.remove(upstream).is_some()
            }
        };
        if is_news {
            self.changed.insert(upstream.clone());
        }
    }

    /// Instances that wait for the data of this one.
    pub(super) fn waiting_for(&self, upstream: &InstanceId) -> Vec<InstanceId> {
        self.waiting.get(upstream).into_iter().flatten().cloned().collect()
    }

    /// What is looked for of an instance; `None`: nothing.
    pub(super) fn wanted(&self, upstream: &InstanceId) -> Option<&Arc<Outputs>> {
        self.wanted.get(upstream)
    }

    /// What a wanted instance's outputs lack; `None`: they have not been looked at.
    pub(super) fn lacks(&self, upstream: &InstanceId) -> Option<&[String]> {
        self.lacks.get(upstream).map(Vec::as_slice)
    }

    /// Notes what a wanted instance's outputs lack; says whether that is news.
    pub(super) fn note(&mut self, upstream: &InstanceId, lacks: Vec<String>) -> bool {
        let before = self.lacks.insert(upstream.clone(), lacks);
        before.as_ref() != self.lacks.get(upstream)
    }

    /// What whoever looks has to be told since the last call.
    pub(super) fn news(&mut self) -> Vec<Command> {
        let mut news = Vec::new();
        for instance_id in std::mem::take(&mut self.changed) {
            match self.wanted.get(&instance_id) {
                Some(outputs) if self.told.insert(instance_id.clone()) => {
                    let outputs = Arc::clone(outputs);
                    news.push(Command::LookForOutputs { instance_id, outputs });
                }
                Some(_) => {}
                None if self.told.remove(&instance_id) => {
                    news.push(Command::ForgetOutputs { instance_id });
                }
                None => {}
            }
        }
        news
    }

    /// What follows from the rows alone.
    pub(super) fn derived(&self) -> impl PartialEq + '_ {
        (&self.waiting, &self.wanted)
    }
}

/// The instances whose data a waiting instance waits for, or would if they had succeeded.
fn waits_for(i: &Instance) -> BTreeSet<&InstanceId> {
    let edges = i.edges.iter().filter(|e| i.is_waiting() && e.dep_type == DepType::DataReady);
    edges.filter_map(|edge| edge.instance_id.as_ref()).collect()
}
