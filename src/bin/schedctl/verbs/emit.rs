//! `emit`: tell the scheduler that a named event has happened.

use sched::access::client::Target;
use sched::model::request::EmitReply;
use serde_json::json;

use super::run::params;
use crate::cli::EmitArgs;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::session::Session;

/// Prints the instances that it made; refused parameters are exit 6.
pub(crate) fn emit(session: &Session, args: &EmitArgs) -> Result<Exit, Failure> {
    let target = Target::new("/events").segment(&args.event);
    let body = json!({ "params": params(None, &args.param)? });
    let answer = session.post(&target, &body)?;
    let reply: EmitReply = answer.json()?;
    if session.output.is_json() {
        session.output.json(&answer.body)?;
    } else {
        for id in &reply.instances {
            session.output.line(id.as_str())?;
        }
    }
    for refusal in &reply.rejected {
        note(&format!("{} refused it: {}", refusal.task_id, refusal.detail));
    }
    if !reply.rejected.is_empty() {
        return Ok(Exit::Refused);
    }
    if reply.instances.is_empty() {
        note(&format!("no task listens to event {}", args.event));
    }
    Ok(Exit::Good)
}
