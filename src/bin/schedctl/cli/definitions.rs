//! Options of the verbs about definitions.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Spec files, or directories of them; - is the standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// The configuration that knows the task types; else the standard places
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: schedctl plan --replace ./sched.d")]
pub(crate) struct PlanArgs {
    /// Spec files, or directories of them; - is the standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// They are all that the spec directory would hold: what is not among them would go
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Each file is put into the spec directory under its own name, in place of \
one of that name, and all of them count at once. If anything is wrong with any of them, nothing is \
written.")]
pub(crate) struct ApplyArgs {
    /// Spec files, or directories of them; - is the standard input, with a single task
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask, though tasks go that the files no longer define
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Which task
    pub(crate) task: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  schedctl history order.settle.v2 --diff 3..5
  schedctl history order.settle.v2 --revision 3 > order.settle.v2.yaml   # JSON is YAML too")]
pub(crate) struct HistoryArgs {
    /// Which task
    pub(crate) task: String,
    /// Show what changed field by field, from each revision to the next or between two
    #[arg(long, value_name = "A..B", num_args = 0..=1, value_parser = RevisionRange::parse)]
    pub(crate) diff: Option<Option<RevisionRange>>,
    /// Print this revision's whole definition as JSON, values of secret parameters masked
    #[arg(long, value_name = "N", conflicts_with = "diff")]
    pub(crate) revision: Option<u64>,
}

/// Two revisions to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RevisionRange {
    /// Compared from.
    pub(crate) from: u64,
    /// Compared to.
    pub(crate) to: u64,
}

impl RevisionRange {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected two revisions such as 3..5; the task stands before --diff";
        let (from, to) = text.split_once("..").ok_or_else(expected)?;
        match (from.parse(), to.parse()) {
            (Ok(from), Ok(to)) => Ok(Self { from, to }),
            (Err(_), _) | (_, Err(_)) => Err(expected().to_owned()),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "The task stays at that revision until schedctl unpin, or until its file \
defines something else than it does now.")]
pub(crate) struct RollbackArgs {
    /// Which task
    pub(crate) task: String,
    /// To which revision; schedctl history lists them
    pub(crate) revision: u64,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UnpinArgs {
    /// Which task
    pub(crate) task: String,
}
