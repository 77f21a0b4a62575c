//! Verbs about the daemon itself: reload, executors, queues, shutdown, version.

use sched::access::client::Target;
use sched::model::event::SpecError;
use sched::model::request::StopMode;
use sched::model::view::{ExecutorView, QueueView};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::ShutdownArgs;
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::render::{self, counted};
use crate::session::Session;

/// What a reading of the spec directory gave.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reloaded {
    tasks: usize,
    spec_errors: Vec<SpecError>,
    unreadable: Option<String>,
}

/// `reload`: exit 1 if the directory could not be read, 6 if anything in it is refused.
pub(crate) fn reload(session: &Session) -> Result<Exit, Failure> {
    let answer = session.post(&Target::new("/reload"), &json!({}))?;
    let Reloaded { tasks, spec_errors, unreadable } = answer.json()?;
    let exit = match (&unreadable, spec_errors.len()) {
        (Some(_), _) => Exit::Failed,
        (None, 0) => Exit::Good,
        (None, _) => Exit::Refused,
    };
    if session.output.is_json() {
        session.output.json(&answer.body)?;
        return Ok(exit);
    }
    for error in &spec_errors {
        note(&render::clean(&error.to_string()));
    }
    let in_force = format!("{} in force", counted(tasks, "task"));
    note(&match (unreadable, spec_errors.len()) {
        (Some(why), _) => {
            let why = render::clean(&why);
            format!("nothing was read: {why}; {in_force} as before")
        }
        (None, 0) => in_force,
        (None, errors) => format!(
            "{in_force}; {}, files that have one keep what they defined before",
            counted(errors, "error")
        ),
    });
    Ok(exit)
}

/// `executors`.
pub(crate) fn executors(session: &Session) -> Result<Exit, Failure> {
    session.show_list::<ExecutorView>(
        &Target::new("/executors"),
        "no executors",
        render::status::executors,
    )?;
    Ok(Exit::Good)
}

/// `queues`.
pub(crate) fn queues(session: &Session) -> Result<Exit, Failure> {
    session.show_list::<QueueView>(&Target::new("/queues"), "no queues", render::status::queues)?;
    session.warn_if_all_is_paused()?;
    Ok(Exit::Good)
}

/// `shutdown`.
pub(crate) fn shutdown(session: &Session, args: &ShutdownArgs) -> Result<Exit, Failure> {
    let (mode, what) = match (args.drain, args.cancel) {
        (true, _) => (Some(StopMode::Drain), "stop the daemon once running tasks have ended?"),
        (false, true) => (Some(StopMode::Cancel), "cancel running tasks and stop the daemon?"),
        (false, false) => (None, "stop the daemon?"),
    };
    confirm(what, args.yes)?;
    // Without a mode the daemon does what its configuration says.
    let body = mode.map_or_else(|| json!({}), |mode| json!({ "mode": mode }));
    session.post(&Target::new("/shutdown"), &body)?;
    note("the daemon is stopping");
    Ok(Exit::Good)
}

/// `version`.
pub(crate) fn version(session: &Session) -> Result<Exit, Failure> {
    let client = env!("CARGO_PKG_VERSION");
    let answer = session.view::<Value>(&Target::new("/version"));
    let daemon = answer.as_ref().ok().map(|v| v.get("version").unwrap_or(v));
    let daemon = daemon.and_then(Value::as_str).map(str::to_owned);
    if session.output.is_json() {
        let versions = json!({ "schedctl": client, "schedd": daemon }).to_string();
        session.output.json(versions.as_bytes())?;
    } else {
        session.output.line(&format!("schedctl {client}"))?;
        if let Some(daemon) = &daemon {
            session.output.line(&format!("schedd {daemon}"))?;
        }
    }
    answer.map(|_| Exit::Good)
}
