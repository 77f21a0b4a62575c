//! Tests of single rules, one file per verb; the simulation in `tests/sim` covers their interplay.

mod bench;
mod build;
