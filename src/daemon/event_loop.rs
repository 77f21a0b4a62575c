//! The loop: take a batch of events, let the core decide, make it durable, then act.
//!
//! One of the four selects of the program. Both branches are cancel safe and nothing else is ever
//! selected here; every body stands outside.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};

use super::clock::{Alarm, Clock, Steps};
use super::desk::Waiting;
use super::outputs::Wanted;
use super::print::{self, Audience};
use super::systemd;
use crate::execution::ExecutorPool;
use crate::limits;
use crate::model::command::{Command, Effects, FileWatch};
use crate::model::event::Event;
use crate::model::record::LogRecord;
use crate::model::request::StopMode;
use crate::model::time::Timestamp;
use crate::resource::{Committer, StoreError};
use crate::scheduling::Engine;

/// The loop and all it acts through.
pub(super) struct EventLoop {
    pub(super) engine: Engine,
    pub(super) clock: Clock,
    pub(super) alarm: Alarm,
    pub(super) steps: Steps,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) committer: Committer,
    pub(super) pool: ExecutorPool,
    pub(super) waiting: Waiting,
    pub(super) feed: broadcast::Sender<Arc<LogRecord>>,
    pub(super) files: watch::Sender<Vec<FileWatch>>,
    pub(super) outputs: watch::Sender<Wanted>,
    pub(super) watchdog: Option<Duration>,
    pub(super) audience: Audience,
}

impl EventLoop {
    /// Runs until the core lets the daemon go. Gives back what must be closed in order.
    ///
    /// # Errors
    /// [`StoreError`] as soon as a commit fails: nothing of that batch has been acted on.
    pub(super) async fn run(mut self) -> Result<(StopMode, Committer, ExecutorPool), StoreError> {
        let first = self.engine.start(self.clock.now());
        self.carry_out(first).await?;
        let mut batch = Vec::new();
        let mut is_ready = false;
        let mut last_beat = self.clock.elapsed();
        loop {
            // The beat does not hang on the wall clock, which may be put back.
            let beat = self.watchdog.unwrap_or(Duration::MAX);
            let due = self.alarm.sleep_until(self.engine.next_deadline());
            let due = tokio::time::timeout(beat, due);
            let open = tokio::select! {
                taken = self.events.recv_many(&mut batch, limits::BATCH_MAX) => taken > 0,
                _ = due => true,
            };
            if !open {
                return Ok((StopMode::Handover, self.committer, self.pool));
            }
            // The first reading is there with its last part.
            let has_definitions =
                batch.iter().any(|event| matches!(event, Event::Definitions(d) if !d.more));
            if let Some(mode) = self.turn(&mut batch).await? {
                return Ok((mode, self.committer, self.pool));
            }
            if has_definitions && !is_ready {
                is_ready = true;
                systemd::ready();
            }
            let now = self.clock.elapsed();
            if self.watchdog.is_some_and(|period| now.saturating_sub(last_beat) >= period) {
                systemd::watchdog();
                last_beat = now;
            }
        }
    }

    /// Handles a batch of events, in one commit unless there is much to remember.
    async fn turn(&mut self, batch: &mut Vec<Event>) -> Result<Option<StopMode>, StoreError> {
        let mut effects = Effects::default();
        // Before anything else takes the new time for the old one's continuation.
        let (now, step) = self.now();
        if let Some(by_ms) = step {
            effects.append(self.engine.handle(now, Event::ClockStepped { by_ms }));
        }
        // Cheap when nothing is due, so that a busy channel cannot starve time.
        effects.append(self.engine.handle(now, Event::Tick));
        for event in batch.drain(..) {
            if effects.commit.rows.len() >= limits::COMMIT_ROWS {
                let full = std::mem::take(&mut effects);
                if let Some(mode) = self.carry_out(full).await? {
                    return Ok(Some(mode));
                }
            }
            effects.append(self.engine.handle(now, event));
        }
        self.carry_out(effects).await
    }

    /// Now, and by how much the wall clock was set since this was last asked.
    fn now(&mut self) -> (Timestamp, Option<i64>) {
        let mut by_ms = None;
        loop {
            let now = self.clock.now();
            // The time that counts is one before which all steps have been seen.
            match self.steps.taken() {
                None => return (now, by_ms),
                Some(more) => by_ms = Some(by_ms.unwrap_or(0_i64).saturating_add(more)),
            }
        }
    }

    /// Durable first, then act. `Some`: the daemon may go.
    async fn carry_out(&mut self, effects: Effects) -> Result<Option<StopMode>, StoreError> {
        let Effects { mut commit, commands } = effects;
        let records = commit.records.clone();
        if !commit.is_empty() {
            self.committer.commit(std::mem::take(&mut commit)).await?;
        }
        let mut exit = None;
        for command in commands {
            if let Command::Exit(mode) = command {
                exit = Some(mode);
            } else {
                self.perform(command);
            }
        }
        // What is due does not wait for those who read about it.
        for record in records {
            print::announce(&record, self.audience);
            // Nobody may listen; that is no fault.
            drop(self.feed.send(Arc::new(record)));
        }
        Ok(exit)
    }

    /// Carries out one command; none waits, and what fails comes back as an event.
    fn perform(&self, command: Command) {
        match command {
            Command::Attach { executor, connection } => self.pool.attach(&executor, connection),
            Command::Run(dispatch) => self.pool.run(*dispatch),
            Command::Kill { executor, of } => self.pool.kill(&executor, of),
            Command::Freeze { executor, of } => self.pool.freeze(&executor, of),
            Command::Thaw { executor, of } => self.pool.thaw(&executor, of),
            Command::Acknowledge { executor, of } => self.pool.acknowledge(&executor, of),
            Command::Reply { to, answer } => self.waiting.answer(to, *answer),
            Command::WatchFiles(watches) => {
                self.files.send_replace(watches);
            }
            Command::LookForOutputs { instance_id, outputs } => {
                self.outputs.send_modify(|wanted| {
                    wanted.insert(instance_id, outputs);
                });
            }
            Command::ForgetOutputs { instance_id } => {
                self.outputs.send_modify(|wanted| {
                    wanted.remove(&instance_id);
                });
            }
            Command::Exit(_) => {}
        }
    }
}
