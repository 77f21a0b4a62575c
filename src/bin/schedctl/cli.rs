//! The command line: verbs, options and their help (contract §5).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use sched::model::instance::InstanceState;
use sched::model::priority::Priority;

use crate::time_text::{self, When};

mod backfill;
mod control;
mod definitions;
mod explain;
mod format;
mod simulate;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use backfill::BackfillArgs;
pub(crate) use control::{
    CancelArgs, HoldTarget, PauseArgs, PriorityArgs, ResumeArgs, RetryArgs, SkipArgs,
};
pub(crate) use definitions::{
    ApplyArgs, HistoryArgs, PlanArgs, RemoveArgs, RevisionRange, RollbackArgs, UnpinArgs,
    ValidateArgs,
};
pub(crate) use explain::{ExplainArgs, GraphArgs, GraphFormat};
pub(crate) use format::{Color, Format};
pub(crate) use simulate::{By, EventArg, SimulateArgs};
pub(crate) use values::PriorityWish;

/// Talks to schedd, the task scheduler of this machine.
#[derive(Debug, Parser)]
#[command(name = "schedctl", version, max_term_width = 100, after_help = EXITS)]
pub(crate) struct Cli {
    /// The daemon's socket; else yours if there is one, else the system's
    #[arg(long, global = true, env = "SCHEDD_SOCKET", hide_env_values = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,

    /// How answers are written
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,

    /// When to colour; NO_COLOR turns auto off
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    /// What to do; nothing: status
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

const EXITS: &str = "\
Names: a task by its id (order.settle.v2); an instance by its id, the beginning of it,
TASK@latest or TASK@CYCLE (order.settle.v2@2026-11-30).
Times: 2026-11-30T02:00:00Z, 2026-11-30T02:00 or 2026-11-30 (local), or 90s, 10m, 2h, 3d from now.

Exit status: 0 good, 1 the operation or the awaited instance failed, 2 usage, 3 status of a
paused or disabled task, 4 no such object, 5 daemon not reachable, 6 refused, 7 not permitted,
124 the wait ran out.";

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Show the daemon, or one task (exit 3 if that is paused or disabled)
    Status(StatusArgs),
    /// List tasks with their next and last runs
    List(ListArgs),
    /// Show all of a task or an instance
    Show(NamedArgs),
    /// List instances, finished ones too, newest first
    Ps(PsArgs),
    /// Run a task now, or at a given time
    Run(Box<RunArgs>),
    /// Wait until instances have ended for good (exit 1 if one did not succeed)
    Wait(WaitArgs),
    /// Print what a task wrote
    Logs(LogsArgs),
    /// End instances for good
    Cancel(CancelArgs),
    /// Leave out instances that have not started; what depends on them strongly is left out too
    Skip(SkipArgs),
    /// Try failed instances again
    Retry(RetryArgs),
    /// Hold tasks, instances, a queue or everything back
    Pause(PauseArgs),
    /// End a pause
    Resume(ResumeArgs),
    /// Change the priority of a task or an instance
    Priority(PriorityArgs),
    /// Tell the scheduler that a named event has happened
    Emit(EmitArgs),
    /// Make the runs of past cycles that are missing, oldest first
    Backfill(BackfillArgs),
    /// Show coming runs, or those of any cron expression without a daemon
    Next(NextArgs),
    /// Show what the coming night is going to be: waits, late tasks, collisions
    Simulate(Box<SimulateArgs>),
    /// Show the ledger of a task's nominal fires and what became of each
    Fires(FiresArgs),
    /// Say why an instance waits or how it ended, or why a task has none
    Explain(ExplainArgs),
    /// Draw what runs after what
    Graph(GraphArgs),
    /// Print the append-only log
    Events(EventsArgs),
    /// Check spec files without a daemon (exit 6 if one is wrong)
    Validate(ValidateArgs),
    /// Show what spec files would change, and change nothing (exit 6 if one is wrong)
    Plan(PlanArgs),
    /// Put spec files into the daemon's spec directory, all or none
    Apply(ApplyArgs),
    /// Take a task's file out of the spec directory
    Remove(RemoveArgs),
    /// List the revisions of a task's definition and what changed
    History(HistoryArgs),
    /// Put an earlier revision in force, and keep it there whatever the file says
    Rollback(RollbackArgs),
    /// End a rollback: what the file says counts again
    Unpin(UnpinArgs),
    /// Print the JSON Schema of a spec, for editors
    Schema,
    /// Have the daemon read the spec directory again now (exit 6 if a file is wrong)
    Reload,
    /// List executors
    Executors,
    /// List queues
    Queues,
    /// Stop the daemon
    Shutdown(ShutdownArgs),
    /// Print the versions of the client and of the daemon
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Only this task
    pub(crate) task: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: schedctl list 'order.*' --label line=retail --failed")]
pub(crate) struct ListArgs {
    /// Only tasks whose id matches one of these globs
    #[arg(value_name = "GLOB", value_parser = glob::Pattern::new)]
    pub(crate) globs: Vec<glob::Pattern>,
    /// Only tasks whose last run ended badly
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only tasks with this label; repeatable, all must match
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::key_value)]
    pub(crate) label: Vec<(String, String)>,
    /// Print ids only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NamedArgs {
    /// A task or an instance
    #[arg(value_name = "TASK|INSTANCE")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: schedctl ps --state FAILED,TIMEOUT --since 1d")]
