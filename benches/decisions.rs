//! What the core's decisions cost, without disk and processes. `cargo bench --bench decisions [WORD…]`.
//!
//! Events per second with ten thousand open instances; graphs of a hundred thousand instances in
//! one cycle from the first start to the last end; one decision with as many READY and nothing free.
//! With words, only the parts so named: `events`, `fan`, `layers`, `assign`.
#![expect(clippy::print_stdout, reason = "figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on may end")]

#[path = "decisions/core.rs"]
mod core;
#[path = "decisions/timing.rs"]
mod timing;

use core::{Core, depends, task};
use sched::model::settings::Settings;
use sched::model::spec::TaskSpec;
use timing::{median, timed};

/// Instances that are open all the while.
const OPEN: usize = 10_000;
/// Instances of the large graphs.
const LARGE: usize = 100_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|w| !w.starts_with('-')).collect();
    let wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    if wanted("events") {
        events();
    }
    if wanted("fan") {
        graph("fan 1→n→1 of", fan);
    }
    if wanted("layers") {
        graph("layers of 100, 3 edges each, of", layers);
    }
    if wanted("assign") {
        assign();
    }
}

/// Pairs of tasks, the second after the first: each pair's run is two of each kind of event: made,
/// started, finished, and woken or due.
fn events() {
    let pairs = OPEN / 2;
    let mut specs = Vec::new();
    for n in 0..pairs {
        specs.push(task(&format!("up{n}")));
        specs.push(depends(&format!("down{n}"), [format!("up{n}")]));
    }
    let mut core = Core::new(specs, OPEN, |_| {});
    for n in 0..pairs {
        core.submit(&format!("up{n}"));
    }
    let mut rounds = Vec::new();
    for _ in 0..7 {
        let (handled, time) = timed(|| {
            let before = core.handled;
            for n in 0..pairs {
                let up = core.next_started();
                core.finish(&up);
                let down = core.next_started();
                core.finish(&down);
                core.submit(&format!("up{n}"));
            }
            core.handled - before
        });
        // The upstream's end also wakes the dependent, and both were made by the submission.
        let happened = (pairs * 8) as f64;
        rounds.push((happened / time.as_secs_f64(), handled as f64 / time.as_secs_f64()));
    }
    let of = |pick: fn(&(f64, f64)) -> f64| median(rounds.iter().map(pick).collect());
    println!(
        "events     {:.0} a second with {OPEN} open, made, started, finished, woken alike (wanted: 300000); \
         {:.0} calls of the engine",
        of(|r| r.0),
        of(|r| r.1)
    );
}

/// One, as many beside each other that wait for it, and one that waits for all of them.
fn fan(n: usize) -> Vec<TaskSpec> {
    let middle = n - 2;
    let mut specs = vec![task("first")];
    specs.extend((0..middle).map(|m| depends(&format!("m{m}"), ["first".to_owned()])));
    specs.push(depends("last", (0..middle).map(|m| format!("m{m}"))));
    specs
}

/// Layers of a hundred; each task waits for three of the layer before.
fn layers(n: usize) -> Vec<TaskSpec> {
    let name = |layer: usize, at: usize| format!("l{layer}x{}", at % 100);
    let mut specs = vec![task("first")];
    specs.extend((1..n).map(|m| {
        let (layer, at) = (m / 100, m % 100);
        let upstreams: Vec<String> = match layer {
            0 => vec!["first".to_owned()],
            _ => [at, at + 1, at + 37].map(|at| name(layer - 1, at)).to_vec(),
        };
        let upstreams =
            upstreams.into_iter().map(|up| if up == name(0, 0) { "first".to_owned() } else { up });
        depends(&name(layer, at), upstreams)
    }));
    specs
}

/// A whole graph runs in one cycle; twice as many instances must not cost much more than twice.
fn graph(what: &str, specs: fn(usize) -> Vec<TaskSpec>) {
    let mut took = Vec::new();
    for n in [LARGE / 4, LARGE] {
        let mut core = Core::new(specs(n), 1000, |_| {});
        let (made, time) = timed(|| {
            core.submit("first");
            let mut ended = 0;
            while core.has_started() {
                let of = core.next_started();
                core.finish(&of);
                ended += 1;
            }
            ended
        });
        assert_eq!(made, n, "{what}");
        took.push(time.as_secs_f64());
    }
    println!(
        "graph      {what} {LARGE} in {:.2} s (wanted: 3); {:.1} times as long as a quarter of it",
        took[1],
        took[1] / took[0]
    );
}

/// What is full, the tasks that wait, and how it comes to be full.
type Case = (&'static str, fn(usize) -> TaskSpec, fn(&mut Settings));

/// As many READY as the large graphs have, and nothing free: what does looking for one cost?
fn assign() {
    let plain = |n| task(&format!("t{n}"));
    let cases: [Case; 4] = [
        ("no slot is free", plain, |settings| settings.executors[0].slots = 1),
        ("each task at its maxConcurrent", at_its_most, |_| {}),
        ("the queue's quota full", plain, |settings| settings.queues[0].max_running = Some(1)),
        ("the owner's quota full", plain, |settings| {
            settings.owner_quota.insert("bench".to_owned(), 1);
        }),
    ];
    for (what, spec, full) in cases {
        let mut core = Core::new((0..LARGE).map(spec).collect(), 2 * LARGE, full);
        let twice = what.starts_with("each");
        for n in 0..LARGE {
            core.submit(&format!("t{n}"));
            if twice {
                core.submit(&format!("t{n}"));
            }
        }
        let rounds = (0..101).map(|_| timed(|| core.tick()).1.as_secs_f64() * 1e6).collect();
        println!("assign     {:.1} µs with {LARGE} READY, {what} (wanted: 50)", median(rounds));
    }
}

fn at_its_most(n: usize) -> TaskSpec {
    let mut spec = task(&format!("t{n}"));
    spec.max_concurrent = Some(1);
    spec
}
