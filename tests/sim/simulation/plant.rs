//! Faults planted on purpose, to prove that the checker sees them. All of them are around the
//! engine: in what it is given, in what becomes of what it returns, in what the store gives back.
//! Where a definition reaches the engine otherwise than it was written, it carries what was
//! written in its description, and the checker judges by that.

use std::sync::Arc;
use std::time::Duration;

use super::checker::{self, Moment, Rows};
use crate::model::command::Command;
use crate::model::event::{AttemptRef, Definitions, Event, Report};
use crate::model::id::Lease;
use crate::model::instance::InstanceState;
use crate::model::output::Sight;
use crate::model::priority::Priority;
use crate::model::record::{Batch, FileIdentity, Row, RowKey};
use crate::model::request::{Answer, PriorityText, Reply, Request};
use crate::model::settings::{Discipline, Settings};
use crate::model::spec::{DepType, Strength, TaskSpec};
use crate::model::time::Timestamp;
use crate::rng::Rng;

/// A fault built into the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    None,
    /// Reports count whatever their attempt and lease.
    NoLeaseCheck,
    /// Now and then a row is not stored.
    LostRow,
    /// Now and then a log entry is not stored.
    LostRecord,
    /// Cursors are never stored: what is live cannot be rebuilt.
    CursorNotStored,
    /// Now and then an attempt is sent a second time under a new lease.
    NewLease,
    /// Commands go out before their commit.
    EarlyCommands,
    /// What shall run is not sent again after the daemon was away.
    NotSentAgain,
    /// Orders to end an attempt are lost.
    LostKill,
    /// A cancel is answered and not done.
    LostCancel,
    /// Pauses of tasks, queues and all are forgotten in a crash.
    ForgottenHold,
    /// `maxConcurrent` does not reach the engine.
    NoMaxConcurrent,
    /// Every queue may run one more.
    QueueQuotaTooLarge,
    /// Every owner may run one more.
    OwnerQuotaTooLarge,
    /// Queues have no weights.
    NoWeights,
    /// Executors seem to offer every label and type.
    NoLabels,
    /// Strong edges reach the engine as weak ones.
    WeakEdges,
    /// Conditions on edges do not reach the engine.
    NoConditions,
    /// After a crash a waiting instance is bound to another cycle.
    WrongCycle,
    /// The greatest number goes first.
    PriorityReversed,
    /// After a crash the last that became READY goes first.
    LastInFirstOut,
    /// Half the wait before a retry.
    RetryTooEarly,
    /// One attempt more than `maxAttempts`.
    AttemptTooMany,
    /// Retries that nobody allowed: what is not idempotent seems to be.
    AllIdempotent,
    /// After a crash the cursor of a time trigger is one period behind.
    LedgerDoubled,
    /// Parameters seem to have a default.
    WrongParams,
    /// A retry waits for ever: its time is lost in a crash.
    RetryForgotten,
    /// Everything that may run again seems to give way.
    AllPreemptible,
    /// Orders to stop processes for a while are lost.
    LostFreeze,
    /// A skip is answered and not done.
    LostSkip,
    /// Levels have no weights.
    NoLevelWeights,
    /// Whatever stands at a path counts as what a run left behind.
    AnyData,
    /// Edges on data reach the engine as edges on success.
    NoData,
}

/// All faults, with a part of what the check says that must catch each, or parts of which one.
pub(crate) const ALL: [(Plant, &str); 32] = [
    (Plant::NoLeaseCheck, "which is not on, changed something"),
    (Plant::LostRow, ""),
    (Plant::LostRecord, "log entry|, the log"),
    (Plant::CursorNotStored, "differ in"),
    (Plant::NewLease, "was really started 2 times"),
    (Plant::EarlyCommands, "is sent before"),
    (Plant::NotSentAgain, "still RUNNING"),
    (Plant::LostKill, "got no TERM"),
    (Plant::LostCancel, "is acknowledged"),
    (Plant::ForgottenHold, "paused"),
    (Plant::NoMaxConcurrent, "maxConcurrent is"),
    (Plant::QueueQuotaTooLarge, "of queue"),
    (Plant::OwnerQuotaTooLarge, "of owner"),
    (Plant::NoWeights, "the turn of"),
    (Plant::NoLabels, "does not take"),
    (Plant::WeakEdges, "is READY but its edge"),
    (Plant::NoConditions, "is READY but its edge"),
    (Plant::WrongCycle, "is of another cycle"),
    (Plant::PriorityReversed, "was passed over"),
    (Plant::LastInFirstOut, "was passed over"),
    (Plant::RetryTooEarly, "next attempt"),
    (Plant::AttemptTooMany, "next attempt"),
    (Plant::AllIdempotent, "next attempt"),
    (Plant::LedgerDoubled, "nominal fire|made twice"),
    (Plant::WrongParams, "parameter"),
    (Plant::RetryForgotten, "next attempt"),
    (Plant::AllPreemptible, "need not give way|the turn of"),
    (Plant::LostFreeze, "was to stand still"),
    (Plant::LostSkip, "is acknowledged"),
    (Plant::NoLevelWeights, "the turn of"),
    (Plant::AnyData, "nobody saw the data"),
    (Plant::NoData, "is not there"),
];

