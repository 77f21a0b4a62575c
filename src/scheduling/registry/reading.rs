//! What a reading of the spec directory changes in the set in force, cut down to what is sound.
//!
//! Only tasks that the changed files offered, offer or hold are looked at, so that one file among
//! ten thousand costs what one file costs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::graph::Fault;
use super::files::{Offer, Taken};
use super::{Registry, hash};
use crate::model::event::{Definitions, SpecError};
use crate::model::id::TaskId;
use crate::model::spec::TaskSpec;

/// What a reading of the directory changes.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct Plan {
    /// New contents in force.
    pub(in crate::scheduling) loaded: Vec<Offer>,
    /// Definitions that only moved to another file.
    pub(in crate::scheduling) moved: Vec<(TaskId, String)>,
    /// Definitions that go.
    pub(in crate::scheduling) removed: Vec<TaskId>,
    /// Rollbacks that end, because the file says something new or is gone.
    pub(in crate::scheduling) unpinned: Vec<(TaskId, &'static str)>,
    /// Rolled back tasks whose file changed in no way that counts.
    pub(in crate::scheduling) ignored: Vec<TaskId>,
    /// Faults that were not there before.
    pub(in crate::scheduling) refused: Vec<SpecError>,
    /// Broken files that have another name now: the name before, and the one now.
    renamed: BTreeMap<Arc<str>, Arc<str>>,
    /// More files are to come that may define what seems to be gone.
    is_early: bool,
    /// The set in force is another than when files were refused for its sake.
    is_shaken: bool,
}

/// What the files ask for of one task.
enum Wish {
    /// This definition.
    Define(Offer),
    /// What is in force already, from the file that the row names or another.
    Keep(Option<String>),
    /// None.
    Remove,
}

impl Registry {
    /// Takes note of what the files say and computes what that changes; the graph already has the
    /// edges of what the plan puts in force.
    pub(in crate::scheduling) fn read(&mut self, read: Definitions) -> Plan {
        self.unreadable.clone_from(&read.unreadable);
        if self.unreadable.is_some() {
            return Plan::default();
        }
        let more = read.more;
        // A task that a changed file no longer defines may be defined in one that is still to come.
        let is_early = more && read.removed.is_empty();
        let taken = self.files.take(read);
        let held = self.held_by(&taken);
        let tasks = held.into_iter().chain(taken.tasks).collect();
        let (refused, renamed) = (taken.refused, taken.renamed);
        let plan = Plan { refused, renamed, is_early, ..Plan::default() };
        self.plan(tasks, more, plan)
    }

    /// What the files say of one task, once more, after the set in force was changed otherwise.
    pub(in crate::scheduling) fn read_again(&mut self, task: &TaskId) -> Plan {
        let plan = Plan { is_shaken: true, ..Plan::default() };
        self.plan(BTreeSet::from([task.clone()]), false, plan)
    }

    fn plan(&mut self, mut tasks: BTreeSet<TaskId>, more: bool, mut plan: Plan) -> Plan {
        let mut refused = std::mem::take(&mut self.set_errors);
        tasks.extend(std::mem::take(&mut self.undecided));
        let mut changed: BTreeMap<TaskId, Option<Offer>> = BTreeMap::new();
        self.wishes(&tasks, &mut changed, &mut plan);
        let shakes = |(task, offer): (&TaskId, &Option<Offer>)| {
            self.graph.is_moved_by(task, offer.as_ref().map(|offer| &*offer.spec))
        };
        refused.retain(|task, _| !tasks.contains(task));
        if plan.is_shaken || changed.iter().any(shakes) {
            // What was refused for the sake of the set may be sound now.
            let again = std::mem::take(&mut refused).into_keys().collect();
            self.wishes(&again, &mut changed, &mut plan);
        }
        self.set_errors.extend(refused);
        self.settle(&mut changed, &mut plan);
        for (task, offer) in changed {
            match offer {
                Some(offer) => plan.loaded.push(offer),
                None => plan.removed.push(task),
            }
        }
        if !more {
            // Between the parts of one reading two files may seem to have one id.
            let of_set = self.set_errors.values().flatten().cloned();
            let now: BTreeSet<SpecError> = of_set.chain(self.conceded()).collect();
            plan.refused.extend(now.difference(&self.told).cloned());
            self.told = now;
        }
        plan
    }

