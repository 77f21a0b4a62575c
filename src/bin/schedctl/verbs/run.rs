//! `run`: submit an instance, and on wish watch it to its end.

use std::io::Read as _;
use std::path::Path;

use sched::model::request::{PriorityText, SubmitBody, Submitted};
use sched::model::spec::JsonMap;
use serde_json::Value;

use super::{logs, wait};
use crate::cli::RunArgs;
use crate::clock::Deadline;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::session::{Session, instance, task, usage};
use crate::time_text::Direction;

/// Prints the new instance's id; with `--wait` or `--follow` mirrors its end.
pub(crate) fn run(session: &Session, args: &RunArgs) -> Result<Exit, Failure> {
    let end = Deadline::after(args.timeout);
    let target = task(&args.task).segment("instances");
    let body = body(session, args)?;
    let answer = session.client.post_with(&target, &body, args.request_id.as_deref())?;
    let made: Submitted = answer.json()?;
    let id = made.instance_id.as_str();
    if !args.quiet {
        explain(args, &made);
    }
    if session.output.is_json() && !args.quiet {
        session.output.json(&answer.body)?;
    } else if args.follow && !args.quiet {
        // stdout belongs to the task's output.
        note(id);
    } else {
        session.output.line(id)?;
    }
    if args.follow {
        follow(session, id, end)?;
    }
    if !args.follow && !args.wait {
        return Ok(Exit::Good);
    }
    let views = wait::until_over(session, &[id.to_owned()], end)?;
    Ok(wait::verdict(session, &views))
}

fn explain(args: &RunArgs, made: &Submitted) {
    if args.dry_run {
        note("dry run: nothing was made; this would be its id");
    }
    if made.repeated {
        note("this request was carried out before: this is what it made then");
    }
    if !made.open_in_cycle.is_empty() {
        let ids: Vec<&str> = made.open_in_cycle.iter().map(|id| id.as_str()).collect();
        note(&format!("also open in that cycle: {}", ids.join(", ")));
    }
}

/// Copies what the task writes. One that never starts writes nothing, which is no failure here.
fn follow(session: &Session, id: &str, end: Deadline) -> Result<(), Failure> {
    let target = instance(id).segment("logs").query("follow", "true");
    match logs::copy(session, &target, end) {
        Err(failure) if failure.exit() == Exit::NotFound => Ok(()),
        other => other,
    }
}

fn body(session: &Session, args: &RunArgs) -> Result<SubmitBody, Failure> {
    let output = &session.output;
    let at = match args.at {
        None => None,
        Some(when) => Some(
            when.resolve(output.now, &output.zone, Direction::Hence)
                .ok_or_else(|| usage("--at lies outside the calendar's years"))?,
        ),
    };
    Ok(SubmitBody {
        params: params(args.params_file.as_deref(), &args.param)?,
        cycle: args.cycle.clone(),
        date: args.date.clone(),
        priority: args.priority.map(PriorityText),
        at,
        ignore_deps: args.ignore_deps,
        no_downstream: args.no_downstream,
        dry_run: args.dry_run,
    })
}

/// Parameters from a file of JSON, then those of the command line over them, as text: the daemon
/// knows their types.
pub(crate) fn params(file: Option<&Path>, pairs: &[(String, String)]) -> Result<JsonMap, Failure> {
    let mut map = match file {
        Some(path) => read_params(path)?,
        None => JsonMap::new(),
    };
    for (name, value) in pairs {
        map.insert(name.clone(), Value::from(value.as_str()));
    }
    Ok(map)
}

fn read_params(path: &Path) -> Result<JsonMap, Failure> {
    let shown = path.display();
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|source| usage(format!("cannot read the parameters {shown}: {source}")))?;
    serde_json::from_str(&text).map_err(|source| {
        usage(format!("the parameters {shown} are not one JSON object: {source}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_command_line_win_over_those_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.json");
        std::fs::write(&path, r#"{"n": 1, "d": "2026-11-30"}"#).unwrap();
        let given = [("n".to_owned(), "2".to_owned())];
        let map = params(Some(&path), &given).unwrap();
        assert_eq!(Value::from(map), serde_json::json!({"n": "2", "d": "2026-11-30"}));
        std::fs::write(&path, "[1]").unwrap();
        assert_eq!(params(Some(&path), &[]).unwrap_err().exit(), Exit::Usage);
        assert_eq!(params(Some(&dir.path().join("none")), &[]).unwrap_err().exit(), Exit::Usage);
    }
}
