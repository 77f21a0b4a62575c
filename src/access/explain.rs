//! Why something is as it is (`explain`): what the core says, what the store and the logs add, and
//! all of it in words (requirement C6).

mod roots;
mod words;

use crate::limits;
use crate::model::explain::{Blocker, InstanceExplanation, RecentInstance, TaskExplanation};
use crate::model::history::{History, HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::request::{Caller, Reply, Request};
use crate::model::time::Timestamp;
use crate::model::view::Upstream;

use super::logs;
use super::problem::Problem;
use super::query;
use super::state::App;

/// Last lines of a log that are shown.
const LOG_LINES: u64 = 5;
/// Failed upstreams whose logs are shown.
const LOGS_MAX: usize = 5;
/// Newest instances of a task that are shown.
const RECENT: usize = 5;

/// Why an instance is where it is.
pub(super) async fn instance(
    app: &App,
    caller: Caller,
    text: &str,
) -> Result<InstanceExplanation, Problem> {
    let found = query::resolve(app, text).await?;
    let mut told = match app.ask(Request::Explain(found.instance_id.clone()), caller).await {
        Ok(Reply::Explanation(Some(told))) => *told,
        // The core no longer holds it: by now its row is final.
        Ok(_) => of_row(app, found).await?,
        Err(problem) => {
            tracing::debug!(detail = problem.rejection.detail, "explained without the core");
            of_row(app, found).await?
        }
    };
    let asked = told.clone();
    told.blocked_by = query::read(app, move |history| roots::of(history, &asked)).await?;
    live_reasons(app, caller, &mut told).await;
    let mut logs_left = LOGS_MAX;
    for failed in failures(&mut told.blocked_by) {
        if let Some(id) = failed.instance_id.clone().filter(|_| logs_left > 0) {
            logs_left -= 1;
            failed.log = tail(app, &failed.task_id, &id, None).await;
        }
    }
    if matches!(told.state, InstanceState::Failed | InstanceState::Timeout) {
        told.log = tail(app, &told.task_id, &told.instance_id, Some(told.attempt)).await;
    }
    told.summary = words::of_instance(&told, (app.now)());
    Ok(told)
}

/// What the row says, with how the upstreams stand in the store.
async fn of_row(app: &App, found: Instance) -> Result<InstanceExplanation, Problem> {
    let row = query::read(app, move |history| {
        let row = history.instance(&found.instance_id)?.unwrap_or(found);
        let mut told = InstanceExplanation::of(&row);
        let revisions = history.revisions(&row.task_id)?;
        let revision = revisions.iter().find(|revision| revision.revision == row.revision);
        for edge in &mut told.edges {
            let mut edges = revision.iter().flat_map(|revision| &revision.spec.depends_on);
            let declared = edges.find(|d| d.task_id == edge.task_id);
            edge.when = declared.and_then(|d| Some(d.when.as_ref()?.as_str().to_owned()));
            let Some(id) = &edge.instance_id else { continue };
            let Some(upstream) = history.instance(id)? else { continue };
            edge.stands(Upstream::of(&upstream));
            edge.cycle = Some(upstream.cycle.label().to_owned());
            edge.reason = upstream.reason;
            edge.since = InstanceExplanation::of(&upstream).since;
        }
        Ok(told)
    });
    row.await
}

/// The upstreams that failed for good, the nearest first.
fn failures(blockers: &mut [Blocker]) -> Vec<&mut Blocker> {
    let mut found = Vec::new();
    let mut near: Vec<&mut Blocker> = blockers.iter_mut().collect();
    while !near.is_empty() {
        let mut next = Vec::new();
        for blocker in near {
            let ended =
                matches!(blocker.state, Some(InstanceState::Failed | InstanceState::Timeout));
            if ended && !blocker.repeated {
                found.push(blocker);
            } else {
                next.extend(blocker.blocked_by.iter_mut());
            }
        }
        near = next;
    }
    found
}

/// Why READY upstreams do not start, which only the core knows.
async fn live_reasons(app: &App, caller: Caller, told: &mut InstanceExplanation) {
    let mut ready = Vec::new();
    let mut near: Vec<&mut Blocker> = told.blocked_by.iter_mut().collect();
    while let Some(blocker) = near.pop() {
        if blocker.state == Some(InstanceState::Ready) {
            ready.push(blocker);
        } else {
            near.extend(blocker.blocked_by.iter_mut());
        }
    }
    let ids: Vec<InstanceId> = ready.iter().filter_map(|b| b.instance_id.clone()).collect();
    if ids.is_empty() {
        return;
    }
    let Ok(Reply::Live(live)) = app.ask(Request::Live(ids), caller).await else { return };
    let reason_of = |id: Option<&InstanceId>| {
        let own = live.iter().find(|l| Some(&l.instance_id) == id);
        own.filter(|l| l.state == InstanceState::Ready).and_then(|own| own.reason)
    };
    for blocker in ready {
        blocker.reason = reason_of(blocker.instance_id.as_ref()).or(blocker.reason);
    }
    for edge in &mut told.edges {
        edge.reason = reason_of(edge.instance_id.as_ref()).or(edge.reason);
    }
}

async fn tail(app: &App, task: &TaskId, id: &InstanceId, attempt: Option<u32>) -> Vec<String> {
    let attempt = match attempt {
        Some(attempt) => attempt,
        None => {
            let id = id.clone();
            let row = query::read(app, move |history| history.instance(&id)).await;
            row.ok().flatten().map_or(0, |row| row.attempt)
        }
    };
    logs::tail(&app.log_dir, task, id, attempt, LOG_LINES).await
}

/// Why a task has no instance, or did not run at a time.
pub(super) async fn task(
    app: &App,
    caller: Caller,
    task: TaskId,
    at: Option<Timestamp>,
) -> Result<TaskExplanation, Problem> {
    let request = Request::ExplainTask { task, at };
    let Reply::TaskExplanation(told) = app.ask(request, caller).await? else {
        return Err(Problem::misanswered("an explanation"));
    };
    let mut told = query::read(app, move |history| remembered(history, *told)).await?;
    told.summary = words::of_task(&told, (app.now)());
    Ok(told)
}

/// Adds what the store knows of a task.
fn remembered(
    history: &dyn History,
    mut told: TaskExplanation,
) -> Result<TaskExplanation, HistoryError> {
    let newest = |limit| InstanceFilter {
        task: Some(told.task_id.clone()),
        limit,
        ..InstanceFilter::default()
    };
    let recent = history.instances(&newest(RECENT))?;
    told.recent = recent.iter().map(RecentInstance::of).collect();
    let Some(asked) = &mut told.at else { return Ok(told) };
    let ledger_of = told.fires_with.as_ref().unwrap_or(&told.task_id);
    asked.fire = history.fire_at(ledger_of, &asked.triggers, asked.at, limits::LEDGER_ROWS_MAX)?;
    let made = asked.fire.as_ref().and_then(|fire| fire.instance_id.as_ref());
    let made = made.map(|id| history.instance(id)).transpose()?.flatten();
    let by_time = || -> Result<Option<Instance>, HistoryError> {
        let filter = InstanceFilter {
            task: Some(told.task_id.clone()),
            limit: limits::PAGE_MAX,
            ..InstanceFilter::default()
        };
        Ok(history.instances(&filter)?.into_iter().find(|i| i.scheduled_time == asked.at))
    };
    let instance = match made {
        Some(made) => Some(made),
        None => by_time()?,
    };
    asked.instance = instance.as_ref().map(RecentInstance::of);
    Ok(told)
}
