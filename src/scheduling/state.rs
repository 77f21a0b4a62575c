//! The core's whole state, and what is derived from the rows.
//!
//! Two kinds of state, never mixed: *remembered* (rows, changed only through a turn, which also
//! makes them durable) and *observed* (connections of executors, the files' texts). Everything
//! else here is an index over the rows: [`State::reindex`] and [`State::schedule`] keep it, live
//! and while loading alike, so a loaded state equals the live one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::agenda::{Agenda, Due};
use super::data_waits::DataWaits;
use super::empty_cycles::EmptyCycles;
use super::ended::may_be_retried;
use super::inheritance::Inheritance;
use super::instances::InstanceTable;
use super::lifecycle::misfire::Unseen;
use super::nominal::Nominal;
use super::order::Victims;
use super::queue::DispatchQueue;
use super::registry::Registry;
use super::roster::{Roster, Usage};
use super::round_robin::Turns;
use super::zones::Zones;
use crate::limits;
use crate::model::command::FileWatch;
use crate::model::id::{InstanceId, LogSeq, TaskId};
use crate::model::instance::{Instance, Pause};
use crate::model::jump::Jumps;
use crate::model::record::{Arrival, ArrivalKey, Hold, Row, Submission, Target};
use crate::model::request::StopMode;
use crate::model::settings::Settings;
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};
use crate::model::time::Timestamp;

/// What the process is: part of answers, never of decisions (but for the boot).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The program's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// The machine's boot.
    pub boot_id: Arc<str>,
    /// When the daemon started.
    pub started_at: Timestamp,
}

/// The daemon is on its way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopping {
    pub(super) mode: StopMode,
    /// Until when executors that have not connected may hold it; `None`: no longer.
    pub(super) hears_until: Option<Timestamp>,
}

/// The core's whole state.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: Arc<Settings>,
    pub(super) process: Process,
    pub(super) registry: Registry,
    pub(super) zones: Zones,
    pub(super) instances: InstanceTable,
    pub(super) data_waits: DataWaits,
    pub(super) queue: DispatchQueue,
    pub(super) inheritance: Inheritance,
    pub(super) victims: Victims,
    /// Running instances that are being ended.
    pub(super) ending: BTreeSet<InstanceId>,
    pub(super) turns: Turns,
    pub(super) usage: Usage,
    pub(super) roster: Roster,
    pub(super) agenda: Agenda,
    pub(super) next_fires: BTreeMap<(TaskId, String), Timestamp>,
    pub(super) cursors: BTreeMap<(TaskId, String), Timestamp>,
    pub(super) jumps: BTreeMap<(TaskId, String), Jumps>,
    /// By path, then by who took it and by which pattern.
    pub(super) arrivals: BTreeMap<String, BTreeMap<(TaskId, String), Arrival>>,
    pub(super) submissions: BTreeMap<String, Submission>,
    pub(super) holds: BTreeMap<Target, Pause>,
    pub(super) empty_cycles: EmptyCycles,
    /// The last log entry.
    pub(super) tip: LogSeq,
    /// The directory has been read once since the start; before that nothing fires.
    pub(super) opened: bool,
    /// Fires up to here that are still to come were not seen to become due, and why.
    pub(super) unseen: (Timestamp, Unseen),
    pub(super) stopping: Option<Stopping>,
    /// What the watcher was told last; `None`: nothing yet.
    pub(super) watched: Option<Vec<FileWatch>>,
    /// Files of earlier arrivals have not been looked for since the start, which takes a bounded time.
    pub(super) files_unread: bool,
}

