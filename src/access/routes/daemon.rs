//! The daemon itself: its state, executors, queues, holds on everything, reload, stop.

use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::extract::{Body, Name};
use crate::access::problem::Problem;
use crate::access::proposal;
use crate::access::state::App;
use crate::model::id::QueueName;
use crate::model::record::Target;
use crate::model::request::{Caller, Reply, Request, StopMode};
use crate::model::view::{ExecutorView, QueueView, StatusView};

use super::instances::{EmptyBody, PauseBody};

/// Time after which a core that does not answer is called unwell.
const HEALTH_WITHIN: Duration = Duration::from_secs(2);

/// `GET /status`.
pub(super) async fn status(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<StatusView>, Problem> {
    let Reply::Status(status) = app.ask(Request::Status, caller).await? else {
        return Err(Problem::misanswered("the status"));
    };
    Ok(Json(*status))
}

/// `GET /health`: 200 if the daemon can do all it should, else 503; `degraded` says why.
pub(super) async fn health(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let asked = tokio::time::timeout(HEALTH_WITHIN, app.ask(Request::Status, caller)).await;
    let (word, degraded) = match asked {
        Ok(Ok(Reply::Status(status))) if status.stopping => ("STOPPING", status.degraded),
        Ok(Ok(Reply::Status(status))) if status.degraded.is_empty() => ("OK", Vec::new()),
        Ok(Ok(Reply::Status(status))) => ("DEGRADED", status.degraded),
        Ok(Ok(_)) => ("DEGRADED", vec!["the status was answered with something else".to_owned()]),
        Ok(Err(problem)) => ("UNAVAILABLE", vec![problem.rejection.detail]),
        Err(_elapsed) => {
            let why = format!("no answer within {} s", HEALTH_WITHIN.as_secs());
            ("UNAVAILABLE", vec![why])
        }
    };
    let code = if word == "OK" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(json!({ "status": word, "degraded": degraded }))).into_response()
}

/// `GET /version`.
pub(super) async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION") }))
}

/// `GET /executors`.
pub(super) async fn executors(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<ExecutorView>>, Problem> {
    let Reply::Executors(executors) = app.ask(Request::Executors, caller).await? else {
        return Err(Problem::misanswered("the list of executors"));
    };
    Ok(Json(executors))
}

/// `GET /queues`.
pub(super) async fn queues(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<QueueView>>, Problem> {
    let Reply::Queues(queues) = app.ask(Request::Queues, caller).await? else {
        return Err(Problem::misanswered("the list of queues"));
    };
    Ok(Json(queues))
}

/// `POST /queues/{name}/pause`.
pub(super) async fn pause_queue(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(name): Name,
    Body(body): Body<PauseBody>,
) -> Result<Json<Value>, Problem> {
    let target = Target::Queue(QueueName::from(name.as_str()));
    app.order(body.request(target)?, caller).await?;
    Ok(Json(json!({ "queue": name })))
}

/// `POST /queues/{name}/resume`.
pub(super) async fn resume_queue(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(name): Name,
    Body(EmptyBody {}): Body<EmptyBody>,
) -> Result<Json<Value>, Problem> {
    let target = Target::Queue(QueueName::from(name.as_str()));
    app.order(Request::Resume { target }, caller).await?;
    Ok(Json(json!({ "queue": name })))
}

/// `POST /pause`: everything.
pub(super) async fn pause_all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<PauseBody>,
) -> Result<Json<Value>, Problem> {
    app.order(body.request(Target::All)?, caller).await?;
    Ok(Json(json!({})))
}

/// `POST /resume`: everything.
pub(super) async fn resume_all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(EmptyBody {}): Body<EmptyBody>,
) -> Result<Json<Value>, Problem> {
    app.order(Request::Resume { target: Target::All }, caller).await?;
    Ok(Json(json!({})))
}

/// `POST /reload`: answered when the core has what the spec directory holds now, with how many
/// tasks are in force, what is wrong with files, and why the directory cannot be read, if so.
pub(super) async fn reload(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(EmptyBody {}): Body<EmptyBody>,
) -> Result<Json<Value>, Problem> {
    let unreadable = app.ask.reload().await?;
    let status = proposal::status(&app, caller).await?;
    Ok(Json(json!({
        "tasks": status.tasks,
        "specErrors": status.spec_errors,
        "unreadable": unreadable,
    })))
}

/// The body of a stop.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ShutdownBody {
    mode: Option<StopMode>,
}

/// `POST /shutdown`: HANDOVER unless `mode` says otherwise; answered when the stop has begun.
pub(super) async fn shutdown(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(ShutdownBody { mode }): Body<ShutdownBody>,
) -> Result<Json<Value>, Problem> {
    let mode = mode.unwrap_or(StopMode::Handover);
    app.order(Request::Shutdown(mode), caller).await?;
    Ok(Json(json!({ "mode": mode })))
}
