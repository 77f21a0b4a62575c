//! What the tests of this room share: an assignment, and a stretch of an executor's life.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::wire::Assignment;
use crate::model::command::Dispatch;
use crate::model::event::AttemptRef;
use crate::model::fixture as plain;
use crate::model::id::{ExecutorId, InstanceId, Lease, TaskId};
use crate::model::instance::{Cause, Instance, InstanceState};
use crate::model::request::StopMode;
use crate::model::settings::{ExecutorSettings, Settings};
use crate::model::spec::{Limits, TaskSpec};
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
    let spec = TaskSpec {
        task_type: task_type.to_owned(),
        handler: handler.to_owned(),
        args: args.iter().map(|a| Template::parse(a).unwrap()).collect(),
        ..plain::spec(&task_id)
    };
    let scheduled_time = Timestamp::parse("2026-11-30T02:00:00+08:00").unwrap();
    let running = InstanceState::Running;
    let instance = Instance {
        attempt: of.attempt,
        trigger: Cause::Submit { uid: 0 },
        ..plain::instance(of.instance_id.clone(), &task_id, running, scheduled_time)
    };
    Dispatch {
        executor: ExecutorId::from("local"),
        instance: Arc::new(instance),
        of,
        spec: Arc::new(spec),
        timezone: "Asia/Shanghai".to_owned(),
        deps: crate::model::deps::Deps::default(),
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
