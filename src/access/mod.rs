//! The door: what comes from outside is read, checked and turned into the model's nouns here.

pub mod client;
pub mod spec_dir;
pub mod spec_yaml;
pub mod yaml;
