//! The liveness phase: no faults, no holds, no new work. Everything that can finish must.

use super::super::checker::{self, Checker, Verdict};
use super::super::workload;
use super::World;
use crate::build;
use crate::model::event::Event;
use crate::model::instance::{Instance, InstanceState};
use crate::model::request::Request;

impl World {
    pub(super) fn come_to_rest(&mut self) -> Verdict {
        self.calm = true;
        self.flush()?;
        self.play(self.now + 120_000)?;
        if self.engine.is_none() || !self.read {
            return Err("the daemon is not up again after two quiet minutes".to_owned());
        }
        let quiet = self.plant.definitions(self.files.quiet());
        self.feed(Event::Definitions(quiet))?;
        self.flush()?;
        self.let_go()?;
        self.look_at_all();
        self.set_clock_past_all()?;
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
        Checker::at_rest(&self.rows, self.wall())
            .map_err(|e| format!("{e}; {:?}", self.executors))?;
        for executor in &self.executors {
            if !executor.journal.is_empty() {
                return Err(format!("{} still keeps {:?}", executor.id, executor.journal));
            }
        }
        Ok(())
    }

    /// A clock that was set back would let what waits for a time wait for days.
    fn set_clock_past_all(&mut self) -> Verdict {
        let ahead = self.latest + 60_000 - self.wall();
        if self.offset == 0 || ahead <= 0 { Ok(()) } else { self.clock_steps(ahead) }
    }

    fn let_go(&mut self) -> Verdict {
        for n in 0..self.files.tasks {
            self.ask(Request::Unpin { task: build::id(&workload::name(n)) })?;
        }
        for target in self.held() {
            self.ask(Request::Resume { target })?;
        }
        Ok(())
    }
}
