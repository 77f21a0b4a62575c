//! Versions that share the cycles of one task (requirement A7; docs/waves.md, rule 16).
//!
//! Which version takes a cycle follows from the definitions and the cycle's label alone, so it is
//! the same for every fire, every edge and after every restart.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::model::cycle::Cycle;
use crate::model::id::TaskId;

/// The groups of versions that share cycles.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    /// Each task that shares, with its group: the lowest version first.
    groups: BTreeMap<TaskId, Vec<TaskId>>,
    /// Tasks whose own triggers rest because a lower version's fire for them, with their share in
    /// per cent.
    takers: BTreeMap<TaskId, u32>,
}

impl Groups {
    /// The versions of a task, with their `rollout`, are now these: `task` is one of them, or was.
    pub(super) fn regroup(
        &mut self,
        task: &TaskId,
        versions: &BTreeMap<u32, (TaskId, Option<u32>)>,
    ) {
        for id in versions.values().map(|(id, _)| id).chain([task]) {
            for member in self.groups.remove(id).unwrap_or_default() {
                self.groups.remove(&member);
                self.takers.remove(&member);
            }
        }
        let mut group: Vec<TaskId> = Vec::new();
        for (id, rollout) in versions.values() {
            match rollout {
                Some(share) if !group.is_empty() => {
                    self.takers.insert(id.clone(), *share);
                }
                Some(_) | None => self.close(&std::mem::take(&mut group)),
            }
            group.push(id.clone());
        }
        self.close(&group);
    }

    fn close(&mut self, group: &[TaskId]) {
        if group.len() < 2 {
            return;
        }
        for member in group {
            self.groups.insert(member.clone(), group.to_vec());
        }
    }

    /// All groups, each once.
    pub(super) fn all(&self) -> impl Iterator<Item = &[TaskId]> {
        let first = |(id, group): &(&TaskId, &Vec<TaskId>)| group.first() == Some(*id);
        self.groups.iter().filter(first).map(|(_, group)| group.as_slice())
    }

    /// The versions that share this one's cycles, itself included, the lowest first; only itself
    /// if there are none.
    pub(super) fn of<'a>(&'a self, task: &'a TaskId) -> &'a [TaskId] {
        self.groups.get(task).map_or(std::slice::from_ref(task), Vec::as_slice)
    }

    /// The lowest version of the group; `None`: it shares with nobody.
    pub(super) fn leader(&self, task: &TaskId) -> Option<&TaskId> {
        self.groups.get(task)?.first()
    }

    /// The version whose cycles this one takes its share of; `None`: it is the lowest, or alone.
    pub(super) fn lower(&self, task: &TaskId) -> Option<&TaskId> {
        let group = self.groups.get(task)?;
        let at = group.iter().position(|member| member == task)?;
        group.get(at.checked_sub(1)?)
    }

    /// Whether a lower version's triggers fire for this one, so that its own rest.
    pub(super) fn is_taker(&self, task: &TaskId) -> bool {
        self.takers.contains_key(task)
    }

    /// The version that takes a cycle: each higher one takes its share of the next lower one's.
    pub(super) fn choose<'a>(&'a self, task: &'a TaskId, cycle: &Cycle) -> &'a TaskId {
        let Some(group) = self.groups.get(task) else { return task };
        let takes = |member: &&TaskId| {
            self.takers.get(*member).is_some_and(|share| percentile(member, cycle.label()) < *share)
        };
        let taken = group.iter().skip(1).take_while(takes).last();
        taken.or_else(|| group.first()).unwrap_or(task)
    }
}

/// Where a cycle falls for a version, 0..=99, evenly over cycles.
fn percentile(version: &TaskId, cycle: &str) -> u32 {
    let digest = Sha256::digest(format!("{version}\0{cycle}").as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
    u32::try_from(number % 100).unwrap_or(0)
}
