//! The task registry (任务注册表): the sole authority on which definitions are in force.
//!
//! It knows nothing of when anything runs. What a reading of the directory, or a rollback, means
//! for the set in force is computed in `reading`; `lifecycle::definitions` carries that out through
//! a turn.

mod files;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use self::files::Files;
pub(super) use self::files::Offer;
pub(super) use self::reading::Plan;
use super::graph::Graph;
use super::rollout;
use crate::model::cycle::CycleRule;
use crate::model::event::SpecError;
use crate::model::id::TaskId;
use crate::model::record::{Revision, TaskRow};
use crate::model::spec::TaskSpec;
use crate::model::view::TaskStatus;

/// The definitions in force, and what people decided about tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct Registry {
    rows: BTreeMap<TaskId, TaskRow>,
    /// The revisions in use: in force, held off by a pin, or followed by an instance. Others are
    /// in the store only.
    revisions: BTreeMap<(TaskId, u64), Revision>,
    in_force: BTreeMap<TaskId, Arc<TaskSpec>>,
    /// The tasks in force that each file defines, or did last.
    held: BTreeMap<String, BTreeSet<TaskId>>,
    graph: Graph,
    files: Files,
    /// Faults of the set as a whole, such as two files with one id, by the task they refuse.
    set_errors: BTreeMap<TaskId, Vec<SpecError>>,
    /// Tasks that no file defines so far, while parts of a reading are still to come.
    undecided: BTreeSet<TaskId>,
    /// Those of the faults that have been told.
    told: BTreeSet<SpecError>,
    /// The directory cannot be read.
    unreadable: Option<String>,
}

impl Registry {
    // Reading

    pub(super) fn row(&self, task: &TaskId) -> Option<&TaskRow> {
        self.rows.get(task)
    }

    /// The rows of all tasks that ever were.
    pub(super) fn rows(&self) -> impl Iterator<Item = &TaskRow> {
        self.rows.values()
    }

    /// The definition in force.
    pub(super) fn spec(&self, task: &TaskId) -> Option<&Arc<TaskSpec>> {
        self.in_force.get(task)
    }

    /// A revision in use.
    pub(super) fn revision(&self, task: &TaskId, revision: u64) -> Option<&Revision> {
        self.revisions.get(&(task.clone(), revision))
    }

    /// The revisions in use.
    pub(super) fn revisions(&self) -> impl Iterator<Item = &Revision> {
        self.revisions.values()
    }

    /// All definitions in force.
    pub(super) fn specs(&self) -> impl Iterator<Item = &Arc<TaskSpec>> {
        self.in_force.values()
    }

    /// What the file that holds a task says of it now; `None`: nothing that counts.
    pub(super) fn offered(&self, task: &TaskId) -> Option<&Arc<TaskSpec>> {
        self.files.offer(task, &self.row(task)?.file)
    }

