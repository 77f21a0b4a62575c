//! The shell: wires the rooms, owns the loop, the clock, the signals and the watchers, and knows
//! no rule.
//!
//! ```text
//!  signals   spec_watch   arrivals   outputs   access (door)   execution (executors)
//!     └───────────┴───────────┴─────────┴────────────┴───────────────┘
//!                     one bounded channel of events
//!                                  │
//!   event_loop:  take a batch → engine.handle → commit → perform
//!                                                 │          │
//!                                             resource   replies, executors, watcher, feed
//! ```

pub mod arrivals;
pub mod clock;
mod desk;
mod event_loop;
mod outputs;
pub mod print;
mod run;
pub mod signals;
pub mod spec_watch;
pub mod systemd;
pub mod tracing;
pub mod watch;

pub use run::{DaemonError, run};
