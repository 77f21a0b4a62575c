//! `rollback` and `unpin`: an earlier revision in force, and the end of that.

use serde_json::{Value, json};

use crate::cli::{RollbackArgs, UnpinArgs};
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::session::{Session, task};

/// `rollback`.
pub(crate) fn rollback(session: &Session, args: &RollbackArgs) -> Result<Exit, Failure> {
    let RollbackArgs { task: name, revision, yes } = args;
    confirm(&format!("put revision {revision} of {name} in force and pin it?"), *yes)?;
    let target = task(name).segment("rollback");
    let answer = session.post(&target, &json!({ "revision": revision }))?;
    if session.output.is_json() {
        session.output.json(&answer.body)?;
        return Ok(Exit::Good);
    }
    note(&format!(
        "{name} is at revision {revision} and stays there until schedctl unpin {name}, or until \
         its file changes"
    ));
    Ok(Exit::Good)
}

/// `unpin`.
pub(crate) fn unpin(session: &Session, args: &UnpinArgs) -> Result<Exit, Failure> {
    let answer = session.post(&task(&args.task).segment("unpin"), &json!({}))?;
    if session.output.is_json() {
        session.output.json(&answer.body)?;
        return Ok(Exit::Good);
    }
    let was_pinned = answer.json::<Value>()?.get("wasPinned").and_then(Value::as_bool);
    note(&if was_pinned == Some(false) {
        format!("{} is not pinned: it follows its file", args.task)
    } else {
        format!("{} follows its file again", args.task)
    });
    Ok(Exit::Good)
}
