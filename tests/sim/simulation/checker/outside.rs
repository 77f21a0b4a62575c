//! What the world outside has seen, held against the log: orders, processes, losses, the end.

use super::{
    Checker, Instance, InstanceId, Ready, Rows, Running, Verdict, ensure, instance, instances,
};
use crate::model::event::{AttemptRef, Finished};
use crate::model::spec::DepType;

/// Whether somebody has yet to see what an upstream left behind.
pub(super) fn awaits_data(rows: &Rows, i: &Instance) -> bool {
    i.edges.iter().any(|edge| {
        let up = edge.instance_id.as_ref().and_then(|up| instance(rows, up));
        let outputs = up.filter(|_| edge.dep_type == DepType::DataReady);
        let outputs = outputs.and_then(|up| up.outputs.as_ref());
        outputs.is_some_and(|outputs| outputs.found.is_none())
    })
}

impl Checker {
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
        let on = row.state == Running && row.attempt == of.attempt;
        ensure(on, || format!("{of:?} starts, but is {} with attempt {}", row.state, row.attempt))?;
        if self.spec(rows, row)?.may_run_again() {
            return Ok(());
        }
        let of_instance = self.starts.iter().filter(|((id, _), _)| *id == of.instance_id);
        let all: u32 = of_instance.map(|(_, starts)| *starts).sum();
        let asked = 1 + self.known(&of.instance_id)?.retries;
        ensure(all <= asked, || {
            format!("{} is not idempotent: started {all} times, asked for {asked}", of.instance_id)
        })
    }

    /// An executor wrote an end down.
    pub(crate) fn reported(&mut self, done: &Finished) {
        self.reports.insert(done.of.clone(), done.clone());
    }

    /// An executor's process ended while these attempts were on.
    pub(crate) fn died(&mut self, lost: Vec<AttemptRef>) {
        self.died.extend(lost);
    }

    /// All outputs of an instance were there.
    pub(crate) fn left_behind(&mut self, id: &InstanceId) {
        self.left_behind.insert(id.clone());
    }

    /// The machine was started anew.
    pub(crate) fn boot(&mut self, boot: &str) {
        boot.clone_into(&mut self.boot);
    }

    /// What is left when nothing more can happen: nothing that could go on.
    pub(crate) fn at_rest(rows: &Rows, now: i64) -> Verdict {
        for i in instances(rows) {
            let idle = !matches!(i.state, Ready | Running) && i.next_retry_at.is_none();
            ensure(idle, || format!("still {}: {i:?}", i.state))?;
            let due = i.is_waiting() && i.not_before.is_some_and(|at| at.as_millis() <= now);
            ensure(!i.is_waiting() || !awaits_data(rows, i), || {
                format!("its data is there and it still waits: {i:?}")
            })?;
            ensure(!due, || format!("its time has come and it still waits: {i:?}"))?;
        }
        Ok(())
    }
}
