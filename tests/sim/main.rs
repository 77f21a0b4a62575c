//! The core under a simulated world: seeds, virtual time, crashes, faults (requirements B, C, D, F).
//!
//! `SIM_SEED=n cargo test --test sim` runs one seed alone; every failure names its seed.
//! `SIM_SEEDS=n` runs more of them; `cargo run --release --example soak -- --seeds n` many.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it finds a fault, and says by which seed"
)]
#![expect(clippy::wildcard_enum_match_arm, reason = "a check names what it checks, not the rest")]

use sched::{model, scheduling};

#[path = "../../src/scheduling/tests/bench.rs"]
#[expect(dead_code, reason = "shared with the tests beside the code")]
mod bench;
#[path = "../../src/scheduling/tests/build.rs"]
#[expect(dead_code, reason = "shared with the tests beside the code")]
mod build;
#[path = "../../src/model/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests beside the code")]
mod fixture;
mod oracle;
mod rng;
mod seeds;
mod simulation;
mod waves;
mod year;
