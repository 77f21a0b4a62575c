//! The simulated world around the production engine: one clock, one store, executors, people,
//! and everything that can go wrong between them. One seed decides all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::build;
use crate::checker::{self, Checker, Rows, Verdict};
use crate::executor::{self, Executor, Phase};
use crate::model::command::{Command, Effects};
use crate::model::event::{
    AttemptRef, Definitions, Event, FileArrival, FileIdentity, Outcome, Report, Started,
};
use crate::model::id::{Lease, LogSeq, QueueName, ReplyTo};
use crate::model::instance::{Cause, Instance, InstanceState};
use crate::model::priority::Priority;
use crate::model::record::{Record, Revision, Row, Target};
use crate::model::request::{Answer, Caller, Reply, Request, RequestKey, SubmitBody};
use crate::model::settings::Settings;
use crate::model::spec::JsonMap;
use crate::model::time::Timestamp;
use crate::rng::Rng;
use crate::scheduling::{Engine, Process};
use crate::workload::{self, Files};

/// 2026-11-30T23:59:00Z: a day ends during every run.
const BEGIN: i64 = 1_795_996_800_000 + (24 * 60 - 1) * 60_000;

/// A fault built into the world on purpose, to prove that the checker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    None,
    /// Reports count whatever their lease.
    NoLeaseCheck,
    /// Now and then a row is not stored.
    LostRow,
    /// Now and then an attempt is sent a second time under a new lease.
    NewLease,
    /// `maxConcurrent` does not reach the engine.
    NoMaxConcurrent,
    /// Commands go out before their commit.
    EarlyCommands,
    /// Now and then a log entry is not stored.
    LostRecord,
    /// Strong edges reach the engine as weak ones.
    WeakEdges,
}

/// How often what goes wrong, in percent; drawn per seed, so that some runs never crash and
/// others do nothing else.
#[derive(Debug)]
struct Swarm {
    crash: u64,
    fault_every: i64,
    op_every: i64,
    executor_dies: u64,
    reboot: u64,
    fail: u64,
    long: u64,
    batch: u64,
    late: i64,
    edits: u64,
    holds: u64,
    cancels: u64,
}

impl Swarm {
    fn random(rng: &mut Rng) -> Self {
        let mut some = |most: u64| if rng.chance(30) { 0 } else { rng.below(most + 1) };
        Self {
            crash: some(4),
            executor_dies: some(50),
            reboot: some(20),
            fail: some(50),
            long: some(30),
            batch: some(60),
            edits: some(25),
            holds: some(20),
            cancels: some(20),
            late: if some(1) == 0 { 0 } else { 400 },
            op_every: 300 + i64::try_from(some(3000)).unwrap_or(0),
            fault_every: 2000 + i64::try_from(some(20_000)).unwrap_or(0),
        }
    }
}

#[derive(Debug)]
enum Message {
    Run(AttemptRef),
    Kill(AttemptRef),
    Forget(AttemptRef),
}

/// What happens at some time.
#[derive(Debug)]
enum Thing {
    ToEngine {
        from: usize,
        epoch: u64,
        event: Event,
    },
    ToExecutor {
        to: usize,
        epoch: u64,
        message: Message,
    },
    Start {
        on: usize,
        incarnation: u64,
        of: AttemptRef,
    },
    End {
        on: usize,
        incarnation: u64,
        of: AttemptRef,
        by_term: bool,
    },
    Connect {
        executor: usize,
        incarnation: u64,
    },
    Revive(usize),
    DaemonUp,
    ReadFiles,
    /// Whoever looks for arrived files has looked once.
    FilesRead,
    Operation,
    Fault,
}

/// What a run was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) hash: u64,
    pub(crate) dispatched: u64,
    pub(crate) crashes: u64,
}

