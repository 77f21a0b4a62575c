//! Real processes: each test has a directory, a configuration, a socket and a daemon of its own,
//! and looks at what a user would see (contract). They run in parallel.
//!
//! A test waits for what it can observe, with a bound, and never for time to pass; tasks under test
//! stand at a [`harness::Gate`] until they are let through.

#[cfg(test)]
mod harness;

#[cfg(test)]
mod attempts;
#[cfg(test)]
mod backfill;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod client;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod crash_storm;
#[cfg(test)]
mod data_ready;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod door;
#[cfg(test)]
mod execution;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod files;
#[cfg(test)]
mod http;
#[cfg(test)]
mod order;
#[cfg(test)]
mod pause;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod seed;
#[cfg(test)]
mod simulate;
#[cfg(test)]
mod steer;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod triggers;
#[cfg(test)]
mod zones;
