//! What people and programs see of revisions, and of what a change of definitions would mean.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{InstanceId, TaskId};
use super::spec::TaskSpec;
use super::spec_error::SpecError;
use super::time::Timestamp;

/// One key whose value differs between two definitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The key's path, such as `retry.maxAttempts` or `triggers[0].cron`.
    pub path: String,
    /// The earlier value; null if it was not there.
    pub from: Value,
    /// The later value; null if it is gone.
    pub to: Value,
}

/// The differences between two definitions in their JSON form, by path: maps key by key, lists
/// item by item if they are equally long, else as a whole.
#[must_use]
pub fn differences(from: &Value, to: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare(&mut String::new(), from, to, &mut found);
    found
}

fn compare(path: &mut String, from: &Value, to: &Value, found: &mut Vec<FieldChange>) {
    let end = path.len();
    match (from, to) {
        _ if from == to => {}
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                if end > 0 {
                    path.push('.');
                }
                path.push_str(key);
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
                let (a, b) = (of(a).unwrap_or_default(), of(b).unwrap_or_default());
                compare(path, &a, &b, found);
                path.truncate(end);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                path.push_str(&format!("[{at}]"));
                compare(path, a, b, found);
                path.truncate(end);
            }
        }
        _ => found.push(FieldChange { path: path.clone(), from: from.clone(), to: to.clone() }),
    }
}

/// A revision as the contract shows it (contract §6, 'History').
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionView {
    /// From 1 per task.
    pub revision: u64,
    /// Hash of the definition.
    pub hash: String,
    /// When it was taken into force first.
    pub loaded_at: Timestamp,
    /// The file it came from.
    pub file: String,
    /// Whose file it was, or who asked for it at the door; null: not known.
    pub uid: Option<u32>,
    /// It is in force.
    pub active: bool,
    /// It was put in force by a rollback and stays until `unpin` or until its file changes.
    pub pinned: bool,
    /// What differs from the revision before; empty for the first.
    pub changes: Vec<FieldChange>,
    /// The whole definition, secrets masked, if this revision was asked for; else null.
    #[serde(default)]
    pub spec: Option<std::sync::Arc<TaskSpec>>,
}

/// What taking some files into the spec directory would change (`schedctl plan`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanView {
    /// The tasks that would change, by id.
    pub tasks: Vec<TaskPlan>,
    /// Why files, or the set that they would make, are refused. What they refuse stays as it is.
    pub errors: Vec<SpecError>,
    /// What would be accepted but deserves a word.
    pub warnings: Vec<SpecError>,
}

/// What would happen to one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPlan {
    /// The task.
    pub task_id: TaskId,
    /// What would happen to it.
    pub change: TaskChange,
    /// The file that would define it; of a removed one, that did.
    pub file: String,
    /// The keys that would change, if it is there before and after.
    pub changes: Vec<FieldChange>,
    /// Its next fire as things stand.
    pub next_fire_time: Option<Timestamp>,
    /// Its next fire afterwards.
    pub next_fire_time_after: Option<Timestamp>,
    /// Upstreams that it would name and no file would define.
    pub unresolved: Vec<TaskId>,
    /// Tasks that would lose this one as their upstream.
    pub broken_dependents: Vec<TaskId>,
    /// Open instances that would follow the new definition, or finish with the last one.
    pub instances: Vec<InstanceId>,
}

/// What would happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskChange {
    /// It would be new.
    Added,
    /// Its definition would be another.
    Changed,
    /// Its definition would stand in another file.
    Moved,
    /// It would be gone.
    Removed,
    /// Nothing: it is pinned, and its file as it would be is still the one the pin ignores.
    Ignored,
}

/// What putting files into the spec directory has changed (`schedctl apply`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApplyView {
    /// The tasks that the files define, then those that they no longer do.
    pub tasks: Vec<AppliedTask>,
    /// What was accepted but deserves a word.
    pub warnings: Vec<SpecError>,
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedTask {
    /// The task.
    pub task_id: TaskId,
    /// What became of it.
    pub result: Applied,
    /// The revision in force; null: it is gone.
    pub revision: Option<u64>,
    /// The file that defines it; of a removed one, that did.
    pub file: String,
    /// Upstreams that it names and no file defines.
    pub unresolved: Vec<TaskId>,
    /// A rollback keeps its revision in force, whatever the file says.
    pub pinned: bool,
    /// Tasks that have lost this one as their upstream.
    pub broken_dependents: Vec<TaskId>,
}

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Applied {
    /// It is new.
    Created,
    /// Its definition, or the file of it, is another.
    Configured,
    /// Nothing.
    Unchanged,
    /// It is gone.
    Removed,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(from: &Value, to: &Value) -> Vec<String> {
        let text = |c: FieldChange| format!("{}: {} -> {}", c.path, c.from, c.to);
        differences(from, to).into_iter().map(text).collect()
    }

    #[test]
    fn maps_differ_key_by_key_and_lists_of_one_length_item_by_item() {
        let from =
            json!({"a": 1, "retry": {"maxAttempts": 1}, "t": [{"cron": "x"}, 2], "same": [1]});
        let to = json!({"b": 2, "retry": {"maxAttempts": 3}, "t": [{"cron": "y"}, 2], "same": [1]});
        assert_eq!(
            texts(&from, &to),
            [
                "a: 1 -> null",
                "b: null -> 2",
                "retry.maxAttempts: 1 -> 3",
                "t[0].cron: \"x\" -> \"y\"",
            ]
        );
    }

    #[test]
    fn lists_of_different_lengths_differ_as_a_whole() {
        assert_eq!(texts(&json!({"l": [1]}), &json!({"l": [1, 2]})), ["l: [1] -> [1,2]"]);
        assert_eq!(texts(&json!(1), &json!({"l": 1})), [": 1 -> {\"l\":1}"]);
        assert!(texts(&json!({"l": [1]}), &json!({"l": [1]})).is_empty());
    }
}
