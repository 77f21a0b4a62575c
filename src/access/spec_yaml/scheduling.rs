//! When, after whom and in which order: the scheduling group of a spec (contract §2).

use std::collections::BTreeMap;
use std::time::Duration;

use super::Reading;
use super::triggers::Given;
use crate::access::yaml::Kind;
use crate::access::yaml::Mark;
use crate::access::yaml::fields::{Fields, Item, Place, shorten, suggestion};
use crate::model::condition::Condition;
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::id::{QueueName, TaskId};
use crate::model::priority::Priority;
use crate::model::spec::{
    DepType, Dependency, OnDependencyTimeout, OnUpstream, Overlap, Retention, Strength, TaskSpec,
    Trigger, TriggerKind,
};

/// When and in which order.
pub(super) struct Plan {
    pub(super) triggers: Vec<Trigger>,
    /// What each trigger gives, the faulty ones included.
    pub(super) given: Vec<Given>,
    pub(super) timezone: Option<String>,
    pub(super) cycle: Option<CycleRule>,
    pub(super) depends_on: Vec<Dependency>,
    pub(super) on_upstream: OnUpstream,
    pub(super) dependency_timeout: Option<Duration>,
    pub(super) on_dependency_timeout: OnDependencyTimeout,
    pub(super) priority: Priority,
    pub(super) queue: QueueName,
    pub(super) preemptible: bool,
    pub(super) preemptible_at: Place,
    pub(super) max_concurrent: Option<u32>,
    pub(super) executor_labels: BTreeMap<String, String>,
    pub(super) enabled: bool,
    pub(super) rollout: Option<u32>,
    pub(super) retention: Option<Retention>,
}

/// The unit of a task's cycles, where its own spec decides it; a derived task's follows from what
/// reaches it (design, 'cycles and waves').
pub(super) fn cycle_unit(spec: &TaskSpec) -> Option<CycleUnit> {
    if let Some(rule) = spec.cycle {
        return Some(rule.unit);
    }
    if spec.is_derived() {
        return None;
    }
    let outside = |t: &Trigger| {
        matches!(t.when, TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_))
    };
    let run = !spec.triggers.is_empty() && spec.triggers.iter().all(outside);
    Some(if run { CycleUnit::Run } else { CycleUnit::Day })
}

/// Units by which a cycle may be moved: a hundred years in hours; more would leave the calendar.
const OFFSET_MAX: i64 = 876_000;

/// A task that this one waits for, with its place.
type Upstream = (Dependency, Place);

