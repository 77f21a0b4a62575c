//! What the core can tell of itself; nothing here changes anything.

use std::collections::BTreeSet;

use super::lifecycle::fire;
use super::scheduler;
use super::state::State;
use crate::limits;
use crate::model::id::{InstanceId, QueueName, TaskId};
use crate::model::instance::{InstanceState, Pause};
use crate::model::record::Target;
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};
use crate::model::settings::{Discipline, QueueSettings};
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};
use crate::model::suggest;
use crate::model::time::Timestamp;
use crate::model::view::{
    ExecutorView, InstanceCounts, Live, NextFire, QueueView, StatusView, TaskStatus, TaskView,
};

/// All tasks, without their definitions.
pub(super) fn tasks(state: &State) -> Vec<TaskView> {
    state.registry.specs().filter_map(|spec| view(state, spec)).collect()
}

/// One task with its definition.
pub(super) fn task(state: &State, task: &TaskId) -> Answer {
    let spec = state.registry.spec(task);
    match spec.and_then(|spec| Some((view(state, spec)?, spec))) {
        Some((mut view, spec)) => {
            view.spec = Some(std::sync::Arc::clone(spec));
            Ok(Reply::Task(Box::new(view)))
        }
        None => Err(no_task(state, task)),
    }
}

/// The refusal of a task that no file defines, with the one that may be meant.
pub(super) fn no_task(state: &State, task: &TaskId) -> Rejection {
    let known = state.registry.specs().map(|spec| spec.task_id.as_str());
    let near = suggest::nearest(task.as_str(), known);
    let near = near.map(|id| format!("; did you mean {id}?")).unwrap_or_default();
    Rejection::new(RejectionCode::NotFound, format!("no task {task}{near}"))
}

pub(super) fn view(state: &State, spec: &TaskSpec) -> Option<TaskView> {
    let row = state.registry.row(&spec.task_id)?;
    let status = state.registry.status(spec);
    let fires =
        spec.triggers.iter().filter_map(|t| state.next_fires.get(&(spec.task_id.clone(), t.key())));
    Some(TaskView {
        task_id: spec.task_id.clone(),
        version: spec.version,
        revision: row.revision?,
        created_at: row.created_at,
        file: row.file.clone(),
        status,
        unresolved: state.registry.unresolved(spec),
        paused: row.paused.clone(),
        pinned: row.pinned.is_some(),
        owner: spec.owner.clone(),
        task_type: spec.task_type.clone(),
        priority: row.priority.unwrap_or(spec.priority),
        queue: spec.queue.clone(),
        schedule: schedule(state, spec),
        // A held or disabled task's nominal fires only fill the ledger.
        next_fire_time: fires
            .min()
            .copied()
            .filter(|_| matches!(status, TaskStatus::Active | TaskStatus::Pinned)),
        last_instance: state.instances.last_of(&spec.task_id),
        spec_errors: state.registry.errors_about(&spec.task_id),
        labels: spec.labels.clone(),
        spec: None,
    })
}

/// A short text of what starts a task.
pub(super) fn schedule(state: &State, spec: &TaskSpec) -> String {
    let rollouts = state.registry.rollouts();
    if let (true, Some(lower)) = (rollouts.is_taker(&spec.task_id), rollouts.lower(&spec.task_id)) {
        return format!("{} % of the cycles of {lower}", spec.rollout.unwrap_or_default());
    }
    let mut parts: Vec<String> = spec.triggers.iter().map(trigger_text).collect();
    if !spec.depends_on.is_empty() {
        let upstreams: Vec<&str> = spec.depends_on.iter().map(|d| d.task_id.as_str()).collect();
        parts.push(format!("after {}", upstreams.join(", ")));
    }
    parts.join("; ")
}

pub(super) fn trigger_text(trigger: &Trigger) -> String {
    match &trigger.when {
        TriggerKind::Cron(t) => t.expr.as_str().to_owned(),
        TriggerKind::Every(t) => format!("every {:?}", t.period),
        TriggerKind::Boot => "at boot".to_owned(),
        TriggerKind::File(t) => format!("file {}", t.pattern),
        TriggerKind::Event(name) => format!("event {name}"),
        TriggerKind::Task(t) => format!("on end of {}", t.task_id),
    }
}

/// What only the core knows of these instances; those it does not hold are left out.
pub(super) fn live(state: &State, ids: &[InstanceId]) -> Vec<Live> {
    ids.iter().filter_map(|id| one(state, id)).collect()
}

