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

/// Records that are shown if nobody says since when or how many.
const NEWEST: u64 = 100;

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
        let since = match (since, args.lines) {
            (None, Some(lines)) => Some(back(session, lines)?),
            (since, _) => since,
        };
        follow(session, since.as_deref())?;
        return Ok(Exit::Good);
    }
    match since {
        Some(since) => history(session, since, args.lines)?,
        None => history(session, back(session, args.lines.unwrap_or(NEWEST))?, None)?,
    }
    Ok(Exit::Good)
}

/// The position after which the newest `lines` records are.
fn back(session: &Session, lines: u64) -> Result<String, Failure> {
    let newest: Vec<Position> = session.view(&Target::new("/events").query("limit", "1"))?;
    let tip = newest.last().map_or(0, |position| position.seq);
    Ok(tip.saturating_sub(lines).to_string())
}

/// What is there, oldest first.
fn history(session: &Session, mut since: String, lines: Option<u64>) -> Result<(), Failure> {
    let output = &session.output;
    let most = u64::try_from(sched::limits::PAGE_MAX).unwrap_or(u64::MAX);
    let mut left = lines.unwrap_or(u64::MAX);
    let mut list = JsonList::new(output);
    while left > 0 {
        let page = left.min(most);
        let target =
            Target::new("/events").query("since", &since).query("limit", &page.to_string());
        let answer = session.get(&target)?;
        let rows: Vec<&RawValue> = answer.json()?;
        let Some(last) = rows.last() else { break };
        since = read_row::<Position>(last)?.seq.to_string();
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        for row in rows {
            if output.is_json() {
                list.push(row.get())?;
            } else {
                output.line(&text(row.get(), session))?;
            }
        }
        // A log that grows meanwhile must not be chased.
        if count < page {
            break;
        }
        left = left.saturating_sub(count);
    }
    if output.is_json() { list.end() } else { Ok(()) }
}

/// What is there after `since`, and what comes.
fn follow(session: &Session, since: Option<&str>) -> Result<(), Failure> {
    let target = Target::new("/events").query("follow", "true").query_some("since", since);
    let mut stream = session.stream(&target)?;
    while let Some(line) = stream.line(None)? {
        // A list without an end cannot be one JSON value: it is lines in both JSON forms.
        let shown = if session.output.is_json() { line } else { text(&line, session) };
        session.output.line(&shown)?;
    }
    Err(Failure::said(Exit::Unreachable, "the daemon has ended the stream"))
}

/// A record for people; one that we cannot read, as it came.
fn text(json: &str, session: &Session) -> String {
    match serde_json::from_str::<LogRecord>(json) {
        Ok(record) => render::event::line(&record, &session.output),
        Err(_newer_than_us) => render::clean(json),
    }
}
