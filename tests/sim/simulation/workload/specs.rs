//! One random definition, and random changes of it. Whatever is written can be started: some
//! executor offers the type and the labels that it asks for.

use std::time::Duration;

use super::name;
use crate::build::{self, every, on};
use crate::model::condition::Condition;
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::id::QueueName;
use crate::model::instance::InstanceState;
use crate::model::params::{ParamSchema, ParamType};
use crate::model::priority::Priority;
use crate::model::spec::{
    Backoff, DepType, FileTrigger, Misfire, OnDependencyTimeout, Overlap, Strength, TaskSpec,
    TaskTrigger, TriggerKind,
};
use crate::model::template::Template;
use crate::rng::Rng;

/// Whether the task of this number may be started again by itself: the same in all its revisions.
fn idempotent(n: u64) -> bool {
    n % 3 != 1
}

pub(super) fn spec(rng: &mut Rng, n: u64) -> TaskSpec {
    let mut spec = build::task(&name(n));
    for upstream in 0..n {
        if rng.chance(if n > 4 { 25 } else { 40 }) {
            let strength = if rng.chance(25) { Strength::Weak } else { Strength::Strong };
            let mut edge = build::edge(&name(upstream), strength);
            edge.when = rng.chance(15).then(|| condition(rng));
            if rng.chance(20) {
                edge.dep_type = DepType::DataReady;
            }
            spec.depends_on.push(edge);
        }
    }
    parameters(rng, &mut spec);
    if spec.depends_on.is_empty() || rng.chance(12) {
        triggers(rng, &mut spec, n);
    }
    spec.idempotent = idempotent(n);
    if rng.chance(40) {
        spec.outputs.extend(Template::parse(&format!("/out/{n}/{{cycle}}")));
    }
    if rng.chance(10) {
        spec.dedup_key = Template::parse("{cycle}").ok();
    }
    if spec.idempotent {
        retries(rng, &mut spec);
    }
    dress(rng, &mut spec);
    spec
}

/// The conditions that edges have; the checker knows by hand what they mean.
pub(crate) const CONDITIONS: [&str; 3] = ["output.n > 4", "state == 'SUCCEEDED'", "params.n > 2"];

fn condition(rng: &mut Rng) -> Condition {
    Condition::parse(rng.pick(&CONDITIONS).unwrap()).unwrap()
}

fn parameters(rng: &mut Rng, spec: &mut TaskSpec) {
    if rng.chance(50) {
        return;
    }
    let default = rng.chance(40).then(|| rng.below(10).into());
    let required = default.is_none() && rng.chance(70);
    let n = ParamSchema { kind: ParamType::Int, required, default, ..build::needed_text() };
    spec.runtime_params.insert("n".to_owned(), n);
}

fn retries(rng: &mut Rng, spec: &mut TaskSpec) {
    let wait = Duration::from_secs(1 + rng.below(20));
    spec.retry = build::retry(1 + u32::try_from(rng.below(3)).unwrap_or(0), wait);
    if rng.chance(30) {
        spec.retry.retry_on = Some(vec!["EXIT_1".to_owned(), "TIMEOUT".to_owned()]);
    }
    if rng.chance(40) {
        spec.retry.backoff = Backoff::Exponential;
        spec.retry.max_interval = Duration::from_secs(25);
    }
    if rng.chance(20) {
        spec.retry.jitter = 0.5;
    }
}

