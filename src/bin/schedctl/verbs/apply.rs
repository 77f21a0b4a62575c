//! `apply`: spec files into the daemon's spec directory.

use sched::access::client::{ClientError, Target};
use sched::model::id::TaskId;
use sched::model::plan::{Applied, AppliedTask, ApplyView, PlanView, TaskChange};
use serde_json::json;

use super::plan::{Asked, as_given};
use crate::cli::ApplyArgs;
use crate::exit::{Exit, Failure};
use crate::output::{JsonList, confirm, note};
use crate::render::{self, counted};
use crate::session::Session;
use crate::spec_files::{self, Gathered};

/// Plans all files together and, if nothing is wrong with any, has them written as one change.
pub(crate) fn apply(session: &Session, args: &ApplyArgs) -> Result<Exit, Failure> {
    let gathered = spec_files::gather(&args.paths, &mut std::io::stdin());
    let asked = Asked::of(session, gathered, false)?;
    if args.dry_run {
        return asked.show(session);
    }
    let errors = asked.view.errors.len();
    if errors > 0 && session.output.is_json() {
        session.output.json(&asked.json()?)?;
    } else {
        asked.complain();
    }
    if errors > 0 {
        note(&format!("schedctl: {}; nothing was written", counted(errors, "error")));
        return Ok(asked.exit());
    }
    if let Some(question) = question(&asked.view) {
        confirm(&question, args.yes)?;
    }
    let body = json!({ "files": asked.sent });
    match session.client.post(&Target::new("/apply"), &body) {
        Ok(answer) => tell(session, &answer.json()?)?,
        Err(error) => return refused(session, &asked.given, error),
    }
    Ok(Exit::Good)
}

/// What is asked before tasks go: a file that is replaced may have defined more than it will.
fn question(plan: &PlanView) -> Option<String> {
    let gone = plan.tasks.iter().filter(|task| task.change == TaskChange::Removed);
    let mut lines = Vec::new();
    for task in gone {
        let (id, file) = (&task.task_id, &task.file);
        let mut line =
            format!("{id} would be removed: what is to replace {file} does not define it");
        if !task.broken_dependents.is_empty() {
            let ids: Vec<&str> = task.broken_dependents.iter().map(|id| id.as_str()).collect();
            line.push_str(&format!(", and {} would lose this upstream", ids.join(", ")));
        }
        lines.push(render::clean(&line));
    }
    if lines.is_empty() {
        return None;
    }
    Some(format!("{}\nremove {}?", lines.join("\n"), counted(lines.len(), "task")))
}

/// A refusal in the form that a plan has.
fn refused(session: &Session, given: &Gathered, error: ClientError) -> Result<Exit, Failure> {
    let ClientError::Refused(mut problem) = error else { return Err(error.into()) };
    as_given(given, &mut problem.errors);
    if session.output.is_json() {
        let errors = std::mem::take(&mut problem.errors);
        let view = json!(PlanView { errors, ..PlanView::default() });
        session.output.json(view.to_string().as_bytes())?;
    }
    Err(ClientError::Refused(problem).into())
}

/// What a person ought to know of a task besides.
fn remarks(task: &AppliedTask, all: &[AppliedTask]) -> Vec<String> {
    let id = &task.task_id;
    // Of one that has just gone it is said there who waits for it.
    let is_gone = |id: &TaskId| all.iter().any(|t| t.task_id == *id && t.revision.is_none());
    let unresolved = task.unresolved.iter().filter(|upstream| !is_gone(upstream));
    let mut remarks: Vec<String> = unresolved
        .map(|upstream| format!("{id} waits for {upstream}, which no file defines yet"))
        .collect();
    if !task.broken_dependents.is_empty() {
        let ids: Vec<&str> = task.broken_dependents.iter().map(|id| id.as_str()).collect();
        remarks.push(format!("no file defines {id} now; waiting for it: {}", ids.join(", ")));
    }
    if task.pinned {
        remarks.push(format!("{id} is pinned: what the file says counts after schedctl unpin"));
    }
    remarks
}

const fn result_text(result: Applied) -> &'static str {
    match result {
        Applied::Created => "created",
        Applied::Configured => "configured",
        Applied::Unchanged => "unchanged",
        Applied::Removed => "removed",
    }
}

fn tell(session: &Session, applied: &ApplyView) -> Result<(), Failure> {
    let output = &session.output;
    if output.is_json() {
        let mut list = JsonList::new(output);
        for AppliedTask { task_id, result, revision, file, .. } in &applied.tasks {
            let row = json!({ "taskId": task_id, "result": result, "revision": revision,
                              "file": file });
            list.push(&row.to_string())?;
        }
        return list.end();
    }
    for task in &applied.tasks {
        let AppliedTask { task_id, result, revision, file, .. } = task;
        let revision = revision.map_or_else(String::new, |n| format!("revision {n}, "));
        let result = result_text(*result);
        output.line(&render::clean(&format!("{task_id} {result} ({revision}{file})")))?;
        for remark in remarks(task, &applied.tasks) {
            note(&remark);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_go_is_named_with_those_who_would_lose_it_before_it_goes() {
        let task = |id: &str, change: &str, broken: serde_json::Value| {
            json!({"taskId": id, "change": change, "file": "/srv/a.yaml", "changes": [],
                   "nextFireTime": null, "nextFireTimeAfter": null, "unresolved": [],
                   "brokenDependents": broken, "instances": []})
        };
        let plan = |tasks: serde_json::Value| -> PlanView {
            serde_json::from_value(json!({"tasks": tasks, "errors": [], "warnings": []})).unwrap()
        };
        assert_eq!(question(&plan(json!([task("a.v1", "CHANGED", json!([]))]))), None);
        let two =
            [task("a.v1", "REMOVED", json!(["c.v1", "d.v1"])), task("b.v1", "REMOVED", json!([]))];
        let expected = "\
a.v1 would be removed: what is to replace /srv/a.yaml does not define it, and c.v1, d.v1 would lose \
this upstream
b.v1 would be removed: what is to replace /srv/a.yaml does not define it
remove 2 tasks?";
        assert_eq!(question(&plan(json!(two))).as_deref(), Some(expected));
    }
}
