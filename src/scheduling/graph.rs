//! The dependency graph of the definitions: cycles, order, what lies below, units of cycles.
//!
//! The graph algorithms are petgraph's; this file says which edges there are. A definition that
//! changes changes its own edges ([`Graph::set`]); what follows from all of them together is then
//! found in one pass ([`Graph::settle`]), a few milliseconds for ten thousand tasks.

mod conceded;
mod faults;
mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use petgraph::Direction::{Incoming, Outgoing};
use petgraph::algo::toposort;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef as _;

use self::conceded::Conceded;
pub(super) use self::faults::Fault;
use self::said::Said;
use super::rollout;
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::id::TaskId;
use crate::model::spec::TaskSpec;

/// The tasks, what they name in `dependsOn` and in `task:` triggers, and what follows from that.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    edges: StableDiGraph<Node, Why>,
    places: BTreeMap<TaskId, NodeIndex>,
    /// Tasks that listen, by what they listen to.
    listeners: BTreeMap<Source, BTreeSet<TaskId>>,
    /// Versions that share the cycles of one task (docs/waves.md, rule 16).
    rollouts: rollout::Groups,
    /// What does not count for now of definitions that are in force, though they ask for it.
    conceded: Conceded,
}

/// Why one task comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The later one names it in `dependsOn`.
    Dependency,
    /// The later one has a `task:` trigger on it.
    Trigger,
    /// The later one depends on another version, which shares its cycles with this one.
    Rollout,
}

/// What an outside trigger listens to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A named event.
    Event(String),
    /// Files of a pattern.
    Files(String),
    /// Ends of a task.
    Task(TaskId),
}

/// A task that is defined, or only named by others.
#[derive(Debug, Clone)]
struct Node {
    id: TaskId,
    /// What its definition says; `None`: no file defines it.
    said: Option<Said>,
    /// What follows from the graph, as of the last [`Graph::settle`].
    found: Found,
}

/// What follows from the graph.
#[derive(Debug, Clone)]
struct Found {
    /// Edges of the longest way from a root.
    level: usize,
    rule: CycleRule,
    roots: Roots,
}

/// Where a task starts from: at most two roots of unit RUN, and the units of all roots.
#[derive(Debug, Clone, Default)]
struct Roots {
    run: BTreeSet<TaskId>,
    coarsest: Option<CycleUnit>,
    finest: Option<CycleUnit>,
}

impl Graph {
    /// The graph of a whole set, settled.
    pub(super) fn new(specs: &BTreeMap<TaskId, Arc<TaskSpec>>) -> Self {
        let mut graph = Self::default();
        for (id, spec) in specs {
            graph.set(id, Some(spec));
        }
        // A set that is in force has no fault but those for which something was conceded.
        loop {
            let faults = graph.settle();
            if faults.is_empty() || !graph.concede(&faults) {
                return graph;
            }
        }
    }

    /// Puts a definition's edges in the place of its earlier ones; `None`: it is gone. Says whether
    /// that changed anything, so that the graph must be settled.
    pub(super) fn set(&mut self, id: &TaskId, spec: Option<&TaskSpec>) -> bool {
        let said = spec.map(Said::of);
        if !self.is_moved(id, said.as_ref()) {
            self.say(id, said.as_ref());
            return false;
        }
        let node = self.node(id);
        let before: Vec<_> = self
            .edges
            .edges_directed(node, Incoming)
            .filter(|edge| *edge.weight() != Why::Rollout)
            .map(|edge| (edge.id(), edge.source()))
            .collect();
        let mut loose: BTreeSet<NodeIndex> = BTreeSet::from([node]);
        for (edge, from) in before {
            self.edges.remove_edge(edge);
            loose.insert(from);
        }
        for (from, why) in said.iter().flat_map(|said| &said.named) {
            let from = self.node(from);
            self.edges.add_edge(from, node, *why);
        }
        self.say(id, said.as_ref());
        self.rollouts.regroup(id, &self.versions(id));
        for node in loose {
            self.drop_if_unnamed(node);
        }
        true
    }

    /// Whether a definition would change the graph.
    pub(super) fn is_moved_by(&self, id: &TaskId, spec: Option<&TaskSpec>) -> bool {
        self.is_moved(id, spec.map(Said::of).as_ref())
    }

    fn is_moved(&self, id: &TaskId, said: Option<&Said>) -> bool {
        let node = self.places.get(id).and_then(|node| self.edges.node_weight(*node));
        match (node.and_then(|node| node.said.as_ref()), said) {
            (Some(before), Some(now)) => !before.is_placed_like(now),
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        }
    }

