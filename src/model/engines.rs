//! Settings of the task types that run on an engine: PYTHON, SPARK, FLINK, SLURM (contract §2).
//!
//! What an engine is told, not how: that is for whoever starts it.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::time::optional_millis;

/// Settings of a PYTHON task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PythonSettings {
    /// The interpreter, by path or by name in `PATH`.
    #[schemars(schema_with = "schema::word")]
    pub interpreter: Option<String>,
}

/// Settings of a SPARK task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SparkSettings {
    /// Where it runs, such as `yarn` or `spark://host:7077`.
    #[schemars(schema_with = "schema::word")]
    pub master: Option<String>,
    /// Where the driver runs.
    pub mode: Option<SparkMode>,
    /// Main class of the application.
    #[schemars(schema_with = "schema::word")]
    pub class: Option<String>,
    /// Spark's own settings, by name.
    #[schemars(schema_with = "schema::texts_by_name")]
    pub conf: BTreeMap<String, String>,
    /// Further jars, as paths or URLs.
    #[schemars(schema_with = "schema::texts")]
    pub jars: Vec<String>,
}

/// Where Spark's driver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SparkMode {
    /// On this machine.
    Client,
    /// On the cluster.
    Cluster,
}

/// Settings of a FLINK task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FlinkSettings {
    /// The application's jar, as a path or URL.
    #[schemars(schema_with = "schema::word")]
    pub jar: Option<String>,
    /// Its main class.
    #[schemars(schema_with = "schema::word")]
    pub class: Option<String>,
}

/// Settings of a SLURM task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// Partition of the cluster.
    #[schemars(schema_with = "schema::word")]
    pub partition: Option<String>,
    /// Processors.
    #[schemars(range(min = 1))]
    pub cpus: Option<u32>,
    /// Bytes of memory.
    #[schemars(schema_with = "schema::size")]
    pub memory: Option<u64>,
    /// Longest time that the job may take.
    #[serde(with = "optional_millis")]
    #[schemars(schema_with = "schema::some_duration")]
    pub time: Option<Duration>,
}
