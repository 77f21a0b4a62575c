//! Where instances stand among those that wait for a slot or hold one, kept with their rows.
//!
//! Four things are derived here, live and while loading alike: what is lent (`inheritance`), the
//! dispatch queue (`queue`), what quotas count (`roster`), and who may be preempted. The order in
//! which a row's change reaches them matters: what was put in with a priority is taken out with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::inheritance::acting;
use super::queue::{Need, Room};
use super::registry::Registry;
use super::roster::Usage;
use super::state::State;
use crate::limits;
use crate::model::id::{ExecutorId, InstanceId, Lease, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::priority::Priority;
use crate::model::settings::Settings;
use crate::model::spec::TaskSpec;

/// Who may be preempted, per executor: the lowest, then the youngest comes last.
pub(super) type Victims = BTreeMap<ExecutorId, BTreeSet<Victim>>;

/// A running attempt that gives up its slot if it has to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Victim {
    pub(super) priority: Priority,
    pub(super) lease: Lease,
    pub(super) instance: InstanceId,
}

/// The quotas, as the dispatch queue asks for them.
pub(super) struct Quotas<'a> {
    pub(super) settings: &'a Settings,
    pub(super) registry: &'a Registry,
    pub(super) usage: &'a Usage,
}

impl Room for Quotas<'_> {
    fn task_is_open(&self, task: &TaskId, max_concurrent: Option<u32>) -> bool {
        let is_paused = self.registry.row(task).is_some_and(|row| row.paused.is_some());
        !is_paused && max_concurrent.is_none_or(|max| self.usage.task(task) < max)
    }

    fn owner_is_open(&self, owner: &str) -> bool {
        let max = self.settings.owner_quota.get(owner);
        max.is_none_or(|max| self.usage.owner(owner) < *max)
    }
}

/// The quotas beside a queue that is being changed: borrows of the state's other fields.
macro_rules! quotas {
    ($state:expr) => {
        Quotas { settings: &$state.settings, registry: &$state.registry, usage: &$state.usage }
    };
}

impl State {
    /// The priority with which an instance takes its place (requirement D5).
    pub(super) fn effective_priority(&self, instance: &Instance) -> Priority {
        self.inheritance.effective(instance)
    }

    /// Brings what is derived here in line with an instance's new value, which the table does not
    /// hold yet.
    pub(super) fn reorder(&mut self, old: Option<&Instance>, new: &Instance) {
        let lent_before = self.inheritance.lent(&new.instance_id);
        let table = &self.instances;
        let changed = self.inheritance.replace(old, new, |id| table.get(id));
        let lent = self.inheritance.lent(&new.instance_id);
        if let Some(old) = old {
            self.leave(old, acting(old.priority, lent_before));
            if old.state == InstanceState::Running {
                self.count(old, false);
            }
        }
        if new.state == InstanceState::Running {
            self.count(new, true);
        }
        if new.state == InstanceState::Running && new.stopping.is_some() {
            self.ending.insert(new.instance_id.clone());
        } else {
            self.ending.remove(&new.instance_id);
        }
        self.enter(new, acting(new.priority, lent));
        for (id, lent_before) in changed {
            if id != new.instance_id {
                self.lent_otherwise(&id, lent_before);
            }
        }
    }

    /// Another instance is lent something else now; its row stays.
    fn lent_otherwise(&mut self, id: &InstanceId, lent_before: Option<Priority>) {
        let Some(i) = self.instances.get(id) else { return };
        let before = acting(i.priority, lent_before);
        let now = self.inheritance.effective(i);
        if before != now && (i.is_queued() || i.state == InstanceState::Running) {
            let i = i.clone();
            self.leave(&i, before);
            self.enter(&i, now);
        }
    }

    fn enter(&mut self, i: &Instance, priority: Priority) {
        let spec = self.spec_of(i);
        if i.is_queued() {
            let settings = &self.settings;
            let need = || spec.as_ref().map(|spec| need(settings, spec)).unwrap_or_default();
            self.queue.insert(i, priority, need, &quotas!(self));
        } else if let Some((executor, victim)) = victim(i, spec.as_ref(), priority) {
            self.victims.entry(executor).or_default().insert(victim);
        }
    }

    fn leave(&mut self, i: &Instance, priority: Priority) {
        if i.is_queued() {
            self.queue.remove(i, priority, &quotas!(self));
        } else if let Some((executor, victim)) = victim(i, self.spec_of(i).as_ref(), priority)
            && let Some(victims) = self.victims.get_mut(&executor)
        {
            victims.remove(&victim);
            if victims.is_empty() {
                self.victims.remove(&executor);
            }
        }
    }

    /// Counts an attempt that is on, or is no longer, and opens or shuts what that fills.
    pub(super) fn count(&mut self, i: &Instance, running: bool) {
        let owner = self.spec_of(i).map(|s| s.owner.clone()).unwrap_or_default();
        self.usage.count(i, &owner, running);
        self.queue.task_changed(&i.task_id, &quotas!(self));
        self.queue.owner_changed(&owner, &quotas!(self));
    }

    /// A task was paused or resumed.
    pub(super) fn task_changed(&mut self, task: &TaskId) {
        self.queue.task_changed(task, &quotas!(self));
    }

    /// Takes an instance out of the queue or puts it back, while it is tried out who would start.
    pub(super) fn try_queued(&mut self, i: &Instance, queued: bool) {
        let priority = self.inheritance.effective(i);
        if queued { self.enter(i, priority) } else { self.leave(i, priority) }
    }
}

fn need(settings: &Settings, spec: &TaskSpec) -> Need {
    let executors = settings.executors.iter().enumerate();
    let takes = executors.filter(|(_, e)| e.takes(&spec.task_type, &spec.executor_labels));
    Need {
        owner: spec.owner.clone(),
        max_concurrent: spec.max_concurrent,
        executors: takes.map(|(at, _)| at).collect(),
    }
}

/// Whether an instance gives up its slot if it has to: it says so, and has not done it too often.
pub(super) fn gives_way(i: &Instance, spec: &TaskSpec) -> bool {
    spec.preemptible && spec.may_run_again() && i.preemptions < limits::REQUEUES_MAX
}

/// A running instance as a victim; `None`: it is none. One that is being ended already, or that a
/// person has stopped for a while, is none.
fn victim(
    i: &Instance,
    spec: Option<&Arc<TaskSpec>>,
    priority: Priority,
) -> Option<(ExecutorId, Victim)> {
    let is_on = i.state == InstanceState::Running && i.stopping.is_none() && i.paused.is_none();
    if !is_on || !gives_way(i, spec?) {
        return None;
    }
    let victim = Victim { priority, lease: i.lease()?, instance: i.instance_id.clone() };
    Some((i.executor_id.clone()?, victim))
}
