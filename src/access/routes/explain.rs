//! Why something is as it is, and what comes after what.

use axum::Json;
use axum::extract::{Extension, State};
use serde::Deserialize;

use crate::access::explain;
use crate::access::extract::{Name, Params, task_id};
use crate::access::graph;
use crate::access::problem::Problem;
use crate::access::state::App;
use crate::model::explain::{InstanceExplanation, TaskExplanation};
use crate::model::graph::GraphView;
use crate::model::request::Caller;
use crate::model::time::Timestamp;

/// `GET /instances/{id}/explain`.
pub(super) async fn instance(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
) -> Result<Json<InstanceExplanation>, Problem> {
    explain::instance(&app, caller, &id).await.map(Json)
}

/// Which time of a task is asked about.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TaskQuery {
    at: Option<Timestamp>,
}

/// `GET /tasks/{id}/explain`.
pub(super) async fn task(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Params(TaskQuery { at }): Params<TaskQuery>,
) -> Result<Json<TaskExplanation>, Problem> {
    explain::task(&app, caller, task_id(&id)?, at).await.map(Json)
}

/// What of the graph is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct GraphQuery {
    /// What is up- or downstream of this task.
    task_id: Option<String>,
    /// The instances of this cycle, not the definitions.
    cycle: Option<String>,
}

/// `GET /graph`.
pub(super) async fn graph(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(wanted): Params<GraphQuery>,
) -> Result<Json<GraphView>, Problem> {
    let around = wanted.task_id.as_deref().map(task_id).transpose()?;
    graph::view(&app, caller, around, wanted.cycle).await.map(Json)
}
