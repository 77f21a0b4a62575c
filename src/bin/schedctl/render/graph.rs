//! A graph for people and for programs that draw. What a spec's author wrote (names, owners,
//! conditions) is text everywhere: each form escapes it in its own way.

use sched::model::graph::{GraphEdge, GraphEdgeKind, GraphNode};
use sched::model::spec::{DepType, Strength};
use sched::model::view::TaskStatus;

use super::{Tone, clean, tone_of};

mod dot;
mod layout;
mod mermaid;
mod svg;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use self::dot::dot;
pub(crate) use self::mermaid::mermaid;
pub(crate) use self::svg::svg;
pub(crate) use self::tree::tree;

/// How a node is to be felt.
fn tone(node: &GraphNode) -> Tone {
    match (&node.instance, node.status) {
        (Some(instance), _) => tone_of(instance.state),
        (None, None) => Tone::Bad,
        (None, Some(TaskStatus::Paused | TaskStatus::Disabled | TaskStatus::Unresolved)) => {
            Tone::Held
        }
        (None, Some(TaskStatus::Active | TaskStatus::Pinned)) => Tone::Plain,
    }
}

/// What a node is called: the task's id, and its name if it has one.
fn title(node: &GraphNode) -> String {
    let name = node.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    clean(&format!("{}{name}", node.task_id))
}

/// How it stands: an instance's state, else what starts the task.
fn standing(node: &GraphNode, is_of_cycle: bool) -> String {
    let text = match (&node.instance, node.status) {
        (Some(instance), _) => {
            let reason = instance.reason.map(|r| format!(" {}", r.as_str())).unwrap_or_default();
            let code = instance.error_code.as_ref().map(|c| format!(" {c}")).unwrap_or_default();
            format!("{}{reason}{code}, cycle {}", instance.state, instance.cycle)
        }
        (None, _) if is_of_cycle => "no run yet".to_owned(),
        (None, None) => "UNRESOLVED: no file defines it".to_owned(),
        (None, Some(TaskStatus::Active)) => node.schedule.clone(),
        (None, Some(status)) => {
            let status = match status {
                TaskStatus::Active => "ACTIVE",
                TaskStatus::Paused => "PAUSED",
                TaskStatus::Pinned => "PINNED",
                TaskStatus::Disabled => "DISABLED",
                TaskStatus::Unresolved => "UNRESOLVED",
            };
            if node.schedule.is_empty() {
                status.to_owned()
            } else {
                format!("{status}, {}", node.schedule)
            }
        }
    };
    clean(&text)
}

/// What is special about an edge; empty: STRONG, SUCCESS, same cycle, no condition.
fn label(edge: &GraphEdge) -> String {
    let mut words = Vec::new();
    if edge.kind == GraphEdgeKind::Trigger {
        let states: Vec<&str> = edge.states.iter().map(|state| state.as_str()).collect();
        words.push(format!("on {}", states.join(", ")));
    }
    if edge.strength == Some(Strength::Weak) {
        words.push("WEAK".to_owned());
    }
    if edge.dep_type == Some(DepType::DataReady) {
        words.push("DATA_READY".to_owned());
    }
    if edge.cycle_offset != 0 {
        words.push(format!("cycle {}", edge.cycle_offset));
    }
    words.extend(edge.when.as_ref().map(|when| format!("when {when}")));
    clean(&words.join(", "))
}

/// Fill and border for pictures.
const fn colors(tone: Tone) -> (&'static str, &'static str) {
    match tone {
        Tone::Plain => ("#f6f8fa", "#57606a"),
        Tone::Good => ("#dafbe1", "#1a7f37"),
        Tone::Bad => ("#ffebe9", "#cf222e"),
        Tone::Busy => ("#ddf4ff", "#0969da"),
        Tone::Held => ("#fff8c5", "#9a6700"),
    }
}

/// Cuts a text for a picture; what is cut is in the picture's tooltip.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}
