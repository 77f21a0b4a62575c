//! Making instances: a root, and one of every derived task below it (docs/waves.md, rules 1 to 4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::fill;
use super::super::turn::Turn;
use super::{bind, empty, hold, latest};
use crate::limits;
use crate::model::backfill::MadeBelow;
use crate::model::cycle::{Cycle, CycleUnit};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Cause, Instance, InstanceState, Reason};
use crate::model::placeholders::Known;
use crate::model::priority::Priority;
use crate::model::spec::{JsonMap, TaskSpec};
use crate::model::time::Timestamp;

/// What makes a root instance. Its parameters have been checked.
pub(in super::super) struct Birth {
    pub(in super::super) spec: Arc<TaskSpec>,
    pub(in super::super) id: InstanceId,
    pub(in super::super) trigger: Cause,
    pub(in super::super) scheduled_time: Timestamp,
    pub(in super::super) cycle: Cycle,
    pub(in super::super) params: JsonMap,
    pub(in super::super) priority: Option<Priority>,
    pub(in super::super) not_before: Option<Timestamp>,
    pub(in super::super) ignore_deps: bool,
    pub(in super::super) no_downstream: bool,
}

/// The id of what a trigger makes: the same fire always makes the same id.
pub(in super::super) fn id_of(at: Timestamp, task: &TaskId, identity: &str) -> InstanceId {
    InstanceId::derive(at.as_millis(), &[task.as_str(), identity])
}

/// What became of a wish for a root instance.
pub(in super::super) enum Made {
    /// It is there, and its wave: what was made below it, from upstream to downstream.
    New(Vec<MadeBelow>),
    /// An instance of that id is there already: this fire has happened before.
    Before,
    /// Its `dedupKey` is taken.
    Duplicate {
        /// By whom.
        holder: InstanceId,
        /// In words.
        detail: String,
    },
}

/// Makes a root and its wave; or makes nothing, if the id or the `dedupKey` is taken.
pub(in super::super) fn create(turn: &mut Turn<'_>, birth: Birth) -> Made {
    if turn.state.instances.knows(&birth.id) {
        return Made::Before;
    }
    let spec = Arc::clone(&birth.spec);
    let quiet = birth.no_downstream;
    let root = root(turn, birth);
    if let Some(key) = &root.dedup_key
        && let Some(holder) = turn.state.instances.dedup_holder(root.task_id.base(), key).cloned()
    {
        let detail = format!("dedupKey {key} is taken by instance {holder}");
        return Made::Duplicate { holder, detail };
    }
    let source = Source::of(&root);
    let mut wave = Wave::new();
    enter(turn, &mut wave, &root.task_id, &source.root);
    let mut fresh = BTreeSet::from([source.root.clone()]);
    let below = if quiet { Vec::new() } else { reach(turn, &spec) };
    turn.create(root);
    empty::filled(turn, &spec.task_id, &source.cycle);
    let identity = source.root.as_str();
    let made = carry(turn, below, (&source, identity), (&mut wave, &mut fresh));
    if !quiet {
        bind::bind_waiting(turn, &wave);
    }
    turn.admit_later(source.root);
    Made::New(made)
}

/// Makes the instances of a wave, or takes up those that wait; tells what was made. `fresh` are
/// those of the wave that were not taken up.
pub(super) fn carry(
    turn: &mut Turn<'_>,
    below: Vec<Arc<TaskSpec>>,
    (source, identity): (&Source, &str),
    (wave, fresh): (&mut Wave, &mut BTreeSet<InstanceId>),
) -> Vec<MadeBelow> {
    let is_backfill = turn.state.instances.is_backfill(&source.root);
    let mut made = Vec::new();
    for spec in below {
        let Some((spec, cycle)) = part(turn, spec, &source.cycle) else { continue };
        let taken = match bind::gather(turn, &spec, &cycle, wave, fresh) {
            Some(id) => {
                bind::rebind(turn, &id, wave);
                id
            }
            None => {
                let id = derive(turn, &spec, cycle, source, identity, wave);
                fresh.insert(id.clone());
                made.push(MadeBelow { task_id: spec.task_id.clone(), instance_id: id.clone() });
                id
            }
        };
        enter(turn, wave, &spec.task_id, &taken);
        if !is_backfill {
            latest::by_wave(turn, &spec, &taken, source.scheduled_time);
        }
        turn.admit_later(taken);
    }
    made
}

