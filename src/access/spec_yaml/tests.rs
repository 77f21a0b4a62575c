//! Given a spec, these diagnostics or this definition; every expected text is written by hand.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::{SpecContext, read as file_of};
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::event::SpecFile;
use crate::model::params::ParamType;
use crate::model::spec::{Backoff, DepType, Misfire, Overlap, Strength, TaskSpec, TriggerKind};

pub(in crate::access) mod files;

pub(in crate::access) const BASE: &str =
    "taskId: a.b.v1\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: 'true'\n";

pub(in crate::access) fn context() -> SpecContext {
    SpecContext {
        task_types: BTreeSet::from(["BATCH_SETTLE".to_owned()]),
        timezone: "UTC".to_owned(),
        queues: BTreeSet::from(["default".to_owned(), "nightly".to_owned()]),
        now: None,
    }
}

fn file(text: &str) -> SpecFile {
    file_of("/etc/sched.d/x.yaml", text.as_bytes(), &context())
}

/// The one definition of `BASE` with more keys.
fn spec(more: &str) -> TaskSpec {
    let file = file(&format!("{BASE}{more}"));
    assert!(file.errors.is_empty(), "{more}: {:?}", file.errors);
    (*file.specs[0]).clone()
}

/// The example of the first source document, word for word.
const S0: &str = include_str!("../../../tests/data/order.settle.v2.yaml");

#[test]
fn the_source_documents_example_is_read_word_for_word() {
    let file = file(S0);
    assert_eq!((file.errors.as_slice(), file.warnings.as_slice()), (&[][..], &[][..]));
    let spec = &file.specs[0];
    assert_eq!(spec.task_id.as_str(), "order.settle.v2");
    assert_eq!((spec.version, spec.owner.as_str()), (2, "trade-team"));
    assert_eq!(spec.task_type, "BATCH_SETTLE");
    assert_eq!(spec.handler, "com.demo.settle.SettleHandler");
    assert_eq!(json!(spec.static_params), json!({"batchSize": 500, "targetDb": "settle_db"}));
    let params: Vec<(&str, ParamType, bool)> =
        spec.runtime_params.iter().map(|(n, p)| (n.as_str(), p.kind, p.required)).collect();
    assert_eq!(
        params,
        [
            ("bizDate", ParamType::Date, true),
            ("shardIndex", ParamType::Int, true),
            ("shardTotal", ParamType::Int, true),
        ]
    );
    let edges: Vec<(&str, DepType, Strength)> =
        spec.depends_on.iter().map(|e| (e.task_id.as_str(), e.dep_type, e.strength)).collect();
    assert_eq!(
        edges,
        [
            ("order.extract.v2", DepType::Success, Strength::Strong),
            ("user.profile.v2", DepType::DataReady, Strength::Strong),
        ]
    );
    assert_eq!(spec.timeout, Some(Duration::from_secs(30)));
    assert_eq!(spec.retry.max_attempts, 3);
    assert_eq!(spec.retry.backoff, Backoff::Exponential);
    assert_eq!(spec.retry.interval, Duration::from_secs(1));
    assert_eq!(spec.retry.retry_on, Some(vec!["TIMEOUT".to_owned(), "CONN_RESET".to_owned()]));
    assert!(spec.idempotent && !spec.preemptible && spec.enabled);
    assert_eq!(spec.priority.value(), 2);
    assert_eq!(spec.max_concurrent, Some(1));
}

#[test]
fn what_is_left_out_has_the_contracts_default() {
    let spec = spec("");
    assert_eq!(spec.kill_grace, Duration::from_secs(10));
    assert_eq!(spec.retry.max_attempts, 1);
    assert_eq!(spec.retry.max_interval, Duration::from_secs(3600));
    assert_eq!((spec.retry.jitter, spec.retry.retry_on), (0.0, None));
    assert_eq!(spec.log.max_bytes, 16 * 1024 * 1024);
    assert_eq!(spec.priority.value(), 4);
    assert_eq!(spec.queue.as_str(), "default");
    assert_eq!((spec.timeout, spec.dependency_timeout, spec.cycle), (None, None, None));
    assert_eq!((spec.timezone, spec.max_concurrent), (None, Some(1)));
    assert!(spec.idempotent && spec.enabled && !spec.preemptible);
}

