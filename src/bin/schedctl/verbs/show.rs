//! `show`: all of a task or of an instance.

use sched::model::plan::RevisionView;
use sched::model::view::{InstanceView, TaskView};
use serde_json::Value;

use crate::cli::NamedArgs;
use crate::exit::{Exit, Failure};
use crate::render;
use crate::session::{Session, instance, names_instance, task};

/// Shows it.
pub(crate) fn show(session: &Session, args: &NamedArgs) -> Result<Exit, Failure> {
    if names_instance(&args.name) {
        session.show::<InstanceView>(&instance(&args.name), render::instance::page)?;
        return Ok(Exit::Good);
    }
    let answer = session.get(&task(&args.name))?;
    if session.output.is_json() {
        session.output.json(&answer.body)?;
        return Ok(Exit::Good);
    }
    // The definition is shown as it came: a newer daemon may know keys that we do not.
    let mut value: Value = answer.json()?;
    let spec = value.get_mut("spec").map(Value::take).unwrap_or_default();
    let view: TaskView = serde_json::from_value(value).map_err(|source| {
        let target = format!("task {}", args.name);
        sched::access::client::ClientError::Json { target, source }
    })?;
    let mut head = render::task::summary(&view, &session.output);
    if view.pinned {
        // What the pin holds off.
        let history: Vec<RevisionView> = session.view(&task(&args.name).segment("history"))?;
        if let Some(newest) = history.last() {
            let line = render::definition::in_one_line(newest, &session.output);
            head.push_str(&format!("Newest: {line}\n"));
        }
    }
    session.output.line(&format!("{head}\n{}", render::task::definition(&spec)))?;
    Ok(Exit::Good)
}
