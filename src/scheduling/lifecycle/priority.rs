//! Changing a priority while things wait (requirement D2).

use super::super::answers;
use super::super::turn::Turn;
use crate::model::id::InstanceId;
use crate::model::instance::Instance;
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

/// `schedctl priority … default`: what the definition says counts again; for an instance, what
/// counts for its task.
pub(in super::super) fn reset(turn: &mut Turn<'_>, target: Target) -> Answer {
    let refuse = |code, detail: String| Err(Rejection::new(code, detail));
    match &target {
        Target::Instance(id) => {
            let Some(i) = turn.state.instances.get(id).cloned() else {
                return refuse(RejectionCode::NotFound, format!("no open instance {id}"));
            };
            let of_task = turn.state.registry.row(&i.task_id).and_then(|row| row.priority);
            let defined = || turn.state.spec_of(&i).map(|spec| spec.priority);
            let priority = of_task.or_else(defined).unwrap_or(i.priority);
            turn.update(id, "priority", |i| i.priority = priority);
        }
        Target::Task(task) => {
            let Some(mut row) = turn.state.registry.row(task).cloned() else {
                return Err(answers::no_task(turn.state, task));
            };
            row.priority = None;
            turn.put_task(row);
            let open: Vec<Instance> = turn.state.instances.open_of(task).cloned().collect();
            for i in open {
                let Some(spec) = turn.state.spec_of(&i) else { continue };
                turn.update(&i.instance_id, "priority", |i| i.priority = spec.priority);
            }
        }
        Target::Queue(_) | Target::All => {
            let detail = "a priority belongs to a task or an instance".to_owned();
            return refuse(RejectionCode::Invalid, detail);
        }
    }
    turn.record(Record::PriorityChanged { target, priority: None });
    Ok(Reply::Done)
}