    fn wishes(
        &mut self,
        tasks: &BTreeSet<TaskId>,
        changed: &mut BTreeMap<TaskId, Option<Offer>>,
        plan: &mut Plan,
    ) {
        for task in tasks {
            match self.wish(task, plan) {
                Wish::Define(offer) => {
                    changed.insert(task.clone(), Some(offer));
                }
                Wish::Keep(Some(file)) => plan.moved.push((task.clone(), file)),
                Wish::Keep(None) => {}
                Wish::Remove => {
                    changed.insert(task.clone(), None);
                }
            }
        }
    }

    /// The tasks in force whose files a reading touched, or whose files are not there.
    fn held_by(&self, taken: &Taken) -> Vec<TaskId> {
        let touched = taken.files.iter().flat_map(|file| self.held(file)).cloned();
        let gone = self.held.iter().filter(|(file, _)| taken.is_list_new && !self.files.has(file));
        touched.chain(gone.flat_map(|(_, tasks)| tasks).cloned()).collect()
    }

    /// Of the files that offer a task, the one that holds it counts; else the first by name.
    fn wish(&mut self, task: &TaskId, plan: &mut Plan) -> Wish {
        let row = self.rows.get(task).filter(|row| row.revision.is_some()).cloned();
        let mut offers = self.files.offers(task);
        // A file that is broken, or is there but was being written when it was read, keeps what it
        // defined last.
        let mute = row.as_ref().filter(|row| self.files.is_mute(&row.file));
        let keeper = mute.map(|row| row.file.clone());
        let at = row.as_ref().and_then(|row| offers.iter().position(|o| *o.file == *row.file));
        let best = if keeper.is_some() || offers.is_empty() {
            None
        } else {
            Some(offers.remove(at.unwrap_or(0)))
        };
        let winner = keeper.clone().or_else(|| best.as_ref().map(|o| o.file.to_string()));
        if let Some(winner) = winner {
            for loser in &offers {
                let message = format!(
                    "task {task} is already defined in {winner}, which stays in force; give this \
                     one another id or remove one of the two"
                );
                self.refuse(task, &loser.file, "taskId", message);
            }
        }
        let Some(row) = row else {
            return best.map_or(Wish::Keep(None), Wish::Define);
        };
        let Some(best) = best else {
            if keeper.is_some() {
                return Wish::Keep(None);
            }
            if let Some(file) = plan.renamed.get(row.file.as_str()) {
                return Wish::Keep(Some(file.to_string()));
            }
            if plan.is_early {
                self.undecided.insert(task.clone());
                return Wish::Keep(None);
            }
            if row.pinned.is_some() {
                plan.unpinned.push((task.clone(), "its file is gone"));
            }
            return Wish::Remove;
        };
        let moved = (*best.file != *row.file).then(|| best.file.to_string());
        if let Some(pin) = &row.pinned {
            // By the definition first: another version of the program may hash it otherwise.
            let held_off = self.revision(task, pin.revision);
            let is_held_off = held_off.is_some_and(|held_off| held_off.spec == best.spec);
            if is_held_off || pin.ignored == hash(&best.spec) {
                plan.ignored.push(task.clone());
                return Wish::Keep(moved);
            }
            plan.unpinned.push((task.clone(), "its file changed"));
        }
        match self.in_force.get(task) {
            Some(spec) if *spec == best.spec => {
                let spec = Arc::clone(spec);
                self.files.share(&best.file, &spec);
                Wish::Keep(moved)
            }
            Some(_) | None => Wish::Define(best),
        }
    }

