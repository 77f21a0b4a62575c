//! Ends of attempts and what follows: each by a report that somebody sent or a loss that somebody
//! saw, counted, and tried again when the policy says (design, 'Attempts'), by hand arithmetic.

use super::preemption::PREEMPTIONS;
use super::{
    Checker, Failed, Instance, InstanceId, InstanceState, LogRecord, Record, Rows, Seen, Succeeded,
    Timeout, Verdict, ensure, instance,
};
use crate::model::event::{AttemptRef, Finished, Outcome};
use crate::model::spec::{Backoff, RetryPolicy, TaskSpec};

/// Most times that a lost attempt is queued again.
const REQUEUES: u32 = 3;
/// Most times that a start which failed for want of resources is tried again.
const SPAWN_RETRIES: u32 = 10;

/// The wait before the attempt after the `nth` failure, in milliseconds, without jitter.
fn wait(policy: &RetryPolicy, nth: u32) -> i64 {
    let ms = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    let factor = match policy.backoff {
        Backoff::Fixed => 1,
        Backoff::Exponential => 2_i64.pow(nth.clamp(1, 30) - 1),
    };
    (ms(policy.interval) * factor).min(ms(policy.max_interval))
}

/// 1, 2, 4 … 60 s.
fn spawn_wait(nth: u32) -> i64 {
    (1000 * 2_i64.pow(nth.clamp(1, 30) - 1)).min(60_000)
}

fn is_listed(policy: &RetryPolicy, code: &str) -> bool {
    policy.retry_on.as_ref().is_none_or(|list| list.iter().any(|entry| entry == code))
}

/// State and error code of an end (contract §3).
fn told(done: &Finished) -> (InstanceState, Option<String>) {
    match &done.outcome {
        Outcome::Exited { code: 0 } => (Succeeded, None),
        Outcome::Exited { code } => {
            let own = done.result.error_code.clone();
            (Failed, own.or_else(|| Some(format!("EXIT_{code}"))))
        }
        Outcome::Signalled { name, .. } => (Failed, Some(format!("SIGNAL_{name}"))),
        Outcome::TimedOut => (Timeout, Some("TIMEOUT".to_owned())),
        Outcome::SpawnFailed { .. } => (Failed, Some("SPAWN_FAILED".to_owned())),
    }
}

/// When the next attempt is due: from, to.
type Due = Option<(i64, i64)>;

impl Checker {
    /// One lease per attempt, one attempt per lease, attempts counted from 1.
    pub(super) fn attempts(&mut self, i: &Instance) -> Verdict {
        for (n, attempt) in i.attempts.iter().enumerate() {
            ensure(attempt.attempt as usize == n + 1, || format!("attempts of {i:?}"))?;
            let key = (i.instance_id.clone(), attempt.attempt);
            let lease = *self.leases.entry(key).or_insert(attempt.lease);
            ensure(lease == attempt.lease, || format!("a second lease: {i:?}"))?;
        }
        Ok(())
    }

    pub(super) fn attempt_ends(&mut self, record: &LogRecord, rows: &Rows) -> Verdict {
        let Record::Moved { instance_id: id, to, attempt, error_code, next_retry_at, .. } =
            &record.what
        else {
            return Ok(());
        };
        let row = instance(rows, id).ok_or("no row")?;
        let spec = self.spec(rows, row)?;
        let number = usize::try_from(*attempt).unwrap_or(0);
        let found = number.checked_sub(1).and_then(|n| row.attempts.get(n));
        let found = found.ok_or("ended, but the row has no such attempt")?;
        let of = AttemptRef { instance_id: id.clone(), attempt: *attempt, lease: found.lease };
        let seen = self.known(id)?;
        let asked = seen.asked_to_end && !seen.preempted;
        let at = record.at.as_millis();
        let due = match error_code.as_deref() {
            Some("EXECUTOR_LOST") => {
                let gone = self.died.contains(&of) || *found.boot_id != *self.boot;
                ensure(gone, || format!("{of:?} is EXECUTOR_LOST, but its executor lives"))?;
                self.lost(id, &spec, at)
            }
            Some("PREEMPTED") => {
                let seen = self.seen.get_mut(id).ok_or("never made")?;
                ensure(seen.preempted, || format!("nobody wanted the slot of {of:?}"))?;
                seen.preemptions += 1;
                let times = seen.preemptions;
                ensure(times <= PREEMPTIONS, || format!("{id} gives way {times} times"))?;
                self.marks.hit("gave up its slot");
                Some((at, at))
            }
            Some("CANCEL_REQUESTED") => {
                ensure(asked, || format!("nobody asked {of:?} to end"))?;
                None
            }
            code => {
                let done = self.reports.get(&of).cloned();
                let done = done.ok_or_else(|| format!("{of:?} ended, but nobody reported it"))?;
                let (state, right) = told(&done);
                ensure(*to == state && code == right.as_deref(), || {
                    format!("{of:?} is {to} {code:?}, but was told to be {state} {right:?}")
                })?;
                let due = if state == Succeeded { None } else { self.failed(id, &spec, &done, at) };
                due.filter(|_| !asked)
            }
        };
        let next = next_retry_at.map(|t| t.as_millis());
        let right = match (next, due) {
            (None, None) => true,
            (Some(next), Some((from, to))) => (from..=to).contains(&next),
            (Some(_), None) | (None, Some(_)) => false,
        };
        ensure(right, || format!("next attempt of {id} is due at {next:?}, not within {due:?}"))
    }