pub(crate) struct PsArgs {
    /// Only these states, such as RUNNING,READY
    #[arg(long, value_delimiter = ',', value_parser = values::state, ignore_case = true)]
    pub(crate) state: Vec<InstanceState>,
    /// Only instances of this task
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// Only instances of this cycle
    #[arg(long)]
    pub(crate) cycle: Option<String>,
    /// Only instances of this queue
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Only instances made since then (a time, or 2h for the last two hours)
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_when)]
    pub(crate) since: Option<When>,
    /// At most this many; 0: all. Tables show 100 if this is not given, JSON all
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Print ids only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  schedctl run order.settle.v2 -p bizDate=2026-11-30 -p shardTotal=500
  schedctl run order.settle.v2 --cycle 2026-11-30 --wait --timeout 2h
  schedctl logs -f $(schedctl run order.settle.v2 -q)")]
pub(crate) struct RunArgs {
    /// Which task
    pub(crate) task: String,
    /// A runtime parameter; repeatable
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = values::key_value)]
    pub(crate) param: Vec<(String, String)>,
    /// Runtime parameters from a file with one JSON object; - is the standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) params_file: Option<PathBuf>,
    /// Cycle it belongs to, such as 2026-11-30, or a root instance to join
    #[arg(long)]
    pub(crate) cycle: Option<String>,
    /// Business date it works on
    #[arg(long, conflicts_with = "cycle")]
    pub(crate) date: Option<String>,
    /// Makes a repetition of this command harmless: the same id gives the same instance
    #[arg(long, value_name = "ID")]
    pub(crate) request_id: Option<String>,
    /// Instead of the task's: 0 (first) to 9 (last), or a level's name
    #[arg(long, value_parser = values::priority)]
    pub(crate) priority: Option<Priority>,
    /// Not before this time
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_when)]
    pub(crate) at: Option<When>,
    /// Wait for no upstream
    #[arg(long)]
    pub(crate) ignore_deps: bool,
    /// Make and rebind nothing downstream
    #[arg(long)]
    pub(crate) no_downstream: bool,
    /// Check everything, say what would be made, make nothing
    #[arg(long, conflicts_with_all = ["wait", "follow"])]
    pub(crate) dry_run: bool,
    /// Wait for its end (exit 1 if it does not succeed)
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print what it writes until it ends; exit status as with --wait
    #[arg(long)]
    pub(crate) follow: bool,
    /// Longest wait (exit 124), such as 30s or 2h
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_timeout)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Print the id only, and nothing else
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Which instances
    #[arg(required = true, value_name = "INSTANCE")]
    pub(crate) instances: Vec<String>,
    /// Longest wait (exit 124), such as 30s or 2h
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_timeout)]
    pub(crate) timeout: Option<std::time::Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: schedctl logs order.settle.v2@latest -f -n 100")]
pub(crate) struct LogsArgs {
    /// An instance, or a task for its newest one
    #[arg(value_name = "INSTANCE|TASK")]
    pub(crate) name: String,
    /// Go on until the instance has ended
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the last lines
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<u64>,
    /// Of this attempt, from 1; else of the newest
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: schedctl emit orders.arrived -p n=3")]
pub(crate) struct EmitArgs {
    /// Its name
    pub(crate) event: String,
    /// A parameter of the event; repeatable
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = values::key_value)]
    pub(crate) param: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  schedctl next order.settle.v2 -n 5
  schedctl next --expr '30 2 * * *' --tz Europe/Berlin --from 2026-10-24T12:00:00Z")]
pub(crate) struct NextArgs {
    /// Only this task
    #[arg(conflicts_with = "expr")]
    pub(crate) task: Option<String>,
    /// A cron expression, answered without a daemon
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) expr: Option<String>,
    /// How many, per task
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) count: u32,
    /// After this time; else from now
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_when)]
    pub(crate) from: Option<When>,
    /// Zone of the expression and of the times shown; else this machine's
    #[arg(long, value_name = "ZONE", value_parser = time_text::parse_zone)]
    pub(crate) tz: Option<jiff::tz::TimeZone>,
}

#[derive(Debug, Args)]
pub(crate) struct FiresArgs {
    /// Which task
    pub(crate) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// After this position, or since this time
    #[arg(long, value_name = "SEQ|TIME", value_parser = time_text::parse_since)]
    pub(crate) since: Option<time_text::Since>,
    /// The newest this many; with --since the first. Default: 100, with --since or -f all
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ShutdownArgs {
    /// Let running tasks end first, start nothing new
    #[arg(long, conflicts_with = "cancel")]
    pub(crate) drain: bool,
    /// Cancel running tasks
    #[arg(long)]
    pub(crate) cancel: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}