impl Plant {
    /// By its name, as `Debug` writes it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = ALL.iter().map(|(plant, _)| *plant);
        all.chain([Self::None]).find(|plant| format!("{plant:?}") == name)
    }

    // What the engine is given

    /// The configuration as the engine is given it.
    pub(super) fn settings(self, written: &Settings) -> Settings {
        let mut given = written.clone();
        if self == Self::QueueQuotaTooLarge {
            for queue in &mut given.queues {
                queue.max_running = queue.max_running.map(|max| max + 1);
            }
        }
        if self == Self::OwnerQuotaTooLarge {
            given.owner_quota.values_mut().for_each(|max| *max += 1);
        }
        if self == Self::NoWeights {
            given.queues.iter_mut().for_each(|queue| queue.weight = 1);
        }
        if self == Self::NoLevelWeights {
            given.queues.iter_mut().for_each(|queue| queue.discipline = Discipline::Strict);
        }
        if self == Self::NoLabels {
            for executor in &mut given.executors {
                executor.task_types = vec!["*".to_owned()];
                executor.labels.clear();
            }
        }
        given
    }

    /// Definitions as they reach the engine.
    pub(super) fn definitions(self, mut read: Definitions) -> Definitions {
        for spec in read.changed.iter_mut().flat_map(|file| &mut file.specs) {
            let mut given = (**spec).clone();
            self.spec(&mut given);
            if given != **spec {
                given.description = serde_json::to_string(&**spec).ok();
                *spec = Arc::new(given);
            }
        }
        read
    }

    fn spec(self, spec: &mut TaskSpec) {
        match self {
            Self::NoMaxConcurrent => spec.max_concurrent = None,
            Self::NoLabels => spec.executor_labels.clear(),
            Self::WeakEdges => {
                spec.depends_on.iter_mut().for_each(|edge| edge.strength = Strength::Weak);
            }
            Self::AllPreemptible => spec.preemptible = spec.may_run_again(),
            Self::NoData => {
                spec.depends_on.iter_mut().for_each(|edge| edge.dep_type = DepType::Success);
            }
            Self::NoConditions => spec.depends_on.iter_mut().for_each(|edge| edge.when = None),
            Self::PriorityReversed => spec.priority = mirrored(spec.priority),
            Self::RetryTooEarly => spec.retry.interval /= 2,
            Self::AttemptTooMany if spec.idempotent => spec.retry.max_attempts += 1,
            Self::AllIdempotent if !spec.idempotent => {
                spec.idempotent = true;
                spec.retry.max_attempts = 2;
            }
            Self::WrongParams => {
                for schema in spec.runtime_params.values_mut() {
                    schema.default = Some(77.into());
                }
            }
            _ => {}
        }
    }

    /// What was written, of a definition as the engine has it.
    pub(super) fn written(self, given: &Arc<TaskSpec>) -> Arc<TaskSpec> {
        let written = given.description.as_deref().filter(|_| self != Self::None);
        let written = written.and_then(|text| serde_json::from_str(text).ok());
        written.map_or_else(|| Arc::clone(given), Arc::new)
    }

    /// A priority as it was meant, of one that the engine has.
    pub(super) fn meant(self, priority: Priority) -> Priority {
        if self == Self::PriorityReversed { mirrored(priority) } else { priority }
    }

    /// An event as it reaches the engine.
    pub(super) fn event(self, mut event: Event, rows: &Rows) -> Event {
        match &mut event {
            Event::ExecutorReport { report: Report::Finished(done), .. }
                if self == Self::NoLeaseCheck =>
            {
                let row = checker::instance(rows, &done.of.instance_id);
                if let Some((i, lease)) = row.and_then(|i| Some((i, i.lease()?))) {
                    done.of.attempt = i.attempt;
                    done.of.lease = lease;
                }
            }
            Event::OutputsLooked(looks) if self == Self::AnyData => {
                for sight in looks.iter_mut().flat_map(|look| &mut look.sights) {
                    let (size, mtime_ns) = (1, i64::MAX);
                    let identity = FileIdentity { device: 1, inode: 5, size, mtime_ns };
                    *sight = Sight::File { identity, ctime_ns: mtime_ns };
                }
            }
            Event::Request { request: Request::SetPriority { priority, .. }, .. } => {
                *priority = self.meant(*priority);
            }
            Event::Request { request: Request::Submit { submission, .. }, .. } => {
                let given = submission.priority.map(|p| PriorityText(self.meant(p.0)));
                submission.priority = given;
            }
            Event::Request { request, .. }
                if self == Self::LostCancel && matches!(request, Request::Cancel { .. })
                    || self == Self::LostSkip && matches!(request, Request::Skip { .. }) =>
            {
                *request = Request::Status;
            }
            _ => {}
        }
        event
    }

    // What becomes of what it returns

    /// A turn's effects, as the world sees them.
    pub(super) fn moment(self, moment: &mut Moment, rng: &mut Rng) {
        match self {
            Self::LostCancel | Self::LostSkip
                if matches!(moment.asked, Some(Request::Cancel { .. } | Request::Skip { .. }))
                    && is_status(moment) =>
            {
                for command in &mut moment.commands {
                    if let Command::Reply { answer, .. } = command {
                        **answer = Answer::Ok(Reply::Done);
                    }
                }
            }
            Self::NotSentAgain => {
                let decided = |of: &AttemptRef| {
                    let key = RowKey::Instance { instance_id: of.instance_id.clone() };
                    moment.batch.rows.contains_key(&key)
                };
                moment.commands.retain(|command| match command {
                    Command::Run(dispatch) => decided(&dispatch.of),
                    _ => true,
                });
            }
            Self::LostFreeze => {
                moment.commands.retain(|c| !matches!(c, Command::Freeze { .. }));
            }
            Self::LostKill => {
                moment.commands.retain(|c| !matches!(c, Command::Kill { .. }) || rng.chance(30));
            }
            _ => {}
        }
    }

    /// What is written down of a turn.
    pub(super) fn batch(self, batch: &mut Batch, rng: &mut Rng) {
        match self {
            Self::LostRecord if rng.chance(2) => {
                batch.records.pop();
            }
            Self::LostRow => batch.rows.retain(|_, _| !rng.chance(2)),
            Self::CursorNotStored => {
                batch.rows.retain(|key, _| !matches!(key, RowKey::Cursor { .. }));
            }
            _ => {}
        }
    }

    /// A dispatch that nobody decided on.
    pub(super) fn again(self, of: &AttemptRef, rng: &mut Rng) -> Option<AttemptRef> {
        let again = self == Self::NewLease && rng.chance(5);
        again.then(|| AttemptRef { lease: Lease(of.lease.0 + 1), ..of.clone() })
    }

    // What the store gives back

    /// The store after the daemon was away.
    pub(super) fn store(self, rows: &mut Rows) {
        match self {
            Self::ForgottenHold => {
                rows.retain(|key, _| !matches!(key, RowKey::Hold { .. }));
                for row in rows.values_mut() {
                    if let Row::Task(task) = row {
                        task.paused = None;
                    }
                }
            }
            Self::LedgerDoubled => rows.values_mut().for_each(one_period_back),
            Self::LastInFirstOut => rows.values_mut().for_each(last_in_first),
            Self::RetryForgotten => rows.values_mut().for_each(no_retry),
            Self::WrongCycle => bind_to_another_cycle(rows),
            _ => {}
        }
    }
}

