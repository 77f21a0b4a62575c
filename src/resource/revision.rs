//! The stored form of a revision: its definition without the keys that say what they say anyway.
//!
//! Most keys of most definitions are at their default; without them ten thousand definitions take a
//! quarter of the journal and of the cache. What is left out is [`LEFT_OUT`], frozen with the
//! schema's number: should a default change one day, what is stored keeps its meaning.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::model::id::TaskId;
use crate::model::record::Revision;
use crate::model::spec::{JsonMap, TaskSpec};
use crate::model::time::Timestamp;

/// The values of schema 1 that a stored definition leaves out. Never to be changed: not with the
/// defaults of specs, only with a new schema.
const LEFT_OUT: &str = r#"{
    "name": null, "description": null, "labels": {},
    "args": [], "staticParams": {}, "runtimeParams": {}, "env": {}, "workingDir": null,
    "user": null, "group": null, "umask": null, "nice": null,
    "limits": {"memory": null, "openFiles": null, "processes": null, "cpuSeconds": null,
        "fileSize": null},
    "timeoutMs": null, "killGraceMs": 10000,
    "retry": {"maxAttempts": 1, "backoff": "FIXED", "intervalMs": 1000, "maxIntervalMs": 3600000,
        "jitter": 0.0, "retryOn": null},
    "exitCodes": {}, "idempotent": true, "dedupKey": null, "log": {"maxBytes": 16777216},
    "triggers": [], "timezone": null, "cycle": null, "dependsOn": [], "onUpstream": "EACH",
    "dependencyTimeoutMs": null, "onDependencyTimeout": "CANCEL", "priority": 4,
    "queue": "default", "preemptible": false, "maxConcurrent": 1, "executorLabels": {},
    "enabled": true, "rollout": null
}"#;

static LEFT_OUT_VALUES: LazyLock<JsonMap> =
    LazyLock::new(|| serde_json::from_str(LEFT_OUT).unwrap_or_default());

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    task_id: TaskId,
    revision: u64,
    hash: String,
    loaded_at: Timestamp,
    file: String,
    #[serde(default)]
    uid: Option<u32>,
    spec: JsonMap,
}

/// Writes the stored form.
///
/// # Errors
/// The serializer's.
pub(super) fn serialize<S: Serializer>(
    revision: &Revision,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    use serde::ser::Error as _;
    let spec = serde_json::to_value(&*revision.spec).map_err(S::Error::custom)?;
    let Value::Object(spec) = spec else {
        return Err(S::Error::custom("a definition is no map"));
    };
    let says_more = |(key, value): &(String, Value)| LEFT_OUT_VALUES.get(key) != Some(value);
    let stored = Stored {
        task_id: revision.task_id.clone(),
        revision: revision.revision,
        hash: revision.hash.clone(),
        loaded_at: revision.loaded_at,
        file: revision.file.clone(),
        uid: revision.uid,
        spec: spec.into_iter().filter(says_more).collect(),
    };
    stored.serialize(serializer)
}

/// Reads the stored form, and that of earlier versions, which left nothing out.
///
/// # Errors
/// The deserializer's, or what about the definition cannot be read.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Cow<'static, Revision>, D::Error> {
    let mut stored = Stored::deserialize(deserializer)?;
    for (key, value) in &*LEFT_OUT_VALUES {
        if !stored.spec.contains_key(key) {
            stored.spec.insert(key.clone(), value.clone());
        }
    }
    let spec: TaskSpec =
        serde_json::from_value(Value::Object(stored.spec)).map_err(D::Error::custom)?;
    Ok(Cow::Owned(Revision {
        task_id: stored.task_id,
        revision: stored.revision,
        hash: stored.hash,
        loaded_at: stored.loaded_at,
        file: stored.file,
        uid: stored.uid,
        spec: Arc::new(spec),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{codec, fixture};
    use super::*;
    use crate::model::record::Row;

    fn read(spec: &Value) -> Revision {
        let text = json!({"v": 1, "is": {"revision": {
            "taskId": "a.v1", "revision": 3, "hash": "h", "loadedAt": "2026-11-30T02:00:00Z",
            "file": "/specs/a.yaml", "spec": spec,
        }}});
        match codec::row(text.to_string().as_bytes()) {
            Ok(Row::Revision(revision)) => revision,
            other => panic!("no revision: {other:?}"),
        }
    }

    fn required() -> Value {
        json!({"taskId": "a.v1", "version": 1, "owner": "o", "taskType": "SHELL", "handler": "true"})
    }

    #[test]
    fn what_is_left_out_means_what_it_meant_when_schema_1_was_frozen() {
        let spec = read(&required()).spec;
        assert_eq!(spec.kill_grace, std::time::Duration::from_secs(10));
        assert_eq!((spec.retry.max_attempts, spec.max_concurrent), (1, Some(1)));
        assert_eq!((spec.queue.as_str(), spec.log.max_bytes), ("default", 16 * 1024 * 1024));
        assert!(spec.enabled && spec.idempotent && !spec.preemptible);
    }

    #[test]
    fn a_definition_in_full_as_earlier_versions_stored_it_reads_the_same() {
        let short = read(&required()).spec;
        let full = serde_json::to_value(&*short).unwrap();
        assert_eq!(read(&full).spec, short);
    }

    #[test]
    fn a_plain_definition_is_stored_by_what_it_says_and_no_more() {
        let plain = read(&required());
        let bytes = serde_json::to_string(&Wrapped { is: Cow::Borrowed(&plain) }).unwrap();
        let stored: Value = serde_json::from_str(&bytes).unwrap();
        assert_eq!(stored["is"]["spec"], required());
        let rich = fixture::revision(&plain.task_id, 2);
        let bytes = serde_json::to_string(&Wrapped { is: Cow::Borrowed(&rich) }).unwrap();
        let back: Wrapped<'_> = serde_json::from_str(&bytes).unwrap();
        assert_eq!(*back.is, rich);
    }

    #[derive(Serialize, Deserialize)]
    struct Wrapped<'a> {
        #[serde(with = "super")]
        is: Cow<'a, Revision>,
    }
}
