//! The scheduling layer (调度层): every rule, and nothing but rules.
//!
//! [`Engine::handle`] takes an event and the time and returns what must be remembered and then
//! done. The layer is pure: no input or output, no clock, no thread, no async, no hash order. So
//! the same code runs in the daemon, in the simulation that tests it, and over any log.
//!
//! Inside: `registry`, `graph` and `rollout` (which definitions are in force),
//! `instances` (what runs and waits), `edges` (what it waits for), `empty_cycles` (what never comes),
//! `data_waits` (whose outputs are looked for), `queue`, `roster`, `round_robin` and `scheduler` (what
//! starts next, where), `inheritance` (whose priority counts), `preemption` (who gives up its slot),
//! `order` (these kept with the rows), `agenda` (what is due
//! when), `nominal` (a time trigger's times, counted), `zones`, `state` (all of it), `turn` (the only road to change it), `lifecycle` (one file per
//! verb), `answers`, `explain` and `forecast` (what can be asked),
//! `check` (a set of files, without a daemon), `simulate` (the coming night, told by the engine) and
//! `basis` (what it starts from).

mod agenda;
mod answers;
mod basis;
mod check;
mod data_waits;
mod edges;
mod empty_cycles;
mod ended;
mod engine;
mod explain;
mod fill;
mod forecast;
mod graph;
mod inheritance;
mod instances;
mod lifecycle;
mod nominal;
mod order;
mod preemption;
mod queue;
mod registry;
mod retry;
mod rollout;
mod roster;
mod round_robin;
mod scheduler;
mod simulate;
mod state;
#[cfg(test)]
mod tests;
mod turn;
mod zones;

pub use check::{SetFaults, check_set};
pub use engine::Engine;
pub use simulate::{Scenario, SimulationError, simulate};
pub use state::Process;
