//! One file per verb, or per group of verbs that do the same to different things.

pub(crate) mod apply;
pub(crate) mod backfill;
pub(crate) mod change;
pub(crate) mod daemon;
pub(crate) mod emit;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod fires;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod next;
pub(crate) mod plan;
pub(crate) mod ps;
pub(crate) mod remove;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod simulate;
pub(crate) mod status;
#[cfg(test)]
mod tests;
pub(crate) mod validate;
pub(crate) mod wait;
