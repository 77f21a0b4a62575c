//! The simulation of `tests/sim` at length: `cargo run --release --example soak -- --seeds 100000`.
//!
//! It ends with status 1 at the first seed that does not hold, and says how to repeat it. With
//! `--plant` a fault is built in, and it ends at the first seed that catches it.
#![expect(clippy::unwrap_used, reason = "what a simulated person writes is known to be right")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a check names what it checks, not the rest")]

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use sched::{model, scheduling};

#[path = "../src/scheduling/tests/build.rs"]
#[expect(dead_code, reason = "shared with the tests beside the code")]
mod build;
#[path = "../src/model/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests beside the code")]
mod fixture;
#[path = "../tests/sim/rng.rs"]
mod rng;
#[path = "../tests/sim/simulation/mod.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod simulation;

use simulation::marks::Marks;
use simulation::plant::{ALL, Plant};

/// Runs the simulation for many seeds.
#[derive(Debug, Parser)]
struct Options {
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// A fault to build in; `list` names them.
    #[arg(long, value_name = "NAME")]
    plant: Option<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let plant = match options.plant.as_deref() {
        None => Plant::None,
        Some("list") => {
            ALL.iter().for_each(|(plant, _)| println!("{plant:?}"));
            return ExitCode::SUCCESS;
        }
        Some(name) => match Plant::named(name) {
            Some(plant) => plant,
            None => {
                eprintln!("no fault {name}; --plant list names those there are");
                return ExitCode::from(2);
            }
        },
    };
    soak(&options, plant)
}

fn soak(options: &Options, plant: Plant) -> ExitCode {
    let mut marks = Marks::default();
    for n in 0..options.seeds {
        let seed = options.from.wrapping_add(n);
        // Before the run, so that a seed that never ends is known too.
        print!("\r{n} of {} seeds hold; seed {seed} … ", options.seeds);
        if std::io::stdout().flush().is_err() {
            return ExitCode::from(74);
        }
        match simulation::run(seed, plant) {
            Ok(summary) => marks.add(&summary.marks),
            Err(violation) => return tell(seed, plant, &violation),
        }
    }
    println!("\n{marks}");
    println!("all {} seeds from {} hold", options.seeds, options.from);
    ExitCode::SUCCESS
}

fn tell(seed: u64, plant: Plant, violation: &str) -> ExitCode {
    println!("\nseed {seed} does not hold: {violation}");
    println!("again: SIM_PLANT={plant:?} SIM_SEED={seed} cargo test --test sim seeds_hold");
    ExitCode::FAILURE
}
