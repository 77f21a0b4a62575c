//! The graph of the definitions, or of the instances of one cycle (`graph`).

use std::collections::{BTreeMap, BTreeSet};

use crate::limits;
use crate::model::cycle::Cycle;
use crate::model::graph::{GraphEdge, GraphEdgeKind, GraphInstance, GraphNode, GraphView};
use crate::model::history::{History, HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::request::{Caller, Reply, Request};
use crate::model::view::Live;

use super::problem::Problem;
use super::query;
use super::state::App;

/// All of it, or what is up- and downstream of a task.
pub(super) async fn view(
    app: &App,
    caller: Caller,
    around: Option<TaskId>,
    cycle: Option<String>,
) -> Result<GraphView, Problem> {
    if let Some(task) = &around {
        // One that is not there is refused with the one that may be meant.
        let is_known = app.ask(Request::Task(task.clone()), caller).await;
        is_known.or_else(|problem| if cycle.is_some() { Ok(Reply::Done) } else { Err(problem) })?;
    }
    let Reply::Graph(definitions) = app.ask(Request::Graph, caller).await? else {
        return Err(Problem::misanswered("the graph"));
    };
    let whole = match cycle {
        None => *definitions,
        Some(cycle) => {
            if let Err(error) = Cycle::parse(&cycle) {
                return Err(Problem::invalid(format!("cycle: {error}")));
            }
            let read = query::read(app, move |history| of_cycle(history, &definitions, cycle));
            let mut view = read.await?;
            live_reasons(app, caller, &mut view).await;
            view
        }
    };
    Ok(match around {
        None => whole,
        Some(task) => whole.around(&task),
    })
}

/// Why READY ones do not start, which only the core knows.
async fn live_reasons(app: &App, caller: Caller, view: &mut GraphView) {
    let instances = view.nodes.iter_mut().filter_map(|node| node.instance.as_mut());
    let ready: Vec<&mut GraphInstance> =
        instances.filter(|instance| instance.state == InstanceState::Ready).collect();
    let ids: Vec<InstanceId> = ready.iter().map(|instance| instance.instance_id.clone()).collect();
    if ids.is_empty() {
        return;
    }
    let Ok(Reply::Live(live)) = app.ask(Request::Live(ids), caller).await else { return };
    let live: BTreeMap<InstanceId, Live> =
        live.into_iter().map(|live| (live.instance_id.clone(), live)).collect();
    for instance in ready {
        let told = live.get(&instance.instance_id);
        if let Some(told) = told.filter(|told| told.state == InstanceState::Ready) {
            instance.reason = told.reason;
        }
    }
}

/// The instances of a cycle, the instances of others that they are bound to, and an open edge's
/// task where no run of it is there.
fn of_cycle(
    history: &dyn History,
    definitions: &GraphView,
    cycle: String,
) -> Result<GraphView, HistoryError> {
    let tasks: BTreeMap<&TaskId, &GraphNode> =
        definitions.nodes.iter().map(|node| (&node.task_id, node)).collect();
    let whens: BTreeMap<(&str, &str), &GraphEdge> = definitions
        .edges
        .iter()
        .filter(|edge| edge.kind == GraphEdgeKind::Dependency)
        .map(|edge| ((edge.from.as_str(), edge.to.as_str()), edge))
        .collect();
    let filter = InstanceFilter {
        cycle: Some(cycle.clone()),
        limit: limits::GRAPH_INSTANCES_MAX + 1,
        ..InstanceFilter::default()
    };
    let mut rows = history.instances(&filter)?;
    let truncated = rows.len() > limits::GRAPH_INSTANCES_MAX;
    rows.truncate(limits::GRAPH_INSTANCES_MAX);
    let mut view = GraphView { cycle: Some(cycle), truncated, ..GraphView::default() };
    let mut placed: BTreeSet<String> = rows.iter().map(|row| row.instance_id.to_string()).collect();
    view.nodes.extend(rows.iter().map(|row| instance(row, tasks.get(&row.task_id).copied())));
    for row in &rows {
        for edge in row.edges.iter() {
            let from = edge
                .instance_id
                .as_ref()
                .map_or_else(|| edge.task_id.to_string(), ToString::to_string);
            if placed.insert(from.clone()) {
                let bound = edge.instance_id.as_ref();
                let task = tasks.get(&edge.task_id).copied();
                view.nodes.push(other(history, &edge.task_id, bound, task)?);
            }
            let said = whens.get(&(edge.task_id.as_str(), row.task_id.as_str()));
            view.edges.push(GraphEdge {
                from,
                to: row.instance_id.to_string(),
                kind: GraphEdgeKind::Dependency,
                dep_type: Some(edge.dep_type),
                strength: Some(edge.strength),
                when: said.and_then(|edge| edge.when.clone()),
                cycle_offset: said.map_or(0, |edge| edge.cycle_offset),
                states: Vec::new(),
            });
        }
    }
    view.nodes.sort_by(|a, b| (&a.task_id, &a.id).cmp(&(&b.task_id, &b.id)));
    Ok(view)
}

fn instance(row: &Instance, task: Option<&GraphNode>) -> GraphNode {
    let id = row.instance_id.to_string();
    let told = GraphInstance {
        instance_id: row.instance_id.clone(),
        cycle: row.cycle.label().to_owned(),
        state: row.state,
        reason: row.reason,
        error_code: row.error_code.clone(),
    };
    GraphNode { id, instance: Some(told), ..bare(&row.task_id, task) }
}

/// An upstream's instance of another cycle, or an upstream that has none.
fn other(
    history: &dyn History,
    upstream: &TaskId,
    bound: Option<&InstanceId>,
    task: Option<&GraphNode>,
) -> Result<GraphNode, HistoryError> {
    let row = bound.map(|id| history.instance(id)).transpose()?.flatten();
    let node = row.as_ref().map(|row| instance(row, task));
    let id = bound.map_or_else(|| upstream.to_string(), ToString::to_string);
    Ok(node.unwrap_or_else(|| GraphNode { id, ..bare(upstream, task) }))
}

/// A node without its instance.
fn bare(of: &TaskId, task: Option<&GraphNode>) -> GraphNode {
    task.cloned().unwrap_or_else(|| GraphNode {
        id: of.to_string(),
        task_id: of.clone(),
        name: None,
        owner: None,
        status: None,
        schedule: String::new(),
        instance: None,
    })
}
