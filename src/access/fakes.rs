//! A core and a store for the tests of this room: canned answers, remembered questions.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use axum::Router;
use serde_json::json;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::model::history::{History, HistoryError, InstanceFilter};
use crate::model::id::{InstanceId, LogSeq, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::record::{Fire, LogRecord, Record, Revision};
use crate::model::request::{
    Answer, Ask, Caller, FileChange, Rejection, RejectionCode, Reloaded, Reply, Request, RequestKey,
};
use crate::model::time::Timestamp;

use super::routes;
use super::state::{App, Shared};

/// The daemon's user in tests.
pub(super) const OWN: Caller = Caller { uid: 1000, gid: 1000, pid: 1, key: None };

/// The spec directory in tests; nothing is there.
pub(super) const SPECS: &str = "/srv/sched.d";

type Answering = dyn Fn(&Request) -> Answer + Send + Sync;

/// Answers by a function and remembers what it was asked, but for `Live`.
pub(super) struct FakeCore {
    pub(super) asked: Mutex<Vec<Request>>,
    keys: Mutex<Vec<Option<RequestKey>>>,
    pub(super) changed: Mutex<Vec<FileChange>>,
    /// Why the spec directory cannot be read.
    pub(super) unreadable: Mutex<Option<String>>,
    answer: Box<Answering>,
}

impl FakeCore {
    pub(super) fn new(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            asked: Mutex::default(),
            keys: Mutex::default(),
            changed: Mutex::default(),
            unreadable: Mutex::default(),
            answer: Box::new(answer),
        })
    }

    /// Says "done" to orders and knows nothing else.
    pub(super) fn obedient() -> Arc<Self> {
        Self::new(|request| {
            if let Request::Live(_) = request {
                return Ok(Reply::Live(Vec::new()));
            }
            if let Request::Task(task) = request {
                return Err(Rejection::new(RejectionCode::NotFound, format!("no task {task}")));
            }
            Ok(Reply::Done)
        })
    }

    /// The key of each request, questions included.
    pub(super) fn keys(&self) -> Vec<Option<RequestKey>> {
        self.keys.lock().unwrap().clone()
    }

    pub(super) fn orders(&self) -> Vec<Request> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|r| !matches!(r, Request::Live(_))).cloned().collect()
    }
}

impl Ask for FakeCore {
    fn ask(
        &self,
        request: Request,
        caller: Caller,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        let answer = (self.answer)(&request);
        self.asked.lock().unwrap().push(request);
        self.keys.lock().unwrap().push(caller.key);
        Box::pin(async { answer })
    }

    fn reload(&self) -> Pin<Box<dyn Future<Output = Reloaded> + Send + '_>> {
        let unreadable = self.unreadable.lock().unwrap().clone();
        Box::pin(async { Ok(unreadable) })
    }

    fn change_files(
        &self,
        changes: Vec<FileChange>,
        _caller: Caller,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        self.changed.lock().unwrap().extend(changes);
        Box::pin(async { Ok(Reply::Done) })
    }
}

/// Rows and records in memory; `broken`: nothing can be read.
#[derive(Default)]
pub(super) struct FakeHistory {
    pub(super) rows: Mutex<Vec<Instance>>,
    pub(super) log: Mutex<Vec<LogRecord>>,
    pub(super) revisions: Mutex<Vec<Revision>>,
    pub(super) fires: Mutex<Vec<Fire>>,
    pub(super) broken: std::sync::atomic::AtomicBool,
}

impl FakeHistory {
    fn sound(&self) -> Result<(), HistoryError> {
        if self.broken.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(HistoryError("planted".to_owned()));
        }
        Ok(())
    }

    /// Puts a row in the place of the one with its id.
    pub(super) fn put(&self, row: Instance) {
        let mut rows = self.rows.lock().unwrap();
        rows.retain(|r| r.instance_id != row.instance_id);
        rows.push(row);
    }
}

impl History for FakeHistory {
    fn instance(&self, id: &InstanceId) -> Result<Option<Instance>, HistoryError> {
        self.sound()?;
        Ok(self.rows.lock().unwrap().iter().find(|r| r.instance_id == *id).cloned())
    }

    fn ids_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<InstanceId>, HistoryError> {
        self.sound()?;
        let rows = self.rows.lock().unwrap();
        let ids = rows.iter().map(|r| r.instance_id.clone());
        Ok(ids.filter(|id| id.as_str().starts_with(prefix)).take(limit).collect())
    }

    fn instances(&self, filter: &InstanceFilter) -> Result<Vec<Instance>, HistoryError> {
        self.sound()?;
        let mut rows = self.rows.lock().unwrap().clone();
        rows.sort_by_key(|r| std::cmp::Reverse(r.created_seq));
        rows.retain(|r| {
            (filter.states.is_empty() || filter.states.contains(&r.state))
                && filter.task.as_ref().is_none_or(|t| r.task_id == *t)
                && filter.cycle.as_ref().is_none_or(|c| r.cycle.label() == c)
                && filter.queue.as_ref().is_none_or(|q| r.queue.as_str() == q)
                && filter.since.is_none_or(|at| r.created_at >= at)
                && filter.before.is_none_or(|seq| r.created_seq < seq)
        });
        rows.truncate(filter.limit);
        Ok(rows)
    }

