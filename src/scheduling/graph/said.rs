//! What a definition says of its place in the graph.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Source, Why};
use crate::model::cycle::CycleRule;
use crate::model::id::TaskId;
use crate::model::params::ParamType;
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};
use crate::model::template::Template;

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
    /// Upstreams of which it waits for an earlier cycle.
    pub(super) behind: BTreeSet<TaskId>,
    /// A `date` parameter of a derived task whose default holds the `{cycle}`.
    pub(super) cycle_as_date: Option<String>,
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
            behind: spec
                .depends_on
                .iter()
                .filter(|edge| edge.cycle_offset != 0)
                .map(|edge| edge.task_id.clone())
                .collect(),
            cycle_as_date: cycle_as_date(spec).filter(|_| spec.is_derived()).cloned(),
            share: spec.enabled.then_some(spec.rollout),
        }
    }

    /// Whether another says the same of the task's place among tasks; what is listened to outside
    /// is no matter of that.
    pub(super) fn is_placed_like(&self, other: &Self) -> bool {
        let Self { cycle, is_derived, default, listens: _, named, behind, cycle_as_date, share } =
            self;
        (cycle, is_derived, default) == (&other.cycle, &other.is_derived, &other.default)
            && (named, share) == (&other.named, &other.share)
            && (behind, cycle_as_date) == (&other.behind, &other.cycle_as_date)
    }
}

/// A `date` parameter whose default holds the `{cycle}` (docs/waves.md, rule 14).
fn cycle_as_date(spec: &TaskSpec) -> Option<&String> {
    let holds_cycle = |text: &str| {
        text.contains("{cycle}")
            && Template::parse(text).is_ok_and(|template| template.names().contains("cycle"))
    };
    let dates = spec.runtime_params.iter().filter(|(_, schema)| schema.kind == ParamType::Date);
    let mut filled = dates.filter(|(_, schema)| {
        schema.default.as_ref().and_then(Value::as_str).is_some_and(holds_cycle)
    });
    filled.next().map(|(name, _)| name)
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
