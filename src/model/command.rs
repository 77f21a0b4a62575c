//! Everything the core can want done: the one way out.

use std::sync::Arc;

use super::deps::Deps;
use super::event::AttemptRef;
use super::id::{ExecutorId, InstanceId, LogSeq, ReplyTo, TaskId};
use super::instance::Instance;
use super::output::Outputs;
use super::record::Batch;
use super::request::{Answer, StopMode};
use super::settings::Settings;
use super::spec::TaskSpec;

/// The whole answer of a turn: what must be remembered, then what shall be done.
#[derive(Debug, Default)]
pub struct Effects {
    /// Made durable first.
    pub commit: Batch,
    /// Carried out once that is durable, in this order.
    pub commands: Vec<Command>,
}

impl Effects {
    /// Adds a later turn's effects; rows written twice keep the later value.
    pub fn append(&mut self, later: Self) {
        self.commit.append(later.commit);
        self.commands.extend(later.commands);
    }
}

/// One thing to do in the world. None of them waits; what fails comes back as an event.
#[derive(Debug, Clone)]
pub enum Command {
    /// This connection has been heard: what follows for the executor may go over it. Orders that
    /// were decided before, for an older connection, go nowhere: the Hello has settled them.
    Attach {
        /// Whose.
        executor: ExecutorId,
        /// Which.
        connection: u64,
    },
    /// Start an attempt.
    Run(Box<Dispatch>),
    /// End an attempt's processes: TERM, grace, KILL.
    Kill {
        /// Where it runs.
        executor: ExecutorId,
        /// Which.
        of: AttemptRef,
    },
    /// Stop an attempt's processes and its timeout's clock; only for an executor that knows how.
    Freeze {
        /// Where it runs.
        executor: ExecutorId,
        /// Which.
        of: AttemptRef,
    },
    /// Let a frozen attempt go on.
    Thaw {
        /// Where it runs.
        executor: ExecutorId,
        /// Which.
        of: AttemptRef,
    },
    /// The end of this attempt is durable: the executor may forget it.
    Acknowledge {
        /// Who reported.
        executor: ExecutorId,
        /// Which.
        of: AttemptRef,
    },
    /// Answer somebody at the door.
    Reply {
        /// Whom.
        to: ReplyTo,
        /// What.
        answer: Box<Answer>,
    },
    /// The set of `file:` triggers is now this.
    WatchFiles(Vec<FileWatch>),
    /// Somebody waits for what a run was to leave behind: look for it until told otherwise.
    LookForOutputs {
        /// The run's instance.
        instance_id: InstanceId,
        /// What to look for.
        outputs: Arc<Outputs>,
    },
    /// Nobody waits for a run's outputs any more, or they were found.
    ForgetOutputs {
        /// The run's instance.
        instance_id: InstanceId,
    },
    /// Nothing holds the daemon any more.
    Exit(StopMode),
}

/// One `file:` trigger, as the watcher needs it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileWatch {
    /// Who listens; whoever is new to a pattern is told of what is there.
    pub task_id: TaskId,
    /// Absolute glob.
    pub pattern: String,
    /// Unchanged for this long, or closed after writing.
    pub settle: std::time::Duration,
    /// Period of looking; `None`: by events.
    pub poll: Option<std::time::Duration>,
}

/// One attempt, with all that its environment is made of.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// Where.
    pub executor: ExecutorId,
    /// Which, with its fence.
    pub of: AttemptRef,
    /// The instance as it is now: RUNNING.
    pub instance: Arc<Instance>,
    /// The definition it is pinned to.
    pub spec: Arc<TaskSpec>,
    /// The zone of the task, an IANA name.
    pub timezone: String,
    /// `SCHED_DEPS`: per upstream task its instance, state, parameters, output and found outputs.
    pub deps: Deps,
    /// Types from the configuration.
    pub settings: Arc<Settings>,
}

/// Where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tip(pub LogSeq);