#[test]
fn a_file_is_whole_or_refused() {
    let two = format!("{BASE}---\n{}", BASE.replace("a.b", "c.d"));
    assert_eq!(file(&two).specs.len(), 2);
    let one_bad = format!("{two}nope: 1\n");
    let refused = file(&one_bad);
    assert_eq!((refused.specs.len(), refused.errors.len()), (0, 1));
    let nothing = file("# only\n");
    assert!(nothing.errors.is_empty() && nothing.specs.is_empty());
    assert_eq!(nothing.warnings[0].to_string(), "/etc/sched.d/x.yaml: the file holds no task");
}

#[test]
fn the_hash_is_that_of_the_bytes() {
    // The well-known SHA-256 of the empty text.
    assert_eq!(file("").hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn json_is_yaml() {
    let text = r#"{"taskId": "a.b.v1", "version": 1, "owner": "o", "taskType": "SHELL",
        "handler": "echo \"hi\"", "timeoutMs": null, "triggers": [{"cron": "0 2 * * *"}]}"#;
    let file = file(text);
    assert!(file.errors.is_empty(), "{:?}", file.errors);
    assert_eq!(file.specs[0].handler, "echo \"hi\"");
}

#[test]
fn durations_sizes_and_masks_are_read_in_all_their_forms() {
    for (written, ms) in [
        ("1", 1),
        ("30000", 30_000),
        ("\"30000\"", 30_000),
        ("30s", 30_000),
        ("\"1h30m\"", 5_400_000),
        ("1500ms", 1_500),
        ("1.5s", 1_500),
        ("7d", 604_800_000),
        ("PT1H", 3_600_000),
    ] {
        let spec = spec(&format!("timeoutMs: {written}\n"));
        assert_eq!(spec.timeout, Some(Duration::from_millis(ms)), "{written}");
    }
    for (written, bytes) in [
        ("1000", 1000),
        ("2G", 2_000_000_000),
        ("512Mi", 536_870_912),
        ("1KiB", 1024),
        ("16k", 16_000),
    ] {
        let spec = spec(&format!("limits: {{memory: {written}}}\n"));
        assert_eq!(spec.limits.memory, Some(bytes), "{written}");
    }
    for (written, mask) in [
        ("022", 0o22),
        ("\"022\"", 0o22),
        ("0o22", 0o22),
        ("\"77\"", 0o77),
        ("0", 0),
        ("\"0777\"", 0o777),
    ] {
        assert_eq!(spec(&format!("umask: {written}\n")).umask, Some(mask), "{written}");
    }
}

#[test]
fn the_environment_keeps_what_was_written() {
    let map =
        spec("env: {UMASK: 022, V: 1.10, D: 2026-01-01, T: 12:30:45, E: 1e3, B: yes, S: \"\"}\n");
    let list =
        spec("env:\n- UMASK=022\n- V=1.10\n- D=2026-01-01\n- T=12:30:45\n- E=1e3\n- B=yes\n- S=\n");
    assert_eq!(map.env, list.env);
    let texts: Vec<(&str, &str)> = map.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        texts,
        [
            ("B", "yes"),
            ("D", "2026-01-01"),
            ("E", "1e3"),
            ("S", ""),
            ("T", "12:30:45"),
            ("UMASK", "022"),
            ("V", "1.10"),
        ]
    );
}

