//! The checker: it recomputes what must hold from committed log entries and rows alone.
//!
//! What the world outside has seen (processes, reports, losses) it is told, to hold the log
//! against it.

mod answers;
mod barren;
mod edges;
mod ends;
mod fires;
mod lent;
mod moves;
mod order;
mod outside;
mod preemption;
mod shares;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::fires::Span;
use self::shares::Credit;
use super::marks::Marks;
use super::plant::Plant;
use crate::model::command::Command;
use crate::model::cycle::Cycle;
use crate::model::event::{AttemptRef, Finished};
use crate::model::id::{InstanceId, Lease, QueueName, TaskId};
use crate::model::instance::InstanceState::{
    self, Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded, Timeout,
};
use crate::model::instance::{Instance, Reason};
use crate::model::priority::Level;
use crate::model::record::{Batch, LogRecord, Record, Row, RowKey, Target};
use crate::model::request::Request;
use crate::model::settings::Settings;
use crate::model::spec::TaskSpec;

/// The store's rows.
pub(crate) type Rows = BTreeMap<RowKey, Row>;

/// Nothing, or what does not hold.
pub(crate) type Verdict = Result<(), String>;

/// One turn of the engine.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) batch: Batch,
    pub(crate) commands: Vec<Command>,
    /// What somebody asked for, as it was asked.
    pub(crate) asked: Option<Request>,
    /// The directory has been read once since the daemon came up.
    pub(crate) opened: bool,
    /// Files of triggers have been looked at once since the daemon came up.
    pub(crate) files_read: bool,
}

/// What the log said of an instance so far.
#[derive(Debug, Clone)]
struct Seen {
    task: TaskId,
    state: InstanceState,
    reason: Option<Reason>,
    is_final: bool,
    attempt: u32,
    executor: Option<String>,
    /// Of its newest attempt.
    queue: String,
    owner: String,
    /// When it became READY, by the clock as it is now, and at which log entry.
    ready: (i64, u64),
    /// Attempts that ended by the task's own fault; how many of them before a person's retry.
    faults: u32,
    forgiven: u32,
    requeues: u32,
    spawn_retries: u32,
    next_retry: Option<i64>,
    /// It runs, and somebody wants that to end.
    asked_to_end: bool,
    /// That is to give its slot to another; and times that it has.
    preempted: bool,
    preemptions: u32,
    /// Times a person had it tried again.
    retries: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Checker {
    /// As written, whatever the engine was given.
    settings: Settings,
    plant: Plant,
    pub(crate) marks: Marks,
    /// Hash over the whole log.
    pub(crate) hash: u64,
    seq: u64,
    turns: u64,
    seen: BTreeMap<InstanceId, Seen>,
    /// Of `seen`, those in these states.
    ready: BTreeSet<InstanceId>,
    running: BTreeSet<InstanceId>,
    waiting: BTreeSet<InstanceId>,
    paused: BTreeSet<Target>,
    /// What the queues have saved up for their turns.
    credit: Credit<QueueName>,
    /// What the levels have, in queues that share by level.
    credit_of_levels: BTreeMap<QueueName, Credit<Level>>,
    connected: BTreeSet<String>,
    stopping: bool,
    opened: bool,
    files_read: bool,
    written: RefCell<BTreeMap<(TaskId, u64), Arc<TaskSpec>>>,
    // Of this turn.
    ended: BTreeSet<InstanceId>,
    updated: BTreeSet<InstanceId>,
    created: BTreeMap<InstanceId, i64>,
    gives_way: BTreeSet<InstanceId>,
    /// Instances whose file went while they were READY: their places in the queue may be taken.
    places: Vec<(TaskId, String, (i64, u64))>,
    // The world outside.
    leases: BTreeMap<(InstanceId, u32), Lease>,
    sent: BTreeMap<(InstanceId, u32), Lease>,
    starts: BTreeMap<(InstanceId, u32), u32>,
    reports: BTreeMap<AttemptRef, Finished>,
    died: BTreeSet<AttemptRef>,
    /// Whose outputs somebody has seen.
    left_behind: BTreeSet<InstanceId>,
    boot: String,
    // Fires.
    spans: BTreeMap<(TaskId, String), Vec<Span>>,
    fired: BTreeMap<TaskId, u64>,
    /// Cycles of tasks in which a fire made nothing.
    barren: BTreeMap<TaskId, BTreeSet<Cycle>>,
    /// Nominal times of a task's triggers that had a row of their own.
    single: BTreeSet<(TaskId, String, i64)>,
}

pub(crate) fn instance<'a>(rows: &'a Rows, id: &InstanceId) -> Option<&'a Instance> {
    match rows.get(&RowKey::Instance { instance_id: id.clone() }) {
        Some(Row::Instance(i)) => Some(i),
        _ => None,
    }
}

