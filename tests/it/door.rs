//! The socket, the lock and the exit statuses of `schedd` (contract §5; known faults B129, B137).

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::process::Stdio;

use crate::harness::{Ran, Sched, TaskSpec, json, merge};

/// Runs a second daemon to its end.
fn second(sched: &Sched, config: &str) -> Ran {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_schedd"))
        .arg("--config")
        .arg(sched.path(config))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran::of(&output)
}

/// Writes a configuration beside the usual one, with these keys in it.
fn configuration(sched: &Sched, name: &str, keys: &serde_json::Value) {
    let text = fs::read_to_string(sched.path("schedd.yaml")).unwrap();
    let mut all = serde_json::from_str(&text).unwrap();
    merge(&mut all, keys);
    fs::write(sched.path(name), all.to_string()).unwrap();
}

#[test]
fn the_socket_has_its_mode_and_a_stale_one_is_replaced() {
    let mut sched = Sched::with(&json!({"socket": {"path": "s.sock", "mode": "0640"}}));
    let mode = |sched: &Sched| fs::metadata(sched.socket()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&sched), 0o640);
    sched.kill_9();
    assert!(fs::metadata(sched.socket()).unwrap().file_type().is_socket(), "it is left");
    assert_eq!(sched.ctl(&["status"]).status, 5);
    sched.start();
    assert_eq!(mode(&sched), 0o640);
}

#[test]
fn a_second_daemon_on_the_same_state_names_the_first() {
    let sched = Sched::new();
    let refused = second(&sched, "schedd.yaml");
    assert_eq!(refused.status, 75, "{refused:?}");
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains(&sched.pid().to_string()), "{said}");
    configuration(&sched, "other.yaml", &json!({"socket": {"path": "other.sock"}}));
    assert_eq!(second(&sched, "other.yaml").status, 75);
    assert_eq!(sched.get("/status")["pid"], sched.pid());
}

#[test]
fn a_live_daemons_socket_is_never_taken() {
    let sched = Sched::new();
    configuration(&sched, "other.yaml", &json!({"stateDir": "other"}));
    let refused = second(&sched, "other.yaml");
    assert_ne!(refused.status, 0);
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("s.sock"), "{said}");
    assert_eq!(sched.get("/status")["pid"], sched.pid());
}

#[test]
fn what_is_no_socket_is_never_deleted() {
    let sched = Sched::prepared(&json!({}));
    fs::write(sched.socket(), "precious").unwrap();
    let refused = second(&sched, "schedd.yaml");
    assert_eq!(refused.status, 78, "{refused:?}");
    assert!(format!("{}{}", refused.out, refused.err).contains("s.sock"), "{refused:?}");
    assert_eq!(fs::read_to_string(sched.socket()).unwrap(), "precious");
}

#[test]
fn a_wrong_configuration_is_refused_with_its_places() {
    let sched = Sched::prepared(&json!({}));
    fs::write(sched.path("bad.yaml"), "specDir: sched.d\nstateDirr: x\nheartbeatMs: soon\n")
        .unwrap();
    let refused = second(&sched, "bad.yaml");
    assert_eq!(refused.status, 78, "{refused:?}");
    let said = format!("{}{}", refused.out, refused.err);
    for place in ["bad.yaml:2:1", "stateDir", "bad.yaml:3:"] {
        assert!(said.contains(place), "{place}: {said}");
    }
    assert_eq!(second(&sched, "none.yaml").status, 78);
    let long = "x".repeat(120);
    configuration(&sched, "long.yaml", &json!({"socket": {"path": long}}));
    let refused = second(&sched, "long.yaml");
    assert_eq!(refused.status, 78);
    assert!(format!("{}{}", refused.out, refused.err).contains("107"), "{refused:?}");
}

#[test]
fn wrong_usage_is_64_and_what_was_asked_for_is_0() {
    let sched = Sched::prepared(&json!({}));
    let of = |args: &[&str]| Ran::of(&sched.command().args(args).output().unwrap());
    assert_eq!(of(&["--no-such-option"]).status, 64);
    assert_eq!(of(&["no-such-command"]).status, 64);
    assert_eq!(of(&["--help"]).status, 0);
    assert_eq!(of(&["--version"]).status, 0);
}

#[test]
fn check_says_what_is_wrong_without_a_daemon() {
    let sched = Sched::prepared(&json!({}));
    sched.write_spec("good.yaml", &TaskSpec::shell("good.t.v1", "true").text());
    let check = || Ran::of(&sched.command().arg("check").output().unwrap());
    assert_eq!(check().status, 0);
    sched.write_spec("bad.yaml", "taskId: x.v1\n");
    let bad = check();
    assert_eq!(bad.status, 78);
    assert!(format!("{}{}", bad.out, bad.err).contains("bad.yaml:1:1"), "{bad:?}");
    assert!(!sched.path("state").exists(), "a check makes nothing");
}

#[test]
fn a_host_whose_zone_has_no_name_is_told_what_to_write() {
    let named = Sched::prepared(&json!({"timezone": "Asia/Shanghai"}));
    let sched = Sched::prepared(&json!({}));
    std::fs::write(sched.path("schedd.yaml"), "specDir: sched.d\n").unwrap();
    for tz in [":/bad", "CST-8"] {
        let check =
            |sched: &Sched| Ran::of(&sched.command().arg("check").env("TZ", tz).output().unwrap());
        let refused = check(&sched);
        assert_eq!(refused.status, 78, "{refused:?}");
        let said = format!("{}{}", refused.out, refused.err);
        for part in
            ["schedd.yaml: timezone: ", &format!("TZ={tz}"), "such as timezone: Asia/Shanghai"]
        {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
        assert_eq!(check(&named).status, 0);
    }
}
