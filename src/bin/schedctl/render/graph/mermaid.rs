//! A graph as a Mermaid flowchart.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sched::model::graph::{GraphEdgeKind, GraphView};
use sched::model::spec::Strength;

use super::super::Tone;
use super::{colors, label, standing, title, tone};

/// All of it. Nodes are numbered: ids may hold words that Mermaid takes for its own (`end`).
pub(crate) fn mermaid(view: &GraphView) -> String {
    let mut text = String::from("flowchart LR\n");
    let places: BTreeMap<&str, usize> =
        view.nodes.iter().enumerate().map(|(at, node)| (node.id.as_str(), at)).collect();
    for (at, node) in view.nodes.iter().enumerate() {
        let lines = [title(node), standing(node, view.cycle.is_some())];
        let lines: Vec<String> =
            lines.iter().filter(|line| !line.is_empty()).map(|line| escape(line)).collect();
        let class = class(tone(node));
        let _infallible = writeln!(text, "  n{at}[\"{}\"]:::{class}", lines.join("<br/>"));
    }
    for edge in &view.edges {
        let ends = (places.get(edge.from.as_str()), places.get(edge.to.as_str()));
        let (Some(from), Some(to)) = ends else { continue };
        let arrow = match (edge.kind, edge.strength) {
            (GraphEdgeKind::Trigger, _) => "==>",
            (GraphEdgeKind::Dependency, Some(Strength::Weak)) => "-.->",
            (GraphEdgeKind::Dependency, Some(Strength::Strong) | None) => "-->",
        };
        let label = escape(&label(edge));
        let label = if label.is_empty() { label } else { format!("|\"{label}\"|") };
        let _infallible = writeln!(text, "  n{from} {arrow}{label} n{to}");
    }
    for tone in [Tone::Plain, Tone::Good, Tone::Bad, Tone::Busy, Tone::Held] {
        let (fill, border) = colors(tone);
        let class = class(tone);
        let _infallible =
            writeln!(text, "  classDef {class} fill:{fill},stroke:{border},color:#1f2328");
    }
    text
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Busy => "busy",
        Tone::Held => "held",
    }
}

/// In a quoted label: Mermaid's own entities for all that could end it or be taken for markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | ';' | '|' | '{' | '}' | '[' | ']' | '('
            | ')' | '*' | '_' | '~' => {
                let _infallible = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
