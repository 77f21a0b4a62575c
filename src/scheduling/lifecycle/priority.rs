//! Changing a priority while things wait (requirement D2).

use super::super::answers;
use super::super::turn::Turn;
use crate::model::id::InstanceId;
use crate::model::priority::Priority;
use crate::model::record::{Record, Target};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};

/// `schedctl priority`: of an instance, or of a task and all its instances that wait; `None` takes
/// an earlier change back.
pub(in super::super) fn request(
    turn: &mut Turn<'_>,
    target: Target,
    priority: Option<Priority>,
) -> Answer {
    let refuse = |code, detail: String| Err(Rejection::new(code, detail));
    match &target {
        Target::Instance(id) => {
            if turn.state.instances.get(id).is_none() {
                return refuse(RejectionCode::NotFound, format!("no open instance {id}"));
            }
            one(turn, id, priority);
        }
        Target::Task(task) => {
            let Some(mut row) = turn.state.registry.row(task).cloned() else {
                return Err(answers::no_task(turn.state, task));
            };
            row.priority = priority;
            turn.put_task(row);
            let open: Vec<InstanceId> =
                turn.state.instances.open_of(task).map(|i| i.instance_id.clone()).collect();
            for id in open {
                one(turn, &id, priority);
            }
        }
        Target::Queue(_) | Target::All => {
            let detail = "a priority belongs to a task or an instance".to_owned();
            return refuse(RejectionCode::Invalid, detail);
        }
    }
    turn.record(Record::PriorityChanged { target, priority });
    Ok(Reply::Done)
}

/// Its place in the queue is the one that it would have had all along.
fn one(turn: &mut Turn<'_>, id: &InstanceId, priority: Option<Priority>) {
    let Some(i) = turn.state.instances.get(id) else { return };
    let of_task = || {
        let row = turn.state.registry.row(&i.task_id).and_then(|row| row.priority);
        row.or_else(|| turn.state.spec_of(i).map(|spec| spec.priority))
    };
    let Some(priority) = priority.or_else(of_task) else { return };
    turn.update(id, "priority", |i| i.priority = priority);
}
