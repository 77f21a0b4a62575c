//! The access layer (接入层): who may ask what, and in which words.
//!
//! Spec files and requests come from outside; here they are read, checked and turned into the
//! model's nouns, or refused with a word. What the core makes of them is not known here.

mod auth;
pub mod client;
mod events;
mod explain;
mod extract;
#[cfg(test)]
mod fakes;
mod graph;
mod logs;
mod problem;
mod proposal;
mod query;
mod routes;
mod secrets;
pub mod server;
mod since;
mod socket;
pub mod spec_dir;
pub mod spec_schema;
pub mod spec_yaml;
mod state;
pub mod yaml;
