//! The production core in a simulated world: seeds, virtual time, crashes, faults, and a checker
//! that recomputes from the log what must hold (requirements B, C, D, F).
//!
//! `tests/sim` runs it for some hundred seeds, `examples/soak.rs` for as many as one likes.
//!
//! - `workload` writes random specs and changes them; `world` drives the engine, one clock, one
//!   store, executors, people and faults; `checker` judges every turn; `plant` builds faults in, to
//!   prove that the checker sees them; `marks` counts what happened, so that nothing is left out
//!   unnoticed.
//! - To add something that people do: one function and one line in `world/people.rs`. Something
//!   that goes wrong: the same in `world/faults.rs`. Something that must hold: one function in
//!   `checker/`, called in `Checker::turn`. A fault of the core to be caught: one line in `plant`.

mod checker;
mod executor;
pub(crate) mod marks;
pub(crate) mod plant;
mod workload;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use marks::Marks;
use plant::Plant;
pub(crate) use world::CrashAt;
use world::World;

/// Virtual time of the safety phase.
const SAFETY_MS: i64 = 75_000;

/// What a run was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Over the whole log.
    pub(crate) hash: u64,
    pub(crate) marks: Marks,
    /// Places at which the daemon could have been killed: before and after each commit, and after
    /// each command.
    pub(crate) crash_points: u64,
}

/// One run; a panic of the engine is a violation like any other.
pub(crate) fn run(seed: u64, plant: Plant) -> Result<Summary, String> {
    bounded(|| World::new(seed, plant, CrashAt::Random).run(SAFETY_MS))
}

/// A short run that is killed at one place and nowhere else.
pub(crate) fn run_killed_at(seed: u64, point: u64) -> Result<Summary, String> {
    bounded(|| World::new(seed, Plant::None, CrashAt::Point(point)).run(SAFETY_MS / 4))
}

fn bounded(run: impl FnOnce() -> Result<Summary, String>) -> Result<Summary, String> {
    let told = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(told)
}
