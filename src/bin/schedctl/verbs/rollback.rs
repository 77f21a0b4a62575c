//! `rollback` and `unpin`: an earlier revision in force, and the end of that.

use serde_json::json;

use crate::cli::{RollbackArgs, UnpinArgs};
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::session::{Session, task};

/// `rollback`.
pub(crate) fn rollback(session: &Session, args: &RollbackArgs) -> Result<Exit, Failure> {
    let RollbackArgs { task: name, revision, yes } = args;
    confirm(&format!("put revision {revision} of {name} in force and pin it?"), *yes)?;
    session.post(&task(name).segment("rollback"), &json!({ "revision": revision }))?;
    note(&format!(
        "{name} is at revision {revision} and stays there until schedctl unpin {name}, or until \
         its file changes"
    ));
    Ok(Exit::Good)
}

/// `unpin`.
pub(crate) fn unpin(session: &Session, args: &UnpinArgs) -> Result<Exit, Failure> {
    session.post(&task(&args.task).segment("unpin"), &json!({}))?;
    note(&format!("{} follows its file again", args.task));
    Ok(Exit::Good)
}
