//! `backfill`: make the runs of past cycles.

use sched::model::backfill::{BackfillBody, Backfilled};

use crate::cli::BackfillArgs;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::render;
use crate::session::{Session, task};

/// Shows each nominal time of the range with what became of it; to have nothing to do is good.
pub(crate) fn backfill(session: &Session, args: &BackfillArgs) -> Result<Exit, Failure> {
    let output = &session.output;
    let target = task(&args.task).segment("backfill");
    let body = BackfillBody {
        from: args.from.clone(),
        to: args.to.clone(),
        again: args.again,
        newest_first: args.newest_first,
        dry_run: args.dry_run,
    };
    let answer = session.client.post_with(&target, &body, args.request_id.as_deref())?;
    let filled: Backfilled = answer.json()?;
    if args.quiet {
        // Ids that nobody has would be taken for instances.
        if args.dry_run {
            return Ok(Exit::Good);
        }
        for id in &filled.instances {
            output.line(id.as_str())?;
        }
        return Ok(Exit::Good);
    }
    if output.is_json() {
        output.json(&answer.body)?;
    } else if !filled.cycles.is_empty() {
        output.line(&render::backfill::cycles(&filled.cycles, output))?;
    }
    if args.dry_run {
        note("dry run: nothing was made");
    }
    if filled.repeated {
        note("this request was carried out before: this is what it made then");
    }
    for line in render::backfill::summary(&args.task, &filled, args.dry_run, output) {
        note(&line);
    }
    Ok(Exit::Good)
}
