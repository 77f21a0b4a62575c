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
