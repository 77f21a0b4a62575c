//! The executors' side: messages both ways, processes that start and end.

use super::super::checker::{self, Verdict};
use super::super::executor::{self, Phase};
use super::{Thing, World};
use crate::model::event::{AttemptRef, Event, Outcome, Report, Started, TaskResult};
use crate::model::instance::InstanceState;

/// What the daemon says to an executor.
#[derive(Debug)]
pub(super) enum Message {
    Run(AttemptRef),
    Kill(AttemptRef),
    Forget(AttemptRef),
    Freeze(AttemptRef, bool),
}

impl World {
    pub(super) fn named(&self, id: &str) -> usize {
        self.executors.iter().position(|e| e.id.as_str() == id).unwrap_or(0)
    }

    pub(super) fn order_run(&mut self, to: usize, of: AttemptRef) {
        self.send(to, Message::Run(of));
    }

    pub(super) fn order_kill(&mut self, to: usize, of: AttemptRef) {
        self.send(to, Message::Kill(of));
    }

    pub(super) fn order_freeze(&mut self, to: usize, of: AttemptRef, stands: bool) {
        self.send(to, Message::Freeze(of, stands));
    }

    pub(super) fn order_forget(&mut self, to: usize, of: AttemptRef) {
        self.send(to, Message::Forget(of));
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
            self.mark("report repeated");
            self.deliver(from, report);
        }
    }

    pub(super) fn deliver(&mut self, from: usize, report: Report) {
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

    pub(super) fn engine_hears(&mut self, from: usize, epoch: u64, event: Event) -> Verdict {
        if self.executors[from].epoch != epoch {
            self.mark("report lost with its connection");
            return Ok(());
        }
        if let Event::ExecutorConnected(hello) = &event {
            let tells = !hello.finished.is_empty();
            self.executors[from].heard = epoch;
            self.executors[from].heard_at = self.now;
            if tells {
                self.mark("ends told again at a hello");
            }
        }
        self.feed(event)
    }

    pub(super) fn connect(&mut self, executor: usize, incarnation: u64) {
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

    pub(super) fn revive(&mut self, executor: usize) {
        let e = &mut self.executors[executor];
        if !e.alive {
            e.alive = true;
            e.incarnation += 1;
            let incarnation = e.incarnation;
            self.at(20, Thing::Connect { executor, incarnation });
        }
    }

    pub(super) fn receive(&mut self, to: usize, message: Message) {
        let incarnation = self.executors[to].incarnation;
        match message {
            Message::Run(of) => match self.executors[to].journal.get(&of).cloned() {
                Some(Phase::Finished(done)) => self.report(to, Report::Finished(done)),
                Some(Phase::Accepted { .. } | Phase::Running { .. }) => {}
                None => {
                    let accepted = Phase::Accepted { term: false, frozen: false };
                    self.executors[to].journal.insert(of.clone(), accepted);
                    let wait = self.rng.range(0, 60);
                    self.at(wait, Thing::Start { on: to, incarnation, of });
                }
            },
            Message::Kill(of) => {
                let wait = self.rng.range(0, 1500);
                match self.executors[to].journal.get_mut(&of) {
                    Some(Phase::Accepted { term, .. } | Phase::Running { term, .. }) => {
                        *term = true;
                    }
                    Some(Phase::Finished(_)) | None => return,
                }
                self.at(wait, Thing::End { on: to, incarnation, of, by_term: true });
            }
            Message::Freeze(of, stands) => {
                if let Some(Phase::Accepted { frozen, .. } | Phase::Running { frozen, .. }) =
                    self.executors[to].journal.get_mut(&of)
                    && std::mem::replace(frozen, stands)
                    && !stands
                {
                    // Its own end may have been due meanwhile.
                    let wait = self.rng.range(0, 1500);
                    self.mark("thawed");
                    self.at(wait, Thing::End { on: to, incarnation, of, by_term: false });
                }
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

    pub(super) fn process_starts(
        &mut self,
        on: usize,
        incarnation: u64,
        of: &AttemptRef,
    ) -> Verdict {
        let executor = &mut self.executors[on];
        if executor.incarnation != incarnation || !executor.alive {
            return Ok(());
        }
        let Some(Phase::Accepted { term: false, frozen }) = executor.journal.get(of) else {
            return Ok(());
        };
        // Its processes are stopped as soon as there are any.
        let frozen = *frozen;
        let fail = !self.calm && self.rng.chance(self.swarm.fail / 4);
        if fail {
            let transient = self.rng.chance(50);
            let message = "fork: no".to_owned();
            let outcome = Outcome::SpawnFailed { message, transient };
            self.finish(on, of, None, outcome, false);
            return Ok(());
        }
        self.checker.process(of, &self.rows)?;
        let running = Phase::Running { since: self.wall(), term: false, frozen };
        self.executors[on].journal.insert(of.clone(), running);
        let at = self.timestamp();
        self.report(on, Report::Started(Started { of: of.clone(), pid: 4242, at }));
        let long = !self.calm && self.rng.chance(self.swarm.long);
        let wait = self.rng.range(0, if long { 40_000 } else { 1500 });
        self.at(wait, Thing::End { on, incarnation, of: of.clone(), by_term: false });
        Ok(())
    }

    pub(super) fn process_ends(
        &mut self,
        on: usize,
        incarnation: u64,
        of: &AttemptRef,
        by_term: bool,
    ) -> Verdict {
        let executor = &self.executors[on];
        if executor.incarnation != incarnation || !executor.alive {
            return Ok(());
        }
        let (since, term) = match executor.journal.get(of) {
            Some(Phase::Accepted { term, .. }) => (None, *term),
            // What is stopped ends by TERM alone, also if its time was up: that stands still too.
            Some(Phase::Running { frozen: true, term: false, .. }) => {
                self.mark("stood still beyond its end");
                return Ok(());
            }
            Some(Phase::Running { since, term, .. }) => (Some(*since), *term),
            Some(Phase::Finished(_)) | None => return Ok(()),
        };
        if !term {
            self.was_not_to_end(on, of)?;
            self.was_to_run(on, of)?;
        }
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
        Ok(())
    }

    /// An attempt that somebody wanted ended is not left to run: on a standing connection TERM has
    /// reached it long before.
    fn was_not_to_end(&self, on: usize, of: &AttemptRef) -> Verdict {
        let e = &self.executors[on];
        let long_ago = |at: i64| at + 3000 < self.now;
        let heard = e.connected && e.heard == e.epoch && long_ago(e.heard_at);
        let wanted = self.ending.get(&of.instance_id).is_some_and(|since| long_ago(*since));
        let current = checker::instance(&self.rows, &of.instance_id)
            .is_some_and(|i| i.state == InstanceState::Running && i.lease() == Some(of.lease));
        if heard && wanted && current {
            return Err(format!("{of:?} was to be ended long ago and got no TERM"));
        }
        Ok(())
    }

    /// What is to stand still does, on a standing connection.
    fn was_to_run(&self, on: usize, of: &AttemptRef) -> Verdict {
        let e = &self.executors[on];
        let long_ago = |at: i64| at + 3000 < self.now;
        let heard = e.connected && e.heard == e.epoch && long_ago(e.heard_at);
        let wanted = self.frozen.get(&of.instance_id).is_some_and(|since| long_ago(*since));
        let current = checker::instance(&self.rows, &of.instance_id)
            .is_some_and(|i| i.is_frozen() && i.lease() == Some(of.lease));
        if heard && wanted && current {
            return Err(format!("{of:?} was to stand still and ended by itself"));
        }
        Ok(())
    }

    fn finish(
        &mut self,
        on: usize,
        of: &AttemptRef,
        since: Option<i64>,
        outcome: Outcome,
        killed: bool,
    ) {
        let mut done = executor::finished(of, since, self.wall(), outcome, killed);
        done.result = self.result(&done.outcome);
        self.checker.reported(&done);
        let done = Box::new(done);
        self.executors[on].journal.insert(of.clone(), Phase::Finished(done.clone()));
        self.report(on, Report::Finished(done));
    }

    /// What the task says of itself.
    fn result(&mut self, outcome: &Outcome) -> TaskResult {
        let mut result = TaskResult::default();
        if self.rng.chance(70) {
            result.output = Some(serde_json::json!({ "n": self.rng.below(10) }));
        }
        if matches!(outcome, Outcome::Exited { code: 1.. }) && self.rng.chance(20) {
            result.error_code = Some("CONN_RESET".to_owned());
        }
        result
    }
}
