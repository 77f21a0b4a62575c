//! Layer 3: faithful hands. It runs what it is told, watches, reports, and decides nothing.
//!
//! Two sides, joined by [`wire`]: in the daemon [`ExecutorPool`] keeps one process per configured
//! executor and speaks to it; that process, `schedd executor`, is [`executor::run`]. It outlives
//! the daemon, so that a restart of schedd interrupts no task.
//!
//! Imports `model` and `limits` only. It knows no rule of scheduling: whether an end is a success,
//! whether it is tried again and what waits for it are the core's business.

mod account;
mod clock;
pub mod environment;
pub mod executor;
mod freeze;
mod hands;
mod journal;
mod keeper;
mod kin;
mod link;
mod output;
mod pool;
mod process;
mod result_file;
mod runner;
mod session;
mod signals;
mod start;
mod takeover;
#[cfg(test)]
mod testing;
pub mod wire;

pub use executor::{ExecutorArgs, ExecutorError};
pub use pool::{ExecutionError, ExecutorPool, PoolArgs};
