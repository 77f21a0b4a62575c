//! What a simulation starts from: the core's part, and what the store knows of tasks' past.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::access::problem::Problem;
use crate::access::query;
use crate::access::secrets::{self, Names};
use crate::access::state::App;
use crate::limits;
use crate::model::history::{History, HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Instance;
use crate::model::params::ParamType;
use crate::model::record::Row;
use crate::model::request::{Caller, Reply, Request};
use crate::model::simulation::{Basis, TaskHistory};
use crate::model::spec::TaskSpec;

/// `GET /simulation-basis`: everything that the core would be loaded from, as far as decisions
/// depend on it, and how tasks did before. Secrets are masked, and a secret parameter is of any text
/// then, so that the mask is a value like another.
pub(super) async fn basis(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let Reply::SimulationBasis(basis) = app.ask(Request::SimulationBasis, caller).await? else {
        return Err(Problem::misanswered("what a simulation starts from"));
    };
    let body = query::read(&app, move |history| {
        let mut basis = *basis;
        add_past(&mut basis, history)?;
        mask(&mut basis, history)?;
        Ok(serde_json::to_vec(&basis))
    })
    .await?;
    match body {
        Ok(body) => Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response()),
        Err(error) => Err(Problem::unavailable(format!("the basis has no JSON form: {error}"))),
    }
}

/// Adds how the tasks in force did before, and the ended instances that an edge is bound to or may
/// come to be: the core keeps only digests of them.
fn add_past(basis: &mut Basis, history: &dyn History) -> Result<(), HistoryError> {
    let specs = in_force(basis);
    let edges = || specs.iter().flat_map(|spec| &spec.depends_on);
    let upstreams: BTreeSet<TaskId> = edges().map(|edge| edge.task_id.clone()).collect();
    let asked: BTreeSet<TaskId> =
        edges().filter(|edge| edge.when.is_some()).map(|edge| edge.task_id.clone()).collect();
    let each = limits::SIMULATION_SAMPLES_ALL_MAX / specs.len().max(1);
    let limit = each.clamp(1, limits::SIMULATION_SAMPLES_MAX);
    let oldest = basis.at.minus(limits::SIMULATION_ENDED_KEPT);
    let mut ended: BTreeMap<InstanceId, Instance> = BTreeMap::new();
    for spec in &specs {
        let task = &spec.task_id;
        let filter =
            InstanceFilter { task: Some(task.clone()), limit, ..InstanceFilter::default() };
        let past = history.instances(&filter)?;
        if let Some(mut of_task) = TaskHistory::of(task, &past) {
            of_task.output = of_task.output.filter(|_| asked.contains(task));
            basis.history.push(of_task);
        }
        if upstreams.contains(task) {
            let kept = past.into_iter().filter(|i| !i.is_open() && i.created_at >= oldest);
            ended.extend(kept.map(|i| (i.instance_id.clone(), i)));
        }
    }
    let known: BTreeSet<InstanceId> = instances(basis).map(|i| i.instance_id.clone()).collect();
    let bound: BTreeSet<InstanceId> = instances(basis)
        .flat_map(|i| i.edges.iter())
        .filter_map(|edge| edge.instance_id.clone())
        .filter(|id| !ended.contains_key(id))
        .collect();
    for id in bound.difference(&known) {
        ended.extend(history.instance(id)?.map(|i| (id.clone(), i)));
    }
    // What has ended since the core was asked is still open there, and so in the simulation.
    ended.retain(|id, _| !known.contains(id));
    basis.rows.extend(ended.into_values().map(|i| Row::Instance(Arc::new(i))));
    Ok(())
}

/// The definitions in force.
fn in_force(basis: &Basis) -> Vec<Arc<TaskSpec>> {
    let revisions: BTreeMap<(&TaskId, u64), &Arc<TaskSpec>> = basis
        .rows
        .iter()
        .filter_map(|row| {
            if let Row::Revision(r) = row {
                Some(((&r.task_id, r.revision), &r.spec))
            } else {
                None
            }
        })
        .collect();
    let of = |row: &Row| {
        let Row::Task(task) = row else { return None };
        revisions.get(&(&task.task_id, task.revision?)).map(|spec| Arc::clone(spec))
    };
    basis.rows.iter().filter_map(of).collect()
}

fn instances(basis: &Basis) -> impl Iterator<Item = &Instance> {
    basis.rows.iter().filter_map(|row| if let Row::Instance(i) = row { Some(&**i) } else { None })
}

/// Masks what any stored revision of a task declares secret.
fn mask(basis: &mut Basis, history: &dyn History) -> Result<(), HistoryError> {
    let mut secret: BTreeMap<TaskId, Names> = BTreeMap::new();
    for row in &basis.rows {
        let (task, own) = if let Row::Revision(r) = row {
            (&r.task_id, secrets::names_in(&r.spec).collect())
        } else if let Row::Instance(i) = row {
            (&i.task_id, Names::new())
        } else {
            continue;
        };
        if !secret.contains_key(task) {
            let recorded = secrets::names_on_record(history, task)?;
            secret.insert(task.clone(), recorded.unwrap_or_default());
        }
        secret.entry(task.clone()).or_default().extend(own);
    }
    secret.retain(|_, names| !names.is_empty());
    for row in &mut basis.rows {
        if let Row::Revision(revision) = row {
            if let Some(names) = secret.get(&revision.task_id) {
                revision.spec = of_any_text(&secrets::masked_with(&revision.spec, names), names);
            }
        } else if let Row::Instance(instance) = row
            && let Some(names) = secret.get(&instance.task_id)
        {
            let instance = Arc::make_mut(instance);
            secrets::mask(Arc::make_mut(&mut instance.given_params), names);
            secrets::mask(Arc::make_mut(&mut instance.runtime_params), names);
        }
    }
    Ok(())
}

/// A definition whose secret parameters take the mask for a value.
fn of_any_text(spec: &TaskSpec, names: &Names) -> Arc<TaskSpec> {
    let mut spec = spec.clone();
    for (_, schema) in spec.runtime_params.iter_mut().filter(|(name, _)| names.contains(*name)) {
        schema.kind = ParamType::String;
        schema.allowed.clear();
        (schema.min, schema.max, schema.pattern) = (None, None, None);
    }
    Arc::new(spec)
}
