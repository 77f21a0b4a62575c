//! schedd: a task scheduler for one machine that people can trust their nights to.
//!
//! The library holds everything; the programs `schedd` and `schedctl` are thin.
#![doc = include_str!("../ARCHITECTURE.md")]

pub mod access;
pub mod config;
pub mod daemon;
pub mod execution;
pub mod limits;
pub mod model;
pub mod resource;
pub mod scheduling;
