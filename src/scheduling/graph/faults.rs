//! What can be wrong with a set of definitions: a cycle, or a run with two roots.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use petgraph::Direction::Incoming;
use petgraph::algo::kosaraju_scc;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef as _;

use super::said::Said;
use super::{Graph, Node, Why};
use crate::model::cycle::CycleUnit;
use crate::model::id::TaskId;

/// What is wrong with a set of definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::scheduling) struct Fault {
    /// Definitions that can be to blame, the likeliest first.
    pub(in crate::scheduling) suspects: Vec<TaskId>,
    /// In words, after "this definition".
    pub(in crate::scheduling) text: String,
    /// All of them that changed are to blame, not only the first.
    pub(in crate::scheduling) all: bool,
    /// The derived task whose cycles must not be what they are; `None`: it is another fault.
    pub(in crate::scheduling) ambiguous: Option<TaskId>,
}

impl Graph {
    /// One cycle of each knot, as a walk that ends where it starts: with the smallest id in it.
    ///
    /// Task-state triggers count as edges too: one that leads back to itself would never end.
    pub(super) fn rings(&self) -> Vec<Fault> {
        let id = |node: &NodeIndex| self.edges.node_weight(*node).map(|n| &n.id);
        let is_knot = |knot: &Vec<NodeIndex>| {
            knot.len() > 1 || knot.first().is_some_and(|n| self.edges.contains_edge(*n, *n))
        };
        // Not Tarjan's way, which calls itself once for each step of the longest path.
        let knots = kosaraju_scc(&self.edges).into_iter().filter(is_knot);
        let mut rings: BTreeMap<&TaskId, Fault> = BTreeMap::new();
        for knot in knots {
            let start = knot.iter().copied().min_by_key(|node| id(node));
            let Some((start, first)) = start.and_then(|start| Some((start, id(&start)?))) else {
                continue;
            };
            let walk = walk(&self.edges, start, &knot.into_iter().collect());
            let suspects: Vec<TaskId> = walk.iter().filter_map(id).cloned().collect();
            let path: Vec<&str> = suspects.iter().map(TaskId::as_str).collect();
            let text = format!("closes the cycle {}; the graph must have none", path.join(" -> "));
            rings.insert(first, Fault { suspects, text, all: true, ambiguous: None });
        }
        rings.into_values().collect()
    }

    /// A RUN task that two RUN roots reach (docs/waves.md, rule 14).
    pub(super) fn ambiguity(&self, id: &TaskId) -> Fault {
        let roots = self.found(id).map(|found| found.roots.run.clone()).unwrap_or_default();
        let roots: Vec<&str> = roots.iter().take(2).map(TaskId::as_str).collect();
        let text = format!(
            "task {id} has the unit RUN but both {} start runs; give it cycle: {{unit: DAY}}",
            roots.join(" and ")
        );
        Fault { suspects: self.above(id), text, all: false, ambiguous: Some(id.clone()) }
    }

    /// What can only be with cycles of another unit: a run before a run, a `{cycle}` that is a date
    /// (docs/waves.md, rules 2 and 14).
    pub(super) fn not_of_unit(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for node in self.edges.node_weights() {
            let Some(said) = &node.said else { continue };
            let id = &node.id;
            let is_run = |up: &&TaskId| {
                let defined = self.found(up).filter(|_| self.said(up).is_some());
                defined.is_some_and(|found| found.rule.unit == CycleUnit::Run)
            };
            if let Some(up) = said.behind.iter().find(is_run) {
                let text = format!(
                    "lets {id} wait with a cycleOffset for {up}, whose cycles are runs: no run is the \
                     one before another; leave the cycleOffset out, or give {up} cycle: {{unit: DAY}}"
                );
                faults.push(self.of_unit(id, up, text));
            }
            let unit = node.found.rule.unit;
            if let Some(name) = said.cycle_as_date.as_ref().filter(|_| unit != CycleUnit::Day) {
                let text = format!(
                    "fills {{cycle}} into the date {name} of {id}, whose cycles have the unit {}: \
                     use {{date}}",
                    unit.name()
                );
                faults.push(self.of_unit(id, id, text));
            }
        }
        faults
    }

    /// A fault of a task that would be none if the cycles of `wrong`, if it is derived, were days.
    fn of_unit(&self, id: &TaskId, wrong: &TaskId, text: String) -> Fault {
        let is_derived = self.said(wrong).is_some_and(|said| said.is_derived);
        let ambiguous = is_derived.then(|| wrong.clone());
        Fault { suspects: self.above(id), text, all: false, ambiguous }
    }

    fn said(&self, id: &TaskId) -> Option<&Said> {
        self.edges.node_weight(*self.places.get(id)?)?.said.as_ref()
    }

    /// A task and all that it depends on, near ones first.
    fn above(&self, id: &TaskId) -> Vec<TaskId> {
        let mut seen: BTreeSet<NodeIndex> = self.places.get(id).copied().into_iter().collect();
        let mut queue: VecDeque<NodeIndex> = seen.iter().copied().collect();
        let mut found = Vec::new();
        while let Some(node) = queue.pop_front() {
            found.extend(self.edges.node_weight(node).map(|n| n.id.clone()));
            let mut upstreams: Vec<NodeIndex> = self
                .edges
                .edges_directed(node, Incoming)
                .filter(|edge| *edge.weight() == Why::Dependency)
                .map(|edge| edge.source())
                .collect();
            upstreams.sort_by_key(|n| self.edges.node_weight(*n).map(|n| &n.id));
            queue.extend(upstreams.into_iter().filter(|n| seen.insert(*n)));
        }
        found
    }
}

/// A shortest closed walk inside a strongly connected set, from a node back to it.
fn walk(
    edges: &StableDiGraph<Node, Why>,
    start: NodeIndex,
    inside: &BTreeSet<NodeIndex>,
) -> Vec<NodeIndex> {
    let mut before: BTreeMap<NodeIndex, NodeIndex> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for next in edges.neighbors(node).filter(|n| inside.contains(n)) {
            if next == start {
                let mut path = vec![start];
                let mut at = node;
                while at != start {
                    path.push(at);
                    at = before.get(&at).copied().unwrap_or(start);
                }
                path.push(start);
                path.reverse();
                return path;
            }
            if let Entry::Vacant(entry) = before.entry(next) {
                entry.insert(node);
                queue.push_back(next);
            }
        }
    }
    vec![start, start]
}
