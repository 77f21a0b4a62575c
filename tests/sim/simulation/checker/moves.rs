//! Moves: legal ones only, for a legal reason, and rows that say what the log says.

use super::{
    Blocked, Cancelled, Checker, Failed, Instance, InstanceId, InstanceState, LogRecord, Pending,
    Ready, Record, Rows, Running, Seen, Succeeded, Target, TaskId, Timeout, Verdict, ensure,
    instance,
};
use crate::model::instance::{Cause, Reason};
use crate::model::spec::OnDependencyTimeout;

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

/// Whether a state may have a stored reason (design, 'State and reason').
fn is_a_reason_of(state: InstanceState, reason: Option<Reason>) -> bool {
    use Reason as R;
    match (state, reason) {
        (Pending, Some(R::WaitingTrigger | R::WaitingDependency))
        | (
            Blocked,
            Some(R::UpstreamFailed | R::UpstreamSkipped | R::SpecRemoved | R::ConditionError),
        )
        | (Ready | Succeeded, None)
        | (Running, None | Some(R::Cancelling | R::Frozen))
        | (Failed | Timeout, None | Some(R::RetryWait)) => true,
        (Cancelled, Some(reason)) => matches!(
            reason,
            R::CancelledByUser
                | R::ConditionFalse
                | R::UpstreamSkipped
                | R::DependencyTimeout
                | R::Replaced
                | R::SkippedByUser
                | R::RejectedParams
                | R::Expired
                | R::FileGone
        ),
        _ => false,
    }
}

impl Checker {
    pub(super) fn made(
        &mut self,
        id: &InstanceId,
        task: &TaskId,
        cycle: &str,
        at: i64,
        rows: &Rows,
    ) -> Verdict {
        let row = instance(rows, id).ok_or("made, but no row")?;
        ensure(row.cycle.label() == cycle, || format!("made for {cycle}: {row:?}"))?;
        let seen = Seen {
            task: task.clone(),
            state: Pending,
            reason: None,
            is_final: false,
            attempt: 0,
            executor: None,
            queue: String::new(),
            owner: String::new(),
            ready: (0, 0),
            faults: 0,
            forgiven: 0,
            requeues: 0,
            spawn_retries: 0,
            next_retry: None,
            asked_to_end: false,
            preempted: false,
            preemptions: 0,
            retries: 0,
        };
        self.waiting.insert(id.clone());
        self.created.insert(id.clone(), at);
        self.marks.hit(match &row.trigger {
            Cause::Backfill { .. } => "made by a backfill",
            Cause::Wave { .. } => "made by a wave",
            Cause::Task { .. } => "made by another task's end",
            Cause::Event { .. } => "made by an event",
            Cause::File { .. } => "made by a file",
            Cause::Every { .. } => "made by a time",
            Cause::Submit { .. } => "made by a person",
            Cause::Cron { .. } | Cause::Boot => "made otherwise",
        });
        let old = self.seen.insert(id.clone(), seen);
        ensure(old.is_none(), || "made twice".to_owned())
    }

    /// What is new begins with the deadline that its definition says (docs/waves.md, rule 11).
    pub(super) fn new_ones(&self, rows: &Rows) -> Verdict {
        for (id, at) in &self.created {
            let Some(i) = instance(rows, id).filter(|_| !self.updated.contains(id)) else {
                continue;
            };
            let spec = self.spec(rows, i)?;
            let waits = !i.ignore_deps && !spec.depends_on.is_empty();
            let from = i.not_before.map_or(*at, |t| t.as_millis().max(*at));
            let due = spec.dependency_timeout.filter(|_| waits);
            let due = due.map(|t| from + i64::try_from(t.as_millis()).unwrap_or(0));
            let is = i.dependency_deadline.map(|t| t.as_millis());
            ensure(is == due, || format!("{id} waits until {is:?}, not {due:?}"))?;
        }
        Ok(())
    }

