//! The dependency graph of the definitions: cycles, order, what lies below, units of cycles.
//!
//! The graph algorithms are petgraph's; this file says which edges there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use petgraph::algo::{tarjan_scc, toposort};
use petgraph::graphmap::DiGraphMap;

use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::id::TaskId;
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};

/// What follows from a set of definitions without cycles.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Graph {
    downstream: BTreeMap<TaskId, Vec<TaskId>>,
    position: BTreeMap<TaskId, usize>,
    rules: BTreeMap<TaskId, CycleRule>,
    /// Tasks that listen, by what they listen to.
    listeners: BTreeMap<Source, Vec<TaskId>>,
    /// RUN tasks that two RUN roots reach, with those roots (docs/waves.md, rule 14).
    ambiguous: BTreeMap<TaskId, (TaskId, TaskId)>,
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

/// Where each task starts from: at most two roots of unit RUN, and the coarsest unit of all roots.
#[derive(Clone, Default)]
struct Roots {
    run: BTreeSet<TaskId>,
    coarsest: Option<CycleUnit>,
}

impl Graph {
    /// Builds the graph of `specs`, which must have no cycle (see [`cycles`]).
    pub(super) fn new(specs: &BTreeMap<TaskId, Arc<TaskSpec>>) -> Self {
        let mut downstream: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for spec in specs.values() {
            for upstream in &spec.depends_on {
                downstream.entry(upstream.task_id.clone()).or_default().push(spec.task_id.clone());
            }
        }
        let (ids, edges) = numbered(specs, false);
        // A cycle cannot be here; if one were, the order of ids still is one.
        let order = toposort(&edges, None).unwrap_or_else(|_cycle| (0..ids.len()).collect());
        let position = order.iter().enumerate().map(|(at, &n)| (ids[n].clone(), at)).collect();
        let mut listeners: BTreeMap<Source, Vec<TaskId>> = BTreeMap::new();
        for spec in specs.values() {
            let sources: BTreeSet<Source> = spec.triggers.iter().filter_map(source).collect();
            for source in sources {
                listeners.entry(source).or_default().push(spec.task_id.clone());
            }
        }
        let mut graph = Self { downstream, position, listeners, ..Self::default() };
        let ordered: Vec<&Arc<TaskSpec>> =
            order.iter().filter_map(|&n| specs.get(ids[n])).collect();
        graph.find_rules(&ordered);
        graph
    }

    /// Units from roots down; `specs` in topological order.
    fn find_rules(&mut self, specs: &[&Arc<TaskSpec>]) {
        let mut roots: BTreeMap<&TaskId, Roots> = BTreeMap::new();
        for spec in specs {
            let mut mine = Roots::default();
            for upstream in &spec.depends_on {
                if let Some(above) = roots.get(&upstream.task_id) {
                    mine.run.extend(above.run.iter().take(2).cloned());
                    mine.coarsest = mine.coarsest.max(above.coarsest);
                }
            }
            let rule = spec.cycle.unwrap_or_else(|| default_rule(spec, &mine));
            if spec.is_derived() {
                let mut run = mine.run.iter();
                if let (CycleUnit::Run, Some(a), Some(b)) = (rule.unit, run.next(), run.next()) {
                    self.ambiguous.insert(spec.task_id.clone(), (a.clone(), b.clone()));
                }
            } else {
                mine = Roots { run: BTreeSet::new(), coarsest: Some(rule.unit) };
                if rule.unit == CycleUnit::Run {
                    mine.run.insert(spec.task_id.clone());
                }
            }
            self.rules.insert(spec.task_id.clone(), rule);
            roots.insert(&spec.task_id, mine);
        }
    }

    /// Tasks that name `task` in `dependsOn`.
    pub(super) fn downstream(&self, task: &TaskId) -> &[TaskId] {
        self.downstream.get(task).map_or(&[], Vec::as_slice)
    }

    /// Tasks that listen to `source`.
    pub(super) fn listeners(&self, source: &Source) -> Vec<TaskId> {
        self.listeners.get(source).cloned().unwrap_or_default()
    }

    /// Place of a task in topological order.
    pub(super) fn position(&self, task: &TaskId) -> usize {
        self.position.get(task).copied().unwrap_or(usize::MAX)
    }

