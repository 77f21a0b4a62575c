//! The task registry (任务注册表): the sole authority on which definitions are in force.
//!
//! It knows nothing of when anything runs. What a reading of the directory means for the set in
//! force is computed here as a [`Plan`], without changing anything; `lifecycle::definitions`
//! carries the plan out through a turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::graph::{self, Graph};
use crate::model::cycle::CycleRule;
use crate::model::event::{Definitions, SpecError, SpecFile};
use crate::model::id::TaskId;
use crate::model::record::{Revision, TaskRow};
use crate::model::spec::TaskSpec;
use crate::model::view::TaskStatus;

/// The definitions, current and earlier, and what people decided about tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct Registry {
    rows: BTreeMap<TaskId, TaskRow>,
    revisions: BTreeMap<(TaskId, u64), Revision>,
    in_force: BTreeMap<TaskId, Arc<TaskSpec>>,
    graph: Graph,
    /// What each file of the directory says now; observed, read anew at every start.
    files: BTreeMap<String, SpecFile>,
    /// The files that the directory holds, those included that could not be read yet.
    present: BTreeSet<String>,
    /// Faults of the set as a whole, such as two files with one id.
    set_errors: Vec<SpecError>,
    /// The directory cannot be read.
    unreadable: Option<String>,
}

/// Definitions by id, each with its file.
type Wanted = BTreeMap<TaskId, (Arc<TaskSpec>, String)>;

/// What a reading of the directory changes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// New contents in force: definition, its file, its hash.
    pub(super) loaded: Vec<(Arc<TaskSpec>, String, String)>,
    /// Definitions that only moved to another file.
    pub(super) moved: Vec<(TaskId, String)>,
    /// Definitions that go.
    pub(super) removed: Vec<TaskId>,
    /// Faults that were not there before.
    pub(super) refused: Vec<SpecError>,
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

    /// The definition of a revision, in force or not.
    pub(super) fn revision(&self, task: &TaskId, revision: u64) -> Option<&Revision> {
        self.revisions.get(&(task.clone(), revision))
    }

    /// All definitions in force.
    pub(super) fn specs(&self) -> impl Iterator<Item = &Arc<TaskSpec>> {
        self.in_force.values()
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
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
        let files = self.files.values().flat_map(|f| f.errors.iter().cloned());
        files.chain(self.set_errors.iter().cloned()).collect()
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

    // Changing: only through a turn

    pub(super) fn put_revision(&mut self, revision: Revision) {
        self.revisions.insert((revision.task_id.clone(), revision.revision), revision);
    }

    pub(super) fn put_row(&mut self, row: TaskRow) {
        self.rows.insert(row.task_id.clone(), row);
    }

    /// Derives the set in force and its graph from rows and revisions.
    pub(super) fn rebuild(&mut self) {
        self.in_force = self
            .rows
            .values()
            .filter_map(|row| {
                let revision = self.revisions.get(&(row.task_id.clone(), row.revision?))?;
                Some((row.task_id.clone(), Arc::clone(&revision.spec)))
            })
            .collect();
        self.graph = Graph::new(&self.in_force);
    }

    /// Takes note of what the files say and computes what that changes.
    pub(super) fn read(&mut self, read: Definitions) -> Plan {
        self.unreadable = read.unreadable;
        if self.unreadable.is_some() {
            return Plan::default();
        }
        let before: BTreeSet<SpecError> = self.errors().into_iter().collect();
        if let Some(present) = read.present {
            self.present = present.into_iter().collect();
        }
        for path in &read.removed {
            self.present.remove(path);
        }
        for file in read.changed {
            self.present.insert(file.path.clone());
            self.files.insert(file.path.clone(), file);
        }
        let present = &self.present;
        self.files.retain(|path, _| present.contains(path));
        let mut plan = self.plan();
        plan.refused = self.errors().into_iter().filter(|e| !before.contains(e)).collect();
        plan
    }

    /// The set that the files ask for, cut down to what is sound.
    fn plan(&mut self) -> Plan {
        let mut errors = Vec::new();
        let mut wanted = self.wanted(&mut errors);
        self.drop_unsound(&mut wanted, &mut errors);
        self.set_errors = errors;
        let mut plan = Plan::default();
        for (id, (spec, file)) in &wanted {
            let row = self.rows.get(id).filter(|r| r.revision.is_some());
            if self.in_force.get(id) == Some(spec) {
                if row.is_some_and(|r| r.file != *file) {
                    plan.moved.push((id.clone(), file.clone()));
                }
            } else {
                plan.loaded.push((Arc::clone(spec), file.clone(), hash(spec)));
            }
        }
        plan.removed =
            self.in_force.keys().filter(|id| !wanted.contains_key(*id)).cloned().collect();
        plan
    }

    /// Per id the definition that counts: of two files, the one in force; else the first by name.
    fn wanted(&self, errors: &mut Vec<SpecError>) -> Wanted {
        let mut offers: BTreeMap<TaskId, Vec<(Arc<TaskSpec>, String)>> = BTreeMap::new();
        for (path, file) in &self.files {
            if file.errors.is_empty() {
                for spec in &file.specs {
                    let offer = (Arc::clone(spec), path.clone());
                    offers.entry(spec.task_id.clone()).or_default().push(offer);
                }
            }
        }
        // A file that is broken, or is there but was being written when it was read, keeps what it
        // defined last.
        for (id, spec) in &self.in_force {
            let Some(row) = self.rows.get(id) else { continue };
            let is_unread = !self.files.contains_key(&row.file);
            let is_broken = self.files.get(&row.file).is_some_and(|f| !f.errors.is_empty());
            if is_broken || (is_unread && self.present.contains(&row.file)) {
                offers.entry(id.clone()).or_default().push((Arc::clone(spec), row.file.clone()));
            }
        }
        let mut wanted = BTreeMap::new();
        for (id, offers) in offers {
            let held = self.rows.get(&id).filter(|r| r.revision.is_some()).map(|r| &r.file);
            let best = offers.iter().position(|(_, file)| Some(file) == held).unwrap_or(0);
            let winner = offers[best].1.clone();
            for (at, (_, file)) in offers.iter().enumerate() {
                if at != best {
                    errors.push(set_error(
                        file,
                        "taskId",
                        format!("task {id} is already defined in {winner}, which stays in force; give this one another id or remove one of the two"),
                    ));
                }
            }
            wanted.insert(id, offers[best].clone());
        }
        wanted
    }

    /// Puts back, or leaves out, what would close a cycle or make a RUN task ambiguous.
    ///
    /// The set in force is sound, so whatever is wrong comes from a definition that changed: only
    /// such ones are put back, one fault after the other, and a good one is never touched.
    fn drop_unsound(&self, wanted: &mut Wanted, errors: &mut Vec<SpecError>) {
        loop {
            let specs: BTreeMap<TaskId, Arc<TaskSpec>> =
                wanted.iter().map(|(id, (spec, _))| (id.clone(), Arc::clone(spec))).collect();
            let Some(Fault { suspects, text, all }) = fault(&specs) else { return };
            let changed = suspects.into_iter().filter(|id| self.has_changed(wanted, id));
            let culprits: BTreeSet<TaskId> =
                changed.take(if all { usize::MAX } else { 1 }).collect();
            if culprits.is_empty() {
                return;
            }
            for id in culprits {
                let Some((_, file)) = wanted.remove(&id) else { continue };
                errors.push(set_error(&file, "dependsOn", text.clone()));
                if let Some(old) = self.in_force.get(&id) {
                    wanted.insert(id, (Arc::clone(old), file));
                }
            }
        }
    }

    fn has_changed(&self, wanted: &Wanted, id: &TaskId) -> bool {
        wanted.get(id).map(|(spec, _)| spec) != self.in_force.get(id)
    }
}