pub(crate) fn instances(rows: &Rows) -> impl Iterator<Item = &Instance> {
    rows.values().filter_map(|row| match row {
        Row::Instance(i) => Some(&**i),
        _ => None,
    })
}

/// A revision as the engine has it.
fn revision<'a>(rows: &'a Rows, task: &TaskId, number: u64) -> Option<&'a Arc<TaskSpec>> {
    match rows.get(&RowKey::Revision { task_id: task.clone(), revision: number }) {
        Some(Row::Revision(r)) => Some(&r.spec),
        _ => None,
    }
}

/// The definition in force.
pub(crate) fn in_force<'a>(rows: &'a Rows, task: &TaskId) -> Option<&'a Arc<TaskSpec>> {
    match rows.get(&RowKey::Task { task_id: task.clone() }) {
        Some(Row::Task(t)) => revision(rows, task, t.revision?),
        _ => None,
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

impl Checker {
    pub(crate) fn new(settings: Settings, plant: Plant) -> Self {
        Self {
            settings,
            plant,
            marks: Marks::default(),
            hash: 0,
            seq: 0,
            turns: 0,
            seen: BTreeMap::new(),
            ready: BTreeSet::new(),
            running: BTreeSet::new(),
            waiting: BTreeSet::new(),
            paused: BTreeSet::new(),
            credit: Credit::default(),
            credit_of_levels: BTreeMap::new(),
            connected: BTreeSet::new(),
            stopping: false,
            opened: false,
            files_read: false,
            written: RefCell::default(),
            ended: BTreeSet::new(),
            updated: BTreeSet::new(),
            created: BTreeMap::new(),
            gives_way: BTreeSet::new(),
            places: Vec::new(),
            leases: BTreeMap::new(),
            sent: BTreeMap::new(),
            starts: BTreeMap::new(),
            reports: BTreeMap::new(),
            died: BTreeSet::new(),
            left_behind: BTreeSet::new(),
            boot: "boot-1".to_owned(),
            spans: BTreeMap::new(),
            fired: BTreeMap::new(),
            barren: BTreeMap::new(),
            single: BTreeSet::new(),
        }
    }

    /// A turn has become durable; `rows` are those after it.
    pub(crate) fn turn(&mut self, moment: &Moment, rows: &Rows) -> Verdict {
        self.opened = moment.opened;
        self.files_read = moment.files_read;
        self.ended.clear();
        self.updated.clear();
        self.created.clear();
        self.gives_way.clear();
        self.places.clear();
        for record in &moment.batch.records {
            self.entry(record, rows)?;
        }
        for row in moment.batch.rows.values().flatten() {
            if let Row::Instance(i) = row {
                self.attempts(i)?;
                self.as_the_log_says(i)?;
                self.key_is_its_own(i, rows)?;
                self.outputs_are_true(i, rows)?;
            }
        }
        self.empty_cycles_are_true(&moment.batch)?;
        self.turns += 1;
        if self.turns.is_multiple_of(32) {
            instances(rows).try_for_each(|i| self.as_the_log_says(i))?;
        }
        self.new_ones(rows)?;
        self.waiting(rows)?;
        self.nothing_idles(rows)?;
        self.gave_way_for_a_reason(rows)?;
        self.happenings(&moment.batch, rows)?;
        self.answered(moment, rows)
    }

    fn entry(&mut self, record: &LogRecord, rows: &Rows) -> Verdict {
        ensure(record.seq.0 == self.seq + 1, || {
            format!("log entry {} follows {}", record.seq.0, self.seq)
        })?;
        self.seq = record.seq.0;
        let text = serde_json::to_string(record).map_err(|e| e.to_string())?;
        // Reading back is slow, and the same for all entries of a kind.
        if self.seq.is_multiple_of(4) {
            let back: LogRecord = serde_json::from_str(&text).map_err(|e| e.to_string())?;
            let same = back == *record;
            ensure(same, || format!("log entry is not the same after JSON: {text}"))?;
        }
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.record(record, rows).map_err(|e| format!("{e}\nat log entry {text}"))
    }

    fn record(&mut self, record: &LogRecord, rows: &Rows) -> Verdict {
        let at = record.at.as_millis();
        match &record.what {
            Record::Created { instance_id, task_id, cycle, .. } => {
                self.made(instance_id, task_id, cycle, at, rows)
            }
            Record::Moved { .. } => self.moved(record, rows),
            Record::Updated { instance_id, what, .. } => {
                self.updated(instance_id, what, rows);
                Ok(())
            }
            Record::Fire(fire) => {
                self.barren(fire, rows);
                self.fire(fire)
            }
            Record::FireAmended { .. } => Ok(()),
            Record::DefinitionLoaded { task_id, revision: number, .. }
            | Record::DefinitionPinned { task_id, revision: number } => {
                let spec =
                    revision(rows, task_id, *number).ok_or("in force, but no revision row")?;
                self.triggers(task_id, Some(spec), at);
                Ok(())
            }
            Record::DefinitionUnpinned { task_id, .. } => {
                self.triggers(task_id, in_force(rows, task_id).map(|s| &**s), at);
                Ok(())
            }
            Record::DefinitionRemoved { task_id, .. } => {
                self.triggers(task_id, None, at);
                Ok(())
            }
            Record::Paused { target, .. } => {
                self.paused.insert(target.clone());
                Ok(())
            }
            Record::Resumed { target } => {
                self.paused.remove(target);
                Ok(())
            }
            Record::ExecutorConnected { executor_id, .. } => {
                self.connected.insert(executor_id.to_string());
                Ok(())
            }
            Record::ExecutorLost { executor_id, .. } => {
                self.connected.remove(executor_id.as_str());
                Ok(())
            }
            Record::DaemonStarted { .. } => {
                self.connected.clear();
                self.credit = Credit::default();
                self.credit_of_levels.clear();
                self.stopping = false;
                self.bound_waits(at, rows);
                Ok(())
            }
            Record::DaemonStopping => {
                self.stopping = true;
                Ok(())
            }
            Record::ClockStepped { by_ms } => {
                self.clock_steps(*by_ms);
                Ok(())
            }
            Record::Started { .. }
            | Record::DefinitionRefused(_)
            | Record::PriorityChanged { .. }
            | Record::Emitted { .. } => Ok(()),
        }
    }

    /// The definition that an instance follows, as it was written.
    fn spec(&self, rows: &Rows, i: &Instance) -> Result<Arc<TaskSpec>, String> {
        let given = revision(rows, &i.task_id, i.revision)
            .ok_or_else(|| format!("{} follows a revision without a row", i.instance_id))?;
        if self.plant == Plant::None {
            return Ok(Arc::clone(given));
        }
        let key = (i.task_id.clone(), i.revision);
        let mut written = self.written.borrow_mut();
        Ok(Arc::clone(written.entry(key).or_insert_with(|| self.plant.written(given))))
    }

    fn known(&self, id: &InstanceId) -> Result<&Seen, String> {
        self.seen.get(id).ok_or_else(|| format!("{id} was never made"))
    }
}
