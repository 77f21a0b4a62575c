//! The plainest definition and the plainest instance, for the tests of every layer.
//!
//! A test names the fields it is about (`TaskSpec { nice: Some(5), ..spec(&id) }`), so that a new
//! field of either noun has one place to be added for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::model::cycle::Cycle;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Cause, Instance, InstanceState};
use crate::model::priority::Priority;
use crate::model::spec::{
    JsonMap, Limits, LogLimits, OnDependencyTimeout, OnUpstream, RetryPolicy, TaskSpec,
};
use crate::model::time::Timestamp;

/// A plain idempotent shell task: no triggers, no dependencies, every other key left out.
pub(crate) fn spec(of: &TaskId) -> TaskSpec {
    TaskSpec {
        task_id: of.clone(),
        version: of.version(),
        owner: "ops".to_owned(),
        name: None,
        description: None,
        labels: BTreeMap::new(),
        task_type: "SHELL".to_owned(),
        handler: "true".to_owned(),
        args: Vec::new(),
        static_params: JsonMap::new(),
        runtime_params: BTreeMap::new(),
        python: None,
        spark: None,
        flink: None,
        slurm: None,
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
        queue: "default".into(),
        preemptible: false,
        max_concurrent: None,
        executor_labels: BTreeMap::new(),
        enabled: true,
        rollout: None,
        retention: None,
    }
}

/// The root instance of this id, without edges and attempts, made at `made` for the cycle 2026-11-30.
pub(crate) fn instance(
    instance_id: InstanceId,
    of: &TaskId,
    state: InstanceState,
    made: Timestamp,
) -> Instance {
    Instance {
        root: instance_id.clone(),
        instance_id,
        created_seq: 1,
        task_id: of.clone(),
        version: of.version(),
        revision: 1,
        state,
        reason: None,
        attempt: 0,
        max_attempts: 1,
        faults: 0,
        requeues: 0,
        preemptions: 0,
        spawn_retries: 0,
        cycle: Cycle::parse("2026-11-30").unwrap(),
        scheduled_time: made,
        trigger: Cause::Boot,
        priority: Priority::NORMAL,
        queue: "default".into(),
        executor_id: None,
        created_at: made,
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
        static_params: Arc::new(JsonMap::new()),
        given_params: Arc::default(),
        runtime_params: Arc::default(),
        output: None,
        outputs: None,
        edges: Arc::default(),
        ignore_deps: false,
        degraded: false,
        paused: None,
        stopping: None,
        cancelled_by: None,
        awaits_upstream: false,
        dedup_key: None,
        dependency_deadline: None,
        held_since: None,
        expires_at: None,
        attempts: Vec::new(),
    }
}
