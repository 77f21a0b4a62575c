//! Tests of single rules, one file per subject; the simulation in `tests/sim` covers their
//! interplay. Expected values are those of docs/waves.md and of the requirements, worked out by
//! hand.

mod attempts;
mod backfill;
mod bench;
mod build;
mod cancel;
mod changes;
mod check;
mod clock;
mod conditions;
mod data_ready;
mod empty_cycles;
mod explain;
mod files;
mod fires;
mod freeze;
mod inheritance;
mod misfire;
mod moves;
mod nights;
mod offsets;
mod order;
mod pause;
mod plan;
mod preempt;
mod registry;
mod repeat;
mod retry;
mod rollback;
mod rollout;
mod simulate;
mod skip;
mod waits;
mod waves;

use crate::model::fixture;
