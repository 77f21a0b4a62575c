//! The checker: it recomputes what must hold from committed log entries and rows alone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;

use crate::model::cycle::{Cycle, CycleRule};
use crate::model::event::AttemptRef;
use crate::model::id::{InstanceId, Lease, TaskId};
use crate::model::instance::Instance;
use crate::model::instance::InstanceState::{
    self, Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded, Timeout,
};
use crate::model::record::{Batch, Fire, FireOutcome, LogRecord, Record, Row, RowKey};
use crate::model::settings::Settings;
use crate::model::spec::{Strength, TaskSpec, TriggerKind};
use crate::model::time::Timestamp;

/// The store's rows.
pub(crate) type Rows = BTreeMap<RowKey, Row>;

/// Nothing, or what does not hold.
pub(crate) type Verdict = Result<(), String>;

/// The legal moves, written out once more.
const LEGAL: [(InstanceState, &[InstanceState]); 8] = [
    (Pending, &[Ready, Blocked, Cancelled]),
    (Blocked, &[Pending, Ready, Cancelled]),
    (Ready, &[Running, Cancelled]),
    (Running, &[Succeeded, Failed, Timeout]),
    (Failed, &[Ready, Cancelled]),
    (Timeout, &[Ready, Cancelled]),
    (Succeeded, &[]),
    (Cancelled, &[]),
];

/// What the log said of an instance so far.
#[derive(Debug, Clone)]
struct Seen {
    task: TaskId,
    state: InstanceState,
    is_final: bool,
    attempt: u32,
    executor: Option<String>,
    queue: String,
    /// Times a person had it tried again.
    retries: u32,
}

/// A stretch of time in which a fixed-rate trigger was in force: after `from`, up to `to`.
#[derive(Debug, Clone)]
struct Span {
    period: i64,
    from: i64,
    to: Option<i64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    seq: u64,
    seen: BTreeMap<InstanceId, Seen>,
    leases: BTreeMap<(InstanceId, u32), Lease>,
    sent: BTreeMap<(InstanceId, u32), Lease>,
    starts: BTreeMap<(InstanceId, u32), u32>,
    spans: BTreeMap<(TaskId, String), Vec<Span>>,
    fired: BTreeMap<TaskId, u64>,
    /// A task's nominal times that had a row of their own.
    single: BTreeSet<(TaskId, i64)>,
    /// Cycles of tasks in which a fire made nothing.
    barren: BTreeMap<TaskId, BTreeSet<Cycle>>,
    /// What definitions said, where a planted fault hides it from the engine.
    promised_max: BTreeMap<TaskId, u32>,
    promised_strong: bool,
    /// Hash over the whole log.
    pub(crate) hash: u64,
    pub(crate) dispatched: u64,
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

fn revision<'a>(rows: &'a Rows, task: &TaskId, number: u64) -> Option<&'a TaskSpec> {
    match rows.get(&RowKey::Revision { task_id: task.clone(), revision: number }) {
        Some(Row::Revision(r)) => Some(&r.spec),
        _ => None,
    }
}

/// The definition in force.
fn in_force<'a>(rows: &'a Rows, task: &TaskId) -> Option<&'a TaskSpec> {
    match rows.get(&RowKey::Task { task_id: task.clone() }) {
        Some(Row::Task(t)) => revision(rows, task, t.revision?),
        _ => None,
    }
}