/// See the module.
pub(crate) struct World {
    rng: Rng,
    plant: Plant,
    swarm: Swarm,
    settings: Arc<Settings>,
    files: Files,
    now: i64,
    engine: Option<Engine>,
    /// Handled, not yet durable.
    pending: Effects,
    rows: Rows,
    tip: LogSeq,
    checker: Checker,
    executors: Vec<Executor>,
    agenda: BTreeMap<(i64, u64), Thing>,
    next: u64,
    boots: u64,
    crashes: u64,
    flushes: u64,
    arrivals: u64,
    /// Paths of files that are not there now.
    gone: BTreeSet<String>,
    /// The directory was read since the daemon came up.
    read: bool,
    /// Faults and people have stopped.
    calm: bool,
    /// Files were changed and no reading of that is durable yet.
    edited: bool,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Plant) -> Self {
        let mut rng = Rng::new(seed);
        let swarm = Swarm::random(&mut rng);
        let slots = 1 + u32::try_from(rng.below(3)).unwrap_or(0);
        let quota = rng.chance(60).then_some(1);
        let settings = build::settings(
            &[("e1", slots), ("e2", 2)],
            &[("default", 3, None), ("side", 1, quota)],
        );
        let files = Files::random(&mut rng);
        let mut world = Self {
            rng,
            plant,
            swarm,
            settings,
            files,
            now: BEGIN,
            engine: None,
            pending: Effects::default(),
            rows: Rows::new(),
            tip: LogSeq(0),
            checker: Checker::default(),
            executors: vec![Executor::new("e1"), Executor::new("e2")],
            agenda: BTreeMap::new(),
            next: 0,
            boots: 1,
            crashes: 0,
            flushes: 0,
            arrivals: 0,
            gone: BTreeSet::new(),
            read: false,
            calm: false,
            edited: true,
        };
        world.at(0, Thing::DaemonUp);
        for executor in 0..world.executors.len() {
            world.at(10, Thing::Connect { executor, incarnation: 1 });
        }
        world.at(500, Thing::Operation);
        world.at(3000, Thing::Fault);
        world
    }

    /// Runs the safety phase for `ms`, then the liveness phase.
    pub(crate) fn run(&mut self, ms: i64) -> Result<Summary, String> {
        let end = BEGIN + ms;
        self.play(end)?;
        self.come_to_rest()?;
        self.checker.ledger(self.now)?;
        let Checker { hash, dispatched, .. } = self.checker;
        Ok(Summary { hash, dispatched, crashes: self.crashes })
    }

    fn at(&mut self, delay: i64, thing: Thing) {
        self.next += 1;
        self.agenda.insert((self.now + delay, self.next), thing);
    }

    fn play(&mut self, end: i64) -> Verdict {
        for _ in 0..200_000 {
            let due = self.engine.as_ref().and_then(Engine::next_deadline);
            let thing = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let next = thing.into_iter().chain(due.map(Timestamp::as_millis)).min();
            let Some(next) = next.filter(|at| *at <= end) else {
                if self.is_pending() {
                    // What that sends may still happen before the end.
                    self.flush()?;
                    continue;
                }
                self.now = self.now.max(end);
                return Ok(());
            };
            if next > self.now {
                self.flush()?;
            }
            // A crash in the flush may have changed what is next.
            let due = self.engine.as_ref().and_then(Engine::next_deadline);
            let thing = self.agenda.first_key_value().map_or(i64::MAX, |((at, _), _)| *at);
            if let Some(due) = due.map(Timestamp::as_millis).filter(|due| *due <= thing) {
                let late = self.rng.range(0, self.swarm.late).min(thing.saturating_sub(due));
                self.now = self.now.max(due + if due > self.now { late } else { 0 });
                self.feed(Event::Tick)?;
            } else if let Some(((at, _), thing)) = self.agenda.pop_first() {
                self.now = self.now.max(at);
                self.happen(thing)?;
            }
        }
        Err("no end: 200000 steps".to_owned())
    }

    // The daemon

    fn feed(&mut self, event: Event) -> Verdict {
        if self.engine.is_none() {
            return Ok(());
        }
        let stale = self.is_stale(&event);
        if stale.is_some() {
            // The rows must be exact to judge by.
            self.flush()?;
        }
        let stale = stale.and_then(|_| self.is_stale(&event));
        let event = self.tamper(event);
        let now = Timestamp::from_millis(self.now);
        let Some(engine) = &mut self.engine else { return Ok(()) };
        let effects = engine.handle(now, event);
        if let Some(of) = stale
            && !effects.commit.records.iter().all(|r| matches!(r.what, Record::ExecutorLost { .. }))
        {
            return Err(format!("a report of {of:?}, which is not on, changed something"));
        }
        self.starts_with_its_file(&effects)?;
        self.pending.append(effects);
        if self.plant == Plant::EarlyCommands {
            for command in std::mem::take(&mut self.pending.commands) {
                self.carry_out(command)?;
            }
        }
        if self.rng.chance(self.swarm.batch) { Ok(()) } else { self.flush() }
    }

    /// No first attempt of what was made for a file is decided on while the file is not there,
    /// also if it went while no daemon ran.
    fn starts_with_its_file(&self, effects: &Effects) -> Verdict {
        let decided = |of: &AttemptRef| {
            effects.commit.records.iter().any(|record| {
                matches!(&record.what, Record::Moved { instance_id, to: InstanceState::Running, .. }
                    if *instance_id == of.instance_id)
            })
        };
        for command in &effects.commands {
            if let Command::Run(run) = command
                && let Cause::File { path } = &run.instance.trigger
                && run.of.attempt == 1
                && self.gone.contains(path)
                && decided(&run.of)
            {
                return Err(format!("{} starts without {path}", run.of.instance_id));
            }
        }
        Ok(())
    }

    /// The attempt a report speaks of, if by the rows it is not on.
    fn is_stale(&self, event: &Event) -> Option<AttemptRef> {
        let Event::ExecutorReport { report, .. } = event else { return None };
        let of = match report {
            Report::Started(started) => &started.of,
            Report::Finished(done) => &done.of,
            Report::Heartbeat(_) => return None,
        };
        let on = checker::instance(&self.rows, &of.instance_id).is_some_and(|i| {
            i.state == InstanceState::Running
                && i.attempt == of.attempt
                && i.lease() == Some(of.lease)
        });
        (!on).then(|| of.clone())
    }

    /// Makes what is pending durable, then carries its commands out; or crashes on the way.
    fn flush(&mut self) -> Verdict {
        if self.engine.is_none() || !self.is_pending() {
            return Ok(());
        }
        if self.crashes_now() {
            self.pending = Effects::default();
            self.crash();
            return Ok(());
        }
        let mut effects = std::mem::take(&mut self.pending);
        if self.plant == Plant::LostRecord && self.rng.chance(2) {
            effects.commit.records.pop();
        }
        for (key, row) in &effects.commit.rows {
            if self.plant == Plant::LostRow && self.rng.chance(2) {
                continue;
            }
            match row {
                Some(row) => {
                    let text = serde_json::to_string(row).map_err(|e| e.to_string())?;
                    let back: Row = serde_json::from_str(&text).map_err(|e| e.to_string())?;
                    if back != *row || back.key() != *key {
                        return Err(format!("a row is not the same after JSON: {text}"));
                    }
                    self.rows.insert(key.clone(), back);
                }
                None => {
                    self.rows.remove(key);
                }
            }
        }
        self.tip = effects.commit.records.last().map_or(self.tip, |r| r.seq);
        self.checker.commit(&effects.commit, &self.rows, &self.settings)?;
        self.flushes += 1;
        let crash = self.crashes_now();
        if crash || self.flushes.is_multiple_of(16) {
            let rebuilt = self.load();
            let live = self.engine.as_ref().map(|e| e.differences(&rebuilt)).unwrap_or_default();
            if !live.is_empty() {
                return Err(format!("live and rebuilt differ in {}", live.join(", ")));
            }
        }
        if crash {
            self.crash();
            return Ok(());
        }
        for command in effects.commands {
            self.carry_out(command)?;
        }
        Ok(())
    }

    fn is_pending(&self) -> bool {
        !self.pending.commit.is_empty() || !self.pending.commands.is_empty()
    }

    fn crashes_now(&mut self) -> bool {
        !self.calm && self.rng.chance(self.swarm.crash)
    }

    fn load(&self) -> Engine {
        let process = Process {
            version: "0.1.0".to_owned(),
            pid: 1,
            boot_id: self.boot(),
            started_at: Timestamp::from_millis(self.now),
        };
        Engine::load(Arc::clone(&self.settings), process, self.rows.values().cloned(), self.tip)
    }

    fn boot(&self) -> Arc<str> {
        format!("boot-{}", self.boots).into()
    }

    fn crash(&mut self) {
        self.engine = None;
        self.read = false;
        self.crashes += 1;
        if self.rng.chance(50) {
            self.gone.insert(format!("/in/{}", self.rng.below(2)));
        }
        for executor in 0..self.executors.len() {
            self.executors[executor].disconnect();
            let incarnation = self.executors[executor].incarnation;
            self.at(50, Thing::Connect { executor, incarnation });
        }
        let downtime = if self.rng.chance(30) { 90_000 } else { 2_000 };
        let downtime = self.rng.range(0, downtime);
        self.at(downtime, Thing::DaemonUp);
    }

    fn start(&mut self) -> Verdict {
        let mut engine = self.load();
        let effects = engine.start(Timestamp::from_millis(self.now));
        self.engine = Some(engine);
        self.pending = effects;
        let wait = self.rng.range(0, 100);
        self.at(wait, Thing::ReadFiles);
        Ok(())
    }

    /// The first reading after a start: the files are those read before, so nothing may change.
    fn read_files(&mut self) -> Verdict {
        self.flush()?;
        if self.engine.is_none() || self.read {
            return Ok(());
        }
        let before = self.definitions();
        let reading = self.files.reading();
        let reading = self.planted(reading);
        self.feed_reading(reading)?;
        self.flush()?;
        self.read = self.engine.is_some();
        if self.read && !self.edited && before != self.definitions() {
            return Err("reading unchanged files again changed definitions".to_owned());
        }
        self.edited &= !self.read;
        Ok(())
    }

    fn definitions(&self) -> Vec<Row> {
        let rows = self.rows.values();
        let of_tasks = |r: &&Row| matches!(r, Row::Task(_) | Row::Revision(_));
        let mut found: Vec<Row> = rows.filter(of_tasks).cloned().collect();
        for row in &mut found {
            if let Row::Task(task) = row {
                task.paused = None;
            }
        }
        found
    }

    /// A reading reaches the core in one piece or in parts, with time or a crash between them.
    fn feed_reading(&mut self, mut read: Definitions) -> Verdict {
        while read.changed.len() > 1 && self.rng.chance(40) {
            let most = u64::try_from(read.changed.len() - 1).unwrap_or(1);
            let size = 1 + usize::try_from(self.rng.below(most)).unwrap_or(0);
            let changed = read.changed.drain(..size).collect();
            self.feed(Event::Definitions(Definitions {
                changed,
                more: true,
                ..Definitions::default()
            }))?;
            if self.rng.chance(20) {
                self.flush()?;
            }
            if self.engine.is_none() {
                return Ok(());
            }
        }
        self.feed(Event::Definitions(read))
    }

    // Planted faults

    fn tamper(&mut self, event: Event) -> Event {
        let Event::ExecutorReport { executor, incarnation, report: Report::Finished(mut done) } =
            event
        else {
            return event;
        };
        if self.plant == Plant::NoLeaseCheck
            && let Some(i) = checker::instance(&self.rows, &done.of.instance_id)
            && let Some(lease) = i.lease()
        {
            done.of.attempt = i.attempt;
            done.of.lease = lease;
        }
        Event::ExecutorReport { executor, incarnation, report: Report::Finished(done) }
    }

    /// Definitions as they reach the engine. The checker is given the revisions' rows, so what is
    /// hidden from the engine is told to it apart.
    fn planted(&mut self, mut read: Definitions) -> Definitions {
        if !matches!(self.plant, Plant::NoMaxConcurrent | Plant::WeakEdges) {
            return read;
        }
        for file in &mut read.changed {
            for spec in &mut file.specs {
                let spec = Arc::make_mut(spec);
                if self.plant == Plant::NoMaxConcurrent {
                    if let Some(max) = spec.max_concurrent.take() {
                        self.checker.promise_max(&spec.task_id, max);
                    }
                } else {
                    for edge in &mut spec.depends_on {
                        edge.strength = crate::model::spec::Strength::Weak;
                    }
                    self.checker.promise_strong();
                }
            }
        }
        read
    }

    // Commands

    fn carry_out(&mut self, command: Command) -> Verdict {
        match command {
            Command::Run(dispatch) => {
                self.checker.sent(&dispatch.of, &self.rows)?;
                let to = self.named(dispatch.executor.as_str());
                if self.plant == Plant::NewLease && self.rng.chance(5) {
                    let lease = Lease(dispatch.of.lease.0 + 1);
                    let again = AttemptRef { lease, ..dispatch.of.clone() };
                    self.send(to, Message::Run(again));
                }
                self.send(to, Message::Run(dispatch.of));
            }
            Command::Kill { executor, of } => {
                let to = self.named(executor.as_str());
                self.send(to, Message::Kill(of));
            }
            Command::Acknowledge { executor, of } => {
                let to = self.named(executor.as_str());
                self.send(to, Message::Forget(of));
            }
            Command::Reply { answer, .. } => self.answered(&answer)?,
            Command::WatchFiles(_) => {
                let wait = self.rng.range(0, 100);
                self.at(wait, Thing::FilesRead);
            }
            // No task here declares outputs.
            Command::LookForOutputs { .. } | Command::ForgetOutputs { .. } => {}
            // Nobody freezes anything here.
            Command::Freeze { .. } | Command::Thaw { .. } => {}
            Command::Attach { .. } | Command::Exit(_) => {}
        }
        Ok(())
    }

    fn answered(&mut self, answer: &Answer) -> Verdict {
        if let Ok(Reply::Submitted(made)) = answer
            && checker::instance(&self.rows, &made.instance_id).is_none()
        {
            return Err(format!("{made:?} is acknowledged and not there"));
        }
        Ok(())
    }

    fn named(&self, id: &str) -> usize {
        self.executors.iter().position(|e| e.id.as_str() == id).unwrap_or(0)
    }

    fn send(&mut self, to: usize, message: Message) {
        let delay = self.rng.range(0, 40);
        let executor = &mut self.executors[to];
        // The daemon writes to the connection whose hello it has heard.
        if !executor.connected || executor.heard != executor.epoch {
            return;
        }
        executor.last_out = executor.last_out.max(self.now + delay);
        let (delay, epoch) = (executor.last_out - self.now, executor.epoch);
        self.at(delay, Thing::ToExecutor { to, epoch, message });
    }

    fn report(&mut self, from: usize, report: Report) {
        self.executors[from].past.push(report.clone());
        let twice = !self.calm && self.rng.chance(5);
        self.deliver(from, report.clone());
        if twice {
            self.deliver(from, report);
        }
    }

    fn deliver(&mut self, from: usize, report: Report) {
        let executor = self.executors[from].id.clone();
        let incarnation = self.executors[from].incarnation;
        self.tell(from, Event::ExecutorReport { executor, incarnation, report });
    }

    fn tell(&mut self, from: usize, event: Event) {
        let slow = if self.rng.chance(5) { 3000 } else { 40 };
        let delay = self.rng.range(0, slow);
        let executor = &mut self.executors[from];
        if !executor.connected {
            return;
        }
        executor.last_in = executor.last_in.max(self.now + delay);
        let (delay, epoch) = (executor.last_in - self.now, executor.epoch);
        self.at(delay, Thing::ToEngine { from, epoch, event });
    }

    // What happens

    fn happen(&mut self, thing: Thing) -> Verdict {
        match thing {
            Thing::ToEngine { from, epoch, event } => {
                if self.executors[from].epoch != epoch {
                    return Ok(());
                }
                if matches!(event, Event::ExecutorConnected(_)) {
                    self.executors[from].heard = epoch;
                }
                self.feed(event)
            }
            Thing::ToExecutor { to, epoch, message } => {
                if self.executors[to].epoch == epoch {
                    self.receive(to, message);
                }
                Ok(())
            }
            Thing::Start { on, incarnation, of } => self.process_starts(on, incarnation, &of),
            Thing::End { on, incarnation, of, by_term } => {
                self.process_ends(on, incarnation, &of, by_term);
                Ok(())
            }
            Thing::Connect { executor, incarnation } => {
                self.connect(executor, incarnation);
                Ok(())
            }
            Thing::Revive(executor) => {
                if !self.executors[executor].alive {
                    self.executors[executor].alive = true;
                    self.executors[executor].incarnation += 1;
                    let incarnation = self.executors[executor].incarnation;
                    self.at(20, Thing::Connect { executor, incarnation });
                }
                Ok(())
            }
            Thing::DaemonUp => {
                if self.engine.is_none() {
                    self.start()
                } else {
                    Ok(())
                }
            }
            Thing::ReadFiles => self.read_files(),
            Thing::FilesRead => {
                self.feed(Event::FilesGone(self.gone.iter().cloned().collect()))?;
                self.feed(Event::FilesRead)
            }
            Thing::Operation => {
                if self.calm {
                    return Ok(());
                }
                let wait = self.rng.range(50, self.swarm.op_every);
                self.at(wait, Thing::Operation);
                self.operation()
            }
            Thing::Fault => {
                if self.calm {
                    return Ok(());
                }
                let wait = self.rng.range(100, self.swarm.fault_every);
                self.at(wait, Thing::Fault);
                self.fault()
            }
        }
    }

    fn connect(&mut self, executor: usize, incarnation: u64) {
        let e = &self.executors[executor];
        if !e.alive || e.connected || e.incarnation != incarnation {
            return;
        }
        if self.engine.is_none() {
            let wait = self.rng.range(20, 500);
            self.at(wait, Thing::Connect { executor, incarnation });
            return;
        }
        let boot = self.boot();
        let e = &mut self.executors[executor];
        e.epoch += 1;
        e.connected = true;
        let hello = e.hello(&boot);
        self.tell(executor, Event::ExecutorConnected(hello));
    }

    fn receive(&mut self, to: usize, message: Message) {
        let incarnation = self.executors[to].incarnation;
        match message {
            Message::Run(of) => match self.executors[to].journal.get(&of).cloned() {
                Some(Phase::Finished(done)) => self.report(to, Report::Finished(done)),
                Some(Phase::Accepted { .. } | Phase::Running { .. }) => {}
                None => {
                    let accepted = Phase::Accepted { term: false };
                    self.executors[to].journal.insert(of.clone(), accepted);
                    let wait = self.rng.range(0, 60);
                    self.at(wait, Thing::Start { on: to, incarnation, of });
                }
            },
            Message::Kill(of) => {
                let wait = self.rng.range(0, 1500);
                match self.executors[to].journal.get_mut(&of) {
                    Some(Phase::Accepted { term } | Phase::Running { term, .. }) => *term = true,
                    Some(Phase::Finished(_)) | None => return,
                }
                self.at(wait, Thing::End { on: to, incarnation, of, by_term: true });
            }
            Message::Forget(of) => {
                let executor = &mut self.executors[to];
                executor.lost.remove(&of);
                if matches!(executor.journal.get(&of), Some(Phase::Finished(_))) {
                    executor.journal.remove(&of);
                }
            }
        }
    }

    fn process_starts(&mut self, on: usize, incarnation: u64, of: &AttemptRef) -> Verdict {
        let executor = &mut self.executors[on];
        if executor.incarnation != incarnation || !executor.alive {
            return Ok(());
        }
        let Some(Phase::Accepted { term: false }) = executor.journal.get(of) else { return Ok(()) };
        let fail = !self.calm && self.rng.chance(self.swarm.fail / 4);
        if fail {
            let transient = self.rng.chance(50);
            let message = "fork: no".to_owned();
            let outcome = Outcome::SpawnFailed { message, transient };
            self.finish(on, of, None, outcome, false);
            return Ok(());
        }
        self.checker.process(of, &self.rows)?;
        let running = Phase::Running { since: self.now, term: false };
        self.executors[on].journal.insert(of.clone(), running);
        let at = Timestamp::from_millis(self.now);
        self.report(on, Report::Started(Started { of: of.clone(), pid: 4242, at }));
        let long = !self.calm && self.rng.chance(self.swarm.long);
        let wait = self.rng.range(0, if long { 40_000 } else { 1500 });
        self.at(wait, Thing::End { on, incarnation, of: of.clone(), by_term: false });
        Ok(())
    }

    fn process_ends(&mut self, on: usize, incarnation: u64, of: &AttemptRef, by_term: bool) {
        let executor = &self.executors[on];
        if executor.incarnation != incarnation || !executor.alive {
            return;
        }
        let (since, term) = match executor.journal.get(of) {
            Some(Phase::Accepted { term }) => (None, *term),
            Some(Phase::Running { since, term }) => (Some(*since), *term),
            Some(Phase::Finished(_)) | None => return,
        };
        let outcome = if by_term && self.rng.chance(80) {
            Outcome::Signalled { signal: 15, name: "TERM".to_owned() }
        } else if !self.calm && self.rng.chance(self.swarm.fail) {
            match self.rng.below(4) {
                0 => Outcome::TimedOut,
                1 => Outcome::Signalled { signal: 11, name: "SEGV".to_owned() },
                n => Outcome::Exited { code: i32::try_from(n).unwrap_or(2) - 1 },
            }
        } else {
            Outcome::Exited { code: 0 }
        };
        self.finish(on, of, since, outcome, term);
    }

    fn finish(
        &mut self,
        on: usize,
        of: &AttemptRef,
        since: Option<i64>,
        outcome: Outcome,
        killed: bool,
    ) {
        let done = Box::new(executor::finished(of, since, self.now, outcome, killed));
        self.executors[on].journal.insert(of.clone(), Phase::Finished(done.clone()));
        self.report(on, Report::Finished(done));
    }

    // What goes wrong

    fn fault(&mut self) -> Verdict {
        let on = usize::try_from(self.rng.below(2)).unwrap_or(0);
        if self.rng.chance(self.swarm.executor_dies) {
            return self.executor_dies(on);
        }
        if self.rng.chance(self.swarm.reboot) {
            return self.reboot();
        }
        match self.rng.below(3) {
            0 => self.connection_breaks(on),
            1 => {
                // A report from long ago, perhaps of an attempt that is over.
                let past = std::mem::take(&mut self.executors[on].past);
                if let Some(report) = self.rng.pick(&past).cloned() {
                    self.deliver(on, report);
                }
                self.executors[on].past = past;
                Ok(())
            }
            _ => {
                // A report that nobody can have sent: of another attempt, under another lease.
                let running = self.some(|i| i.state == InstanceState::Running);
                if let Some((i, lease)) = running.and_then(|i| i.lease().map(|l| (i, l))) {
                    let other = if self.rng.chance(50) { (0, 1) } else { (1, 0) };
                    let of = AttemptRef {
                        instance_id: i.instance_id,
                        attempt: i.attempt + other.0,
                        lease: Lease(lease.0 + other.1),
                    };
                    let outcome = Outcome::Exited { code: 0 };
                    let done = executor::finished(&of, None, self.now, outcome, false);
                    self.deliver(on, Report::Finished(Box::new(done)));
                }
                Ok(())
            }
        }
    }

    fn lost_event(&self, on: usize) -> Event {
        let e = &self.executors[on];
        let why = "its connection is gone".to_owned();
        Event::ExecutorLost { executor: e.id.clone(), incarnation: Some(e.incarnation), why }
    }

    fn connection_breaks(&mut self, on: usize) -> Verdict {
        if !self.executors[on].connected {
            return Ok(());
        }
        self.executors[on].disconnect();
        let incarnation = self.executors[on].incarnation;
        let wait = self.rng.range(0, 3000);
        self.at(wait, Thing::Connect { executor: on, incarnation });
        // Sometimes the new connection is there before anybody saw the end of the old one.
        if self.rng.chance(70) { self.feed(self.lost_event(on)) } else { Ok(()) }
    }

    fn executor_dies(&mut self, on: usize) -> Verdict {
        if !self.executors[on].alive {
            return Ok(());
        }
        let event = self.lost_event(on);
        self.executors[on].die();
        let wait = self.rng.range(0, 8000);
        self.at(wait, Thing::Revive(on));
        self.feed(event)
    }

    /// The machine goes down and comes up: what was not synced is gone.
    fn reboot(&mut self) -> Verdict {
        self.pending = Effects::default();
        if self.engine.is_some() {
            self.crash();
        }
        self.boots += 1;
        for on in 0..self.executors.len() {
            if self.executors[on].alive {
                self.executors[on].die();
                let wait = self.rng.range(100, 5000);
                self.at(wait, Thing::Revive(on));
            }
            let lost = std::mem::take(&mut self.executors[on].lost);
            self.executors[on].lost = lost.into_iter().filter(|_| self.rng.chance(50)).collect();
        }
        Ok(())
    }

    // What people do

    fn some(&mut self, which: impl Fn(&Instance) -> bool) -> Option<Instance> {
        let all: Vec<&Instance> = checker::instances(&self.rows).filter(|i| which(i)).collect();
        self.rng.pick(&all).map(|i| (*i).clone())
    }

    fn ask(&mut self, request: Request) -> Verdict {
        self.ask_under(None, request)
    }

    fn ask_under(&mut self, key: Option<RequestKey>, request: Request) -> Verdict {
        let caller = Caller { uid: 1000, gid: 1000, pid: 9, key };
        self.feed(Event::Request { request, caller, reply: ReplyTo(0) })
    }

    fn operation(&mut self) -> Verdict {
        if self.read && self.rng.chance(self.swarm.edits) {
            // Fires due by now belong to the definitions so far.
            let edit = self.files.edit(&mut self.rng);
            let edit = self.planted(edit);
            self.edited = true;
            self.flush()?;
            if self.engine.is_none() {
                return Ok(());
            }
            self.feed_reading(edit)?;
            self.flush()?;
            // A reading lost in a crash is repeated in full at the next start.
            self.edited = self.engine.is_none();
            return Ok(());
        }
        if self.rng.chance(self.swarm.holds) {
            return self.hold();
        }
        if self.rng.chance(self.swarm.cancels)
            && let Some(i) = self.some(|_| true)
        {
            let downstream = self.rng.chance(30);
            let instance = i.instance_id.clone();
            return self.ask(Request::Cancel { instance, downstream, stored: Some(Box::new(i)) });
        }
        match self.rng.below(7) {
            0 | 1 => self.submit(),
            2 => {
                let failed = |i: &Instance| {
                    matches!(i.state, InstanceState::Failed | InstanceState::Timeout)
                };
                let Some(i) = self.some(failed) else { return Ok(()) };
                let instance = i.instance_id.clone();
                self.flush()?;
                self.ask(Request::Retry {
                    instance,
                    same_revision: false,
                    stored: Some(Box::new(i)),
                    below: None,
                })
            }
            3 => {
                let name = format!("event{}", self.rng.below(2));
                self.ask(Request::Emit { name, params: JsonMap::new() })
            }
            4 => self.file(),
            5 => self.rollback(),
            _ => {
                let priority = Priority::new(u8::try_from(self.rng.below(10)).unwrap_or(0));
                let priority = priority.unwrap_or(Priority::NORMAL);
                let target = self.target();
                self.ask(Request::SetPriority { target, priority })
            }
        }
    }

    /// An earlier revision is put in force, or that ends. Fires due by now belong to the
    /// definitions so far.
    fn rollback(&mut self) -> Verdict {
        self.flush()?;
        if self.engine.is_none() || !self.read {
            return Ok(());
        }
        if self.rng.chance(40) {
            let task = build::id(&workload::name(self.rng.below(self.files.tasks)));
            self.ask(Request::Unpin { task })?;
            return self.flush();
        }
        let all: Vec<Revision> = self
            .rows
            .values()
            .filter_map(|row| if let Row::Revision(r) = row { Some(r.clone()) } else { None })
            .collect();
        let Some(revision) = self.rng.pick(&all).cloned() else { return Ok(()) };
        let (task, revision) = (revision.task_id.clone(), Box::new(revision));
        self.ask(Request::Rollback { task, revision })?;
        self.flush()
    }

    fn target(&mut self) -> Target {
        match self.rng.below(6) {
            0 => Target::All,
            1 => {
                Target::Queue(QueueName::from(if self.rng.chance(50) { "side" } else { "default" }))
            }
            2 | 3 => Target::Task(build::id(&workload::name(self.rng.below(self.files.tasks)))),
            _ => match self.some(|i| i.state != InstanceState::Succeeded) {
                Some(i) => Target::Instance(i.instance_id),
                None => Target::All,
            },
        }
    }

    fn hold(&mut self) -> Verdict {
        let target = self.target();
        if self.rng.chance(40) {
            return self.ask(Request::Resume { target });
        }
        let wait = self.rng.range(500, 20_000);
        let until = self.rng.chance(70).then(|| Timestamp::from_millis(self.now + wait));
        self.ask(Request::Pause { target, reason: None, until })
    }

    fn submit(&mut self) -> Verdict {
        let task = build::id(&workload::name(self.rng.below(self.files.tasks)));
        let mut body = SubmitBody::default();
        if self.rng.chance(40) {
            let cycles = ["2026-11-29", "2026-11-30", "2026-12-01", "2026-11-30T23:59"];
            body.cycle = self.rng.pick(&cycles).map(|c| (*c).to_owned());
        }
        body.ignore_deps = self.rng.chance(15);
        body.no_downstream = self.rng.chance(15);
        body.dry_run = false;
        if self.rng.chance(15) {
            let wait = self.rng.range(-1000, 30_000);
            body.at = Some(Timestamp::from_millis(self.now + wait));
        }
        let key = self.rng.chance(20).then(|| format!("key{}", self.rng.below(5)));
        let key = key.as_deref().map(RequestKey::of);
        self.ask_under(key, Request::Submit { task, submission: Box::new(body) })
    }

    fn file(&mut self) -> Verdict {
        let n = self.rng.below(2);
        if self.rng.chance(20) {
            self.gone.insert(format!("/in/{n}"));
            return self.feed(Event::FilesGone(vec![format!("/in/{n}")]));
        }
        self.gone.remove(&format!("/in/{n}"));
        if self.rng.chance(60) {
            self.arrivals += 1;
        }
        // Otherwise the same arrival is told again.
        let identity = FileIdentity { device: 1, inode: self.arrivals, size: 1, mtime_ns: 7 };
        let (pattern, path) = (format!("/in/{n}"), format!("/in/{n}"));
        self.feed(Event::FilesArrived(vec![FileArrival { pattern, path, identity }]))
    }

    // The end

    /// No faults, no holds, no new work: everything that can finish must.
    fn come_to_rest(&mut self) -> Verdict {
        self.calm = true;
        self.flush()?;
        self.play(self.now + 120_000)?;
        if self.engine.is_none() || !self.read {
            return Err("the daemon is not up again after two quiet minutes".to_owned());
        }
        let quiet = self.files.quiet();
        let quiet = self.planted(quiet);
        self.feed(Event::Definitions(quiet))?;
        self.flush()?;
        self.let_go()?;
        for _ in 0..6 {
            self.play(self.now + 400_000)?;
            let failed: Vec<Instance> = checker::instances(&self.rows)
                .filter(|i| matches!(i.state, InstanceState::Failed | InstanceState::Timeout))
                .cloned()
                .collect();
            for i in failed {
                let instance = i.instance_id.clone();
                self.ask(Request::Retry {
                    instance,
                    same_revision: false,
                    stored: Some(Box::new(i)),
                    below: None,
                })?;
            }
        }
        self.play(self.now + 400_000)?;
        Checker::at_rest(&self.rows).map_err(|e| format!("{e}; {:?}", self.executors))?;
        for id in ["e1", "e2"] {
            let left = &self.executors[self.named(id)].journal;
            if !left.is_empty() {
                return Err(format!("{id} still keeps {left:?}"));
            }
        }
        Ok(())
    }

    fn let_go(&mut self) -> Verdict {
        let mut targets = vec![Target::All];
        for row in self.rows.values() {
            match row {
                Row::Hold(hold) => targets.push(hold.target.clone()),
                Row::Task(task) => targets.push(Target::Task(task.task_id.clone())),
                Row::Instance(i) if i.paused.is_some() && i.is_open() => {
                    targets.push(Target::Instance(i.instance_id.clone()));
                }
                _ => {}
            }
        }
        for target in targets {
            if let Target::Task(task) = &target {
                self.ask(Request::Unpin { task: task.clone() })?;
            }
            self.ask(Request::Resume { target })?;
        }
        Ok(())
    }
}