    pub(super) fn updated(&mut self, id: &InstanceId, what: &str, rows: &Rows) {
        self.updated.insert(id.clone());
        let Some(seen) = self.seen.get_mut(id) else { return };
        match what {
            "cancelling" => {
                seen.asked_to_end = true;
                seen.preempted = false;
                // What is to end is let go on for that.
                self.paused.remove(&Target::Instance(id.clone()));
                self.marks.hit("asked to end while it runs");
            }
            "preempted" => {
                seen.asked_to_end = true;
                seen.preempted = true;
                self.gives_way.insert(id.clone());
            }
            "frozen" => self.marks.hit("frozen"),
            // A file's new content waits where the old one did.
            "place" => {
                let path = match instance(rows, id).map(|i| &i.trigger) {
                    Some(Cause::File { path }) => path.as_str(),
                    _ => "",
                };
                let old =
                    self.places.iter().filter(|(task, of, _)| *task == seen.task && of == path);
                if let Some(best) = old.map(|(_, _, place)| *place).min() {
                    seen.ready = best;
                }
            }
            _ => {}
        }
    }

    pub(super) fn moved(&mut self, record: &LogRecord, rows: &Rows) -> Verdict {
        let Record::Moved { instance_id: id, from, to, reason, attempt, .. } = &record.what else {
            return Ok(());
        };
        let (from, to, at) = (*from, *to, record.at.as_millis());
        let seen = self.known(id)?;
        ensure(seen.state == from, || format!("{id} was {}, not {from}", seen.state))?;
        let legal = LEGAL.iter().any(|(f, to_these)| *f == from && to_these.contains(&to));
        ensure(legal, || format!("{id} moved from {from} to {to}"))?;
        ensure(is_a_reason_of(to, *reason), || format!("{id} is {to} for {reason:?}"))?;
        let due = if to == Running { seen.attempt + 1 } else { seen.attempt };
        ensure(*attempt == due, || format!("{id} has attempt {attempt}, not {due}"))?;
        let over = seen.is_final && record.uid.is_none();
        ensure(!over || (to == Cancelled && seen.asked_to_end), || {
            "went on by itself after it was over for good".to_owned()
        })?;
        match to {
            Running => self.may_start(record, rows)?,
            Ready if matches!(from, Pending | Blocked) => {
                self.edges_hold(id, at, rows)?;
                self.parameters_are_complete(id, rows)?;
            }
            Ready => self.tried_again(id, record)?,
            Cancelled => self.ends_unstarted(id, *reason, record, rows)?,
            Succeeded | Failed | Timeout => self.attempt_ends(record, rows)?,
            Pending | Blocked => {}
        }
        self.follow(record, rows);
        Ok(())
    }

    /// Notes the move.
    fn follow(&mut self, record: &LogRecord, rows: &Rows) {
        let Record::Moved {
            instance_id: id, to, reason, attempt, next_retry_at, executor_id, ..
        } = &record.what
        else {
            return;
        };
        let Some(seen) = self.seen.get_mut(id) else { return };
        let was_ready = seen.state == Ready;
        seen.state = *to;
        seen.reason = *reason;
        seen.attempt = *attempt;
        seen.next_retry = next_retry_at.map(|t| t.as_millis());
        seen.is_final = match to {
            Succeeded | Cancelled => true,
            Failed | Timeout => next_retry_at.is_none(),
            Pending | Blocked | Ready | Running => false,
        };
        match to {
            Running => seen.executor = executor_id.as_ref().map(ToString::to_string),
            Ready => seen.ready = (record.at.as_millis(), record.seq.0),
            _ => {}
        }
        if matches!(to, Succeeded | Cancelled | Ready) {
            seen.asked_to_end = false;
            seen.preempted = false;
        }
        if was_ready
            && *reason == Some(Reason::FileGone)
            && let Some(Cause::File { path }) = instance(rows, id).map(|i| &i.trigger)
        {
            self.places.push((seen.task.clone(), path.clone(), seen.ready));
        }
        if seen.is_final {
            // What is over is held no longer, also if it is tried again.
            self.paused.remove(&Target::Instance(id.clone()));
            self.ended.insert(id.clone());
        }
        let sets = [
            (&mut self.ready, *to == Ready),
            (&mut self.running, *to == Running),
            (&mut self.waiting, matches!(to, Pending | Blocked)),
        ];
        for (set, is_in) in sets {
            if is_in {
                set.insert(id.clone());
            } else {
                set.remove(id);
            }
        }
    }

