//! A task's definition: what a spec file says, checked and in its long form.
//!
//! The JSON form is the contract's (camelCase, durations in `…Ms`); it is what the store keeps,
//! what `schedctl show` prints under `spec`, and what `POST /tasks` takes. Reading a person's YAML,
//! with its short forms and its mistakes, is `access::spec_yaml`'s work.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::cycle::CycleRule;
use super::engines::{FlinkSettings, PythonSettings, SlurmSettings, SparkSettings};
use super::id::{QueueName, TaskId};
use super::params::ParamSchema;
use super::priority::Priority;
use super::schema;
use super::template::Template;
use super::time::{millis, optional_millis};

pub use super::trigger::{
    CronTrigger, EveryTrigger, FileTrigger, FirePolicy, Misfire, Overlap, TaskTrigger, Trigger,
    TriggerKind,
};

pub use super::json::JsonMap;

/// One task definition (requirement A1; contract §2). All values are checked, all defaults filled.
///
/// What is said of a key here is what the JSON Schema says to people, so it speaks of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = schema::task)]
pub struct TaskSpec {
    // Identity
    /// Stable, globally unique id ending in `.v<version>`, such as `order.settle.v2`.
    #[schemars(schema_with = "schema::task_id")]
    pub task_id: TaskId,
    /// Equal to the id's suffix.
    #[schemars(range(min = 1))]
    pub version: u32,
    /// Who answers for the task.
    #[schemars(schema_with = "schema::word")]
    pub owner: String,
    /// A name for people.
    #[schemars(schema_with = "schema::word")]
    pub name: Option<String>,
    /// A text for people.
    #[schemars(schema_with = "schema::text")]
    pub description: Option<String>,
    /// Free labels (business line and so on).
    #[schemars(schema_with = "schema::texts_by_name")]
    pub labels: BTreeMap<String, String>,

    // Execution
    /// Picks how the handler is run: SHELL, EXEC, PYTHON, SPARK, FLINK, SLURM or a configured type.
    pub task_type: String,
    /// The entry: script text (SHELL), program (EXEC), `module:function` or a `.py` file (PYTHON),
    /// application (SPARK, FLINK), command (SLURM), or what the configured type makes of it.
    #[schemars(schema_with = "schema::script")]
    pub handler: String,
    /// Arguments after the handler; placeholders allowed.
    #[schemars(schema_with = "schema::texts")]
    pub args: Vec<Template>,
    /// Parameters that belong to the definition; any JSON.
    pub static_params: JsonMap,
    /// Declared parameters of each run: a name and its type, or a map that says more.
    #[schemars(schema_with = "schema::short_or_long_params")]
    pub runtime_params: BTreeMap<String, ParamSchema>,
    /// Settings of a PYTHON task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<Box<PythonSettings>>,
    /// Settings of a SPARK task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spark: Option<Box<SparkSettings>>,
    /// Settings of a FLINK task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flink: Option<Box<FlinkSettings>>,
    /// Settings of a SLURM task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slurm: Option<Box<SlurmSettings>>,
    /// Environment added to the clean one, as a map or a list of `NAME=value`; placeholders allowed.
    #[schemars(schema_with = "schema::environment")]
    pub env: BTreeMap<String, Template>,
    /// Directory the task starts in; without it, the user's home. Placeholders allowed.
    #[schemars(schema_with = "schema::word")]
    pub working_dir: Option<Template>,
    /// User to run as; without it, the executor's own.
    #[schemars(schema_with = "schema::word")]
    pub user: Option<String>,
    /// Group to run as; without it, the user's.
    #[schemars(schema_with = "schema::word")]
    pub group: Option<String>,
    /// File mode mask, as octal digits in quotes, such as `"022"`.
    #[serde(with = "octal")]
    #[schemars(schema_with = "schema::octal")]
    pub umask: Option<u32>,
    /// Niceness.
    #[schemars(range(min = -20, max = 19))]
    pub nice: Option<i32>,
    /// Resource bounds.
    pub limits: Limits,
    /// Bound of one attempt, from process start.
    #[serde(rename = "timeoutMs", with = "optional_millis")]
    #[schemars(schema_with = "schema::some_duration")]
    pub timeout: Option<Duration>,
    /// Between TERM and KILL of the whole group.
    #[serde(rename = "killGraceMs", with = "millis")]
    #[schemars(schema_with = "schema::duration")]
    pub kill_grace: Duration,
    /// How often and when to try again.
    pub retry: RetryPolicy,
    /// Exit status to error code, such as `75: CONN_RESET`.
    #[serde(deserialize_with = "exit_codes")]
    #[schemars(schema_with = "schema::exit_codes")]
    pub exit_codes: BTreeMap<i32, String>,
    /// False: never started a second time by the scheduler, unless there is a dedupKey.
    pub idempotent: bool,
    /// A text with placeholders, unique per task id without version among open and succeeded runs.
    #[schemars(schema_with = "schema::text")]
    pub dedup_key: Option<Template>,
    /// Paths that a good run leaves behind, from the file's folder; dependents with depType DATA_READY
    /// wait until each is a file or folder with something in it. Placeholders allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::texts")]
    pub outputs: Vec<Template>,
    /// Bounds of the task's log.
    pub log: LogLimits,

