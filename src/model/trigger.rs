//! Triggers: what starts a task (contract §2, 'Triggers'; requirement E1).

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::cron::CronExpr;
use super::id::TaskId;
use super::instance::InstanceState;
use super::json::JsonMap;
use super::schema;
use super::time::optional_millis;

/// One trigger with its own parameters (requirement E1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct Trigger {
    /// What starts the task.
    pub when: TriggerKind,
    /// Parameters of the instances it makes; placeholders allowed in strings.
    pub params: JsonMap,
}

impl Trigger {
    /// The zone in which its times are told, if that is its own.
    #[must_use]
    pub fn timezone(&self) -> Option<&str> {
        match &self.when {
            TriggerKind::Cron(t) => t.timezone.as_deref(),
            TriggerKind::Every(_)
            | TriggerKind::Boot
            | TriggerKind::File(_)
            | TriggerKind::Event(_)
            | TriggerKind::Task(_) => None,
        }
    }

    /// What identifies the trigger: its content, not its position (design 'Clock, disk, faults').
    ///
    /// Only what decides *when* it fires counts; a change of parameters is the same trigger.
    #[must_use]
    pub fn key(&self) -> String {
        match &self.when {
            TriggerKind::Cron(t) => {
                let zone = t.timezone.as_ref().map(|z| format!(" {z}")).unwrap_or_default();
                format!("cron:{}{zone}", t.expr.as_str())
            }
            TriggerKind::Every(t) => format!("every:{}", t.period.as_millis()),
            TriggerKind::Boot => "boot".to_owned(),
            TriggerKind::File(t) => format!("file:{}", t.pattern),
            TriggerKind::Event(name) => format!("event:{name}"),
            TriggerKind::Task(t) => format!("task:{}:{:?}", t.task_id, t.states),
        }
    }
}

/// What starts a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerKind {
    /// Times of a cron expression.
    Cron(CronTrigger),
    /// A fixed rate aligned to the epoch.
    Every(EveryTrigger),
    /// Once per boot of the machine.
    Boot,
    /// A file that arrives.
    File(FileTrigger),
    /// A named event from outside (`schedctl emit`).
    Event(String),
    /// Another task that reaches a state for good.
    Task(TaskTrigger),
}

/// Times of a cron expression.
#[derive(Debug, Clone, PartialEq)]
pub struct CronTrigger {
    /// The expression.
    pub expr: CronExpr,
    /// Zone of this trigger; `None`: the task's.
    pub timezone: Option<String>,
    /// What to do with missed fires and with overlap.
    pub policy: FirePolicy,
}

/// A fixed rate aligned to the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EveryTrigger {
    /// The period; at least one second.
    pub period: Duration,
    /// What to do with missed fires and with overlap.
    pub policy: FirePolicy,
}

/// What to do with a time trigger's missed fires and with overlap (requirement E2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirePolicy {
    /// Fires missed while no daemon ran.
    pub misfire: Misfire,
    /// Older missed fires are recorded as MISSED.
    pub catch_up: Duration,
    /// When an instance of the task is READY, RUNNING or waiting for a retry.
    pub overlap: Overlap,
}

impl Default for FirePolicy {
    fn default() -> Self {
        Self {
            misfire: Misfire::RunOnce,
            catch_up: Duration::from_secs(24 * 3600),
            overlap: Overlap::Skip,
        }
    }
}

/// What to do with missed fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Misfire {
    /// Record them only.
    Skip,
    /// Run the newest, record the others as one COALESCED row.
    RunOnce,
    /// Run all within the catch-up window.
    RunAll,
}

/// What to do with a fire while an earlier instance is still at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Overlap {
    /// Record SKIPPED_OVERLAP.
    Skip,
    /// Make the instance; it waits.
    Queue,
    /// Cancel the earlier ones and make the instance.
    Replace,
    /// Make the instance; it may run beside the others.
    Allow,
}

/// A file that arrives (requirement E3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTrigger {
    /// Absolute glob.
    pub pattern: String,
    /// Unchanged for this long, or closed after writing.
    pub settle: Duration,
    /// Period of looking, for mounts without events; `None`: by events.
    pub poll: Option<Duration>,
}

/// Another task that reaches a state for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTrigger {
    /// The other task.
    pub task_id: TaskId,
    /// The states; default FAILED and TIMEOUT.
    pub states: Vec<InstanceState>,
}

/// The keys of which each trigger has exactly one.
pub const TRIGGER_KINDS: [&str; 6] = ["cron", "every", "boot", "file", "event", "task"];

/// Keys that only some kinds have, with those kinds.
pub const KEYS_OF_SOME_KINDS: [(&str, &[&str]); 7] = [
    ("timezone", &["cron"]),
    ("misfire", &["cron", "every"]),
    ("catchUpMs", &["cron", "every"]),
    ("overlap", &["cron", "every"]),
    ("settleMs", &["file"]),
    ("pollMs", &["file"]),
    ("states", &["task"]),
];