/// The instances that take part in a wave, by their tasks.
pub(super) type Wave = BTreeMap<TaskId, InstanceId>;

/// What the instances of a wave take over from its root.
pub(super) struct Source {
    pub(super) root: InstanceId,
    pub(super) cycle: Cycle,
    pub(super) scheduled_time: Timestamp,
}

impl Source {
    fn of(root: &Instance) -> Self {
        Self {
            root: root.instance_id.clone(),
            cycle: root.cycle.clone(),
            scheduled_time: root.scheduled_time,
        }
    }
}

/// Makes the instance of a derived task in a wave; `identity` tells it from others of its time.
pub(super) fn derive(
    turn: &mut Turn<'_>,
    spec: &TaskSpec,
    cycle: Cycle,
    source: &Source,
    identity: &str,
    wave: &Wave,
) -> InstanceId {
    let id = id_of(source.scheduled_time, &spec.task_id, identity);
    let mut instance = blank(turn, spec, id.clone(), cycle, source.scheduled_time);
    instance.trigger = Cause::Wave { root: source.root.clone() };
    instance.root = source.root.clone();
    instance.edges = Arc::new(bind::edges(turn, spec, &instance.cycle, wave));
    turn.create(instance);
    id
}

/// The definition and cycle with which a derived task takes part in a wave of this cycle; `None`:
/// the version that would take it cannot.
pub(super) fn part(
    turn: &Turn<'_>,
    spec: Arc<TaskSpec>,
    cycle: &Cycle,
) -> Option<(Arc<TaskSpec>, Cycle)> {
    let rule = turn.state.registry.rule(&spec.task_id);
    let mine = if rule.unit == CycleUnit::Run { cycle.clone() } else { cycle.cut_to(rule.unit) };
    Some((taker(turn, spec, &mine)?, mine))
}

/// Notes an instance of the wave under its task and all versions that share its cycles: an edge on
/// any of them is an edge on whichever took the cycle (rule 16).
pub(super) fn enter(turn: &Turn<'_>, wave: &mut Wave, task: &TaskId, instance: &InstanceId) {
    for member in turn.state.registry.rollouts().of(task) {
        wave.insert(member.clone(), instance.clone());
    }
}

/// The version of a derived task that takes the cycle (rule 16); mostly the task itself.
fn taker(turn: &Turn<'_>, spec: Arc<TaskSpec>, cycle: &Cycle) -> Option<Arc<TaskSpec>> {
    let registry = &turn.state.registry;
    let chosen = registry.rollouts().choose(&spec.task_id, cycle);
    if *chosen == spec.task_id {
        return Some(spec);
    }
    registry.spec(chosen).filter(|spec| registry.unresolved(spec).is_empty()).cloned()
}

fn root(turn: &Turn<'_>, birth: Birth) -> Instance {
    let spec = birth.spec;
    let mut i = blank(turn, &spec, birth.id, birth.cycle, birth.scheduled_time);
    i.trigger = birth.trigger;
    i.root = i.instance_id.clone();
    i.priority = birth.priority.unwrap_or(i.priority);
    i.not_before = birth.not_before;
    // The clock of waiting for dependencies starts when its own time has come (docs/waves.md,
    // rule 11).
    let waits_for = birth.not_before.unwrap_or(turn.now).since(turn.now);
    i.dependency_deadline = i.dependency_deadline.map(|at| at.plus(waits_for));
    i.expires_at = i.expires_at.map(|at| at.plus(waits_for));
    i.given_params = Arc::new(birth.params);
    if birth.not_before.is_some() {
        i.reason = Some(Reason::WaitingTrigger);
    }
    i.ignore_deps = birth.ignore_deps;
    if birth.ignore_deps {
        i.dependency_deadline = None;
        i.held_since = None;
    } else {
        i.edges = Arc::new(bind::edges(turn, &spec, &i.cycle, &Wave::new()));
    }
    i.runtime_params = Arc::clone(&i.given_params);
    // Parameters may still flow down an edge: then the key is filled when it becomes READY.
    i.dedup_key = dedup_key(turn, &spec, &i).ok().flatten();
    i
}

/// Whether a wave goes on from any of these versions to a task: an edge that looks for another cycle
/// only holds the task, unless it has no other edges.
fn is_carried(spec: &TaskSpec, upstreams: &[TaskId]) -> bool {
    let mut edges = spec.depends_on.iter();
    edges.clone().any(|d| d.cycle_offset == 0 && upstreams.contains(&d.task_id))
        || edges.all(|d| d.cycle_offset != 0)
}

