//! `logs`: what a task wrote, byte by byte.

use sched::access::client::Target;

use crate::cli::LogsArgs;
use crate::clock::Deadline;
use crate::exit::{Exit, Failure};
use crate::session::{Session, instance, names_instance};

/// Copies an attempt's output to stdout.
pub(crate) fn logs(session: &Session, args: &LogsArgs) -> Result<Exit, Failure> {
    let name = if names_instance(&args.name) {
        args.name.clone()
    } else {
        format!("{}@latest", args.name)
    };
    let mut target = instance(&name).segment("logs");
    if args.follow {
        target = target.query("follow", "true");
    }
    let text = |n: u64| n.to_string();
    target = target.query_some("tail", args.lines.map(text).as_deref());
    target = target.query_some("attempt", args.attempt.map(u64::from).map(text).as_deref());
    copy(session, &target, Deadline::after(None))?;
    Ok(Exit::Good)
}

/// Copies a stream to stdout until it ends or the time is over.
pub(crate) fn copy(session: &Session, target: &Target, end: Deadline) -> Result<(), Failure> {
    let mut stream = session.stream(target)?;
    while let Some(bytes) = stream.chunk(end.left())? {
        session.output.bytes(&bytes)?;
    }
    Ok(())
}
