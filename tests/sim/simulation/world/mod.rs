//! The simulated world around the production engine: one clock, one store, executors, people,
//! and everything that can go wrong between them. One seed decides all of it.

mod daemon;
mod executors;
mod faults;
mod outputs;
mod people;
mod rest;
mod swarm;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::executors::Message;
use self::swarm::Swarm;
use super::Summary;
use super::checker::{Checker, Moment, Rows, Verdict};
use super::executor::Executor;
use super::marks::Marks;
use super::plant::Plant;
use super::workload::{self, Files};
use crate::model::event::{AttemptRef, Event};
use crate::model::id::{InstanceId, LogSeq};
use crate::model::output::Outputs;
use crate::model::settings::Settings;
use crate::model::time::Timestamp;
use crate::rng::Rng;
use crate::scheduling::Engine;

/// 2026-11-30T23:59:00Z: a day ends during every run.
const BEGIN: i64 = 1_795_996_800_000 + (24 * 60 - 1) * 60_000;

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
    /// Somebody looks for the outputs of an instance.
    Look(InstanceId),
    Deed,
    Fault,
}

/// When the daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrashAt {
    /// Now and then.
    Random,
    /// At this place where it can be, counted from 1, and nowhere else.
    Point(u64),
}

/// See the module.
pub(crate) struct World {
    rng: Rng,
    plant: Plant,
    swarm: Swarm,
    marks: Marks,
    /// As the engine is given them.
    settings: Arc<Settings>,
    files: Files,
    /// Real time, which never steps.
    now: i64,
    /// What the wall clock shows besides.
    offset: i64,
    /// The latest time that it ever showed.
    latest: i64,
    engine: Option<Engine>,
    /// Handled, not yet durable.
    pending: Vec<Moment>,
    rows: Rows,
    tip: LogSeq,
    checker: Checker,
    executors: Vec<Executor>,
    agenda: BTreeMap<(i64, u64), Thing>,
    next: u64,
    boots: u64,
    crash_at: CrashAt,
    /// Places gone past at which the daemon could have been killed.
    crash_points: u64,
    flushes: u64,
    arrivals: u64,
    /// Outputs that the daemon wants looked for.
    looks: BTreeMap<InstanceId, Arc<Outputs>>,
    /// Paths of files that are not there now.
    gone: BTreeSet<String>,
    /// Since when, in real time, an attempt that runs is to be ended.
    ending: BTreeMap<InstanceId, i64>,
    /// Since when, in real time, its processes are to stand still.
    frozen: BTreeMap<InstanceId, i64>,
    /// The directory was read since the daemon came up.
    read: bool,
    /// The engine has heard a whole reading since the daemon came up.
    opened: bool,
    /// Whoever looks for arrived files has looked once since the daemon came up.
    files_read: bool,
    /// The daemon is asked to leave.
    leaves: bool,
    /// Faults and people have stopped.
    calm: bool,
    /// Files were changed and no reading of that is durable yet.
    edited: bool,
    /// The wall clock was set at some time.
    stepped: bool,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Plant, crash_at: CrashAt) -> Self {
        let mut rng = Rng::new(seed);
        let swarm = Swarm::random(&mut rng);
        let written = workload::settings(&mut rng);
        let files = Files::random(&mut rng);
        let mut world = Self {
            rng,
            plant,
            swarm,
            marks: Marks::default(),
            settings: Arc::new(plant.settings(&written)),
            files,
            now: BEGIN,
            offset: 0,
            latest: BEGIN,
            engine: None,
            pending: Vec::new(),
            rows: Rows::new(),
            tip: LogSeq(0),
            executors: written.executors.iter().map(|e| Executor::new(e.id.as_str())).collect(),
            checker: Checker::new(written, plant),
            agenda: BTreeMap::new(),
            next: 0,
            boots: 1,
            crash_at,
            crash_points: 0,
            flushes: 0,
            arrivals: 0,
            looks: BTreeMap::new(),
            gone: BTreeSet::new(),
            ending: BTreeMap::new(),
            frozen: BTreeMap::new(),
            read: false,
            opened: false,
            files_read: false,
            leaves: false,
            calm: false,
            edited: true,
            stepped: false,
        };
        world.at(0, Thing::DaemonUp);
        for executor in 0..world.executors.len() {
            world.at(10, Thing::Connect { executor, incarnation: 1 });
        }
        world.at(500, Thing::Deed);
        world.at(3000, Thing::Fault);
        world
    }

    /// Runs the safety phase for `ms`, then the liveness phase.
    pub(crate) fn run(&mut self, ms: i64) -> Result<Summary, String> {
        let end = BEGIN + ms;
        self.play(end)?;
        self.come_to_rest()?;
        if !self.stepped {
            // `year.rs` counts fires under a clock that is set.
            self.checker.ledger(self.now)?;
        }
        let mut marks = self.marks.clone();
        marks.add(&self.checker.marks);
        Ok(Summary { hash: self.checker.hash, marks, crash_points: self.crash_points })
    }

    /// What the wall clock shows.
    fn wall(&self) -> i64 {
        self.now + self.offset
    }

    fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.wall())
    }

    fn mark(&mut self, name: &'static str) {
        self.marks.hit(name);
    }

    fn at(&mut self, delay: i64, thing: Thing) {
        self.next += 1;
        self.agenda.insert((self.now + delay, self.next), thing);
    }

    /// The engine's next deadline in real time.
    fn due(&self) -> Option<i64> {
        let due = self.engine.as_ref().and_then(Engine::next_deadline)?;
        Some(due.as_millis().saturating_sub(self.offset))
    }

    fn play(&mut self, end: i64) -> Verdict {
        for _ in 0..200_000 {
            let thing = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let next = thing.into_iter().chain(self.due()).min();
            let Some(next) = next.filter(|at| *at <= end) else {
                if !self.pending.is_empty() {
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
            let thing = self.agenda.first_key_value().map_or(i64::MAX, |((at, _), _)| *at);
            if let Some(due) = self.due().filter(|due| *due <= thing) {
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

    fn happen(&mut self, thing: Thing) -> Verdict {
        match thing {
            Thing::ToEngine { from, epoch, event } => self.engine_hears(from, epoch, event),
            Thing::ToExecutor { to, epoch, message } => {
                if self.executors[to].epoch == epoch {
                    self.receive(to, message);
                } else {
                    self.mark("order lost with its connection");
                }
                Ok(())
            }
            Thing::Start { on, incarnation, of } => self.process_starts(on, incarnation, &of),
            Thing::End { on, incarnation, of, by_term } => {
                self.process_ends(on, incarnation, &of, by_term)
            }
            Thing::Connect { executor, incarnation } => {
                self.connect(executor, incarnation);
                Ok(())
            }
            Thing::Revive(executor) => {
                self.revive(executor);
                Ok(())
            }
            Thing::DaemonUp => {
                if self.engine.is_none() {
                    self.start();
                }
                Ok(())
            }
            Thing::ReadFiles => self.read_files(),
            Thing::FilesRead => self.files_are_read(),
            Thing::Look(instance) => self.look(&instance),
            Thing::Deed => {
                if self.calm {
                    return Ok(());
                }
                let wait = self.rng.range(50, self.swarm.deed_every);
                self.at(wait, Thing::Deed);
                self.deed()
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
}
