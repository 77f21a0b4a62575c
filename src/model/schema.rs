//! JSON Schemas of values that people write in more forms than one, for the schema of a spec.
//!
//! The types derive their schemas; a field whose written form is wider than its stored one names one
//! of these. A reader of ours takes any single value for a text, as `022` and `yes` are texts to it
//! and not to everyone.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::params::{ParamSchema, ParamType};
use super::spec::Dependency;
use super::trigger::{KEYS_OF_SOME_KINDS, TRIGGER_KINDS, TaskTrigger};
use crate::limits;

/// Any single value, taken as the text it is.
pub(super) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "boolean"] })
}

/// A list of texts.
pub(super) fn texts(g: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": text(g) })
}

/// A map of texts.
pub(super) fn texts_by_name(g: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": text(g) })
}

/// A task's id.
pub(super) fn task_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": limits::TASK_ID_BYTES_MAX,
        "pattern": r"^[a-z0-9]+([._-][a-z0-9]+)*\.v[1-9][0-9]*$",
    })
}

/// A text of one line that is not blank.
pub(super) fn word(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "boolean"], "minLength": 1, "pattern": r"^.*\S.*$" })
}

/// A text that is not blank.
pub(super) fn script(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "boolean"], "minLength": 1, "pattern": r"\S" })
}

/// A duration: whole milliseconds or a text such as `1h30m`.
pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    duration_from(0)
}

/// A duration that is not zero.
pub(super) fn some_duration(_: &mut SchemaGenerator) -> Schema {
    duration_from(1)
}

/// A period of looking for files.
pub(super) fn poll_period(_: &mut SchemaGenerator) -> Schema {
    duration_from(u32::try_from(limits::POLL_LEAST.as_millis()).unwrap_or(u32::MAX))
}

/// A duration of at least a second.
pub(super) fn period(_: &mut SchemaGenerator) -> Schema {
    duration_from(1000)
}

/// Numbers and units, a clock at the end (`1d 02:30:00`) or ISO 8601 (`PT1H`); which units there are
/// the reader knows.
fn duration_from(least: u32) -> Schema {
    // Each part but the last has its unit, so that there is one way only to match a text.
    const TEXT: &str = r"^\s*\+?([0-9][0-9.:,]*|[Pp][0-9A-Za-z.,]+|([0-9][0-9.,]*\s*[a-zµμ]+,?\s*)+([0-9][0-9.:,]*)?)\s*$";
    json_schema!({
        "type": ["integer", "string"],
        "minimum": least,
        "maximum": u64::try_from(limits::DURATION_MAX.as_millis()).unwrap_or(u64::MAX),
        "pattern": TEXT,
        "examples": ["30s", "1h30m"],
    })
}

/// A number of bytes.
pub(super) fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["integer", "string"],
        "minimum": 1,
        "pattern": "^[0-9]+([KMGT]i?|k)?B?$",
        "examples": ["512Mi", "2G"],
    })
}

/// A file mode mask.
pub(super) fn octal(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "integer"],
        "minimum": 0,
        "maximum": 0o777,
        "pattern": "^(0o)?[0-7]{1,4}$",
        "examples": ["022"],
    })
}

/// A level of priority.
pub(super) fn priority(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [
        { "type": "integer", "minimum": 0, "maximum": 9 },
        { "enum": ["CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND",
            "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] },
    ] })
}

/// `true` and nothing else.
pub(super) fn only_true(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": true })
}

/// The states in which an instance can end for good.
pub(super) fn final_states(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "minItems": 1, "items": { "enum": TaskTrigger::FINAL } })
}

/// Adds to the schema of a trigger's keys which of them go together.
pub(super) fn trigger(mut keys: Schema) -> Schema {
    let has = |key: &&str| json!({ "required": [key], "properties": { (*key): { "not": { "type": "null" } } } });
    let kinds: Vec<_> = TRIGGER_KINDS.iter().map(has).collect();
    keys.insert("oneOf".to_owned(), kinds.into());
    let belongs = |(key, of): &(&str, &[&str])| {
        let any: Vec<_> = of.iter().map(has).collect();
        json!({ "if": has(key), "then": { "anyOf": any } })
    };
    let belonging: Vec<_> = KEYS_OF_SOME_KINDS.iter().map(belongs).collect();
    keys.insert("allOf".to_owned(), belonging.into());
    keys
}

/// Adds to the schema of a task that an engine's settings stand under its type only.
pub(super) fn task(keys: &mut Schema) {
    let under = |(key, of): (&str, &str)| {
        json!({
            "if": { "required": [key], "properties": { key: { "not": { "type": "null" } } } },
            "then": { "properties": { "taskType": { "const": of } } },
        })
    };
    let engines =
        [("python", "PYTHON"), ("spark", "SPARK"), ("flink", "FLINK"), ("slurm", "SLURM")];
    keys.insert("allOf".to_owned(), engines.map(under).to_vec().into());
}

/// Error codes by exit status.
pub(super) fn exit_codes(g: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": "^([1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$" },
        "additionalProperties": text(g),
    })
}

/// Variables, as a map or as a list of `NAME=value`.
pub(super) fn environment(g: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [
        {
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            "additionalProperties": text(g),
        },
        { "type": "array", "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*=" } },
    ] })
}

/// Declared parameters: a type, or a map that says more.
pub(super) fn short_or_long_params(g: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_-]*$" },
        "additionalProperties": {
            "anyOf": [g.subschema_for::<ParamType>(), g.subschema_for::<ParamSchema>()],
        },
    })
}

/// Edges: an upstream's id, or a map that says more.
pub(super) fn short_or_long_edges(g: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "anyOf": [task_id(g), g.subschema_for::<Dependency>()] },
    })
}

/// The schema of a type with all that it refers to.
#[must_use]
pub fn of<T: JsonSchema>() -> serde_json::Value {
    schemars::schema_for!(T).to_value()
}