impl Reading<'_> {
    pub(super) fn scheduling(&mut self, fields: &mut Fields<'_>, own: Option<&TaskId>) -> Plan {
        let named = fields.take("timezone");
        let is_named = named.is_some();
        let timezone = self.zone_of(named);
        // Nothing can be said of the clock in a zone that is misspelt.
        let default = (!is_named).then(|| self.context.timezone.clone());
        let zone = timezone.clone().or(default);
        let (triggers, given) = self.triggers(fields.take("triggers"), own, zone.as_deref());
        let allowed = triggers.iter().any(|t| overlap(t) == Some(Overlap::Allow));
        let concurrent = fields.take("maxConcurrent");
        let max_concurrent = match concurrent {
            Some(item) => item.count(1, &mut self.findings),
            None => (!allowed).then_some(1),
        };
        let on_upstream = self.on_upstream(fields.take("onUpstream"));
        let give_up = [
            ("CANCEL", OnDependencyTimeout::Cancel),
            ("RUN_DEGRADED", OnDependencyTimeout::RunDegraded),
        ];
        let preemptible = fields.take("preemptible");
        let least = Duration::from_millis(1);
        Plan {
            triggers,
            given,
            timezone,
            cycle: fields.take("cycle").and_then(|i| self.cycle(&i)),
            depends_on: self.depends_on(fields.take("dependsOn"), own),
            on_upstream,
            dependency_timeout: fields
                .take("dependencyTimeoutMs")
                .and_then(|i| i.duration(least, &mut self.findings)),
            on_dependency_timeout: fields
                .take("onDependencyTimeout")
                .and_then(|i| i.choice(&give_up, &mut self.findings))
                .unwrap_or(OnDependencyTimeout::Cancel),
            priority: fields
                .take("priority")
                .and_then(|i| self.priority(&i))
                .unwrap_or(Priority::NORMAL),
            queue: fields
                .take("queue")
                .and_then(|i| self.queue(&i))
                .unwrap_or_else(|| QueueName::from("default")),
            preemptible_at: preemptible.as_ref().map_or_else(
                || Place { at: Mark::default(), path: String::new() },
                |item| item.place.clone(),
            ),
            preemptible: preemptible.and_then(|i| i.boolean(&mut self.findings)).unwrap_or(false),
            max_concurrent,
            executor_labels: self.labels(fields.take("executorLabels")),
            enabled: fields
                .take("enabled")
                .and_then(|i| i.boolean(&mut self.findings))
                .unwrap_or(true),
            rollout: fields.take("rollout").and_then(|i| self.rollout(&i, own)),
            retention: fields.take("retention").and_then(|i| self.retention(&i)),
        }
    }

    fn on_upstream(&mut self, item: Option<Item<'_>>) -> OnUpstream {
        let words = [("EACH", OnUpstream::Each), ("LATEST", OnUpstream::Latest)];
        let Some(item) = item else { return OnUpstream::Each };
        item.choice(&words, &mut self.findings).unwrap_or(OnUpstream::Each)
    }

    fn rollout(&mut self, item: &Item<'_>, own: Option<&TaskId>) -> Option<u32> {
        let share = item.integer(1, 100, &mut self.findings)?;
        if own.is_some_and(|id| id.version() == 1) {
            let expected = "no rollout: version 1 has no lower version to take cycles from";
            return item.refuse(&mut self.findings, expected);
        }
        u32::try_from(share).ok()
    }

    fn retention(&mut self, item: &Item<'_>) -> Option<Retention> {
        let mut fields = item.map(&mut self.findings)?;
        let days = fields.take("days").and_then(|i| i.count(1, &mut self.findings));
        let instances = fields.take("instances").and_then(|i| i.count(1, &mut self.findings));
        fields.finish(&mut self.findings);
        self.in_force("retention", &item.place);
        Some(Retention { days, instances })
    }

    fn cycle(&mut self, item: &Item<'_>) -> Option<CycleRule> {
        let words = [
            ("DAY", CycleUnit::Day),
            ("HOUR", CycleUnit::Hour),
            ("MINUTE", CycleUnit::Minute),
            ("RUN", CycleUnit::Run),
        ];
        let mut fields = item.map(&mut self.findings)?;
        let unit = fields.take("unit").and_then(|i| i.choice(&words, &mut self.findings));
        let offset_item = fields.take("offset");
        let offset = offset_item
            .as_ref()
            .and_then(|i| i.integer(-OFFSET_MAX, OFFSET_MAX, &mut self.findings))
            .and_then(|n| i32::try_from(n).ok())
            .unwrap_or(0);
        fields.finish(&mut self.findings);
        let unit = unit.unwrap_or(CycleUnit::Day);
        if let (CycleUnit::Run, Some(item)) = (unit, offset_item.filter(|_| offset != 0)) {
            item.refuse::<()>(&mut self.findings, "no offset: a RUN has none before it");
        }
        Some(CycleRule { unit, offset })
    }

    fn priority(&mut self, item: &Item<'_>) -> Option<Priority> {
        let text = match &item.node.kind {
            Kind::Scalar(scalar) => scalar.text.as_str(),
            Kind::List(_) | Kind::Map(_) => "",
        };
        // `08` and `+8` are no way to write a priority.
        let plain = text.len() == 1 || !text.starts_with(|c: char| c.is_ascii_digit() || c == '+');
        plain.then(|| Priority::parse(text)).flatten().or_else(|| {
            let levels = ["CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND"];
            let near = suggestion(text, levels);
            item.refuse(
                &mut self.findings,
                &format!("0 (first) to 9 (last), or one of {}{near}", levels.join(", ")),
            )
        })
    }

    fn queue(&mut self, item: &Item<'_>) -> Option<QueueName> {
        let text = item.word(&mut self.findings)?;
        if self.context.queues.contains(text) {
            return Some(QueueName::from(text));
        }
        let known: Vec<&str> = self.context.queues.iter().map(String::as_str).collect();
        let near = suggestion(text, known.iter().copied());
        let expected = format!("a queue of the configuration: {}{near}", known.join(", "));
        item.refuse(&mut self.findings, &expected)
    }

    fn depends_on(&mut self, item: Option<Item<'_>>, own: Option<&TaskId>) -> Vec<Dependency> {
        let mut seen: BTreeMap<TaskId, u32> = BTreeMap::new();
        let mut edges = Vec::new();
        let Some(item) = item else { return edges };
        let items = item.list(&mut self.findings);
        self.broken.depends_on = items.is_none();
        for item in items.unwrap_or_default() {
            let Some((edge, place)) = self.dependency(&item) else {
                self.broken.depends_on = true;
                continue;
            };
            if Some(&edge.task_id) == own {
                self.broken.depends_on = true;
                let message = format!("{} waits for itself; remove the edge", edge.task_id);
                self.findings.error(&place, message);
            } else if let Some(line) = seen.insert(edge.task_id.clone(), place.at.line) {
                let message = format!("{} stands here twice; first on line {line}", edge.task_id);
                self.findings.error(&place, message);
            } else {
                edges.push(edge);
            }
        }
        edges
    }

    fn dependency(&mut self, item: &Item<'_>) -> Option<Upstream> {
        if !matches!(item.node.kind, Kind::Map(_)) {
            let edge = Dependency {
                task_id: self.task_id(item)?,
                dep_type: DepType::Success,
                strength: Strength::Strong,
                when: None,
                cycle_offset: 0,
            };
            return Some((edge, item.place.clone()));
        }
        let mut fields = item.map(&mut self.findings)?;
        let id = fields.need("taskId", &mut self.findings);
        let types = [("SUCCESS", DepType::Success), ("DATA_READY", DepType::DataReady)];
        let strengths = [("STRONG", Strength::Strong), ("WEAK", Strength::Weak)];
        let dep_type = fields.take("depType").and_then(|i| i.choice(&types, &mut self.findings));
        let strength =
            fields.take("strength").and_then(|i| i.choice(&strengths, &mut self.findings));
        let when = fields.take("when").and_then(|i| self.condition(&i));
        let cycle_offset = fields.take("cycleOffset").map_or(0, |i| self.cycle_offset(&i));
        fields.finish(&mut self.findings);
        let id = id?;
        let edge = Dependency {
            task_id: self.task_id(&id)?,
            dep_type: dep_type.unwrap_or(DepType::Success),
            strength: strength.unwrap_or(Strength::Strong),
            when,
            cycle_offset,
        };
        Some((edge, id.place))
    }

    fn condition(&mut self, item: &Item<'_>) -> Option<Condition> {
        let text = item.text(&mut self.findings)?;
        match Condition::parse(text) {
            Ok(condition) => Some(condition),
            Err(error) => {
                let message = format!("{:?} is no condition: {error}", shorten(text));
                self.findings.error(&item.place, message);
                None
            }
        }
    }

    /// Only cycles that have been: what is still to come cannot be waited for, as a waiting instance
    /// ends EXPIRED, and nobody means tomorrow's data when they say that today's run needs them.
    fn cycle_offset(&mut self, item: &Item<'_>) -> i32 {
        let Some(offset) = item.integer(-OFFSET_MAX, OFFSET_MAX, &mut self.findings) else {
            return 0;
        };
        if offset > 0 {
            let expected = "0 or less: a cycle that is still to come cannot be waited for";
            item.refuse::<()>(&mut self.findings, expected);
            return 0;
        }
        i32::try_from(offset).unwrap_or(0)
    }
}

/// What a time trigger does while an earlier instance is at it; others always make an instance.
fn overlap(trigger: &Trigger) -> Option<Overlap> {
    match &trigger.when {
        TriggerKind::Cron(t) => Some(t.policy.overlap),
        TriggerKind::Every(t) => Some(t.policy.overlap),
        TriggerKind::Boot | TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_) => {
            None
        }
    }
}
