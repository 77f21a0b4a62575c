//! The daemon: events in, commits, commands out; and how it dies and comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::checker::{self, Moment, Verdict};
use super::super::plant::Plant;
use super::{CrashAt, Thing, World};
use crate::model::command::Command;
use crate::model::event::{AttemptRef, Definitions, Event, Report};
use crate::model::id::TaskId;
use crate::model::instance::{Cause, InstanceState};
use crate::model::record::{Record, Row};
use crate::model::request::Request;
use crate::model::time::Timestamp;
use crate::scheduling::{Engine, Process};

impl World {
    /// One turn of the engine. What it decides stays pending until it is durable.
    pub(super) fn feed(&mut self, event: Event) -> Verdict {
        if self.engine.is_none() {
            return Ok(());
        }
        let stale = self.is_stale(&event);
        if stale.is_some() {
            // The rows must be exact to judge by.
            self.flush()?;
        }
        let stale = stale.and_then(|_| self.is_stale(&event));
        let asked = match &event {
            Event::Request { request, .. } => Some(request.clone()),
            _ => None,
        };
        let event = self.plant.event(event, &self.rows);
        self.files_read |= matches!(event, Event::FilesRead);
        self.opened |= matches!(&event, Event::Definitions(read) if !read.more);
        self.latest = self.latest.max(self.wall());
        let now = self.timestamp();
        let Some(engine) = &mut self.engine else { return Ok(()) };
        let effects = engine.handle(now, event);
        if let Some(of) = stale
            && !effects.commit.records.iter().all(|r| matches!(r.what, Record::ExecutorLost { .. }))
        {
            return Err(format!("a report of {of:?}, which is not on, changed something"));
        }
        let mut moment = Moment {
            batch: effects.commit,
            commands: effects.commands,
            asked,
            opened: self.opened,
            files_read: self.files_read,
        };
        self.starts_with_its_file(&moment)?;
        self.plant.moment(&mut moment, &mut self.rng);
        let early = match self.plant {
            Plant::EarlyCommands => std::mem::take(&mut moment.commands),
            _ => Vec::new(),
        };
        self.pending.push(moment);
        for command in early {
            self.carry_out(command)?;
        }
        if self.rng.chance(self.swarm.batch) { Ok(()) } else { self.flush() }
    }

