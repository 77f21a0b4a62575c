//! Definitions as tests write them.

use serde_json::{Value, json};

/// A definition; JSON is YAML.
#[derive(Debug, Clone)]
pub(crate) struct TaskSpec(Value);

impl TaskSpec {
    /// A shell script under an id such as `a.b.v1`.
    pub(crate) fn shell(task: &str, script: &str) -> Self {
        let version: u32 = task.rsplit_once(".v").unwrap().1.parse().unwrap();
        Self(json!({
            "taskId": task, "version": version, "owner": "tests", "taskType": "SHELL",
            "handler": script,
        }))
    }

    /// With these keys too.
    pub(crate) fn with(mut self, more: &Value) -> Self {
        merge(&mut self.0, more);
        self
    }

    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }

    pub(crate) fn id(&self) -> &str {
        self.0["taskId"].as_str().unwrap()
    }

    pub(super) fn handler(&self) -> &str {
        self.0["handler"].as_str().unwrap()
    }
}

/// Puts the keys of `more` into `base`.
pub(crate) fn merge(base: &mut Value, more: &Value) {
    for (key, value) in more.as_object().unwrap() {
        base[key] = value.clone();
    }
}
