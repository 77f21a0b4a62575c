//! The door: HTTP/JSON over the Unix socket, and the client of it.

pub mod client;
