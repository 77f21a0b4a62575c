//! Options of the verbs by which people steer: cancel, skip, retry, pause, resume, priority.

use clap::Args;

use super::values::{self, PriorityWish};
use crate::time_text::{self, When};

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Which instances
    #[arg(required = true, value_name = "INSTANCE")]
    pub(crate) instances: Vec<String>,
    /// And all that waits for them
    #[arg(long)]
    pub(crate) downstream: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Only what has failed for good is tried again, with all its attempts anew. What is BLOCKED below it
goes on by itself once it has succeeded; --with-downstream is for what ran below it and failed too.

Example: schedctl retry order.extract.v1@2026-11-30 --with-downstream")]
pub(crate) struct RetryArgs {
    /// Which instances
    #[arg(required = true, value_name = "INSTANCE")]
    pub(crate) instances: Vec<String>,
    /// And the failed ones below them, each once its upstreams have ended
    #[arg(long)]
    pub(crate) with_downstream: bool,
    /// By the definition of their first start, not by the one in force
    #[arg(long)]
    pub(crate) same_revision: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: schedctl skip order.profile.v1@2026-11-30")]
pub(crate) struct SkipArgs {
    /// Which instances
    #[arg(required = true, value_name = "INSTANCE")]
    pub(crate) instances: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// What a pause or its end is about.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct HoldTarget {
    /// Tasks or instances
    #[arg(value_name = "TASK|INSTANCE")]
    pub(crate) names: Vec<String>,
    /// A queue
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Everything
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: schedctl pause order.settle.v2 --until 2h --reason 'bank is closed'"
)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    pub(crate) target: HoldTarget,
    /// Resume by itself at this time
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_when)]
    pub(crate) until: Option<When>,
    /// Why, for those who find it paused
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Stop the processes of instances that run; they keep their slots, their timeouts stand still
    #[arg(long, conflicts_with_all = ["queue", "all"])]
    pub(crate) freeze: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) target: HoldTarget,
}

#[derive(Debug, Args)]
pub(crate) struct PriorityArgs {
    /// A task or an instance
    #[arg(value_name = "TASK|INSTANCE")]
    pub(crate) name: String,
    /// 0 (first) to 9 (last), CRITICAL, HIGH, NORMAL, LOW or BACKGROUND; default: what the
    /// definition says, for an instance what counts for its task
    #[arg(value_parser = values::priority_or_default)]
    pub(crate) value: PriorityWish,
}