/// A trigger as the contract writes it: one key names the kind, the others belong to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Trigger")]
struct Form {
    /// Times of a cron expression: five fields, six with leading seconds, or `@daily` and the like.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    cron: Option<CronExpr>,
    /// A fixed rate, aligned to the epoch; at least a second.
    #[serde(with = "optional_millis", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::period")]
    every: Option<Duration>,
    /// Once per boot of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::only_true")]
    boot: Option<bool>,
    /// A pattern; each file that arrives makes one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::word")]
    file: Option<String>,
    /// A named event from outside (`schedctl emit`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    event: Option<String>,
    /// Another task that reaches one of `states` for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::task_id")]
    task: Option<TaskId>,
    /// IANA zone of this trigger; without it, the task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    /// What becomes of fires that were missed while no daemon ran; RUN_ONCE by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    misfire: Option<Misfire>,
    /// Fires missed before that are recorded as MISSED; a day by default.
    #[serde(
        rename = "catchUpMs",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::duration")]
    catch_up: Option<Duration>,
    /// What a fire does while a run is READY, RUNNING or waits for a retry; SKIP by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<Overlap>,
    /// A file has arrived once it is unchanged for this long, or closed after writing; 500 by default.
    #[serde(
        rename = "settleMs",
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::duration")]
    settle: Option<Duration>,
    /// Period of looking, at least 10 ms, for file systems without change events; remote ones are
    /// looked at every 5 s by default.
    #[serde(rename = "pollMs", with = "optional_millis", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::poll_period")]
    poll: Option<Duration>,
    /// States of the other task; FAILED and TIMEOUT by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::final_states")]
    states: Option<Vec<InstanceState>>,
    /// Parameters of the runs it makes; placeholders allowed.
    #[serde(skip_serializing_if = "JsonMap::is_empty")]
    params: JsonMap,
}

impl JsonSchema for Trigger {
    fn schema_name() -> Cow<'static, str> {
        Form::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::trigger(Form::json_schema(generator))
    }
}

impl Form {
    fn with_policy(self, policy: FirePolicy) -> Self {
        Self {
            misfire: Some(policy.misfire),
            catch_up: Some(policy.catch_up),
            overlap: Some(policy.overlap),
            ..self
        }
    }

    fn policy(&self) -> FirePolicy {
        let default = FirePolicy::default();
        FirePolicy {
            misfire: self.misfire.unwrap_or(default.misfire),
            catch_up: self.catch_up.unwrap_or(default.catch_up),
            overlap: self.overlap.unwrap_or(default.overlap),
        }
    }
}

impl From<Trigger> for Form {
    fn from(trigger: Trigger) -> Self {
        let form = Self { params: trigger.params, ..Self::default() };
        match trigger.when {
            TriggerKind::Cron(t) => {
                Self { cron: Some(t.expr), timezone: t.timezone, ..form }.with_policy(t.policy)
            }
            TriggerKind::Every(t) => Self { every: Some(t.period), ..form }.with_policy(t.policy),
            TriggerKind::Boot => Self { boot: Some(true), ..form },
            TriggerKind::File(t) => {
                Self { file: Some(t.pattern), settle: Some(t.settle), poll: t.poll, ..form }
            }
            TriggerKind::Event(name) => Self { event: Some(name), ..form },
            TriggerKind::Task(t) => Self { task: Some(t.task_id), states: Some(t.states), ..form },
        }
    }
}

impl TryFrom<Form> for Trigger {
    type Error = String;

    fn try_from(mut form: Form) -> Result<Self, String> {
        let policy = form.policy();
        let params = std::mem::take(&mut form.params);
        let when = match form {
            Form { cron: Some(expr), timezone, .. } => {
                TriggerKind::Cron(CronTrigger { expr, timezone, policy })
            }
            Form { every: Some(period), .. } => TriggerKind::Every(EveryTrigger { period, policy }),
            Form { boot: Some(true), .. } => TriggerKind::Boot,
            Form { file: Some(pattern), settle, poll, .. } => TriggerKind::File(FileTrigger {
                pattern,
                settle: settle.unwrap_or(FileTrigger::SETTLE),
                poll,
            }),
            Form { event: Some(name), .. } => TriggerKind::Event(name),
            Form { task: Some(task_id), states, .. } => TriggerKind::Task(TaskTrigger {
                task_id,
                states: states.unwrap_or_else(|| TaskTrigger::STATES.to_vec()),
            }),
            Form { .. } => {
                return Err(
                    "a trigger needs one of cron, every, boot, file, event, task".to_owned()
                );
            }
        };
        Ok(Self { when, params })
    }
}

impl FileTrigger {
    /// The settle time where none is given.
    pub const SETTLE: Duration = Duration::from_millis(500);
}

impl TaskTrigger {
    /// The states that it can wait for: those in which an instance can end for good.
    pub const FINAL: [InstanceState; 4] = [
        InstanceState::Succeeded,
        InstanceState::Failed,
        InstanceState::Timeout,
        InstanceState::Cancelled,
    ];
    /// The states where none are given.
    pub const STATES: [InstanceState; 2] = [InstanceState::Failed, InstanceState::Timeout];
}
