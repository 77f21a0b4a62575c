//! The rules of time zones come from the system and may change while the daemon runs.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::harness::{Sched, TaskSpec, json};

/// A zone file (RFC 9636, version 2) of one offset for ever.
fn write_zone(file: &Path, name: &str, offset_hours: i32) {
    let offset = (offset_hours * 3600).to_be_bytes();
    let mut block = Vec::from(*b"TZif2");
    block.extend([0; 15]);
    // Counts of UT, standard and leap indicators, transitions, types and bytes of names.
    for count in [0_u32, 0, 0, 0, 1, u32::try_from(name.len()).unwrap() + 1] {
        block.extend(count.to_be_bytes());
    }
    block.extend(offset);
    block.extend([0, 0]);
    block.extend(name.as_bytes());
    block.push(0);
    let mut bytes = block.repeat(2);
    bytes.extend(format!("\n<{name}>{}\n", -offset_hours).as_bytes());
    let staged = file.with_extension("new");
    fs::write(&staged, bytes).unwrap();
    fs::rename(staged, file).unwrap();
}

#[test]
fn hup_reads_the_rules_of_zones_again_and_coming_fires_follow() {
    let mut sched = Sched::prepared(&json!({}));
    let zones = sched.path("zoneinfo");
    fs::create_dir_all(zones.join("Test")).unwrap();
    write_zone(&zones.join("Test/Moving"), "+02", 2);
    sched.variable("TZDIR", zones.to_str().unwrap());
    sched.start();
    let spec = TaskSpec::shell("daily.t.v1", "true");
    let triggers = json!([{"cron": "30 7 * * *"}]);
    sched.put(&spec.with(&json!({"timezone": "Test/Moving", "triggers": triggers})));
    let next = |sched: &Sched| {
        let task = sched.get("/tasks/daily.t.v1");
        task["nextFireTime"].as_str().unwrap().split_once('T').unwrap().1.to_owned()
    };
    assert_eq!(next(&sched), "05:30:00.000Z");
    write_zone(&zones.join("Test/Moving"), "+09", 9);
    sched.signal(Signal::SIGHUP);
    sched.soon("the new rules", || (next(&sched) == "22:30:00.000Z").then_some(()));
    assert_eq!(sched.fires("daily.t.v1"), Vec::<serde_json::Value>::new(), "nothing fired");
}
