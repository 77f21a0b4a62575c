//! The access layer (接入层): who may ask what, and in which words.
//!
//! Spec files and requests come from outside; here they are read, checked and turned into the
//! model's nouns, or refused with a word. What the core makes of them is not known here.

pub mod client;
pub mod spec_dir;
pub mod spec_yaml;
pub mod yaml;
