//! Instances: lists, one of them, its log, and orders about it.

use axum::Json;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::extract::{Body, Name, Params, flag};
use crate::access::logs::{self, Wanted};
use crate::access::problem::Problem;
use crate::access::query;
use crate::access::since;
use crate::access::state::App;
use crate::limits;
use crate::model::history::InstanceFilter;
use crate::model::id::TaskId;
use crate::model::instance::InstanceState;
use crate::model::record::Target;
use crate::model::request::{Caller, PriorityText, Request};
use crate::model::time::Timestamp;
use crate::model::view::InstanceView;

/// Instances of a list that names no limit.
const LIMIT: usize = 50;

/// The filters of `GET /instances`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ListQuery {
    /// States, separated by commas.
    state: Option<String>,
    /// A task id, or a glob with `*`.
    task_id: Option<String>,
    cycle: Option<String>,
    queue: Option<String>,
    /// RFC 3339 or a duration ago.
    since: Option<String>,
    limit: Option<usize>,
    /// From a `Link` header.
    cursor: Option<u64>,
}

/// `GET /instances`: newest made first; the next page is in the `Link` header.
///
/// At most [`limits::PAGE_MAX`] a page, whatever `limit` says.
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
    Params(wanted): Params<ListQuery>,
) -> Result<Response, Problem> {
    let (task, pattern) = match wanted.task_id.as_deref() {
        None => (None, None),
        Some(text) if text.contains(['*', '?', '[']) => (None, Some(glob_of(text)?)),
        Some(text) => match TaskId::parse(text) {
            Ok(task) => (Some(task), None),
            Err(error) => return Err(Problem::invalid(format!("taskId {text:?} {error}"))),
        },
    };
    let filter = InstanceFilter {
        states: states(wanted.state.as_deref())?,
        task,
        cycle: wanted.cycle,
        queue: wanted.queue,
        since: wanted.since.map(|text| since::time(&text, (app.now)())).transpose()?,
        before: wanted.cursor,
        limit: wanted.limit.unwrap_or(LIMIT).min(limits::PAGE_MAX),
    };
    if filter.limit == 0 {
        return Err(Problem::invalid("limit 0 asks for nothing; expected 1 or more"));
    }
    let (rows, next) = query::page(&app, filter, pattern).await?;
    let live = query::live(&app, caller, &rows).await;
    let views = query::dress(&app, caller, rows, &live).await?;
    let mut response = Json(views).into_response();
    if let Some(next) = next {
        let link = next_link("/instances", raw.as_deref(), "cursor", next);
        response.headers_mut().extend(link.map(|value| (header::LINK, value)));
    }
    Ok(response)
}

/// The same question with `key` set to where the next page begins.
pub(super) fn next_link(path: &str, raw: Option<&str>, key: &str, at: u64) -> Option<HeaderValue> {
    let kept = raw
        .unwrap_or("")
        .split('&')
        .filter(|pair| !pair.is_empty() && pair.split('=').next().is_some_and(|name| name != key));
    let pairs: Vec<String> = kept.map(str::to_owned).chain([format!("{key}={at}")]).collect();
    HeaderValue::from_str(&format!("<{path}?{}>; rel=\"next\"", pairs.join("&"))).ok()
}

fn glob_of(text: &str) -> Result<glob::Pattern, Problem> {
    glob::Pattern::new(text)
        .map_err(|error| Problem::invalid(format!("taskId {text:?} is no pattern: {error}")))
}

fn states(text: Option<&str>) -> Result<Vec<InstanceState>, Problem> {
    let names = text.unwrap_or("").split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            InstanceState::parse(name).ok_or_else(|| {
                let all = InstanceState::ALL.map(InstanceState::as_str).join(", ");
                Problem::invalid(format!("{name:?} is no state; expected some of {all}"))
            })
        })
        .collect()
}

/// `GET /instances/{id}`.
pub(super) async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
) -> Result<Json<InstanceView>, Problem> {
    query::show(&app, caller, &id).await.map(Json)
}

/// What of the log is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LogsQuery {
    #[serde(deserialize_with = "flag")]
    follow: bool,
    tail: Option<u64>,
    attempt: Option<u32>,
}

