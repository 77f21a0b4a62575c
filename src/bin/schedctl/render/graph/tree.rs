//! A graph as a tree for terminals: from what waits for nothing down to what waits for it. What
//! has several upstreams stands below the first and is referred to below the others.

use std::collections::{BTreeMap, BTreeSet};

use sched::model::graph::{GraphEdge, GraphNode, GraphView};

use super::super::Tone;
use super::{label, standing, title, tone};
use crate::output::Output;

/// One line to come: how far in, over which edge, and whether it is its parent's last.
struct Turn<'a> {
    node: &'a GraphNode,
    edge: Option<&'a GraphEdge>,
    /// What stands before the children of its parent.
    before: String,
    is_last: bool,
}

/// All of it. Goes its way without recursion: a chain may be as long as anybody likes.
pub(crate) fn tree(view: &GraphView, output: &Output) -> String {
    let nodes: BTreeMap<&str, &GraphNode> = view.nodes.iter().map(|n| (n.id.as_str(), n)).collect();
    let mut below: BTreeMap<&str, Vec<&GraphEdge>> = BTreeMap::new();
    let mut has_upstream = BTreeSet::new();
    for edge in view.edges.iter().filter(|edge| nodes.contains_key(edge.from.as_str())) {
        below.entry(&edge.from).or_default().push(edge);
        has_upstream.insert(edge.to.as_str());
    }
    let root = |node| Turn { node, edge: None, before: String::new(), is_last: true };
    let roots = view.nodes.iter().filter(|n| !has_upstream.contains(n.id.as_str()));
    let mut to_come: Vec<Turn<'_>> = roots.rev().map(root).collect();
    let mut shown = BTreeSet::new();
    let mut lines = Vec::new();
    while let Some(turn) = to_come.pop() {
        let id = turn.node.id.as_str();
        let is_new = shown.insert(id);
        let edges = below.get(id).map_or(&[][..], Vec::as_slice);
        lines.push(line(&turn, is_new || edges.is_empty(), view.cycle.is_some(), output));
        if !is_new {
            continue;
        }
        let before = match (turn.edge, turn.is_last) {
            (None, _) => String::new(),
            (Some(_), true) => format!("{}   ", turn.before),
            (Some(_), false) => format!("{}│  ", turn.before),
        };
        let children = edges.iter().enumerate().filter_map(|(at, edge)| {
            let node = nodes.get(edge.to.as_str())?;
            let is_last = at + 1 == edges.len();
            Some(Turn { node, edge: Some(edge), before: before.clone(), is_last })
        });
        let children: Vec<Turn<'_>> = children.collect();
        to_come.extend(children.into_iter().rev());
    }
    lines.join("\n")
}

fn line(turn: &Turn<'_>, is_whole: bool, is_of_cycle: bool, output: &Output) -> String {
    let branch = match (turn.edge, turn.is_last) {
        (None, _) => String::new(),
        (Some(_), true) => format!("{}└─ ", turn.before),
        (Some(_), false) => format!("{}├─ ", turn.before),
    };
    let special = turn.edge.map(label).filter(|text| !text.is_empty());
    let special = special.map_or_else(String::new, |text| format!("[{text}] "));
    let name = title(turn.node);
    if !is_whole {
        return format!("{branch}{special}{name} (its own are shown above)");
    }
    let standing = standing(turn.node, is_of_cycle);
    let standing = if standing.is_empty() { standing } else { format!("  {standing}") };
    let id = turn.node.instance.as_ref().map(|i| format!(" {}", i.instance_id)).unwrap_or_default();
    format!("{branch}{special}{name}{id}{}", painted(&standing, tone(turn.node), output))
}

fn painted(text: &str, tone: Tone, output: &Output) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Good => 32,
        Tone::Bad => 31,
        Tone::Busy => 36,
        Tone::Held => 33,
    };
    if output.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}
