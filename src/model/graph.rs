//! What `graph` shows: tasks or instances, and what comes after what.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::id::{InstanceId, TaskId};
use super::instance::{InstanceState, Reason};
use super::spec::{DepType, Strength};
use super::view::TaskStatus;

/// The definitions in force, or the instances of one cycle, and the edges between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphView {
    /// The cycle whose instances these are; null: these are the definitions.
    pub cycle: Option<String>,
    /// In the order of their ids.
    pub nodes: Vec<GraphNode>,
    /// Each between two of the nodes.
    pub edges: Vec<GraphEdge>,
    /// There are more instances than are shown.
    pub truncated: bool,
}

/// A task, or an instance of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// What edges call it: the instance's id, else the task's.
    pub id: String,
    /// The task.
    pub task_id: TaskId,
    /// The task's name.
    pub name: Option<String>,
    /// Who answers for it.
    pub owner: Option<String>,
    /// Whether the task gets instances; null: no file defines it.
    pub status: Option<TaskStatus>,
    /// What starts the task, in short.
    pub schedule: String,
    /// The instance; null: a task, or a task that has none of the cycle yet.
    pub instance: Option<GraphInstance>,
}

/// How an instance of the graph stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are those of the contract, documented in `Instance`")]
pub struct GraphInstance {
    pub instance_id: InstanceId,
    pub cycle: String,
    pub state: InstanceState,
    pub reason: Option<Reason>,
    pub error_code: Option<String>,
}

/// Why one comes after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GraphEdgeKind {
    /// It names the other in `dependsOn`.
    Dependency,
    /// It has a `task` trigger on the other.
    Trigger,
}

/// One comes after another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphEdge {
    /// The earlier one's id.
    pub from: String,
    /// The later one's id.
    pub to: String,
    /// Why.
    pub kind: GraphEdgeKind,
    /// Of a dependency: what of it is waited for.
    pub dep_type: Option<DepType>,
    /// Of a dependency: whether its failure holds back.
    pub strength: Option<Strength>,
    /// Of a dependency: its condition.
    pub when: Option<String>,
    /// Of a dependency: which cycle of the upstream, in its units.
    pub cycle_offset: i32,
    /// Of a trigger: the ends that it listens to.
    pub states: Vec<InstanceState>,
}

impl GraphView {
    /// What of the graph is up- or downstream of a task, itself included.
    #[must_use]
    pub fn around(mut self, task: &TaskId) -> Self {
        let own = || self.nodes.iter().filter(|n| n.task_id == *task).map(|n| n.id.clone());
        let mut kept: BTreeSet<String> = own().collect();
        for is_down in [true, false] {
            let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for edge in &self.edges {
                let (from, to) =
                    if is_down { (&edge.from, &edge.to) } else { (&edge.to, &edge.from) };
                next.entry(from).or_default().push(to);
            }
            let mut seen: BTreeSet<String> = own().collect();
            let mut frontier: Vec<String> = own().collect();
            while let Some(at) = frontier.pop() {
                for id in next.get(at.as_str()).into_iter().flatten() {
                    if seen.insert((*id).to_owned()) {
                        frontier.push((*id).to_owned());
                    }
                }
            }
            kept.extend(seen);
        }
        self.nodes.retain(|node| kept.contains(&node.id));
        self.edges.retain(|edge| kept.contains(&edge.from) && kept.contains(&edge.to));
        self
    }
}
