//! `status`: the daemon at a glance, or one task.

use std::time::Duration;

use sched::access::client::Target;
use sched::model::view::{InstanceView, StatusView, TaskStatus, TaskView};

use crate::cli::StatusArgs;
use crate::exit::{Exit, Failure};
use crate::render;
use crate::session::{Session, task};

/// Instances of each kind that are shown.
const SHOWN: usize = 10;
/// How far back failures are shown.
const LATELY: Duration = Duration::from_secs(24 * 3600);

/// Shows it; exit 3 for a task that is paused or disabled.
pub(crate) fn status(session: &Session, args: &StatusArgs) -> Result<Exit, Failure> {
    match &args.task {
        Some(name) => of_task(session, name),
        None => of_daemon(session),
    }
}

fn of_task(session: &Session, name: &str) -> Result<Exit, Failure> {
    let answer = session.get(&task(name))?;
    let view: TaskView = answer.json()?;
    if session.output.is_json() {
        session.output.json(&answer.body)?;
    } else {
        session.output.line(&render::task::summary(&view, &session.output))?;
    }
    Ok(match view.status {
        TaskStatus::Paused | TaskStatus::Disabled => Exit::Held,
        TaskStatus::Active | TaskStatus::Pinned | TaskStatus::Unresolved => Exit::Good,
    })
}

fn of_daemon(session: &Session) -> Result<Exit, Failure> {
    let output = &session.output;
    let answer = session.get(&Target::new("/status"))?;
    if output.is_json() {
        output.json(&answer.body)?;
        return Ok(Exit::Good);
    }
    let status: StatusView = answer.json()?;
    let since = output.now.minus(LATELY).to_string();
    let instances = |states: &str| {
        Target::new("/instances").query("state", states).query("limit", &SHOWN.to_string())
    };
    let running = listed(session, &instances("RUNNING"));
    let failed = listed(session, &instances("FAILED,TIMEOUT").query("since", &since));
    output.line(&render::status::page(&status, &running, &failed, output))?;
    Ok(Exit::Good)
}

/// Instances, or none and a word on stderr: a store that cannot be read must not hide the rest.
fn listed(session: &Session, target: &Target) -> Vec<InstanceView> {
    session.view(target).unwrap_or_else(|failure| {
        session.output.note(&format!("instances are left out: {}", failure.text()));
        Vec::new()
    })
}