fn one(state: &State, id: &InstanceId) -> Option<Live> {
    let i = state.instances.get(id)?;
    let held = || state.spec_of(i).and_then(|spec| scheduler::held_by(state, i, &spec));
    let reason = if i.state == InstanceState::Ready { held() } else { i.reason };
    Some(Live {
        instance_id: id.clone(),
        state: i.state,
        is_final: !i.is_open(),
        reason,
        effective_priority: state.effective_priority(i),
    })
}

/// The daemon.
pub(super) fn status(state: &State) -> StatusView {
    let mut counts = InstanceCounts::default();
    for i in state.instances.open() {
        counts.open += 1;
        match i.state {
            InstanceState::Pending => counts.pending += 1,
            InstanceState::Blocked => counts.blocked += 1,
            InstanceState::Ready => counts.ready += 1,
            InstanceState::Running => counts.running += 1,
            InstanceState::Failed | InstanceState::Timeout => counts.retrying += 1,
            InstanceState::Succeeded | InstanceState::Cancelled => {}
        }
    }
    let unreadable = state.registry.unreadable().map(str::to_owned);
    let unheard = state
        .settings
        .executors
        .iter()
        .filter(|e| state.roster.connection(&e.id).is_none())
        .map(|e| format!("executor {} is not connected", e.id));
    StatusView {
        version: state.process.version.clone(),
        pid: state.process.pid,
        started_at: state.process.started_at,
        timezone: state.settings.timezone.clone(),
        instances: counts,
        tasks: u64::try_from(state.registry.specs().count()).unwrap_or(u64::MAX),
        queues: queues(state),
        executors: executors(state),
        spec_errors: state.registry.errors(),
        degraded: unreadable.into_iter().chain(unheard).collect(),
        paused: state.holds.get(&Target::All).cloned(),
        stopping: state.stopping.is_some(),
    }
}

/// All configured queues, then those that are no longer configured but still in use.
pub(super) fn queues(state: &State) -> Vec<QueueView> {
    let configured = state.settings.queues.iter().cloned();
    let is_known = |name: &QueueName| state.settings.queues.iter().any(|q| q.name == *name);
    let in_use: BTreeSet<&QueueName> = state.queue.waiting().chain(state.usage.queues()).collect();
    let others = in_use.into_iter().filter(|name| !is_known(name));
    configured
        .chain(others.map(|name| QueueSettings::plain(name.clone())))
        .map(|q| queue(state, q))
        .collect()
}

fn queue(state: &State, q: QueueSettings) -> QueueView {
    QueueView {
        weight: q.weight,
        discipline: q.discipline.as_str().to_owned(),
        level_weights: match q.discipline {
            Discipline::Strict => None,
            Discipline::Weighted(weights) => Some(weights),
        },
        max_running: q.max_running,
        ready: u64::try_from(state.queue.len(&q.name)).unwrap_or(u64::MAX),
        running: u64::from(state.usage.queue(&q.name)),
        paused: state.holds.get(&Target::Queue(q.name.clone())).cloned(),
        name: q.name,
    }
}

/// All configured executors.
pub(super) fn executors(state: &State) -> Vec<ExecutorView> {
    let view = |e: &crate::model::settings::ExecutorSettings| {
        let connection = state.roster.connection(&e.id);
        ExecutorView {
            executor_id: e.id.clone(),
            connected: connection.is_some(),
            pid: connection.map(|c| c.pid),
            incarnation: connection.map(|c| c.incarnation),
            slots: e.slots,
            running: state.usage.executor(&e.id),
            task_types: e.task_types.clone(),
            labels: e.labels.clone(),
            last_heartbeat_at: connection.map(|c| c.heard_at),
            load1: connection.and_then(|c| c.load).map(|l| l.load1),
        }
    };
    state.settings.executors.iter().map(view).collect()
}