    /// Counts a lost attempt.
    fn lost(&mut self, id: &InstanceId, spec: &TaskSpec, at: i64) -> Due {
        let seen = self.seen.get_mut(id)?;
        seen.requeues += 1;
        let again = seen.requeues <= REQUEUES && spec.may_run_again();
        self.marks.hit(if again { "lost and queued again" } else { "lost for good" });
        again.then_some((at, at))
    }

    /// Counts a failed attempt.
    fn failed(&mut self, id: &InstanceId, spec: &TaskSpec, done: &Finished, at: i64) -> Due {
        let ended = done.finished_at.as_millis().min(at);
        let seen = self.seen.get_mut(id)?;
        let transient = matches!(done.outcome, Outcome::SpawnFailed { transient: true, .. });
        if transient && seen.spawn_retries < SPAWN_RETRIES {
            seen.spawn_retries += 1;
            let due = ended + spawn_wait(seen.spawn_retries);
            self.marks.hit("no resources for a start");
            return Some((due, due));
        }
        seen.faults += 1;
        let nth = seen.faults - seen.forgiven;
        let code = told(done).1.unwrap_or_default();
        let again =
            nth < spec.retry.max_attempts && spec.may_run_again() && is_listed(&spec.retry, &code);
        self.marks.hit(if again { "failed and tried again" } else { "failed for good" });
        again.then(|| {
            let wait = wait(&spec.retry, nth);
            let share = spec.retry.jitter;
            #[expect(clippy::cast_possible_truncation, reason = "a few seconds")]
            #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
            let off = (wait as f64 * share).ceil() as i64;
            (ended + wait - off, ended + wait + off)
        })
    }

    /// READY after FAILED or TIMEOUT: by a person, or in its own time.
    pub(super) fn tried_again(&mut self, id: &InstanceId, record: &LogRecord) -> Verdict {
        let at = record.at.as_millis();
        let seen = self.seen.get_mut(id).ok_or("never made")?;
        if record.uid.is_some() && seen.is_final {
            seen.retries += 1;
            seen.forgiven = seen.faults;
            seen.requeues = 0;
            seen.preemptions = 0;
            seen.spawn_retries = 0;
            self.marks.hit("tried again by a person");
            return Ok(());
        }
        let due = seen.next_retry;
        ensure(due.is_some_and(|due| due <= at), || {
            format!("next attempt of {id} comes before its time {due:?}")
        })
    }

    /// Waits are real time: the wall clock's steps move what they end at.
    pub(super) fn clock_steps(&mut self, by_ms: i64) {
        for seen in self.seen.values_mut() {
            seen.next_retry = seen.next_retry.map(|at| at + by_ms);
            if seen.state == super::Ready {
                seen.ready.0 += by_ms;
            }
        }
    }

    /// At a start no wait lasts longer than it would have from its beginning.
    pub(super) fn bound_waits(&mut self, at: i64, rows: &Rows) {
        let waiting: Vec<InstanceId> = self
            .seen
            .iter()
            .filter(|(_, seen)| seen.next_retry.is_some())
            .map(|(id, _)| id.clone())
            .collect();
        for id in waiting {
            let Some(row) = instance(rows, &id) else { continue };
            let Ok(spec) = self.spec(rows, row) else { continue };
            let Some(seen) = self.seen.get_mut(&id) else { continue };
            let longest = longest_wait(seen, &spec);
            let most = seen.next_retry.map(|due| due.min(at + longest));
            // Jitter is the engine's own: a shorter wait is believed.
            let is = row.next_retry_at.map(|t| t.as_millis());
            let jitters = spec.retry.jitter > 0.0;
            seen.next_retry = if jitters { is.or(most) } else { most };
        }
    }
}

fn longest_wait(seen: &Seen, spec: &TaskSpec) -> i64 {
    let nth = (seen.faults - seen.forgiven).max(1);
    wait(&spec.retry, nth).max(spawn_wait(seen.spawn_retries))
}
