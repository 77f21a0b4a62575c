//! A simulation that is over, put into the form in which it is told.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use super::sweep::{Sweep, peak};
use super::timeline::Life;
use crate::limits;
use crate::model::id::{ExecutorId, InstanceId, QueueName, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::record::{Fire, FireOutcome};
use crate::model::settings::Settings;
use crate::model::simulation::{
    Deadlines, FirePeak, LateInstance, SimulatedExecutor, SimulatedInstance, SimulatedQueue,
    SimulationSummary, SimulationView, SkippedFires, SlotUse, UnstartedTask, WaitingInstance,
    quantile,
};
use crate::model::spec::TriggerKind;
use crate::model::time::Timestamp;
use crate::scheduling::answers;
use crate::scheduling::ended::Standing;
use crate::scheduling::state::State;

/// All that a simulation tells.
pub(super) fn view(mut world: World) -> SimulationView {
    let (from, to) = (world.from, world.to);
    let mut lives = world.timeline.since(from);
    let state = &world.engine.state;
    settle(state, &mut lives, &world.deadlines, to);
    let mut running = Sweep::default();
    for attempt in lives.iter().flat_map(|life| &life.instance.attempts) {
        running.add(attempt.started_at, attempt.finished_at);
    }
    let mut ready = Sweep::default();
    for (since, until) in lives.iter().flat_map(|life| &life.waits) {
        ready.add(*since, *until);
    }
    let skipped = skipped(&world.timeline.skipped, from);
    let peaks = peaks(&world.timeline.fires, from);
    let queues = queues(&state.settings, &lives, from, to);
    let executors = executors(&state.settings, &lives, from, to);
    let waiting = waiting(state, to);
    let instances: Vec<SimulatedInstance> = lives.into_iter().map(|life| life.instance).collect();
    let unstarted = unstarted(state, &instances);
    let late = late(&instances, to);
    let running = running.counts(from);
    let most = peak(&running);
    let summary = SimulationSummary {
        instances: count(&instances),
        late: count(&late),
        skipped_fires: skipped.iter().map(|s| s.count).sum(),
        slots: state.settings.executors.iter().map(|e| u64::from(e.slots)).sum(),
        peak_slots: most.map_or(0, |(_, most)| most),
        peak_at: most.map(|(at, _)| at),
        longest_wait_ms: queues.iter().map(|q| q.max_wait_ms).max().unwrap_or(0),
        ..ends(&instances)
    };
    SimulationView {
        from,
        to,
        summary,
        late,
        instances,
        skipped,
        peaks,
        queues,
        executors,
        slots: slots(&running, &ready.counts(from)),
        waiting,
        unstarted,
        assumed: world.hands.into_assumed(),
    }
}

fn count<T>(of: &[T]) -> u64 {
    u64::try_from(of.len()).unwrap_or(u64::MAX)
}

fn ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}

/// Puts in what only the end tells: waits, deadlines, and why what is READY has not started.
fn settle(state: &State, lives: &mut [Life], deadlines: &Deadlines, to: Timestamp) {
    let ready = lives.iter().filter(|life| life.instance.state == InstanceState::Ready);
    let ready: Vec<InstanceId> = ready.map(|life| life.instance.instance_id.clone()).collect();
    let reasons: BTreeMap<InstanceId, _> = answers::live(state, &ready)
        .into_iter()
        .map(|live| (live.instance_id, live.reason))
        .collect();
    for Life { instance, waits, .. } in lives {
        let waits = waits.iter().map(|(since, until)| ms(*since, until.unwrap_or(to)));
        instance.queue_wait_ms = waits.sum();
        if let Some(reason) = reasons.get(&instance.instance_id) {
            instance.reason = *reason;
        }
        instance.deadline = deadlines.due(&instance.task_id, instance.created_at);
        // What was cancelled will not be missed.
        let counts = instance.state != InstanceState::Cancelled;
        let due = instance.deadline.filter(|due| *due <= to && counts);
        instance.late = due.is_some_and(|due| instance.finished_at.is_none_or(|end| end > due));
    }
}

