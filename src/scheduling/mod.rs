//! The scheduling layer (调度层): every rule, and nothing but rules.
//!
//! [`Engine::handle`] takes an event and the time and returns what must be remembered and then
//! done. The layer is pure: no input or output, no clock, no thread, no async, no hash order. So
//! the same code runs in the daemon, in the simulation that tests it, and over any log.
//!
//! Inside: `registry` and `graph` (which definitions are in force), `instances` (what runs and
//! waits), `queue`, `roster` and `scheduler` (what starts next, where), `agenda` (what is due
//! when), `state` (all of it), `turn` (the only road to change it), `lifecycle` (one file per
//! verb), `answers` (what can be asked).

mod agenda;
mod answers;
mod ended;
mod engine;
mod fill;
mod graph;
mod instances;
mod lifecycle;
mod queue;
mod registry;
mod retry;
mod roster;
mod scheduler;
mod set_check;
mod state;
#[cfg(test)]
mod tests;
mod turn;

pub use engine::Engine;
pub use set_check::{SetFindings, check_set};
pub use state::Process;