/// The tasks of a wave below its root, in topological order.
pub(super) fn reach(turn: &Turn<'_>, root: &TaskSpec) -> Vec<Arc<TaskSpec>> {
    let registry = &turn.state.registry;
    let graph = registry.graph();
    let root_unit = registry.rule(&root.task_id).unit;
    let may_take_part = |task: &TaskId| {
        let spec = registry.spec(task).filter(|spec| spec.enabled && spec.is_derived())?;
        // A daily side input never starts a task of unit RUN; it only holds its edge.
        let is_reached = registry.rule(task).unit != CycleUnit::Run || root_unit == CycleUnit::Run;
        // A version that takes its share of a lower one's cycles is no task beside it.
        let is_own = !registry.rollouts().is_taker(task);
        (is_reached && is_own && registry.unresolved(spec).is_empty()).then_some(spec)
    };
    // Each task is asked once, however many edges lead to it.
    let mut asked: BTreeMap<TaskId, Option<&Arc<TaskSpec>>> = BTreeMap::new();
    let mut found: BTreeMap<(usize, TaskId), Arc<TaskSpec>> = BTreeMap::new();
    let mut frontier = vec![root.task_id.clone()];
    while let Some(task) = frontier.pop() {
        for below in graph.downstream(&task) {
            let spec = asked.entry(below.clone()).or_insert_with(|| may_take_part(below));
            if let Some(taken) = spec.filter(|s| is_carried(s, registry.rollouts().of(&task))) {
                found.insert((graph.level(below), below.clone()), Arc::clone(taken));
                frontier.push(below.clone());
                *spec = None;
            }
        }
    }
    found.into_values().collect()
}

/// An instance as it begins: PENDING, nothing tried yet.
fn blank(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    id: InstanceId,
    cycle: Cycle,
    scheduled_time: Timestamp,
) -> Instance {
    let row = turn.state.registry.row(&spec.task_id);
    let is_held = !spec.depends_on.is_empty()
        && spec.dependency_timeout.is_some()
        && hold::holds(turn.state, &spec.task_id, &spec.queue);
    Instance {
        root: id.clone(),
        instance_id: id,
        created_seq: 0,
        task_id: spec.task_id.clone(),
        version: spec.version,
        revision: row.and_then(|r| r.revision).unwrap_or(0),
        state: InstanceState::Pending,
        reason: (!spec.depends_on.is_empty()).then_some(Reason::WaitingDependency),
        attempt: 0,
        max_attempts: spec.retry.max_attempts,
        faults: 0,
        requeues: 0,
        preemptions: 0,
        spawn_retries: 0,
        cycle,
        scheduled_time,
        trigger: Cause::Boot,
        priority: row.and_then(|r| r.priority).unwrap_or(spec.priority),
        queue: spec.queue.clone(),
        executor_id: None,
        created_at: turn.now,
        not_before: None,
        ready_at: None,
        ready_seq: 0,
        started_at: None,
        finished_at: None,
        next_retry_at: None,
        exit_code: None,
        signal: None,
        error_code: None,
        message: None,
        static_params: Arc::new(spec.static_params.clone()),
        given_params: Arc::default(),
        runtime_params: Arc::default(),
        output: None,
        outputs: None,
        edges: Arc::default(),
        ignore_deps: false,
        degraded: false,
        paused: None,
        stopping: None,
        cancelled_by: None,
        awaits_upstream: false,
        dedup_key: None,
        dependency_deadline: spec
            .dependency_timeout
            .filter(|_| !spec.depends_on.is_empty())
            .map(|t| turn.now.plus(t)),
        held_since: is_held.then_some(turn.now),
        expires_at: Some(turn.now.plus(turn.state.retention(Some(spec)))),
        attempts: Vec::new(),
    }
}

/// The instance's `dedupKey`, filled; an error if a placeholder has no value yet.
pub(super) fn dedup_key(
    turn: &Turn<'_>,
    spec: &TaskSpec,
    i: &Instance,
) -> Result<Option<String>, String> {
    let Some(template) = &spec.dedup_key else { return Ok(None) };
    let params = fill::complete(turn.state, spec, i)?;
    let key = Known::of(spec, i, &params, None).text(template)?;
    let max = limits::DEDUP_KEY_BYTES_MAX;
    if key.len() > max {
        return Err(format!("the dedupKey has {} bytes; at most {max} are kept", key.len()));
    }
    Ok(Some(key))
}