fn late(instances: &[SimulatedInstance], to: Timestamp) -> Vec<LateInstance> {
    let late = instances.iter().filter(|i| i.late);
    let mut late: Vec<LateInstance> = late
        .filter_map(|i| {
            let deadline = i.deadline?;
            Some(LateInstance {
                instance_id: i.instance_id.clone(),
                task_id: i.task_id.clone(),
                cycle: i.cycle.clone(),
                state: i.state,
                deadline,
                finished_at: i.finished_at,
                late_by_ms: ms(deadline, i.finished_at.unwrap_or(to)),
            })
        })
        .collect();
    late.sort_by(|a, b| (b.late_by_ms, &a.instance_id).cmp(&(a.late_by_ms, &b.instance_id)));
    late
}

fn ends(instances: &[SimulatedInstance]) -> SimulationSummary {
    let mut ends = SimulationSummary::default();
    for i in instances {
        let place = match i.state {
            _ if i.finished_at.is_none() => &mut ends.open,
            InstanceState::Succeeded => &mut ends.succeeded,
            InstanceState::Failed => &mut ends.failed,
            InstanceState::Timeout => &mut ends.timeout,
            InstanceState::Cancelled => &mut ends.cancelled,
            InstanceState::Pending
            | InstanceState::Blocked
            | InstanceState::Ready
            | InstanceState::Running => &mut ends.open,
        };
        *place += 1;
    }
    ends
}

fn skipped(fires: &[Fire], from: Timestamp) -> Vec<SkippedFires> {
    let mut skipped: BTreeMap<(&TaskId, FireOutcome), SkippedFires> = BTreeMap::new();
    for fire in fires.iter().filter(|fire| fire.to >= from) {
        let of = skipped.entry((&fire.task_id, fire.outcome)).or_insert_with(|| SkippedFires {
            task_id: fire.task_id.clone(),
            outcome: fire.outcome,
            count: 0,
            from: fire.from,
            to: fire.to,
            reason: fire.reason.clone(),
        });
        of.count += fire.count;
        of.to = of.to.max(fire.to);
    }
    skipped.into_values().collect()
}

fn peaks(fires: &BTreeMap<Timestamp, Vec<TaskId>>, from: Timestamp) -> Vec<FirePeak> {
    let several = fires.range(from..).filter(|(_, tasks)| tasks.len() > 1);
    let mut peaks: Vec<(&Timestamp, &Vec<TaskId>)> = several.collect();
    peaks.sort_by_key(|(at, tasks)| (std::cmp::Reverse(tasks.len()), **at));
    peaks.truncate(limits::SIMULATION_PEAKS_MAX);
    let peak = |(at, tasks): (&Timestamp, &Vec<TaskId>)| {
        let named: BTreeSet<&TaskId> = tasks.iter().collect();
        let named = named.into_iter().take(limits::SIMULATION_PEAKS_MAX).cloned();
        FirePeak { at: *at, instances: count(tasks), tasks: named.collect() }
    };
    peaks.into_iter().map(peak).collect()
}

/// The queues that are configured, and any other that something waited in.
fn queues(
    settings: &Settings,
    lives: &[Life],
    from: Timestamp,
    to: Timestamp,
) -> Vec<SimulatedQueue> {
    let mut of: BTreeMap<QueueName, (Vec<u64>, u64, Sweep)> = BTreeMap::new();
    for queue in &settings.queues {
        of.entry(queue.name.clone()).or_default();
    }
    for Life { instance, waits, .. } in lives {
        let (started, longest, ready) = of.entry(instance.queue.clone()).or_default();
        let attempts = instance.attempts.iter().filter(|a| a.started_at >= from);
        started.extend(attempts.map(|a| ms(a.ready_at, a.started_at)));
        for (since, until) in waits {
            let over = until.unwrap_or(to);
            if over >= from {
                *longest = (*longest).max(ms(*since, over));
            }
            ready.add(*since, *until);
        }
    }
    let queue = |(name, (mut started, max_wait_ms, ready)): (QueueName, (Vec<u64>, u64, Sweep))| {
        started.sort_unstable();
        let most = peak(&ready.counts(from));
        SimulatedQueue {
            name,
            started: count(&started),
            median_wait_ms: quantile(&started, 50).unwrap_or(0),
            max_wait_ms,
            peak_ready: most.map_or(0, |(_, most)| most),
            peak_at: most.map(|(at, _)| at),
        }
    };
    of.into_iter().map(queue).collect()
}

