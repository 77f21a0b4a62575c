//! daemon

pub mod arrivals;
pub mod clock;
pub mod print;
pub mod signals;
pub mod spec_watch;
pub mod systemd;
pub mod tracing;
pub mod watch;
