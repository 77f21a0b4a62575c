//! Reads arbitrary bytes as a spec file: `cargo +nightly fuzz run spec_loader tests/data/specs/ok`.

#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check_spec(bytes));
