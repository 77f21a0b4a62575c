//! The engine against the small model of waves: the same roots, ends, retries and cancels through
//! both, the same states in both.

use crate::bench::Bench;
use crate::build::{edge, every, id, task};
use crate::model::cycle::CycleRule;
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState;
use crate::model::spec::{Misfire, Overlap, Strength, TaskSpec, TriggerKind};
use crate::oracle::{Node, Oracle, State};
use crate::rng::Rng;

const DAYS: [&str; 2] = ["2026-11-30", "2026-12-01"];

fn name(n: usize) -> String {
    format!("t{n}")
}

/// A random graph in which no RUN task has two RUN roots (docs/waves.md, rule 14).
fn graph(rng: &mut Rng) -> Vec<Node> {
    loop {
        let nodes: Vec<Node> = (0..2 + usize::try_from(rng.below(6)).unwrap())
            .map(|n| {
                let mut node = Node::default();
                for up in 0..n {
                    if rng.chance(40) {
                        node.upstreams.push((up, !rng.chance(20)));
                    }
                }
                node.triggered = node.upstreams.is_empty() || rng.chance(20);
                node.by_run = node.triggered && rng.chance(25);
                node
            })
            .collect();
        let two = |n: usize| {
            Oracle::roots(&nodes, n).into_iter().filter(|r| nodes[*r].by_run).count() > 1
        };
        if !(0..nodes.len()).any(two) {
            return nodes;
        }
    }
}

/// The same graph as definitions. The triggers never fire in the test: roots are submitted.
fn specs(nodes: &[Node]) -> Vec<TaskSpec> {
    let spec = |(n, node): (usize, &Node)| {
        let mut spec = task(&name(n));
        for &(up, strong) in &node.upstreams {
            let strength = if strong { Strength::Strong } else { Strength::Weak };
            spec.depends_on.push(edge(&name(up), strength));
        }
        if node.triggered && node.by_run {
            spec.triggers = vec![crate::build::on(TriggerKind::Event("never".to_owned()))];
        } else if node.triggered {
            spec.triggers = vec![every(86_400 * 3650, Misfire::Skip, Overlap::Skip)];
            spec.cycle = Some(CycleRule::DAY);
        }
        spec
    };
    nodes.iter().enumerate().map(spec).collect()
}

/// Both sides, and which instance of the engine is which item of the model.
struct Pair {
    bench: Bench,
    oracle: Oracle,
}

impl Pair {
    /// The engine's instances of all tasks in the model's order.
    fn instance(&self, item: usize) -> InstanceId {
        let task = self.oracle.items[item].task;
        let nth = self.oracle.items[..item].iter().filter(|i| i.task == task).count();
        self.bench.of(&name(task))[nth].instance_id.clone()
    }

    fn create(&mut self, root: usize, day: usize) {
        self.bench.pass(1000);
        // A RUN root's day is today; time passes within the first day only.
        if self.oracle.nodes[root].by_run {
            self.bench.run(&name(root));
            self.oracle.create(root, 0);
        } else {
            self.bench.run_for(&name(root), DAYS[day]);
            self.oracle.create(root, u32::try_from(day).unwrap());
        }
    }

    fn same(&self, what: &str) {
        for n in 0..self.oracle.nodes.len() {
            let engine: Vec<State> =
                self.bench.states(&name(n)).into_iter().map(as_in_the_model).collect();
            assert_eq!(
                engine,
                self.oracle.states(n),
                "{what}: {} of {:#?}",
                id(&name(n)),
                self.oracle
            );
        }
    }
}

fn as_in_the_model(state: InstanceState) -> State {
    match state {
        InstanceState::Pending => State::Pending,
        InstanceState::Blocked => State::Blocked,
        // The bench has a slot for everything.
        InstanceState::Ready | InstanceState::Running => State::Ready,
        InstanceState::Succeeded => State::Succeeded,
        InstanceState::Failed | InstanceState::Timeout => State::Failed,
        InstanceState::Cancelled => State::Cancelled,
    }
}

fn play(seed: u64) {
    let mut rng = Rng::new(seed);
    let nodes = graph(&mut rng);
    let roots: Vec<usize> =
        (0..nodes.len()).filter(|n| nodes[*n].triggered || rng.chance(15)).collect();
    let bench = Bench::new(specs(&nodes));
    let mut pair = Pair { bench, oracle: Oracle::new(nodes) };
    for step in 0..25 {
        let what = format!("seed {seed}, step {step}");
        let of = |state: State, oracle: &Oracle| -> Vec<usize> {
            (0..oracle.items.len()).filter(|i| oracle.items[*i].state == state).collect()
        };
        match rng.below(10) {
            0..3 => {
                let root = *rng.pick(&roots).unwrap();
                // A submission of a derived RUN task is a run of its own in the engine alone.
                let derived_run =
                    pair.oracle.nodes[root].by_run && !pair.oracle.nodes[root].triggered;
                if !derived_run {
                    pair.create(root, usize::try_from(rng.below(2)).unwrap());
                }
            }
            3..8 => {
                let Some(&item) = rng.pick(&of(State::Ready, &pair.oracle)) else { continue };
                let good = rng.chance(65);
                let instance = pair.instance(item);
                pair.bench.exits(&instance, if good { 0 } else { 1 });
                pair.oracle.becomes(item, if good { State::Succeeded } else { State::Failed });
            }
            8 => {
                let Some(&item) = rng.pick(&of(State::Failed, &pair.oracle)) else { continue };
                let instance = pair.instance(item);
                pair.bench.retry(&instance).unwrap();
                pair.oracle.becomes(item, State::Ready);
            }
            _ => {
                let waiting: Vec<usize> =
                    [of(State::Pending, &pair.oracle), of(State::Blocked, &pair.oracle)].concat();
                let Some(&item) = rng.pick(&waiting) else { continue };
                let instance = pair.instance(item);
                pair.bench.cancel(&instance).0.unwrap();
                pair.oracle.becomes(item, State::Cancelled);
            }
        }
        pair.same(&what);
    }
}

#[test]
fn engine_and_model_agree_on_random_graphs() {
    for seed in 0..250 {
        play(seed);
    }
}
