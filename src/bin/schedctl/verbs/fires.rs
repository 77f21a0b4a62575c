//! `fires`: the ledger of a task's nominal fires.

use sched::access::client::Target;
use sched::model::record::Fire;

use crate::cli::FiresArgs;
use crate::exit::{Exit, Failure};
use crate::render;
use crate::session::Session;

/// Shows one row per outcome.
pub(crate) fn fires(session: &Session, args: &FiresArgs) -> Result<Exit, Failure> {
    let target = Target::new("/fires").query("taskId", &args.task);
    let none = format!("{} has not fired yet", args.task);
    session.show_list::<Fire>(&target, &none, render::task::ledger)?;
    Ok(Exit::Good)
}
