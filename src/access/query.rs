//! Questions answered from the store, with what only the core knows added.
//!
//! The store is read on blocking threads. An instance is shown as the store has it; the core adds
//! the derived reason and the inherited priority, and only while both agree on the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::limits;
use crate::model::history::{History, HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Instance;
use crate::model::request::{Caller, RejectionCode, Reply, Request};
use crate::model::view::{InstanceView, Live, TaskView, Upstream};

use super::extract::task_id;
use super::problem::Problem;
use super::secrets::{self, Names};
use super::state::App;

/// Ids that an ambiguous prefix names in its refusal.
const NAMED_MAX: usize = 5;

/// What the core knows of instances, by id.
pub(super) type LiveById = BTreeMap<InstanceId, Live>;

/// Reads the store on a blocking thread.
pub(super) async fn read<T, F>(app: &App, question: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce(&dyn History) -> Result<T, HistoryError> + Send + 'static,
{
    let history = Arc::clone(&app.history);
    match tokio::task::spawn_blocking(move || question(&*history)).await {
        Ok(answer) => answer.map_err(Problem::from),
        Err(error) => Err(Problem::unavailable(format!("reading the store broke off: {error}"))),
    }
}

/// Finds the instance that a text names: an id, a unique prefix of one, `task@latest` or
/// `task@<cycle>`. The only place that knows these forms (contract §5).
pub(super) async fn resolve(app: &App, text: &str) -> Result<Instance, Problem> {
    if let Some((task, which)) = text.rsplit_once('@') {
        return resolve_by_task(app, task_id(task)?, which.to_owned()).await;
    }
    let prefix = text.to_ascii_lowercase();
    if prefix.is_empty() || !prefix.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(no_instance(text));
    }
    let found = read(app, move |history| {
        if let Some(instance) = history.instance(&InstanceId::from_text(&prefix))? {
            return Ok(Ok(instance));
        }
        let ids = history.ids_with_prefix(&prefix, NAMED_MAX + 1)?;
        match ids.as_slice() {
            [id] => Ok(history.instance(id)?.ok_or_else(Vec::new)),
            _ => Ok(Err(ids)),
        }
    })
    .await?;
    found.map_err(|ids| if ids.is_empty() { no_instance(text) } else { ambiguous(text, &ids) })
}

async fn resolve_by_task(app: &App, task: TaskId, which: String) -> Result<Instance, Problem> {
    let cycle = (which != "latest").then_some(which);
    let wanted = cycle.as_ref().map_or_else(String::new, |c| format!(" of cycle {c}"));
    let missing = format!("task {task} has no instance{wanted}");
    let filter = InstanceFilter { task: Some(task), cycle, limit: 1, ..InstanceFilter::default() };
    let newest = read(app, move |history| history.instances(&filter)).await?;
    newest.into_iter().next().ok_or_else(|| Problem::not_found(missing))
}

fn no_instance(text: &str) -> Problem {
    if TaskId::parse(text).is_ok() {
        return Problem::not_found(format!(
            "{text} names a task, not one instance of it; expected {text}@latest, {text}@CYCLE or an \
             instance's id"
        ));
    }
    Problem::not_found(format!(
        "there is no instance {text:?}; expected an instance's id or the beginning of one, \
         TASK@latest or TASK@CYCLE"
    ))
}

fn ambiguous(text: &str, ids: &[InstanceId]) -> Problem {
    let more = if ids.len() > NAMED_MAX { " and more" } else { "" };
    let named: Vec<&str> = ids.iter().take(NAMED_MAX).map(InstanceId::as_str).collect();
    Problem::new(
        RejectionCode::Conflict,
        format!("{text:?} is the beginning of several instances: {}{more}", named.join(", ")),
    )
}

/// One instance as the contract shows it.
///
/// The core is asked before the row is read: an instance it no longer holds is then certainly
/// final in the row.
pub(super) async fn show(app: &App, caller: Caller, text: &str) -> Result<InstanceView, Problem> {
    let found = resolve(app, text).await?;
    let live = live(app, caller, std::slice::from_ref(&found)).await;
    let id = found.instance_id.clone();
    let row = read(app, move |history| history.instance(&id)).await?.unwrap_or(found);
    let mut views = dress(app, caller, vec![row], &live).await?;
    views.pop().ok_or_else(|| no_instance(text))
}

/// What the core knows of these instances and of those their edges lead to.
///
/// A core that cannot answer (it is stopping) leaves the answer to the store alone.
pub(super) async fn live(app: &App, caller: Caller, rows: &[Instance]) -> LiveById {
    let edges = rows.iter().flat_map(|row| row.edges.iter()).filter_map(|e| e.instance_id.clone());
    let ids: BTreeSet<InstanceId> =
        rows.iter().map(|row| row.instance_id.clone()).chain(edges).collect();
    if ids.is_empty() {
        return LiveById::new();
    }
    match app.ask(Request::Live(ids.into_iter().collect()), caller).await {
        Ok(Reply::Live(found)) => {
            found.into_iter().map(|live| (live.instance_id.clone(), live)).collect()
        }
        Ok(_other) => LiveById::new(),
        Err(problem) => {
            tracing::debug!(detail = problem.rejection.detail, "instances shown without the core");
            LiveById::new()
        }
    }
}

/// A task as it may be shown: what any of its revisions declares secret is masked in its
/// definition.
pub(super) async fn masked(app: &App, mut view: TaskView) -> Result<TaskView, Problem> {
    let Some(spec) = view.spec.take() else { return Ok(view) };
    let task = view.task_id.clone();
    let recorded = read(app, move |history| secrets::names_on_record(history, &task)).await?;
    let names = secrets::names_in(&spec).chain(recorded.into_iter().flatten()).collect();
    view.spec = Some(secrets::masked_with(&spec, &names));
    Ok(view)
}

/// Rows with what the core knows, their upstreams' states, and secrets masked.
pub(super) async fn dress(
    app: &App,
    caller: Caller,
    rows: Vec<Instance>,
    live: &LiveById,
) -> Result<Vec<InstanceView>, Problem> {
    let upstreams: BTreeSet<InstanceId> = rows
        .iter()
        .flat_map(|row| row.edges.iter())
        .filter_map(|edge| edge.instance_id.clone())
        .filter(|id| !live.contains_key(id))
        .collect();
    let tasks: BTreeSet<TaskId> = rows.iter().map(|row| row.task_id.clone()).collect();
    let (ends, mut secrets) = read(app, move |history| {
        let mut ends: BTreeMap<InstanceId, Upstream> = BTreeMap::new();
        for id in upstreams {
            if let Some(row) = history.instance(&id)? {
                ends.insert(id, Upstream::of(&row));
            }
        }
        let mut secrets: BTreeMap<TaskId, Option<Names>> = BTreeMap::new();
        for task in tasks {
            let names = secrets::names_on_record(history, &task)?;
            secrets.insert(task, names);
        }
        Ok((ends, secrets))
    })
    .await?;
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let names = match secrets.get(&row.task_id) {
            Some(Some(names)) => names.clone(),
            Some(None) | None => {
                let names = secrets_in_force(app, caller, &row.task_id).await;
                secrets.insert(row.task_id.clone(), Some(names.clone()));
                names
            }
        };
        let mut view = InstanceView::new(&row, agreeing(&row, live).as_ref(), &|id| {
            // What the core holds has not ended, so there is no data of it.
            let (has_data, live) = (false, live.get(id));
            let now = live.map(|l| Upstream { state: l.state, is_final: l.is_final, has_data });
            now.or_else(|| ends.get(id).copied())
        });
        secrets::mask(&mut view.runtime_params, &names);
        views.push(view);
    }
    Ok(views)
}

