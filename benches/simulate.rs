//! The forecast of a day of ten thousand instances: how long it takes. `cargo bench --bench simulate
//! [INSTANCES]`.
//!
//! Three shapes of a day: tasks that fire by themselves, chains of five, and a night in which
//! everything is due at once and waits for few slots.
#![expect(clippy::print_stdout, reason = "figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on may end")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use sched::access::spec_yaml::{self, SpecContext};
use sched::config::{Config, Places};
use sched::model::event::SpecFile;
use sched::model::settings::Settings;
use sched::model::simulation::{Basis, Deadlines};
use sched::model::time::Timestamp;
use sched::scheduling::{Scenario, simulate};

/// What is asked for: a day of 10 000 instances in less than this.
const WITHIN: Duration = Duration::from_secs(2);

fn main() {
    // Cargo adds `--bench`.
    let instances = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(10_000);
    println!("a day of {instances} instances; within {WITHIN:?} is asked for 10000");
    let hourly = |n: usize| format!("triggers: [{{cron: '{} * * * *'}}]\n", n % 60);
    measure("hourly tasks, 64 slots", 64, instances / 24, &hourly);
    let chain = |n: usize| {
        if n.is_multiple_of(5) {
            format!("triggers: [{{cron: '{} * * * *'}}]\ncycle: {{unit: HOUR}}\n", n % 60)
        } else {
            format!("dependsOn: [bench.t{}.v1]\n", n - 1)
        }
    };
    measure("hourly chains of five, 64 slots", 64, instances / 24, &chain);
    let at_once = |_: usize| "triggers: [{cron: '0 2 * * *'}]\n".to_owned();
    measure("all at 02:00, 64 slots", 64, instances, &at_once);
}

fn measure(shape: &str, slots: u32, tasks: usize, more: &dyn Fn(usize) -> String) {
    let from = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
    let scenario = Scenario {
        basis: Basis::bare(from, settings(slots)),
        specs: Some(files(tasks, more)),
        from,
        to: from.plus(Duration::from_secs(86_400)),
        percentile: 50,
        assume: Duration::from_secs(60),
        assume_of: BTreeMap::new(),
        deadlines: Deadlines::none(),
        events: Vec::new(),
        instances_max: usize::MAX,
    };
    let began = Instant::now();
    let view = simulate(scenario).unwrap();
    let took = began.elapsed();
    println!(
        "{shape:34} {:6} instances of {tasks:5} tasks {:7.0} ms",
        view.summary.instances,
        took.as_secs_f64() * 1000.0
    );
}

fn settings(slots: u32) -> Settings {
    let text =
        format!("executors: [{{id: local, taskTypes: ['*'], slots: {slots}}}]\ntimezone: UTC\n");
    let config = Config::read(Path::new("bench.yaml"), text.as_bytes(), &Places::system()).unwrap();
    Settings::clone(&config.settings)
}

/// Twenty tasks a file.
fn files(tasks: usize, more: &dyn Fn(usize) -> String) -> Vec<SpecFile> {
    let numbers: Vec<usize> = (0..tasks).collect();
    let file = |part: &[usize]| {
        let mut text = String::new();
        for n in part {
            // Writing to a String cannot fail.
            let _infallible = write!(
                text,
                "---\ntaskId: bench.t{n}.v1\nversion: 1\nowner: bench\ntaskType: SHELL\n\
                 handler: 'true'\n{}",
                more(*n)
            );
        }
        let path = format!("t{}.yaml", part[0]);
        let read = spec_yaml::read(&path, text.as_bytes(), &SpecContext::default());
        assert!(read.errors.is_empty(), "{:?}", read.errors);
        read
    };
    numbers.chunks(20).map(file).collect()
}
