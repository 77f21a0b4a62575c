//! The rules of waves as a small slow model (docs/waves.md, rules 1 to 4, 6
//! and 10): everything is looked for anew each time. An oracle for the engine.

use std::collections::{BTreeMap, BTreeSet};

/// A task of the model. Upstreams are named by number, so the numbers are a topological order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// Upstream, and whether the edge is strong.
    pub(crate) upstreams: Vec<(usize, bool)>,
    pub(crate) triggered: bool,
    /// Each root is a cycle of its own; for derived tasks found from their roots.
    pub(crate) by_run: bool,
}

impl Node {
    fn derived(&self) -> bool {
        !self.upstreams.is_empty() && !self.triggered
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    Blocked,
    Ready,
    Succeeded,
    Failed,
    Cancelled,
}

/// A business day, and within it perhaps one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    day: u32,
    run: Option<usize>,
}

impl Cycle {
    fn matches(self, other: Self) -> bool {
        self.day == other.day
            && (self.run.is_none() || other.run.is_none() || self.run == other.run)
    }
}

/// An instance of the model; its index is its age.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) task: usize,
    pub(crate) state: State,
    pub(crate) cycle: Cycle,
    pub(crate) edges: BTreeMap<usize, Option<usize>>,
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Oracle {
    pub(crate) nodes: Vec<Node>,
    pub(crate) items: Vec<Item>,
}

impl Oracle {
    pub(crate) fn new(mut nodes: Vec<Node>) -> Self {
        for n in 0..nodes.len() {
            if nodes[n].derived() {
                let runs = Self::roots(&nodes, n).into_iter().filter(|r| nodes[*r].by_run).count();
                nodes[n].by_run = runs == 1;
            }
        }
        Self { nodes, items: Vec::new() }
    }

    /// Roots from which a derived task is reached through derived tasks.
    pub(crate) fn roots(nodes: &[Node], n: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for &(up, _) in &nodes[n].upstreams {
            if nodes[up].derived() {
                found.extend(Self::roots(nodes, up));
            } else {
                found.insert(up);
            }
        }
        found
    }

    /// The tasks below a root that its wave reaches.
    fn wave_of(&self, root: usize) -> Vec<usize> {
        let mut reached = BTreeSet::from([root]);
        for (n, node) in self.nodes.iter().enumerate() {
            let fed = node.upstreams.iter().any(|(up, _)| reached.contains(up));
            if node.derived() && fed && (!node.by_run || self.nodes[root].by_run) {
                reached.insert(n);
            }
        }
        reached.remove(&root);
        reached.into_iter().collect()
    }

    fn newest(&self, task: usize, cycle: Cycle) -> Option<usize> {
        self.items.iter().rposition(|i| i.task == task && i.cycle.matches(cycle))
    }

    fn is_broken(&self, item: Option<usize>) -> bool {
        item.is_some_and(|i| matches!(self.items[i].state, State::Failed | State::Cancelled))
    }

    fn waits(&self, item: usize) -> bool {
        matches!(self.items[item].state, State::Pending | State::Blocked)
    }

    fn add(&mut self, task: usize, cycle: Cycle, wave: &BTreeMap<usize, usize>) -> usize {
        let edges = self.nodes[task].upstreams.iter();
        let edges = edges
            .map(|&(up, _)| (up, wave.get(&up).copied().or_else(|| self.newest(up, cycle))))
            .collect();
        self.items.push(Item { task, state: State::Pending, cycle, edges });
        self.items.len() - 1
    }

    /// Rule 3: the oldest waiting instance of the cycle that the wave takes up.
    fn gathered(&self, task: usize, cycle: Cycle, wave: &BTreeMap<usize, usize>) -> Option<usize> {
        (0..self.items.len()).find(|&i| {
            let item = &self.items[i];
            let takes = |(up, bound): (&usize, &Option<usize>)| {
                bound.is_none()
                    || self.is_broken(*bound)
                    || (bound.is_some() && wave.get(up).copied() == *bound)
            };
            item.task == task
                && item.cycle == cycle
                && self.waits(i)
                && item.edges.iter().any(takes)
        })
    }

    /// A root and its wave.
    pub(crate) fn create(&mut self, root: usize, day: u32) -> usize {
        let run = self.nodes[root].by_run.then_some(self.items.len());
        let cycle = Cycle { day, run };
        let made = self.add(root, cycle, &BTreeMap::new());
        let mut wave = BTreeMap::from([(root, made)]);
        for task in self.wave_of(root) {
            let mine = Cycle { run: cycle.run.filter(|_| self.nodes[task].by_run), ..cycle };
            let part = match self.gathered(task, mine, &wave) {
                Some(old) => {
                    for (up, bound) in &mut self.items[old].edges {
                        *bound = wave.get(up).copied().or(*bound);
                    }
                    old
                }
                None => self.add(task, mine, &wave),
            };
            wave.insert(task, part);
        }
        for i in 0..self.items.len() {
            if !self.waits(i) {
                continue;
            }
            let derived = self.nodes[self.items[i].task].derived();
            for (&up, &new) in &wave {
                let Some(&bound) = self.items[i].edges.get(&up) else { continue };
                let takes = bound.is_none() || (!derived && self.is_broken(bound));
                if takes && self.items[i].cycle.matches(self.items[new].cycle) {
                    self.items[i].edges.insert(up, Some(new));
                }
            }
        }
        self.settle();
        made
    }

    /// Rule 6, until nothing moves.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for i in 0..self.items.len() {
                if !self.waits(i) {
                    continue;
                }
                let (mut waiting, mut blocked) = (false, false);
                for &(up, strong) in &self.nodes[self.items[i].task].upstreams {
                    match self.items[i].edges[&up].map(|b| self.items[b].state) {
                        Some(State::Succeeded) => {}
                        Some(State::Failed | State::Cancelled) => blocked |= strong,
                        Some(State::Pending | State::Blocked | State::Ready) | None => {
                            waiting = true;
                        }
                    }
                }
                let state = match (blocked, waiting) {
                    (true, _) => State::Blocked,
                    (false, true) => State::Pending,
                    (false, false) => State::Ready,
                };
                moved |= self.items[i].state != state;
                self.items[i].state = state;
            }
            if !moved {
                return;
            }
        }
    }

    /// An instance gets another state from outside.
    pub(crate) fn becomes(&mut self, item: usize, state: State) {
        self.items[item].state = state;
        self.settle();
    }

    pub(crate) fn states(&self, task: usize) -> Vec<State> {
        self.items.iter().filter(|i| i.task == task).map(|i| i.state).collect()
    }
}
