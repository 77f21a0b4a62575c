//! Errors on the wire: RFC 9457 `application/problem+json` (contract §6).
//!
//! `code` is what a program branches on, `detail` what a person reads, `errors` one entry per fault.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::model::event::SpecError;
use crate::model::history::HistoryError;
use crate::model::request::{Rejection, RejectionCode};

/// A refusal with its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .rejection.detail)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) rejection: Rejection,
}

/// The members of RFC 9457 and those of the contract.
#[derive(Serialize)]
struct Wire<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    #[serde(flatten)]
    rejection: &'a Rejection,
}

impl Problem {
    /// A problem whose status follows from its code.
    pub(super) fn new(code: RejectionCode, detail: impl Into<String>) -> Self {
        Self::from(Rejection::new(code, detail))
    }

    /// No such object.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(RejectionCode::NotFound, detail)
    }

    /// The request itself is wrong.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(RejectionCode::Invalid, detail)
    }

    /// The daemon cannot answer.
    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(RejectionCode::Unavailable, detail)
    }

    /// A request that HTTP has a status of its own for.
    pub(super) fn with_status(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, rejection: Rejection::new(RejectionCode::Invalid, detail) }
    }

    /// The core answered another question: a fault of ours, told as such.
    pub(super) fn misanswered(question: &str) -> Self {
        Self::unavailable(format!(
            "the daemon gave {question} an answer of another kind; this is a fault of schedd"
        ))
    }

    /// The problem as JSON, for those who cannot use [`IntoResponse`].
    pub(super) fn to_json(&self) -> String {
        let wire = Wire {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            rejection: &self.rejection,
        };
        serde_json::to_string(&wire).unwrap_or_else(|_never| "{}".to_owned())
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let status = match rejection.code {
            RejectionCode::NotFound => StatusCode::NOT_FOUND,
            RejectionCode::Conflict => StatusCode::CONFLICT,
            RejectionCode::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            RejectionCode::NotPermitted => StatusCode::FORBIDDEN,
            RejectionCode::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
            RejectionCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self { status, rejection }
    }
}

impl From<HistoryError> for Problem {
    fn from(error: HistoryError) -> Self {
        Self::unavailable(error.to_string())
    }
}

/// One fault in a request's body.
pub(super) fn body_fault(line: usize, column: usize, message: String) -> SpecError {
    SpecError {
        file: String::new(),
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
        path: String::new(),
        message,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.to_json();
        let kind = HeaderValue::from_static("application/problem+json");
        (self.status, [(header::CONTENT_TYPE, kind)], body).into_response()
    }
}