    /// The task's cycle rule in effect.
    pub(super) fn rule(&self, task: &TaskId) -> CycleRule {
        self.rules.get(task).copied().unwrap_or(CycleRule::DAY)
    }

    /// RUN tasks that two RUN roots reach.
    pub(super) fn ambiguous(&self) -> &BTreeMap<TaskId, (TaskId, TaskId)> {
        &self.ambiguous
    }
}

fn source(trigger: &Trigger) -> Option<Source> {
    match &trigger.when {
        TriggerKind::Event(name) => Some(Source::Event(name.clone())),
        TriggerKind::File(file) => Some(Source::Files(file.pattern.clone())),
        TriggerKind::Task(on) => Some(Source::Task(on.task_id.clone())),
        TriggerKind::Cron(_) | TriggerKind::Every(_) | TriggerKind::Boot => None,
    }
}

fn default_rule(spec: &TaskSpec, roots: &Roots) -> CycleRule {
    if spec.is_derived() {
        if roots.run.len() == 1 {
            return CycleRule::RUN;
        }
        let unit = roots.coarsest.unwrap_or(CycleUnit::Day);
        return CycleRule { unit, offset: 0 };
    }
    let outside = |t: &TriggerKind| {
        matches!(t, TriggerKind::File(_) | TriggerKind::Event(_) | TriggerKind::Task(_))
    };
    if !spec.triggers.is_empty() && spec.triggers.iter().all(|t| outside(&t.when)) {
        CycleRule::RUN
    } else {
        CycleRule::DAY
    }
}

/// The cycles of a set of definitions, each as a path that ends where it starts.
///
/// Task-state triggers count as edges too: one that leads back to itself would never end.
pub(super) fn cycles(specs: &BTreeMap<TaskId, Arc<TaskSpec>>) -> Vec<Vec<TaskId>> {
    let (ids, edges) = numbered(specs, true);
    tarjan_scc(&edges)
        .into_iter()
        .filter(|ring| ring.len() > 1 || edges.contains_edge(ring[0], ring[0]))
        .map(|ring| walk(&edges, &ring).into_iter().map(|n| ids[n].clone()).collect())
        .collect()
}

/// A closed walk inside a strongly connected set, from its first node back to it.
fn walk(edges: &DiGraphMap<usize, ()>, ring: &[usize]) -> Vec<usize> {
    let inside: BTreeSet<usize> = ring.iter().copied().collect();
    let start = inside.iter().next().copied().unwrap_or(0);
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for next in edges.neighbors(node).filter(|n| inside.contains(n)) {
            if next == start {
                let mut path = vec![start, node];
                let mut at = node;
                while at != start {
                    at = before.get(&at).copied().unwrap_or(start);
                    path.push(at);
                }
                path.reverse();
                // A loop of one task onto itself is start, start.
                return if node == start { vec![start, start] } else { path };
            }
            if next != start && !before.contains_key(&next) {
                before.insert(next, node);
                queue.push_back(next);
            }
        }
    }
    vec![start, start]
}

/// Tasks as numbers, edges from upstream to downstream. Unknown upstreams have no node.
fn numbered(
    specs: &BTreeMap<TaskId, Arc<TaskSpec>>,
    with_triggers: bool,
) -> (Vec<&TaskId>, DiGraphMap<usize, ()>) {
    let ids: Vec<&TaskId> = specs.keys().collect();
    let number: BTreeMap<&TaskId, usize> = ids.iter().enumerate().map(|(n, id)| (*id, n)).collect();
    let mut edges = DiGraphMap::with_capacity(ids.len(), ids.len());
    for (n, spec) in specs.values().enumerate() {
        edges.add_node(n);
        for upstream in &spec.depends_on {
            if let Some(&from) = number.get(&upstream.task_id) {
                edges.add_edge(from, n, ());
            }
        }
        for trigger in spec.triggers.iter().filter(|_| with_triggers) {
            if let TriggerKind::Task(on) = &trigger.when
                && let Some(&from) = number.get(&on.task_id)
            {
                edges.add_edge(from, n, ());
            }
        }
    }
    (ids, edges)
}
