//! The definitions in force as a graph to be drawn.

use std::collections::BTreeSet;

use super::super::answers;
use super::super::state::State;
use crate::model::graph::{GraphEdge, GraphEdgeKind, GraphNode, GraphView};
use crate::model::id::TaskId;
use crate::model::spec::{TaskSpec, TriggerKind};

/// All tasks in force, those that are only named too, and what comes after what.
pub(in super::super) fn graph(state: &State) -> GraphView {
    let mut nodes: Vec<GraphNode> = state.registry.specs().map(|s| node(state, s)).collect();
    let edges: Vec<GraphEdge> = state.registry.specs().flat_map(|s| above(s)).collect();
    let named: BTreeSet<&String> = edges.iter().map(|edge| &edge.from).collect();
    let unknown = named.into_iter().filter_map(|id| TaskId::parse(id).ok());
    nodes.extend(unknown.filter(|id| state.registry.spec(id).is_none()).map(only_named));
    nodes.sort_by(|a, b| a.id.cmp(&b.id));
    GraphView { cycle: None, nodes, edges, truncated: false }
}

fn node(state: &State, spec: &TaskSpec) -> GraphNode {
    GraphNode {
        id: spec.task_id.to_string(),
        task_id: spec.task_id.clone(),
        name: spec.name.clone(),
        owner: Some(spec.owner.clone()),
        status: Some(state.registry.status(spec)),
        schedule: answers::schedule(state, spec),
        instance: None,
    }
}

fn only_named(id: TaskId) -> GraphNode {
    GraphNode {
        id: id.to_string(),
        task_id: id,
        name: None,
        owner: None,
        status: None,
        schedule: String::new(),
        instance: None,
    }
}

/// What a task comes after.
fn above(spec: &TaskSpec) -> impl Iterator<Item = GraphEdge> {
    let dependencies = spec.depends_on.iter().map(|d| GraphEdge {
        from: d.task_id.to_string(),
        to: spec.task_id.to_string(),
        kind: GraphEdgeKind::Dependency,
        dep_type: Some(d.dep_type),
        strength: Some(d.strength),
        when: d.when.as_ref().map(|when| when.as_str().to_owned()),
        cycle_offset: d.cycle_offset,
        states: Vec::new(),
    });
    let triggers = spec.triggers.iter().filter_map(|trigger| match &trigger.when {
        TriggerKind::Task(t) => Some(GraphEdge {
            from: t.task_id.to_string(),
            to: spec.task_id.to_string(),
            kind: GraphEdgeKind::Trigger,
            dep_type: None,
            strength: None,
            when: None,
            cycle_offset: 0,
            states: t.states.clone(),
        }),
        TriggerKind::Cron(_)
        | TriggerKind::Every(_)
        | TriggerKind::Boot
        | TriggerKind::File(_)
        | TriggerKind::Event(_) => None,
    });
    dependencies.chain(triggers)
}
