//! Kill -9 again and again at moments that nobody chose: what was acknowledged runs exactly once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::harness::{Dice, Sched, TaskSpec, exchange, json, pause};

/// Submissions that must be acknowledged, at least.
const SUBMISSIONS: usize = 100;
/// Kills that must fall among them, at least.
const KILLS: usize = 6;

/// Acknowledged submissions of a task that is not idempotent, under kills.
fn every_acknowledged_one_runs_once(seed: u64) {
    let (mut dice, mut steps) = (Dice::new(seed), Dice::new(seed + 1000));
    let mut sched = Sched::new();
    let script = format!("echo $SCHED_PARAM_n >> '{}'", sched.path("ran").display());
    sched.put(&TaskSpec::shell("n.t.v1", &script).with(&json!({
        "runtimeParams": {"n": "int"}, "idempotent": false, "maxConcurrent": 8,
    })));
    let (enough, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let socket = sched.socket();
    let (acknowledged, kills) = std::thread::scope(|scope| {
        // A number that was not acknowledged is never used again: it may have run or not.
        let submitting = scope.spawn(|| {
            let mut acknowledged = Vec::new();
            for n in 0_u32..5_000 {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                let body = json!({"params": {"n": n}}).to_string();
                match exchange(&socket, "POST", "/tasks/n.t.v1/instances", &[], &body) {
                    Ok(answer) if answer.status == 201 => acknowledged.push(n),
                    _ => {}
                }
                enough.store(acknowledged.len() >= SUBMISSIONS, Ordering::Release);
                pause(Duration::from_millis(steps.below(6)));
            }
            acknowledged
        });
        let mut kills = 0;
        while kills < KILLS || !enough.load(Ordering::Acquire) {
            pause(Duration::from_millis(dice.below(120)));
            sched.kill_9();
            sched.start();
            kills += 1;
        }
        stop.store(true, Ordering::Release);
        (submitting.join().unwrap(), kills)
    });
    sched.until_idle();
    let mut ran: Vec<u32> = sched.lines("ran").iter().map(|n| n.parse().unwrap()).collect();
    ran.sort_unstable();
    let all = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), all, "seed {seed}, {kills} kills: one ran twice");
    let lost: Vec<&u32> = acknowledged.iter().filter(|n| ran.binary_search(n).is_err()).collect();
    assert!(lost.is_empty(), "seed {seed}, {kills} kills: acknowledged and lost: {lost:?}");
}

#[test]
fn acknowledged_submissions_run_exactly_once_under_kills_seed_1() {
    every_acknowledged_one_runs_once(1);
}

#[test]
fn acknowledged_submissions_run_exactly_once_under_kills_seed_2() {
    every_acknowledged_one_runs_once(2);
}

#[test]
fn a_chain_under_kills_ends_and_runs_each_link_once() {
    let mut dice = Dice::new(3);
    let mut sched = Sched::new();
    let link = |n: u32| {
        let say = format!("echo {n} >> '{}'", sched.path("ran").display());
        let spec = TaskSpec::shell(&format!("c.l{n}.v1"), &say);
        let spec = spec.with(&json!({"idempotent": false}));
        if n == 0 { spec } else { spec.with(&json!({"dependsOn": [format!("c.l{}.v1", n - 1)]})) }
    };
    let links: Vec<TaskSpec> = (0..30).map(link).collect();
    sched.put_all(&links);
    sched.run("c.l0.v1", &[]);
    for _ in 0..5 {
        pause(Duration::from_millis(dice.below(40)));
        sched.kill_9();
        sched.start();
    }
    sched.until_idle();
    let want: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    assert_eq!(sched.lines("ran"), want, "seed 3: each once, in order");
}

#[test]
fn starts_that_are_killed_half_way_do_no_harm() {
    let mut dice = Dice::new(4);
    let mut sched = Sched::new();
    let script = format!("echo x >> '{}'", sched.path("ran").display());
    sched.put(&TaskSpec::shell("n.t.v1", &script).with(&json!({"maxConcurrent": 8})));
    for _ in 0..20 {
        sched.run("n.t.v1", &[]);
    }
    sched.until_idle();
    let before = sched.instances("n.t.v1");
    sched.kill_9();
    for _ in 0..10 {
        let out = std::fs::File::create(sched.path("half.out")).unwrap();
        let mut daemon =
            sched.command().stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        pause(Duration::from_millis(dice.below(60)));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }
    sched.start();
    assert_eq!(sched.instances("n.t.v1"), before, "seed 4");
    assert_eq!(sched.lines("ran").len(), 20);
}