fn triggers(rng: &mut Rng, spec: &mut TaskSpec, n: u64) {
    let mut whole_day = 60;
    match rng.below(8) {
        0..=2 => {
            let misfire = *rng.pick(&[Misfire::Skip, Misfire::RunOnce, Misfire::RunAll]).unwrap();
            let overlap = *rng
                .pick(&[Overlap::Skip, Overlap::Queue, Overlap::Replace, Overlap::Allow])
                .unwrap();
            let periods = [7, 10, 15, 20, 30];
            spec.triggers = vec![every(*rng.pick(&periods).unwrap(), misfire, overlap)];
            if rng.chance(30) {
                let second = every(*rng.pick(&[12, 25, 40]).unwrap(), misfire, overlap);
                spec.triggers.push(second);
            }
            for trigger in &mut spec.triggers {
                if let TriggerKind::Every(timed) = &mut trigger.when {
                    // A clock set forward by days makes up for little, or a run would have no end.
                    timed.policy.catch_up = Duration::from_secs(30 + rng.below(90));
                }
            }
            let unit = if rng.chance(30) { CycleUnit::Minute } else { CycleUnit::Day };
            spec.cycle = Some(CycleRule { unit, offset: 0 });
            whole_day = 0;
        }
        3 => {
            let event = format!("event{}", rng.below(2));
            spec.triggers = vec![on(TriggerKind::Event(event))];
        }
        4 => {
            spec.triggers = vec![on(TriggerKind::File(FileTrigger {
                pattern: format!("/in/{}", rng.below(2)),
                settle: Duration::from_millis(50),
                poll: None,
            }))];
        }
        5 if n > 0 => {
            let states = if rng.chance(50) {
                TaskTrigger::STATES.to_vec()
            } else {
                vec![InstanceState::Succeeded, InstanceState::Cancelled]
            };
            let task_id = build::id(&name(rng.below(n)));
            spec.triggers = vec![on(TriggerKind::Task(TaskTrigger { task_id, states }))];
        }
        _ => {}
    }
    if !spec.triggers.is_empty() && rng.chance(whole_day) {
        spec.cycle = Some(CycleRule::DAY);
    }
    // Mostly what is needed, sometimes not, rarely what nobody declared.
    let usual = if spec.runtime_params.contains_key("n") { 85 } else { 2 };
    for trigger in &mut spec.triggers {
        if rng.chance(usual) {
            trigger.params.insert("n".to_owned(), rng.below(10).into());
        }
    }
}

/// What may differ between two revisions of a task.
fn dress(rng: &mut Rng, spec: &mut TaskSpec) {
    spec.queue = QueueName::from(match rng.below(10) {
        0..=2 => "side",
        3 | 4 => "night",
        _ => "default",
    });
    spec.owner = (*rng.pick(&["ops", "ops", "trade"]).unwrap()).to_owned();
    spec.task_type = (if rng.chance(20) { "PYTHON" } else { "SHELL" }).to_owned();
    let zone = match rng.below(6) {
        0 => Some("a"),
        // What PYTHON asks for only the other one offers.
        1 if spec.task_type == "SHELL" => Some("b"),
        _ => None,
    };
    spec.executor_labels.clear();
    spec.executor_labels.extend(zone.map(|zone| ("zone".to_owned(), zone.to_owned())));
    spec.priority =
        Priority::new(u8::try_from(rng.below(10)).unwrap_or(0)).unwrap_or(Priority::NORMAL);
    spec.max_concurrent = *rng.pick(&[Some(1), Some(1), Some(2), Some(3), None]).unwrap();
    spec.preemptible = spec.may_run_again() && rng.chance(35);
    spec.enabled = !rng.chance(4);
    spec.dependency_timeout = rng.chance(15).then(|| Duration::from_secs(20 + rng.below(60)));
    spec.on_dependency_timeout =
        if rng.chance(50) { OnDependencyTimeout::Cancel } else { OnDependencyTimeout::RunDegraded };
}

pub(super) fn change(rng: &mut Rng, spec: &mut TaskSpec, tasks: u64) {
    match rng.below(6) {
        0 => {
            // Any task may be named, also one that is not there or that closes a cycle.
            let upstream = name(rng.below(tasks + 1));
            if spec.depends_on.iter().all(|d| d.task_id != build::id(&upstream)) {
                spec.depends_on.push(build::edge(&upstream, Strength::Strong));
            }
        }
        1 => {
            spec.depends_on.pop();
        }
        2 => triggers(rng, spec, tasks),
        3 => {
            spec.runtime_params.clear();
            parameters(rng, spec);
        }
        4 => {
            if let Some(edge) = spec.depends_on.first_mut() {
                edge.when = edge.when.is_none().then(|| condition(rng));
            }
        }
        _ => dress(rng, spec),
    }
}
