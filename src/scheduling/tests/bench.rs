//! A bench for tests of single rules: the engine, its rows, one executor moved by hand.
//!
//! After every event an engine loaded from the rows must equal the live one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::command::Command;
use crate::model::event::{
    AttemptRef, Definitions, Event, Finished, Hello, Outcome, Report, Started, TaskResult,
};
use crate::model::id::{ExecutorId, InstanceId, LogSeq, ReplyTo};
use crate::model::instance::{Instance, InstanceState, Reason};
use crate::model::record::{Fire, FireOutcome, LogRecord, Record, Row, RowKey, Target};
use crate::model::request::{Answer, Caller, Reply, Request, RequestKey, SubmitBody};
use crate::model::settings::Settings;
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;
use crate::scheduling::{Engine, Process};

use super::build::{file, full, id, settings};

/// 2026-11-30T00:00:00Z.
pub(crate) const MIDNIGHT: i64 = 1_795_996_800_000;

/// See the module.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) now: Timestamp,
    pub(crate) rows: BTreeMap<RowKey, Row>,
    pub(crate) log: Vec<LogRecord>,
    settings: Arc<Settings>,
    boot: Arc<str>,
    incarnation: u64,
}

impl Bench {
    /// A daemon without definitions, an executor of many slots connected.
    pub(crate) fn bare(settings: Arc<Settings>) -> Self {
        let now = Timestamp::from_millis(MIDNIGHT);
        let boot: Arc<str> = "boot-1".into();
        let engine = Engine::load(Arc::clone(&settings), process(now, &boot), [], LogSeq(0));
        let (rows, log) = (BTreeMap::new(), Vec::new());
        let mut bench = Self { engine, now, rows, log, settings, boot, incarnation: 1 };
        let effects = bench.engine.start(now);
        bench.take(effects);
        let hello = bench.hello();
        bench.event(Event::ExecutorConnected(hello));
        bench
    }

    /// A daemon that has read these definitions, one file each.
    pub(crate) fn new(specs: Vec<TaskSpec>) -> Self {
        let mut bench = Self::bare(settings(&[("local", 100)], &[("default", 1, None)]));
        bench.specs(specs);
        bench
    }

    /// The directory now holds these definitions, one file each.
    pub(crate) fn specs(&mut self, specs: Vec<TaskSpec>) -> Vec<Command> {
        let files = specs.into_iter().map(|s| file(&format!("{}.yaml", s.task_id), vec![s]));
        let files = files.collect();
        self.read(full(files))
    }

    /// The directory was read, and the files that triggers wait for were looked at.
    pub(crate) fn read(&mut self, read: Definitions) -> Vec<Command> {
        let mut commands = self.event(Event::Definitions(read));
        if commands.iter().any(|command| matches!(command, Command::WatchFiles(_))) {
            commands.extend(self.event(Event::FilesRead));
        }
        commands
    }

