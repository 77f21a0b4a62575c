//! `history`: the revisions of a definition and what changed.

use sched::access::client::Target;
use sched::model::plan::{FieldChange, RevisionView};
use serde_json::value::RawValue;

use crate::cli::{HistoryArgs, RevisionRange};
use crate::exit::{Exit, Failure};
use crate::render;
use crate::session::{Session, task};

/// Shows revisions, oldest first; with `--diff` field by field.
pub(crate) fn history(session: &Session, args: &HistoryArgs) -> Result<Exit, Failure> {
    let target = task(&args.task).segment("history");
    match args.diff {
        Some(Some(range)) => between(session, &args.task, target, range)?,
        Some(None) => each(session, &target, |views, _| render::definition::diffs(views))?,
        None => each(session, &target, render::definition::revisions)?,
    }
    Ok(Exit::Good)
}

fn each(
    session: &Session,
    target: &Target,
    render: impl FnOnce(&[RevisionView], &crate::output::Output) -> String,
) -> Result<(), Failure> {
    session.show_list::<RevisionView>(target, "no revisions", render)
}

/// What changed from one revision to another.
fn between(
    session: &Session,
    name: &str,
    target: Target,
    range: RevisionRange,
) -> Result<(), Failure> {
    let target = target.query("against", &range.from.to_string());
    let views: Vec<RevisionView> = session.view(&target)?;
    let Some(view) = views.into_iter().find(|view| view.revision == range.to) else {
        let text = format!("{name} has no revision {}; schedctl history lists them", range.to);
        return Err(Failure::said(Exit::NotFound, text));
    };
    show(session, &view.changes)
}

fn show(session: &Session, changes: &[FieldChange]) -> Result<(), Failure> {
    if session.output.is_json() {
        let text = serde_json::to_string(changes).unwrap_or_else(|_never| "[]".to_owned());
        let rows: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
        return session.output.json_list(&rows);
    }
    if changes.is_empty() {
        session.output.note("no difference");
        return Ok(());
    }
    session.output.line(&render::definition::changes(changes, ""))
}
