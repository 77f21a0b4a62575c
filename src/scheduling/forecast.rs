//! What taking some files into the spec directory would change (`schedctl plan`). Nothing here
//! changes anything: the reading is done on a copy of the registry.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::registry::{Plan, Registry};
use super::state::State;
use crate::model::event::{Definitions, SpecFile};
use crate::model::id::{InstanceId, TaskId};
use crate::model::plan::{PlanView, TaskChange, TaskPlan, differences};
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;

/// What these files would change; `whole`: they would be all that the directory holds.
pub(super) fn plan(state: &State, now: Timestamp, files: Vec<SpecFile>, whole: bool) -> PlanView {
    let mut after = state.registry.clone();
    let warnings = files.iter().flat_map(|file| &file.warnings).cloned().collect();
    let present = whole.then(|| files.iter().map(|file| file.path.clone()).collect());
    let paths: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
    let faults = files.iter().flat_map(|file| &file.errors).cloned();
    let mut errors: BTreeSet<_> = faults.collect();
    let read = Definitions { changed: files, present, ..Definitions::default() };
    let plan = after.read(read);
    errors.extend(plan.refused.iter().cloned());
    // A fault of the set that these files share is theirs too, though it was told before.
    errors.extend(after.set_errors_of(&paths).cloned());
    let future = Future { state, now, after: &after, gone: plan.removed.iter().collect() };
    let mut tasks = future.tasks(&plan);
    tasks.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    PlanView { tasks, errors: errors.into_iter().collect(), warnings }
}

struct Future<'a> {
    state: &'a State,
    now: Timestamp,
    after: &'a Registry,
    gone: BTreeSet<&'a TaskId>,
}

impl Future<'_> {
    fn tasks(&self, plan: &Plan) -> Vec<TaskPlan> {
        let mut tasks = Vec::new();
        let new: BTreeSet<&TaskId> = plan.loaded.iter().map(|offer| &offer.spec.task_id).collect();
        for offer in &plan.loaded {
            let task = &offer.spec.task_id;
            let before = self.state.registry.spec(task);
            let change = if before.is_some() { TaskChange::Changed } else { TaskChange::Added };
            let mut entry = self.entry(task, change, &offer.file, before, Some(&offer.spec));
            let unknown = |id: &&TaskId| {
                !new.contains(id)
                    && (self.state.registry.spec(id).is_none() || self.gone.contains(id))
            };
            let upstreams = offer.spec.depends_on.iter().map(|edge| &edge.task_id);
            entry.unresolved = upstreams.filter(unknown).cloned().collect();
            tasks.push(entry);
        }
        for task in &plan.removed {
            let before = self.state.registry.spec(task);
            let file = self.file(task);
            let mut entry = self.entry(task, TaskChange::Removed, &file, before, None);
            let below = self.state.registry.graph().downstream(task);
            let stay =
                below.into_iter().filter(|id| !self.gone.contains(id) && self.depends(id, task));
            entry.broken_dependents = stay.cloned().collect();
            tasks.push(entry);
        }
        for (task, file) in &plan.moved {
            let spec = self.state.registry.spec(task);
            tasks.push(self.entry(task, TaskChange::Moved, file, spec, spec));
        }
        for task in &plan.ignored {
            let spec = self.state.registry.spec(task);
            tasks.push(self.entry(task, TaskChange::Ignored, &self.file(task), spec, spec));
        }
        tasks
    }

    fn entry(
        &self,
        task: &TaskId,
        change: TaskChange,
        file: &str,
        before: Option<&Arc<TaskSpec>>,
        after: Option<&Arc<TaskSpec>>,
    ) -> TaskPlan {
        let changes = match (before, after) {
            (Some(before), Some(after)) if before != after => {
                differences(&json(before), &json(after))
            }
            _ => Vec::new(),
        };
        TaskPlan {
            task_id: task.clone(),
            change,
            file: file.to_owned(),
            changes,
            next_fire_time: before.and_then(|spec| self.next_fire(spec, &self.state.registry)),
            next_fire_time_after: after.and_then(|spec| self.next_fire(spec, self.after)),
            unresolved: Vec::new(),
            broken_dependents: Vec::new(),
            instances: self.instances(task, change),
        }
    }

    /// The next time one of its own triggers fires.
    fn next_fire(&self, spec: &TaskSpec, registry: &Registry) -> Option<Timestamp> {
        if !spec.enabled || registry.rollouts().is_taker(&spec.task_id) {
            return None;
        }
        spec.triggers.iter().filter_map(|t| self.state.next_after(spec, t, self.now)).min()
    }

    /// Open instances that a change reaches: a new definition those that have not started, a
    /// removal all of them.
    fn instances(&self, task: &TaskId, change: TaskChange) -> Vec<InstanceId> {
        let open = self.state.instances.open_of(task);
        let reached = open.filter(|i| match change {
            TaskChange::Changed => i.attempt == 0,
            TaskChange::Removed => true,
            TaskChange::Added | TaskChange::Moved | TaskChange::Ignored => false,
        });
        reached.map(|i| i.instance_id.clone()).collect()
    }

    fn file(&self, task: &TaskId) -> String {
        self.state.registry.row(task).map(|row| row.file.clone()).unwrap_or_default()
    }

    /// Whether a task's definition, as it would be, names another in `dependsOn`.
    fn depends(&self, task: &TaskId, upstream: &TaskId) -> bool {
        let offered = self.after.offered(task).or_else(|| self.state.registry.spec(task));
        offered.is_some_and(|spec| spec.depends_on.iter().any(|edge| edge.task_id == *upstream))
    }
}

fn json(spec: &TaskSpec) -> Value {
    serde_json::to_value(spec).unwrap_or_default()
}
