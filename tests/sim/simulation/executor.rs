//! A model of the executor process: its journal, its processes, its connection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::event::{AttemptRef, Finished, Hello, Outcome, Report, TaskResult};
use crate::model::id::ExecutorId;
use crate::model::time::Timestamp;

/// How far an accepted attempt is.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    Accepted { term: bool, frozen: bool },
    Running { since: i64, term: bool, frozen: bool },
    Finished(Box<Finished>),
}

/// One configured executor.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) id: ExecutorId,
    pub(crate) alive: bool,
    pub(crate) incarnation: u64,
    /// Counts connections: what was on an earlier one is discarded.
    pub(crate) epoch: u64,
    pub(crate) connected: bool,
    /// The connection whose hello the daemon has handled.
    pub(crate) heard: u64,
    /// When, in real time, that was.
    pub(crate) heard_at: i64,
    /// On disk: survives the process.
    pub(crate) journal: BTreeMap<AttemptRef, Phase>,
    /// What earlier processes accepted and nobody saw end.
    pub(crate) lost: BTreeSet<AttemptRef>,
    /// Everything ever reported, to repeat some of it much later.
    pub(crate) past: Vec<Report>,
    /// Messages of one connection keep their order.
    pub(crate) last_in: i64,
    pub(crate) last_out: i64,
}

impl Executor {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: ExecutorId::from(id),
            alive: true,
            incarnation: 1,
            epoch: 0,
            connected: false,
            heard: 0,
            heard_at: 0,
            journal: BTreeMap::new(),
            lost: BTreeSet::new(),
            past: Vec::new(),
            last_in: 0,
            last_out: 0,
        }
    }

    pub(crate) fn disconnect(&mut self) {
        self.connected = false;
        self.epoch += 1;
    }

    /// The process dies. What it ran is ended by its successor, which knows only the journal.
    /// Gives the attempts whose end nobody will have seen.
    pub(crate) fn die(&mut self) -> Vec<AttemptRef> {
        self.alive = false;
        self.disconnect();
        let on: Vec<AttemptRef> = self
            .journal
            .iter()
            .filter(|(_, phase)| !matches!(phase, Phase::Finished(_)))
            .map(|(of, _)| of.clone())
            .collect();
        for of in &on {
            self.journal.remove(of);
            self.lost.insert(of.clone());
        }
        on
    }

    /// Attempts whose processes are stopped.
    fn frozen(&self) -> Vec<AttemptRef> {
        let stopped = self.journal.iter().filter(|(_, phase)| match phase {
            Phase::Accepted { frozen, .. } | Phase::Running { frozen, .. } => *frozen,
            Phase::Finished(_) => false,
        });
        stopped.map(|(of, _)| of.clone()).collect()
    }

    pub(crate) fn hello(&self, boot_id: &Arc<str>) -> Hello {
        let mut hello = Hello {
            executor: self.id.clone(),
            incarnation: self.incarnation,
            connection: 0,
            pid: u32::try_from(100 + self.incarnation).unwrap_or(1),
            boot_id: Arc::clone(boot_id),
            running: Vec::new(),
            frozen: Some(self.frozen()),
            lost: self.lost.iter().cloned().collect(),
            finished: Vec::new(),
        };
        for (of, phase) in &self.journal {
            match phase {
                Phase::Finished(done) => hello.finished.push((**done).clone()),
                Phase::Accepted { .. } | Phase::Running { .. } => hello.running.push(of.clone()),
            }
        }
        hello
    }
}

/// An end as the executor writes it down.
pub(crate) fn finished(
    of: &AttemptRef,
    since: Option<i64>,
    now: i64,
    outcome: Outcome,
    killed: bool,
) -> Finished {
    Finished {
        of: of.clone(),
        started_at: since.map(Timestamp::from_millis),
        finished_at: Timestamp::from_millis(now),
        outcome,
        result: TaskResult::default(),
        killed,
        user_ms: Some(1),
        system_ms: None,
        max_rss_bytes: None,
        output_bytes: Some(0),
    }
}
