//! The quotas that a READY instance meets full, and who holds them.

use super::super::state::State;
use super::NAMED_MAX;
use crate::model::explain::{InstanceRef, QuotaExplanation, QuotaKind};
use crate::model::id::ExecutorId;
use crate::model::instance::{Instance, InstanceState};
use crate::model::spec::TaskSpec;

/// All that are full: any of them is enough to keep it waiting.
pub(super) fn full(state: &State, i: &Instance, spec: &TaskSpec) -> Vec<QuotaExplanation> {
    let mut found: Vec<QuotaExplanation> =
        limits(state, i, spec).into_iter().chain(slots(state, spec)).collect();
    found.retain(|quota| quota.used >= quota.limit);
    if !found.is_empty() {
        name_holders(state, i, spec, &mut found);
    }
    found
}

fn limits(state: &State, i: &Instance, spec: &TaskSpec) -> Vec<QuotaExplanation> {
    let queue = state.settings.queues.iter().find(|q| q.name == i.queue);
    let of_queue = queue.and_then(|q| q.max_running);
    let of_owner = state.settings.owner_quota.get(&spec.owner).copied();
    let counted = [
        (QuotaKind::Queue, i.queue.to_string(), of_queue, state.usage.queue(&i.queue)),
        (QuotaKind::Task, i.task_id.to_string(), spec.max_concurrent, state.usage.task(&i.task_id)),
        (QuotaKind::Owner, spec.owner.clone(), of_owner, state.usage.owner(&spec.owner)),
    ];
    let quota = |(kind, name, limit, used): (QuotaKind, String, Option<u32>, u32)| {
        Some(QuotaExplanation { kind, name, limit: limit?, used, held_by: Vec::new() })
    };
    counted.into_iter().filter_map(quota).collect()
}

/// The slots of the connected executors that take the task; `None`: there is none.
fn slots(state: &State, spec: &TaskSpec) -> Option<QuotaExplanation> {
    let fitting: Vec<_> = fitting(state, spec).collect();
    let names: Vec<&str> = fitting.iter().map(|(id, _)| id.as_str()).collect();
    let name = names.join(", ");
    let limit = fitting.iter().map(|(_, slots)| *slots).fold(0, u32::saturating_add);
    let used = fitting.iter().map(|(id, _)| state.usage.executor(id)).fold(0, u32::saturating_add);
    let held_by = Vec::new();
    let kind = QuotaKind::Slots;
    (!fitting.is_empty()).then_some(QuotaExplanation { kind, name, limit, used, held_by })
}

fn fitting<'a>(
    state: &'a State,
    spec: &'a TaskSpec,
) -> impl Iterator<Item = (&'a ExecutorId, u32)> {
    let executors = state.settings.executors.iter();
    executors
        .filter(|e| e.takes(&spec.task_type, &spec.executor_labels))
        .filter(|e| state.roster.connection(&e.id).is_some())
        .map(|e| (&e.id, e.slots))
}

/// Names some of those that run, in one pass that ends once every quota has enough.
fn name_holders(state: &State, i: &Instance, spec: &TaskSpec, found: &mut [QuotaExplanation]) {
    let on: Vec<&ExecutorId> = fitting(state, spec).map(|(id, _)| id).collect();
    for running in state.instances.open().filter(|r| r.state == InstanceState::Running) {
        let owner = || state.spec_of(running).map(|spec| spec.owner.clone()).unwrap_or_default();
        for quota in &mut *found {
            let counts = match quota.kind {
                QuotaKind::Queue => running.queue == i.queue,
                QuotaKind::Task => running.task_id == i.task_id,
                QuotaKind::Owner => owner() == spec.owner,
                QuotaKind::Slots => running.executor_id.as_ref().is_some_and(|id| on.contains(&id)),
            };
            if counts && quota.held_by.len() < NAMED_MAX {
                quota.held_by.push(InstanceRef {
                    instance_id: running.instance_id.clone(),
                    task_id: running.task_id.clone(),
                });
            }
        }
        let named = |q: &QuotaExplanation| {
            let wanted = usize::try_from(q.used).unwrap_or(usize::MAX).min(NAMED_MAX);
            q.held_by.len() >= wanted
        };
        if found.iter().all(named) {
            return;
        }
    }
}
