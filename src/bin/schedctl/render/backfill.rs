//! What became of a range of past cycles, for people.

use sched::model::backfill::{Backfilled, CycleFill, MadeBelow, SkipReason, Skipped};

use super::{Field, Tone, clean, counted, table};
use crate::output::Output;
use crate::time_text;

/// Tasks that a table's row names.
const NAMED_MAX: usize = 3;

/// One row per nominal time.
pub(crate) fn cycles(fills: &[CycleFill], output: &Output) -> String {
    let rows = fills.iter().map(|fill| {
        vec![
            Field::from(&fill.cycle),
            time_text::local(fill.scheduled_time, &output.zone).into(),
            fill.instance_id.as_ref().map_or_else(String::new, ToString::to_string).into(),
            below(&fill.downstream).into(),
            skipped(fill.skipped.as_ref()),
        ]
    });
    table(&["CYCLE", "SCHEDULED", "INSTANCE", "DOWNSTREAM", "SKIPPED"], rows.collect(), output)
}

fn below(made: &[MadeBelow]) -> String {
    let named: Vec<&str> = made.iter().take(NAMED_MAX).map(|m| m.task_id.as_str()).collect();
    let more = made.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

fn skipped(skipped: Option<&Skipped>) -> Field {
    let Some(Skipped { reason, instance_id }) = skipped else { return Field::from("") };
    let (text, tone) = match reason {
        SkipReason::Succeeded => (format!("{instance_id} has SUCCEEDED"), Tone::Good),
        SkipReason::Open => (format!("{instance_id} is open"), Tone::Busy),
        SkipReason::Duplicate => (format!("{instance_id} has its dedupKey"), Tone::Held),
    };
    Field::toned(text, tone)
}

/// How much it was, and what of the range was not looked at.
pub(crate) fn summary(
    task: &str,
    filled: &Backfilled,
    dry_run: bool,
    output: &Output,
) -> Vec<String> {
    let Backfilled { from, to, .. } = filled;
    let (made, would) = if dry_run { ("would be made", "would ") } else { ("made", "") };
    let mut lines = Vec::new();
    if filled.cycles.is_empty() {
        lines.push(format!("no nominal time of {task} in {from} to {to} has come: nothing {made}"));
    } else {
        let below: usize = filled.cycles.iter().map(|fill| fill.downstream.len()).sum();
        let skipped = filled.cycles.iter().filter(|fill| fill.skipped.is_some()).count();
        let instances = counted(filled.instances.len(), "instance");
        let skip = if dry_run { "be skipped" } else { "skipped" };
        lines.push(format!(
            "{from} to {to}: {instances} of {task} {made}, and {below} downstream; {skipped} {would}{skip}"
        ));
    }
    if let Some(at) = filled.not_due_from {
        let at = time_text::local(at, &output.zone);
        lines.push(format!("from {at} on nothing is due yet: that is left to its own time"));
    }
    lines.iter().map(|line| clean(line)).collect()
}