    /// A connection of the executor's current process that runs nothing.
    pub(crate) fn hello(&self) -> Hello {
        Hello {
            executor: ExecutorId::from("local"),
            incarnation: self.incarnation,
            connection: 0,
            pid: 7,
            boot_id: Arc::clone(&self.boot),
            running: Vec::new(),
            frozen: Some(Vec::new()),
            lost: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Hands one event to the engine, keeps what must be kept, gives what shall be done.
    pub(crate) fn event(&mut self, event: Event) -> Vec<Command> {
        let effects = self.engine.handle(self.now, event);
        self.take(effects)
    }

    fn take(&mut self, effects: crate::model::command::Effects) -> Vec<Command> {
        for (key, row) in effects.commit.rows {
            match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
        self.log.extend(effects.commit.records);
        let rebuilt = self.rebuilt();
        assert_eq!(self.engine.differences(&rebuilt), Vec::<&str>::new(), "live and rebuilt");
        effects.commands
    }

    fn rebuilt(&self) -> Engine {
        let tip = self.log.last().map_or(LogSeq(0), |r| r.seq);
        let rows = self.rows.values().cloned();
        Engine::load(Arc::clone(&self.settings), process(self.now, &self.boot), rows, tip)
    }

    /// The daemon is killed and starts again `after_ms` later, with these definitions.
    pub(crate) fn restart(&mut self, after_ms: i64, specs: Vec<TaskSpec>) -> Vec<Command> {
        self.restart_bare(after_ms);
        self.specs(specs)
    }

    /// The daemon is killed and starts again `after_ms` later, and reads the directory like this.
    pub(crate) fn restart_reading(&mut self, after_ms: i64, read: Definitions) {
        self.restart_bare(after_ms);
        self.read(read);
    }

    /// The daemon is killed and starts again `after_ms` later, and has read nothing yet.
    pub(crate) fn restart_bare(&mut self, after_ms: i64) {
        self.now = Timestamp::from_millis(self.now.as_millis() + after_ms);
        self.engine = self.rebuilt();
        let effects = self.engine.start(self.now);
        self.take(effects);
    }

    /// Lets time pass; each deadline on the way is met at its time.
    pub(crate) fn pass(&mut self, ms: i64) {
        let end = Timestamp::from_millis(self.now.as_millis() + ms);
        while let Some(due) = self.engine.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.event(Event::Tick);
        }
        self.now = end;
    }

    /// Asks as user 1000; the answer, and the other commands.
    pub(crate) fn ask(&mut self, request: Request) -> (Answer, Vec<Command>) {
        self.ask_as(Caller { uid: 1000, gid: 1000, pid: 1, key: None }, request)
    }

    /// Asks as user 1000 under a key.
    pub(crate) fn ask_under(&mut self, key: &str, request: Request) -> Answer {
        let key = Some(RequestKey::of(key));
        self.ask_as(Caller { uid: 1000, gid: 1000, pid: 1, key }, request).0
    }

    fn ask_as(&mut self, caller: Caller, request: Request) -> (Answer, Vec<Command>) {
        let mut commands = self.event(Event::Request { request, caller, reply: ReplyTo(1) });
        let at = commands.iter().position(|c| matches!(c, Command::Reply { .. }));
        let Command::Reply { answer, .. } = commands.remove(at.expect("an answer")) else {
            unreachable!("just found")
        };
        (*answer, commands)
    }

    /// Submits a task.
    pub(crate) fn submit(&mut self, name: &str, body: SubmitBody) -> InstanceId {
        match self.try_submit(name, body) {
            Ok(Reply::Submitted(made)) => made.instance_id,
            other => panic!("{name} was not submitted: {other:?}"),
        }
    }

    /// Submits a task; the answer.
    pub(crate) fn try_submit(&mut self, name: &str, body: SubmitBody) -> Answer {
        let submission = Box::new(body);
        self.ask(Request::Submit { task: id(name), submission }).0
    }

    /// Submits a task with nothing said.
    pub(crate) fn run(&mut self, name: &str) -> InstanceId {
        self.submit(name, SubmitBody::default())
    }

    /// Submits a task for a cycle.
    pub(crate) fn run_for(&mut self, name: &str, cycle: &str) -> InstanceId {
        self.submit(name, SubmitBody { cycle: Some(cycle.to_owned()), ..SubmitBody::default() })
    }

    /// Asks for a cancel, with the stored row as the door does.
    pub(crate) fn cancel(&mut self, of: &InstanceId) -> (Answer, Vec<Command>) {
        let stored = Some(Box::new(self.instance(of).clone()));
        self.ask(Request::Cancel { instance: of.clone(), downstream: false, stored })
    }

    /// Asks for a retry, with the stored row as the door does.
    pub(crate) fn retry(&mut self, of: &InstanceId) -> Answer {
        let stored = Some(Box::new(self.instance(of).clone()));
        self.ask(Request::Retry { instance: of.clone(), same_revision: false, stored, below: None })
            .0
    }

    /// Pauses without end.
    pub(crate) fn pause(&mut self, target: Target) -> Answer {
        self.ask(Request::Pause { target, reason: None, until: None }).0
    }

    /// Tells an event; the instances made.
    pub(crate) fn emit(&mut self, name: &str) -> Vec<InstanceId> {
        let params = crate::model::spec::JsonMap::new();
        match self.ask(Request::Emit { name: name.to_owned(), params }).0 {
            Ok(Reply::Emitted(reply)) => reply.instances,
            other => panic!("{name} was not told: {other:?}"),
        }
    }

    /// The stored row.
    pub(crate) fn instance(&self, of: &InstanceId) -> &Instance {
        let Some(Row::Instance(i)) = self.rows.get(&RowKey::Instance { instance_id: of.clone() })
        else {
            panic!("no instance {of}")
        };
        i
    }

    /// A task's instances in the order of their creation.
    pub(crate) fn of(&self, name: &str) -> Vec<&Instance> {
        let task = id(name);
        let mut found: Vec<&Instance> = self.instances().filter(|i| i.task_id == task).collect();
        found.sort_by_key(|i| i.created_seq);
        found
    }

    /// All instances.
    pub(crate) fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.rows.values().filter_map(
            |row| {
                if let Row::Instance(i) = row { Some(&**i) } else { None }
            },
        )
    }

    /// A task's states in the order of creation.
    pub(crate) fn states(&self, name: &str) -> Vec<InstanceState> {
        self.of(name).iter().map(|i| i.state).collect()
    }

    /// State and reason of one instance.
    pub(crate) fn standing(&self, of: &InstanceId) -> (InstanceState, Option<Reason>) {
        let i = self.instance(of);
        (i.state, i.reason)
    }

    /// The attempt that is on.
    pub(crate) fn attempt(&self, of: &InstanceId) -> AttemptRef {
        let i = self.instance(of);
        let lease = i.lease().expect("it was dispatched");
        AttemptRef { instance_id: of.clone(), attempt: i.attempt, lease }
    }

    /// A process came to be.
    pub(crate) fn started(&mut self, of: &InstanceId) {
        let started = Started { of: self.attempt(of), pid: 77, at: self.now };
        self.report(Report::Started(started));
    }

    /// The newest attempt ended so.
    pub(crate) fn ends(&mut self, of: &InstanceId, outcome: Outcome, killed: bool) -> Vec<Command> {
        let done = self.end(of, outcome, killed);
        self.report(Report::Finished(Box::new(done)))
    }

    /// An end of the newest attempt, not yet reported.
    pub(crate) fn end(&self, of: &InstanceId, outcome: Outcome, killed: bool) -> Finished {
        Finished {
            of: self.attempt(of),
            started_at: Some(self.now),
            finished_at: self.now,
            outcome,
            result: TaskResult::default(),
            killed,
            user_ms: None,
            system_ms: None,
            max_rss_bytes: None,
            output_bytes: None,
        }
    }

    /// The executor reports.
    pub(crate) fn report(&mut self, report: Report) -> Vec<Command> {
        let (executor, incarnation) = (ExecutorId::from("local"), self.incarnation);
        self.event(Event::ExecutorReport { executor, incarnation, report })
    }

    /// It exits with this status.
    pub(crate) fn exits(&mut self, of: &InstanceId, code: i32) {
        self.ends(of, Outcome::Exited { code }, false);
    }

    /// Everything that runs, and that starts because of it, ends well.
    pub(crate) fn drain(&mut self) {
        loop {
            let mut running: Vec<&Instance> =
                self.instances().filter(|i| i.state == InstanceState::Running).collect();
            running.sort_by_key(|i| i.created_seq);
            let Some(first) = running.first().map(|i| i.instance_id.clone()) else { return };
            self.exits(&first, 0);
        }
    }

    /// The executor's process is gone; its next one says this.
    pub(crate) fn executor_restarts(&mut self, lost: Vec<AttemptRef>) -> Vec<Command> {
        let (executor, incarnation) = (ExecutorId::from("local"), Some(self.incarnation));
        self.event(Event::ExecutorLost { executor, incarnation, why: "gone".to_owned() });
        self.incarnation += 1;
        let hello = Hello { lost, ..self.hello() };
        self.event(Event::ExecutorConnected(hello))
    }

    /// The machine was started anew, and with it the executor.
    pub(crate) fn machine_restarts(&mut self) -> Vec<Command> {
        self.boot = "boot-2".into();
        self.executor_restarts(Vec::new())
    }

    /// Ledger rows of a task: outcome and count, oldest first.
    pub(crate) fn fires(&self, name: &str) -> Vec<(FireOutcome, u64)> {
        self.ledger(name).iter().map(|f| (f.outcome, f.count)).collect()
    }

    /// Ledger rows of a task, oldest first.
    pub(crate) fn ledger(&self, name: &str) -> Vec<Fire> {
        let task = id(name);
        let mut rows: BTreeMap<LogSeq, &Fire> = BTreeMap::new();
        for record in &self.log {
            if let Record::Fire(fire) = &record.what {
                rows.insert(record.seq, fire);
            } else if let Record::FireAmended { of, fire } = &record.what {
                rows.insert(*of, fire);
            }
        }
        rows.into_values().filter(|f| f.task_id == task && f.count > 0).cloned().collect()
    }

    /// The wall clock is set to another time.
    pub(crate) fn step(&mut self, by_ms: i64) -> Vec<Command> {
        self.now = Timestamp::from_millis(self.now.as_millis() + by_ms);
        self.event(Event::ClockStepped { by_ms })
    }
}

fn process(now: Timestamp, boot: &Arc<str>) -> Process {
    let (version, boot_id) = ("0.1.0".to_owned(), Arc::clone(boot));
    Process { version, pid: 1, boot_id, started_at: now }
}
