//! The coming night, told by the core itself (`schedctl simulate`): the engine that decides in the
//! daemon, on a clock that is only a number, with executors that only say how long an attempt takes.
//!
//! Nothing here knows a rule. It loads an [`Engine`] as a start of the daemon does, hands it what a
//! daemon would hear (ticks at its deadlines, starts and ends of attempts, named events that were
//! asked for), and writes down what its log says.

mod hands;
mod leavings;
mod outcome;
mod runtimes;
mod sweep;
mod timeline;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use self::hands::Hands;
use self::leavings::Leavings;
use self::runtimes::Runtimes;
use self::timeline::Timeline;
use super::lifecycle::boot;
use super::{Engine, Process};
use crate::limits;
use crate::model::command::{Command, Effects};
use crate::model::event::{Definitions, Event, Hello, SpecFile};
use crate::model::id::{ExecutorId, ReplyTo, TaskId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::record::Row;
use crate::model::request::{Caller, Request};
use crate::model::simulation::{Basis, Deadlines, SimulationView};
use crate::model::spec::JsonMap;
use crate::model::time::Timestamp;

/// What to simulate.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What the scheduler remembers and how tasks did before. What runs and waits is taken over if
    /// `from` lies at most [`limits::SIMULATION_RUN_UP`] after it; else the simulation begins at
    /// `from` with nothing open.
    pub basis: Basis,
    /// All that the spec directory shall hold instead; checked before.
    pub specs: Option<Vec<SpecFile>>,
    /// From here, included.
    pub from: Timestamp,
    /// To here, not included.
    pub to: Timestamp,
    /// Which of the past lengths of a task's attempts counts: so many per cent were no longer.
    pub percentile: u8,
    /// How long attempts of tasks take that have no history.
    pub assume: Duration,
    /// How long attempts of these tasks take, whatever their history says.
    pub assume_of: BTreeMap<TaskId, Duration>,
    /// By when what shall have ended.
    pub deadlines: Deadlines,
    /// Named events from outside, with their times.
    pub events: Vec<(Timestamp, String)>,
    /// More instances than these are too many.
    pub instances_max: usize,
}

/// Why a simulation has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// It would hold too much.
    #[error("there are more than {max} {what} by {at}; choose an earlier end")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// Than how many.
        max: usize,
        /// By when.
        at: Timestamp,
    },
}

/// Simulates. The same scenario has the same outcome.
///
/// # Errors
/// [`SimulationError::TooMuch`] beyond `instances_max` instances or
/// [`limits::SIMULATION_STEPS_MAX`] events.
pub fn simulate(scenario: Scenario) -> Result<SimulationView, SimulationError> {
    let mut world = World::new(scenario);
    world.start();
    world.run()?;
    Ok(outcome::view(world))
}

/// The engine, and all that it takes for the world.
struct World {
    engine: Engine,
    hands: Hands,
    timeline: Timeline,
    leavings: Leavings,
    now: Timestamp,
    /// What happens at this very time, in order.
    pending: VecDeque<Event>,
    /// Named events to come, the next first.
    events: VecDeque<(Timestamp, String)>,
    specs: Option<Vec<SpecFile>>,
    executors: Vec<ExecutorId>,
    /// Attempts that were on before the simulation began.
    running: Vec<Instance>,
    boot_id: Arc<str>,
    from: Timestamp,
    to: Timestamp,
    deadlines: Deadlines,
    steps: usize,
    instances_max: usize,
}

impl World {
    fn new(scenario: Scenario) -> Self {
        let Scenario { basis, from, to, .. } = scenario;
        let takes_over = from >= basis.at && from.since(basis.at) <= limits::SIMULATION_RUN_UP;
        // A time trigger that fires at `from` is seen to.
        let now = if takes_over { basis.at } else { from.just_before() };
        let boot_id: Arc<str> = basis.boot_id.into();
        let rows = rows(basis.rows, now, takes_over);
        let instances = || rows.iter().filter_map(open_instance);
        let mut timeline = Timeline::new();
        let mut leavings = Leavings::default();
        rows.iter().for_each(|row| leavings.note(row));
        instances().for_each(|instance| timeline.take_over(instance));
        let is_on = |i: &&Instance| i.state == InstanceState::Running;
        let running: Vec<Instance> = instances().filter(is_on).cloned().collect();
        let configured = basis.settings.executors.iter().map(|e| e.id.clone());
        let at_work = running.iter().filter_map(|i| i.executor_id.clone());
        let mut executors: Vec<ExecutorId> = configured.chain(at_work).collect();
        executors.sort();
        executors.dedup();
        let runtimes =
            Runtimes::new(basis.history, scenario.percentile, scenario.assume, scenario.assume_of);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let process = Process { version, pid: 0, boot_id: Arc::clone(&boot_id), started_at: now };
        let engine = Engine::load(Arc::new(basis.settings), process, rows, basis.tip);
        let mut events = scenario.events;
        events.sort();
        Self {
            engine,
            hands: Hands::new(runtimes),
            timeline,
            leavings,
            now,
            pending: VecDeque::new(),
            events: events.into(),
            specs: scenario.specs,
            executors,
            running,
            boot_id,
            from,
            to,
            deadlines: scenario.deadlines,
            steps: 0,
            instances_max: scenario.instances_max,
        }
    }

