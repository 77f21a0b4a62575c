//! Who is let in: for now the daemon's own user and root (requirement G2).
//!
//! The kernel says who is at the other end (SO_PEERCRED); nothing in a request can change it.
//! Roles will be decided here too, and nowhere else.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::model::request::{Caller, RejectionCode, RequestKey};

use super::extract::refuse_long_body;
use super::problem::Problem;
use super::state::App;

/// Bytes of an `Idempotency-Key`.
const KEY_BYTES_MAX: usize = 128;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Lets a request in or answers 403; orders are logged with who gave them.
pub(super) async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let Some(mut caller) = request.extensions().get::<Caller>().copied() else {
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
    match key(request.headers()) {
        Ok(key) => caller.key = key,
        Err(problem) => return problem.into_response(),
    }
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    let status = response.status().as_u16();
    if method.is_safe() {
        tracing::trace!(uid = caller.uid, pid = caller.pid, %method, path, status, "question");
    } else {
        tracing::info!(uid = caller.uid, pid = caller.pid, %method, path, status, "order");
    }
    response
}

/// The caller's own name for this order (contract §6, `Idempotency-Key`).
fn key(headers: &HeaderMap) -> Result<Option<RequestKey>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=KEY_BYTES_MAX).contains(&key.len()) => Ok(Some(RequestKey::of(key))),
        Ok(_) | Err(_) => Err(Problem::invalid(format!(
            "the header Idempotency-Key must be 1 to {KEY_BYTES_MAX} visible ASCII characters"
        ))),
    }
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
