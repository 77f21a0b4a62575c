//! A graph as a picture that needs nothing else: no script, no font, no style from elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sched::model::graph::{GraphEdge, GraphEdgeKind, GraphNode, GraphView};
use sched::model::spec::Strength;

use super::layout::{Arrow, Layout, Place, lay_out};
use super::{colors, cut, label, standing, title, tone};
use crate::xml_text::escaped;

/// Pixels of a cell.
const CELL: (usize, usize) = (8, 15);
/// Pixels around everything.
const MARGIN: usize = 20;
/// Height of a box.
const BOX: usize = 38;
/// Characters of a line in a box.
const CHARACTERS_MAX: usize = 48;
/// Pixels in which a line turns from one height to another.
const TURN: usize = 56;
/// Characters beside an arrow.
const LABEL_MAX: usize = 24;

/// All of it.
pub(crate) fn svg(view: &GraphView) -> String {
    let is_of_cycle = view.cycle.is_some();
    let lines: Vec<[String; 2]> =
        view.nodes.iter().map(|node| [title(node), standing(node, is_of_cycle)]).collect();
    let width = |lines: &[String; 2]| {
        lines.iter().map(|line| line.chars().count().min(CHARACTERS_MAX)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = lines.iter().map(width).collect();
    let places: BTreeMap<&str, usize> =
        view.nodes.iter().enumerate().map(|(at, node)| (node.id.as_str(), at)).collect();
    let arrow = |edge: &GraphEdge| {
        let (from, to) = (*places.get(edge.from.as_str())?, *places.get(edge.to.as_str())?);
        Some(Arrow { from, to, label: cut(&label(edge), LABEL_MAX).chars().count() })
    };
    let (edges, arrows): (Vec<&GraphEdge>, Vec<Arrow>) =
        view.edges.iter().filter_map(|edge| Some((edge, arrow(edge)?))).unzip();
    let layout = lay_out(&widths, &arrows);
    let mut text = head(&layout);
    let mut labels: BTreeMap<usize, usize> = BTreeMap::new();
    for ((edge, arrow), way) in edges.iter().zip(&arrows).zip(&layout.ways) {
        if let (Some(from), Some(to)) = (layout.places.get(arrow.from), layout.places.get(arrow.to))
        {
            line(edge, *from, way, *to, &mut text);
            let above = labels.entry(arrow.to).or_default();
            *above += usize::from(written(edge, *to, *above, &mut text));
        }
    }
    for ((node, lines), place) in view.nodes.iter().zip(&lines).zip(&layout.places) {
        draw(node, lines, *place, &mut text);
    }
    text.push_str("</svg>\n");
    text
}

fn head(layout: &Layout) -> String {
    let width = layout.width * CELL.0 + 2 * MARGIN;
    let height = layout.height.max(1) * CELL.1 + 2 * MARGIN + BOX;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"12\">\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\" fill=\"#57606a\"/></marker>\
         </defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    )
}

/// Middle of a cell's height.
const fn middle(y: usize) -> usize {
    y * CELL.1 + MARGIN + BOX / 2
}

const fn left(x: usize) -> usize {
    x * CELL.0 + MARGIN
}

fn line(edge: &GraphEdge, from: Place, way: &[(usize, usize)], to: Place, text: &mut String) {
    let dashes = match (edge.kind, edge.strength) {
        (GraphEdgeKind::Trigger, _) => " stroke-dasharray=\"2 3\"",
        (GraphEdgeKind::Dependency, Some(Strength::Weak)) => " stroke-dasharray=\"6 4\"",
        (GraphEdgeKind::Dependency, Some(Strength::Strong) | None) => "",
    };
    // Straight on to where its column ends, so that it crosses no box beside its own.
    let mut at = (left(from.column_right), middle(from.line));
    let mut path = format!("M{} {}H{}", left(from.right), at.1, at.0);
    for (x, y) in way {
        let (x, y) = (left(*x), middle(*y));
        let turned = (at.0 + TURN).min(x);
        bend(at, (turned, y), &mut path);
        let _infallible = write!(path, "H{x}");
        at = (x.max(turned), y);
    }
    bend(at, (left(to.left), middle(to.line)), &mut path);
    let _infallible = writeln!(
        text,
        "<g><title>{}</title><path d=\"{path}\" fill=\"none\" stroke=\"#57606a\"{dashes} \
         marker-end=\"url(#tip)\"/></g>",
        escaped(&format!("{} → {} {}", edge.from, edge.to, label(edge))),
    );
}

/// A curve that leaves and arrives level.
fn bend(from: (usize, usize), to: (usize, usize), path: &mut String) {
    let half = usize::midpoint(from.0, to.0);
    let _infallible = write!(path, "C{half} {} {half} {} {} {}", from.1, to.1, to.0, to.1);
}

/// What is special about an edge, before its tip and above those written there already; says
/// whether there was anything.
fn written(edge: &GraphEdge, to: Place, above: usize, text: &mut String) -> bool {
    let words = label(edge);
    if words.is_empty() {
        return false;
    }
    let x = left(to.left).saturating_sub(12);
    let y = middle(to.line).saturating_sub(5 + 12 * above);
    let _infallible = writeln!(
        text,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"10\" text-anchor=\"end\" fill=\"#57606a\" \
         stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
        escaped(&cut(&words, LABEL_MAX)),
    );
    true
}

fn draw(node: &GraphNode, lines: &[String; 2], place: Place, text: &mut String) {
    let (fill, border) = colors(tone(node));
    let (x, width) = (left(place.left), (place.right - place.left) * CELL.0);
    let y = middle(place.line) - BOX / 2;
    let owner = node.owner.as_ref().map_or_else(String::new, |o| format!(", owner {o}"));
    let tip = escaped(&super::clean(&format!("{}: {}{owner}", lines[0], lines[1])));
    let _infallible = writeln!(
        text,
        "<g><title>{tip}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX}\" \
         rx=\"6\" fill=\"{fill}\" stroke=\"{border}\"/>"
    );
    let below = if lines[1].is_empty() { [24, 0] } else { [16, 31] };
    for ((line, down), color) in lines.iter().zip(below).zip(["#1f2328", border]) {
        if !line.is_empty() {
            let _infallible = writeln!(
                text,
                "<text x=\"{}\" y=\"{}\" fill=\"{color}\">{}</text>",
                x + CELL.0,
                y + down,
                escaped(&cut(line, CHARACTERS_MAX)),
            );
        }
    }
    text.push_str("</g>\n");
}