#[test]
fn relative_paths_start_from_the_files_folder() {
    let spec = spec("workingDir: work\ntriggers: [{file: in/*.csv}]\n");
    assert_eq!(spec.working_dir.unwrap().as_str(), "/etc/sched.d/work");
    let TriggerKind::File(trigger) = &spec.triggers[0].when else { panic!("a file trigger") };
    assert_eq!(trigger.pattern, "/etc/sched.d/in/*.csv");
    assert_eq!((trigger.settle, trigger.poll), (Duration::from_millis(500), None));
}

#[test]
fn the_folders_own_name_is_no_pattern() {
    let text = format!("{BASE}triggers: [{{file: 'in/[ab].csv'}}]\n");
    let file = file_of("/etc/s[1]*/x.yaml", text.as_bytes(), &context());
    let TriggerKind::File(trigger) = &file.specs[0].triggers[0].when else {
        panic!("a file trigger")
    };
    assert_eq!(trigger.pattern, "/etc/s[[]1[]][*]/in/[ab].csv");
    assert_round_trip(&file.specs[0]);
}

#[test]
fn an_exec_program_is_found_beside_the_file() {
    let handler = |text: &str| {
        let text = BASE.replace("SHELL", "EXEC").replace("'true'", text);
        file(&text).specs[0].handler.clone()
    };
    assert_eq!(handler("./run.sh"), "/etc/sched.d/run.sh");
    assert_eq!(handler("true"), "true");
    assert_eq!(handler("/bin/true"), "/bin/true");
}

#[test]
fn triggers_are_read_with_their_defaults() {
    let spec = spec(
        "runtimeParams: {d: date, p: string, n: int}\n\
         triggers:\n\
         - {cron: \"0 2 * * *\", timezone: Asia/Shanghai, params: {d: \"{date}\", p: x, n: 1}}\n\
         - {every: 5m, misfire: SKIP, catchUpMs: 1h, overlap: QUEUE}\n\
         - {boot: true}\n\
         - {file: /in/*.csv, settleMs: 1s, pollMs: 2s, params: {p: \"{file.path}\"}}\n\
         - {event: orders.arrived, params: {n: \"{event.n}\"}}\n\
         - {task: c.d.v1}\n\
         - {task: c.d.v1, states: [SUCCEEDED]}\n",
    );
    let [cron, every, boot, file, event, task, _] = spec.triggers.as_slice() else {
        panic!("seven triggers")
    };
    let TriggerKind::Cron(t) = &cron.when else { panic!("cron") };
    assert_eq!((t.expr.as_str(), t.timezone.as_deref()), ("0 2 * * *", Some("Asia/Shanghai")));
    assert_eq!((t.policy.misfire, t.policy.overlap), (Misfire::RunOnce, Overlap::Skip));
    assert_eq!(t.policy.catch_up, Duration::from_secs(24 * 3600));
    assert_eq!(json!(cron.params), json!({"d": "{date}", "p": "x", "n": 1}));
    let TriggerKind::Every(t) = &every.when else { panic!("every") };
    assert_eq!(t.period, Duration::from_secs(300));
    assert_eq!((t.policy.misfire, t.policy.overlap), (Misfire::Skip, Overlap::Queue));
    assert_eq!(t.policy.catch_up, Duration::from_secs(3600));
    assert_eq!(boot.when, TriggerKind::Boot);
    let TriggerKind::File(t) = &file.when else { panic!("file") };
    assert_eq!((t.settle.as_secs(), t.poll.map(|p| p.as_secs())), (1, Some(2)));
    assert_eq!(event.when, TriggerKind::Event("orders.arrived".to_owned()));
    let TriggerKind::Task(t) = &task.when else { panic!("task") };
    assert_eq!(json!(t.states), json!(["FAILED", "TIMEOUT"]));
}

