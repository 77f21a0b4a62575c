//! Revisions of definitions, and what a change of them would mean, for people.

use std::fmt::Write as _;

use sched::model::plan::{FieldChange, RevisionView, TaskChange, TaskPlan};
use sched::model::time::Timestamp;

use super::{Field, Tone, clean, dated, table};
use crate::output::Output;

/// Keys that a table's row names.
const NAMED_MAX: usize = 3;

/// One row per revision.
pub(crate) fn revisions(views: &[RevisionView], output: &Output) -> String {
    let rows = views.iter().enumerate().map(|(at, view)| {
        vec![
            view.revision.to_string().into(),
            dated(output, Some(view.loaded_at)).into(),
            by(view).into(),
            Field::from(&view.file),
            state(view),
            // The first one has nothing to differ from.
            if at == 0 { Field::from("") } else { in_short(&view.changes).into() },
        ]
    });
    table(&["REVISION", "LOADED", "BY", "FILE", "STATE", "CHANGES"], rows.collect(), output)
}

fn by(view: &RevisionView) -> String {
    view.uid.map_or_else(String::new, |uid| format!("uid {uid}"))
}

fn state(view: &RevisionView) -> Field {
    match (view.active, view.pinned) {
        (true, true) => Field::toned("PINNED", Tone::Held),
        (true, false) => Field::toned("ACTIVE", Tone::Good),
        (false, _) => Field::from(""),
    }
}

/// The keys that changed; after a removal the same definition can come again.
fn in_short(changes: &[FieldChange]) -> String {
    if changes.is_empty() {
        return "none".to_owned();
    }
    let named: Vec<&str> = changes.iter().take(NAMED_MAX).map(|c| c.path.as_str()).collect();
    let more = changes.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// One revision in one line.
pub(crate) fn in_one_line(view: &RevisionView, output: &Output) -> String {
    let loaded = dated(output, Some(view.loaded_at));
    let by = by(view);
    let by = if by.is_empty() { by } else { format!(" by {by}") };
    clean(&format!(
        "revision {}, loaded {loaded} from {}{by}; changed: {}",
        view.revision,
        view.file,
        in_short(&view.changes)
    ))
}

/// Every revision with what it changed, field by field.
pub(crate) fn diffs(views: &[RevisionView]) -> String {
    let mut text = String::new();
    for (at, view) in views.iter().enumerate() {
        let mark = match (view.active, view.pinned) {
            (true, true) => ", pinned",
            (true, false) => ", active",
            (false, _) => "",
        };
        let what = match (at, view.changes.is_empty()) {
            (0, _) => ": the first",
            (_, true) => ": no difference",
            (_, false) => ":",
        };
        let _infallible = writeln!(text, "revision {}{mark}{what}", view.revision);
        text.push_str(&changes(&view.changes, "  "));
    }
    text
}

/// One line per field: `path: from -> to`.
pub(crate) fn changes(changes: &[FieldChange], indent: &str) -> String {
    let mut text = String::new();
    for FieldChange { path, from, to } in changes {
        let line = clean(&format!("{path}: {from} -> {to}"));
        let _infallible = writeln!(text, "{indent}{line}");
    }
    text
}

/// What would happen to each task.
pub(crate) fn plan(tasks: &[TaskPlan], output: &Output) -> String {
    let mut text = String::new();
    for task in tasks {
        let (mark, what) = match task.change {
            TaskChange::Added => ('+', "added by"),
            TaskChange::Changed => ('~', "changed by"),
            TaskChange::Moved => ('>', "moved to"),
            TaskChange::Removed => ('-', "removed with"),
            TaskChange::Ignored => ('=', "pinned, so it ignores"),
        };
        let line = clean(&format!("{} {what} {}", task.task_id, task.file));
        let _infallible = writeln!(text, "{mark} {line}");
        text.push_str(&changes(&task.changes, "    "));
        for line in consequences(task, output) {
            let _infallible = writeln!(text, "    {}", clean(&line));
        }
    }
    text
}

fn consequences(task: &TaskPlan, output: &Output) -> Vec<String> {
    let mut lines = Vec::new();
    if task.next_fire_time != task.next_fire_time_after {
        let text = |at: Option<Timestamp>| {
            at.map_or_else(|| "none".to_owned(), |at| dated(output, Some(at)))
        };
        let (before, after) = (text(task.next_fire_time), text(task.next_fire_time_after));
        lines.push(format!("next fire: {before} -> {after}"));
    }
    let list = |ids: Vec<&str>| ids.join(", ");
    if !task.unresolved.is_empty() {
        let ids = list(task.unresolved.iter().map(|id| id.as_str()).collect());
        lines.push(format!("waits for what no file defines: {ids}"));
    }
    if !task.broken_dependents.is_empty() {
        let ids = list(task.broken_dependents.iter().map(|id| id.as_str()).collect());
        lines.push(format!("{ids} would wait for what no file defines"));
    }
    if !task.instances.is_empty() {
        let ids = list(task.instances.iter().map(|id| id.as_str()).collect());
        let what = match task.change {
            TaskChange::Removed => "would finish with the last definition",
            TaskChange::Added | TaskChange::Changed | TaskChange::Moved | TaskChange::Ignored => {
                "would follow it if not yet started"
            }
        };
        lines.push(format!("open instances that {what}: {ids}"));
    }
    lines
}
