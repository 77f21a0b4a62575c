//! docs/waves.md, rule 6: conditions on edges, and what follows from them.

use serde_json::{Value, json};

use super::bench::Bench;
use super::build::{after, edge, on_event, task};
use crate::model::condition::Condition;
use crate::model::event::{Outcome, Report};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{Blocked, Cancelled, Pending, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::spec::{Dependency, Strength, TaskSpec};

/// A task that goes on only if a condition on `up` holds.
fn gated(name: &str, strength: Strength, when: &str) -> TaskSpec {
    let when = Some(Condition::parse(when).expect("a condition"));
    TaskSpec { depends_on: vec![Dependency { when, ..edge("up", strength) }], ..task(name) }
}

fn bench(gate: TaskSpec) -> Bench {
    let soft = TaskSpec { depends_on: vec![edge("gate", Strength::Weak)], ..task("soft") };
    Bench::new(vec![on_event("up", "go"), gate, after("hard", &["gate"]), soft])
}

/// The upstream ends with this status and output.
fn ends(bench: &mut Bench, of: &InstanceId, code: i32, output: Value) {
    let mut done = bench.end(of, Outcome::Exited { code }, false);
    done.result.output = Some(output);
    bench.report(Report::Finished(Box::new(done)));
}

#[test]
fn rule_6_a_condition_that_holds_lets_the_task_start() {
    let mut bench =
        bench(gated("gate", Strength::Strong, "output.rows > 0 && state == 'SUCCEEDED'"));
    let up = bench.emit("go")[0].clone();
    assert_eq!(bench.states("gate"), [Pending]);
    ends(&mut bench, &up, 0, json!({"rows": 3}));
    assert_eq!(bench.states("gate"), [Running]);
    bench.drain();
    assert_eq!((bench.states("hard"), bench.states("soft")), (vec![Succeeded], vec![Succeeded]));
}

#[test]
fn rule_6_one_that_does_not_hold_skips_the_task_and_its_strong_dependents_only() {
    let mut bench = bench(gated("gate", Strength::Strong, "output.rows > 0"));
    let up = bench.emit("go")[0].clone();
    ends(&mut bench, &up, 0, json!({"rows": 0}));
    let (gate, hard) = (bench.of("gate")[0].clone(), bench.of("hard")[0].clone());
    assert_eq!((gate.state, gate.reason), (Cancelled, Some(Reason::ConditionFalse)));
    assert_eq!((hard.state, hard.reason), (Cancelled, Some(Reason::UpstreamSkipped)));
    assert_eq!(bench.states("soft"), [Running]);
}

#[test]
fn rule_6_on_a_weak_edge_any_end_is_asked_about() {
    let mut bench = bench(gated("gate", Strength::Weak, "state == 'FAILED'"));
    let up = bench.emit("go")[0].clone();
    bench.exits(&up, 1);
    assert_eq!(bench.states("gate"), [Running]);
    let up = bench.emit("go")[0].clone();
    bench.exits(&up, 0);
    assert_eq!(bench.states("gate"), [Running, Cancelled]);
    // On a strong one a failure blocks, whatever the condition.
    let mut bench = self::bench(gated("gate", Strength::Strong, "state == 'FAILED'"));
    let up = bench.emit("go")[0].clone();
    bench.exits(&up, 1);
    let gate = bench.of("gate")[0].clone();
    assert_eq!((gate.state, gate.reason), (Blocked, Some(Reason::UpstreamFailed)));
}

#[test]
fn rule_6_a_condition_without_an_answer_blocks_in_words_and_a_better_one_heals_it() {
    let mut bench = bench(gated("gate", Strength::Strong, "output.rows > 0"));
    let up = bench.emit("go")[0].clone();
    ends(&mut bench, &up, 0, json!({"lines": 3}));
    let gate = bench.of("gate")[0].clone();
    assert_eq!((gate.state, gate.reason), (Blocked, Some(Reason::ConditionError)));
    let message = gate.message.expect("words for a person");
    assert!(message.contains("up.v1") && message.contains("output.rows > 0"), "{message}");
    let better = gated("gate", Strength::Strong, "output.lines > 0");
    bench.specs(vec![on_event("up", "go"), better]);
    let gate = bench.of("gate")[0].clone();
    assert_eq!((gate.state, gate.message), (Running, None));
}

#[test]
fn rule_6_parameters_of_the_upstream_can_be_asked_about() {
    let mut bench = bench(gated("gate", Strength::Strong, "'shard' in params"));
    let up = bench.emit("go")[0].clone();
    bench.exits(&up, 0);
    assert_eq!(bench.states("gate"), [Cancelled]);
}
