//! Answers: what is acknowledged is done and durable, what is refused has changed nothing.

use super::{
    Checker, InstanceState, Moment, Ready, Row, RowKey, Rows, Running, Target, Verdict, ensure,
    instance,
};
use crate::model::command::Command;
use crate::model::id::InstanceId;
use crate::model::request::{Answer, Reply, Request};

fn is_held(rows: &Rows, target: &Target) -> bool {
    match target {
        Target::Instance(id) => instance(rows, id).is_some_and(|i| i.paused.is_some()),
        Target::Task(task) => {
            let row = rows.get(&RowKey::Task { task_id: task.clone() });
            matches!(row, Some(Row::Task(t)) if t.paused.is_some())
        }
        Target::Queue(_) | Target::All => {
            rows.contains_key(&RowKey::Hold { target: target.clone() })
        }
    }
}

fn is_on(state: InstanceState) -> bool {
    matches!(state, Ready | Running)
}

fn are_there(rows: &Rows, ids: &[InstanceId]) -> bool {
    ids.iter().all(|id| instance(rows, id).is_some())
}

impl Checker {
    pub(super) fn answered(&mut self, moment: &Moment, rows: &Rows) -> Verdict {
        let Some(asked) = &moment.asked else { return Ok(()) };
        for command in &moment.commands {
            if let Command::Reply { answer, .. } = command {
                self.answer(asked, answer, moment, rows)?;
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        asked: &Request,
        answer: &Answer,
        moment: &Moment,
        rows: &Rows,
    ) -> Verdict {
        let reply = match answer {
            Ok(reply) => reply,
            Err(rejection) => {
                self.marks.hit("refused");
                return ensure(moment.batch.is_empty(), || {
                    format!("{asked:?} was refused and changed something: {rejection:?}")
                });
            }
        };
        let done = match (asked, reply) {
            (Request::Submit { submission, .. }, Reply::Submitted(made)) => {
                submission.dry_run || instance(rows, &made.instance_id).is_some()
            }
            (Request::Backfill { body, .. }, Reply::Backfilled(made)) => {
                body.dry_run || are_there(rows, &made.instances)
            }
            (Request::Emit { .. }, Reply::Emitted(made)) => are_there(rows, &made.instances),
            (Request::Cancel { instance: id, .. }, Reply::Done) => {
                instance(rows, id).is_none_or(|i| !i.is_open() || i.stopping.is_some())
            }
            (Request::Retry { instance: id, same_revision, stored, .. }, Reply::Retried(again)) => {
                let before = stored.as_ref().filter(|_| *same_revision).map(|i| i.revision);
                let is_on = |id: &InstanceId| instance(rows, id).filter(|i| is_on(i.state));
                if !again.below.is_empty() {
                    self.marks.hit("tried again below a retried one");
                }
                again.below.iter().all(|id| is_on(id).is_some())
                    && is_on(id).is_some_and(|i| before.is_none_or(|before| before == i.revision))
            }
            (Request::Skip { instance: id, .. }, Reply::Done) => {
                instance(rows, id).is_none_or(|i| !i.is_open())
            }
            (Request::Freeze { instance: id, .. }, Reply::Done) => {
                instance(rows, id).is_some_and(|i| i.paused.is_some())
            }
            (Request::Pause { target, .. }, Reply::Done) => is_held(rows, target),
            (Request::Resume { target: Target::Instance(id) }, Reply::Done) => {
                instance(rows, id).is_none_or(|i| !i.is_open() || i.paused.is_none())
            }
            (Request::Resume { target }, Reply::Done) => !is_held(rows, target),
            (Request::SetPriority { target, priority }, Reply::Done) => {
                let meant = |p| self.plant.meant(p) == *priority;
                match target {
                    Target::Instance(id) => {
                        instance(rows, id).is_none_or(|i| !i.is_open() || meant(i.priority))
                    }
                    Target::Task(task) => {
                        let row = rows.get(&RowKey::Task { task_id: task.clone() });
                        matches!(row, Some(Row::Task(t)) if t.priority.is_some_and(meant))
                    }
                    Target::Queue(_) | Target::All => false,
                }
            }
            (Request::Rollback { .. } | Request::Unpin { .. }, Reply::Done) => true,
            // A question.
            _ => moment.batch.is_empty(),
        };
        ensure(done, || format!("{asked:?} is acknowledged by {reply:?} and not done"))
    }
}
