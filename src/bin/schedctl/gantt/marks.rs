//! What stands for what in a chart, and how words stand in it.

use sched::model::instance::InstanceState;

/// Fills of bars and areas.
pub(super) struct Colors {
    pub(super) waiting: &'static str,
    pub(super) good: &'static str,
    pub(super) bad: &'static str,
    pub(super) busy: &'static str,
    pub(super) held: &'static str,
    pub(super) slots: &'static str,
}

pub(super) const COLORS: Colors = Colors {
    waiting: "#f4c67a",
    good: "#5aa469",
    bad: "#c8553d",
    busy: "#4f86c6",
    held: "#a8a8a8",
    slots: "#9db8d9",
};
/// Of what is late, and of the deadline.
pub(super) const LATE: &str = "#b00020";

/// A bar's fill.
pub(super) const fn color(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Succeeded => COLORS.good,
        InstanceState::Failed | InstanceState::Timeout => COLORS.bad,
        InstanceState::Running => COLORS.busy,
        InstanceState::Pending
        | InstanceState::Blocked
        | InstanceState::Ready
        | InstanceState::Cancelled => COLORS.held,
    }
}

/// Text as it may stand in an element.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no place for them, however they are written.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
