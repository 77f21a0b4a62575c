//! `apply`: spec files into the daemon's spec directory.

use sched::access::client::{ClientError, Response, Target};
use sched::model::id::TaskId;
use sched::model::plan::{PlanView, TaskChange, TaskPlan};
use sched::model::view::TaskView;
use serde_json::{Value, json};

use super::plan::Asked;
use crate::cli::ApplyArgs;
use crate::exit::{Exit, Failure};
use crate::output::{JsonList, note};
use crate::render;
use crate::session::Session;
use crate::spec_files::{self, Given};

/// Plans all files together and, if nothing is wrong with any, writes one after the other.
pub(crate) fn apply(session: &Session, args: &ApplyArgs) -> Result<Exit, Failure> {
    let gathered = spec_files::gather(&args.paths, &mut std::io::stdin());
    let asked = Asked::of(session, gathered, false)?;
    if args.dry_run {
        return asked.show(session);
    }
    asked.complain();
    let errors = asked.view.errors.len();
    if errors > 0 {
        let text =
            format!("{errors} error{}; nothing was written", if errors == 1 { "" } else { "s" });
        return Err(Failure::said(Exit::Refused, text));
    }
    let Asked { given, view, .. } = asked;
    let (exit, answers) = write_all(session, given.files);
    let mut results = Vec::new();
    for answer in &answers {
        results.extend(results_of(answer, &view)?);
    }
    results.extend(removed(&view, &results));
    tell(session, &results)?;
    Ok(exit)
}

/// Writes every file. One that does not fit yet, because another is to make room for it, is tried
/// again after the others, for as long as that helps.
fn write_all(session: &Session, files: Vec<Given>) -> (Exit, Vec<Response>) {
    let all = files.len();
    let mut left = files;
    let mut answers = Vec::with_capacity(all);
    loop {
        let before = left.len();
        let mut refused: Vec<(Given, Failure)> = Vec::new();
        for file in left {
            let target = Target::new("/tasks").query_some("file", file.name.as_deref());
            match session.client.post_file(&target, "application/yaml", file.bytes.clone()) {
                Ok(answer) => answers.push(answer),
                Err(error) => refused.push((file, error.into())),
            }
        }
        let Some((_, first)) = refused.first() else { return (Exit::Good, answers) };
        if refused.len() == before || !refused.iter().all(|(_, failure)| may_fit_later(failure)) {
            let exit = first.exit();
            for (file, failure) in &refused {
                note(&format!("schedctl: {}: {}", file.shown, failure.text()));
            }
            note(&format!("{} of {all} files were written", answers.len()));
            return (exit, answers);
        }
        left = refused.into_iter().map(|(file, _)| file).collect();
    }
}

fn may_fit_later(failure: &Failure) -> bool {
    matches!(failure, Failure::Client(ClientError::Refused(problem)) if problem.code == "CONFLICT")
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Applied {
    task: TaskId,
    result: &'static str,
    /// The revision in force; of a removed task there is none.
    revision: Option<u64>,
    file: String,
    /// What a person ought to know besides.
    remarks: Vec<String>,
}

/// What became of the tasks of one file.
fn results_of(answer: &Response, plan: &PlanView) -> Result<Vec<Applied>, Failure> {
    let value: Value = answer.json()?;
    let tasks = if let Value::Array(tasks) = value { tasks } else { vec![value] };
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let view: TaskView = serde_json::from_value(task).map_err(|source| ClientError::Json {
            target: "a task that was written".to_owned(),
            source,
        })?;
        let planned = plan.tasks.iter().find(|task| task.task_id == view.task_id);
        let result = match planned.map(|task| task.change) {
            Some(TaskChange::Added) => "created",
            Some(TaskChange::Changed | TaskChange::Moved | TaskChange::Removed) => "configured",
            Some(TaskChange::Ignored) | None => "unchanged",
        };
        let task = &view.task_id;
        let mut remarks: Vec<String> = view
            .unresolved
            .iter()
            .map(|upstream| format!("{task} waits for {upstream}, which no file defines yet"))
            .collect();
        if view.pinned {
            remarks
                .push(format!("{task} is pinned: what the file says counts after schedctl unpin"));
        }
        results.push(Applied {
            task: view.task_id,
            result,
            revision: Some(view.revision),
            file: view.file,
            remarks,
        });
    }
    Ok(results)
}

/// Tasks that files which were written no longer define.
fn removed(plan: &PlanView, results: &[Applied]) -> Vec<Applied> {
    let gone = plan.tasks.iter().filter(|task| {
        task.change == TaskChange::Removed && results.iter().any(|r| r.file == task.file)
    });
    let one = |task: &TaskPlan| Applied {
        task: task.task_id.clone(),
        result: "removed",
        revision: None,
        file: task.file.clone(),
        remarks: Vec::new(),
    };
    gone.map(one).collect()
}

fn tell(session: &Session, results: &[Applied]) -> Result<(), Failure> {
    let output = &session.output;
    if output.is_json() {
        let mut list = JsonList::new(output);
        for Applied { task, result, revision, file, .. } in results {
            let row =
                json!({ "taskId": task, "result": result, "revision": revision, "file": file });
            list.push(&row.to_string())?;
        }
        return list.end();
    }
    for Applied { task, result, revision, file, remarks } in results {
        let revision = revision.map_or_else(String::new, |n| format!("revision {n}, "));
        output.line(&render::clean(&format!("{task} {result} ({revision}{file})")))?;
        for remark in remarks {
            note(remark);
        }
    }
    Ok(())
}
