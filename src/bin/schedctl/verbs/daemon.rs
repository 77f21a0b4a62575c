//! Verbs about the daemon itself: reload, executors, queues, shutdown, version.

use sched::access::client::Target;
use sched::model::request::StopMode;
use sched::model::view::{ExecutorView, QueueView, StatusView};
use serde_json::{Value, json};

use crate::cli::ShutdownArgs;
use crate::exit::{Exit, Failure};
use crate::output::{confirm, note};
use crate::render;
use crate::session::Session;

/// `reload`.
pub(crate) fn reload(session: &Session) -> Result<Exit, Failure> {
    session.post(&Target::new("/reload"), &json!({}))?;
    let status: StatusView = session.view(&Target::new("/status"))?;
    for error in &status.spec_errors {
        note(&render::clean(&error.to_string()));
    }
    match status.spec_errors.len() {
        0 => note(&format!("{} tasks in force", status.tasks)),
        bad => note(&format!(
            "{} tasks in force; {bad} errors, files that have one keep what they defined before",
            status.tasks
        )),
    }
    Ok(Exit::Good)
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
