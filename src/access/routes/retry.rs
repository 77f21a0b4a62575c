//! Trying failed instances again: one, and if asked for the failed ones below it.

use axum::Json;
use axum::extract::{Extension, State};
use serde::Deserialize;

use crate::access::extract::{Body, Name};
use crate::access::problem::Problem;
use crate::access::query;
use crate::access::state::App;
use crate::model::instance::Instance;
use crate::model::request::{Caller, Reply, Request, Retried};

/// The body of a retry.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RetryBody {
    with_downstream: bool,
    same_revision: bool,
}

/// `POST /instances/{id}/retry`: 200 with what is tried again, and what below it cannot be.
pub(super) async fn retry(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(body): Body<RetryBody>,
) -> Result<Json<Retried>, Problem> {
    let below =
        if body.with_downstream { Some(failed_below(&app, caller, &id).await?) } else { None };
    let (instance_id, reply) = query::ask_about(&app, caller, &id, |instance, stored| {
        Request::Retry { instance, same_revision: body.same_revision, stored, below: below.clone() }
    })
    .await?;
    if let Reply::Retried(retried) = reply {
        return Ok(Json(retried));
    }
    // The repetition of an order that an earlier version carried out.
    if reply == Reply::Done {
        return Ok(Json(Retried { instance_id, below: Vec::new(), rejected: Vec::new() }));
    }
    Err(Problem::misanswered("a retry"))
}

/// The rows of the finally failed instances below one: the core does not keep them. One that is
/// not to be read any more is missed by the core, which says so.
async fn failed_below(app: &App, caller: Caller, id: &str) -> Result<Vec<Instance>, Problem> {
    let root = query::resolve(app, id).await?.instance_id;
    let Reply::Instances(ids) = app.ask(Request::FailedBelow(root), caller).await? else {
        return Err(Problem::misanswered("what lies below an instance"));
    };
    query::read(app, move |history| {
        let rows: Result<Vec<Option<Instance>>, _> =
            ids.iter().map(|id| history.instance(id)).collect();
        Ok(rows?.into_iter().flatten().collect())
    })
    .await
}
