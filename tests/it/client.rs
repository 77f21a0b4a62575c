//! `schedctl` as people and scripts use it: exit statuses, JSON, waiting, following (contract §5).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::harness::{Follower, Ran, Sched, TaskSpec, Value, json, now_ms};

/// Asserts that an object has all of these keys, null or not.
fn has(object: &Value, keys: &str) {
    let map = object.as_object().unwrap_or_else(|| panic!("no object: {object}"));
    let missing: Vec<&str> = keys.split(' ').filter(|key| !map.contains_key(*key)).collect();
    assert!(missing.is_empty(), "{missing:?} not in {object:#}");
}

const INSTANCE: &str = "instanceId taskId version revision state reason attempt maxAttempts cycle \
    scheduledTime trigger priority effectivePriority queue executorId createdAt readyAt startedAt \
    finishedAt nextRetryAt durationMs exitCode signal errorCode message staticParams runtimeParams \
    output dependencies degraded paused attempts date";
const ATTEMPT: &str = "attempt startedAt finishedAt exitCode signal errorCode executorId userMs \
    systemMs maxRssBytes outputBytes";
const TASK: &str = "taskId version revision createdAt file status owner taskType priority queue \
    nextFireTime lastInstance labels";
const STATUS: &str = "version pid startedAt timezone instances tasks queues executors specErrors \
    degraded";
const FIRE: &str = "taskId trigger from to count outcome reason instanceId";

#[test]
fn json_has_every_field_of_the_contract() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let trigger = json!({"triggers": [{"event": "ev"}], "labels": {"line": "retail"}});
    sched.put_all(&[
        TaskSpec::shell("a.t.v1", &gate.stand()).with(&trigger),
        TaskSpec::shell("b.t.v1", "true").with(&json!({"dependsOn": ["a.t.v1"]})),
    ]);
    sched.write_spec("bad.yaml", "taskId: x.v1\n");
    assert_eq!(sched.ctl(&["reload"]).status, 6);
    sched.good(&["emit", "ev"]);
    let squeezed = |keys: &str| keys.split_whitespace().collect::<Vec<_>>().join(" ");
    // While it runs most values are absent, and null.
    for task in ["a.t.v1@latest", "b.t.v1@latest"] {
        has(&sched.json(&["show", task]), &squeezed(INSTANCE));
    }
    let below = sched.json(&["show", "b.t.v1@latest"]);
    has(&below["dependencies"][0], "taskId depType strength instanceId state satisfied");
    assert_eq!((&below["startedAt"], &below["exitCode"]), (&json!(null), &json!(null)));
    gate.pass(1);
    sched.until_idle();
    let over = sched.json(&["show", "a.t.v1@latest"]);
    has(&over["attempts"][0], &squeezed(ATTEMPT));
    assert_eq!(over["trigger"]["kind"], "event");
    let task = sched.json(&["show", "a.t.v1"]);
    has(&task, &squeezed(&format!("{TASK} spec")));
    assert_eq!(task["labels"], json!({"line": "retail"}));
    assert_eq!(task["lastInstance"]["state"], "SUCCEEDED");
    assert_eq!(task["spec"]["handler"], gate.stand());
    let status = sched.json(&["status"]);
    has(&status, &squeezed(STATUS));
    has(&status["instances"], "open pending blocked ready running");
    has(&status["specErrors"][0], "file line column message");
    for (verb, keys) in [
        (&["ps"] as &[&str], INSTANCE),
        (&["list"], TASK),
        (&["fires", "a.t.v1"], FIRE),
        (&["events"], "seq at kind"),
        (&["executors"], "executorId slots running"),
        (&["queues"], "name weight ready running"),
    ] {
        let list = sched.json(verb);
        let rows = list.as_array().unwrap_or_else(|| panic!("{verb:?} is no array: {list}"));
        assert!(!rows.is_empty(), "{verb:?}");
        rows.iter().for_each(|row| has(row, &squeezed(keys)));
        let lines = sched.good(&[verb, &["-o", "jsonl"]].concat());
        assert_eq!(lines.lines().count(), rows.len(), "{verb:?}");
        lines.lines().for_each(|line| has(&serde_json::from_str(line).unwrap(), &squeezed(keys)));
    }
}

