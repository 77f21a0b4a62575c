//! What the tests of this room share: an assignment, and a stretch of an executor's life.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::wire::Assignment;
use crate::model::command::Dispatch;
use crate::model::cycle::Cycle;
use crate::model::event::AttemptRef;
use crate::model::id::{ExecutorId, InstanceId, Lease, QueueName, TaskId};
use crate::model::instance::{Cause, Instance, InstanceState};
use crate::model::priority::Priority;
use crate::model::request::StopMode;
use crate::model::settings::{ExecutorSettings, Settings};
use crate::model::spec::{
    Limits, LogLimits, OnDependencyTimeout, OnUpstream, RetryPolicy, TaskSpec,
};
use crate::model::template::Template;
use crate::model::time::Timestamp;

/// A name that no other test's processes have.
pub(super) fn unique(what: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{what}{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A shell script's assignment, with all files below `dir`.
pub(super) fn assignment_in(dir: &Path, script: &str) -> Assignment {
    let instance = unique("i");
    Assignment {
        of: AttemptRef {
            instance_id: InstanceId::from_text(&instance),
            attempt: 1,
            lease: Lease(1),
        },
        task_id: TaskId::parse("t.t.v1").unwrap(),
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned(), "sh".to_owned()],
        env: BTreeMap::from([
            ("SCHED_INSTANCE_ID".to_owned(), instance),
            ("SCHED_ATTEMPT".to_owned(), "1".to_owned()),
            ("DIR".to_owned(), dir.to_str().unwrap().to_owned()),
            ("SCHED_RESULT".to_owned(), dir.join("result").to_str().unwrap().to_owned()),
        ]),
        cwd: Some("/".to_owned()),
        user: None,
        group: None,
        umask: None,
        nice: None,
        limits: Limits::default(),
        timeout: None,
        kill_grace: Duration::from_secs(10),
        log_path: dir.join("log/t.t.v1/a.log"),
        log_bytes_max: 1 << 20,
        result_path: dir.join("result"),
    }
}

/// Whoever reaps takes every child of the process, so only one test may do that at a time.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dispatch of a task to executor `local`.
pub(super) fn dispatch(task_type: &str, handler: &str, args: &[&str]) -> Dispatch {
    let task_id = TaskId::parse("order.settle.v2").unwrap();
    let of = AttemptRef {
        instance_id: InstanceId::from_text(&unique("i")),
        attempt: 1,
        lease: Lease(1),
    };
    let spec = spec(task_id.clone(), task_type, handler, args);
    Dispatch {
        executor: ExecutorId::from("local"),
        instance: instance(&of, task_id),
        of,
        spec: Arc::new(spec),
        timezone: "Asia/Shanghai".to_owned(),
        deps: serde_json::json!({}),
        settings: Arc::new(settings(Duration::from_secs(5))),
    }
}

/// Settings with one executor.
pub(super) fn settings(heartbeat: Duration) -> Settings {
    Settings {
        timezone: "UTC".to_owned(),
        executors: vec![ExecutorSettings {
            id: ExecutorId::from("local"),
            task_types: vec!["*".to_owned()],
            labels: BTreeMap::new(),
            slots: 4,
        }],
        queues: Vec::new(),
        task_types: BTreeMap::new(),
        owner_quota: BTreeMap::new(),
        retention_days: 1,
        retention_instances: 1,
        on_stop: StopMode::Handover,
        heartbeat,
    }
}

fn spec(task_id: TaskId, task_type: &str, handler: &str, args: &[&str]) -> TaskSpec {
    TaskSpec {
        task_id,
        version: 2,
        owner: "o".to_owned(),
        name: None,
        description: None,
        labels: BTreeMap::new(),
        task_type: task_type.to_owned(),
        handler: handler.to_owned(),
        args: args.iter().map(|a| Template::parse(a).unwrap()).collect(),
        static_params: serde_json::Map::new(),
        runtime_params: BTreeMap::new(),
        env: BTreeMap::new(),
        working_dir: None,
        user: None,
        group: None,
        umask: None,
        nice: None,
        limits: Limits::default(),
        timeout: None,
        kill_grace: Duration::from_secs(10),
        retry: RetryPolicy::default(),
        exit_codes: BTreeMap::new(),
        idempotent: true,
        dedup_key: None,
        outputs: Vec::new(),
        log: LogLimits::default(),
        triggers: Vec::new(),
        timezone: None,
        cycle: None,
        depends_on: Vec::new(),
        on_upstream: OnUpstream::Each,
        dependency_timeout: None,
        on_dependency_timeout: OnDependencyTimeout::Cancel,
        priority: Priority::NORMAL,
        queue: QueueName::from("default"),
        preemptible: false,
        max_concurrent: None,
        executor_labels: BTreeMap::new(),
        enabled: true,
    }
}

fn instance(of: &AttemptRef, task_id: TaskId) -> Instance {
    Instance {
        instance_id: of.instance_id.clone(),
        created_seq: 1,
        task_id,
        version: 2,
        revision: 1,
        state: InstanceState::Running,
        reason: None,
        attempt: of.attempt,
        max_attempts: 1,
        faults: 0,
        requeues: 0,
        spawn_retries: 0,
        cycle: Cycle::parse("2026-11-30").unwrap(),
        scheduled_time: Timestamp::parse("2026-11-30T02:00:00+08:00").unwrap(),
        trigger: Cause::Submit { uid: 0 },
        root: of.instance_id.clone(),
        priority: Priority::NORMAL,
        queue: QueueName::from("default"),
        executor_id: None,
        created_at: Timestamp::default(),
        not_before: None,
        ready_at: None,
        ready_seq: 0,
        started_at: None,
        finished_at: None,
        next_retry_at: None,
        exit_code: None,
        signal: None,
        error_code: None,
        message: None,
        static_params: Arc::default(),
        given_params: serde_json::Map::new(),
        runtime_params: serde_json::Map::new(),
        output: None,
        edges: Vec::new(),
        ignore_deps: false,
        degraded: false,
        paused: None,
        stopping: None,
        dedup_key: None,
        dependency_deadline: None,
        attempts: Vec::new(),
    }
}