    /// As a daemon starts: what is remembered is in force, then come the directory, the files that
    /// are looked for, and the executors, which say what they run.
    fn start(&mut self) {
        let effects = self.engine.start(self.now);
        self.take(effects);
        self.event(Event::Definitions(Definitions::default()));
        if let Some(changed) = self.specs.take() {
            let present = Some(changed.iter().map(|file| file.path.clone()).collect());
            let whole = Definitions { changed, present, ..Definitions::default() };
            self.event(Event::Definitions(whole));
        }
        self.event(Event::FilesRead);
        for instance in std::mem::take(&mut self.running) {
            let spec = self.engine.state.spec_of(&instance);
            let taken = spec.and_then(|spec| self.hands.take_up(&instance, &spec, self.now));
            if let Some(slot) = taken {
                self.timeline.on_slot(&instance.instance_id, slot);
            }
        }
        for executor in std::mem::take(&mut self.executors) {
            let hello = Hello {
                running: self.hands.running(&executor),
                frozen: Some(Vec::new()),
                executor,
                incarnation: 1,
                connection: 0,
                pid: 0,
                boot_id: Arc::clone(&self.boot_id),
                lost: Vec::new(),
                finished: Vec::new(),
            };
            self.event(Event::ExecutorConnected(hello));
        }
    }

    /// Until the end of the time. What ends at an instant has ended before anything is due at it.
    fn run(&mut self) -> Result<(), SimulationError> {
        loop {
            let ends = self.hands.next();
            let told = self.events.front().map(|(at, _)| *at);
            let due = self.engine.next_deadline();
            let Some(at) = ends.into_iter().chain(told).chain(due).min() else { return Ok(()) };
            if at >= self.to {
                return Ok(());
            }
            self.now = self.now.max(at);
            if let Some(report) = self.hands.ended(self.now) {
                self.event(report);
            } else if let Some((_, name)) = self.events.pop_front_if(|(at, _)| *at <= self.now) {
                self.event(emitted(name));
            } else {
                self.event(Event::Tick);
            }
            self.check()?;
        }
    }

    fn check(&mut self) -> Result<(), SimulationError> {
        self.steps += 1;
        let (instances, steps) = (self.instances_max, limits::SIMULATION_STEPS_MAX);
        let at = self.now;
        if self.timeline.len() > instances {
            return Err(SimulationError::TooMuch { what: "instances", max: instances, at });
        }
        if self.steps > steps {
            return Err(SimulationError::TooMuch { what: "events", max: steps, at });
        }
        Ok(())
    }

    /// Lets something happen now, and what follows from it at the same time.
    fn event(&mut self, event: Event) {
        self.pending.push_back(event);
        while let Some(event) = self.pending.pop_front() {
            let effects = self.engine.handle(self.now, event);
            self.take(effects);
        }
    }

    fn take(&mut self, effects: Effects) {
        effects.commit.rows.values().flatten().for_each(|row| self.leavings.note(row));
        self.timeline.take(effects.commit);
        for command in effects.commands {
            match command {
                Command::Run(dispatch) => {
                    let (slot, started) = self.hands.run(&dispatch, self.now);
                    self.timeline.on_slot(&dispatch.instance.instance_id, slot);
                    self.pending.push_back(started);
                }
                Command::Kill { of, .. } => self.pending.extend(self.hands.kill(&of, self.now)),
                Command::LookForOutputs { instance_id, outputs } => {
                    self.pending.push_back(self.leavings.look(instance_id, &outputs));
                }
                // Nobody freezes anything in a simulation; what is frozen stays so.
                Command::Freeze { .. }
                | Command::Thaw { .. }
                | Command::ForgetOutputs { .. }
                | Command::Attach { .. }
                | Command::Acknowledge { .. }
                | Command::Reply { .. }
                | Command::WatchFiles(_)
                | Command::Exit(_) => {}
            }
        }
    }
}

/// The rows from which the engine is loaded. Where nothing is taken over, nothing is open, and no
/// time before the beginning was missed.
fn rows(all: Vec<Row>, begin: Timestamp, takes_over: bool) -> Vec<Row> {
    if takes_over {
        return all;
    }
    let kept = |row| match row {
        Row::Instance(_)
        | Row::Jumps(_)
        | Row::Arrival(_)
        | Row::Submission(_)
        | Row::EmptyCycle(_) => None,
        Row::Cursor(mut cursor) => {
            if !boot::is_mark(&cursor.trigger) {
                cursor.handled_to = begin;
            }
            Some(Row::Cursor(cursor))
        }
        Row::Revision(_) | Row::Task(_) | Row::Hold(_) => Some(row),
    };
    all.into_iter().filter_map(kept).collect()
}

fn open_instance(row: &Row) -> Option<&Instance> {
    if let Row::Instance(instance) = row { Some(&**instance).filter(|i| i.is_open()) } else { None }
}

fn emitted(name: String) -> Event {
    Event::Request {
        request: Request::Emit { name, params: JsonMap::new() },
        caller: Caller { uid: 0, gid: 0, pid: 0, key: None },
        reply: ReplyTo(0),
    }
}