impl State {
    /// An empty state; rows are put in by [`State::load`].
    pub(super) fn new(settings: Arc<Settings>, process: Process, tip: LogSeq) -> Self {
        Self {
            settings,
            process,
            registry: Registry::default(),
            zones: Zones::default(),
            instances: InstanceTable::default(),
            data_waits: DataWaits::default(),
            queue: DispatchQueue::default(),
            inheritance: Inheritance::default(),
            victims: Victims::new(),
            ending: BTreeSet::new(),
            turns: Turns::default(),
            usage: Usage::default(),
            roster: Roster::default(),
            agenda: Agenda::default(),
            next_fires: BTreeMap::new(),
            cursors: BTreeMap::new(),
            jumps: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            submissions: BTreeMap::new(),
            holds: BTreeMap::new(),
            empty_cycles: EmptyCycles::default(),
            tip,
            opened: false,
            unseen: (Timestamp::from_millis(i64::MIN), Unseen::Down),
            stopping: None,
            watched: None,
            files_unread: true,
        }
    }

    /// Takes the rows of the store, in any order.
    pub(super) fn load(&mut self, rows: impl IntoIterator<Item = Row>) {
        let (mut instances, mut revisions, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match row {
                Row::Instance(instance) => instances.push(instance),
                Row::Revision(revision) => revisions.push(revision),
                Row::Task(task) => tasks.push(task),
                Row::Cursor(c) => {
                    self.cursors.insert((c.task_id, c.trigger), c.handled_to);
                }
                Row::Jumps(jumps) => {
                    self.jumps.insert((jumps.task_id.clone(), jumps.trigger.clone()), jumps);
                }
                Row::Arrival(arrival) => self.index_arrival(arrival),
                Row::Submission(submission) => self.index_submission(submission),
                Row::EmptyCycle(empty) => self.index_empty_cycle(empty),
                Row::Hold(Hold { target, pause }) => {
                    self.agenda_pause(&target, None, Some(&pause));
                    self.holds.insert(target, pause);
                }
            }
        }
        let followed: BTreeSet<(TaskId, u64)> = instances
            .iter()
            .filter(|i| i.is_open() || may_be_retried(i.state))
            .map(|i| (i.task_id.clone(), i.revision))
            .collect();
        self.registry.load(tasks, revisions, &followed);
        let timezone = self.settings.timezone.clone();
        self.zones.learn(&timezone);
        self.registry.specs().for_each(|spec| self.zones.learn_of(spec));
        let ids: BTreeSet<InstanceId> = instances.iter().map(|i| i.instance_id.clone()).collect();
        for instance in instances {
            self.reindex(None, &instance);
            self.instances.put(&instance);
        }
        self.instances.settle(&ids);
        // A pause outlives the definition of its task.
        let tasks: Vec<(TaskId, Option<Pause>)> =
            self.registry.rows().map(|r| (r.task_id.clone(), r.paused.clone())).collect();
        for (task, pause) in tasks {
            self.agenda_pause(&Target::Task(task.clone()), None, pause.as_ref());
            self.schedule(&task);
        }
    }

    /// Brings order, agenda and waits for data in line with an instance's new value.
    pub(super) fn reindex(&mut self, old: Option<&Instance>, new: &Instance) {
        self.data_waits.reindex(&self.instances, old, new);
        self.reorder(old, new);
        let (before, after) = (old.map(deadlines).unwrap_or_default(), deadlines(new));
        if before != after {
            before.into_iter().for_each(|(at, due)| self.agenda.remove(at, due));
            after.into_iter().for_each(|(at, due)| self.agenda.add(at, due));
        }
    }

    /// Brings the agenda in line with a task's time triggers and their cursors.
    pub(super) fn schedule(&mut self, task: &TaskId) {
        let first = (task.clone(), String::new());
        let old: Vec<(TaskId, String)> = self
            .next_fires
            .range(first..)
            .take_while(|((t, _), _)| t == task)
            .map(|(key, _)| key.clone())
            .collect();
        for key in old {
            if let Some(at) = self.next_fires.remove(&key) {
                self.agenda.remove(at, Due::Fire { task: key.0, trigger: key.1 });
            }
        }
        let Some(spec) = self.registry.spec(task).cloned() else { return };
        for trigger in &spec.triggers {
            let key = (task.clone(), trigger.key());
            let Some(cursor) = self.cursors.get(&key).copied() else { continue };
            if let Some(at) = self.next_due(&spec, trigger, cursor) {
                self.agenda.add(at, Due::Fire { task: key.0.clone(), trigger: key.1.clone() });
                self.next_fires.insert(key, at);
            }
        }
    }

