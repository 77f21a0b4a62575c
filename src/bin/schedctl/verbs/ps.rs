//! `ps`: instances, filtered and paged by the server, newest first.

use sched::access::client::Target;
use sched::model::instance::InstanceState;
use sched::model::view::InstanceView;

use crate::cli::PsArgs;
use crate::exit::{Exit, Failure};
use crate::output::JsonList;
use crate::render;
use crate::session::{Session, read_row, usage};
use crate::time_text::Direction;

/// Rows of a table for which nobody gave a limit.
const TABLE_LIMIT: usize = 100;

/// Shows the instances that the arguments pick.
pub(crate) fn ps(session: &Session, args: &PsArgs) -> Result<Exit, Failure> {
    let output = &session.output;
    let target = target(session, args)?;
    let for_program = output.is_json() || args.quiet;
    let limit = match args.limit {
        Some(0) => None,
        Some(limit) => Some(limit),
        None => (!for_program).then_some(TABLE_LIMIT),
    };
    if args.quiet {
        session.pages(target, limit, |row| {
            let view: InstanceView = read_row(row)?;
            output.line(view.instance_id.as_str())
        })?;
        return Ok(Exit::Good);
    }
    if output.is_json() {
        let mut list = JsonList::new(output);
        session.pages(target, limit, |row| list.push(row.get()))?;
        list.end()?;
        return Ok(Exit::Good);
    }
    let mut views: Vec<InstanceView> = Vec::new();
    let more = session.pages(target, limit, |row| {
        views.push(read_row(row)?);
        Ok(())
    })?;
    if views.is_empty() {
        output.note("no instances");
    } else {
        output.line(&render::instance::list(&views, output))?;
    }
    if more {
        output.note(&format!("older ones are left out; --limit shows more than {}", views.len()));
    }
    Ok(Exit::Good)
}

fn target(session: &Session, args: &PsArgs) -> Result<Target, Failure> {
    let output = &session.output;
    let states: Vec<&str> = args.state.iter().map(|s| InstanceState::as_str(*s)).collect();
    let since = match args.since {
        None => None,
        Some(when) => Some(
            when.resolve(output.now, &output.zone, Direction::Ago)
                .ok_or_else(|| usage("--since lies outside the calendar's years"))?
                .to_string(),
        ),
    };
    Ok(Target::new("/instances")
        .query_some("state", (!states.is_empty()).then(|| states.join(",")).as_deref())
        .query_some("taskId", args.task.as_deref())
        .query_some("cycle", args.cycle.as_deref())
        .query_some("queue", args.queue.as_deref())
        .query_some("since", since.as_deref()))
}
