//! What the tests of this room share: an assignment, and a stretch of an executor's life.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::wire::Assignment;
use crate::model::event::AttemptRef;
use crate::model::id::{InstanceId, Lease, TaskId};
use crate::model::spec::Limits;

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