#[test]
fn concurrency_is_one_unless_a_trigger_allows_overlap() {
    let concurrent = |more: &str| spec(more).max_concurrent;
    assert_eq!(concurrent("triggers: [{every: 5m, overlap: ALLOW}]\n"), None);
    assert_eq!(concurrent("triggers: [{every: 5m, overlap: ALLOW}]\nmaxConcurrent: 3\n"), Some(3));
    assert_eq!(concurrent("triggers: [{every: 5m, overlap: QUEUE}]\n"), Some(1));
}

#[test]
fn parameters_have_a_short_and_a_long_form() {
    let spec = spec(
        "runtimeParams:\n  d: date\n  n: {type: int, default: 5, min: 1, max: 9}\n\
         \x20 z: {type: string, enum: [a, b], required: false, secret: true}\n\
         \x20 t: {type: date, default: \"{date}\"}\n\
         \x20 v: {type: string, default: 1.10}\n\
         cycle: {unit: HOUR, offset: -1}\n",
    );
    let of = |name: &str| &spec.runtime_params[name];
    assert!(of("d").required && !of("n").required && !of("z").required && !of("t").required);
    assert_eq!(of("n").default, Some(json!(5)));
    assert_eq!((&of("n").min, &of("n").max), (&Some(json!(1)), &Some(json!(9))));
    assert_eq!(of("z").allowed, [json!("a"), json!("b")]);
    assert!(of("z").secret);
    assert_eq!(of("t").default, Some(json!("{date}")));
    assert_eq!(of("v").default, Some(json!("1.10")));
    assert_eq!(spec.cycle, Some(CycleRule { unit: CycleUnit::Hour, offset: -1 }));
}

#[test]
fn a_task_that_is_not_idempotent_may_retry_with_a_dedup_key() {
    let spec = spec(
        "idempotent: false\ndedupKey: '{taskId}-{cycle}'\nretry: {maxAttempts: 2, intervalMs: 1}\n",
    );
    assert!(!spec.idempotent && spec.may_run_again());
    assert_eq!(spec.dedup_key.unwrap().as_str(), "{taskId}-{cycle}");
}

/// What the store keeps and `show` prints is itself a spec: it reads back as the same definition.
pub(in crate::access) fn assert_round_trip(spec: &TaskSpec) {
    let json = serde_json::to_string(spec).unwrap();
    assert_eq!(serde_json::from_str::<TaskSpec>(&json).unwrap(), *spec, "{json}");
    let again = file(&json);
    assert!(again.errors.is_empty(), "{json}\n{:?}", again.errors);
    assert_eq!(*again.specs[0], *spec);
}

#[test]
fn the_stored_form_of_a_definition_is_a_spec_that_means_the_same() {
    let mut definitions = 0;
    for path in files::named("ok", "yaml") {
        for spec in &file_of("/etc/sched.d/x.yaml", &std::fs::read(path).unwrap(), &context()).specs
        {
            assert_round_trip(spec);
            definitions += 1;
        }
    }
    assert!(definitions > 10, "{definitions} definitions only");
    assert_round_trip(&file(S0).specs[0]);
}

/// A definition stored before keys were added reads as one without them.
#[test]
fn a_definition_that_was_stored_before_a_key_existed_is_still_read() {
    let spec = spec("dependsOn: [c.v1]\n");
    let serde_json::Value::Object(mut stored) = json!(spec) else { panic!("an object") };
    for later in ["rollout", "retention", "outputs", "python", "spark", "flink", "slurm"] {
        stored.remove(later);
    }
    assert_eq!(
        stored["dependsOn"],
        json!([{"taskId": "c.v1", "depType": "SUCCESS", "strength": "STRONG"}])
    );
    assert_eq!(serde_json::from_value::<TaskSpec>(json!(stored)).unwrap(), spec);
}

#[test]
fn outputs_are_absolute_and_not_too_many() {
    let outputs = |n: usize| format!("outputs: [{}]\n", vec!["'out/{date}'"; n].join(", "));
    let spec = spec(&outputs(256));
    assert_eq!(spec.outputs.len(), 256);
    assert!(spec.outputs[0].as_str().starts_with('/'));
    let many = file(&format!("{BASE}{}", outputs(257)));
    assert_eq!(many.errors.len(), 1);
    let message = &many.errors[0].message;
    assert_eq!(message, "found 257 paths; expected at most 256: name a folder instead");
}

