//! The append-only log, events from outside, the ledger of the past and the coming fires.

use axum::Json;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::access::events::{self, Since};
use crate::access::extract::{Body, Name, Params, flag, task_id};
use crate::access::problem::Problem;
use crate::access::query;
use crate::access::since;
use crate::access::state::App;
use crate::limits;
use crate::model::id::LogSeq;
use crate::model::record::Fire;
use crate::model::request::{Caller, EmitReply, Reply, Request};
use crate::model::spec::JsonMap;
use crate::model::time::Timestamp;
use crate::model::view::NextFire;

use super::instances::next_link;

/// Newest log entries of a question that names neither a beginning nor a limit.
const NEWEST: usize = 100;
/// Coming fires per task of a question that names no count.
const NEXT: u32 = 5;
/// Bytes of an event's name.
const EVENT_NAME_BYTES_MAX: usize = 200;

/// What of the log is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListQuery {
    #[serde(deserialize_with = "flag")]
    follow: bool,
    /// A position (strictly after it), RFC 3339 or a duration ago.
    since: Option<String>,
    limit: Option<usize>,
}

/// `GET /events`: an array, oldest first, the next page in the `Link` header; JSON lines without
/// end when followed (without `since`: from now on).
pub(super) async fn list(
    State(app): State<App>,
    RawQuery(raw): RawQuery,
    Params(wanted): Params<ListQuery>,
) -> Result<Response, Problem> {
    let now = (app.now)();
    let since = wanted.since.map(|text| since::seq_or_time(&text, now)).transpose()?;
    if wanted.follow {
        let body = events::follow(&app, since).await?;
        let kind = HeaderValue::from_static("application/x-ndjson");
        return Ok(([(header::CONTENT_TYPE, kind)], body).into_response());
    }
    let default = if since.is_some() { limits::PAGE_MAX } else { NEWEST };
    let limit = wanted.limit.unwrap_or(default).clamp(1, limits::PAGE_MAX);
    let after = match since {
        Some(since) => events::start(&app, since).await?,
        None => {
            let tip = query::read(&app, |history| history.tip()).await?;
            let back = u64::try_from(limit).unwrap_or(u64::MAX);
            events::start(&app, Since::Seq(LogSeq(tip.0.saturating_sub(back)))).await?
        }
    };
    let mut records = query::read(&app, move |history| history.records(after, limit + 1)).await?;
    let more = records.len() > limit;
    records.truncate(limit);
    let last = records.last().map(|record| record.seq.0);
    let mut response = Json(records).into_response();
    if let Some(last) = last.filter(|_| more) {
        let link = next_link("/events", raw.as_deref(), "since", last);
        response.headers_mut().extend(link.map(|value| (header::LINK, value)));
    }
    Ok(response)
}

/// The body of an event.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EmitBody {
    params: JsonMap,
}

/// `POST /events/{name}`: 200 with what it made and who refused its parameters, both perhaps empty.
pub(super) async fn emit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(name): Name,
    Body(EmitBody { params }): Body<EmitBody>,
) -> Result<Json<EmitReply>, Problem> {
    if name.is_empty() || name.len() > EVENT_NAME_BYTES_MAX || name.contains(char::is_control) {
        return Err(Problem::invalid(format!(
            "{name:?} is no event's name; expected 1 to {EVENT_NAME_BYTES_MAX} bytes of text"
        )));
    }
    let Reply::Emitted(reply) = app.ask(Request::Emit { name, params }, caller).await? else {
        return Err(Problem::misanswered("an event"));
    };
    Ok(Json(reply))
}

/// Whose ledger is wanted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FiresQuery {
    task_id: String,
    limit: Option<usize>,
}

/// `GET /fires`: a task's ledger, newest last.
pub(super) async fn fires(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(wanted): Params<FiresQuery>,
) -> Result<Json<Vec<Fire>>, Problem> {
    let task = task_id(&wanted.task_id)?;
    let limit = wanted.limit.unwrap_or(limits::PAGE_MAX).clamp(1, limits::PAGE_MAX);
    let asked = task.clone();
    let fires = query::read(&app, move |history| history.fires(&asked, limit)).await?;
    if fires.is_empty() {
        // Removed tasks keep their ledger; one without a row must at least be known.
        app.ask(Request::Task(task), caller).await?;
    }
    Ok(Json(fires))
}

/// Which coming fires are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct NextQuery {
    task_id: Option<String>,
    from: Option<Timestamp>,
    count: Option<u32>,
}

/// `GET /next`.
pub(super) async fn next(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(wanted): Params<NextQuery>,
) -> Result<Json<Vec<NextFire>>, Problem> {
    let task = wanted.task_id.as_deref().map(task_id).transpose()?;
    let most = u32::try_from(limits::PAGE_MAX).unwrap_or(u32::MAX);
    let count = wanted.count.unwrap_or(NEXT).clamp(1, most);
    let request = Request::Next { task, from: wanted.from, count };
    let Reply::Next(fires) = app.ask(request, caller).await? else {
        return Err(Problem::misanswered("the coming fires"));
    };
    Ok(Json(fires))
}
