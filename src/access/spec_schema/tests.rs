//! The schema and the reader agree: on keys, on what is required, on good files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::schema;
use crate::access::spec_yaml::tests::{BASE, context, files};
use crate::access::{spec_yaml, yaml};

static VALIDATOR: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&schema()).unwrap());

/// What the schema says against a document.
pub(in crate::access) fn complaints(document: &Value) -> Vec<String> {
    let said = VALIDATOR.iter_errors(document);
    said.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Every map of a spec whose keys are known, by the name of its type: where it stands, and what
/// stands around it.
const MAPS: [(&str, &str, &str); 13] = [
    ("CycleRule", "cycle", "cycle: {%}"),
    ("Dependency", "dependsOn[0]", "dependsOn: [{%}]"),
    ("FlinkSettings", "flink", "flink: {%}"),
    ("Limits", "limits", "limits: {%}"),
    ("LogLimits", "log", "log: {%}"),
    ("ParamSchema", "runtimeParams.p", "runtimeParams: {p: {%}}"),
    ("PythonSettings", "python", "python: {%}"),
    ("Retention", "retention", "retention: {%}"),
    ("RetryPolicy", "retry", "retry: {%}"),
    ("SlurmSettings", "slurm", "slurm: {%}"),
    ("SparkSettings", "spark", "spark: {%}"),
    ("TaskSpec", "", "%"),
    ("Trigger", "triggers[0]", "triggers: [{%}]"),
];

/// The closed maps of the schema by name; the root is TaskSpec.
fn closed() -> BTreeMap<String, Value> {
    let schema = schema();
    let mut all: BTreeMap<String, Value> = schema["$defs"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, definition)| definition.get("properties").is_some())
        .map(|(name, definition)| (name.clone(), definition.clone()))
        .collect();
    all.insert("TaskSpec".to_owned(), schema);
    all
}

/// The messages about one key path when a map is filled like this.
fn messages(map: &str, path: &str, with: &str) -> Vec<String> {
    let text =
        if map == "%" { with.to_owned() } else { format!("{BASE}{}\n", map.replace('%', with)) };
    let file = spec_yaml::read("/x.yaml", text.as_bytes(), &context());
    let told = file.errors.into_iter().filter(|e| e.path == path);
    told.map(|e| e.message).collect()
}

#[test]
fn the_reader_knows_exactly_the_keys_of_the_schema() {
    let closed = closed();
    let names: Vec<&str> = closed.keys().map(String::as_str).collect();
    assert_eq!(names, MAPS.map(|(name, ..)| name), "every map is compared");
    for (name, path, map) in MAPS {
        let dot = if path.is_empty() { "" } else { "." };
        let said = messages(map, &format!("{path}{dot}qqq~"), "qqq~: 1");
        let [message] = said.as_slice() else { panic!("{name}: {said:?}") };
        let (_, known) = message.split_once("; known are ").unwrap();
        let reader: BTreeSet<&str> = known.split(", ").collect();
        let schema: BTreeSet<&str> =
            closed[name]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(reader, schema, "{name}");
        assert_eq!(closed[name]["additionalProperties"], json!(false), "{name}");
    }
}

#[test]
fn the_schema_requires_exactly_what_the_reader_requires() {
    for (name, schema) in closed() {
        let (_, path, map) = MAPS.into_iter().find(|(of, ..)| *of == name).unwrap();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |keys| keys.iter().filter_map(Value::as_str).collect());
        for key in schema["properties"].as_object().unwrap().keys() {
            let dot = if path.is_empty() { "" } else { "." };
            let empty = if map == "%" { "{}" } else { "" };
            let said = messages(map, &format!("{path}{dot}{key}"), empty);
            let missed = said.iter().any(|message| message == "is missing; it is required");
            assert_eq!(missed, required.contains(&key.as_str()), "{name}.{key}");
        }
    }
    assert_eq!(
        schema()["required"],
        json!(["taskId", "version", "owner", "taskType", "handler"]),
        "the five of the contract"
    );
}

#[test]
fn every_key_has_a_title_and_a_description() {
    for (name, schema) in closed() {
        for (key, property) in schema["properties"].as_object().unwrap() {
            assert_eq!(property["title"], json!(key), "{name}.{key}");
            let text = property["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name}.{key} has no description");
            assert!(!text.contains("None"), "{name}.{key} speaks of the inside: {text}");
        }
    }
}

