//! Who is to give up its slot (requirement D4; design, 'Order').
//!
//! It is tried out: slots that are being freed already are taken as free, and whoever comes first
//! starts. If somebody still lacks a slot, and nothing else, the lowest and youngest of those who
//! give way is taken as ended and queued again, and if the scheduler would then give the slot to one
//! of a higher level, it has to go. So nobody is ended for a slot that another would get, or that
//! comes free anyway. What was tried is taken back afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::order::Victim;
use super::round_robin::Turns;
use super::scheduler::{self, Assignment};
use super::state::State;
use crate::model::id::{ExecutorId, InstanceId};
use crate::model::instance::{Instance, InstanceState, Stopping};
use crate::model::priority::Level;
use crate::model::time::Timestamp;

/// One that has to give way, and who gets the slot as things stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Preemption {
    pub(super) victim: InstanceId,
    pub(super) gives_way_to: InstanceId,
}

/// Who has to give way now.
pub(super) fn plan(state: &mut State, now: Timestamp) -> Vec<Preemption> {
    let lowest = state.victims.values().filter_map(BTreeSet::last).map(|v| v.priority).max();
    let highest = scheduler::open_queues(state)
        .flat_map(|queue| state.queue.classes(queue))
        .map(|class| class.level)
        .min();
    let is_wanted = lowest.zip(highest).is_some_and(|(low, high)| low.level() > high);
    if !is_wanted || !scheduler::is_open(state) {
        return Vec::new();
    }
    let mut trial = Trial::begin(state, now);
    trial.take_slots_that_come();
    let mut plan = Vec::new();
    while let Some(preemption) = trial.next() {
        plan.push(preemption);
    }
    trial.take_back();
    plan
}

/// One thing that was tried.
enum Step {
    /// A running one was counted off.
    Ended(Instance),
    /// Only its slot was.
    SlotFreed(ExecutorId),
    /// One was put in the queue again.
    Queued(Instance),
    /// One was taken out of the queue and counted.
    Started(Instance),
}

struct Trial<'a> {
    state: &'a mut State,
    now: Timestamp,
    turns: Turns,
    steps: Vec<Step>,
    queued: BTreeMap<InstanceId, Instance>,
    /// Victims that are chosen, or that would free a slot for nobody who may have it.
    settled: BTreeSet<InstanceId>,
    /// Executors whose other victims would free a slot for nobody who may have it.
    spent: BTreeSet<ExecutorId>,
}

impl<'a> Trial<'a> {
    fn begin(state: &'a mut State, now: Timestamp) -> Self {
        let turns = state.turns.clone();
        Self {
            state,
            now,
            turns,
            steps: Vec::new(),
            queued: BTreeMap::new(),
            settled: BTreeSet::new(),
            spent: BTreeSet::new(),
        }
    }

    /// Those that are being ended count as ended, and who comes first gets their slots.
    fn take_slots_that_come(&mut self) {
        let ids: Vec<InstanceId> = self.state.ending.iter().cloned().collect();
        for i in
            ids.iter().filter_map(|id| self.state.instances.get(id).cloned()).collect::<Vec<_>>()
        {
            self.end(i);
        }
        while let Some(next) = scheduler::assign(self.state) {
            self.start(&next);
        }
    }

    /// The next one that has to give way.
    fn next(&mut self) -> Option<Preemption> {
        while let Some((executor, victim)) = self.lowest() {
            let Some(i) = self.state.instances.get(&victim.instance).cloned() else {
                self.settled.insert(victim.instance);
                continue;
            };
            let before = self.steps.len();
            // Who lacks a slot and nothing else; then who really gets it, once the victim's quotas
            // are free as well and it waits again.
            self.free_slot(executor.clone());
            let lacking = scheduler::assign(self.state);
            self.take_back_to(before);
            let lacking = lacking.filter(|a| self.may_have(&i, &victim, a));
            self.end(i.clone());
            let taker = scheduler::assign(self.state).filter(|a| self.may_have(&i, &victim, a));
            self.settled.insert(victim.instance.clone());
            if let (Some(_), Some(taker)) = (lacking, taker) {
                self.start(&taker);
                return Some(Preemption { victim: victim.instance, gives_way_to: taker.instance });
            }
            self.take_back_to(before);
            // Others of this executor are not lower. In a queue that shares by level, and only
            // there, an older one may have to go where a younger has not.
            if scheduler::level_weights(self.state, &i.queue).is_none() {
                self.spent.insert(executor);
            }
        }
        None
    }