/// What the core says of a row; its reason only if it is about the same state.
fn agreeing(row: &Instance, live: &LiveById) -> Option<Live> {
    let mut live = live.get(&row.instance_id)?.clone();
    if live.state != row.state {
        live.reason = None;
    }
    Some(live)
}

async fn secrets_in_force(app: &App, caller: Caller, task: &TaskId) -> Names {
    match app.ask(Request::Task(task.clone()), caller).await {
        Ok(Reply::Task(view)) => {
            view.spec.iter().flat_map(|spec| secrets::names_in(spec)).collect()
        }
        Ok(_) | Err(_) => Names::new(),
    }
}

/// Rows of one page, and the cursor of the next if there are more.
///
/// `pattern` picks tasks by glob: the store knows none, so rows are read page by page and picked
/// here, at most twenty pages for one answer; such an answer can be short and still have a next.
pub(super) async fn page(
    app: &App,
    mut filter: InstanceFilter,
    pattern: Option<glob::Pattern>,
) -> Result<(Vec<Instance>, Option<u64>), Problem> {
    const PAGES_MAX: usize = 20;
    let limit = filter.limit.clamp(1, limits::PAGE_MAX);
    read(app, move |history| {
        let mut rows: Vec<Instance> = Vec::new();
        filter.limit = if pattern.is_some() { limits::PAGE_MAX } else { limit + 1 };
        for _ in 0..PAGES_MAX {
            let found = history.instances(&filter)?;
            let at_end = found.len() < filter.limit;
            filter.before = found.last().map(|row| row.created_seq).or(filter.before);
            rows.extend(
                found
                    .into_iter()
                    .filter(|row| pattern.as_ref().is_none_or(|p| p.matches(row.task_id.as_str()))),
            );
            if rows.len() > limit {
                rows.truncate(limit);
                let next = rows.last().map(|row| row.created_seq);
                return Ok((rows, next));
            }
            if at_end {
                return Ok((rows, None));
            }
        }
        Ok((rows, filter.before))
    })
    .await
}

/// An order about an instance, which needs its row if it is final: the core keeps no such rows.
///
/// The row may become final between reading it and the core's turn; the core then says that it
/// has no such instance, and is asked once more with the row.
pub(super) async fn order_about(
    app: &App,
    caller: Caller,
    text: &str,
    request: impl Fn(InstanceId, Option<Box<Instance>>) -> Request,
) -> Result<InstanceId, Problem> {
    ask_about(app, caller, text, request).await.map(|(id, _)| id)
}

/// The same with its answer.
pub(super) async fn ask_about(
    app: &App,
    caller: Caller,
    text: &str,
    request: impl Fn(InstanceId, Option<Box<Instance>>) -> Request,
) -> Result<(InstanceId, Reply), Problem> {
    let row = resolve(app, text).await?;
    let id = row.instance_id.clone();
    let was_open = row.is_open();
    let stored = (!was_open).then(|| Box::new(row));
    let problem = match app.ask(request(id.clone(), stored), caller).await {
        Ok(reply) => return Ok((id, reply)),
        Err(problem) => problem,
    };
    if !was_open || problem.rejection.code != RejectionCode::NotFound {
        return Err(problem);
    }
    let again = id.clone();
    let row = read(app, move |history| history.instance(&again)).await?;
    match row.filter(|row| !row.is_open()) {
        Some(row) => {
            let reply = app.ask(request(id.clone(), Some(Box::new(row))), caller).await?;
            Ok((id, reply))
        }
        None => Err(problem),
    }
}
