//! access
mod auth;
mod events;
mod extract;
mod logs;
mod problem;
mod query;
mod routes;
pub mod server;
mod since;
mod socket;
mod state;
