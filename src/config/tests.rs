//! Given a configuration file, these settings or these diagnostics; all written by hand.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Config, ConfigError, Durability, Places};
use crate::model::priority::Level;
use crate::model::request::StopMode;
use crate::model::settings::{Discipline, QueueSettings};

fn read(text: &str) -> Result<Config, Vec<String>> {
    match Config::read(Path::new("/etc/x/schedd.yaml"), text.as_bytes(), &Places::system()) {
        Ok(config) => Ok(config),
        Err(ConfigError::Invalid(errors)) => Err(errors.iter().map(ToString::to_string).collect()),
        Err(error @ ConfigError::Read { .. }) => panic!("{error}"),
    }
}

#[test]
fn every_fault_is_told_with_its_place_and_advice() {
    for (text, expected) in [
        ("specdir: /x\n", "1:1: specdir: unknown key \"specdir\"; did you mean specDir?"),
        (
            "timezone: Mars/Olympus\n",
            "1:11: timezone: found Mars/Olympus; expected an IANA zone such as Asia/Shanghai",
        ),
        (
            "heartbeatMs: soon\n",
            "1:14: heartbeatMs: found soon; expected milliseconds or a text such as \"30s\" or \"1h30m\"",
        ),
        ("executors: []\n", "1:12: executors: found an empty list; expected at least one executor"),
        ("executors:\n- {id: a}\n- {id: a}\n", "3:8: executors[1].id: a is configured twice"),
        (
            "executors: [{id: ../a}]\n",
            "1:18: executors[0].id: found ../a; expected letters, digits, '.', '-' and '_', a letter or digit first, at most 64",
        ),
        (
            "executors: [{id: a, slots: 0}]\n",
            "1:28: executors[0].slots: found 0; expected a whole number from 1 to 4294967295",
        ),
        (
            "executors: [{id: a, launch: external}]\n",
            "1:29: executors[0].launch: launch: external is not supported by this version yet",
        ),
        (
            "executors: [{id: a, taskTypes: [SHEL]}]\n",
            "1:33: executors[0].taskTypes[0]: found SHEL; expected *, SHELL, EXEC, PYTHON, SPARK, FLINK, SLURM; did you mean SHELL?",
        ),
        (
            "queues: [{name: q, levelWeights: {LOW: 1}}]\n",
            "1:34: queues[0].levelWeights: levelWeights is of use with discipline: WEIGHTED only; \
             under STRICT the lower priority number always goes first",
        ),
        (
            "queues: [{name: q, discipline: WEIGHTED, levelWeights: {LOW: 0}}]\n",
            "1:62: queues[0].levelWeights.LOW: found 0; expected a whole number from 1 to 4294967295",
        ),
        (
            "queues: [{name: q, discipline: FAIR}]\n",
            "1:32: queues[0].discipline: found FAIR; expected STRICT, WEIGHTED",
        ),
        ("taskTypes: {A: {env: {}}}\n", "1:16: taskTypes.A.run: is missing; it is required"),
        ("taskTypes: {A: {run: x}}\n", "1:22: taskTypes.A.run: found x; expected a list"),
        (
            "taskTypes: {SHELL: {run: [x]}}\n",
            "1:13: taskTypes.SHELL: SHELL is built in; choose another name",
        ),
        (
            "socket: {mode: 660}\n",
            "1:16: socket.mode: found 660; expected octal digits in quotes, such as \"022\"",
        ),
        ("onStop: STOP\n", "1:9: onStop: found STOP; expected HANDOVER, DRAIN, CANCEL"),
        (
            "hooks: [{on: [FAILD], run: [x]}]\n",
            "1:15: hooks[0].on[0]: found FAILD; expected SUCCEEDED, FAILED, TIMEOUT, CANCELLED; did you mean FAILED?",
        ),
        (
            "access: {operators: {owner: {}}}\n",
            "1:22: access.operators.owner: unknown key \"owner\"; did you mean owners?",
        ),
        (
            "rateLimit: {perSecond: -1}\n",
            "1:24: rateLimit.perSecond: found -1; expected a whole number from 1 to 4294967295",
        ),
        ("- a\n", "1:1: found a list; expected a map"),
    ] {
        assert_eq!(read(text), Err(vec![format!("/etc/x/schedd.yaml:{expected}")]), "{text}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let errors = read("heartbeat: 1\nonStop: X\nqueue: []\n").unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = read("# nothing\n").unwrap();
    assert_eq!(config.spec_dir, Path::new("/etc/sched.d"));
    assert_eq!(config.state_dir, Path::new("/var/lib/schedd"));
    assert_eq!(config.log_dir, Path::new("/var/log/schedd"));
    assert_eq!(config.socket.path, Path::new("/run/schedd/schedd.sock"));
    assert_eq!((config.socket.mode, config.socket.group.as_deref()), (0o660, None));
    assert_eq!(config.durability, Durability::Strict);
    let settings = &config.settings;
    assert_eq!(settings.on_stop, StopMode::Handover);
    assert_eq!(settings.heartbeat, Duration::from_secs(5));
    assert_eq!((settings.retention_days, settings.retention_instances), (30, 100_000));
    let [queue] = settings.queues.as_slice() else { panic!("one queue") };
    assert_eq!((queue.name.as_str(), queue.weight, queue.max_running), ("default", 1, None));
    let [executor] = settings.executors.as_slice() else { panic!("one executor") };
    assert_eq!(
        (executor.id.as_str(), executor.task_types.as_slice()),
        ("local", &["*".to_owned()][..])
    );
    assert_eq!(executor.slots % 4, 0);
    assert!(executor.slots >= 4);
}

#[test]
fn what_is_written_is_taken_and_paths_start_from_the_file() {
    let config = read(
        "specDir: d\nstateDir: ../s\nsocket: {path: ./x.sock, mode: \"0600\", group: ops}\n\
         timezone: Asia/Shanghai\ndurability: RELAXED\nsyncMs: 50ms\nonStop: DRAIN\n\
         executors: [{id: a, taskTypes: [SHELL, SETTLE], labels: {zone: a}, slots: 8, launch: daemon}]\n\
         queues: [{name: q, weight: 4, maxRunning: 8, discipline: STRICT}]\n\
         taskTypes: {SETTLE: {run: [bin/settle, \"{handler}\"], env: {A: 1.10}}}\n\
         ownerQuota: {trade-team: 4}\n",
    )
    .unwrap();
    assert_eq!(config.spec_dir, Path::new("/etc/x/d"));
    assert_eq!(config.state_dir, Path::new("/etc/s"));
    assert_eq!(config.socket.path, Path::new("/etc/x/x.sock"));
    assert_eq!((config.socket.mode, config.socket.group.as_deref()), (0o600, Some("ops")));
    assert_eq!(config.durability, Durability::Relaxed { sync_within: Duration::from_millis(50) });
    let settings = &config.settings;
    assert_eq!(settings.timezone, "Asia/Shanghai");
    let names: Vec<&str> = settings.queues.iter().map(|q| q.name.as_str()).collect();
    assert_eq!(names, ["q", "default"]);
    let settle = &settings.task_types["SETTLE"];
    let run: Vec<&str> = settle.run.iter().map(|t| t.as_str()).collect();
    assert_eq!(run, ["/etc/x/bin/settle", "{handler}"]);
    assert_eq!(settle.env["A"].as_str(), "1.10");
    assert_eq!(settings.owner_quota, BTreeMap::from([("trade-team".to_owned(), 4)]));
    let context = config.spec_context();
    assert!(context.task_types.contains("SETTLE") && context.queues.contains("q"));
}

#[test]
fn levels_share_a_weighted_queue_by_the_contracts_weights_or_those_given() {
    let config = read(
        "queues: [{name: a, discipline: WEIGHTED}, {name: b, discipline: WEIGHTED, \
         levelWeights: {LOW: 5, BACKGROUND: 3}}]\n",
    )
    .unwrap();
    let weights = |queue: &QueueSettings| match queue.discipline {
        Discipline::Weighted(weights) => Level::ALL.map(|level| weights.of(level)),
        Discipline::Strict => panic!("{} is weighted", queue.name),
    };
    let [a, b, default] = config.settings.queues.as_slice() else { panic!("three queues") };
    // Contract §4.
    assert_eq!((weights(a), weights(b)), ([16, 8, 4, 2, 1], [16, 8, 4, 5, 3]));
    assert_eq!(default.discipline, Discipline::Strict);
}

#[test]
fn what_is_not_in_force_yet_is_said() {
    let config = read(
        "access: {admins: {users: [root], groups: [a]}, operators: {groups: [s], owners: {t: {groups: [t]}}}, viewers: {groups: [adm]}}\n\
         rateLimit: {perSecond: 200, burst: 400}\nconnections: {max: 512, perUid: 256}\n\
         reserveBytes: 128Mi\nretention: {days: 7, instances: 5, logBytes: 10Gi}\n\
         hooks: [{on: [FAILED, TIMEOUT], owners: [\"*\"], run: [/bin/notify]}]\n",
    )
    .unwrap();
    let said: Vec<&str> = config.warnings.iter().map(|w| w.path.as_str()).collect();
    assert_eq!(
        said,
        ["retention.logBytes", "access", "rateLimit", "connections", "reserveBytes", "hooks"]
    );
    assert_eq!(config.settings.retention_days, 7);
}

#[test]
fn a_socket_path_is_at_most_as_long_as_the_kernel_takes() {
    let path = |length: usize| format!("socket: {{path: /{}}}\n", "s".repeat(length - 1));
    assert!(read(&path(107)).is_ok());
    let errors = read(&path(108)).unwrap_err();
    assert!(errors[0].contains("of 108 bytes; the kernel takes at most 107"), "{errors:?}");
}

#[test]
fn a_users_places_follow_the_xdg_variables() {
    let places = |variables: &[(&str, &str)]| {
        let variables: BTreeMap<&str, OsString> =
            variables.iter().map(|(k, v)| (*k, OsString::from(v))).collect();
        Places::of_user(&|name| variables.get(name).cloned(), &|| PathBuf::from("/home/pw"))
    };
    let given = places(&[
        ("HOME", "/home/a"),
        ("XDG_CONFIG_HOME", "/c"),
        ("XDG_STATE_HOME", "/s"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
    ]);
    assert_eq!(given.config_file, Path::new("/c/schedd/schedd.yaml"));
    assert_eq!(given.spec_dir, Path::new("/c/sched.d"));
    assert_eq!(given.state_dir, Path::new("/s/schedd"));
    assert_eq!(given.log_dir, Path::new("/s/schedd/log"));
    assert_eq!(given.socket, Path::new("/run/user/7/schedd/schedd.sock"));
    let bare = places(&[("XDG_CONFIG_HOME", "relative")]);
    assert_eq!(bare.config_file, Path::new("/home/pw/.config/schedd/schedd.yaml"));
    assert_eq!(bare.state_dir, Path::new("/home/pw/.local/state/schedd"));
    assert_eq!(bare.socket, Path::new("/home/pw/.local/state/schedd/schedd.sock"));
}

#[test]
fn a_file_that_is_named_and_not_there_is_an_error() {
    let missing = tempfile::tempdir().unwrap().path().join("no.yaml");
    assert!(matches!(Config::load(Some(&missing)), Err(ConfigError::Read { .. })));
}

/// The folder of samples that the repository ships.
fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

#[test]
fn the_shipped_configuration_says_the_defaults() {
    let bytes = std::fs::read(samples().join("schedd.yaml")).unwrap();
    let written = Config::read(Path::new("/a"), &bytes, &Places::own()).unwrap();
    let defaults = Config::read(Path::new("/a"), b"", &Places::system()).unwrap();
    assert_eq!(written, defaults);
}

#[test]
fn every_sample_is_read_without_a_word() {
    let config = Config::load(Some(&samples().join("dev.yaml"))).unwrap();
    assert!(config.warnings.is_empty());
    let mut tasks = Vec::new();
    for entry in std::fs::read_dir(&config.spec_dir).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let file =
            crate::access::spec_yaml::read(&path.to_string_lossy(), &bytes, &config.spec_context());
        assert!(file.errors.is_empty() && file.warnings.is_empty(), "{file:?}");
        tasks.extend(file.specs.iter().map(|s| s.task_id.to_string()));
    }
    tasks.sort();
    assert_eq!(
        tasks,
        [
            "chain.clean.v1",
            "chain.fetch.v1",
            "chain.report.v1",
            "clock.tick.v1",
            "flaky.third.v1",
            "inbox.count.v1",
            "inbox.prepare.v1",
            "order.extract.v2",
            "order.settle.v2",
            "pulse.beat.v1",
            "user.profile.v2",
        ]
    );
}