    /// Puts in an answer that is kept for a repetition.
    pub(super) fn index_submission(&mut self, submission: Submission) {
        self.unindex_submission(&submission.key);
        let forget_at = submission.at.plus(limits::ANSWER_KEPT);
        self.agenda.add(forget_at, Due::ForgetAnswer(submission.key.clone()));
        self.submissions.insert(submission.key.clone(), submission);
    }

    pub(super) fn unindex_submission(&mut self, key: &str) {
        if let Some(old) = self.submissions.remove(key) {
            let forget_at = old.at.plus(limits::ANSWER_KEPT);
            self.agenda.remove(forget_at, Due::ForgetAnswer(key.to_owned()));
        }
    }

    /// Puts in a file that was taken, new or changed.
    pub(super) fn index_arrival(&mut self, arrival: Arrival) {
        let key = arrival.key();
        self.unindex_arrival(&key);
        if let Some(gone_at) = arrival.gone_at {
            self.agenda.add(gone_at.plus(limits::ARRIVAL_KEPT), Due::Forget(key.clone()));
        }
        let (task, pattern, path) = key;
        self.arrivals.entry(path).or_default().insert((task, pattern), arrival);
    }

    /// What is remembered of all files that were taken.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = &Arrival> {
        self.arrivals.values().flat_map(BTreeMap::values)
    }

    pub(super) fn unindex_arrival(&mut self, key: &ArrivalKey) {
        let (task, pattern, path) = key.clone();
        let Some(of_path) = self.arrivals.get_mut(&path) else { return };
        let old = of_path.remove(&(task, pattern));
        if of_path.is_empty() {
            self.arrivals.remove(&path);
        }
        if let Some(gone_at) = old.and_then(|old| old.gone_at) {
            self.agenda.remove(gone_at.plus(limits::ARRIVAL_KEPT), Due::Forget(key.clone()));
        }
    }

    /// A time trigger's first nominal time strictly after `after`; `None` for other triggers.
    pub(super) fn next_after(
        &self,
        spec: &TaskSpec,
        trigger: &Trigger,
        after: Timestamp,
    ) -> Option<Timestamp> {
        self.nominal(spec, trigger)?.next(after)
    }

    /// That, less what the clock shows a second time.
    fn next_due(&self, spec: &TaskSpec, trigger: &Trigger, after: Timestamp) -> Option<Timestamp> {
        let times = self.nominal(spec, trigger)?;
        let mut at = times.next(after)?;
        if let Some(jumps) = self.jumps.get(&(spec.task_id.clone(), trigger.key())) {
            while let Some(done_until) = jumps.done_until(at) {
                at = times.next(done_until)?;
            }
        }
        Some(at)
    }

    /// What jumps of the clock left behind at a time trigger. One of which nothing is remembered
    /// began with its task.
    pub(super) fn jumps_of(&self, key: &(TaskId, String)) -> Jumps {
        let none = || {
            let since = self.registry.row(&key.0).map(|row| row.created_at).unwrap_or_default();
            Jumps::none(key.0.clone(), key.1.clone(), since)
        };
        self.jumps.get(key).cloned().unwrap_or_else(none)
    }

    /// Whether a nominal time of a task has had its row. Of triggers that share it, the first key
    /// counts it.
    pub(super) fn is_done(&self, spec: &TaskSpec, at: Timestamp) -> bool {
        let first = (spec.task_id.clone(), String::new());
        if self.jumps.range(first..).next().is_none_or(|((task, _), _)| *task != spec.task_id) {
            return false;
        }
        let fires = |t: &&Trigger| self.nominal(spec, t).is_some_and(|times| times.fires_at(at));
        let counting = spec.triggers.iter().filter(fires).map(Trigger::key).min();
        let jumps = counting.and_then(|key| self.jumps.get(&(spec.task_id.clone(), key)));
        jumps.is_some_and(|jumps| jumps.done_until(at).is_some())
    }

    /// A time trigger's nominal times; `None` for other triggers.
    pub(super) fn nominal(&self, spec: &TaskSpec, trigger: &Trigger) -> Option<Nominal> {
        match &trigger.when {
            TriggerKind::Cron(t) => {
                let zone = self.zone(t.timezone.as_deref().or(spec.timezone.as_deref()));
                Some(Nominal::Cron(t.expr.clone(), zone))
            }
            TriggerKind::Every(t) => Some(Nominal::Every(t.period)),
            TriggerKind::Boot
            | TriggerKind::File(_)
            | TriggerKind::Event(_)
            | TriggerKind::Task(_) => None,
        }
    }

    /// A zone by name; the daemon's if none is named.
    pub(super) fn zone(&self, name: Option<&str>) -> TimeZone {
        self.zones.get(name.unwrap_or(&self.settings.timezone))
    }

    /// The definition an instance follows: pinned, or in force, or the last that was.
    pub(super) fn spec_of(&self, instance: &Instance) -> Option<Arc<TaskSpec>> {
        let revision = self.registry.revision(&instance.task_id, instance.revision)?;
        Some(Arc::clone(&revision.spec))
    }

    /// Brings the agenda in line with a pause's end.
    pub(super) fn agenda_pause(
        &mut self,
        target: &Target,
        old: Option<&Pause>,
        new: Option<&Pause>,
    ) {
        if let Some(until) = old.and_then(|p| p.until) {
            self.agenda.remove(until, Due::PauseEnds(target.clone()));
        }
        if let Some(until) = new.and_then(|p| p.until) {
            self.agenda.add(until, Due::PauseEnds(target.clone()));
        }
    }

    /// What differs between this state and another in what is remembered or derived from it.
    pub(super) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let mut different = Vec::new();
        let mut check = |what, same: bool| {
            if !same {
                different.push(what);
            }
        };
        check("registry", self.registry.remembered() == other.registry.remembered());
        check("queue", self.queue == other.queue);
        check("waits for data", self.data_waits.derived() == other.data_waits.derived());
        check("usage", self.usage == other.usage);
        check("inheritance", self.inheritance == other.inheritance);
        check("victims", (&self.victims, &self.ending) == (&other.victims, &other.ending));
        check("agenda", self.agenda == other.agenda);
        check("next fires", self.next_fires == other.next_fires);
        check("cursors", self.cursors == other.cursors);
        check("jumps", self.jumps == other.jumps);
        check("arrivals", self.arrivals == other.arrivals);
        check("submissions", self.submissions == other.submissions);
        check("holds", self.holds == other.holds);
        check("empty cycles", self.empty_cycles == other.empty_cycles);
        check("tip", self.tip == other.tip);
        different.extend(self.instances.differences(&other.instances));
        different
    }
}

/// What of an instance becomes due by itself.
fn deadlines(i: &Instance) -> Vec<(Timestamp, Due)> {
    let id = &i.instance_id;
    let mut due = Vec::new();
    if let Some(at) = i.next_retry_at {
        due.push((at, Due::Retry(id.clone())));
    }
    if i.is_waiting() {
        due.extend(i.not_before.map(|at| (at, Due::NotBefore(id.clone()))));
        due.extend(i.expires_at.map(|at| (at, Due::Expires(id.clone()))));
        // While it is held its dependency clock stands still (docs/waves.md, rule 11).
        let deadline = i.dependency_deadline.filter(|_| i.held_since.is_none());
        due.extend(deadline.map(|at| (at, Due::DependencyDeadline(id.clone()))));
    }
    if i.is_open()
        && let Some(until) = i.paused.as_ref().and_then(|p| p.until)
    {
        due.push((until, Due::PauseEnds(Target::Instance(id.clone()))));
    }
    due
}
