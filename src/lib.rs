//! schedd: a task scheduler for one machine.

pub mod access;
pub mod config;
pub mod daemon;
pub mod execution;
pub mod limits;
pub mod model;
pub mod resource;
pub mod scheduling;
