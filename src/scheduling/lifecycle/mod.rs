//! The rules, one file per verb: what each kind of event does to the state.

pub(super) mod admit;
pub(super) mod arrive;
pub(super) mod backfill;
pub(super) mod boot;
pub(super) mod cancel;
pub(super) mod clock;
pub(super) mod connect;
pub(super) mod definitions;
pub(super) mod dispatch;
pub(super) mod emit;
pub(super) mod fire;
pub(super) mod misfire;
pub(super) mod pause;
pub(super) mod preempt;
pub(super) mod priority;
pub(super) mod repeat;
pub(super) mod report;
pub(super) mod retry;
pub(super) mod rollback;
pub(super) mod stop;
pub(super) mod submit;
pub(super) mod tick;
pub(super) mod wave;