/// `GET /instances/{id}/logs`.
pub(super) async fn logs(
    State(app): State<App>,
    Name(id): Name,
    Params(LogsQuery { follow, tail, attempt }): Params<LogsQuery>,
) -> Result<Response, Problem> {
    let body = logs::open(&app, &id, Wanted { follow, tail, attempt }).await?;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

/// The body of a cancel.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CancelBody {
    downstream: bool,
}

/// `POST /instances/{id}/cancel`.
pub(super) async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(CancelBody { downstream }): Body<CancelBody>,
) -> Result<Json<Value>, Problem> {
    let done = query::order_about(&app, caller, &id, |instance, stored| Request::Cancel {
        instance,
        downstream,
        stored,
    });
    Ok(Json(json!({ "instanceId": done.await? })))
}

/// The body of a retry.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RetryBody {
    with_downstream: bool,
    same_revision: bool,
}

/// `POST /instances/{id}/retry`.
pub(super) async fn retry(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<RetryBody>,
) -> Result<Json<Value>, Problem> {
    for (asked, name) in
        [(body.with_downstream, "withDownstream"), (body.same_revision, "sameRevision")]
    {
        if asked {
            return Err(not_supported_yet(name));
        }
    }
    let done = query::order_about(&app, caller, &id, |instance, stored| Request::Retry {
        instance,
        stored,
    });
    Ok(Json(json!({ "instanceId": done.await? })))
}

fn not_supported_yet(name: &str) -> Problem {
    Problem::invalid(format!("{name}: true is not supported yet; leave it out"))
}

/// The body of a pause.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PauseBody {
    reason: Option<String>,
    until: Option<Timestamp>,
    freeze: bool,
}

impl PauseBody {
    /// The order that the body asks for.
    pub(super) fn request(self, target: Target) -> Result<Request, Problem> {
        if self.freeze {
            return Err(not_supported_yet("freeze"));
        }
        Ok(Request::Pause { target, reason: self.reason, until: self.until })
    }
}

/// A body that says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

/// The body of a change of priority.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriorityBody {
    priority: NewPriority,
}

/// A priority, or the word `DEFAULT`, which takes an earlier change back.
#[derive(Debug)]
struct NewPriority(Option<PriorityText>);

impl<'de> Deserialize<'de> for NewPriority {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value == "DEFAULT" {
            return Ok(Self(None));
        }
        let given = PriorityText::deserialize(value).map_err(serde::de::Error::custom)?;
        Ok(Self(Some(given)))
    }
}

impl PriorityBody {
    /// The order that the body asks for.
    pub(super) fn request(&self, target: Target) -> Request {
        match self.priority.0 {
            Some(PriorityText(priority)) => Request::SetPriority { target, priority },
            None => Request::ResetPriority { target },
        }
    }
}

/// `POST /instances/{id}/pause`.
pub(super) async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<PauseBody>,
) -> Result<Json<Value>, Problem> {
    order(&app, caller, &id, |target| body.request(target)).await
}

/// `POST /instances/{id}/resume`.
pub(super) async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(EmptyBody {}): Body<EmptyBody>,
) -> Result<Json<Value>, Problem> {
    order(&app, caller, &id, |target| Ok(Request::Resume { target })).await
}

/// `POST /instances/{id}/priority`.
pub(super) async fn priority(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<PriorityBody>,
) -> Result<Json<Value>, Problem> {
    order(&app, caller, &id, |target| Ok(body.request(target))).await
}

/// An order about an open instance; one that is final is refused here, by its state.
async fn order(
    app: &App,
    caller: Caller,
    text: &str,
    request: impl FnOnce(Target) -> Result<Request, Problem>,
) -> Result<Json<Value>, Problem> {
    let row = query::resolve(app, text).await?;
    let request = request(Target::Instance(row.instance_id.clone()))?;
    if !row.is_open() {
        return Err(Problem::new(
            crate::model::request::RejectionCode::Conflict,
            format!("instance {} is {} for good", row.instance_id, row.state),
        ));
    }
    app.order(request, caller).await?;
    Ok(Json(json!({ "instanceId": row.instance_id })))
}
