//! Verbs that change what is there: cancel, retry, pause, resume, priority.

use sched::access::client::Target;
use sched::model::instance::{InstanceState, Reason};
use sched::model::view::InstanceView;
use serde_json::json;

use crate::cli::{CancelArgs, HoldTarget, PauseArgs, PriorityArgs, ResumeArgs, RetryArgs};
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::session::{Session, instance, named, usage};
use crate::time_text::Direction;

/// `cancel`.
pub(crate) fn cancel(session: &Session, args: &CancelArgs) -> Result<Exit, Failure> {
    let what = match args.instances.as_slice() {
        [one] => format!("instance {one}"),
        several => format!("{} instances", several.len()),
    };
    let below = if args.downstream { " and all that waits for it" } else { "" };
    confirm(&format!("cancel {what}{below}?"), args.yes)?;
    let body = json!({ "downstream": args.downstream });
    let mut said = Vec::new();
    let outcome = each(&args.instances, "", |name| {
        session.post(&action(instance(name), "cancel"), &body)?;
        // The order is given; what it came to is for the eye only.
        said.push(match session.view::<InstanceView>(&instance(name)) {
            Ok(view) => cancelled(&view),
            Err(_) => format!("{name} cancel requested"),
        });
        Ok(())
    });
    for line in said {
        note(&line);
    }
    outcome
}

fn cancelled(view: &InstanceView) -> String {
    let id = &view.instance_id;
    match (view.state, view.reason) {
        (InstanceState::Cancelled, _) => format!("{id} is CANCELLED"),
        (_, Some(Reason::Cancelling)) => format!("{id} is being ended"),
        (state, _) => format!("{id} is {state}; there is nothing to cancel"),
    }
}

/// `retry`.
pub(crate) fn retry(session: &Session, args: &RetryArgs) -> Result<Exit, Failure> {
    each(&args.instances, "queued again", |name| {
        session.post(&action(instance(name), "retry"), &json!({})).map(drop)
    })
}

/// `pause`.
pub(crate) fn pause(session: &Session, args: &PauseArgs) -> Result<Exit, Failure> {
    let output = &session.output;
    let until = args
        .until
        .map(|when| {
            when.resolve(output.now, &output.zone, Direction::Hence)
                .ok_or_else(|| usage("--until lies outside the calendar's years"))
        })
        .transpose()?;
    if args.target.all {
        confirm("pause everything?", args.yes)?;
    }
    let body = json!({ "reason": args.reason, "until": until });
    hold(&args.target, "paused", |target| session.post(&action(target, "pause"), &body).map(drop))
}

/// `resume`.
pub(crate) fn resume(session: &Session, args: &ResumeArgs) -> Result<Exit, Failure> {
    hold(&args.target, "resumed", |target| {
        session.post(&action(target, "resume"), &json!({})).map(drop)
    })
}

/// `priority`.
pub(crate) fn priority(session: &Session, args: &PriorityArgs) -> Result<Exit, Failure> {
    let target = action(named(&args.name), "priority");
    let (value, told) = match args.value.0 {
        Some(priority) => (json!(priority), format!("has priority {priority}")),
        None => (json!("DEFAULT"), "has its own priority back".to_owned()),
    };
    session.post(&target, &json!({ "priority": value }))?;
    note(&format!("{} {told}", args.name));
    Ok(Exit::Good)
}

fn action(of: Target, verb: &str) -> Target {
    of.segment(verb)
}

fn hold(
    target: &HoldTarget,
    done: &str,
    mut order: impl FnMut(Target) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    if target.all {
        // `/pause` and `/resume` themselves are about everything.
        order(Target::new(""))?;
        note(&format!("everything {done}"));
        return Ok(Exit::Good);
    }
    if let Some(queue) = &target.queue {
        order(Target::new("/queues").segment(queue))?;
        note(&format!("queue {queue} {done}"));
        return Ok(Exit::Good);
    }
    each(&target.names, done, |name| order(named(name)))
}

/// Does it to every one of them and says so (`done` may be empty: then the order speaks itself), whatever becomes of the others; the first failure counts.
fn each(
    names: &[String],
    done: &str,
    mut order: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut failed = None;
    for name in names {
        match order(name) {
            Ok(()) if done.is_empty() => {}
            Ok(()) => note(&format!("{name} {done}")),
            Err(failure) if names.len() == 1 => return Err(failure),
            Err(failure) => {
                note(&format!("schedctl: {name}: {}", failure.text()));
                failed = failed.or(Some(failure.exit()));
            }
        }
    }
    Ok(failed.unwrap_or(Exit::Good))
}
