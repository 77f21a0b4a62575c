//! The spec language as a JSON Schema, for editors and other programs.

use serde_json::{Value, json};

/// The schema of one task's definition.
#[must_use]
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A task of schedd",
        "type": "object",
        "required": ["taskId", "version", "owner", "taskType", "handler"],
        "properties": {
            "taskId": {"type": "string"},
            "version": {"type": "integer", "minimum": 1},
            "owner": {"type": "string"},
            "taskType": {"type": "string"},
            "handler": {"type": "string"},
        },
    })
}
