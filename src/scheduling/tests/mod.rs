//! Tests of single rules, one file per subject; the simulation in `tests/sim` covers their
//! interplay. Expected values are those of docs/waves.md and of the requirements, worked out by
//! hand.

mod attempts;
mod backfill;
mod bench;
mod build;
mod cancel;
mod check;
mod clock;
mod conditions;
mod files;
mod fires;
mod misfire;
mod order;
mod pause;
mod plan;
mod registry;
mod repeat;
mod rollback;
mod rollout;
mod simulate;
mod waves;

use crate::model::fixture;
