//! Short ways to write definitions and settings in tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::fixture;
use crate::model::cron::CronExpr;
use crate::model::cycle::CycleRule;
use crate::model::event::{Definitions, SpecError, SpecFile};
use crate::model::id::{ExecutorId, QueueName, TaskId};
use crate::model::params::{ParamSchema, ParamType};
use crate::model::request::StopMode;
use crate::model::settings::{Discipline, ExecutorSettings, QueueSettings, Settings};
use crate::model::spec::{
    CronTrigger, DepType, Dependency, EveryTrigger, FirePolicy, JsonMap, Misfire, Overlap,
    RetryPolicy, Strength, TaskSpec, Trigger, TriggerKind,
};

/// The id of the task that tests call `name`.
pub(crate) fn id(name: &str) -> TaskId {
    TaskId::parse(&format!("{name}.v1")).expect("a test's task name is a word")
}

/// A plain idempotent task without triggers and without dependencies.
pub(crate) fn task(name: &str) -> TaskSpec {
    fixture::spec(&id(name))
}

/// A task that waits for others.
pub(crate) fn after(name: &str, upstreams: &[&str]) -> TaskSpec {
    let depends_on = upstreams.iter().map(|u| edge(u, Strength::Strong)).collect();
    TaskSpec { depends_on, ..task(name) }
}

/// One edge.
pub(crate) fn edge(upstream: &str, strength: Strength) -> Dependency {
    Dependency {
        task_id: id(upstream),
        dep_type: DepType::Success,
        strength,
        when: None,
        cycle_offset: 0,
    }
}

/// A trigger without parameters.
pub(crate) fn on(when: TriggerKind) -> Trigger {
    Trigger { when, params: JsonMap::new() }
}

/// A fixed-rate trigger.
pub(crate) fn every(seconds: u64, misfire: Misfire, overlap: Overlap) -> Trigger {
    on(TriggerKind::Every(EveryTrigger {
        period: Duration::from_secs(seconds),
        policy: FirePolicy { misfire, overlap, ..FirePolicy::default() },
    }))
}

/// Times of a cron expression, in the task's zone.
pub(crate) fn cron(expr: &str) -> Trigger {
    let expr = CronExpr::parse(expr).expect("a test's expression is one");
    on(TriggerKind::Cron(CronTrigger { expr, timezone: None, policy: FirePolicy::default() }))
}

/// A text parameter that somebody must give.
pub(crate) fn needed_text() -> ParamSchema {
    ParamSchema {
        kind: ParamType::String,
        required: true,
        default: None,
        allowed: Vec::new(),
        min: None,
        max: None,
        pattern: None,
        secret: false,
    }
}

/// A task that a named event starts.
pub(crate) fn on_event(name: &str, event: &str) -> TaskSpec {
    TaskSpec { triggers: vec![on(TriggerKind::Event(event.to_owned()))], ..task(name) }
}

/// A root by submission, of unit DAY.
pub(crate) fn root(name: &str) -> TaskSpec {
    TaskSpec { cycle: Some(CycleRule::DAY), ..on_event(name, &format!("go-{name}")) }
}

/// A retry policy of a fixed wait.
pub(crate) fn retry(max_attempts: u32, wait: Duration) -> RetryPolicy {
    RetryPolicy { max_attempts, interval: wait, ..RetryPolicy::default() }
}

/// A good file.
pub(crate) fn file(path: &str, specs: Vec<TaskSpec>) -> SpecFile {
    let hash = serde_json::to_string(&specs).unwrap_or_default();
    SpecFile {
        path: path.to_owned(),
        hash,
        uid: None,
        specs: specs.into_iter().map(Arc::new).collect(),
        places: Vec::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A file that cannot be read as definitions.
pub(crate) fn broken(path: &str) -> SpecFile {
    let error = SpecError {
        file: path.to_owned(),
        line: 3,
        column: 1,
        path: String::new(),
        message: "is no YAML".to_owned(),
    };
    SpecFile { errors: vec![error], ..file(path, Vec::new()) }
}

/// A full reading of a directory that holds these files.
pub(crate) fn full(files: Vec<SpecFile>) -> Definitions {
    let present = Some(files.iter().map(|f| f.path.clone()).collect());
    Definitions { changed: files, removed: Vec::new(), present, unreadable: None, more: false }
}

/// Executors by id and slots; queues by name, weight and quota.
pub(crate) fn settings(
    executors: &[(&str, u32)],
    queues: &[(&str, u32, Option<u32>)],
) -> Arc<Settings> {
    Arc::new(Settings {
        timezone: "UTC".to_owned(),
        executors: executors
            .iter()
            .map(|(id, slots)| ExecutorSettings {
                id: ExecutorId::from(*id),
                task_types: vec!["*".to_owned()],
                labels: BTreeMap::new(),
                slots: *slots,
            })
            .collect(),
        queues: queues
            .iter()
            .map(|(name, weight, max_running)| QueueSettings {
                name: QueueName::from(*name),
                weight: *weight,
                max_running: *max_running,
                discipline: Discipline::Strict,
            })
            .collect(),
        task_types: BTreeMap::new(),
        owner_quota: BTreeMap::new(),
        retention_days: 30,
        retention_instances: 1000,
        on_stop: StopMode::Handover,
        heartbeat: Duration::from_secs(5),
    })
}
