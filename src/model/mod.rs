//! The nouns: definitions, instances, states, events, records, commands, requests.
//!
//! Pure data and its arithmetic. Nothing here reads a clock, a file or the environment, starts a
//! process or knows another room of the house; every other room speaks in these types.

pub mod backfill;
pub mod command;
pub mod condition;
pub mod cron;
pub mod cycle;
pub mod deps;
pub mod distance;
pub mod empty_cycle;
pub mod engines;
pub mod event;
pub mod every;
pub mod explain;
#[cfg(test)]
pub(crate) mod fixture;
pub mod graph;
pub mod history;
pub mod id;
pub mod instance;
pub mod json;
pub mod jump;
pub mod output;
pub mod params;
pub mod placeholders;
pub mod plan;
pub mod priority;
pub mod record;
pub mod request;
pub mod schema;
pub mod settings;
pub mod simulation;
pub mod spec;
pub mod spec_error;
pub mod suggest;
pub mod template;
pub mod time;
pub mod trigger;
pub mod view;