/// What is wrong with a set.
struct Fault {
    /// Definitions that can be to blame, the likeliest first.
    suspects: Vec<TaskId>,
    text: String,
    /// All of them that changed are to blame, not only the first.
    all: bool,
}

/// The first fault of a set.
fn fault(specs: &BTreeMap<TaskId, Arc<TaskSpec>>) -> Option<Fault> {
    if let Some(ring) = graph::cycles(specs).into_iter().next() {
        let path: Vec<&str> = ring.iter().map(TaskId::as_str).collect();
        let text = format!("closes the cycle {}; the graph must have none", path.join(" -> "));
        return Some(Fault { suspects: ring, text, all: true });
    }
    let graph = Graph::new(specs);
    let (id, (a, b)) = graph.ambiguous().iter().min_by_key(|(id, _)| graph.position(id))?;
    let text = format!(
        "task {id} has the unit RUN but both {a} and {b} start runs; give it cycle: {{unit: DAY}}"
    );
    Some(Fault { suspects: above(specs, id), text, all: false })
}

/// A task and all that it depends on, near ones first.
fn above(specs: &BTreeMap<TaskId, Arc<TaskSpec>>, id: &TaskId) -> Vec<TaskId> {
    let mut found = vec![id.clone()];
    let mut at = 0;
    while let Some(id) = found.get(at) {
        let edges = specs.get(id).into_iter().flat_map(|spec| &spec.depends_on);
        for upstream in edges.map(|d| &d.task_id) {
            if !found.contains(upstream) {
                found.push(upstream.clone());
            }
        }
        at += 1;
    }
    found
}

fn set_error(file: &str, path: &str, message: String) -> SpecError {
    SpecError { file: file.to_owned(), line: 0, column: 0, path: path.to_owned(), message }
}

/// Hash of a definition's stored form.
fn hash(spec: &TaskSpec) -> String {
    let text = serde_json::to_vec(spec).unwrap_or_default();
    Sha256::digest(&text).iter().take(16).map(|b| format!("{b:02x}")).collect()
}
