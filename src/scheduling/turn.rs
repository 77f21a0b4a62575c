//! One event's worth of change: the only road to the state.
//!
//! Every change goes through a method of [`Turn`], which at once brings the indexes in line,
//! writes the log entry and notes the row, so nothing can change that is not remembered.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::ended::standing;
use super::lifecycle::{boot, empty};
use super::state::State;
use crate::limits;
use crate::model::command::{Command, Effects};
use crate::model::cycle::Cycle;
use crate::model::empty_cycle::EmptyCycle;
use crate::model::id::{InstanceId, LogSeq, ReplyTo, TaskId};
use crate::model::instance::{Instance, InstanceState, Pause, Reason};
use crate::model::jump::{Jumps, Span};
use crate::model::output::Outputs;
use crate::model::record::{
    Arrival, ArrivalKey, Cursor, Fire, FireOutcome, Hold, LogRecord, Record, Row, RowKey,
    Submission, Target, TaskRow,
};
use crate::model::request::Answer;
use crate::model::time::Timestamp;

/// One event's worth of change.
pub(super) struct Turn<'a> {
    pub(super) state: &'a mut State,
    pub(super) now: Timestamp,
    uid: Option<u32>,
    effects: Effects,
    touched: BTreeSet<InstanceId>,
    /// Waiting instances that must be looked at again: all of their edges, or one alone.
    admissions: VecDeque<(InstanceId, Option<usize>)>,
    /// Instances that ended for good and may trigger others.
    ended: VecDeque<InstanceId>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(state: &'a mut State, now: Timestamp, uid: Option<u32>) -> Self {
        Self {
            state,
            now,
            uid,
            effects: Effects::default(),
            touched: BTreeSet::new(),
            admissions: VecDeque::new(),
            ended: VecDeque::new(),
        }
    }

    /// Ends the turn: what must be remembered, then what shall be done.
    pub(super) fn finish(mut self) -> Effects {
        for id in &self.touched {
            if let Some(instance) = self.state.instances.shared(id) {
                let row = Row::Instance(Arc::clone(instance));
                self.effects.commit.rows.insert(row.key(), Some(row));
            }
        }
        self.state.instances.settle(&self.touched);
        self.effects
    }

    /// Writes a log entry.
    pub(super) fn record(&mut self, what: Record) -> LogSeq {
        self.record_by(self.uid, what)
    }

    /// Writes a log entry of what happens because this person asked for it, perhaps earlier.
    fn record_by(&mut self, uid: Option<u32>, what: Record) -> LogSeq {
        let seq = LogSeq(self.state.tip.0 + 1);
        self.state.tip = seq;
        let record = LogRecord { seq, at: self.now, uid, what };
        self.effects.commit.records.push(record);
        seq
    }

    pub(super) fn command(&mut self, command: Command) {
        self.effects.commands.push(command);
    }

    pub(super) fn reply(&mut self, to: ReplyTo, answer: Answer) {
        self.command(Command::Reply { to, answer: Box::new(answer) });
    }

    /// Who asked; 0 where the scheduler itself acts.
    pub(super) fn caller(&self) -> u32 {
        self.uid.unwrap_or(0)
    }

    /// Who asked; `None`: the scheduler itself acts.
    pub(super) const fn asker(&self) -> Option<u32> {
        self.uid
    }

    // Instances

    /// Puts a new instance in. Its id must be new.
    pub(super) fn create(&mut self, mut instance: Instance) {
        let seq = self.record(Record::Created {
            instance_id: instance.instance_id.clone(),
            task_id: instance.task_id.clone(),
            cycle: instance.cycle.label().to_owned(),
            trigger: instance.trigger.kind().to_owned(),
        });
        instance.created_seq = seq.0;
        self.put(instance);
    }

    /// Changes an instance in another way than by a move; does nothing to one that is not open.
    pub(super) fn update(
        &mut self,
        id: &InstanceId,
        what: &str,
        change: impl FnOnce(&mut Instance),
    ) {
        let Some(old) = self.state.instances.get(id) else { return };
        let mut new = old.clone();
        change(&mut new);
        assert!(new.state == old.state, "{id} may move only by a move");
        if new == *old {
            return;
        }
        let record = Record::Updated {
            instance_id: id.clone(),
            task_id: new.task_id.clone(),
            what: what.to_owned(),
        };
        self.record(record);
        self.put(new);
    }

    /// Moves an instance to another state: the one place that does (requirement B2).
    ///
    /// `change` sets what else the move changes. A move that is not in the table is a broken
    /// invariant: the process ends before anything of this batch is durable.
    pub(super) fn transition(
        &mut self,
        id: &InstanceId,
        to: InstanceState,
        reason: Option<Reason>,
        change: impl FnOnce(&mut Instance),
    ) {
        let Some(old) = self.state.instances.get(id) else { return };
        let from = old.state;
        let stood = standing(from, old.reason, old.is_open());
        assert!(from.may_become(to), "{id} may not move from {from} to {to}");
        let mut new = old.clone();
        new.next_retry_at = None;
        new.awaits_upstream = false;
        change(&mut new);
        new.state = to;
        new.reason = reason;
        if to == InstanceState::Ready {
            new.ready_at = Some(self.now);
            new.ready_seq = self.state.tip.0 + 1;
        }
        let is_final = !new.is_open();
        // FAILED and then CANCELLED in one turn is one end.
        let ends = is_final && old.is_open();
        if is_final {
            new.finished_at = new.finished_at.or(Some(self.now));
            new.paused = None;
        }
        let failed = matches!(to, InstanceState::Failed | InstanceState::Timeout);
        // A cancel that was asked for earlier is that person's still.
        let asked_earlier = old.cancelled_by.filter(|_| to == InstanceState::Cancelled);
        let moved = Record::Moved {
            instance_id: id.clone(),
            task_id: new.task_id.clone(),
            from,
            to,
            reason,
            attempt: new.attempt,
            executor_id: new.executor_id.clone().filter(|_| to == InstanceState::Running),
            error_code: new.error_code.clone().filter(|_| failed),
            next_retry_at: new.next_retry_at,
            is_final,
        };
        self.record_by(self.uid.or(asked_earlier), moved);
        self.put(new);
        if ends {
            self.ended.push_back(id.clone());
        }
        let table = &self.state.instances;
        if Some(stood) != table.standing(id) {
            // What waits for this one looks again: it may go on, be blocked, or heal.
            let edges =
                table.edges_to(id).map(|(dependent, edge)| (dependent.clone(), Some(*edge)));
            self.admissions.extend(edges);
        }
    }

    /// Records that an attempt's process is there.
    pub(super) fn started(
        &mut self,
        id: &InstanceId,
        pid: u32,
        change: impl FnOnce(&mut Instance),
    ) {
        let Some(mut new) = self.state.instances.get(id).cloned() else { return };
        change(&mut new);
        self.record(Record::Started {
            instance_id: id.clone(),
            task_id: new.task_id.clone(),
            attempt: new.attempt,
            pid,
        });
        self.put(new);
    }

    /// Takes back an instance that the table no longer held, for a person's retry.
    pub(super) fn revive(&mut self, stored: Instance) {
        self.put(stored);
    }

    /// Notes what was found of an ended instance's outputs; `stored` is its row.
    pub(super) fn found(&mut self, mut stored: Instance, outputs: Outputs) {
        stored.outputs = Some(Arc::new(outputs));
        self.record(Record::Updated {
            instance_id: stored.instance_id.clone(),
            task_id: stored.task_id.clone(),
            what: "outputs".to_owned(),
        });
        self.put(stored);
    }

    fn put(&mut self, new: Instance) {
        let old = self.state.instances.shared(&new.instance_id).cloned();
        self.state.reindex(old.as_deref(), &new);
        self.touched.insert(new.instance_id.clone());
        self.state.instances.put(&Arc::new(new));
    }

    // Work left for the end of the turn

    pub(super) fn admit_later(&mut self, id: InstanceId) {
        self.admissions.push_back((id, None));
    }

    /// The next to be looked at, and the only edge of it that changed, if that is known.
    pub(super) fn next_admission(&mut self) -> Option<(InstanceId, Option<usize>)> {
        self.admissions.pop_front()
    }

    pub(super) fn next_ended(&mut self) -> Option<InstanceId> {
        self.ended.pop_front()
    }

    // Other rows

    /// Writes a row of the ledger.
    pub(super) fn fire(&mut self, fire: Fire) -> LogSeq {
        self.record(Record::Fire(fire))
    }

    /// Writes a ledger row of one nominal fire.
    pub(super) fn fire_one(
        &mut self,
        fired: (&TaskId, &str, Timestamp),
        outcome: FireOutcome,
        reason: Option<String>,
        instance_id: Option<InstanceId>,
    ) {
        let (task, trigger, at) = fired;
        let words = reason.clone();
        self.fire(Fire {
            task_id: task.clone(),
            trigger: trigger.to_owned(),
            from: at,
            to: at,
            count: 1,
            outcome,
            reason,
            instance_id,
        });
        empty::one(self, fired, outcome, words.as_deref());
    }

    /// Moves a time trigger's cursor.
    pub(super) fn put_cursor(&mut self, cursor: Cursor) {
        let key = (cursor.task_id.clone(), cursor.trigger.clone());
        self.state.cursors.insert(key, cursor.handled_to);
        self.put_row(Row::Cursor(cursor));
    }

    pub(super) fn drop_cursor(&mut self, key: &(TaskId, String)) {
        let handled_to = self.state.cursors.remove(key).filter(|_| !boot::is_mark(&key.1));
        self.drop_row(RowKey::Cursor { task_id: key.0.clone(), trigger: key.1.clone() });
        // Should the trigger come back while the clock shows these times once more, they are done.
        let mut jumps = self.state.jumps_of(key);
        if let Some(to) = handled_to.filter(|to| jumps.since < *to) {
            jumps.skipped.clear();
            jumps.add_done(Span { after: jumps.since, to });
            self.put_jumps(jumps);
        }
    }

    /// A time trigger begins to count: from now on.
    pub(super) fn begin_cursor(&mut self, key: (TaskId, String)) {
        let since = self.now;
        // Its earlier lives count: the clock may be set back to them.
        let mut done = self.state.jumps_of(&key).done;
        done.retain(|span| since.since(span.to) <= limits::ARRIVAL_KEPT);
        let is_as_old_as_its_task =
            self.state.registry.row(&key.0).is_some_and(|row| row.created_at == since);
        if done.is_empty() && is_as_old_as_its_task {
            self.drop_jumps(&key);
        } else {
            let (task_id, trigger) = key.clone();
            self.put_jumps(Jumps { task_id, trigger, since, skipped: Vec::new(), done });
        }
        self.put_cursor(Cursor { task_id: key.0, trigger: key.1, handled_to: since });
    }

    /// Remembers what jumps of the clock left behind at a time trigger.
    pub(super) fn put_jumps(&mut self, jumps: Jumps) {
        let key = (jumps.task_id.clone(), jumps.trigger.clone());
        self.put_row(Row::Jumps(jumps.clone()));
        self.state.jumps.insert(key, jumps);
    }

    pub(super) fn drop_jumps(&mut self, key: &(TaskId, String)) {
        if self.state.jumps.remove(key).is_some() {
            self.drop_row(RowKey::Jumps { task_id: key.0.clone(), trigger: key.1.clone() });
        }
    }

    /// Changes what is in force of a task or what people decided about it.
    pub(super) fn put_task(&mut self, row: TaskRow) {
        let target = Target::Task(row.task_id.clone());
        let old = self.state.registry.row(&row.task_id).and_then(|r| r.paused.clone());
        self.state.agenda_pause(&target, old.as_ref(), row.paused.as_ref());
        self.put_row(Row::Task(row.clone()));
        let task = row.task_id.clone();
        self.state.registry.put_row(row);
        self.state.task_changed(&task);
    }

    /// Sets or lifts the hold on a queue or on everything.
    pub(super) fn put_hold(&mut self, target: Target, pause: Option<Pause>) {
        let old = match &pause {
            Some(pause) => self.state.holds.insert(target.clone(), pause.clone()),
            None => self.state.holds.remove(&target),
        };
        self.state.agenda_pause(&target, old.as_ref(), pause.as_ref());
        match pause {
            Some(pause) => self.put_row(Row::Hold(Hold { target, pause })),
            None => self.drop_row(RowKey::Hold { target }),
        }
    }

    /// Keeps the answer to an order for its repetition.
    pub(super) fn put_submission(&mut self, submission: Submission) {
        self.put_row(Row::Submission(submission.clone()));
        self.state.index_submission(submission);
    }

    pub(super) fn drop_submission(&mut self, key: &str) {
        self.state.unindex_submission(key);
        self.drop_row(RowKey::Submission { submission: key.to_owned() });
    }

    /// Notes that a cycle has fires and no instance.
    pub(super) fn put_empty_cycle(&mut self, empty: EmptyCycle) {
        self.put_row(Row::EmptyCycle(empty.clone()));
        self.state.index_empty_cycle(empty);
    }

    /// Forgets that; says whether it was known.
    pub(super) fn drop_empty_cycle(&mut self, task: &TaskId, cycle: &Cycle) -> bool {
        let known = self.state.unindex_empty_cycle(task, cycle);
        if known {
            let (task_id, cycle) = (task.clone(), cycle.label().to_owned());
            self.drop_row(RowKey::EmptyCycle { task_id, cycle });
        }
        known
    }

    /// Notes a file that was taken, or that it is gone or back.
    pub(super) fn put_arrival(&mut self, arrival: Arrival) {
        self.put_row(Row::Arrival(arrival.clone()));
        self.state.index_arrival(arrival);
    }

    pub(super) fn drop_arrival(&mut self, key: &ArrivalKey) {
        self.state.unindex_arrival(key);
        let (task_id, pattern, path) = key.clone();
        self.drop_row(RowKey::Arrival { task_id, pattern, path });
    }

    pub(super) fn put_row(&mut self, row: Row) {
        self.effects.commit.rows.insert(row.key(), Some(row));
    }

    pub(super) fn drop_row(&mut self, key: RowKey) {
        self.effects.commit.rows.insert(key, None);
    }
}