/// The executors that are configured, and any other on which something still ran.
fn executors(
    settings: &Settings,
    lives: &[Life],
    from: Timestamp,
    to: Timestamp,
) -> Vec<SimulatedExecutor> {
    let mut of: BTreeMap<ExecutorId, (u32, u64, Sweep)> = BTreeMap::new();
    for executor in &settings.executors {
        of.entry(executor.id.clone()).or_default().0 = executor.slots;
    }
    for attempt in lives.iter().flat_map(|life| &life.instance.attempts) {
        let (_, busy_ms, on) = of.entry(attempt.executor_id.clone()).or_default();
        *busy_ms += ms(attempt.started_at.max(from), attempt.finished_at.unwrap_or(to));
        on.add(attempt.started_at, attempt.finished_at);
    }
    let executor = |(executor_id, (slots, busy_ms, on)): (ExecutorId, (u32, u64, Sweep))| {
        let most = peak(&on.counts(from)).map_or(0, |(_, most)| most);
        let peak = u32::try_from(most).unwrap_or(u32::MAX);
        SimulatedExecutor { executor_id, slots, peak, busy_ms }
    };
    of.into_iter().map(executor).collect()
}

/// Both counts at each time at which one of them changes.
fn slots(running: &BTreeMap<Timestamp, u64>, ready: &BTreeMap<Timestamp, u64>) -> Vec<SlotUse> {
    let times: BTreeSet<Timestamp> = running.keys().chain(ready.keys()).copied().collect();
    let mut now = (0, 0);
    let at = times.into_iter().map(|at| {
        now =
            (running.get(&at).copied().unwrap_or(now.0), ready.get(&at).copied().unwrap_or(now.1));
        SlotUse { at, running: now.0, ready: now.1 }
    });
    at.collect()
}

/// What waits at the end, oldest first.
fn waiting(state: &State, to: Timestamp) -> Vec<WaitingInstance> {
    let waits =
        |i: &&Instance| i.is_open() && i.state != InstanceState::Running && i.created_at < to;
    let mut open: Vec<&Instance> = state.instances.open().filter(waits).collect();
    open.sort_by_key(|i| i.created_seq);
    let ids: Vec<InstanceId> = open.iter().map(|i| i.instance_id.clone()).collect();
    let reasons: BTreeMap<InstanceId, _> = answers::live(state, &ids)
        .into_iter()
        .map(|live| (live.instance_id, live.reason))
        .collect();
    let one = |i: &Instance| WaitingInstance {
        instance_id: i.instance_id.clone(),
        task_id: i.task_id.clone(),
        cycle: i.cycle.label().to_owned(),
        state: i.state,
        reason: reasons.get(&i.instance_id).copied().flatten(),
        created_at: i.created_at,
        waits_for: if i.is_waiting() { unmet(state, i) } else { Vec::new() },
    };
    open.into_iter().map(one).collect()
}

/// Upstreams that have not ended well, or of which there is no instance for it.
fn unmet(state: &State, i: &Instance) -> Vec<TaskId> {
    let met = |of: &InstanceId| state.instances.standing(of) == Some(Standing::Succeeded);
    let unmet = i.edges.iter().filter(|edge| !edge.instance_id.as_ref().is_some_and(met));
    unmet.map(|edge| edge.task_id.clone()).collect()
}

/// Tasks without an instance that only files or events start.
fn unstarted(state: &State, instances: &[SimulatedInstance]) -> Vec<UnstartedTask> {
    let started: BTreeSet<&TaskId> = instances.iter().map(|i| &i.task_id).collect();
    let from_outside = |kind: &TriggerKind| match kind {
        TriggerKind::File(_) | TriggerKind::Event(_) => true,
        TriggerKind::Cron(_) | TriggerKind::Every(_) | TriggerKind::Boot | TriggerKind::Task(_) => {
            false
        }
    };
    let specs = state.registry.specs().filter(|spec| {
        spec.enabled
            && !started.contains(&spec.task_id)
            && spec.triggers.iter().any(|trigger| from_outside(&trigger.when))
    });
    let one = |spec: &std::sync::Arc<crate::model::spec::TaskSpec>| {
        let triggers = spec.triggers.iter().filter(|trigger| from_outside(&trigger.when));
        let waits_for = triggers.map(answers::trigger_text).collect();
        UnstartedTask { task_id: spec.task_id.clone(), waits_for }
    };
    specs.map(one).collect()
}
