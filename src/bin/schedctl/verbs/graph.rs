//! `graph`: what comes after what, drawn.

use sched::access::client::Target;
use sched::model::graph::GraphView;

use crate::cli::{GraphArgs, GraphFormat};
use crate::exit::{Exit, Failure};
use crate::render::graph;
use crate::session::Session;

/// Draws it; as JSON what it is drawn from.
pub(crate) fn graph(session: &Session, args: &GraphArgs) -> Result<Exit, Failure> {
    let target = Target::new("/graph")
        .query_some("taskId", args.task.as_deref())
        .query_some("cycle", args.cycle.as_deref());
    let answer = session.get(&target)?;
    let output = &session.output;
    if output.is_json() {
        output.json(&answer.body)?;
        return Ok(Exit::Good);
    }
    let view: GraphView = answer.json()?;
    if view.truncated {
        output.note("there are more runs of this cycle than are shown; name a task");
    }
    if view.nodes.is_empty() {
        output.note(match &view.cycle {
            Some(_) => "there is no run of this cycle",
            None => "no tasks",
        });
    }
    match args.format {
        GraphFormat::Tree if view.nodes.is_empty() => {}
        GraphFormat::Tree => output.line(&graph::tree(&view, output))?,
        GraphFormat::Dot => output.line(&graph::dot(&view))?,
        GraphFormat::Mermaid => output.line(&graph::mermaid(&view))?,
        GraphFormat::Svg => output.line(&graph::svg(&view))?,
    }
    Ok(Exit::Good)
}
