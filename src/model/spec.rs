//! A task's definition: what a spec file says, checked and in its long form.
//!
//! The JSON form is the contract's (camelCase, durations in `…Ms`); it is what the store keeps,
//! what `schedctl show` prints under `spec`, and what `POST /tasks` takes. Reading a person's YAML,
//! with its short forms and its mistakes, is `access::spec_yaml`'s work.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cycle::CycleRule;
use super::id::{QueueName, TaskId};
use super::params::ParamSchema;
use super::priority::Priority;
use super::template::Template;
use super::time::{millis, optional_millis};

pub use super::trigger::{
    CronTrigger, EveryTrigger, FileTrigger, FirePolicy, Misfire, Overlap, TaskTrigger, Trigger,
    TriggerKind,
};

pub use super::json::JsonMap;

/// One task definition (requirement A1; contract §2). All values are checked, all defaults filled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskSpec {
    // Identity
    /// Stable, globally unique id ending in `.v<version>`.
    pub task_id: TaskId,
    /// Equal to the id's suffix.
    pub version: u32,
    /// Who answers for the task.
    pub owner: String,
    /// A name for people.
    pub name: Option<String>,
    /// A text for people.
    pub description: Option<String>,
    /// Free labels (business line and so on).
    pub labels: BTreeMap<String, String>,

    // Execution
    /// Picks how the handler is run: SHELL, EXEC or a configured type.
    pub task_type: String,
    /// The entry: script text, program, or what the configured type makes of it.
    pub handler: String,
    /// Arguments after the handler.
    pub args: Vec<Template>,
    /// Parameters that belong to the definition.
    pub static_params: JsonMap,
    /// Declared parameters of each run, by name.
    pub runtime_params: BTreeMap<String, ParamSchema>,
    /// Environment added to the clean one (contract §3).
    pub env: BTreeMap<String, Template>,
    /// Directory the task starts in; absolute. `None`: the user's home.
    pub working_dir: Option<Template>,
    /// User to run as; `None`: the executor's own.
    pub user: Option<String>,
    /// Group to run as; `None`: the user's.
    pub group: Option<String>,
    /// File mode mask, 0..=0o777; in JSON the octal text people write, such as `"022"`.
    #[serde(with = "octal")]
    pub umask: Option<u32>,
    /// Niceness, -20..=19.
    pub nice: Option<i32>,
    /// Resource bounds.
    pub limits: Limits,
    /// Bound of one attempt, from process start.
    #[serde(rename = "timeoutMs", with = "optional_millis")]
    pub timeout: Option<Duration>,
    /// Between TERM and KILL of the whole group.
    #[serde(rename = "killGraceMs", with = "millis")]
    pub kill_grace: Duration,
    /// How often and when to try again.
    pub retry: RetryPolicy,
    /// Exit status to error code.
    pub exit_codes: BTreeMap<i32, String>,
    /// False: never started a second time by the framework (unless `dedup_key` is set).
    pub idempotent: bool,
    /// Key unique per base id among open and succeeded instances.
    pub dedup_key: Option<Template>,
    /// Paths that must exist and be non-empty for DATA_READY.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Template>,
    /// Bounds of the task's log.
    pub log: LogLimits,

    // Scheduling
    /// Alternatives that each start the task.
    pub triggers: Vec<Trigger>,
    /// IANA zone for cron and cycle; `None`: the daemon's.
    pub timezone: Option<String>,
    /// Unit and offset of the cycle; `None`: by the rules of design 'cycles and waves'.
    pub cycle: Option<CycleRule>,
    /// Upstream edges.
    pub depends_on: Vec<Dependency>,
    /// EACH or LATEST wave.
    pub on_upstream: OnUpstream,
    /// Bound of waiting for dependencies.
    #[serde(rename = "dependencyTimeoutMs", with = "optional_millis")]
    pub dependency_timeout: Option<Duration>,
    /// What happens when that runs out.
    pub on_dependency_timeout: OnDependencyTimeout,
    /// 0..=9, 0 first.
    pub priority: Priority,
    /// Queue of its instances.
    pub queue: QueueName,
    /// May give up its slot to a higher level.
    pub preemptible: bool,
    /// Running instances at a time; `None`: unlimited.
    pub max_concurrent: Option<u32>,
    /// Labels that an executor must have.
    pub executor_labels: BTreeMap<String, String>,
    /// False: kept, not triggered.
    pub enabled: bool,
    /// Per cent of the cycles, 1..=100, that this version takes from the next lower version of the
    /// same base id; `None`: it is a task of its own (docs/waves.md, rule 16).
    #[serde(default)]
    pub rollout: Option<u32>,
}