    /// Brings the graph in line and puts back, or leaves out, what would close a cycle or make a
    /// RUN task ambiguous.
    ///
    /// The set in force is sound, so whatever is wrong comes from a definition that changed: only
    /// such ones are put back, one fault after the other, and a good one is never touched.
    fn settle(&mut self, changed: &mut BTreeMap<TaskId, Option<Offer>>, plan: &mut Plan) {
        let graph = &mut self.graph;
        let moves = |(task, offer): &(&TaskId, &Option<Offer>)| {
            graph.set(task, offer.as_ref().map(|offer| &*offer.spec))
        };
        let mut moved: BTreeSet<TaskId> =
            changed.iter().filter(moves).map(|(task, _)| task.clone()).collect();
        if moved.is_empty() {
            return;
        }
        self.graph.reclaim();
        loop {
            let faults = self.graph.settle();
            if faults.is_empty() {
                return;
            }
            let mut put_back = BTreeSet::new();
            for fault in &faults {
                for task in culprits(fault, changed, &moved, &put_back) {
                    let Some(Some(offer)) = changed.remove(&task) else { continue };
                    moved.remove(&task);
                    let has_edges = !offer.spec.depends_on.is_empty();
                    let key = if has_edges { "dependsOn" } else { "triggers" };
                    self.refuse(&task, &offer.file, key, fault.text.clone());
                    let old = self.in_force.get(&task).cloned();
                    self.graph.set(&task, old.as_deref());
                    plan.unpinned.retain(|(unpinned, _)| *unpinned != task);
                    put_back.insert(task);
                }
            }
            // What is gone can be to blame too, and cannot be put back.
            if put_back.is_empty() && !self.graph.concede(&faults) {
                return;
            }
        }
    }

    /// What is wrong with the set if a task's definition were this one; nothing is changed.
    pub(in crate::scheduling) fn fault_with(&mut self, spec: &TaskSpec) -> Option<String> {
        let task = &spec.task_id;
        self.graph.set(task, Some(spec));
        let faults = self.graph.settle();
        let old = self.in_force.get(task).cloned();
        self.graph.set(task, old.as_deref());
        // The set in force is sound.
        let _none = self.graph.settle();
        faults.into_iter().next().map(|fault| fault.text)
    }

    /// Gives the graph the edges of a definition that is about to be in force and was found sound.
    pub(in crate::scheduling) fn place(&mut self, spec: &TaskSpec) {
        self.graph.set(&spec.task_id, Some(spec));
        let _none = self.graph.settle();
    }

    fn refuse(&mut self, task: &TaskId, file: &str, path: &str, message: String) {
        let (line, column) = self.files.place(task, file, path);
        let (file, path) = (file.to_owned(), path.to_owned());
        let error = SpecError { file, line, column, path, message };
        self.set_errors.entry(task.clone()).or_default().push(error);
    }
}

/// The definitions to put back for a fault: those it leads through whose edges changed; else other
/// versions of them, which may share cycles with them only now. None if some of them are back
/// already.
fn culprits(
    fault: &Fault,
    changed: &BTreeMap<TaskId, Option<Offer>>,
    moved: &BTreeSet<TaskId>,
    put_back: &BTreeSet<TaskId>,
) -> BTreeSet<TaskId> {
    if fault.suspects.iter().any(|task| put_back.contains(task)) {
        return BTreeSet::new();
    }
    let is_new =
        |task: &&TaskId| moved.contains(*task) && matches!(changed.get(*task), Some(Some(_)));
    let most = if fault.all { usize::MAX } else { 1 };
    let named: BTreeSet<TaskId> =
        fault.suspects.iter().filter(is_new).take(most).cloned().collect();
    if !named.is_empty() {
        return named;
    }
    let bases: BTreeSet<&str> = fault.suspects.iter().map(TaskId::base).collect();
    changed.keys().filter(is_new).filter(|task| bases.contains(task.base())).cloned().collect()
}
