//! Verbs that change what is there: cancel, skip, retry, pause, resume, priority.

use sched::access::client::Target;
use sched::model::instance::{InstanceState, Reason};
use sched::model::view::{InstanceView, Retried};
use serde_json::json;

use crate::cli::{
    CancelArgs, HoldTarget, PauseArgs, PriorityArgs, PriorityWish, ResumeArgs, RetryArgs, SkipArgs,
};
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::session::{Session, instance, named, usage};
use crate::time_text::Direction;

/// `cancel`.
pub(crate) fn cancel(session: &Session, args: &CancelArgs) -> Result<Exit, Failure> {
    let below = if args.downstream { " and all that waits for it" } else { "" };
    confirm(&format!("cancel {}{below}?", counted(&args.instances)), args.yes)?;
    let body = json!({ "downstream": args.downstream });
    end(session, &args.instances, "cancel", &body, |view| match (view.state, view.reason) {
        (InstanceState::Cancelled, _) => "is CANCELLED".to_owned(),
        (_, Some(Reason::Cancelling)) => "is being ended".to_owned(),
        (state, _) if args.downstream => {
            format!("is {state} and stays so; what waited below it is CANCELLED")
        }
        (state, _) => format!("is {state}; there is nothing to cancel"),
    })
}

/// `skip`.
pub(crate) fn skip(session: &Session, args: &SkipArgs) -> Result<Exit, Failure> {
    confirm(&format!("skip {}?", counted(&args.instances)), args.yes)?;
    end(session, &args.instances, "skip", &json!({}), |view| match (view.state, view.reason) {
        (InstanceState::Cancelled, Some(Reason::SkippedByUser)) => "is skipped".to_owned(),
        (state, _) => format!("is {state}; there is nothing to skip"),
    })
}

fn counted(names: &[String]) -> String {
    match names {
        [one] => format!("instance {one}"),
        several => format!("{} instances", several.len()),
    }
}

/// Orders the end of instances; what it came to is said when all are ordered, and is for the eye
/// only.
fn end(
    session: &Session,
    names: &[String],
    verb: &str,
    body: &serde_json::Value,
    became: impl Fn(&InstanceView) -> String,
) -> Result<Exit, Failure> {
    let mut said = Vec::new();
    let outcome = each(names, "", |name| {
        session.post(&action(instance(name), verb), body)?;
        said.push(match session.view::<InstanceView>(&instance(name)) {
            Ok(view) => format!("{} {}", view.instance_id, became(&view)),
            Err(_) => format!("{name} {verb} requested"),
        });
        Ok(())
    });
    for line in said {
        note(&line);
    }
    outcome
}

/// `retry`: exit 6 if any of those below cannot be tried again.
pub(crate) fn retry(session: &Session, args: &RetryArgs) -> Result<Exit, Failure> {
    let body = json!({
        "withDownstream": args.with_downstream,
        "sameRevision": args.same_revision,
    });
    let mut rejected = false;
    let outcome = each(&args.instances, "", |name| {
        let answer = session.post(&action(instance(name), "retry"), &body)?;
        let retried: Retried = answer.json()?;
        note(&format!("{} is queued again", retried.instance_id));
        for id in &retried.below {
            note(&format!("{id}, below it, is tried again after it"));
        }
        for one in &retried.rejected {
            note(&format!("schedctl: {}, below it: {}", one.instance_id, one.detail));
            rejected = true;
        }
        Ok(())
    })?;
    Ok(if outcome == Exit::Good && rejected { Exit::Refused } else { outcome })
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
    let body = json!({ "reason": args.reason, "until": until, "freeze": args.freeze });
    let order = |target| session.post(&action(target, "pause"), &body).map(drop);
    if !args.freeze {
        return hold(&args.target, "paused", order);
    }
    each(&args.target.names, "", |name| {
        order(named(name))?;
        let frozen = session
            .view::<InstanceView>(&named(name))
            .is_ok_and(|view| view.reason == Some(Reason::Frozen));
        let became = if frozen { "frozen: its processes are stopped" } else { "paused" };
        note(&format!("{name} {became}"));
        Ok(())
    })
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
    let (value, said) = match args.value {
        PriorityWish::Set(priority) => (json!(priority), priority.to_string()),
        PriorityWish::Default => (json!("default"), "its own again".to_owned()),
    };
    session.post(&target, &json!({ "priority": value }))?;
    note(&format!("{} has priority {said}", args.name));
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
