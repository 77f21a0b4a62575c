//! A graph for Graphviz.

use std::fmt::Write as _;

use sched::model::graph::{GraphEdgeKind, GraphView};
use sched::model::spec::Strength;

use super::{colors, label, standing, title, tone};

/// All of it.
pub(crate) fn dot(view: &GraphView) -> String {
    let mut text = String::from(
        "digraph schedd {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", \
         fontname=\"sans-serif\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=9];\n",
    );
    for node in &view.nodes {
        let (fill, border) = colors(tone(node));
        let lines = [title(node), standing(node, view.cycle.is_some())];
        let lines: Vec<String> =
            lines.iter().filter(|line| !line.is_empty()).map(|line| escape(line)).collect();
        let _infallible = writeln!(
            text,
            "  \"{}\" [label=\"{}\", fillcolor=\"{fill}\", color=\"{border}\"];",
            escape(&node.id),
            lines.join("\\n"),
        );
    }
    for edge in &view.edges {
        let style = match (edge.kind, edge.strength) {
            (GraphEdgeKind::Trigger, _) => "dotted",
            (GraphEdgeKind::Dependency, Some(Strength::Weak)) => "dashed",
            (GraphEdgeKind::Dependency, Some(Strength::Strong) | None) => "solid",
        };
        let _infallible = writeln!(
            text,
            "  \"{}\" -> \"{}\" [style={style}, label=\"{}\"];",
            escape(&edge.from),
            escape(&edge.to),
            escape(&label(edge)),
        );
    }
    text.push_str("}\n");
    text
}

/// In a quoted label: no end of it, none of its escapes (`\N`), none of its entities (`&lt;`).
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}