#[test]
fn exit_statuses_tell_what_became_of_it() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let number = json!({"runtimeParams": {"n": "int"}});
    sched.put_all(&[
        TaskSpec::shell("good.t.v1", "true"),
        TaskSpec::shell("bad.t.v1", "exit 4"),
        TaskSpec::shell("held.t.v1", &gate.stand()),
        TaskSpec::shell("off.t.v1", "true").with(&json!({"enabled": false})),
        TaskSpec::shell("number.t.v1", "true").with(&number),
    ]);
    let status = |args: &[&str]| sched.ctl(args).status;
    assert_eq!(status(&["run", "good.t.v1", "--wait"]), 0);
    assert_eq!(status(&["run", "bad.t.v1", "--wait"]), 1);
    assert_eq!(status(&["wait", "bad.t.v1@latest"]), 1);
    assert_eq!(status(&["wait", "bad.t.v1@latest", "good.t.v1@latest"]), 1);
    assert_eq!(status(&["wait", "good.t.v1@latest"]), 0);
    assert_eq!(status(&["no-such-verb"]), 2);
    assert_eq!(status(&["run"]), 2);
    assert_eq!(status(&["ps", "--state", "SLEEPING"]), 2);
    assert_eq!(status(&["status", "good.t.v1"]), 0);
    sched.good(&["pause", "good.t.v1"]);
    assert_eq!(status(&["status", "good.t.v1"]), 3);
    assert_eq!(status(&["status", "off.t.v1"]), 3);
    for args in [
        &["show", "none.t.v1"] as &[&str],
        &["run", "none.t.v1"],
        &["show", "zzzzz"],
        &["wait", "zzzzz"],
        &["cancel", "zzzzz", "-y"],
        &["logs", "none.t.v1@latest"],
        &["pause", "none.t.v1"],
        &["pause", "--queue", "none"],
        &["fires", "none.t.v1"],
    ] {
        assert_eq!(status(args), 4, "{args:?}");
    }
    assert_eq!(status(&["run", "number.t.v1", "-p", "n=x"]), 6);
    assert_eq!(status(&["run", "number.t.v1", "-p", "m=1"]), 6);
    let held = sched.run("held.t.v1", &[]);
    assert_eq!(status(&["wait", &held, "--timeout", "100ms"]), 124);
    assert_eq!(status(&["run", "held.t.v1", "--wait", "--timeout", "100ms"]), 124);
    // It asks on a terminal only, and this is none.
    assert_eq!(status(&["cancel", &held]), 0);
    sched.until_over(&held, "CANCELLED");
}

#[test]
fn without_a_daemon_it_says_so_at_once_and_prints_nothing() {
    let mut sched = Sched::new();
    let unreachable = |sched: &Sched| {
        let ran = sched.ctl(&["list"]);
        assert_eq!((ran.status, ran.out.as_str()), (5, ""), "{ran:?}");
        assert!(ran.err.contains("s.sock"), "{ran:?}");
        ran.err
    };
    sched.kill_9();
    let dead = unreachable(&sched);
    fs::remove_file(sched.socket()).unwrap();
    assert_ne!(unreachable(&sched), dead, "no socket is another thing than a dead one");
}

#[test]
fn whoever_the_sockets_mode_keeps_out_is_told_so() {
    let sched = Sched::new();
    let folder = |mode| fs::set_permissions(sched.dir(), fs::Permissions::from_mode(mode)).unwrap();
    folder(0o755);
    let ran = if nix::unistd::geteuid().is_root() {
        // The superuser passes every mode: somebody else must try.
        use std::os::unix::process::CommandExt as _;
        let program = sched.path("schedctl");
        // By another process: a child that some other test forks meanwhile would hold the copy open
        // for writing, and nothing executes such a file.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_schedctl")).arg(&program).status();
        assert!(copied.unwrap().success());
        let output = Command::new(program)
            .args(["list", "--socket"])
            .arg(sched.socket())
            .uid(65534)
            .gid(65534)
            .output();
        Ran::of(&output.unwrap())
    } else {
        fs::set_permissions(sched.socket(), fs::Permissions::from_mode(0o000)).unwrap();
        sched.ctl(&["list"])
    };
    if !nix::unistd::geteuid().is_root() {
        fs::set_permissions(sched.socket(), fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!((ran.status, ran.out.as_str()), (7, ""), "{ran:?}");
}

#[test]
fn logs_are_followed_to_the_tasks_end() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let script = format!("echo one; {0}; echo two; {0}; printf three", gate.stand());
    sched.task("l.t.v1", &script);
    let id = sched.run("l.t.v1", &[]);
    let follower = Follower::start(sched.schedctl().args(["logs", "-f", &id]));
    assert_eq!(follower.line(), "one");
    gate.pass(1);
    assert_eq!(follower.line(), "two");
    gate.pass(1);
    let (status, rest) = follower.end();
    assert!(status.success(), "{status}");
    assert_eq!(rest, ["three"], "also the last line without an end");
    assert_eq!(sched.good(&["logs", "l.t.v1", "-n", "1"]), "three");
    assert_eq!(sched.good(&["logs", &id]), "one\ntwo\nthree");
}

#[test]
fn a_followed_log_goes_on_into_the_next_attempt_and_over_the_end_of_it() {
    let sched = Sched::new();
    let gate = sched.gate("gate");
    let retry = json!({"retry": {"maxAttempts": 2, "intervalMs": 10}});
    let script = format!("echo attempt $SCHED_ATTEMPT; {}; exit 3", gate.stand());
    sched.put(&TaskSpec::shell("l.t.v1", &script).with(&retry));
    let follower = Follower::start(sched.schedctl().args(["run", "l.t.v1", "--follow"]));
    assert_eq!(follower.line(), "attempt 1");
    gate.pass(1);
    assert_eq!(follower.line(), "attempt 2");
    gate.pass(1);
    let (status, rest) = follower.end();
    assert_eq!((status.code(), rest.len()), (Some(1), 0), "the status of --wait");
}

#[test]
fn events_are_followed_through_a_run() {
    let sched = Sched::new();
    sched.task("e.t.v1", "true");
    let tip = sched.json(&["events"]).as_array().unwrap().last().unwrap()["seq"].to_string();
    let args = ["events", "-f", "--since", &tip, "-o", "jsonl"];
    let follower = Follower::start(sched.schedctl().args(args));
    let id = sched.run("e.t.v1", &[]);
    let ended = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["instanceId"] == json!(id) && event["to"] == "SUCCEEDED"
    };
    let lines = follower.lines_until(ended);
    let events: Vec<Value> = lines.iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    let moves: Vec<&str> = events.iter().filter_map(|e| e["to"].as_str()).collect();
    assert_eq!(moves, ["READY", "RUNNING", "SUCCEEDED"]);
    let seqs: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "no gap: {seqs:?}");
    // The past tells the same as the stream did.
    let past = sched.json(&["events", "--since", &tip]);
    assert_eq!(past.as_array().unwrap()[..events.len()], events);
}

