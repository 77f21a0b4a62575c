//! Where boxes and arrows of a picture stand: the one door to the layout engine.
//!
//! It works in cells of text; whoever draws says how large a cell is.

use std::collections::BTreeMap;

use ascii_dag::{Direction, EdgePath, Graph};

/// Cells between a column's widest box and the next column, beside those that the engine leaves.
const GAP: usize = 6;

/// A box: its left edge, its right edge, its column's right edge, its line, in cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) column_right: usize,
    pub(super) line: usize,
}

/// An arrow: two positions of boxes, and the length of what is written beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: usize,
}

/// How an arrow goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// Cells that it passes through between its boxes.
    pub(super) through: Vec<(usize, usize)>,
    /// Where its label begins.
    pub(super) label: (usize, usize),
}

/// A layered drawing from left to right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// In the order of the boxes given.
    pub(super) places: Vec<Place>,
    /// In the order of the arrows given; those of two boxes that are none go nowhere.
    pub(super) ways: Vec<Way>,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Lays out boxes of these widths and the arrows between them.
pub(super) fn lay_out(widths: &[usize], arrows: &[Arrow]) -> Layout {
    let longest = arrows.iter().map(|arrow| arrow.label).chain(widths.iter().copied()).max();
    let filler = "x".repeat(longest.unwrap_or(0) + GAP);
    let text = |length: usize| filler.get(..length).unwrap_or(&filler);
    let mut graph = Graph::new();
    graph.set_direction(Direction::LeftRight);
    for (at, width) in widths.iter().enumerate() {
        graph.add_node(at, text(width + GAP));
    }
    let sound = |a: &&Arrow| a.from != a.to && a.from.max(a.to) < widths.len();
    for arrow in arrows.iter().filter(sound) {
        graph.add_edge(arrow.from, arrow.to, (arrow.label > 0).then(|| text(arrow.label)));
    }
    let drawn = graph.compute_layout();
    let mut columns: BTreeMap<usize, usize> = BTreeMap::new();
    for node in drawn.nodes() {
        let right = columns.entry(node.level).or_default();
        *right = (node.x + node.width).saturating_sub(GAP).max(*right);
    }
    let place = |at: usize| match drawn.node_by_id(at) {
        Some(node) => Place {
            left: node.x,
            right: (node.x + node.width).saturating_sub(GAP),
            column_right: columns.get(&node.level).copied().unwrap_or_default(),
            line: node.y,
        },
        None => Place::default(),
    };
    let mut ways: BTreeMap<(usize, usize), Vec<Way>> = BTreeMap::new();
    for edge in drawn.edges().iter().rev() {
        let through = match &edge.path {
            EdgePath::MultiSegment { waypoints, .. } => waypoints.clone(),
            EdgePath::Direct
            | EdgePath::Corner { .. }
            | EdgePath::SideChannel { .. }
            | EdgePath::Spline { .. }
            | _ => Vec::new(),
        };
        let label = (edge.label_x, edge.label_y);
        ways.entry((edge.from_id, edge.to_id)).or_default().push(Way { through, label });
    }
    let mut way = |a: &Arrow| ways.get_mut(&(a.from, a.to)).and_then(Vec::pop).unwrap_or_default();
    Layout {
        places: (0..widths.len()).map(place).collect(),
        ways: arrows.iter().map(&mut way).collect(),
        width: drawn.width(),
        height: drawn.height(),
    }
}