fn is_over(state: InstanceState, retry_to_come: bool) -> bool {
    match state {
        Succeeded | Cancelled => true,
        Failed | Timeout => !retry_to_come,
        Pending | Blocked | Ready | Running => false,
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}

impl Checker {
    pub(crate) fn promise_max(&mut self, task: &TaskId, max: u32) {
        self.promised_max.insert(task.clone(), max);
    }

    pub(crate) fn promise_strong(&mut self) {
        self.promised_strong = true;
    }

    /// A batch has become durable; `rows` are those after it.
    pub(crate) fn commit(&mut self, batch: &Batch, rows: &Rows, settings: &Settings) -> Verdict {
        for record in &batch.records {
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
            self.record(record, rows, settings).map_err(|e| format!("at log entry {text}: {e}"))?;
        }
        for row in batch.rows.values().flatten() {
            if let Row::Instance(i) = row {
                self.attempts(i)?;
            }
        }
        self.standing(rows)
    }

    fn record(&mut self, record: &LogRecord, rows: &Rows, settings: &Settings) -> Verdict {
        match &record.what {
            Record::Created { instance_id, task_id, .. } => {
                let row = instance(rows, instance_id).ok_or("made, but no row")?;
                let seen = Seen {
                    task: task_id.clone(),
                    state: Pending,
                    is_final: false,
                    attempt: 0,
                    executor: None,
                    queue: row.queue.to_string(),
                    retries: 0,
                };
                let old = self.seen.insert(instance_id.clone(), seen);
                ensure(old.is_none(), || "made twice".to_owned())
            }
            Record::Moved { instance_id, from, to, attempt, next_retry_at, .. } => {
                let retry = next_retry_at.is_some();
                let over = self.seen.get(instance_id).is_some_and(|s| s.is_final);
                ensure(!over || *to == Cancelled || record.uid.is_some(), || {
                    "went on by itself after it was over for good".to_owned()
                })?;
                let Record::Moved { executor_id, .. } = &record.what else { return Ok(()) };
                let executor = executor_id.as_ref().map(ToString::to_string);
                self.moved(instance_id, (*from, *to), *attempt, executor, retry)?;
                match to {
                    Ready if matches!(from, Pending | Blocked) => {
                        self.edges_hold(instance_id, rows)
                    }
                    Ready if record.uid.is_some() => {
                        if let Some(seen) = self.seen.get_mut(instance_id) {
                            seen.retries += 1;
                        }
                        Ok(())
                    }
                    Running => self.fits(instance_id, rows, settings),
                    _ => Ok(()),
                }
            }
            Record::Fire(fire) => {
                self.barren(fire, rows);
                self.fire(fire)
            }
            Record::DefinitionLoaded { task_id, revision: number, .. } => {
                let spec = revision(rows, task_id, *number);
                let at = record.at.as_millis();
                self.triggers(task_id, Some(spec.ok_or("loaded, but no revision row")?), at);
                Ok(())
            }
            Record::DefinitionPinned { task_id, revision: number } => {
                let spec = revision(rows, task_id, *number);
                let at = record.at.as_millis();
                self.triggers(task_id, Some(spec.ok_or("pinned, but no revision row")?), at);
                Ok(())
            }
            Record::DefinitionUnpinned { task_id, .. } => {
                self.triggers(task_id, in_force(rows, task_id), record.at.as_millis());
                Ok(())
            }
            Record::DefinitionRemoved { task_id, .. } => {
                self.triggers(task_id, None, record.at.as_millis());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn moved(
        &mut self,
        id: &InstanceId,
        (from, to): (InstanceState, InstanceState),
        attempt: u32,
        executor: Option<String>,
        retry: bool,
    ) -> Verdict {
        let seen = self.seen.get_mut(id).ok_or("moved, but never made")?;
        ensure(seen.state == from, || format!("{id} was {}, not {from}", seen.state))?;
        let legal = LEGAL.iter().any(|(f, to_these)| *f == from && to_these.contains(&to));
        ensure(legal, || format!("{id} moved from {from} to {to}"))?;
        let due = if to == Running { seen.attempt + 1 } else { seen.attempt };
        ensure(attempt == due, || format!("{id} has attempt {attempt}, not {due}"))?;
        seen.attempt = attempt;
        seen.state = to;
        seen.is_final = is_over(to, retry);
        if to == Running {
            seen.executor = executor;
        }
        Ok(())
    }

    /// A dependent goes on only when every strong edge's instance SUCCEEDED and every weak one's
    /// is over.
    fn edges_hold(&self, id: &InstanceId, rows: &Rows) -> Verdict {
        let row = instance(rows, id).ok_or("no row")?;
        if row.degraded {
            return Ok(());
        }
        for edge in row.edges.iter() {
            if edge.instance_id.is_none() && self.makes_nothing(rows, &row.cycle, &edge.task_id) {
                ensure(edge.strength == Strength::Weak, || format!("{id} is READY: {edge:?}"))?;
                continue;
            }
            let up = edge.instance_id.as_ref().and_then(|up| self.seen.get(up));
            let strong = if self.promised_strong { Strength::Strong } else { edge.strength };
            let holds = match strong {
                Strength::Strong => up.is_some_and(|s| s.state == Succeeded),
                Strength::Weak => up.is_some_and(|s| s.is_final),
            };
            ensure(holds, || format!("{id} is READY but its edge {edge:?} is {up:?}"))?;
        }
        Ok(())
    }

    /// Never more running than slots, `maxConcurrent` and the queue's quota allow.
    fn fits(&mut self, id: &InstanceId, rows: &Rows, settings: &Settings) -> Verdict {
        self.dispatched += 1;
        let row = instance(rows, id).ok_or("no row")?;
        let spec = revision(rows, &row.task_id, row.revision).ok_or("no revision")?;
        let queue = row.queue.to_string();
        if let Some(seen) = self.seen.get_mut(id) {
            seen.queue = queue;
        }
        let me = self.seen.get(id).ok_or("never made")?;
        let count = |same: &dyn Fn(&Seen) -> bool| {
            self.seen.values().filter(|s| s.state == Running && same(s)).count()
        };
        let on_executor = count(&|s| s.executor == me.executor);
        let slots = settings
            .executors
            .iter()
            .find(|e| Some(e.id.to_string()) == me.executor)
            .map_or(0, |e| e.slots);
        ensure(on_executor <= slots as usize, || {
            format!("{on_executor} run on {:?}, which has {slots} slots", me.executor)
        })?;
        let of_task = count(&|s| s.task == me.task);
        let max = spec.max_concurrent.or(self.promised_max.get(&me.task).copied());
        ensure(max.is_none_or(|max| of_task <= max as usize), || {
            format!("{of_task} of {} run; maxConcurrent is {max:?}", me.task)
        })?;
        let in_queue = count(&|s| s.queue == me.queue);
        let max = settings.queues.iter().find(|q| q.name.as_str() == me.queue);
        ensure(max.and_then(|q| q.max_running).is_none_or(|max| in_queue <= max as usize), || {
            format!("{in_queue} of queue {} run", me.queue)
        })
    }

    /// One lease per attempt, one attempt per lease, attempts counted from 1.
    fn attempts(&mut self, i: &Instance) -> Verdict {
        for (n, attempt) in i.attempts.iter().enumerate() {
            ensure(attempt.attempt as usize == n + 1, || format!("attempts of {i:?}"))?;
            let key = (i.instance_id.clone(), attempt.attempt);
            let lease = *self.leases.entry(key).or_insert(attempt.lease);
            ensure(lease == attempt.lease, || format!("a second lease: {i:?}"))?;
        }
        Ok(())
    }

    /// Every row stands where its upstreams put it, and where the log says.
    fn standing(&self, rows: &Rows) -> Verdict {
        for i in instances(rows) {
            let seen = self.seen.get(&i.instance_id).ok_or("a row that was never made")?;
            ensure(seen.state == i.state, || {
                format!("row of {} says {}, the log {}", i.instance_id, i.state, seen.state)
            })?;
            ensure(seen.attempt == i.attempt, || format!("{} has a lost row", i.instance_id))?;
            if !matches!(i.state, Pending | Blocked) || i.not_before.is_some() {
                continue;
            }
            let (mut waits, mut broken) = (false, false);
            for edge in i.edges.iter() {
                match edge.instance_id.as_ref().map(|up| self.seen.get(up)) {
                    None if self.makes_nothing(rows, &i.cycle, &edge.task_id) => {
                        broken |= edge.strength == Strength::Strong;
                    }
                    None => {
                        let known = in_force(rows, &edge.task_id).is_some_and(|s| s.enabled);
                        waits |= known;
                        broken |= !known;
                    }
                    Some(Some(up)) if !up.is_final => waits = true,
                    Some(Some(up)) => {
                        broken |= up.state != Succeeded && edge.strength == Strength::Strong;
                    }
                    Some(None) => broken |= edge.strength == Strength::Strong,
                }
            }
            let right = if broken { Blocked } else { Pending };
            ensure(i.state == right && (waits || broken), || {
                format!(
                    "{} is {}; its edges wait: {waits}, broken: {broken}; {:?}",
                    i.instance_id, i.state, i.edges
                )
            })?;
        }
        Ok(())
    }

    // Fires

    fn triggers(&mut self, task: &TaskId, spec: Option<&TaskSpec>, at: i64) {
        let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
        for trigger in spec.iter().flat_map(|s| &s.triggers) {
            if let TriggerKind::Every(t) = &trigger.when {
                wanted.insert(trigger.key(), i64::try_from(t.period.as_millis()).unwrap_or(1));
            }
        }
        for ((of, key), spans) in &mut self.spans {
            if of == task
                && !wanted.contains_key(key)
                && let Some(last) = spans.last_mut()
            {
                last.to = last.to.or(Some(at));
            }
        }
        for (key, period) in wanted {
            let spans = self.spans.entry((task.clone(), key)).or_default();
            if spans.last().is_none_or(|s| s.to.is_some()) {
                spans.push(Span { period, from: at, to: None });
            }
        }
    }

    /// Notes the cycles of fires that made nothing, one by one (docs/waves.md, rule 7).
    fn barren(&mut self, fire: &Fire, rows: &Rows) {
        let made = [FireOutcome::Instance, FireOutcome::Duplicate, FireOutcome::RolledOutElsewhere];
        if made.contains(&fire.outcome) || fire.instance_id.is_some() {
            return;
        }
        let Some(spec) = in_force(rows, &fire.task_id) else { return };
        let outside = |t: &TriggerKind| {
            matches!(t, TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_))
        };
        let is_run = !spec.triggers.is_empty() && spec.triggers.iter().all(|t| outside(&t.when));
        let default = if is_run { CycleRule::RUN } else { CycleRule::DAY };
        let rule = spec.cycle.unwrap_or(default);
        if rule == CycleRule::RUN {
            return;
        }
        let period = fire.trigger.strip_prefix("every:").and_then(|period| period.parse().ok());
        let period: i64 = period.unwrap_or(i64::MAX / 2);
        let cycles = self.barren.entry(fire.task_id.clone()).or_default();
        let mut at = fire.from.as_millis();
        while at <= fire.to.as_millis() {
            let nobody = InstanceId::from_text("");
            cycles.insert(Cycle::of(Timestamp::from_millis(at), &TimeZone::UTC, rule, &nobody));
            at += period;
        }
    }

    /// Whether the upstream had fires of the cycle and has no instance of it.
    fn makes_nothing(&self, rows: &Rows, cycle: &Cycle, upstream: &TaskId) -> bool {
        let fired = self.barren.get(upstream).into_iter().flatten();
        let made = || instances(rows).any(|i| i.task_id == *upstream && i.cycle.matches(cycle));
        fired.into_iter().any(|barren| barren.matches(cycle)) && !made()
    }

    fn fire(&mut self, fire: &Fire) -> Verdict {
        let Some(period) = fire.trigger.strip_prefix("every:") else { return Ok(()) };
        let period: i64 = period.parse().map_err(|e| format!("{fire:?}: {e}"))?;
        let (from, to) = (fire.from.as_millis(), fire.to.as_millis());
        ensure(from % period == 0 && to % period == 0 && from <= to && fire.count > 0, || {
            format!("not nominal: {fire:?}")
        })?;
        if fire.count == 1 {
            let fresh = self.single.insert((fire.task_id.clone(), from));
            ensure(fresh, || format!("a second row of one nominal fire: {fire:?}"))?;
        }
        let made = fire.outcome == FireOutcome::Instance;
        ensure(made == fire.instance_id.is_some(), || format!("outcome and id: {fire:?}"))?;
        *self.fired.entry(fire.task_id.clone()).or_default() += fire.count;
        Ok(())
    }

    /// Every nominal fire up to now is counted in exactly one row.
    pub(crate) fn ledger(&self, now: i64) -> Verdict {
        let mut nominal: BTreeMap<&TaskId, BTreeSet<i64>> = BTreeMap::new();
        for ((task, _), spans) in &self.spans {
            let times = nominal.entry(task).or_default();
            for span in spans {
                let to = span.to.unwrap_or(now);
                let mut at = (span.from.div_euclid(span.period) + 1) * span.period;
                while at <= to {
                    times.insert(at);
                    at += span.period;
                }
            }
        }
        for (task, times) in nominal {
            let counted = self.fired.get(task).copied().unwrap_or(0);
            ensure(counted == times.len() as u64, || {
                format!("{task} had {} nominal fires, its ledger counts {counted}", times.len())
            })?;
        }
        Ok(())
    }

    // The world outside

    /// A `Run` is carried out: its attempt must be durable, and RUNNING under this very lease.
    pub(crate) fn sent(&mut self, of: &AttemptRef, rows: &Rows) -> Verdict {
        let row = instance(rows, &of.instance_id)
            .ok_or_else(|| format!("{of:?} is sent before it is durable"))?;
        let known = row.attempts.iter().any(|a| a.attempt == of.attempt && a.lease == of.lease);
        ensure(known, || format!("{of:?} is sent before its attempt is durable, or in excess"))?;
        let key = (of.instance_id.clone(), of.attempt);
        let lease = *self.sent.entry(key).or_insert(of.lease);
        ensure(lease == of.lease, || format!("{of:?} was sent under {lease:?} before"))
    }

    /// A process came to be.
    pub(crate) fn process(&mut self, of: &AttemptRef, rows: &Rows) -> Verdict {
        let key = (of.instance_id.clone(), of.attempt);
        let starts = self.starts.entry(key).or_default();
        *starts += 1;
        ensure(*starts == 1, || format!("{of:?} was really started {starts} times"))?;
        let row = instance(rows, &of.instance_id).ok_or("a process without a row")?;
        let spec = revision(rows, &row.task_id, row.revision).ok_or("no revision")?;
        if spec.idempotent {
            return Ok(());
        }
        let all: u32 = self
            .starts
            .iter()
            .filter(|((id, _), _)| *id == of.instance_id)
            .map(|(_, starts)| *starts)
            .sum();
        let asked = 1 + self.seen.get(&of.instance_id).map_or(0, |s| s.retries);
        ensure(all <= asked, || {
            format!("{} is not idempotent: started {all} times, asked for {asked}", of.instance_id)
        })
    }

    /// What is left when nothing more can happen: nothing that could go on.
    pub(crate) fn at_rest(rows: &Rows) -> Verdict {
        for i in instances(rows) {
            let idle = !matches!(i.state, Ready | Running) && i.next_retry_at.is_none();
            ensure(idle, || format!("still {}: {i:?}", i.state))?;
        }
        Ok(())
    }
}
