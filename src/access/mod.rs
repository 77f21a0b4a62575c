//! access
mod auth;
mod events;
mod extract;
#[cfg(test)]
mod fakes;
mod logs;
mod problem;
mod query;
mod routes;
pub mod server;
mod since;
mod socket;
mod state;
