//! Changing a priority while things wait (requirement D2).

use super::super::answers;
use super::super::turn::Turn;
use crate::model::id::InstanceId;
use crate::model::priority::Priority;
use crate::model::record::{Record, Target};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};

/// `schedctl priority`: of an instance, or of a task and all its instances that wait.
pub(in super::super) fn request(turn: &mut Turn<'_>, target: Target, priority: Priority) -> Answer {
    let refuse = |code, detail: String| Err(Rejection::new(code, detail));
    match &target {
        Target::Instance(id) => {
            if turn.state.instances.get(id).is_none() {
                return refuse(RejectionCode::NotFound, format!("no open instance {id}"));
            }
            turn.update(id, "priority", |i| i.priority = priority);
        }
        Target::Task(task) => {
            let Some(mut row) = turn.state.registry.row(task).cloned() else {
                return Err(answers::no_task(turn.state, task));
            };
            row.priority = Some(priority);
            turn.put_task(row);
            let open: Vec<InstanceId> =
                turn.state.instances.open_of(task).map(|i| i.instance_id.clone()).collect();
            for id in open {
                turn.update(&id, "priority", |i| i.priority = priority);
            }
        }
        Target::Queue(_) | Target::All => {
            let detail = "a priority belongs to a task or an instance".to_owned();
            return refuse(RejectionCode::Invalid, detail);
        }
    }
    turn.record(Record::PriorityChanged { target, priority: Some(priority) });
    Ok(Reply::Done)
}
