//! The table of routes (contract §6). Each is there under `/v1` too.

mod apply;
mod daemon;
mod definitions;
mod events;
mod explain;
mod instances;
mod retry;
mod revisions;
mod simulation;
mod tasks;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::auth;
use super::problem::Problem;
use super::state::App;

/// Paths, for the hint that an unknown one gets.
const PATHS: [&str; 43] = [
    "/tasks",
    "/tasks/{id}",
    "/tasks/{id}/instances",
    "/tasks/{id}/backfill",
    "/tasks/{id}/pause",
    "/tasks/{id}/resume",
    "/tasks/{id}/priority",
    "/tasks/{id}/history",
    "/tasks/{id}/rollback",
    "/tasks/{id}/unpin",
    "/tasks/{id}/explain",
    "/plan",
    "/apply",
    "/instances",
    "/instances/{id}",
    "/instances/{id}/cancel",
    "/instances/{id}/retry",
    "/instances/{id}/skip",
    "/instances/{id}/pause",
    "/instances/{id}/resume",
    "/instances/{id}/priority",
    "/instances/{id}/logs",
    "/instances/{id}/explain",
    "/graph",
    "/events",
    "/events/{name}",
    "/fires",
    "/executors",
    "/queues",
    "/queues/{name}/pause",
    "/queues/{name}/resume",
    "/status",
    "/health",
    "/pause",
    "/resume",
    "/reload",
    "/shutdown",
    "/next",
    "/simulation-basis",
    "/version",
    "/v1/tasks",
    "/v1/instances",
    "/v1/status",
];

/// All routes, behind the check of who calls.
///
/// Requests must carry a [`crate::model::request::Caller`] in their extensions.
pub(super) fn router(app: App) -> Router {
    Router::new()
        .merge(table())
        .nest("/v1", table())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(App::clone(&app), auth::admit))
        .with_state(app)
}

fn table() -> Router<App> {
    Router::new()
        .route("/tasks", get(tasks::list).post(definitions::define))
        .route("/tasks/{id}", get(tasks::show).delete(definitions::remove))
        .route("/tasks/{id}/instances", post(tasks::submit))
        .route("/tasks/{id}/backfill", post(tasks::backfill))
        .route("/tasks/{id}/pause", post(tasks::pause))
        .route("/tasks/{id}/resume", post(tasks::resume))
        .route("/tasks/{id}/priority", post(tasks::priority))
        .route("/tasks/{id}/history", get(revisions::history))
        .route("/tasks/{id}/rollback", post(revisions::rollback))
        .route("/tasks/{id}/unpin", post(revisions::unpin))
        .route("/tasks/{id}/explain", get(explain::task))
        .route("/plan", post(apply::plan))
        .route("/apply", post(apply::apply))
        .route("/instances", get(instances::list))
        .route("/instances/{id}", get(instances::show))
        .route("/instances/{id}/cancel", post(instances::cancel))
        .route("/instances/{id}/retry", post(retry::retry))
        .route("/instances/{id}/skip", post(instances::skip))
        .route("/instances/{id}/pause", post(instances::pause))
        .route("/instances/{id}/resume", post(instances::resume))
        .route("/instances/{id}/priority", post(instances::priority))
        .route("/instances/{id}/logs", get(instances::logs))
        .route("/instances/{id}/explain", get(explain::instance))
        .route("/graph", get(explain::graph))
        .route("/events", get(events::list))
        .route("/events/{name}", post(events::emit))
        .route("/fires", get(events::fires))
        .route("/next", get(events::next))
        .route("/simulation-basis", get(simulation::basis))
        .route("/executors", get(daemon::executors))
        .route("/queues", get(daemon::queues))
        .route("/queues/{name}/pause", post(daemon::pause_queue))
        .route("/queues/{name}/resume", post(daemon::resume_queue))
        .route("/status", get(daemon::status))
        .route("/health", get(daemon::health))
        .route("/version", get(daemon::version))
        .route("/pause", post(daemon::pause_all))
        .route("/resume", post(daemon::resume_all))
        .route("/reload", post(daemon::reload))
        .route("/shutdown", post(daemon::shutdown))
}

async fn unknown(request: Request) -> Problem {
    let path = request.uri().path();
    let near = PATHS
        .into_iter()
        .max_by(|a, b| strsim::jaro(path, a).total_cmp(&strsim::jaro(path, b)))
        .unwrap_or("/status");
    Problem::not_found(format!("there is no route {path:?}; the nearest is {near}"))
}

async fn wrong_method(request: Request) -> Problem {
    Problem::with_status(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{} is not for {}", request.method(), request.uri().path()),
    )
}

#[cfg(test)]
mod tests;