    /// Keeps what a definition says now, and who listens to what.
    fn say(&mut self, id: &TaskId, said: Option<&Said>) {
        let node = self.places.get(id).and_then(|node| self.edges.node_weight_mut(*node));
        let Some(node) = node.filter(|node| node.said.as_ref() != said) else { return };
        let old = std::mem::replace(&mut node.said, said.cloned());
        self.listen(id, old.as_ref(), said);
    }

    /// Finds what follows from the edges; the faults, if there are any. After one, what was found
    /// before stays: put the culprits' edges back and settle again.
    pub(super) fn settle(&mut self) -> Vec<Fault> {
        self.share_dependents();
        let Ok(order) = toposort(&self.edges, None) else { return self.rings() };
        let mut ambiguous: BTreeSet<NodeIndex> = BTreeSet::new();
        let mut first: Vec<NodeIndex> = Vec::new();
        for node in order {
            let found = self.follow(node);
            let Some(weight) = self.edges.node_weight_mut(node) else { continue };
            let is_derived = weight.said.as_ref().is_some_and(|said| said.is_derived);
            let is_ambiguous =
                is_derived && found.rule.unit == CycleUnit::Run && found.roots.run.len() > 1;
            weight.found = found;
            if is_ambiguous {
                // What hangs on an ambiguous one is so because of it.
                let mut above = self.edges.neighbors_directed(node, Incoming);
                if !above.any(|node| ambiguous.contains(&node)) {
                    first.push(node);
                }
                ambiguous.insert(node);
            }
        }
        self.level_groups();
        let id = |node| self.edges.node_weight(node).map(|weight| &weight.id);
        let mut faults: Vec<Fault> =
            first.into_iter().filter_map(id).map(|id| self.ambiguity(id)).collect();
        faults.extend(self.not_of_unit());
        faults
    }

    /// The versions that share cycles.
    fn groups(&self) -> Vec<Vec<NodeIndex>> {
        let nodes =
            |group: &[TaskId]| group.iter().filter_map(|id| self.places.get(id).copied()).collect();
        self.rollouts.all().map(nodes).collect()
    }

    /// Whichever version takes a cycle, it comes after all that any of them waits for.
    fn level_groups(&mut self) {
        for nodes in self.groups() {
            let levels = nodes.iter().filter_map(|node| self.edges.node_weight(*node));
            let highest = levels.map(|weight| weight.found.level).max().unwrap_or_default();
            for node in nodes {
                if let Some(weight) = self.edges.node_weight_mut(node) {
                    weight.found.level = highest;
                }
            }
        }
    }

    /// Tasks that name `task` in `dependsOn`, by id.
    pub(super) fn downstream(&self, task: &TaskId) -> BTreeSet<&TaskId> {
        let Some(node) = self.places.get(task) else { return BTreeSet::new() };
        self.edges
            .edges_directed(*node, Outgoing)
            .filter(|edge| *edge.weight() != Why::Trigger)
            .filter_map(|edge| self.edges.node_weight(edge.target()))
            .map(|node| &node.id)
            .collect()
    }

    /// Tasks that listen to `source`.
    pub(super) fn listeners(&self, source: &Source) -> Vec<TaskId> {
        self.listeners.get(source).into_iter().flatten().cloned().collect()
    }

    /// How far a task is from the roots: (level, id) is a topological order.
    pub(super) fn level(&self, task: &TaskId) -> usize {
        self.found(task).map_or(usize::MAX, |found| found.level)
    }

    /// The task's cycle rule in effect.
    pub(super) fn rule(&self, task: &TaskId) -> CycleRule {
        self.found(task).map_or(CycleRule::DAY, |found| found.rule)
    }

    /// The finest unit among the roots of a task.
    pub(super) fn finest_root(&self, task: &TaskId) -> Option<CycleUnit> {
        self.found(task)?.roots.finest
    }

    /// Versions that share cycles.
    pub(super) fn rollouts(&self) -> &rollout::Groups {
        &self.rollouts
    }

    fn found(&self, task: &TaskId) -> Option<&Found> {
        let node = self.edges.node_weight(*self.places.get(task)?)?;
        node.said.as_ref().map(|_| &node.found)
    }