    /// The versions in force of a task.
    pub(super) fn versions(&self, base: &str) -> impl Iterator<Item = &Arc<TaskSpec>> {
        let prefix = format!("{base}.v");
        let of_base =
            move |id: &TaskId| id.as_str().strip_prefix(base).is_some_and(|v| v.starts_with(".v"));
        self.in_force
            .range::<str, _>((Included(prefix.as_str()), Unbounded))
            .map(|(_, spec)| spec)
            .take_while(move |spec| of_base(&spec.task_id))
            .filter(move |spec| spec.task_id.base() == base)
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Versions that share cycles.
    pub(super) fn rollouts(&self) -> &rollout::Groups {
        self.graph.rollouts()
    }

    /// The cycle rule in effect; derived tasks take theirs from their roots.
    pub(super) fn rule(&self, task: &TaskId) -> CycleRule {
        self.graph.rule(task)
    }

    /// Upstreams of a task that no file defines.
    pub(super) fn unresolved(&self, spec: &TaskSpec) -> Vec<TaskId> {
        spec.depends_on
            .iter()
            .map(|d| &d.task_id)
            .filter(|id| !self.in_force.contains_key(*id))
            .cloned()
            .collect()
    }

    pub(super) fn status(&self, spec: &TaskSpec) -> TaskStatus {
        if !spec.enabled {
            TaskStatus::Disabled
        } else if !self.unresolved(spec).is_empty() {
            TaskStatus::Unresolved
        } else {
            match self.row(&spec.task_id) {
                Some(row) if row.paused.is_some() => TaskStatus::Paused,
                Some(row) if row.pinned.is_some() => TaskStatus::Pinned,
                Some(_) | None => TaskStatus::Active,
            }
        }
    }

    /// Every fault of the directory as it is now.
    pub(super) fn errors(&self) -> Vec<SpecError> {
        let of_files = self.files.errors().chain(self.set_errors.values().flatten()).cloned();
        of_files.chain(self.conceded()).collect()
    }

    /// Keys that do not count for now, because the set would not be sound with them.
    fn conceded(&self) -> impl Iterator<Item = SpecError> {
        self.graph.conceded().map(|(task, key, what)| {
            let file = self.row(task).map(|row| row.file.clone()).unwrap_or_default();
            let (line, column) = self.files.place(task, &file, "cycle");
            let message = format!("the {key} of {task} {what}");
            SpecError { file, line, column, path: key.to_owned(), message }
        })
    }

    /// What is wrong with the file that holds a task, and with the task in the set.
    pub(super) fn errors_about(&self, task: &TaskId) -> Vec<SpecError> {
        let file = self.row(task).map(|row| row.file.as_str()).unwrap_or_default();
        let of_set = self.set_errors.get(task).into_iter().flatten();
        let of_set = of_set.filter(|error| error.file == file);
        self.files.errors_of(file).iter().chain(of_set).cloned().collect()
    }

    /// The faults of the set that name one of these files.
    pub(super) fn set_errors_of(
        &self,
        files: &BTreeSet<String>,
    ) -> impl Iterator<Item = &SpecError> {
        self.set_errors.values().flatten().filter(|error| files.contains(&error.file))
    }

    pub(super) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// What survives a restart, for comparing a live registry with a rebuilt one.
    pub(super) fn remembered(
        &self,
    ) -> (&BTreeMap<TaskId, TaskRow>, &BTreeMap<TaskId, Arc<TaskSpec>>) {
        (&self.rows, &self.in_force)
    }

    /// The tasks in force that a file defines, or did last.
    pub(super) fn held(&self, file: &str) -> impl Iterator<Item = &TaskId> {
        self.held.get(file).into_iter().flatten()
    }

    // Changing: only through a turn

    pub(super) fn put_revision(&mut self, revision: Revision) {
        self.revisions.insert((revision.task_id.clone(), revision.revision), revision);
    }

    /// Takes a task's row in, and with it what is in force of the task. Its revision must be in;
    /// the graph's edges are the caller's to set.
    pub(super) fn put_row(&mut self, row: TaskRow) {
        let spec =
            row.revision.and_then(|n| self.revision(&row.task_id, n)).map(|r| Arc::clone(&r.spec));
        if let Some(old) =
            self.rows.get(&row.task_id).filter(|old| old.file != row.file || spec.is_none())
        {
            let file = old.file.clone();
            if let Some(held) = self.held.get_mut(&file) {
                held.remove(&row.task_id);
                if held.is_empty() {
                    self.held.remove(&file);
                }
            }
        }
        match spec {
            Some(spec) => {
                self.in_force.insert(row.task_id.clone(), spec);
                self.held.entry(row.file.clone()).or_default().insert(row.task_id.clone());
            }
            None => {
                self.in_force.remove(&row.task_id);
            }
        }
        self.rows.insert(row.task_id.clone(), row);
    }

    /// The rows and revisions of the store, in any order; `followed` are revisions that instances
    /// follow.
    pub(super) fn load(
        &mut self,
        rows: Vec<TaskRow>,
        revisions: Vec<Revision>,
        followed: &BTreeSet<(TaskId, u64)>,
    ) {
        let mut used: BTreeSet<(TaskId, u64)> = followed.clone();
        for row in &rows {
            let held_off = row.pinned.as_ref().map(|pin| pin.revision);
            let numbers = row.revision.into_iter().chain(held_off);
            used.extend(numbers.map(|number| (row.task_id.clone(), number)));
        }
        for revision in revisions {
            let key = (revision.task_id.clone(), revision.revision);
            if used.contains(&key) {
                self.revisions.insert(key, revision);
            }
        }
        rows.into_iter().for_each(|row| self.put_row(row));
        self.graph = Graph::new(&self.in_force);
    }

    /// Lets go of a task's revisions that are no longer in use.
    pub(super) fn forget_unused(&mut self, task: &TaskId, followed: &BTreeSet<u64>) {
        let row = self.rows.get(task);
        let in_force = row.and_then(|row| row.revision);
        let held_off = row.and_then(|row| row.pinned.as_ref()).map(|pin| pin.revision);
        let all = (task.clone(), 0)..=(task.clone(), u64::MAX);
        let unused: Vec<(TaskId, u64)> = self
            .revisions
            .range(all)
            .map(|(key, _)| key)
            .filter(|(_, n)| Some(*n) != in_force && Some(*n) != held_off && !followed.contains(n))
            .cloned()
            .collect();
        for key in unused {
            self.revisions.remove(&key);
        }
    }
}

/// Hash of a definition's stored form.
pub(super) fn hash(spec: &TaskSpec) -> String {
    let text = serde_json::to_vec(spec).unwrap_or_default();
    Sha256::digest(&text).iter().take(16).map(|b| format!("{b:02x}")).collect()
}