    // Scheduling
    /// Alternatives that each start the task.
    pub triggers: Vec<Trigger>,
    /// IANA zone for cron and cycle; without it, the daemon's.
    pub timezone: Option<String>,
    /// Unit and offset of the cycle; without it, by the kinds of the triggers.
    pub cycle: Option<CycleRule>,
    /// Upstream tasks that this one waits for: ids, or maps that say more.
    #[schemars(schema_with = "schema::short_or_long_edges")]
    pub depends_on: Vec<Dependency>,
    /// What a newer wave does to a run that has not started.
    pub on_upstream: OnUpstream,
    /// Bound of waiting for dependencies.
    #[serde(rename = "dependencyTimeoutMs", with = "optional_millis")]
    #[schemars(schema_with = "schema::some_duration")]
    pub dependency_timeout: Option<Duration>,
    /// What happens when that runs out.
    pub on_dependency_timeout: OnDependencyTimeout,
    /// 0 (first) to 9 (last), or the name of a level.
    #[schemars(schema_with = "schema::priority")]
    pub priority: Priority,
    /// Queue of its runs.
    #[schemars(schema_with = "schema::word")]
    pub queue: QueueName,
    /// May give up its slot to a higher level.
    pub preemptible: bool,
    /// Running instances at a time; 1, or unlimited if a trigger says `overlap: ALLOW`.
    #[schemars(range(min = 1))]
    pub max_concurrent: Option<u32>,
    /// Labels that an executor must have.
    #[schemars(schema_with = "schema::texts_by_name")]
    pub executor_labels: BTreeMap<String, String>,
    /// False: kept, not triggered.
    pub enabled: bool,
    /// Per cent of the cycles that this version takes from the next lower version of the same id;
    /// without it, versions are tasks of their own (docs/waves.md, rule 16).
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub rollout: Option<u32>,
    /// How long ended runs are kept; without it, as the configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
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

/// How long a task's ended instances are kept, whichever bound comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retention {
    /// Days that an ended run is kept.
    #[schemars(range(min = 1))]
    pub days: Option<u32>,
    /// Ended runs that are kept.
    #[schemars(range(min = 1))]
    pub instances: Option<u32>,
}

/// Resource bounds of a task's processes; without one, that of the executor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of address space.
    #[schemars(schema_with = "schema::size")]
    pub memory: Option<u64>,
    /// Open descriptors.
    #[schemars(range(min = 1))]
    pub open_files: Option<u64>,
    /// Processes of the user.
    #[schemars(range(min = 1))]
    pub processes: Option<u64>,
    /// Seconds of processor time.
    #[schemars(range(min = 1))]
    pub cpu_seconds: Option<u64>,
    /// Bytes of one written file.
    #[schemars(schema_with = "schema::size")]
    pub file_size: Option<u64>,
}

/// Bounds of a task's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogLimits {
    /// Bytes kept of one attempt's output.
    #[schemars(schema_with = "schema::size")]
    pub max_bytes: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { max_bytes: 16 * 1024 * 1024 }
    }
}

/// When a failed attempt is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    #[schemars(range(min = 1))]
    pub max_attempts: u32,
    /// How the wait grows.
    pub backoff: Backoff,
    /// The first wait.
    #[serde(rename = "intervalMs", with = "millis")]
    #[schemars(schema_with = "schema::duration")]
    pub interval: Duration,
    /// The longest wait.
    #[serde(rename = "maxIntervalMs", with = "millis")]
    #[schemars(schema_with = "schema::duration")]
    pub max_interval: Duration,
    /// Share of the wait by which it is varied either way.
    #[schemars(range(min = 0, max = 1))]
    pub jitter: f64,
    /// Error codes that are tried again, `*` at the end allowed; without it, all but
    /// CANCEL_REQUESTED.
    #[schemars(schema_with = "schema::texts")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Backoff {
    /// Always `intervalMs`.
    Fixed,
    /// `intervalMs × 2^(n−1)`, up to `maxIntervalMs`.
    Exponential,
}

/// One edge of the graph: this task waits for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dependency {
    /// The upstream.
    #[schemars(schema_with = "schema::task_id")]
    pub task_id: TaskId,
    /// What of the upstream is waited for.
    pub dep_type: DepType,
    /// Whether a failed upstream holds this task back.
    pub strength: Strength,
    /// CEL over the upstream's `output`, `params` and `state`; false: this run is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::text")]
    pub when: Option<Condition>,
    /// Which cycle of the upstream is waited for, in its own units: 0 its same one, -1 the one before.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = -876000, max = 0))]
    pub cycle_offset: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference to the field")]
fn is_zero(offset: &i32) -> bool {
    *offset == 0
}

/// What of an upstream is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DepType {
    /// It succeeded.
    Success,
    /// It succeeded and its declared outputs are there.
    DataReady,
}

/// Whether a failed upstream holds the dependent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Strength {
    /// It does.
    Strong,
    /// Any final end satisfies.
    Weak,
}

/// What a newer wave does to a not yet started instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OnUpstream {
    /// Every wave makes its instance.
    Each,
    /// A newer wave's instance replaces one that has not started.
    Latest,
}

/// What happens when waiting for dependencies has taken too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OnDependencyTimeout {
    /// CANCELLED(DEPENDENCY_TIMEOUT).
    Cancel,
    /// Runs all the same and is told so.
    RunDegraded,
}

/// Reads the statuses from text: JSON has no other keys, and where serde reads a value twice, as in
/// a tagged enum, it no longer makes numbers of them by itself.
fn exit_codes<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<i32, String>, D::Error> {
    let written = BTreeMap::<String, String>::deserialize(deserializer)?;
    let read = |(status, code): (String, String)| {
        Ok((status.parse().map_err(serde::de::Error::custom)?, code))
    };
    written.into_iter().map(read).collect()
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
