//! Tasks: questions and orders about definitions, and submissions.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::access::extract::{Body, Name, task_id};
use crate::access::problem::Problem;
use crate::access::query;
use crate::access::state::{App, Shared};
use crate::model::backfill::{BackfillBody, Backfilled};
use crate::model::id::TaskId;
use crate::model::record::Target;
use crate::model::request::{Caller, Reply, Request, SubmitBody};
use crate::model::view::TaskView;

use super::instances::{EmptyBody, PauseBody, PriorityBody};

/// `GET /tasks`.
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<TaskView>>, Problem> {
    let Reply::Tasks(tasks) = app.ask(Request::Tasks, caller).await? else {
        return Err(Problem::misanswered("the list of tasks"));
    };
    Ok(Json(tasks))
}

/// `GET /tasks/{id}`: with the definition, secrets in it masked.
pub(super) async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
) -> Result<Json<TaskView>, Problem> {
    let task = task_id(&id)?;
    let Reply::Task(view) = app.ask(Request::Task(task), caller).await? else {
        return Err(Problem::misanswered("a task"));
    };
    Ok(Json(query::masked(&app, *view).await?))
}

/// `POST /tasks/{id}/instances`: 201 with what was made; 200 on a dry run, which makes nothing.
pub(super) async fn submit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<SubmitBody>,
) -> Result<Response, Problem> {
    let task = task_id(&id)?;
    let dry_run = body.dry_run;
    let request = Request::Submit { task, submission: Box::new(body) };
    let Reply::Submitted(made) = app.ask(request, caller).await? else {
        return Err(Problem::misanswered("a submission"));
    };
    if dry_run {
        return Ok(Json(made).into_response());
    }
    let location = format!("/instances/{}", made.instance_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(made)).into_response())
}

/// `POST /tasks/{id}/backfill`: 200 with what was made, perhaps nothing, and what was left out.
pub(super) async fn backfill(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<BackfillBody>,
) -> Result<Json<Backfilled>, Problem> {
    let task = task_id(&id)?;
    let Reply::Backfilled(made) = app.ask(Request::Backfill { task, body }, caller).await? else {
        return Err(Problem::misanswered("a backfill"));
    };
    Ok(Json(made))
}

/// `POST /tasks/{id}/pause`.
pub(super) async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<PauseBody>,
) -> Result<Json<Value>, Problem> {
    let task = task_id(&id)?;
    order(&app, caller, task, |target| body.request(target)).await
}

/// `POST /tasks/{id}/resume`.
pub(super) async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(EmptyBody {}): Body<EmptyBody>,
) -> Result<Json<Value>, Problem> {
    let task = task_id(&id)?;
    order(&app, caller, task, |target| Ok(Request::Resume { target })).await
}

/// `POST /tasks/{id}/priority`.
pub(super) async fn priority(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<PriorityBody>,
) -> Result<Json<Value>, Problem> {
    let task = task_id(&id)?;
    order(&app, caller, task, |target| Ok(body.request(target))).await
}

async fn order(
    app: &Shared,
    caller: Caller,
    task: TaskId,
    request: impl FnOnce(Target) -> Result<Request, Problem>,
) -> Result<Json<Value>, Problem> {
    app.order(request(Target::Task(task.clone()))?, caller).await?;
    Ok(Json(json!({ "taskId": task })))
}
