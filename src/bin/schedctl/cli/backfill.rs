//! Options of `backfill`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
A cycle that has a run which succeeded, waits or is running is left as it is; below one that \
succeeded, tasks without a run of that cycle get theirs. Runs that ended badly are made anew.

Examples:
  schedctl backfill report.daily.v3 --from 2026-11-01 --to 2026-11-30 --dry-run
  schedctl backfill report.daily.v3 --from 2026-11-01 --to 2026-11-30
  schedctl backfill load.hourly.v1 --from 2026-11-30 --to 2026-11-30T05 --again")]
pub(crate) struct BackfillArgs {
    /// Which task
    pub(crate) task: String,
    /// The first cycle: a date, hour or minute such as 2026-11-01 or 2026-11-01T14
    #[arg(long, value_name = "CYCLE")]
    pub(crate) from: String,
    /// The last cycle, included
    #[arg(long, value_name = "CYCLE")]
    pub(crate) to: String,
    /// Make a run also where one has succeeded, waits or is running
    #[arg(long)]
    pub(crate) again: bool,
    /// Begin with the newest cycle; else with the oldest
    #[arg(long)]
    pub(crate) newest_first: bool,
    /// Show what would be made and what left out, and make nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Makes a repetition of this command harmless: the same id makes nothing twice
    #[arg(long, value_name = "ID")]
    pub(crate) request_id: Option<String>,
    /// Print the ids of the new instances only, and nothing else
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
