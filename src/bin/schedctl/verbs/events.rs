//! `events`: the append-only log.

use sched::access::client::Target;
use sched::model::record::LogRecord;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::EventsArgs;
use crate::exit::{Exit, Failure};
use crate::output::JsonList;
use crate::render;
use crate::session::{Session, read_row, usage};
use crate::time_text::{Direction, Since};

/// The only part of a record that paging needs.
#[derive(Deserialize)]
struct Position {
    seq: u64,
}

/// Prints the log from where the arguments say.
pub(crate) fn events(session: &Session, args: &EventsArgs) -> Result<Exit, Failure> {
    let output = &session.output;
    let since = match args.since {
        None => None,
        Some(Since::Seq(seq)) => Some(seq.to_string()),
        Some(Since::Time(when)) => Some(
            when.resolve(output.now, &output.zone, Direction::Ago)
                .ok_or_else(|| usage("--since lies outside the calendar's years"))?
                .to_string(),
        ),
    };
    if args.follow {
        follow(session, since.as_deref(), args.lines)?;
    } else {
        history(session, since, args.lines)?;
    }
    Ok(Exit::Good)
}

/// What is there, oldest first.
fn history(session: &Session, since: Option<String>, lines: Option<usize>) -> Result<(), Failure> {
    let output = &session.output;
    let mut since = since.unwrap_or_else(|| "0".to_owned());
    let mut left = lines.unwrap_or(usize::MAX);
    let mut list = JsonList::new(output);
    while left > 0 {
        let page = left.min(sched::limits::PAGE_MAX);
        let target =
            Target::new("/events").query("since", &since).query("limit", &page.to_string());
        let answer = session.get(&target)?;
        let rows: Vec<&RawValue> = answer.json()?;
        let Some(last) = rows.last() else { break };
        since = read_row::<Position>(last)?.seq.to_string();
        for row in rows.into_iter().take(left) {
            left -= 1;
            if output.is_json() {
                list.push(row.get())?;
            } else {
                output.line(&text(row.get(), session))?;
            }
        }
    }
    if output.is_json() { list.end() } else { Ok(()) }
}

/// What is there after `since`, and what comes.
fn follow(session: &Session, since: Option<&str>, lines: Option<usize>) -> Result<(), Failure> {
    let target = Target::new("/events").query("follow", "true").query_some("since", since);
    let mut stream = session.stream(&target)?;
    let mut left = lines.unwrap_or(usize::MAX);
    while left > 0 {
        let Some(line) = stream.line(None)? else {
            return Err(Failure::said(Exit::Unreachable, "the daemon has ended the stream"));
        };
        left -= 1;
        // A list without an end cannot be one JSON value: it is lines in both JSON forms.
        let shown = if session.output.is_json() { line } else { text(&line, session) };
        session.output.line(&shown)?;
    }
    Ok(())
}

/// A record for people; one that we cannot read, as it came.
fn text(json: &str, session: &Session) -> String {
    match serde_json::from_str::<LogRecord>(json) {
        Ok(record) => render::event::line(&record, &session.output),
        Err(_newer_than_us) => render::clean(json),
    }
}
