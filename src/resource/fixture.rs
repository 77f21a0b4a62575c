//! Things to store, for the tests of this layer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::model::cycle::Cycle;
use crate::model::empty_cycle::EmptyCycle;
use crate::model::event::{FileIdentity, SpecError};
use crate::model::fixture as plain;
use crate::model::id::{ExecutorId, InstanceId, Lease, LogSeq, TaskId};
use crate::model::instance::{
    Attempt, Cause, Edge, Instance, InstanceState, Pause, Reason, Stopping,
};
use crate::model::jump::{Jumps, Skipped, Span};
use crate::model::output::{Found, Outputs};
use crate::model::priority::Priority;
use crate::model::record::{
    Arrival, Batch, Cursor, Fire, FireOutcome, Hold, KeptAnswer, LogRecord, Pin, Record, Revision,
    Row, RowKey, Submission, Target, TaskRow,
};
use crate::model::request::Submitted;
use crate::model::spec::{DepType, JsonMap, Strength, TaskSpec};
use crate::model::time::Timestamp;

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_764_468_000_000 + seconds * 1000)
}

pub(super) fn task(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

/// The id that [`instance`] gives the instance of this creation sequence.
pub(super) fn id(created_seq: u64) -> InstanceId {
    InstanceId::from_text(&format!("{created_seq:020}"))
}

fn object(value: serde_json::Value) -> JsonMap {
    serde_json::from_value(value).unwrap()
}

/// An instance made `created_seq` seconds after the first.
pub(super) fn instance(created_seq: u64, of: &TaskId, state: InstanceState) -> Instance {
    let made = at(i64::try_from(created_seq).unwrap());
    Instance { created_seq, ..plain::instance(id(created_seq), of, state, made) }
}

/// An instance in which nothing is left out.
fn full_instance() -> Instance {
    Instance {
        reason: Some(Reason::Cancelling),
        attempt: 2,
        trigger: Cause::Task {
            task_id: task("up.v1"),
            instance_id: id(1),
            state: InstanceState::Failed,
        },
        executor_id: Some("local".into()),
        not_before: Some(at(1)),
        ready_at: Some(at(2)),
        started_at: Some(at(3)),
        finished_at: Some(at(4)),
        next_retry_at: Some(at(5)),
        exit_code: Some(3),
        signal: Some(9),
        error_code: Some("EXIT_3".to_owned()),
        message: Some("line\nbreak, \"quotes\", ünïcode, \0".to_owned()),
        static_params: Arc::new(object(json!({"n": 1, "deep": {"list": [null, true, 1.5e-7]}}))),
        given_params: Arc::new(object(json!({"x": 0.1, "big": u64::MAX, "small": i64::MIN}))),
        // Not read back exactly without serde_json's `float_roundtrip`.
        runtime_params: Arc::new(object(json!({"y": 0.907_303_832_202_868_9_f64}))),
        output: Some(json!({"rows": 12})),
        outputs: Some(Arc::new(Outputs {
            since: at(3),
            paths: vec!["/out/a".to_owned()],
            problem: Some("none".to_owned()),
            found: Some(Found { at: at(4), files: vec![identity()] }),
        })),
        edges: Arc::new(vec![Edge {
            task_id: task("up.v1"),
            dep_type: DepType::DataReady,
            strength: Strength::Weak,
            instance_id: Some(id(1)),
            cycle_offset: -1,
            unanswered: true,
        }]),
        degraded: true,
        paused: Some(pause()),
        stopping: Some(Stopping::Replace),
        cancelled_by: Some(1000),
        awaits_upstream: true,
        dedup_key: Some("k".to_owned()),
        dependency_deadline: Some(at(6)),
        held_since: Some(at(5)),
        expires_at: Some(at(7)),
        attempts: vec![Attempt {
            attempt: 1,
            lease: Lease(7),
            executor_id: "local".into(),
            boot_id: "boot".into(),
            started_at: Some(at(3)),
            finished_at: None,
            exit_code: None,
            signal: None,
            error_code: None,
            user_ms: Some(1),
            system_ms: Some(2),
            max_rss_bytes: Some(3),
            output_bytes: Some(4),
            frozen_ms: Some(5),
        }],
        ..instance(2, &task("full.v3"), InstanceState::Running)
    }
}

const fn identity() -> FileIdentity {
    FileIdentity { device: 1, inode: u64::MAX, size: 3, mtime_ns: i64::MIN }
}

pub(super) fn pause() -> Pause {
    Pause { since: at(0), uid: 1000, reason: Some("lunch".to_owned()), until: Some(at(60)) }
}

pub(super) fn revision(of: &TaskId, number: u64) -> Revision {
    Revision {
        task_id: of.clone(),
        revision: number,
        hash: format!("h{number}"),
        loaded_at: at(0),
        file: "/specs/a.yaml".to_owned(),
        uid: Some(1000),
        spec: Arc::new(spec(of)),
    }
}

/// A definition with one of each kind of value that a plain one leaves out.
fn spec(of: &TaskId) -> TaskSpec {
    TaskSpec {
        labels: BTreeMap::from([("line".to_owned(), "trade".to_owned())]),
        umask: Some(0o022),
        nice: Some(-5),
        timeout: Some(Duration::from_secs(30)),
        exit_codes: BTreeMap::from([(75, "CONN_RESET".to_owned())]),
        max_concurrent: Some(1),
        ..plain::spec(of)
    }
}

pub(super) fn fire(of: &TaskId, second: i64) -> Record {
    Record::Fire(ledger_row(of, second))
}

fn ledger_row(of: &TaskId, second: i64) -> Fire {
    Fire {
        task_id: of.clone(),
        trigger: "cron:* * * * *:".to_owned(),
        from: at(second),
        to: at(second),
        count: 1,
        outcome: FireOutcome::Missed,
        reason: Some("down".to_owned()),
        instance_id: None,
    }
}

pub(super) fn cursor(of: &TaskId, trigger: &str, second: i64) -> Row {
    Row::Cursor(Cursor { task_id: of.clone(), trigger: trigger.to_owned(), handled_to: at(second) })
}

pub(super) fn hold(target: Target) -> Row {
    Row::Hold(Hold { target, pause: pause() })
}

/// A batch of these records, numbered from after `tip`, and these rows.
pub(super) fn batch(tip: LogSeq, records: Vec<Record>, rows: Vec<Row>) -> Batch {
    let records = (tip.0 + 1..)
        .zip(records)
        .map(|(seq, what)| LogRecord { seq: LogSeq(seq), at: at(0), uid: None, what })
        .collect();
    Batch { records, rows: rows.into_iter().map(|row| (row.key(), Some(row))).collect() }
}

/// One log entry and one new instance of this number, as the `number`th batch after nothing.
pub(super) fn numbered(number: u64) -> Batch {
    let new = instance(number, &task("a.v1"), InstanceState::Pending);
    batch(LogSeq(number - 1), vec![created(&new)], vec![Row::Instance(Arc::new(new))])
}

pub(super) fn created(new: &Instance) -> Record {
    Record::Created {
        instance_id: new.instance_id.clone(),
        task_id: new.task_id.clone(),
        cycle: new.cycle.label().to_owned(),
        trigger: new.trigger.kind().to_owned(),
    }
}

/// Every kind of record and row, and a row that goes.
pub(super) fn one_of_each() -> Batch {
    let a = task("a.v1");
    let executor = ExecutorId::from("local");
    let moved = Record::Moved {
        instance_id: id(1),
        task_id: a.clone(),
        from: InstanceState::Running,
        to: InstanceState::Failed,
        reason: Some(Reason::RetryWait),
        attempt: 1,
        executor_id: Some(executor.clone()),
        error_code: Some("EXIT_1".to_owned()),
        next_retry_at: Some(at(9)),
        is_final: false,
    };
    let refused = SpecError {
        file: "/specs/b.yaml".to_owned(),
        line: 3,
        column: 4,
        path: "retry.maxAttempts".to_owned(),
        message: "is -1".to_owned(),
    };
    let file = "/specs/a.yaml".to_owned();
    let targets = [
        Target::Instance(id(1)),
        Target::Task(a.clone()),
        Target::Queue("default".into()),
        Target::All,
    ];
    let mut records = vec![
        created(&full_instance()),
        moved,
        Record::Started { instance_id: id(1), task_id: a.clone(), attempt: 1, pid: 42 },
        Record::Updated { instance_id: id(1), task_id: a.clone(), what: "edges".to_owned() },
        fire(&a, 5),
        Record::FireAmended { of: LogSeq(5), fire: ledger_row(&a, 5) },
        Record::ClockStepped { by_ms: -3_600_000 },
        Record::DefinitionLoaded { task_id: a.clone(), revision: 2, file: file.clone() },
        Record::DefinitionRemoved { task_id: a.clone(), file },
        Record::DefinitionPinned { task_id: a.clone(), revision: 1 },
        Record::DefinitionUnpinned { task_id: a.clone(), revision: 1, why: "asked".to_owned() },
        Record::DefinitionRefused(refused),
        Record::Emitted { name: "orders".to_owned(), instances: 2 },
        Record::ExecutorConnected { executor_id: executor.clone(), incarnation: 1, pid: 43 },
        Record::ExecutorLost { executor_id: executor, why: "silent".to_owned() },
        Record::DaemonStarted { version: "0.1.0".to_owned(), pid: 44 },
        Record::DaemonStopping,
    ];
    for target in &targets {
        records.push(Record::Paused { target: target.clone(), pause: pause() });
        records.push(Record::Resumed { target: target.clone() });
        records.push(Record::PriorityChanged { target: target.clone(), priority: None });
    }
    let mut rows = vec![
        Row::Instance(Arc::new(full_instance())),
        Row::Revision(revision(&a, 2)),
        Row::Task(TaskRow {
            task_id: a.clone(),
            revision: Some(2),
            file: "/etc/sched.d/a.yaml".to_owned(),
            created_at: at(0),
            revisions: 2,
            newest_hash: Some("h2".to_owned()),
            paused: Some(pause()),
            priority: Priority::new(0),
            pinned: Some(Pin { revision: 3, ignored: "h3".to_owned(), at: at(8), uid: 1000 }),
        }),
        cursor(&a, "every:1000", 7),
        Row::Arrival(Arrival {
            task_id: a.clone(),
            pattern: "/in/*.csv".to_owned(),
            path: "/in/x.csv".to_owned(),
            identity: identity(),
            gone_at: Some(at(9)),
        }),
        Row::Submission(Submission {
            key: "1000/k".to_owned(),
            at: at(0),
            order: "0f".to_owned(),
            answer: KeptAnswer::Submitted(Submitted {
                instance_id: id(1),
                open_in_cycle: vec![id(2)],
                repeated: false,
            }),
        }),
    ];
    rows.extend(targets.map(hold));
    rows.push(Row::Jumps(Jumps {
        task_id: a.clone(),
        trigger: "every:1000".to_owned(),
        since: at(1),
        skipped: vec![Skipped { seq: LogSeq(5), fire: ledger_row(&a, 5), but: Vec::new() }],
        done: vec![Span { after: at(6), to: at(9) }],
    }));
    rows.push(Row::EmptyCycle(EmptyCycle {
        task_id: a,
        cycle: Cycle::parse("2026-11-30T14").unwrap(),
        first: at(6),
        last: at(9),
        outcome: FireOutcome::Missed,
        reason: Some("due while no daemon ran".to_owned()),
    }));
    let mut batch = batch(LogSeq(0), records, rows);
    batch.rows.insert(RowKey::Instance { instance_id: id(99) }, None);
    batch
}