#[test]
fn a_flood_of_faults_is_counted_and_not_told() {
    let keys: String = (0..5000).map(|n| format!("key{n}: 1\n")).collect();
    let flooded = file(&format!("{BASE}{keys}"));
    assert!(flooded.specs.is_empty());
    assert_eq!(flooded.errors.len(), crate::limits::SPEC_FAULTS_MAX + 1);
    let last = flooded.errors.last().unwrap();
    assert_eq!((last.line, last.message.as_str()), (0, "has 4800 more faults; mend these first"));
}

/// The clock is read here to bound the time, as a hostile file must not hold up the others.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test bounds real time")]
fn hostile_definitions_are_read_soon() {
    let list =
        |n: usize, of: &dyn Fn(usize) -> String| (0..n).map(of).collect::<Vec<_>>().join(", ");
    let params = list(4000, &|n| format!("parameter{n}: int"));
    for (name, more) in [
        ("unknown keys", (0..9000).map(|n| format!("key{n}: 1\n")).collect()),
        (
            "unknown placeholders",
            format!(
                "runtimeParams: {{{params}}}\nargs: [{}]\n",
                list(4000, &|n| format!("'{{params.paramter{n}}}'"))
            ),
        ),
        (
            "undeclared parameters",
            format!(
                "runtimeParams: {{{params}}}\ntriggers: [{{event: e, params: {{{}}}}}]\n",
                list(4000, &|n| format!("paramter{n}: 1"))
            ),
        ),
        (
            "a chain of defaults",
            format!(
                "runtimeParams: {{{}}}\n",
                list(500, &|n| format!("p{n}: {{type: string, default: '{{params.p{}}}'}}", n + 1))
            ) + "",
        ),
        (
            "zones",
            format!(
                "triggers: [{}]\n",
                list(500, &|n| format!(
                    "{{cron: '0 {} * * *', timezone: Mars/Olympus{n}}}",
                    n % 24
                ))
            ),
        ),
        ("braces", format!("args: ['{}']\n", "{".repeat(200_000))),
        ("doubled braces", format!("args: ['{}']\n", "{{".repeat(100_000))),
        (
            "a pattern",
            "runtimeParams: {a: {type: string, pattern: '((a{1000}){1000}){1000}'}}\n".to_owned(),
        ),
        ("a long word", format!("queue: {}\ntimezone: {0}\n", "x".repeat(120_000))),
        ("documents", format!("---\n{BASE}").repeat(3000)),
        (
            "conditions",
            format!(
                "dependsOn: [{}]\n",
                list(2000, &|n| format!("{{taskId: c{n}.v1, when: '((((output.x > {n}))))'}}"))
            ),
        ),
    ] {
        let text = format!("{BASE}{more}");
        assert!(text.len() < crate::limits::SPEC_FILE_BYTES_MAX, "{name} is read at all");
        let before = std::time::Instant::now();
        drop(file(&text));
        let spent = before.elapsed();
        assert!(spent < Duration::from_secs(5), "{name} took {spent:?}");
    }
}

mod properties;
mod zones;

/// Each pattern takes a while to compile: a file cannot keep the reader busy for minutes.
#[test]
fn a_flood_of_patterns_is_cut_off() {
    let flood = |count: usize| {
        let params = (0..count)
            .map(|n| format!("  p{n}: {{type: string, required: false, pattern: '[a-z]+'}}\n"));
        BASE.to_owned() + "runtimeParams:\n" + &params.collect::<String>()
    };
    assert!(file(&flood(100)).errors.is_empty());
    let errors = file(&flood(101)).errors;
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.contains("may have 100"), "{}", errors[0]);
}