    fn node(&mut self, id: &TaskId) -> NodeIndex {
        if let Some(node) = self.places.get(id) {
            return *node;
        }
        let found = Found { level: 0, rule: CycleRule::DAY, roots: Roots::default() };
        let node = self.edges.add_node(Node { id: id.clone(), said: None, found });
        self.places.insert(id.clone(), node);
        node
    }

    /// The versions of a task that may share cycles, a disabled one not among them.
    fn versions(&self, id: &TaskId) -> BTreeMap<u32, (TaskId, Option<u32>)> {
        let prefix = format!("{}.v", id.base());
        self.places
            .range::<str, _>((Included(prefix.as_str()), Unbounded))
            .take_while(|(other, _)| other.as_str().starts_with(&prefix))
            .filter(|(other, _)| other.base() == id.base())
            .filter_map(|(other, node)| {
                let share = self.edges.node_weight(*node)?.said.as_ref()?.share?;
                let share = share.filter(|_| !self.conceded.is_alone(id));
                Some((other.version(), (other.clone(), share)))
            })
            .collect()
    }

    fn drop_if_unnamed(&mut self, node: NodeIndex) {
        let is_named = self.edges.neighbors_undirected(node).next().is_some();
        if let Some(weight) = self.edges.node_weight(node).filter(|w| w.said.is_none() && !is_named)
        {
            self.places.remove(&weight.id);
            self.edges.remove_node(node);
        }
    }

    fn listen(&mut self, id: &TaskId, old: Option<&Said>, new: Option<&Said>) {
        for source in old.into_iter().flat_map(|said| &said.listens) {
            if let Some(ids) = self.listeners.get_mut(source) {
                ids.remove(id);
                if ids.is_empty() {
                    self.listeners.remove(source);
                }
            }
        }
        for source in new.into_iter().flat_map(|said| &said.listens) {
            self.listeners.entry(source.clone()).or_default().insert(id.clone());
        }
    }

    /// Whatever depends on one version of a group comes after all of them.
    fn share_dependents(&mut self) {
        self.edges.retain_edges(|edges, edge| edges.edge_weight(edge) != Some(&Why::Rollout));
        for nodes in self.groups() {
            let below: BTreeSet<NodeIndex> = nodes
                .iter()
                .flat_map(|node| self.edges.edges_directed(*node, Outgoing))
                .filter(|edge| *edge.weight() == Why::Dependency)
                .map(|edge| edge.target())
                .collect();
            for dependent in below {
                for member in &nodes {
                    self.edges.add_edge(*member, dependent, Why::Rollout);
                }
            }
        }
    }

    /// Level, unit and roots of a task whose upstreams have theirs.
    fn follow(&self, node: NodeIndex) -> Found {
        let mut level = 0;
        let mut roots = Roots::default();
        for edge in self.edges.edges_directed(node, Incoming) {
            let Some(above) = self.edges.node_weight(edge.source()) else { continue };
            if above.said.is_none() {
                continue;
            }
            level = level.max(above.found.level + 1);
            if *edge.weight() != Why::Trigger {
                let run = &above.found.roots.run;
                roots.run.extend(run.iter().take(2).cloned());
                let theirs = &above.found.roots;
                roots.coarsest = roots.coarsest.max(theirs.coarsest);
                roots.finest = [roots.finest, theirs.finest].into_iter().flatten().min();
            }
        }
        let Some(said) = self.edges.node_weight(node).and_then(|n| n.said.as_ref()) else {
            return Found { level, rule: CycleRule::DAY, roots: Roots::default() };
        };
        if said.is_derived {
            let id = self.edges.node_weight(node).map(|node| &node.id);
            let rule = match id {
                Some(id) if self.conceded.is_day(id) => CycleRule::DAY,
                _ => said.cycle.unwrap_or_else(|| derived_rule(&roots)),
            };
            return Found { level, rule, roots };
        }
        let rule = said.cycle.unwrap_or(said.default);
        let unit = Some(rule.unit);
        let mut roots = Roots { run: BTreeSet::new(), coarsest: unit, finest: unit };
        if let Some(own) = self.edges.node_weight(node).filter(|_| rule.unit == CycleUnit::Run) {
            // Versions that share cycles are one root: only one of them takes each run.
            roots.run.insert(self.rollouts.leader(&own.id).unwrap_or(&own.id).clone());
        }
        Found { level, rule, roots }
    }
}

fn derived_rule(roots: &Roots) -> CycleRule {
    if roots.run.len() == 1 {
        return CycleRule::RUN;
    }
    CycleRule { unit: roots.coarsest.unwrap_or(CycleUnit::Day), offset: 0 }
}
