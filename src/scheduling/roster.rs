//! What the decision needs to know of executors: labels and slots (configured), connection and
//! load (observed), and how many attempts run where (derived from the instances).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::event::{Hello, Load};
use crate::model::id::{ExecutorId, QueueName, TaskId};
use crate::model::instance::Instance;
use crate::model::settings::{ExecutorSettings, Settings};
use crate::model::time::Timestamp;

/// An executor's live connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Connection {
    pub(super) incarnation: u64,
    pub(super) pid: u32,
    pub(super) boot_id: Arc<str>,
    pub(super) heard_at: Timestamp,
    pub(super) load: Option<Load>,
    /// Whether it can stop an attempt's processes and let them go on.
    pub(super) can_freeze: bool,
}

/// Observed: rebuilt from nothing at every start.
#[derive(Debug, Clone, Default)]
pub(super) struct Roster {
    connections: BTreeMap<ExecutorId, Connection>,
}

impl Roster {
    pub(super) fn connect(&mut self, hello: &Hello, now: Timestamp) {
        self.connections.insert(
            hello.executor.clone(),
            Connection {
                incarnation: hello.incarnation,
                pid: hello.pid,
                boot_id: Arc::clone(&hello.boot_id),
                heard_at: now,
                load: None,
                can_freeze: hello.frozen.is_some(),
            },
        );
    }

    pub(super) fn heartbeat(&mut self, executor: &ExecutorId, load: Load, now: Timestamp) {
        if let Some(connection) = self.connections.get_mut(executor) {
            connection.heard_at = now;
            connection.load = Some(load);
        }
    }

    /// Takes the connection away; false if it was not there or is another process's.
    pub(super) fn disconnect(&mut self, executor: &ExecutorId, incarnation: Option<u64>) -> bool {
        let gone = self
            .connections
            .get(executor)
            .is_some_and(|c| incarnation.is_none_or(|i| i == c.incarnation));
        if gone {
            self.connections.remove(executor);
        }
        gone
    }

    pub(super) fn connection(&self, executor: &ExecutorId) -> Option<&Connection> {
        self.connections.get(executor)
    }
}

/// Attempts that run, by what quotas count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Usage {
    by_executor: BTreeMap<ExecutorId, u32>,
    by_task: BTreeMap<TaskId, u32>,
    by_queue: BTreeMap<QueueName, u32>,
    by_owner: BTreeMap<String, u32>,
}

impl Usage {
    /// Counts an instance that became RUNNING (`true`) or ceased to be.
    pub(super) fn count(&mut self, instance: &Instance, owner: &str, running: bool) {
        if let Some(executor) = &instance.executor_id {
            step(&mut self.by_executor, executor.clone(), running);
        }
        step(&mut self.by_task, instance.task_id.clone(), running);
        step(&mut self.by_queue, instance.queue.clone(), running);
        step(&mut self.by_owner, owner.to_owned(), running);
    }

    /// Counts the slot alone, for trying out what would follow.
    pub(super) fn count_slot(&mut self, executor: &ExecutorId, running: bool) {
        step(&mut self.by_executor, executor.clone(), running);
    }

    /// Executors on which something runs.
    pub(super) fn executors(&self) -> impl Iterator<Item = &ExecutorId> {
        self.by_executor.keys()
    }

    /// Queues whose instances run.
    pub(super) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.by_queue.keys()
    }

    pub(super) fn executor(&self, id: &ExecutorId) -> u32 {
        self.by_executor.get(id).copied().unwrap_or(0)
    }

    pub(super) fn task(&self, id: &TaskId) -> u32 {
        self.by_task.get(id).copied().unwrap_or(0)
    }

    pub(super) fn queue(&self, name: &QueueName) -> u32 {
        self.by_queue.get(name).copied().unwrap_or(0)
    }

    pub(super) fn owner(&self, owner: &str) -> u32 {
        self.by_owner.get(owner).copied().unwrap_or(0)
    }
}

fn step<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, up: bool) {
    let count = counts.get(&key).copied().unwrap_or(0);
    match if up { count + 1 } else { count.saturating_sub(1) } {
        0 => counts.remove(&key),
        count => counts.insert(key, count),
    };
}

/// Free slots per executor, by its place in the configuration; one that is not connected has none.
pub(super) fn free(settings: &Settings, roster: &Roster, usage: &Usage) -> Vec<u32> {
    let left = |e: &ExecutorSettings| {
        let connected = roster.connection(&e.id).is_some();
        if connected { e.slots.saturating_sub(usage.executor(&e.id)) } else { 0 }
    };
    settings.executors.iter().map(left).collect()
}