    /// Whether a victim's slot may go to this one: it is of a higher level. Inside a queue whose
    /// levels share by weight, one that was started while the other waited had its turn.
    fn may_have(&self, i: &Instance, victim: &Victim, taker: &Assignment) -> bool {
        let had_its_turn = i.queue == taker.queue
            && scheduler::level_weights(self.state, &i.queue).is_some()
            && victim.lease.0 > taker.ready_seq;
        taker.level < victim.priority.level() && !had_its_turn
    }

    /// The lowest, then youngest, of those whose executor somebody of a higher level could use.
    fn lowest(&self) -> Option<(ExecutorId, Victim)> {
        let mut found: Option<(&ExecutorId, &Victim)> = None;
        for (at, executor) in self.state.settings.executors.iter().enumerate() {
            let connected = self.state.roster.connection(&executor.id).is_some();
            let (Some(wanted), Some(victims)) =
                (self.wanted(at), self.state.victims.get(&executor.id))
            else {
                continue;
            };
            if !connected || self.spent.contains(&executor.id) {
                continue;
            }
            let left = victims.iter().rev().find(|v| !self.settled.contains(&v.instance));
            let lower = left.filter(|v| v.priority.level() > wanted);
            if let Some(victim) = lower.filter(|v| found.is_none_or(|(_, other)| *v > other)) {
                found = Some((&executor.id, victim));
            }
        }
        found.map(|(executor, victim)| (executor.clone(), victim.clone()))
    }

    /// The highest level that waits for an executor, by its place in the configuration.
    fn wanted(&self, executor: usize) -> Option<Level> {
        scheduler::open_queues(self.state)
            .flat_map(|queue| self.state.queue.classes(queue))
            .filter(|class| class.executors.contains(&executor))
            .filter(|class| scheduler::is_sure(self.state, class))
            .map(|class| class.level)
            .min()
    }

    // What is tried, and how it is taken back

    fn free_slot(&mut self, executor: ExecutorId) {
        self.state.usage.count_slot(&executor, false);
        self.steps.push(Step::SlotFreed(executor));
    }

    /// A running one ends; one that is preempted waits again.
    fn end(&mut self, i: Instance) {
        self.state.count(&i, false);
        let for_good = i.stopping.is_some_and(Stopping::is_for_good);
        self.steps.push(Step::Ended(i.clone()));
        if !for_good {
            let again = Instance {
                state: InstanceState::Ready,
                ready_at: Some(self.now),
                ready_seq: self.state.tip.0 + 1,
                ..i
            };
            self.state.try_queued(&again, true);
            self.queued.insert(again.instance_id.clone(), again.clone());
            self.steps.push(Step::Queued(again));
        }
    }

    fn start(&mut self, next: &Assignment) {
        let again = self.queued.get(&next.instance);
        let Some(i) = again.or_else(|| self.state.instances.get(&next.instance)).cloned() else {
            return;
        };
        next.charge(&mut self.state.turns);
        self.state.try_queued(&i, false);
        let started = Instance { executor_id: Some(next.executor.clone()), ..i };
        self.state.count(&started, true);
        self.steps.push(Step::Started(started));
    }

    fn take_back_to(&mut self, steps: usize) {
        while self.steps.len() > steps
            && let Some(step) = self.steps.pop()
        {
            match step {
                Step::Ended(i) => self.state.count(&i, true),
                Step::SlotFreed(executor) => self.state.usage.count_slot(&executor, true),
                Step::Queued(i) => {
                    self.queued.remove(&i.instance_id);
                    self.state.try_queued(&i, false);
                }
                Step::Started(i) => {
                    self.state.count(&i, false);
                    self.state.try_queued(&i, true);
                }
            }
        }
    }

    fn take_back(mut self) {
        self.take_back_to(0);
        self.state.turns = self.turns;
    }
}