#[test]
fn the_samples_and_all_good_files_fit_the_schema() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/sched.d");
    let mut paths = files::named("ok", "yaml");
    let entries = std::fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path());
    paths.extend(entries.filter(|path| path.extension().is_some_and(|e| e == "yaml")));
    let mut seen = 0;
    for path in paths {
        for document in yaml::read(&std::fs::read(&path).unwrap()).unwrap() {
            assert_eq!(complaints(&document.to_json()), Vec::<String>::new(), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} documents only");
}

/// Numbers and truth values are what other readers of YAML make of plain texts.
#[test]
fn short_and_long_forms_fit_the_schema() {
    for good in [
        json!({"timeoutMs": 1}),
        json!({"timeoutMs": "1h30m"}),
        json!({"timeoutMs": null, "env": null, "retry": null, "triggers": null}),
        json!({"env": {"A": "1", "B": 22, "C": true}}),
        json!({"env": ["A=1"]}),
        json!({"umask": "022"}),
        json!({"umask": 18}),
        json!({"limits": {"memory": "512Mi", "fileSize": 1}}),
        json!({"runtimeParams": {"a": "date", "b": {"type": "int", "default": 3}}}),
        json!({"dependsOn": ["a.v1", {"taskId": "b.v1", "when": "true"}]}),
        json!({"priority": 0}),
        json!({"priority": "HIGH"}),
        json!({"triggers": [{"cron": null, "every": "5m", "settleMs": null}]}),
        json!({"exitCodes": {"75": "CONN_RESET", "1": "A", "255": "B", "99": "C", "249": "D"}}),
        json!({"handler": "#!/bin/sh\necho\n"}),
        json!({"owner": 7}),
        json!({"timeoutMs": "30000"}),
        json!({"timeoutMs": "1 hour, 2 mins"}),
        json!({"timeoutMs": "1d 02:30:00"}),
        json!({"timeoutMs": "02:30:00"}),
        json!({"timeoutMs": "PT1H"}),
        json!({"timeoutMs": "1.5s"}),
        json!({"killGraceMs": 0, "retry": {"intervalMs": 0, "maxIntervalMs": 0}}),
        json!({"triggers": [{"every": 1000, "catchUpMs": 0}, {"file": "/x", "settleMs": 0}]}),
        json!({"taskType": "PYTHON", "python": {"interpreter": "python3"}, "spark": null}),
    ] {
        assert_eq!(complaints(&task(&good)), Vec::<String>::new(), "{good}");
    }
}

#[test]
fn what_has_the_wrong_form_does_not_fit_the_schema() {
    for bad in [
        json!({"taskId": null}),
        json!({"taskId": "A.v1"}),
        json!({"version": "1"}),
        json!({"version": 0}),
        json!({"retires": 3}),
        json!({"retry": {"maxAttempt": 3}}),
        json!({"retry": {"maxAttempts": 0}}),
        json!({"retry": {"backoff": "LINEAR"}}),
        json!({"args": "x"}),
        json!({"args": [["x"]]}),
        json!({"env": {"A": {"x": 1}}}),
        json!({"env": ["A"]}),
        json!({"timeoutMs": -1}),
        json!({"timeoutMs": [1]}),
        json!({"umask": "999"}),
        json!({"nice": 20}),
        json!({"limits": {"memory": "1Q"}}),
        json!({"priority": 10}),
        json!({"priority": "high"}),
        json!({"runtimeParams": {"a": "dat"}}),
        json!({"runtimeParams": {"a": {"required": true}}}),
        json!({"dependsOn": ["a"]}),
        json!({"dependsOn": [{"strength": "WEAK"}]}),
        json!({"triggers": [{}]}),
        json!({"triggers": [{"boot": false}]}),
        json!({"triggers": [{"cron": "@daily", "every": "5m"}]}),
        json!({"triggers": [{"every": "5m", "settleMs": 1}]}),
        json!({"triggers": [{"event": "e", "overlap": "SKIP"}]}),
        json!({"triggers": [{"task": "a.v1", "states": ["RUNNING"]}]}),
        json!({"rollout": 101}),
        json!({"retention": {"days": 0}}),
        json!({"exitCodes": {"x": "A"}}),
        json!({"exitCodes": {"0": "A"}}),
        json!({"exitCodes": {"256": "A"}}),
        json!({"owner": ""}),
        json!({"owner": " "}),
        json!({"handler": ""}),
        json!({"handler": " \n"}),
        json!({"user": ""}),
        json!({"queue": " "}),
        json!({"timeoutMs": 0}),
        json!({"timeoutMs": ""}),
        json!({"timeoutMs": "soon"}),
        json!({"timeoutMs": "-1s"}),
        json!({"timeoutMs": 3_153_600_000_001_u64}),
        json!({"dependencyTimeoutMs": 0}),
        json!({"triggers": [{"every": 999}]}),
        json!({"triggers": [{"file": "/x", "pollMs": 9}]}),
        json!({"triggers": [{"file": ""}]}),
        json!({"python": {"interpreter": "python3"}}),
        json!({"taskType": "FLINK", "spark": {"master": "yarn"}}),
        json!({"python": {"interpeter": "x"}}),
    ] {
        assert!(!complaints(&task(&bad)).is_empty(), "{bad}");
    }
    assert!(!complaints(&json!([])).is_empty());
    for key in ["taskId", "version", "owner", "taskType", "handler"] {
        let mut without = task(&json!({}));
        without.as_object_mut().unwrap().remove(key);
        assert!(!complaints(&without).is_empty(), "no {key}");
    }
}

fn task(more: &Value) -> Value {
    let mut task = json!({"taskId": "a.v1", "version": 1, "owner": "o", "taskType": "SHELL",
        "handler": "true"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

proptest::proptest! {
    /// The reader takes every form that its library knows; the schema must not refuse one of them.
    #[test]
    fn every_duration_that_the_reader_takes_fits_the_schema(
        parts in proptest::collection::vec(
            ("[0-9]{1,4}(\\.[0-9])?", " ?", "(w|weeks|d|day|h|hrs|m|min|s|secs|ms|millis)", ",? ?"),
            0..4,
        ),
        end in "(|[0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{1,9}|PT[0-9]{1,3}[HMS]|P[0-9]DT[0-9]H)",
    ) {
        let parts: String = parts.iter().map(|(n, a, unit, b)| format!("{n}{a}{unit}{b}")).collect();
        let text = format!("{parts}{end}");
        let written = format!("{BASE}killGraceMs: {}\n", json!(text));
        let file = spec_yaml::read("/x.yaml", written.as_bytes(), &context());
        if file.errors.is_empty() {
            let said = complaints(&task(&json!({"killGraceMs": text})));
            proptest::prop_assert_eq!(said, Vec::<String>::new(), "{}", text);
        }
    }
}
