//! Where boxes and arrows of a picture stand: the one door to the layout engine.
//!
//! It works in cells of text; whoever draws says how large a cell is.

use std::collections::BTreeMap;

use ascii_dag::{Direction, EdgePath, Graph};

/// Cells between a column's widest box and the next column, beside those that the engine leaves and
/// those that labels take.
const GAP: usize = 8;

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

/// A layered drawing from left to right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// In the order of the boxes given.
    pub(super) places: Vec<Place>,
    /// Cells that each arrow comes to on its way past other columns, in the order of the arrows
    /// given: it turns to a cell's line at once and runs along it.
    pub(super) ways: Vec<Vec<(usize, usize)>>,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Lays out boxes of these widths and the arrows between them.
pub(super) fn lay_out(widths: &[usize], arrows: &[Arrow]) -> Layout {
    let gap = GAP + arrows.iter().map(|arrow| arrow.label).max().unwrap_or(0);
    let filler = "x".repeat(widths.iter().copied().max().unwrap_or(0) + gap);
    let text = |length: usize| filler.get(..length).unwrap_or(&filler);
    let mut graph = Graph::new();
    graph.set_direction(Direction::LeftRight);
    for (at, width) in widths.iter().enumerate() {
        graph.add_node(at, text(width + gap));
    }
    let sound = |a: &&Arrow| a.from != a.to && a.from.max(a.to) < widths.len();
    for arrow in arrows.iter().filter(sound) {
        graph.add_edge(arrow.from, arrow.to, None);
    }
    let drawn = graph.compute_layout();
    let mut columns: BTreeMap<usize, usize> = BTreeMap::new();
    for node in drawn.nodes() {
        let right = columns.entry(node.level).or_default();
        *right = (node.x + node.width).saturating_sub(gap).max(*right);
    }
    let place = |at: usize| match drawn.node_by_id(at) {
        Some(node) => Place {
            left: node.x,
            right: (node.x + node.width).saturating_sub(gap),
            column_right: columns.get(&node.level).copied().unwrap_or_default(),
            line: node.y,
        },
        None => Place::default(),
    };
    let mut ways: BTreeMap<(usize, usize), &[(usize, usize)]> = BTreeMap::new();
    for edge in drawn.edges() {
        if let EdgePath::MultiSegment { waypoints, .. } = &edge.path {
            ways.insert((edge.from_id, edge.to_id), waypoints);
        }
    }
    let way = |a: &Arrow| ways.get(&(a.from, a.to)).map_or_else(Vec::new, |way| way.to_vec());
    let places: Vec<Place> = (0..widths.len()).map(place).collect();
    Layout {
        ways: arrows.iter().map(way).collect(),
        width: places.iter().map(|place| place.right).max().unwrap_or_default(),
        height: drawn.height(),
        places,
    }
}
