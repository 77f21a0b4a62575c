//! What a request carries, checked: the path's name, the query, the JSON body.
//!
//! Unknown keys are refused everywhere: a misspelt filter or option must not be taken for none.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::limits;
use crate::model::id::TaskId;

use super::problem::{Problem, body_fault};

/// Time in which a request's body must be there.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The one name in the path.
pub(super) struct Name(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(error) => Err(Problem::not_found(error.body_text())),
        }
    }
}

/// The query string.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(error) => Err(Problem::invalid(format!("in the query: {}", error.body_text()))),
        }
    }
}

/// The JSON body; an empty one stands for `{}`.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let bytes = collect(request).await?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text).map(Self).map_err(|error| {
            // A value of the wrong type may be found before the text's syntax is; syntax goes first.
            let syntax = serde_json::from_slice::<serde::de::IgnoredAny>(text).err();
            body_problem(&syntax.unwrap_or(error))
        })
    }
}

/// The body as a spec file, byte by byte.
pub(super) struct SpecBody(pub(super) Vec<u8>);

impl<S: Send + Sync> FromRequest<S> for SpecBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE).map(|v| v.to_str().unwrap_or("?"));
        if let Some(kind) = kind.filter(|kind| !may_hold_a_spec(kind)) {
            return Err(Problem::with_status(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!(
                    "the body's type is {kind:?}; expected a spec as application/yaml, \
                     application/json or text/plain"
                ),
            ));
        }
        collect(request).await.map(|bytes| Self(bytes.to_vec()))
    }
}

/// Types by which a spec is sent; the last two are what curl and others say if they are told none.
fn may_hold_a_spec(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    kind.starts_with("text/")
        || matches!(
            kind.as_str(),
            "application/json"
                | "application/yaml"
                | "application/x-yaml"
                | "application/x-www-form-urlencoded"
                | "application/octet-stream"
        )
}

/// Bytes that the body of a request to this path may have.
fn bytes_max(path: &str) -> usize {
    match path.strip_prefix("/v1").unwrap_or(path) {
        "/tasks" => limits::SPEC_FILE_BYTES_MAX,
        "/plan" | "/apply" => limits::PLAN_BYTES_MAX,
        _ => limits::BODY_BYTES_MAX,
    }
}

/// Whether the head already says that the body is too long.
pub(super) fn refuse_long_body(request: &Request) -> Result<(), Problem> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    let max = bytes_max(request.uri().path());
    match length {
        Some(bytes) if usize::try_from(bytes).map_or(true, |b| b > max) => Err(too_long(max)),
        Some(_) | None => Ok(()),
    }
}

fn too_long(max: usize) -> Problem {
    Problem::with_status(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request's body is longer than {max} bytes"),
    )
}

async fn collect(request: Request) -> Result<Bytes, Problem> {
    use http_body_util::{BodyExt, LengthLimitError, Limited};
    let max = bytes_max(request.uri().path());
    let body = Limited::new(request.into_body(), max);
    match tokio::time::timeout(BODY_WITHIN, body.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long(max)),
        Ok(Err(error)) => Err(Problem::with_status(
            StatusCode::BAD_REQUEST,
            format!("the request's body broke off: {error}"),
        )),
        Err(_elapsed) => Err(Problem::with_status(
            StatusCode::REQUEST_TIMEOUT,
            format!("the request's body was not there within {} s", BODY_WITHIN.as_secs()),
        )),
    }
}

/// Malformed JSON is 400, well-formed JSON that is not what is expected 422.
fn body_problem(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
    let mut problem = if error.is_data() {
        Problem::invalid(format!("the body, line {line}, column {column}: {message}"))
    } else {
        Problem::with_status(
            StatusCode::BAD_REQUEST,
            format!("the body is not JSON: line {line}, column {column}: {message}"),
        )
    };
    problem.rejection.errors.push(body_fault(line, column, message));
    problem
}

/// A task id from the path or the query; what is none names no task.
pub(super) fn task_id(text: &str) -> Result<TaskId, Problem> {
    TaskId::parse(text).map_err(|error| {
        Problem::not_found(format!("there is no task {text:?}: as a task id it {error}"))
    })
}

/// A switch in a query: `follow`, `follow=1`, `follow=true`.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_str() {
        "" | "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        other => Err(serde::de::Error::custom(format!("{other:?} is neither true nor false"))),
    }
}