    /// CANCELLED only for what has really happened.
    fn ends_unstarted(
        &mut self,
        id: &InstanceId,
        reason: Option<Reason>,
        record: &LogRecord,
        rows: &Rows,
    ) -> Verdict {
        let row = instance(rows, id).ok_or("no row")?;
        let asked = self.known(id)?.asked_to_end;
        let at = record.at.as_millis();
        let (right, mark) = match reason {
            Some(Reason::CancelledByUser) => {
                (asked || record.uid.is_some(), "cancelled by a person")
            }
            Some(Reason::DependencyTimeout) => {
                let due = row.dependency_deadline.is_some_and(|t| t.as_millis() <= at);
                let wanted = self.spec(rows, row)?.on_dependency_timeout;
                (due && wanted == OnDependencyTimeout::Cancel, "waited too long for upstreams")
            }
            Some(Reason::ConditionFalse) => {
                (self.a_condition_is_false(row, rows)?, "a condition was false")
            }
            Some(Reason::UpstreamSkipped) => {
                (self.an_upstream_is_skipped(row), "skipped with its upstream")
            }
            Some(Reason::RejectedParams) => {
                let spec = self.spec(rows, row)?;
                let bad = self.expected_parameters(row, &spec, rows).is_err();
                (bad || spec.dedup_key.is_some(), "parameters refused at the end")
            }
            Some(Reason::SkippedByUser) => {
                (record.uid.is_some() && row.cancelled_by == record.uid, "skipped by a person")
            }
            Some(Reason::Replaced) => (true, "replaced"),
            Some(Reason::FileGone) => {
                let of_file = matches!(row.trigger, Cause::File { .. });
                (of_file && row.attempt == 0, "its file went")
            }
            _ => (true, "cancelled otherwise"),
        };
        self.marks.hit(mark);
        ensure(right, || format!("{id} is CANCELLED for {reason:?}, which is not so: {row:?}"))
    }

    /// A row stands where the log says.
    pub(super) fn as_the_log_says(&self, i: &Instance) -> Verdict {
        let (id, seen) = (&i.instance_id, self.known(&i.instance_id)?);
        ensure(seen.state == i.state, || {
            format!("row of {id} says {}, the log {}", i.state, seen.state)
        })?;
        ensure(seen.attempt == i.attempt, || format!("{id} has a lost row"))?;
        ensure(is_a_reason_of(i.state, i.reason), || {
            format!("{id} is {} for {:?}", i.state, i.reason)
        })?;
        let next = i.next_retry_at.map(|t| t.as_millis());
        ensure(seen.next_retry == next, || {
            format!("next attempt of {id} is due at {next:?}, not {:?}", seen.next_retry)
        })?;
        let waits = i.reason == Some(Reason::RetryWait);
        ensure(waits == i.next_retry_at.is_some(), || format!("{id} waits for a retry: {i:?}"))?;
        let counts = (i.faults, i.requeues, i.spawn_retries, i.preemptions);
        let counted = (seen.faults, seen.requeues, seen.spawn_retries, seen.preemptions);
        ensure(counts == counted, || format!("{id} counts {counts:?}, the log {counted:?}"))?;
        if i.is_open() {
            let held = self.paused.contains(&Target::Instance(id.clone()));
            ensure(held == i.paused.is_some(), || {
                format!("{id} is paused: {held}, by its row not")
            })?;
        }
        Ok(())
    }
}
