//! What a task finds when it runs, and what is made of its end (contract §3).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::harness::{Gate, Sched, TaskSpec, is_alive, json};

#[test]
fn starts_that_fail_are_told_apart_and_hold_no_slot() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let dir = sched.dir().display();
    fs::write(sched.path("crlf"), "#!/bin/sh\r\ntrue\r\n").unwrap();
    fs::write(sched.path("interp"), "#!/no/interp\n").unwrap();
    fs::write(sched.path("plain"), "not to be executed\n").unwrap();
    for name in ["crlf", "interp"] {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(sched.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let exec = |task: &str, program: &str| {
        TaskSpec::shell(task, program).with(&json!({"taskType": "EXEC"}))
    };
    let cases = [
        (exec("s.prog.v1", "/no/such"), "/no/such"),
        (exec("s.interp.v1", &format!("{dir}/interp")), "/no/interp"),
        (exec("s.crlf.v1", &format!("{dir}/crlf")), "crlf"),
        (exec("s.perm.v1", &format!("{dir}/plain")), "plain"),
        (TaskSpec::shell("s.cwd.v1", "true").with(&json!({"workingDir": "/no/dir"})), "/no/dir"),
        (TaskSpec::shell("s.user.v1", "true").with(&json!({"user": "no-such"})), "no-such"),
    ];
    sched.put_all(&cases.iter().map(|(spec, _)| spec.clone()).collect::<Vec<_>>());
    let mut messages = Vec::new();
    for (spec, object) in &cases {
        let id = sched.run(spec.id(), &[]);
        let over = sched.until_over(&id, "FAILED");
        assert_eq!((&over["errorCode"], &over["exitCode"]), (&json!("SPAWN_FAILED"), &json!(null)));
        let message = over["message"].as_str().unwrap().to_owned();
        assert!(message.contains(object), "{object} is not named: {message}");
        messages.push(message);
    }
    messages.sort_unstable();
    messages.dedup();
    assert_eq!(messages.len(), cases.len(), "{messages:#?}");
}

#[test]
fn exits_and_signals_are_named() {
    let sched = Sched::new();
    let named = json!({"exitCodes": {"75": "CONN_RESET"}});
    sched.put(&TaskSpec::shell("e.t.v1", "eval \"$SCHED_PARAM_end\"").with(&named).with(&json!({
        "runtimeParams": {"end": "string"}, "maxConcurrent": 8,
    })));
    let end = |how: &str| {
        let id = sched.run("e.t.v1", &["-p", &format!("end={how}")]);
        let over = sched.until_over(&id, if how == "exit 0" { "SUCCEEDED" } else { "FAILED" });
        (over["errorCode"].clone(), over["exitCode"].clone(), over["signal"].clone())
    };
    let none = json!(null);
    assert_eq!(end("exit 0"), (none.clone(), json!(0), none.clone()));
    assert_eq!(end("exit 4"), (json!("EXIT_4"), json!(4), none.clone()));
    assert_eq!(end("exit 75"), (json!("CONN_RESET"), json!(75), none.clone()));
    assert_eq!(end("kill -SEGV $$"), (json!("SIGNAL_SEGV"), none.clone(), json!(11)));
    assert_eq!(end("kill -KILL $$"), (json!("SIGNAL_KILL"), none, json!(9)));
}

#[test]
fn the_result_file_brings_output_and_a_code_of_the_tasks_own() {
    let sched = Sched::new();
    let result = |task: &str, text: &str, exit: u8| {
        TaskSpec::shell(task, &format!("printf '%s' '{text}' > \"$SCHED_RESULT\"; exit {exit}"))
    };
    sched.put_all(&[
        result("r.good.v1", r#"{"output": {"n": 1.50, "list": [1, null]}, "message": "done"}"#, 0),
        result("r.bad.v1", r#"{"errorCode": "CONN_RESET", "message": "line is down"}"#, 1),
        result("r.wrong.v1", "{", 0),
    ]);
    let good = sched.run("r.good.v1", &[]);
    let over = sched.until_over(&good, "SUCCEEDED");
    assert_eq!(over["output"], json!({"n": 1.5, "list": [1, null]}));
    let bad = sched.run("r.bad.v1", &[]);
    let over = sched.until_over(&bad, "FAILED");
    assert_eq!(
        (&over["errorCode"], &over["message"]),
        (&json!("CONN_RESET"), &json!("line is down"))
    );
    assert_eq!(over["exitCode"], 1);
    let wrong = sched.run("r.wrong.v1", &[]);
    let over = sched.until_over(&wrong, "FAILED");
    assert_eq!(over["errorCode"], "RESULT_INVALID");
}

/// The environment that a task has, printed by the first program it is.
fn environment(sched: &Sched, id: &str) -> BTreeMap<String, String> {
    let log = sched.good(&["logs", id]);
    let pairs = log.lines().map(|line| line.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_environment_is_exactly_what_the_contract_lists() {
    let mut sched = Sched::prepared(&json!({"timezone": "Asia/Shanghai"}));
    for (name, value) in [
        ("NOTIFY_SOCKET", "/nonexistent/notify"),
        ("WATCHDOG_USEC", "60000000"),
        ("LISTEN_FDNAMES", "x"),
        ("INVOCATION_ID", "0123"),
        ("SCHEDD_IT_SECRET", "leaks"),
    ] {
        sched.variable(name, value);
    }
    sched.start();
    sched.put(&TaskSpec::shell("e.t.v1", "/usr/bin/env").with(&json!({
        "taskType": "EXEC", "env": {"MINE": "day {params.day}"},
        "staticParams": {"size": 500, "deep": {"a": 1}},
        "runtimeParams": {"day": "date", "size": "int"},
    })));
    let id =
        sched.run("e.t.v1", &["-p", "day=2026-11-30", "-p", "size=7", "--cycle", "2026-11-30"]);
    let over = sched.until_over(&id, "SUCCEEDED");
    let env = environment(&sched, &id);
    let names: Vec<&str> = env.keys().map(String::as_str).collect();
    let want = [
        "HOME",
        "LANG",
        "LOGNAME",
        "MINE",
        "PATH",
        "SCHED_ATTEMPT",
        "SCHED_CYCLE",
        "SCHED_DATE",
        "SCHED_DEDUP_KEY",
        "SCHED_DEGRADED",
        "SCHED_DEPS",
        "SCHED_HANDLER",
        "SCHED_INSTANCE_ID",
        "SCHED_PARAMS",
        "SCHED_PARAM_day",
        "SCHED_PARAM_size",
        "SCHED_RESULT",
        "SCHED_RUNTIME_PARAMS",
        "SCHED_SCHEDULED_TIME",
        "SCHED_STATIC_PARAMS",
        "SCHED_TASK_ID",
        "SCHED_TRIGGER",
        "SCHED_VERSION",
        "SHELL",
        "TZ",
        "USER",
    ];
    assert_eq!(names, want);
    let of = |name: &str| env[name].as_str();
    assert_eq!(of("MINE"), "day 2026-11-30");
    assert_eq!(
        (of("SCHED_PARAM_day"), of("SCHED_PARAM_size")),
        ("2026-11-30", "7"),
        "runtime wins"
    );
    assert_eq!((of("SCHED_INSTANCE_ID"), of("SCHED_ATTEMPT")), (id.as_str(), "1"));
    assert_eq!(
        (of("SCHED_CYCLE"), of("SCHED_DATE"), of("TZ")),
        ("2026-11-30", "2026-11-30", "Asia/Shanghai")
    );
    assert_eq!((of("SCHED_TRIGGER"), of("SCHED_DEGRADED")), ("submit", "0"));
    assert_eq!(json!(of("SCHED_SCHEDULED_TIME")), over["scheduledTime"]);
    let object = |name: &str| serde_json::from_str::<serde_json::Value>(of(name)).unwrap();
    assert_eq!(object("SCHED_STATIC_PARAMS"), json!({"size": 500, "deep": {"a": 1}}));
    assert_eq!(object("SCHED_RUNTIME_PARAMS"), json!({"day": "2026-11-30", "size": 7}));
    assert_eq!(object("SCHED_PARAMS"), json!({"size": 7, "deep": {"a": 1}, "day": "2026-11-30"}));
}

#[test]
fn a_task_has_nothing_on_its_standard_input_and_three_descriptors() {
    let mut sched = Sched::prepared(&json!({}));
    // Whoever started the daemon was careless.
    sched.prelude("exec 7</dev/zero 9</dev/null");
    sched.start();
    let held = fs::read_dir(format!("/proc/{}/fd", sched.executor_pid())).unwrap();
    let held: Vec<_> = held.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok()).collect();
    assert!(!held.contains(&"/dev/zero".into()), "the executor has none of it: {held:?}");
    // The fourth that ls itself opens is the directory it reads.
    sched.task("d.t.v1", "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; cat; echo end >&2");
    let id = sched.run("d.t.v1", &[]);
    sched.until_over(&id, "SUCCEEDED");
    let log = sched.good(&["logs", &id]);
    let words: Vec<&str> = log.split_whitespace().collect();
    assert_eq!(words, ["/dev/null", "4", "end"], "both streams in the log");
}

#[test]
fn a_grandchild_in_the_background_does_not_hold_the_end_and_is_ended() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let pid = sched.path("pid");
    let script = format!("(echo $$; {}) & echo $! > '{}'; echo hi", gate.stand(), pid.display());
    sched.task("g.t.v1", &script);
    let id = sched.run("g.t.v1", &[]);
    let over = sched.until_over(&id, "SUCCEEDED");
    assert_eq!(over["exitCode"], 0);
    assert!(sched.good(&["logs", &id]).contains("hi"));
    let pid: u32 = sched.until_lines("pid", 1)[0].parse().unwrap();
    sched.until("what it left behind to end", || (!is_alive(pid)).then_some(()));
}

#[test]
fn arguments_are_never_parsed_again() {
    let sched = Sched::new();
    let hostile = "a b; touch pwned; $(touch pwned) 'q\" {x}";
    sched.put(&TaskSpec::shell("a.t.v1", "/usr/bin/printf").with(&json!({
        "taskType": "EXEC", "workingDir": sched.dir(),
        "args": ["<%s>\n", "v={params.text}", "{{braces}}"], "runtimeParams": {"text": "string"},
    })));
    let id = sched.run("a.t.v1", &["-p", &format!("text={hostile}")]);
    sched.until_over(&id, "SUCCEEDED");
    assert_eq!(sched.good(&["logs", &id]), format!("<v={hostile}>\n<{{braces}}>\n"));
    assert!(!sched.path("pwned").exists());
}

#[test]
fn a_flood_of_output_is_bounded_and_keeps_its_head_and_its_tail() {
    let sched = Sched::new();
    let flood = "echo THE-BEGIN; head -c 8000000 /dev/zero | tr '\\0' x; echo; printf THE-END";
    sched.put(&TaskSpec::shell("f.t.v1", flood).with(&json!({"log": {"maxBytes": 100_000}})));
    let id = sched.run("f.t.v1", &[]);
    sched.until_over(&id, "SUCCEEDED");
    let log = sched.good(&["logs", &id]);
    assert!(log.starts_with("THE-BEGIN"), "{}", &log[..100]);
    assert!(log.ends_with("THE-END"));
    assert!(log.len() < 300_000, "{}", log.len());
    assert!(log.contains("cut out"), "says so");
    let file = sched.path("log").join("f.t.v1").join(format!("{id}.1.log"));
    assert!(fs::metadata(file).unwrap().blocks() * 512 < 300_000, "on the disk too");
}

#[test]
fn two_hundred_exits_are_all_told_right() {
    let sched = Sched::new();
    sched.put(&TaskSpec::shell("x.t.v1", "exit $SCHED_PARAM_n").with(&json!({
        "runtimeParams": {"n": "int"}, "maxConcurrent": 100,
    })));
    for n in 0..200 {
        let body = json!({"params": {"n": n % 7}}).to_string();
        assert_eq!(sched.ask("POST", "/tasks/x.t.v1/instances", &body).unwrap().status, 201);
    }
    sched.until_idle();
    let all = sched.instances("x.t.v1");
    assert_eq!(all.len(), 200);
    assert!(all.iter().all(|i| i["exitCode"] == i["runtimeParams"]["n"]), "{all:#?}");
}

#[test]
fn an_unready_head_of_the_queue_holds_up_nobody_and_equals_run_in_order() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 2}]}));
    let gate: Gate = sched.gate("gate");
    let script = format!("echo $SCHED_PARAM_n >> '{}'", sched.path("order").display());
    sched.put_all(&[
        TaskSpec::shell("one.t.v1", &gate.stand()).with(&json!({"priority": 0})),
        TaskSpec::shell("many.t.v1", &script).with(&json!({"runtimeParams": {"n": "int"}})),
    ]);
    // The most urgent task may run once at a time: the rest of its instances wait at the head.
    for _ in 0..20 {
        sched.run("one.t.v1", &[]);
    }
    for n in 0..40 {
        sched.run("many.t.v1", &["-p", &format!("n={n}")]);
    }
    sched.until_count("many.t.v1", "SUCCEEDED", 40);
    let want: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    assert_eq!(sched.lines("order"), want);
    gate.pass(20);
}

#[test]
fn of_what_waits_the_most_urgent_goes_first() {
    let sched = Sched::with(&json!({"executors": [{"id": "local", "slots": 1}]}));
    let gate = sched.gate("gate");
    let script = format!("echo $SCHED_PARAM_n >> '{}'", sched.path("order").display());
    sched.put_all(&[
        TaskSpec::shell("hold.t.v1", &gate.stand()),
        TaskSpec::shell("p.t.v1", &script)
            .with(&json!({"runtimeParams": {"n": "string"}, "maxConcurrent": 8})),
    ]);
    let hold = sched.run("hold.t.v1", &[]);
    sched.until_state(&hold, "RUNNING");
    for level in ["9", "LOW", "4", "4", "HIGH", "0"] {
        sched.run("p.t.v1", &["-p", &format!("n={level}"), "--priority", level]);
    }
    let last = sched.run("p.t.v1", &["-p", "n=raised", "--priority", "BACKGROUND"]);
    sched.good(&["priority", &last, "CRITICAL"]);
    gate.pass(1);
    sched.until_idle();
    assert_eq!(sched.lines("order"), ["0", "raised", "HIGH", "4", "4", "LOW", "9"]);
}
