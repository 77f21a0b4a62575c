//! What must not be shown: values of parameters that a definition declares secret.
//!
//! Everything that leaves the door with such values in it goes through here. What once was secret
//! stays masked: the names that count are those of all stored revisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::model::history::{History, HistoryError};
use crate::model::id::TaskId;
use crate::model::plan::FieldChange;
use crate::model::spec::{JsonMap, TaskSpec};

/// What stands in a secret's place.
const MASK: &str = "***";

/// Names of secret parameters.
pub(super) type Names = BTreeSet<String>;

/// The secret parameters of a definition.
pub(super) fn names_in(spec: &TaskSpec) -> impl Iterator<Item = String> + '_ {
    spec.runtime_params.iter().filter(|(_, p)| p.secret).map(|(name, _)| name.clone())
}

/// Names that any stored revision of the task declares secret. `None`: no revision is stored.
///
/// # Errors
/// If the store cannot be read.
pub(super) fn names_on_record(
    history: &dyn History,
    task: &TaskId,
) -> Result<Option<Names>, HistoryError> {
    let revisions = history.revisions(task)?;
    if revisions.is_empty() {
        return Ok(None);
    }
    Ok(Some(revisions.iter().flat_map(|r| names_in(&r.spec)).collect()))
}

/// Masks the values of an instance's or a trigger's parameters.
pub(super) fn mask(params: &mut JsonMap, names: &Names) {
    for (name, value) in params.iter_mut() {
        if names.contains(name) {
            hide(value);
        }
    }
}

fn hide(value: &mut Value) {
    if !value.is_null() {
        *value = Value::from(MASK);
    }
}

/// The definition with the values of these parameters masked.
pub(super) fn masked_with(spec: &Arc<TaskSpec>, names: &Names) -> Arc<TaskSpec> {
    if names.is_empty() {
        return Arc::clone(spec);
    }
    let mut masked = TaskSpec::clone(spec);
    for (_, schema) in masked.runtime_params.iter_mut().filter(|(name, _)| names.contains(*name)) {
        schema.default = schema.default.as_ref().map(|_| Value::from(MASK));
        schema.allowed.iter_mut().for_each(|value| *value = Value::from(MASK));
    }
    for trigger in &mut masked.triggers {
        mask(&mut trigger.params, names);
    }
    Arc::new(masked)
}

/// Differences of definitions with secret values masked: that one changed is shown, not to what.
pub(super) fn masked_changes(changes: Vec<FieldChange>, names: &Names) -> Vec<FieldChange> {
    if names.is_empty() {
        return changes;
    }
    let mut masked: Vec<FieldChange> = Vec::with_capacity(changes.len());
    for mut change in changes {
        let mut path = change.path.clone();
        mask_at(&mut path, &mut change.from, names);
        mask_at(&mut path, &mut change.to, names);
        // The keys inside of a secret value are a part of it.
        if let Some(end) = secret_end(&change.path, names) {
            change.path.truncate(end);
        }
        if masked.last().is_none_or(|last| last.path != change.path) {
            masked.push(change);
        }
    }
    masked
}

fn mask_at(path: &mut String, value: &mut Value, names: &Names) {
    if secret_end(path, names).is_some() {
        hide(value);
        return;
    }
    let end = path.len();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if end > 0 {
                    path.push('.');
                }
                path.push_str(key);
                mask_at(path, value, names);
                path.truncate(end);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{at}]"));
                mask_at(path, value, names);
                path.truncate(end);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where in a path a secret value begins: `None` if the path leads to none, nor into one.
fn secret_end(path: &str, names: &Names) -> Option<usize> {
    if let Some(rest) = path.strip_prefix("runtimeParams.") {
        return named_end(path, rest, names, &[".default", ".enum"]);
    }
    let (index, rest) = path.strip_prefix("triggers[")?.split_once("].params.")?;
    index.parse::<usize>().ok()?;
    named_end(path, rest, names, &[""])
}

/// The end of a name and one of `keys` at the beginning of `rest`, which is the end of `path`.
fn named_end(path: &str, rest: &str, names: &Names, keys: &[&str]) -> Option<usize> {
    let start = path.len() - rest.len();
    names.iter().find_map(|name| {
        let after = rest.strip_prefix(name.as_str())?;
        keys.iter().find_map(|key| {
            let inside = after.strip_prefix(key)?;
            let is_whole = inside.is_empty() || inside.starts_with(['.', '[']);
            is_whole.then_some(start + name.len() + key.len())
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::plan::differences;

    /// Each change as text, the parameter `pw` being secret.
    fn masked(from: &Value, to: &Value) -> Vec<String> {
        let names = Names::from(["pw".to_owned()]);
        let changes = masked_changes(differences(from, to), &names);
        changes.into_iter().map(|c| format!("{}: {} -> {}", c.path, c.from, c.to)).collect()
    }

    #[test]
    fn that_a_secret_changed_is_shown_and_not_to_what() {
        let spec = |pw: &str, n: i64| {
            json!({
                "runtimeParams": {
                    "pw": {"default": pw, "enum": [pw, 1], "secret": true},
                    "pwd": {"default": n},
                },
                "triggers": [{"cron": "x", "params": {"pw": pw, "n": n}}],
            })
        };
        assert_eq!(
            masked(&spec("HUNTER1", 1), &spec("HUNTER2", 2)),
            [
                r#"runtimeParams.pw.default: "***" -> "***""#,
                r#"runtimeParams.pw.enum: "***" -> "***""#,
                "runtimeParams.pwd.default: 1 -> 2",
                "triggers[0].params.n: 1 -> 2",
                r#"triggers[0].params.pw: "***" -> "***""#,
            ]
        );
    }

    #[test]
    fn a_secret_is_masked_wherever_a_change_holds_it() {
        let with = json!({
            "runtimeParams": {"pw": {"default": {"user": "HUNTER1"}, "min": null}},
            "triggers": [{"params": {"pw": "HUNTER1"}}, {"params": {"n": 1}}],
        });
        let without = json!({"runtimeParams": {}, "triggers": []});
        assert_eq!(
            masked(&without, &with),
            [
                r#"runtimeParams.pw: null -> {"default":"***","min":null}"#,
                r#"triggers: [] -> [{"params":{"pw":"***"}},{"params":{"n":1}}]"#,
            ]
        );
        let other = json!({
            "runtimeParams": {"pw": {"default": {"user": "HUNTER2", "key": 1}, "min": null}},
            "triggers": with["triggers"],
        });
        let said = masked(&with, &other);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("runtimeParams.pw.default: "), "{said:?}");
        assert!(!said[0].contains("HUNTER") && !said[0].contains("user"), "{said:?}");
    }
}
