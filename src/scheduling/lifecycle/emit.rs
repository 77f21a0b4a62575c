//! Named events from outside, and other tasks' ends.

use super::super::graph::Source;
use super::super::turn::Turn;
use super::fire::{self, Happening};
use crate::model::id::InstanceId;
use crate::model::instance::Cause;
use crate::model::json::check_depth;
use crate::model::record::Record;
use crate::model::request::{Answer, EmitRejection, EmitReply, Rejection, RejectionCode, Reply};
use crate::model::spec::{JsonMap, Trigger, TriggerKind};

/// `schedctl emit`: one instance per listening task.
pub(in super::super) fn request(turn: &mut Turn<'_>, name: &str, params: &JsonMap) -> Answer {
    for (parameter, value) in params {
        if let Err(problem) = check_depth(value) {
            let detail = format!("event {name}: parameter {parameter} {problem}");
            return Err(Rejection::new(RejectionCode::Invalid, detail));
        }
    }
    let mut reply = EmitReply { instances: Vec::new(), rejected: Vec::new() };
    // Two events of one name in one millisecond are two events: the log position tells them apart.
    let identity = format!("{name}\0{}", turn.state.tip.0);
    for task in turn.state.registry.graph().listeners(&Source::Event(name.to_owned())) {
        let Some(spec) = fire::listening(turn, &task) else { continue };
        let listens = |t: &&Trigger| matches!(&t.when, TriggerKind::Event(n) if n == name);
        let Some(trigger) = spec.triggers.iter().find(listens) else { continue };
        let at = turn.now;
        if let Some((outcome, reason)) = fire::never(turn, &spec) {
            let detail = reason.clone().unwrap_or_else(|| "is disabled".to_owned());
            turn.fire_one((&task, &trigger.key(), at), outcome, reason, None);
            reply.rejected.push(EmitRejection { task_id: task, detail });
            continue;
        }
        let what = Happening {
            trigger,
            cause: Cause::Event { name: name.to_owned(), params: params.clone() },
            at,
            identity: &identity,
        };
        match fire::make(turn, &spec, what) {
            Some(Ok(id)) => reply.instances.push(id),
            Some(Err(detail)) => reply.rejected.push(EmitRejection { task_id: task, detail }),
            None => {}
        }
    }
    let instances = u64::try_from(reply.instances.len()).unwrap_or(u64::MAX);
    turn.record(Record::Emitted { name: name.to_owned(), instances });
    Ok(Reply::Emitted(reply))
}

/// An instance ended for good: tasks with a `task:` trigger on it get theirs.
pub(in super::super) fn ended(turn: &mut Turn<'_>, id: &InstanceId) {
    let Some(i) = turn.state.instances.get(id).filter(|i| !i.is_open()).cloned() else { return };
    for task in turn.state.registry.graph().listeners(&Source::Task(i.task_id.clone())) {
        let Some(spec) = fire::listening(turn, &task) else { continue };
        let listens = |t: &&Trigger| match &t.when {
            TriggerKind::Task(on) => on.task_id == i.task_id && on.states.contains(&i.state),
            TriggerKind::Cron(_)
            | TriggerKind::Every(_)
            | TriggerKind::Boot
            | TriggerKind::File(_)
            | TriggerKind::Event(_) => false,
        };
        let Some(trigger) = spec.triggers.iter().find(listens) else { continue };
        let at = turn.now;
        if let Some((outcome, reason)) = fire::never(turn, &spec) {
            turn.fire_one((&task, &trigger.key(), at), outcome, reason, None);
            continue;
        }
        // A retried instance may end again: the attempt tells its ends apart.
        let identity = format!("{id}\0{}\0{}", i.state, i.attempt);
        let what = Happening {
            trigger,
            cause: Cause::Task {
                task_id: i.task_id.clone(),
                instance_id: id.clone(),
                state: i.state,
            },
            at,
            identity: &identity,
        };
        fire::make(turn, &spec, what);
    }
}
