//! Revisions of a definition: what there was, back to an earlier one, and forth again.

use axum::Json;
use axum::extract::{Extension, State};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::extract::{Body, Name, Params, task_id};
use crate::access::problem::Problem;
use crate::access::query;
use crate::access::secrets::{self, Names};
use crate::access::state::App;
use crate::model::id::TaskId;
use crate::model::plan::{RevisionView, differences};
use crate::model::record::Revision;
use crate::model::request::{Caller, RejectionCode, Reply, Request};

use super::instances::EmptyBody;

/// Revisions that a refusal names.
const NAMED_MAX: usize = 10;

/// The query of `GET /tasks/{id}/history`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HistoryQuery {
    /// The revision whose differences to each are shown; without it: of each the one before.
    against: Option<u64>,
    /// The revision whose whole definition is shown.
    revision: Option<u64>,
}

/// `GET /tasks/{id}/history`: all revisions, oldest first, with what changed, and on demand
/// one's whole definition; secrets masked. A task whose definition was removed has them too.
pub(super) async fn history(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Params(HistoryQuery { against, revision }): Params<HistoryQuery>,
) -> Result<Json<Vec<RevisionView>>, Problem> {
    let task = task_id(&id)?;
    // The core first: what it calls in force is then certainly stored.
    let (in_force, missing) = match app.ask(Request::Task(task.clone()), caller).await {
        Ok(Reply::Task(view)) => (Some((view.revision, view.pinned)), None),
        Ok(_) => return Err(Problem::misanswered("a task")),
        Err(problem) if problem.rejection.code == RejectionCode::NotFound => (None, Some(problem)),
        Err(problem) => return Err(problem),
    };
    let of = task.clone();
    let found = query::read(&app, move |history| {
        let revisions = history.revisions(&of)?;
        let is_none = |wanted: &u64| revisions.iter().all(|r| r.revision != *wanted);
        if let Some(wanted) = [against, revision].into_iter().flatten().find(is_none) {
            let numbers: Vec<u64> = revisions.iter().map(|r| r.revision).collect();
            return Ok(Err((wanted, numbers)));
        }
        Ok(Ok(views(&revisions, in_force, against, revision)))
    })
    .await?;
    match (found, missing) {
        (Ok(views), Some(missing)) if views.is_empty() => Err(missing),
        (Ok(views), _) => Ok(Json(views)),
        (Err((_, numbers)), Some(missing)) if numbers.is_empty() => Err(missing),
        (Err((wanted, numbers)), _) => Err(no_revision(&task, wanted, &numbers)),
    }
}

fn views(
    revisions: &[Revision],
    in_force: Option<(u64, bool)>,
    against: Option<u64>,
    whole: Option<u64>,
) -> Vec<RevisionView> {
    let names: Names = revisions.iter().flat_map(|r| secrets::names_in(&r.spec)).collect();
    let form = |revision: &Revision| serde_json::to_value(&*revision.spec).unwrap_or_default();
    let base = revisions.iter().find(|r| Some(r.revision) == against).map(form);
    let mut before: Option<Value> = base.clone();
    let mut views = Vec::with_capacity(revisions.len());
    for revision in revisions {
        let now = form(revision);
        let changes = before.as_ref().map(|before| differences(before, &now)).unwrap_or_default();
        let active = in_force.is_some_and(|(active, _)| active == revision.revision);
        views.push(RevisionView {
            revision: revision.revision,
            hash: revision.hash.clone(),
            loaded_at: revision.loaded_at,
            file: revision.file.clone(),
            uid: revision.uid,
            active,
            pinned: active && in_force.is_some_and(|(_, pinned)| pinned),
            changes: secrets::masked_changes(changes, &names),
            spec: (whole == Some(revision.revision))
                .then(|| secrets::masked_with(&revision.spec, &names)),
        });
        if base.is_none() {
            before = Some(now);
        }
    }
    views
}

fn no_revision(task: &TaskId, wanted: u64, known: &[u64]) -> Problem {
    let newest: Vec<String> = known.iter().rev().take(NAMED_MAX).map(u64::to_string).collect();
    let there = match known {
        [] => "it has none".to_owned(),
        [only] => format!("there is only {only}"),
        [.., _] if known.len() <= NAMED_MAX => format!("there are {}", newest.join(", ")),
        [first, ..] => format!("there are {} and older ones down to {first}", newest.join(", ")),
    };
    Problem::not_found(format!("{task} has no revision {wanted}; {there}"))
}

/// The body of a rollback.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RollbackBody {
    revision: u64,
}

/// `POST /tasks/{id}/rollback`: puts an earlier revision in force and pins it.
pub(super) async fn rollback(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(RollbackBody { revision: wanted }): Body<RollbackBody>,
) -> Result<Json<Value>, Problem> {
    let task = task_id(&id)?;
    let of = task.clone();
    let revisions = query::read(&app, move |history| history.revisions(&of)).await?;
    if revisions.is_empty() {
        // The core knows the word for a task that never was.
        app.ask(Request::Task(task.clone()), caller).await?;
    }
    let numbers: Vec<u64> = revisions.iter().map(|r| r.revision).collect();
    let Some(revision) = revisions.into_iter().find(|r| r.revision == wanted) else {
        return Err(no_revision(&task, wanted, &numbers));
    };
    let order = Request::Rollback { task: task.clone(), revision: Box::new(revision) };
    match app.order(order, caller).await {
        Ok(()) => Ok(Json(json!({ "taskId": task, "revision": wanted }))),
        Err(problem) if problem.rejection.code == RejectionCode::NotFound => Err(Problem::new(
            RejectionCode::Conflict,
            format!(
                "{task} cannot be rolled back: its file is gone, so that no revision of it is in \
                 force; bring it back with schedctl apply, schedctl history {task} --revision \
                 {wanted} shows its definition"
            ),
        )),
        Err(problem) => Err(problem),
    }
}

/// `POST /tasks/{id}/unpin`: what the file says counts again. Harmless where nothing is pinned,
/// which the answer tells.
pub(super) async fn unpin(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    Body(EmptyBody {}): Body<EmptyBody>,
) -> Result<Json<Value>, Problem> {
    let task = task_id(&id)?;
    let Reply::Task(view) = app.ask(Request::Task(task.clone()), caller).await? else {
        return Err(Problem::misanswered("a task"));
    };
    app.order(Request::Unpin { task: task.clone() }, caller).await?;
    Ok(Json(json!({ "taskId": task, "wasPinned": view.pinned })))
}