impl TaskSpec {
    /// Whether instances come from upstream waves: it has `dependsOn` and no triggers.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        self.triggers.is_empty() && !self.depends_on.is_empty()
    }

    /// Whether the framework may start an instance a second time by itself (requirement F4).
    #[must_use]
    pub fn may_run_again(&self) -> bool {
        self.idempotent || self.dedup_key.is_some()
    }
}

/// Resource bounds of a task's processes; `None`: those of the executor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of address space.
    pub memory: Option<u64>,
    /// Open descriptors.
    pub open_files: Option<u64>,
    /// Processes of the user.
    pub processes: Option<u64>,
    /// Seconds of processor time.
    pub cpu_seconds: Option<u64>,
    /// Bytes of one written file.
    pub file_size: Option<u64>,
}

/// Bounds of a task's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogLimits {
    /// Bytes kept of one attempt's output.
    pub max_bytes: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { max_bytes: 16 * 1024 * 1024 }
    }
}

/// When a failed attempt is tried again (requirement F2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; at least 1.
    pub max_attempts: u32,
    /// How the wait grows.
    pub backoff: Backoff,
    /// The first wait.
    #[serde(rename = "intervalMs", with = "millis")]
    pub interval: Duration,
    /// The longest wait.
    #[serde(rename = "maxIntervalMs", with = "millis")]
    pub max_interval: Duration,
    /// Share of the wait, 0..=1, that is varied by a seed.
    pub jitter: f64,
    /// Error codes that are tried again, `*` at the end allowed; `None`: all but CANCEL_REQUESTED.
    pub retry_on: Option<Vec<String>>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 1,
            backoff: Backoff::Fixed,
            interval: Duration::from_secs(1),
            max_interval: Duration::from_secs(3600),
            jitter: 0.0,
            retry_on: None,
        }
    }
}

/// How the wait between attempts grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Backoff {
    /// Always `interval`.
    Fixed,
    /// `interval × 2^(n−1)`.
    Exponential,
}

/// One edge of the graph: this task waits for another (requirements C1, C2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dependency {
    /// The upstream.
    pub task_id: TaskId,
    /// What of the upstream is waited for.
    pub dep_type: DepType,
    /// Whether a failed upstream holds this task back.
    pub strength: Strength,
}

/// What of an upstream is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DepType {
    /// It succeeded.
    Success,
    /// It succeeded and its declared outputs are there.
    DataReady,
}

/// Whether a failed upstream holds the dependent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Strength {
    /// It does.
    Strong,
    /// Any final end satisfies.
    Weak,
}

/// What a newer wave does to a not yet started instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OnUpstream {
    /// Every wave makes its instance.
    Each,
}

/// What happens when waiting for dependencies has taken too long (requirement C5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OnDependencyTimeout {
    /// CANCELLED(DEPENDENCY_TIMEOUT).
    Cancel,
    /// Runs all the same and is told so.
    RunDegraded,
}

/// A mode as the octal text that people write.
mod octal {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "serde's `with` gives a reference to the field")]
    pub(super) fn serialize<S: Serializer>(mode: &Option<u32>, s: S) -> Result<S::Ok, S::Error> {
        mode.map(|mode| format!("{mode:03o}")).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u32>, D::Error> {
        let text = Option::<String>::deserialize(d)?;
        text.map(|text| u32::from_str_radix(&text, 8).map_err(D::Error::custom)).transpose()
    }
}