    /// No first attempt of what was made for a file is decided on while the file is not there,
    /// also if it went while no daemon ran.
    fn starts_with_its_file(&self, moment: &Moment) -> Verdict {
        let decided = |of: &AttemptRef| {
            moment.batch.records.iter().any(|record| {
                matches!(&record.what, Record::Moved { instance_id, to: InstanceState::Running, .. }
                    if *instance_id == of.instance_id)
            })
        };
        for command in &moment.commands {
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

    /// Makes what is pending durable, then carries its commands out; or is killed on the way.
    pub(super) fn flush(&mut self) -> Verdict {
        if self.engine.is_none() || self.pending.is_empty() {
            return Ok(());
        }
        if self.is_killed_here() {
            self.mark("killed before a commit");
            self.crash();
            return Ok(());
        }
        let mut moments = std::mem::take(&mut self.pending);
        for moment in &mut moments {
            self.keep(moment)?;
        }
        self.flushes += 1;
        let killed = self.is_killed_here();
        if killed || self.flushes.is_multiple_of(16) {
            self.live_equals_rebuilt()?;
        }
        if killed {
            self.mark("killed after a commit");
            self.crash();
            return Ok(());
        }
        for command in moments.into_iter().flat_map(|moment| moment.commands) {
            self.carry_out(command)?;
            if self.is_killed_here() {
                self.mark("killed between commands");
                self.crash();
                return Ok(());
            }
        }
        if std::mem::take(&mut self.leaves) {
            self.mark("left when asked to");
            self.down(3000);
        }
        Ok(())
    }

    /// One turn becomes durable and is judged.
    fn keep(&mut self, moment: &mut Moment) -> Verdict {
        self.plant.batch(&mut moment.batch, &mut self.rng);
        for (key, row) in &moment.batch.rows {
            match row {
                Some(row) => {
                    let text = serde_json::to_string(row).map_err(|e| e.to_string())?;
                    let back: Row = serde_json::from_str(&text).map_err(|e| e.to_string())?;
                    if back != *row || back.key() != *key {
                        return Err(format!("a row is not the same after JSON: {text}"));
                    }
                    if let Row::Instance(i) = row {
                        let ends = i.state == InstanceState::Running && i.stopping.is_some();
                        if ends {
                            self.ending.entry(i.instance_id.clone()).or_insert(self.now);
                        } else {
                            self.ending.remove(&i.instance_id);
                        }
                        if i.is_frozen() && !ends {
                            self.frozen.entry(i.instance_id.clone()).or_insert(self.now);
                        } else {
                            self.frozen.remove(&i.instance_id);
                        }
                    }
                    self.rows.insert(key.clone(), back);
                }
                None => {
                    self.rows.remove(key);
                }
            }
        }
        self.tip = moment.batch.records.last().map_or(self.tip, |r| r.seq);
        self.checker.turn(moment, &self.rows).map_err(|violation| {
            let told = |record| serde_json::to_string(record).unwrap_or_default();
            let entries: Vec<String> = moment.batch.records.iter().take(40).map(told).collect();
            format!("{violation}\nin the turn of:\n  {}", entries.join("\n  "))
        })
    }

    fn live_equals_rebuilt(&mut self) -> Verdict {
        let rebuilt = self.load();
        let live = self.engine.as_ref().map(|e| e.differences(&rebuilt)).unwrap_or_default();
        self.mark("live compared with rebuilt");
        if live.is_empty() {
            return Ok(());
        }
        Err(format!("live and rebuilt differ in {}", live.join(", ")))
    }

    /// Whether the daemon is killed at this place.
    fn is_killed_here(&mut self) -> bool {
        if self.calm {
            return false;
        }
        self.crash_points += 1;
        match self.crash_at {
            CrashAt::Random => self.rng.chance(self.swarm.crash),
            CrashAt::Point(point) => self.crash_points == point,
        }
    }

    fn load(&self) -> Engine {
        let process = Process {
            version: "0.1.0".to_owned(),
            pid: 1,
            boot_id: self.boot(),
            started_at: self.timestamp(),
        };
        Engine::load(Arc::clone(&self.settings), process, self.rows.values().cloned(), self.tip)
    }

    pub(super) fn boot(&self) -> Arc<str> {
        format!("boot-{}", self.boots).into()
    }

    /// The daemon's process ends without a word.
    pub(super) fn crash(&mut self) {
        self.mark("killed");
        let downtime = if self.rng.chance(30) { 90_000 } else { 2_000 };
        self.down(downtime);
    }

    /// It is gone, for so many milliseconds at most.
    fn down(&mut self, at_most: i64) {
        self.engine = None;
        self.pending.clear();
        self.read = false;
        self.opened = false;
        self.files_read = false;
        self.leaves = false;
        self.looks.clear();
        if self.rng.chance(50) {
            self.gone.insert(format!("/in/{}", self.rng.below(2)));
        }
        for executor in 0..self.executors.len() {
            self.executors[executor].disconnect();
            let incarnation = self.executors[executor].incarnation;
            self.at(50, Thing::Connect { executor, incarnation });
        }
        let downtime = self.rng.range(0, at_most);
        self.at(downtime, Thing::DaemonUp);
    }

    pub(super) fn start(&mut self) {
        self.plant.store(&mut self.rows);
        let mut engine = self.load();
        let effects = engine.start(self.timestamp());
        self.engine = Some(engine);
        self.pending.push(Moment {
            batch: effects.commit,
            commands: effects.commands,
            asked: None,
            opened: false,
            files_read: false,
        });
        let wait = self.rng.range(0, 100);
        self.at(wait, Thing::ReadFiles);
    }

    /// The first reading after a start: the files are those read before, so nothing may change.
    pub(super) fn read_files(&mut self) -> Verdict {
        self.flush()?;
        if self.engine.is_none() || self.read {
            return Ok(());
        }
        let before = self.definitions();
        let reading = self.plant.definitions(self.files.reading());
        self.feed_reading(reading)?;
        self.flush()?;
        self.read = self.engine.is_some();
        if self.read && !self.edited && !same_but_for_moved(&before, &self.definitions()) {
            return Err("reading unchanged files again changed definitions".to_owned());
        }
        self.edited &= !self.read;
        Ok(())
    }

    pub(super) fn files_are_read(&mut self) -> Verdict {
        self.feed(Event::FilesGone(self.gone.iter().cloned().collect()))?;
        self.feed(Event::FilesRead)
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
    pub(super) fn feed_reading(&mut self, mut read: Definitions) -> Verdict {
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

    fn carry_out(&mut self, command: Command) -> Verdict {
        match command {
            Command::Run(dispatch) => {
                self.checker.sent(&dispatch.of, &self.rows)?;
                let to = self.named(dispatch.executor.as_str());
                if let Some(again) = self.plant.again(&dispatch.of, &mut self.rng) {
                    self.order_run(to, again);
                }
                self.order_run(to, dispatch.of);
            }
            Command::Kill { executor, of } => {
                let to = self.named(executor.as_str());
                self.order_kill(to, of);
            }
            Command::Acknowledge { executor, of } => {
                let to = self.named(executor.as_str());
                self.order_forget(to, of);
            }
            Command::WatchFiles(_) => {
                let wait = self.rng.range(0, 100);
                self.at(wait, Thing::FilesRead);
            }
            Command::LookForOutputs { instance_id, outputs } => {
                self.look_for(instance_id, outputs);
            }
            Command::ForgetOutputs { instance_id } => {
                self.looks.remove(&instance_id);
            }
            Command::Freeze { executor, of } => {
                let to = self.named(executor.as_str());
                self.order_freeze(to, of, true);
            }
            Command::Thaw { executor, of } => {
                let to = self.named(executor.as_str());
                self.order_freeze(to, of, false);
            }
            Command::Exit(_) => self.leaves = true,
            Command::Reply { .. } | Command::Attach { .. } => {}
        }
        Ok(())
    }

    /// The wall clock is set; if the daemon runs, it is told.
    pub(super) fn clock_steps(&mut self, by_ms: i64) -> Verdict {
        // What was due by the old clock belongs to it.
        self.flush()?;
        self.stepped = true;
        self.latest = self.latest.max(self.wall());
        self.offset += by_ms;
        self.mark(match by_ms {
            _ if self.engine.is_none() => "clock set while no daemon ran",
            by if by > 3 * 3_600_000 => "clock set forward by more than three hours",
            by if by >= 0 => "clock set forward",
            by if by < -3 * 3_600_000 => "clock set back by more than three hours",
            _ => "clock set back",
        });
        self.feed(Event::ClockStepped { by_ms })
    }

    /// Somebody asks, under a key of its own or none.
    pub(super) fn ask(&mut self, request: Request) -> Verdict {
        self.ask_under(None, request)
    }

    pub(super) fn after(&self, ms: i64) -> Timestamp {
        Timestamp::from_millis(self.wall() + ms)
    }
}

/// Whether two sets of definitions are the same, tasks aside that another file defines now. Of two
/// files with one id a start may take the other one than the daemon that ran before (seed 200190 of
/// the workload at commit 31c5fe9): which of them counts was decided by what came first.
fn same_but_for_moved(before: &[Row], after: &[Row]) -> bool {
    let files = |rows: &[Row]| -> BTreeMap<TaskId, String> {
        let tasks = rows.iter().filter_map(|r| if let Row::Task(t) = r { Some(t) } else { None });
        tasks.map(|t| (t.task_id.clone(), t.file.clone())).collect()
    };
    let (was, is) = (files(before), files(after));
    let stays = |row: &&Row| match row {
        Row::Task(t) => was.get(&t.task_id) == is.get(&t.task_id),
        Row::Revision(r) => was.get(&r.task_id) == is.get(&r.task_id),
        _ => true,
    };
    before.iter().filter(stays).eq(after.iter().filter(stays))
}
