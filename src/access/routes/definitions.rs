//! A definition brought to the door: put into the spec directory, taken out of it.
//!
//! The directory stays the truth: what is accepted here is a file there, and in force once the
//! core has read it. Bringing the same file again changes nothing, so these orders need no key.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::extract::{Name, Params, SpecBody, flag, task_id};
use crate::access::problem::Problem;
use crate::access::proposal::{self, Proposal, Read};
use crate::access::query;
use crate::access::state::App;
use crate::model::event::{SpecError, SpecFile};
use crate::model::request::{Caller, FileChange, RejectionCode, Reply, Request};
use crate::model::view::TaskView;

/// The query of `POST /tasks`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DefineQuery {
    /// The file's name in the spec directory; without it: the one where the task stands alone, or
    /// one named after it.
    file: Option<String>,
}

/// `POST /tasks`: a spec file, checked against the set in force, written whole or not at all, in
/// force when this is answered. 201: at least one of its tasks is new; 200: none is.
///
/// The answer is the task, or a list if the file defines several.
pub(super) async fn define(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(DefineQuery { file }): Params<DefineQuery>,
    SpecBody(text): SpecBody,
) -> Result<Response, Problem> {
    if let Some(why) = file.as_deref().and_then(proposal::name_fault) {
        return Err(Problem::invalid(why));
    }
    let text = proposal::with_task_id(&text).unwrap_or(text);
    let before = proposal::tasks(&app, caller).await?;
    let reads = proposal::read(&app, caller, &before, vec![Proposal { name: file, text }]).await?;
    let (name, file, text) = sound(reads)?;
    let is_new = refuse_second_home(&before, &file)?;
    let planned = proposal::plan(&app, caller, vec![file.clone()], false).await?;
    if !planned.errors.is_empty() {
        let detail = format!("{} does not fit the set in force; nothing was written", file.path);
        return Err(proposal::refusal(RejectionCode::Conflict, detail, planned.errors));
    }
    app.ask.change_files(vec![FileChange::Write { name, text }], caller).await?;
    let views = in_force(&app, caller, &file).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(match views.as_slice() {
        [view] => {
            let location = format!("/tasks/{}", view.task_id);
            (status, [(header::LOCATION, location)], Json(view)).into_response()
        }
        views => (status, Json(views)).into_response(),
    })
}

/// The one file that was read, if there is nothing wrong with it.
fn sound(reads: Vec<Read>) -> Result<(String, SpecFile, Vec<u8>), Problem> {
    let Some(Read { name, mut file, text }) = reads.into_iter().next() else {
        return Err(Problem::unavailable("what was sent was not read; this is a fault of schedd"));
    };
    if file.errors.is_empty() && file.specs.is_empty() {
        return Err(Problem::invalid("the body defines no task; expected a spec as YAML or JSON"));
    }
    match name {
        Some(name) if file.errors.is_empty() => Ok((name, file, text)),
        Some(_) | None => {
            let errors = std::mem::take(&mut file.errors);
            let count = errors.len();
            let detail = format!(
                "the spec has {count} error{}; nothing was written",
                if count == 1 { "" } else { "s" }
            );
            Err(proposal::refusal(RejectionCode::Invalid, detail, errors))
        }
    }
}

/// Refuses a task that lives in another file; says whether any is new.
fn refuse_second_home(before: &[TaskView], file: &SpecFile) -> Result<bool, Problem> {
    let mut is_new = false;
    for spec in &file.specs {
        let Some(view) = before.iter().find(|view| view.task_id == spec.task_id) else {
            is_new = true;
            continue;
        };
        if view.file != file.path {
            let (id, now, wanted) = (&spec.task_id, &view.file, &file.path);
            return Err(Problem::new(
                RejectionCode::Conflict,
                format!(
                    "{id} is defined in {now}, so it cannot be in {wanted} too; change it there, \
                     or remove it first. Nothing was written"
                ),
            ));
        }
    }
    Ok(is_new)
}

/// The tasks of a file that was written, as they are now.
///
/// # Errors
/// A conflict if they are not in force: something else changed the directory meanwhile.
async fn in_force(app: &App, caller: Caller, file: &SpecFile) -> Result<Vec<TaskView>, Problem> {
    let mut views = Vec::with_capacity(file.specs.len());
    for spec in &file.specs {
        match app.ask(Request::Task(spec.task_id.clone()), caller).await {
            Ok(Reply::Task(view)) if proposal::says(&view, &file.path) => {
                views.push(query::masked(app, *view).await?);
            }
            Ok(Reply::Task(_)) => {
                return Err(proposal::not_in_force(app, caller, &[&file.path]).await);
            }
            Ok(_) => return Err(Problem::misanswered("a task")),
            Err(problem) if problem.rejection.code == RejectionCode::NotFound => {
                return Err(proposal::not_in_force(app, caller, &[&file.path]).await);
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(views)
}

/// The query of `DELETE /tasks/{id}`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(super) struct RemoveQuery {
    /// Say what would be removed, and remove nothing.
    #[serde(deserialize_with = "flag")]
    dry_run: bool,
}

/// `DELETE /tasks/{id}`: takes the task's file out of the spec directory; what runs of it ends by
/// itself. The answer names those who lose it as their upstream. 409 if the file holds more than
/// this task.
pub(super) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Params(RemoveQuery { dry_run }): Params<RemoveQuery>,
) -> Result<Json<Value>, Problem> {
    let task = task_id(&id)?;
    let Reply::Task(view) = app.ask(Request::Task(task.clone()), caller).await? else {
        return Err(Problem::misanswered("a task"));
    };
    let path = view.file;
    let name =
        proposal::name_of(&app, &path).ok_or_else(|| proposal::elsewhere(&app, &task, &path))?;
    let conflict = |detail: String| Problem::new(RejectionCode::Conflict, detail);
    let tasks = proposal::tasks(&app, caller).await?;
    let others = proposal::others_in(&tasks, &path, &task);
    if !others.is_empty() {
        return Err(conflict(format!(
            "{path} defines {} too; take {task} out of that file instead",
            others.join(", ")
        )));
    }
    let errors = proposal::status(&app, caller).await?.spec_errors;
    let errors: Vec<SpecError> = errors.into_iter().filter(|e| e.file == path).collect();
    if !errors.is_empty() {
        let detail = format!(
            "{path} has errors, so that nobody knows what else it is to define; repair it, or \
             delete it by hand"
        );
        return Err(proposal::refusal(RejectionCode::Conflict, detail, errors));
    }
    let broken = proposal::dependents(&app, caller, &task, &path).await?;
    let removed = json!({ "taskId": task, "file": path, "brokenDependents": broken });
    if dry_run {
        return Ok(Json(removed));
    }
    app.ask
        .change_files(vec![FileChange::Remove { name, tasks: vec![task.clone()] }], caller)
        .await?;
    match app.ask(Request::Task(task.clone()), caller).await {
        Ok(Reply::Task(left)) => Err(conflict(format!(
            "{path} is removed, but {} defines {task} too and has taken over; remove it once more",
            left.file
        ))),
        Ok(_) | Err(_) => Ok(Json(removed)),
    }
}
