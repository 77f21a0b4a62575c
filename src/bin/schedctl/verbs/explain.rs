//! `explain`: why an instance is where it is, or why a task has none.

use sched::model::explain::{InstanceExplanation, TaskExplanation};

use crate::cli::ExplainArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::render;
use crate::session::{Session, named, names_instance, usage};
use crate::time_text::Direction;

/// Shows the daemon's sentences.
pub(crate) fn explain(session: &Session, args: &ExplainArgs) -> Result<Exit, Failure> {
    let target = named(&args.name).segment("explain");
    let lines = |lines: &[String], _: &Output| {
        let clean: Vec<String> = lines.iter().map(|line| render::clean(line)).collect();
        clean.join("\n")
    };
    if names_instance(&args.name) {
        if args.at.is_some() {
            return Err(usage("--at is about a task's times; name a task"));
        }
        session
            .show::<InstanceExplanation>(&target, |told, output| lines(&told.summary, output))?;
        return Ok(Exit::Good);
    }
    let output = &session.output;
    let at = match args.at {
        None => None,
        Some(when) => match when.resolve(output.now, &output.zone, Direction::Ago) {
            Some(at) => Some(at.to_string()),
            None => return Err(usage("--at lies outside the calendar's years")),
        },
    };
    let target = target.query_some("at", at.as_deref());
    session.show::<TaskExplanation>(&target, |told, output| lines(&told.summary, output))?;
    Ok(Exit::Good)
}
