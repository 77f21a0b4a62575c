//! `wait`: until instances have ended for good, told by the event stream.
//!
//! The stream is open before states are read, so no end falls between. An event is only a hint:
//! what counts is the state read after it.

use std::collections::BTreeMap;

use sched::access::client::{ClientError, Stream, Target};
use sched::model::instance::InstanceState;
use sched::model::view::InstanceView;
use serde::Deserialize;

use crate::cli::WaitArgs;
use crate::clock::Deadline;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::render;
use crate::session::{Session, instance};

/// Streams that may end one after the other without a single event.
const BARREN_MAX: u32 = 3;

/// The part of a record that tells of an end.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    kind: String,
    instance_id: Option<String>,
    to: Option<InstanceState>,
}

/// Waits; exit 0 if all have SUCCEEDED, 1 if not, 124 if the time was over first.
pub(crate) fn wait(session: &Session, args: &WaitArgs) -> Result<Exit, Failure> {
    let views = until_over(session, &args.instances, Deadline::after(args.timeout))?;
    if session.output.is_json() {
        let mut list = crate::output::JsonList::new(&session.output);
        for view in &views {
            let json = serde_json::to_string(view).map_err(|source| {
                Failure::Client(ClientError::Json { target: "the instances".to_owned(), source })
            })?;
            list.push(&json)?;
        }
        list.end()?;
    }
    Ok(verdict(session, &views))
}

/// The exit status of instances that have ended; says on stderr what did not succeed.
pub(crate) fn verdict(session: &Session, views: &[InstanceView]) -> Exit {
    let mut exit = Exit::Good;
    for view in views.iter().filter(|view| view.state != InstanceState::Succeeded) {
        exit = Exit::Failed;
        let why = render::instance::why(view, session.output.now);
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        let message = view.message.as_ref().map_or_else(String::new, |m| format!(": {m}"));
        let text = format!("{} {} {}{why}{message}", view.task_id, view.instance_id, view.state);
        note(&render::clean(&text));
    }
    exit
}

/// The named instances once all have ended for good, in the order of the names.
pub(crate) fn until_over(
    session: &Session,
    names: &[String],
    end: Deadline,
) -> Result<Vec<InstanceView>, Failure> {
    let mut views: Vec<InstanceView> = Vec::new();
    let mut barren = 0;
    loop {
        let mut stream = session.stream(&Target::new("/events").query("follow", "true"))?;
        if views.is_empty() {
            views = names.iter().map(|name| read(session, name)).collect::<Result<_, _>>()?;
        } else {
            // Whatever happened while no stream was open.
            for view in views.iter_mut().filter(|view| !render::instance::is_over(view)) {
                *view = read(session, view.instance_id.as_str())?;
            }
        }
        barren = if watch(session, &mut stream, &mut views, end)? { 0 } else { barren + 1 };
        if views.iter().all(render::instance::is_over) {
            return Ok(views);
        }
        if barren == BARREN_MAX {
            let text = "the daemon ends the event stream again and again";
            return Err(Failure::said(Exit::Unreachable, text));
        }
    }
}

/// Follows the stream until all have ended or it has; says whether it brought anything.
fn watch(
    session: &Session,
    stream: &mut Stream<'_>,
    views: &mut [InstanceView],
    end: Deadline,
) -> Result<bool, Failure> {
    let mut open: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, view) in views.iter().enumerate().filter(|(_, v)| !render::instance::is_over(v)) {
        open.entry(view.instance_id.as_str().to_owned()).or_default().push(at);
    }
    let mut fruitful = false;
    while !open.is_empty() {
        let line = match stream.line(end.left()) {
            Ok(Some(line)) => line,
            Ok(None) | Err(ClientError::Broken { .. }) => return Ok(fruitful),
            Err(ClientError::TimedOut) => return Err(too_long(&open)),
            Err(error) => return Err(error.into()),
        };
        fruitful = true;
        let Some(id) = ended(&line) else { continue };
        let Some(places) = open.get(&id) else { continue };
        let view = read(session, &id)?;
        for at in places {
            views[*at] = view.clone();
        }
        if render::instance::is_over(&view) {
            open.remove(&id);
        }
    }
    Ok(fruitful)
}

/// The instance that a record tells may have ended.
fn ended(line: &str) -> Option<String> {
    let moved: Moved = serde_json::from_str(line).ok()?;
    let may_be_over = match moved.to? {
        InstanceState::Succeeded
        | InstanceState::Failed
        | InstanceState::Timeout
        | InstanceState::Cancelled => moved.kind == "moved",
        InstanceState::Pending
        | InstanceState::Blocked
        | InstanceState::Ready
        | InstanceState::Running => false,
    };
    moved.instance_id.filter(|_| may_be_over)
}

fn read(session: &Session, name: &str) -> Result<InstanceView, Failure> {
    session.view(&instance(name))
}

fn too_long(open: &BTreeMap<String, Vec<usize>>) -> Failure {
    let ids: Vec<&str> = open.keys().map(String::as_str).collect();
    Failure::said(Exit::TimedOut, format!("the wait ran out; still open: {}", ids.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_move_to_an_end_is_a_hint() {
        let line = |kind: &str, to: &str| {
            format!(r#"{{"seq":1,"kind":"{kind}","instanceId":"i","taskId":"a.v1","to":{to}}}"#)
        };
        assert_eq!(ended(&line("moved", r#""SUCCEEDED""#)), Some("i".to_owned()));
        assert_eq!(ended(&line("moved", r#""FAILED""#)), Some("i".to_owned()));
        assert_eq!(ended(&line("moved", r#""RUNNING""#)), None);
        assert_eq!(ended(&line("updated", r#""SUCCEEDED""#)), None);
        assert_eq!(ended(&line("moved", "null")), None);
        assert_eq!(ended("not json"), None);
    }
}
