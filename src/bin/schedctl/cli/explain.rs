//! Options of `explain` and `graph`.

use clap::{Args, ValueEnum};

use crate::time_text::{self, When};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  schedctl explain order.settle.v2@2026-11-30       # why this run waits, or how it ended
  schedctl explain order.settle.v2                  # why the task has no run now
  schedctl explain order.settle.v2 --at 2026-11-30T02:00")]
pub(crate) struct ExplainArgs {
    /// A task or an instance
    #[arg(value_name = "TASK|INSTANCE")]
    pub(crate) name: String,
    /// Why the task did not run at this time, or what it made
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_when)]
    pub(crate) at: Option<When>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  schedctl graph order.settle.v2                    # what is up- and downstream of it
  schedctl graph --cycle 2026-11-30                 # the runs of a day and how they stand
  schedctl graph --format svg > graph.svg
  schedctl graph --format dot | dot -Tpdf > graph.pdf")]
pub(crate) struct GraphArgs {
    /// Only what is up- or downstream of this task
    pub(crate) task: Option<String>,
    /// The runs of this cycle, not the definitions
    #[arg(long)]
    pub(crate) cycle: Option<String>,
    /// How it is drawn
    #[arg(long, value_enum, default_value_t = GraphFormat::Tree)]
    pub(crate) format: GraphFormat,
}

/// How a graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Lines for a terminal
    Tree,
    /// For Graphviz
    Dot,
    /// A Mermaid flowchart
    Mermaid,
    /// A picture that needs nothing else
    Svg,
}