#[test]
fn instances_go_by_prefix_by_latest_and_by_cycle() {
    let sched = Sched::new();
    sched.task("n.t.v1", "echo $SCHED_CYCLE");
    let old = sched.run("n.t.v1", &["--cycle", "2026-11-29"]);
    sched.until_over(&old, "SUCCEEDED");
    let new = sched.run("n.t.v1", &["--date", "2026-11-30"]);
    sched.until_over(&new, "SUCCEEDED");
    let shown = |name: &str| sched.json(&["show", name])["instanceId"].as_str().unwrap().to_owned();
    let common = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    assert_eq!(shown(&new[..=common]), new);
    assert_eq!(shown(&old[..=common]), old);
    assert_eq!(shown("n.t.v1@latest"), new);
    assert_eq!(shown("n.t.v1@2026-11-29"), old);
    assert_eq!(sched.good(&["logs", "n.t.v1@2026-11-29"]), "2026-11-29\n");
    let ambiguous = sched.ctl(&["show", &new[..common]]);
    assert!([4, 6].contains(&ambiguous.status), "{ambiguous:?}");
    assert_eq!(sched.good(&["ps", "--task", "n.t.v1", "-q"]), format!("{new}\n{old}\n"));
    assert_eq!(sched.good(&["ps", "--cycle", "2026-11-29", "-q"]), format!("{old}\n"));
    assert_eq!(sched.good(&["ps", "--state", "FAILED", "-q"]), "");
    assert_eq!(sched.json(&["ps", "--state", "FAILED"]), json!([]));
    assert_eq!(sched.json(&["ps", "--limit", "1"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_dry_run_makes_nothing_and_a_request_id_makes_one() {
    let mut sched = Sched::new();
    let below = TaskSpec::shell("b.t.v1", "true").with(&json!({"dependsOn": ["d.t.v1"]}));
    sched.put_all(&[TaskSpec::shell("d.t.v1", "true"), below]);
    // After that word of the log none comes by itself.
    sched.executor_pid();
    let before = sched.json(&["events"]);
    sched.good(&["run", "d.t.v1", "--dry-run"]);
    assert_eq!(sched.instances("d.t.v1"), Vec::<Value>::new());
    assert_eq!(sched.json(&["events"]), before, "not even a word in the log");
    let first = sched.run("d.t.v1", &["--request-id", "nightly-1"]);
    let again = sched.run("d.t.v1", &["--request-id", "nightly-1"]);
    assert_eq!(first, again);
    sched.until_over(&first, "SUCCEEDED");
    // Also after a crash, and when the first is over.
    sched.kill_9();
    sched.start();
    assert_eq!(sched.run("d.t.v1", &["--request-id", "nightly-1"]), first);
    assert_ne!(sched.run("d.t.v1", &["--request-id", "nightly-2"]), first);
    sched.until_idle();
    assert_eq!(sched.instances("d.t.v1").len(), 2);
    assert_eq!(sched.instances("b.t.v1").len(), 2);
}

#[test]
fn a_submission_for_later_waits_for_its_time_over_a_crash() {
    let mut sched = Sched::new();
    sched.task("at.t.v1", "true");
    let at = jiff::Timestamp::from_millisecond(now_ms() + 1500).unwrap();
    let id = sched.run("at.t.v1", &["--at", &at.to_string()]);
    let waits = sched.instance(&id);
    assert_eq!((&waits["state"], &waits["reason"]), (&json!("PENDING"), &json!("WAITING_TRIGGER")));
    sched.kill_9();
    sched.start();
    let over = sched.until_over(&id, "SUCCEEDED");
    let started: jiff::Timestamp = over["startedAt"].as_str().unwrap().parse().unwrap();
    assert!(started >= at, "{started} {at}");
}

#[test]
fn sixty_clients_at_once_get_sixty_instances() {
    let sched = Sched::new();
    sched.put(&TaskSpec::shell("m.t.v1", "true").with(&json!({"maxConcurrent": 8})));
    let children: Vec<_> = (0..60)
        .map(|_| {
            let mut command = sched.schedctl();
            command.args(["run", "m.t.v1", "-q"]).stdout(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let mut ids: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 60);
    sched.until_count("m.t.v1", "SUCCEEDED", 60);
}

#[test]
fn what_is_printed_for_programs_is_plain_and_a_closed_pipe_is_nobodys_fault() {
    let sched = Sched::new();
    sched.task("big.t.v1", "seq 1 200000");
    sched.good(&["run", "big.t.v1", "--wait"]);
    for verb in [&["status"] as &[&str], &["list"], &["ps"], &["show", "big.t.v1"], &["events"]] {
        assert!(!sched.good(verb).contains('\u{1b}'), "{verb:?}");
    }
    let mut logs = sched.schedctl();
    logs.args(["logs", "big.t.v1"]).stderr(std::process::Stdio::piped());
    let mut child = logs.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn files_are_validated_and_expressions_answered_without_a_daemon() {
    let sched = Sched::prepared(&json!({}));
    sched.write_spec("good.yaml", &TaskSpec::shell("good.t.v1", "true").text());
    let good = sched.spec_path("good.yaml");
    sched.good(&["validate", good.to_str().unwrap()]);
    sched.write_spec("bad.yaml", "taskId: bad.t.v1\nversion: 2\nowner: o\ntaskType: SHELL\n");
    let bad = sched.ctl(&["validate", sched.path("sched.d").to_str().unwrap()]);
    assert_eq!(bad.status, 6, "{bad:?}");
    let said = format!("{}{}", bad.out, bad.err);
    assert!(said.contains("bad.yaml:") && said.contains("handler"), "{said}");
    let next = sched.json(&[
        "next",
        "--expr",
        "0 2 * * 1",
        "--tz",
        "Europe/Berlin",
        "--from",
        "2026-11-27T12:00:00Z",
        "-n",
        "2",
    ]);
    let times: Vec<jiff::Timestamp> = next
        .as_array()
        .unwrap()
        .iter()
        .map(|fire| fire["at"].as_str().unwrap().parse().unwrap())
        .collect();
    // Mondays at two in the morning of Berlin, which is an hour ahead of UTC in winter.
    let want = ["2026-11-30T01:00:00Z", "2026-12-07T01:00:00Z"].map(|at| at.parse().unwrap());
    assert_eq!(times, want);
    let spring = ["next", "--expr", "*/30 2 * * *", "--tz", "Europe/Berlin"];
    let spring = [&spring[..], &["--from", "2026-03-28T12:00:00Z", "-n", "1"]].concat();
    let fire = json!([{
        "at": "2026-03-30T02:00:00.000+02:00", "utc": "2026-03-30T00:00:00.000Z",
        "note": "02:00, 02:30 do not exist on 2026-03-29: not fired",
    }]);
    assert_eq!(sched.json(&spring), fire);
    let table = sched.good(&spring);
    let words: Vec<&str> = table.split_whitespace().take(7).collect();
    let head = ["AT", "UTC", "LEFT", "NOTE"];
    let row = ["2026-03-30T02:00:00.000+02:00", "2026-03-30", "00:00:00"];
    assert_eq!(words, [&head[..], &row[..]].concat());
    for refused in ["0 2 30 2 *", "-1 * * * *", "--5 * * * *", ""] {
        assert_eq!(sched.ctl(&["next", "--expr", refused]).status, 6, "{refused:?}");
    }
}
