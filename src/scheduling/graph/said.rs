//! What a definition says of its place in the graph.

use std::collections::BTreeSet;

use super::{Source, Why};
use crate::model::cycle::CycleRule;
use crate::model::id::TaskId;
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};

/// What a definition says of its place in the graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    pub(super) cycle: Option<CycleRule>,
    pub(super) is_derived: bool,
    /// The rule where it says none and is not derived.
    pub(super) default: CycleRule,
    pub(super) listens: BTreeSet<Source>,
    /// The tasks that it names, each with why it comes after them.
    pub(super) named: Vec<(TaskId, Why)>,
    /// Its `rollout`; the outer `None`: it is disabled and shares no cycles.
    pub(super) share: Option<Option<u32>>,
}

impl Said {
    pub(super) fn of(spec: &TaskSpec) -> Self {
        let outside = |t: &TriggerKind| {
            matches!(t, TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_))
        };
        let is_run = !spec.triggers.is_empty() && spec.triggers.iter().all(|t| outside(&t.when));
        Self {
            cycle: spec.cycle,
            is_derived: spec.is_derived(),
            default: if is_run { CycleRule::RUN } else { CycleRule::DAY },
            listens: spec.triggers.iter().filter_map(source).collect(),
            named: named(spec).map(|(id, why)| (id.clone(), why)).collect(),
            share: spec.enabled.then_some(spec.rollout),
        }
    }

    /// Whether another says the same of the task's place among tasks; what is listened to outside
    /// is no matter of that.
    pub(super) fn is_placed_like(&self, other: &Self) -> bool {
        let Self { cycle, is_derived, default, listens: _, named, share } = self;
        (cycle, is_derived, default) == (&other.cycle, &other.is_derived, &other.default)
            && (named, share) == (&other.named, &other.share)
    }
}

/// The tasks that a definition names, with why it comes after them.
fn named(spec: &TaskSpec) -> impl Iterator<Item = (&TaskId, Why)> {
    let upstreams = spec.depends_on.iter().map(|edge| (&edge.task_id, Why::Dependency));
    let heard = spec.triggers.iter().filter_map(|trigger| match &trigger.when {
        TriggerKind::Task(on) => Some((&on.task_id, Why::Trigger)),
        TriggerKind::Cron(_)
        | TriggerKind::Every(_)
        | TriggerKind::Boot
        | TriggerKind::File(_)
        | TriggerKind::Event(_) => None,
    });
    upstreams.chain(heard)
}

fn source(trigger: &Trigger) -> Option<Source> {
    match &trigger.when {
        TriggerKind::Event(name) => Some(Source::Event(name.clone())),
        TriggerKind::File(file) => Some(Source::Files(file.pattern.clone())),
        TriggerKind::Task(on) => Some(Source::Task(on.task_id.clone())),
        TriggerKind::Cron(_) | TriggerKind::Every(_) | TriggerKind::Boot => None,
    }
}
