//! Whatever a good definition says, it survives the store and the reader; whatever bytes stand in a
//! file, reading them ends in definitions or in errors.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::{BASE, assert_round_trip, context, file_of};
use crate::model::event::SpecFile;

fn read(bytes: &[u8]) -> SpecFile {
    file_of("/etc/sched.d/x.yaml", bytes, &context())
}

fn words(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(|word| json!(word)).boxed()
}

fn text() -> BoxedStrategy<Value> {
    "[a-zA-Z0-9é:#'\"*&%@ -]{0,12}x".prop_map(|text| json!(text)).boxed()
}

/// Whatever a person might paste, as far as it may stand in a value.
fn any_text() -> BoxedStrategy<Value> {
    let refused = |c: char| matches!(c, '\0' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    any::<String>().prop_map(move |text| json!(text.replace(refused, " "))).boxed()
}

fn whole(range: std::ops::RangeInclusive<i64>) -> BoxedStrategy<Value> {
    range.prop_map(|n| json!(n)).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(|flag| json!(flag)).boxed()
}

fn duration() -> BoxedStrategy<Value> {
    let texts = words(&["30s", "1h30m", "7d", "1500ms", "1.5s", "PT1H", "2000"]);
    prop_oneof![whole(1..=86_400_000), texts].boxed()
}

fn size() -> BoxedStrategy<Value> {
    prop_oneof![whole(1..=1 << 40), words(&["512Mi", "2G", "1KiB", "16k"])].boxed()
}

fn template() -> BoxedStrategy<Value> {
    words(&["", "x", "{date}", "--d={params.day}", "{{x}}", "{static.s}/{instanceId}", "a b"])
}

fn id() -> BoxedStrategy<Value> {
    "[a-z]{1,5}(\\.[a-z]{1,5}){0,2}".prop_map(|base| json!(format!("{base}.v7"))).boxed()
}

fn list(of: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    vec(of, 0..4).prop_map(Value::from).boxed()
}

fn map(of: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    btree_map("[A-Z]{1,4}", of, 0..4).prop_map(|map| json!(map)).boxed()
}

/// A map with any of these keys.
fn some(keys: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let pairs: Vec<_> = keys
        .into_iter()
        .map(|(key, value)| option::of(value.prop_map(move |v| (key.to_owned(), v))))
        .collect();
    pairs.prop_map(|pairs| Value::Object(pairs.into_iter().flatten().collect())).boxed()
}

/// A map with these keys and any of the others.
fn with(
    fixed: Vec<(&'static str, BoxedStrategy<Value>)>,
    others: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let (keys, values): (Vec<_>, Vec<_>) = fixed.into_iter().unzip();
    (values, some(others))
        .prop_map(move |(values, others)| {
            let Value::Object(mut map) = others else { return others };
            map.extend(keys.iter().map(|key| (*key).to_owned()).zip(values));
            Value::Object(map)
        })
        .boxed()
}

fn triggers() -> BoxedStrategy<Value> {
    let params = || some(vec![("day", words(&["{date}", "2026-11-30"]))]);
    let policy = || {
        vec![
            ("misfire", words(&["SKIP", "RUN_ONCE", "RUN_ALL"])),
            ("overlap", words(&["SKIP", "QUEUE", "REPLACE", "ALLOW"])),
            ("catchUpMs", duration()),
            ("params", params()),
        ]
    };
    let mut cron = policy();
    cron.push(("timezone", words(&["UTC", "Asia/Shanghai"])));
    let kinds = [
        with(vec![("cron", words(&["0 2 * * *", "@daily", "30 0 2 * * MON-FRI"]))], cron),
        with(vec![("every", words(&["5m", "1h"]))], policy()),
        with(vec![("boot", json_only(&json!(true)))], vec![("params", params())]),
        with(
            vec![("file", words(&["in/*.csv", "/in/**/x"]))],
            vec![("settleMs", duration()), ("pollMs", duration()), ("params", params())],
        ),
        with(vec![("event", words(&["go", "orders.arrived"]))], vec![("params", params())]),
        with(
            vec![("task", id())],
            vec![(
                "states",
                vec(words(&["SUCCEEDED", "CANCELLED"]), 1..3).prop_map(Value::from).boxed(),
            )],
        ),
    ];
    // One of each kind at most, so that no two are the same trigger.
    let any: Vec<_> = kinds.into_iter().map(option::of).collect();
    any.prop_map(|any| Value::Array(any.into_iter().flatten().collect())).boxed()
}

fn json_only(value: &Value) -> BoxedStrategy<Value> {
    Just(value.clone()).boxed()
}

fn edges() -> BoxedStrategy<Value> {
    let long = with(
        vec![("taskId", id())],
        vec![
            ("depType", words(&["SUCCESS", "DATA_READY"])),
            ("strength", words(&["STRONG", "WEAK"])),
            ("when", words(&["output.rows > 0", "state == 'SUCCEEDED' && !has(params.x)"])),
            ("cycleOffset", whole(-9..=0)),
        ],
    );
    let upstream = |edge: &Value| edge.get("taskId").unwrap_or(edge).to_string();
    vec(prop_oneof![id(), long], 0..4)
        .prop_map(move |mut edges| {
            let mut seen = std::collections::BTreeSet::new();
            edges.retain(|edge| seen.insert(upstream(edge)));
            Value::from(edges)
        })
        .boxed()
}

fn parameters() -> BoxedStrategy<Value> {
    let long = with(
        vec![("type", words(&["int"]))],
        vec![
            ("required", flag()),
            ("default", whole(1..=9)),
            ("min", whole(-5..=1)),
            ("max", whole(9..=20)),
            ("secret", flag()),
        ],
    );
    let texts = with(
        vec![("type", words(&["string", "json"]))],
        vec![("default", template()), ("required", flag())],
    );
    with(
        vec![("day", words(&["date"]))],
        vec![("n", long), ("t", texts), ("d", words(&["duration", "datetime", "number", "bool"]))],
    )
}

/// What runs, each key there or not.
fn execution() -> BoxedStrategy<Value> {
    let limits = some(vec![
        ("memory", size()),
        ("openFiles", whole(1..=9999)),
        ("processes", whole(1..=9999)),
        ("cpuSeconds", whole(1..=9999)),
        ("fileSize", size()),
    ]);
    let retry = some(vec![
        ("maxAttempts", whole(1..=9)),
        ("backoff", words(&["FIXED", "EXPONENTIAL"])),
        ("intervalMs", duration()),
        ("maxIntervalMs", duration()),
        ("jitter", (0.0..=1.0f64).prop_map(|n| json!(n)).boxed()),
        ("retryOn", list(words(&["TIMEOUT", "EXIT_*", "*"]))),
    ]);
    some(vec![
        ("name", text()),
        ("description", any_text()),
        ("labels", map(text())),
        ("args", list(template())),
        ("env", map(template())),
        ("workingDir", words(&["work", "/tmp", "../x/{date}", "{params.day}/x"])),
        ("user", text()),
        ("group", text()),
        ("umask", words(&["022", "0o27", "777"])),
        ("nice", whole(-20..=19)),
        ("limits", limits),
        ("timeoutMs", duration()),
        ("killGraceMs", duration()),
        ("retry", retry),
        ("exitCodes", some(vec![("1", words(&["A"])), ("75", words(&["CONN_RESET"]))])),
        ("idempotent", flag()),
        ("dedupKey", words(&["{params.day}", "x"])),
        ("outputs", list(words(&["out/{date}.csv", "/x"]))),
        ("log", some(vec![("maxBytes", size())])),
    ])
}

/// When and in which order, each key there or not.
fn scheduling() -> BoxedStrategy<Value> {
    some(vec![
        ("triggers", triggers()),
        ("timezone", words(&["UTC", "Europe/Berlin"])),
        (
            "cycle",
            some(vec![("unit", words(&["DAY", "HOUR", "MINUTE"])), ("offset", whole(-9..=9))]),
        ),
        ("dependsOn", edges()),
        ("onUpstream", words(&["EACH", "LATEST"])),
        ("dependencyTimeoutMs", duration()),
        ("onDependencyTimeout", words(&["CANCEL", "RUN_DEGRADED"])),
        ("priority", prop_oneof![whole(0..=9), words(&["HIGH", "7"])].boxed()),
        ("queue", words(&["default", "nightly"])),
        ("preemptible", flag()),
        ("maxConcurrent", whole(1..=99)),
        ("executorLabels", map(text())),
        ("enabled", flag()),
        ("rollout", whole(1..=100)),
        ("retention", some(vec![("days", whole(1..=99)), ("instances", whole(1..=9999))])),
    ])
}

/// Every key of a definition, each there or not.
fn definition() -> BoxedStrategy<Value> {
    let fixed = || {
        json!({"taskId": "a.b.v2", "version": 2, "owner": "o", "taskType": "SHELL",
        "handler": "true", "staticParams": {"s": {"deep": [1, null, "x"]}}})
    };
    (execution(), scheduling(), parameters())
        .prop_map(move |(execution, scheduling, parameters)| {
            let mut whole = Map::new();
            for part in [fixed(), execution, scheduling, json!({"runtimeParams": parameters})] {
                let Value::Object(part) = part else { continue };
                whole.extend(part);
            }
            // What is not idempotent is neither preemptible nor, without a key, tried again.
            if whole.get("idempotent") == Some(&json!(false)) {
                whole.remove("preemptible");
                whole.entry("dedupKey").or_insert(json!("{instanceId}"));
            }
            Value::Object(whole)
        })
        .boxed()
}

proptest! {
    #[test]
    fn whatever_is_accepted_survives_the_store_and_the_reader_and_fits_the_schema(
        written in definition()
    ) {
        let file = read(written.to_string().as_bytes());
        prop_assert!(file.errors.is_empty(), "{}\n{:?}", written, file.errors);
        assert_round_trip(&file.specs[0]);
        prop_assert!(crate::access::spec_schema::tests::complaints(&written).is_empty());
    }

    #[test]
    fn no_bytes_make_the_loader_panic(bytes in vec(any::<u8>(), 0..300)) {
        drop(read(&bytes));
    }

    #[test]
    fn no_words_of_a_spec_make_the_loader_panic(
        words in vec(select(vec![
            "taskId", "version", "triggers", "cron", "dependsOn", "when", "runtimeParams", "env",
            "retry", ": ", ":", "\n", "\n  ", "\n- ", "- ", "[", "]", "{", "}", ", ", "'", "\"", "#",
            "&a", "*a", "!x", "|", ">", "---\n", "...\n", "\t", "\r\n", "1", "08", "no", "null", "~",
            "* * * * *", "{date}", "{params.x}", "a.b.v1", "output.x > 1", "é", "\u{85}", "? ", "<<",
        ]), 0..40)
    ) {
        drop(read(words.concat().as_bytes()));
        let file = read(format!("{BASE}{}", words.concat()).as_bytes());
        prop_assert!(file.errors.is_empty() || file.specs.is_empty());
    }
}
