//! `history`: the revisions of a definition and what changed.

use sched::access::client::Target;
use sched::model::plan::{FieldChange, RevisionView};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cli::{HistoryArgs, RevisionRange};
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::render;
use crate::session::{Session, task};

/// What the daemon puts in a secret's place.
const MASK: &str = "***";

/// Shows revisions, oldest first; with `--diff` field by field, with `--revision` one as a whole.
pub(crate) fn history(session: &Session, args: &HistoryArgs) -> Result<Exit, Failure> {
    let target = task(&args.task).segment("history");
    if let Some(revision) = args.revision {
        whole(session, &args.task, target, revision)?;
        return Ok(Exit::Good);
    }
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

/// One revision's definition, as a spec file takes it.
fn whole(session: &Session, name: &str, target: Target, revision: u64) -> Result<(), Failure> {
    let answer = session.get(&target.query("revision", &revision.to_string()))?;
    let views: Vec<Value> = answer.json()?;
    // As it came: a newer daemon may know keys that we do not.
    let view = views.iter().find(|view| view.get("revision") == Some(&json!(revision)));
    let spec = view.and_then(|view| view.get("spec")).filter(|spec| !spec.is_null());
    let Some(spec) = spec else { return Err(no_revision(name, revision)) };
    let text = spec.to_string();
    session.output.json(text.as_bytes())?;
    if text.contains(&format!("\"{MASK}\"")) {
        note(&format!(
            "{MASK} stands for the values of secret parameters; put them in before you apply this"
        ));
    }
    Ok(())
}

fn no_revision(name: &str, revision: u64) -> Failure {
    let text = format!("{name} has no revision {revision}; schedctl history lists them");
    Failure::said(Exit::NotFound, text)
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
        return Err(no_revision(name, range.to));
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
