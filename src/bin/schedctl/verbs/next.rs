//! `next`: coming runs of tasks, or of any cron expression without a daemon.

use jiff::tz::TimeZone;
use sched::access::client::Target;
use sched::model::cron::CronExpr;
use sched::model::time::Timestamp;
use sched::model::view::NextFire;
use serde_json::{Value, json};

use crate::cli::NextArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Output, note};
use crate::render::{self, Field};
use crate::session::{Session, usage};
use crate::time_text::{self, Direction};

/// Shows what the daemon is going to do.
pub(crate) fn next(session: &Session, args: &NextArgs) -> Result<Exit, Failure> {
    let output = &session.output;
    let from = from(args, output)?.map(|at| at.to_string());
    let target = Target::new("/next")
        .query_some("taskId", args.task.as_deref())
        .query_some("from", from.as_deref())
        .query("count", &args.count.to_string());
    let Some(zone) = args.tz.as_ref().filter(|_| output.is_json()) else {
        session.show_list::<NextFire>(&target, "nothing is to come", |fires, output| {
            render::task::coming(fires, args.tz.as_ref(), output)
        })?;
        return Ok(Exit::Good);
    };
    let fires: Vec<NextFire> = session.view(&target)?;
    let mut rows = Vec::new();
    for fire in fires {
        let at = time_text::with_offset(fire.at, zone);
        rows.push(json!({
            "taskId": fire.task_id,
            "at": at,
            "local": at,
            "trigger": fire.trigger,
            "note": fire.note,
        }));
    }
    write(output, &rows)?;
    Ok(Exit::Good)
}

/// Shows what an expression means; exit 6 if it is refused. Needs no daemon.
pub(crate) fn of_expression(output: &Output, args: &NextArgs, text: &str) -> Result<Exit, Failure> {
    let expr = CronExpr::parse(text).map_err(|error| {
        let place =
            if error.column > 0 { format!(", column {}", error.column) } else { String::new() };
        Failure::said(Exit::Refused, format!("{text:?}{place}: {}", error.problem))
    })?;
    for warning in expr.warnings() {
        note(&format!("warning: {warning}"));
    }
    let zone = args.tz.clone().unwrap_or_else(|| output.zone.clone());
    let mut after = from(args, output)?.unwrap_or(output.now);
    let mut fires = Vec::new();
    for _ in 0..args.count {
        let Some((at, told)) = expr.next_told(after, &zone) else { break };
        after = at;
        fires.push((at, told));
    }
    if output.is_json() {
        let rows: Vec<Value> = fires
            .iter()
            .map(|(at, told)| {
                json!({ "at": time_text::with_offset(*at, &zone), "utc": at, "note": told })
            })
            .collect();
        write(output, &rows)?;
        return Ok(Exit::Good);
    }
    if fires.is_empty() {
        note("nothing is to come");
        return Ok(Exit::Good);
    }
    let rows = fires.iter().map(|(at, told)| {
        vec![
            Field::from(time_text::with_offset(*at, &zone)),
            time_text::local(*at, &TimeZone::UTC).into(),
            time_text::relative(output.now, *at).into(),
            told.as_deref().unwrap_or("").into(),
        ]
    });
    output.line(&render::table(&["AT", "UTC", "LEFT", "NOTE"], rows.collect(), output))?;
    Ok(Exit::Good)
}

fn from(args: &NextArgs, output: &Output) -> Result<Option<Timestamp>, Failure> {
    let zone: &TimeZone = args.tz.as_ref().unwrap_or(&output.zone);
    let Some(when) = args.from else { return Ok(None) };
    match when.resolve(output.now, zone, Direction::Hence) {
        Some(at) => Ok(Some(at)),
        None => Err(usage("--from lies outside the calendar's years")),
    }
}

fn write(output: &Output, rows: &[Value]) -> Result<(), Failure> {
    let mut list = crate::output::JsonList::new(output);
    for row in rows {
        list.push(&row.to_string())?;
    }
    list.end()
}
