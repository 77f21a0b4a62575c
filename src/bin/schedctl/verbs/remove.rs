//! `remove`: a task's file out of the spec directory.

use serde_json::Value;

use crate::cli::RemoveArgs;
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::session::{Session, task};

/// Removes it, and says which file that was.
pub(crate) fn remove(session: &Session, args: &RemoveArgs) -> Result<Exit, Failure> {
    confirm(&format!("remove {} and delete its file?", args.task), args.yes)?;
    let answer: Value = session.client.delete(&task(&args.task))?.json()?;
    let file = answer.get("file").and_then(Value::as_str).unwrap_or("its file");
    note(&format!("{} removed with {file}; what exists of it ends by itself", args.task));
    Ok(Exit::Good)
}