/// Coming fires of one task or of all, earliest first.
pub(super) fn next(state: &State, wanted: Option<&TaskId>, from: Timestamp, count: u32) -> Answer {
    if let Some(task) = wanted
        && state.registry.spec(task).is_none()
    {
        return Err(no_task(state, task));
    }
    let tasks = if wanted.is_some() { 1 } else { state.registry.specs().count().max(1) };
    // The core answers nothing else meanwhile: so many in all, at least one a task.
    let most = (limits::PAGE_MAX / tasks).max(1);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(most);
    let mut all = Vec::new();
    for spec in state.registry.specs().filter(|s| wanted.is_none_or(|w| *w == s.task_id)) {
        // A disabled task is of interest only to who asks for it.
        if !spec.enabled && wanted.is_none() {
            continue;
        }
        // A version that takes its share of a lower one's cycles fires with that one.
        let leader = state.registry.rollouts().leader(&spec.task_id);
        let leader = leader.filter(|leader| **leader != spec.task_id);
        if leader.is_some() && wanted.is_none() {
            continue;
        }
        let of = leader.and_then(|leader| state.registry.spec(leader)).unwrap_or(spec);
        let own = leader.map(|_| &spec.task_id);
        let triggers = of.triggers.iter();
        let mut fires: Vec<NextFire> =
            triggers.flat_map(|t| of_trigger(state, of, t, from, count, own)).collect();
        fires.sort_by(|a, b| (a.at, &a.trigger).cmp(&(b.at, &b.trigger)));
        // Two triggers at one instant are one fire: that of the first key.
        fires.dedup_by_key(|fire| fire.at);
        fires.truncate(count);
        all.extend(fires.into_iter().map(|fire| {
            let held = held(state, spec, fire.at).map(str::to_owned);
            NextFire { note: held.or(fire.note), ..fire }
        }));
    }
    all.sort_by(|a, b| (a.at, &a.task_id).cmp(&(b.at, &b.task_id)));
    Ok(Reply::Next(all))
}

/// Why a nominal fire of a time would make nothing, or nothing that starts, as things stand.
pub(super) fn held(state: &State, spec: &TaskSpec, at: Timestamp) -> Option<&'static str> {
    let lasts = |pause: &Pause| pause.until.is_none_or(|until| at < until);
    let is_held = |target: &Target| state.holds.get(target).is_some_and(lasts);
    let paused = state.registry.row(&spec.task_id).and_then(|row| row.paused.as_ref());
    match state.registry.status(spec) {
        TaskStatus::Disabled => Some("makes nothing: the task is disabled"),
        TaskStatus::Unresolved => Some("makes nothing: an upstream is unknown"),
        TaskStatus::Paused if paused.is_some_and(lasts) => {
            Some("makes nothing: the task is paused")
        }
        TaskStatus::Active | TaskStatus::Pinned | TaskStatus::Paused if is_held(&Target::All) => {
            Some("waits: everything is paused")
        }
        TaskStatus::Active | TaskStatus::Pinned | TaskStatus::Paused
            if is_held(&Target::Queue(spec.queue.clone())) =>
        {
            Some("waits: its queue is paused")
        }
        TaskStatus::Active | TaskStatus::Pinned | TaskStatus::Paused => None,
    }
}

/// Coming fires of one trigger; `taker`: only those whose cycle that version takes, among so many
/// that the core may look at.
fn of_trigger(
    state: &State,
    spec: &TaskSpec,
    trigger: &Trigger,
    from: Timestamp,
    count: usize,
    taker: Option<&TaskId>,
) -> Vec<NextFire> {
    let zone = state.zone(trigger.timezone().or(spec.timezone.as_deref()));
    let mut fires = Vec::new();
    let mut after = from;
    let mut looks = 0;
    while fires.len() < count
        && looks < limits::PAGE_MAX
        && let Some((at, note)) = match &trigger.when {
            TriggerKind::Cron(t) => t.expr.next_told(after, &zone),
            TriggerKind::Every(_)
            | TriggerKind::Boot
            | TriggerKind::File(_)
            | TriggerKind::Event(_)
            | TriggerKind::Task(_) => state.next_after(spec, trigger, after).map(|at| (at, None)),
        }
    {
        after = at;
        looks += 1;
        let cycle = fire::cycle_of(state, spec, at, &trigger.key());
        let chosen = state.registry.rollouts().choose(&spec.task_id, &cycle);
        let task_id = taker.unwrap_or(&spec.task_id);
        if taker.is_some_and(|taker| taker != chosen) {
            continue;
        }
        let taken = format!("{chosen} takes this cycle by its rollout");
        let notes: Vec<String> =
            note.into_iter().chain((chosen != task_id).then_some(taken)).collect();
        let local = at.to_jiff().map(|t| t.to_zoned_datetime(zone.clone()));
        fires.push(NextFire {
            task_id: task_id.clone(),
            at,
            local: local
                .map(|z| z.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
                .unwrap_or_default(),
            trigger: trigger.key(),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        });
    }
    fires
}
