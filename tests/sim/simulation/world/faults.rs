//! What goes wrong between the daemon, the executors, the machine and its clock.

use super::super::checker::Verdict;
use super::super::executor;
use super::{Thing, World};
use crate::model::event::{AttemptRef, Event, Outcome, Report};
use crate::model::id::Lease;
use crate::model::instance::InstanceState;
use crate::model::request::StopMode;

/// A kind of fault.
pub(super) struct Fault {
    /// Its name in the marks.
    pub(super) name: &'static str,
    /// Its greatest share.
    pub(super) most: u64,
    happens: fn(&mut World) -> Verdict,
}

/// All kinds.
pub(super) const FAULTS: [Fault; 7] = [
    Fault { name: "executor dies", most: 40, happens: World::executor_dies },
    Fault { name: "machine starts anew", most: 12, happens: World::reboot },
    Fault { name: "connection breaks", most: 30, happens: World::connection_breaks },
    Fault { name: "late report", most: 30, happens: World::late_report },
    Fault { name: "impossible report", most: 30, happens: World::impossible_report },
    Fault { name: "clock is set", most: 15, happens: World::clock_is_set },
    Fault { name: "daemon is asked to stop", most: 8, happens: World::asked_to_stop },
];

impl World {
    pub(super) fn fault(&mut self) -> Verdict {
        let names: Vec<&'static str> = FAULTS.iter().map(|fault| fault.name).collect();
        let Some(n) = self.swarm.choose(&mut self.rng, &names) else { return Ok(()) };
        self.mark(FAULTS[n].name);
        (FAULTS[n].happens)(self)
    }

    fn any_executor(&mut self) -> usize {
        let count = u64::try_from(self.executors.len()).unwrap_or(1);
        usize::try_from(self.rng.below(count)).unwrap_or(0)
    }

    /// A report from long ago, perhaps of an attempt that is over.
    fn late_report(&mut self) -> Verdict {
        let on = self.any_executor();
        let past = std::mem::take(&mut self.executors[on].past);
        if let Some(report) = self.rng.pick(&past).cloned() {
            self.deliver(on, report);
        }
        self.executors[on].past = past;
        Ok(())
    }

    /// A report that nobody can have sent: of another attempt, under another lease.
    fn impossible_report(&mut self) -> Verdict {
        let on = self.any_executor();
        let running = self.some(|i| i.state == InstanceState::Running);
        if let Some((i, lease)) = running.and_then(|i| i.lease().map(|l| (i, l))) {
            let other = if self.rng.chance(50) { (0, 1) } else { (1, 0) };
            let of = AttemptRef {
                instance_id: i.instance_id,
                attempt: i.attempt + other.0,
                lease: Lease(lease.0 + other.1),
            };
            let outcome = Outcome::Exited { code: 0 };
            let done = executor::finished(&of, None, self.wall(), outcome, false);
            self.deliver(on, Report::Finished(Box::new(done)));
        }
        Ok(())
    }

    fn lost_event(&self, on: usize) -> Event {
        let e = &self.executors[on];
        let why = "its connection is gone".to_owned();
        Event::ExecutorLost { executor: e.id.clone(), incarnation: Some(e.incarnation), why }
    }

    fn connection_breaks(&mut self) -> Verdict {
        let on = self.any_executor();
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

    fn executor_dies(&mut self) -> Verdict {
        let on = self.any_executor();
        if !self.executors[on].alive {
            return Ok(());
        }
        let event = self.lost_event(on);
        let lost = self.executors[on].die();
        self.checker.died(lost);
        let wait = self.rng.range(0, 8000);
        self.at(wait, Thing::Revive(on));
        self.feed(event)
    }

    /// The machine goes down and comes up: what was not synced is gone.
    fn reboot(&mut self) -> Verdict {
        if self.engine.is_some() {
            self.crash();
        }
        self.boots += 1;
        self.checker.boot(&self.boot());
        for on in 0..self.executors.len() {
            if self.executors[on].alive {
                let lost = self.executors[on].die();
                self.checker.died(lost);
                let wait = self.rng.range(100, 5000);
                self.at(wait, Thing::Revive(on));
            }
            let lost = std::mem::take(&mut self.executors[on].lost);
            self.executors[on].lost = lost.into_iter().filter(|_| self.rng.chance(50)).collect();
        }
        Ok(())
    }

    /// By a little, by hours, by days; or set right again.
    fn clock_is_set(&mut self) -> Verdict {
        const HOUR: i64 = 3_600_000;
        let by = match self.rng.below(6) {
            0 => self.rng.range(-30_000, 30_000),
            1 => self.rng.range(-600_000, 300_000),
            2 => self.rng.range(4 * HOUR, 40 * HOUR),
            3 => self.rng.range(-40 * HOUR, -4 * HOUR),
            _ => -self.offset,
        };
        if by == 0 { Ok(()) } else { self.clock_steps(by) }
    }

    fn asked_to_stop(&mut self) -> Verdict {
        let modes = [StopMode::Handover, StopMode::Drain, StopMode::Cancel];
        let mode = *self.rng.pick(&modes).unwrap_or(&StopMode::Handover);
        self.feed(Event::Stop(mode))
    }
}
