//! Who is let in: for now the daemon's own user and root (requirement G2).
//!
//! The kernel says who is at the other end (SO_PEERCRED); nothing in a request can change it.
//! Roles will be decided here too, and nowhere else.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::model::request::{Caller, RejectionCode};

use super::extract::refuse_long_body;
use super::problem::Problem;
use super::state::App;

/// Lets a request in or answers 403; orders are logged with who gave them.
pub(super) async fn admit(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().copied() else {
        return Problem::new(RejectionCode::NotPermitted, "the caller's user is not known")
            .into_response();
    };
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    if let Err(problem) = permit(app.own_uid, caller) {
        tracing::warn!(uid = caller.uid, pid = caller.pid, %method, path, "caller refused");
        return problem.into_response();
    }
    if let Err(problem) = refuse_long_body(&request) {
        return problem.into_response();
    }
    let response = next.run(request).await;
    let status = response.status().as_u16();
    if method.is_safe() {
        tracing::trace!(uid = caller.uid, pid = caller.pid, %method, path, status, "question");
    } else {
        tracing::info!(uid = caller.uid, pid = caller.pid, %method, path, status, "order");
    }
    response
}

fn permit(own_uid: u32, caller: Caller) -> Result<(), Problem> {
    if caller.uid == 0 || caller.uid == own_uid {
        return Ok(());
    }
    Err(Problem::new(
        RejectionCode::NotPermitted,
        format!(
            "user {} may not speak with this daemon; only user {own_uid}, which runs it, and root \
             may",
            caller.uid
        ),
    ))
}