    fn records(&self, since: LogSeq, limit: usize) -> Result<Vec<LogRecord>, HistoryError> {
        self.sound()?;
        let log = self.log.lock().unwrap();
        Ok(log.iter().filter(|r| r.seq > since).take(limit).cloned().collect())
    }

    fn tip(&self) -> Result<LogSeq, HistoryError> {
        self.sound()?;
        Ok(self.log.lock().unwrap().last().map_or(LogSeq(0), |r| r.seq))
    }

    fn fires(&self, _task: &TaskId, _limit: usize) -> Result<Vec<Fire>, HistoryError> {
        self.sound()?;
        Ok(Vec::new())
    }

    fn fire_at(
        &self,
        _task: &TaskId,
        triggers: &[String],
        at: Timestamp,
        _rows_max: usize,
    ) -> Result<Option<Fire>, HistoryError> {
        self.sound()?;
        let fires = self.fires.lock().unwrap();
        let counts = |f: &&Fire| f.from <= at && at <= f.to && triggers.contains(&f.trigger);
        Ok(fires.iter().find(counts).cloned())
    }

    fn revisions(&self, task: &TaskId) -> Result<Vec<Revision>, HistoryError> {
        self.sound()?;
        let revisions = self.revisions.lock().unwrap();
        Ok(revisions.iter().filter(|r| r.task_id == *task).cloned().collect())
    }
}

/// A door without a socket.
pub(super) struct House {
    pub(super) core: Arc<FakeCore>,
    pub(super) history: Arc<FakeHistory>,
    pub(super) feed: broadcast::Sender<Arc<LogRecord>>,
    pub(super) stop: CancellationToken,
    pub(super) log_dir: tempfile::TempDir,
}

impl House {
    pub(super) fn new(core: Arc<FakeCore>) -> Self {
        Self {
            core,
            history: Arc::default(),
            feed: broadcast::channel(4).0,
            stop: CancellationToken::new(),
            log_dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn app(&self) -> App {
        let (ask, history) = (Arc::clone(&self.core), Arc::clone(&self.history));
        Arc::new(Shared {
            ask,
            history,
            feed: self.feed.clone(),
            log_dir: self.log_dir.path().to_owned(),
            spec_dir: SPECS.into(),
            spec_context: Arc::default(),
            now: Arc::new(|| Timestamp::parse("2026-11-30T12:00:00Z").unwrap()),
            stop: self.stop.clone(),
            own_uid: OWN.uid,
        })
    }

    pub(super) fn router(&self) -> Router {
        routes::router(self.app())
    }

    /// Makes a record durable, then tells the feed, as the daemon does.
    pub(super) fn record(&self, record: &LogRecord) {
        self.history.log.lock().unwrap().push(record.clone());
        // Nobody may be listening.
        drop(self.feed.send(Arc::new(record.clone())));
    }

    pub(super) fn write_log(&self, row: &Instance, attempt: u32, text: &str) {
        use std::io::Write;
        let directory = self.log_dir.path().join(row.task_id.as_str());
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join(format!("{}.{attempt}.log", row.instance_id));
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

/// A record that says nothing much, at one second after the epoch per position.
pub(super) fn note(seq: u64) -> LogRecord {
    LogRecord {
        seq: LogSeq(seq),
        at: Timestamp::from_millis(i64::try_from(seq).unwrap() * 1000),
        uid: None,
        what: Record::DaemonStopping,
    }
}

/// A move of this row.
pub(super) fn moved(seq: u64, row: &Instance, from: InstanceState) -> LogRecord {
    let what = Record::Moved {
        instance_id: row.instance_id.clone(),
        task_id: row.task_id.clone(),
        from,
        to: row.state,
        reason: None,
        attempt: row.attempt,
        executor_id: None,
        error_code: None,
        next_retry_at: None,
        is_final: !row.is_open(),
    };
    LogRecord { what, ..note(seq) }
}

/// A row, by its stored form.
pub(super) fn row(id: &str, seq: u64, task: &str, state: InstanceState, attempt: u32) -> Instance {
    let at = "2026-11-30T02:00:00.000Z";
    let cycle = crate::model::cycle::Cycle::parse("2026-11-30").unwrap();
    let mut stored = json!({
        "instanceId": id, "createdSeq": seq, "taskId": task, "version": 1, "revision": 1,
        "state": state, "reason": null, "attempt": attempt, "maxAttempts": 3, "faults": 0,
        "requeues": 0, "spawnRetries": 0, "cycle": cycle, "scheduledTime": at,
        "trigger": {"kind": "submit", "uid": 1000}, "root": id, "priority": 4, "queue": "default",
        "executorId": null, "createdAt": at, "notBefore": null, "readyAt": null, "readySeq": 0,
        "startedAt": null, "finishedAt": null, "nextRetryAt": null, "exitCode": null,
        "signal": null, "errorCode": null, "message": null, "staticParams": {},
        "givenParams": {}, "runtimeParams": {}, "output": null, "edges": [], "degraded": false,
        "paused": null, "stopping": null, "dedupKey": null, "dependencyDeadline": null,
        "attempts": [],
    });
    stored["ignoreDeps"] = false.into();
    serde_json::from_value(stored).unwrap()
}