/// Whether something else was asked of the engine.
fn is_status(moment: &Moment) -> bool {
    moment.commands.iter().any(|command| match command {
        Command::Reply { answer, .. } => matches!(**answer, Answer::Ok(Reply::Status(_))),
        _ => false,
    })
}

fn mirrored(priority: Priority) -> Priority {
    Priority::new(9 - priority.value()).unwrap_or(priority)
}

fn one_period_back(row: &mut Row) {
    let Row::Cursor(cursor) = row else { return };
    let period = cursor.trigger.strip_prefix("every:").and_then(|p| p.parse().ok());
    let Some(period) = period else { return };
    cursor.handled_to = cursor.handled_to.minus(Duration::from_millis(period));
}

fn last_in_first(row: &mut Row) {
    let Row::Instance(i) = row else { return };
    let i = Arc::make_mut(i);
    if i.state == InstanceState::Ready {
        let back = i.ready_at.map_or(0, Timestamp::as_millis);
        i.ready_at = Some(Timestamp::from_millis(-back));
        i.ready_seq = 1_000_000_000 - i.ready_seq;
    }
}

fn no_retry(row: &mut Row) {
    let Row::Instance(i) = row else { return };
    Arc::make_mut(i).next_retry_at = None;
}

fn bind_to_another_cycle(rows: &mut Rows) {
    let all: Vec<_> = checker::instances(rows)
        .map(|i| (i.task_id.clone(), i.cycle.clone(), i.instance_id.clone()))
        .collect();
    for row in rows.values_mut() {
        let Row::Instance(i) = row else { continue };
        let i = Arc::make_mut(i);
        if i.state != InstanceState::Pending {
            continue;
        }
        for edge in Arc::make_mut(&mut i.edges) {
            let other = all
                .iter()
                .find(|(task, cycle, _)| *task == edge.task_id && !cycle.matches(&i.cycle));
            if let Some((_, _, id)) = other {
                edge.instance_id = Some(id.clone());
            }
        }
    }
}
