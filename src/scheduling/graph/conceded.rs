//! What does not count for now of definitions that are in force, because with it the set would not
//! be sound and nothing that changed could be put back.

use std::collections::BTreeMap;

use super::{Fault, Graph};
use crate::model::id::TaskId;

/// What a set can do without, where a fault has nobody who could be put back.
#[derive(Debug, Clone, Default)]
pub(super) struct Conceded {
    /// Base ids whose versions share nothing, with why.
    shares: BTreeMap<String, String>,
    /// Derived tasks that have the unit DAY although only runs reach them, with why.
    runs: BTreeMap<TaskId, String>,
}

impl Conceded {
    /// Whether a version shares no cycles for now.
    pub(super) fn is_alone(&self, version: &TaskId) -> bool {
        self.shares.contains_key(version.base())
    }

    /// Whether a task's unit is DAY for now.
    pub(super) fn is_day(&self, task: &TaskId) -> bool {
        self.runs.contains_key(task)
    }
}

impl Graph {
    /// Gives up what some faults hang on, where nothing that changed can be put back (what changed
    /// is gone, say): versions share no cycles, or a run with two roots is a day. Says whether there
    /// was anything to give up; it holds until [`Graph::reclaim`].
    pub(in crate::scheduling) fn concede(&mut self, faults: &[Fault]) -> bool {
        let mut is_any = false;
        for fault in faults {
            if let Some(task) = &fault.ambiguous {
                is_any |= self.conceded.runs.insert(task.clone(), fault.text.clone()).is_none();
                continue;
            }
            for suspect in &fault.suspects {
                if self.rollouts.leader(suspect).is_some() {
                    self.conceded.shares.insert(suspect.base().to_owned(), fault.text.clone());
                    self.rollouts.regroup(suspect, &self.versions(suspect));
                    is_any = true;
                }
            }
        }
        is_any
    }

    /// What was given up gets another chance.
    pub(in crate::scheduling) fn reclaim(&mut self) {
        let Conceded { shares, runs: _ } = std::mem::take(&mut self.conceded);
        for base in shares.into_keys() {
            let member = self.places.keys().find(|id| id.base() == base).cloned();
            if let Some(member) = member {
                self.rollouts.regroup(&member, &self.versions(&member));
            }
        }
    }

    /// What is given up: the task, the key that does not count, and why.
    pub(in crate::scheduling) fn conceded(
        &self,
    ) -> impl Iterator<Item = (&TaskId, &'static str, String)> {
        let Conceded { shares, runs } = &self.conceded;
        let nodes = self.edges.node_weights().filter(|_| !shares.is_empty());
        let shares = nodes.filter_map(|node| {
            let why = shares.get(node.id.base())?;
            node.said.as_ref()?.share??;
            Some((&node.id, "rollout", format!("does not count: sharing cycles {why}")))
        });
        let runs = runs.iter().map(|(task, why)| (task, "cycle", format!("is DAY for now: {why}")));
        shares.chain(runs)
    }
}
