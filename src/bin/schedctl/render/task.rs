//! Tasks, coming runs and the ledger for people.

use jiff::tz::TimeZone;
use sched::model::record::{Fire, FireOutcome};
use sched::model::view::{NextFire, TaskStatus, TaskView};
use serde_json::Value;

use super::{Field, Tone, dated, pairs, pause, relative, state, table};
use crate::output::Output;
use crate::{time_text, yaml_text};

/// One row per task.
pub(crate) fn list(views: &[TaskView], output: &Output) -> String {
    let wide = output.is_wide();
    let mut heads = vec!["TASK", "SCHEDULE", "NEXT", "LEFT", "LAST", "RESULT", "STATE"];
    if wide {
        heads.extend(["OWNER", "TYPE", "QUEUE", "PRIORITY", "LABELS", "REVISION", "FILE"]);
    }
    let rows = views.iter().map(|view| {
        let next = view.next_fire_time;
        let last = view.last_instance.as_ref();
        let mut row: Vec<Field> = vec![
            view.task_id.as_str().into(),
            view.schedule.as_str().into(),
            next.map_or_else(String::new, |at| time_text::local(at, &output.zone)).into(),
            relative(output.now, next).into(),
            relative(output.now, last.and_then(|l| l.finished_at.or(l.started_at))).into(),
            last.map_or_else(|| Field::from(""), |l| state(l.state)),
            status(view.status),
        ];
        if wide {
            let labels: Vec<String> = view.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            row.extend([
                Field::from(&view.owner),
                Field::from(&view.task_type),
                view.queue.as_str().into(),
                view.priority.to_string().into(),
                labels.join(",").into(),
                view.revision.to_string().into(),
                Field::from(&view.file),
            ]);
        }
        row
    });
    table(&heads, rows.collect(), output)
}

/// A task's status in its colour.
pub(crate) fn status(status: TaskStatus) -> Field {
    Field::toned(
        status_text(status),
        match status {
            TaskStatus::Active => Tone::Plain,
            TaskStatus::Paused | TaskStatus::Pinned | TaskStatus::Disabled => Tone::Held,
            TaskStatus::Unresolved => Tone::Bad,
        },
    )
}

const fn status_text(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Active => "ACTIVE",
        TaskStatus::Paused => "PAUSED",
        TaskStatus::Pinned => "PINNED",
        TaskStatus::Disabled => "DISABLED",
        TaskStatus::Unresolved => "UNRESOLVED",
    }
}

/// The state of one task.
pub(crate) fn summary(view: &TaskView, output: &Output) -> String {
    let unresolved: Vec<&str> = view.unresolved.iter().map(|id| id.as_str()).collect();
    let labels: Vec<String> = view.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let last = view.last_instance.as_ref().map(|last| {
        let code = last.error_code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
        let at = last.finished_at.or(last.started_at);
        let when = relative(output.now, at);
        format!("{}{code} {when} ({}, cycle {})", last.state, last.instance_id, last.cycle)
    });
    pairs(&[
        ("Task", format!("{} (revision {})", view.task_id, view.revision)),
        ("Status", status_text(view.status).to_owned()),
        ("Paused", view.paused.as_ref().map_or_else(String::new, |p| pause(p, output.now))),
        ("Pinned", pinned(view)),
        ("Errors", errors(view)),
        ("Unknown upstreams", unresolved.join(", ")),
        ("Owner", view.owner.clone()),
        ("Type", view.task_type.clone()),
        ("Queue", format!("{}, priority {}", view.queue, view.priority)),
        ("Schedule", view.schedule.clone()),
        ("Next", dated(output, view.next_fire_time)),
        ("Last", last.unwrap_or_default()),
        ("Labels", labels.join(", ")),
        ("File", view.file.clone()),
        ("Known since", dated(output, Some(view.created_at))),
    ])
}

/// What is wrong with a task's file, and what that means for it.
fn errors(view: &TaskView) -> String {
    if view.spec_errors.is_empty() {
        return String::new();
    }
    let errors: Vec<String> = view.spec_errors.iter().map(ToString::to_string).collect();
    format!("{} (revision {} stays in force)", errors.join("; "), view.revision)
}

/// What a rollback means for a task.
fn pinned(view: &TaskView) -> String {
    if !view.pinned {
        return String::new();
    }
    let (id, revision) = (&view.task_id, view.revision);
    format!("to revision {revision} until schedctl unpin {id}, or until its file changes")
}

/// A definition as YAML, what is null or empty left out: `validate` takes what is shown.
pub(crate) fn definition(spec: &Value) -> String {
    let mut text = String::new();
    tree(spec, 0, &mut text);
    text
}

fn tree(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(_, value)| !is_empty(value)) {
                entry(&format!("{}:", yaml_text::scalar(key)), value, depth, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                entry("-", item, depth, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            entry("", value, depth, out);
        }
    }
}

fn entry(head: &str, value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let text = match value {
        Value::Object(_) | Value::Array(_) if !is_empty(value) => {
            out.push_str(&format!("{indent}{head}\n"));
            tree(value, depth + 1, out);
            return;
        }
        Value::String(text) => yaml_text::block(text, &"  ".repeat(depth + 1))
            .unwrap_or_else(|| yaml_text::scalar(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) | Value::Array(_) => {
            value.to_string()
        }
    };
    out.push_str(&format!("{indent}{head} {text}\n"));
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Coming runs, in UTC too; `zone` instead of each trigger's own.
pub(crate) fn coming(fires: &[NextFire], zone: Option<&TimeZone>, output: &Output) -> String {
    let rows = fires.iter().map(|fire| {
        let at = zone.map_or_else(|| fire.local.clone(), |z| time_text::with_offset(fire.at, z));
        vec![
            Field::from(at),
            time_text::local(fire.at, &TimeZone::UTC).into(),
            relative(output.now, Some(fire.at)).into(),
            fire.task_id.as_str().into(),
            Field::from(&fire.trigger),
            fire.note.as_deref().unwrap_or("").into(),
        ]
    });
    table(&["AT", "UTC", "LEFT", "TASK", "TRIGGER", "NOTE"], rows.collect(), output)
}

/// Rows of the ledger.
pub(crate) fn ledger(fires: &[Fire], output: &Output) -> String {
    let rows = fires.iter().map(|fire| {
        let to = if fire.to == fire.from {
            String::new()
        } else {
            time_text::local(fire.to, &output.zone)
        };
        vec![
            time_text::local(fire.from, &output.zone).into(),
            to.into(),
            fire.count.to_string().into(),
            outcome(fire.outcome),
            fire.instance_id.as_ref().map_or("", |id| id.as_str()).into(),
            Field::from(&fire.trigger),
            fire.reason.as_deref().unwrap_or("").into(),
        ]
    });
    let heads = ["FROM", "TO", "COUNT", "OUTCOME", "INSTANCE", "TRIGGER", "REASON"];
    table(&heads, rows.collect(), output)
}

fn outcome(outcome: FireOutcome) -> Field {
    let (text, tone) = outcome_text(outcome);
    Field::toned(text, tone)
}

/// An outcome as the contract spells it.
pub(crate) const fn outcome_text(outcome: FireOutcome) -> (&'static str, Tone) {
    match outcome {
        FireOutcome::Instance => ("INSTANCE", Tone::Good),
        FireOutcome::SkippedOverlap => ("SKIPPED_OVERLAP", Tone::Held),
        FireOutcome::Missed => ("MISSED", Tone::Bad),
        FireOutcome::Coalesced => ("COALESCED", Tone::Held),
        FireOutcome::Paused => ("PAUSED", Tone::Held),
        FireOutcome::Disabled => ("DISABLED", Tone::Held),
        FireOutcome::Unresolved => ("UNRESOLVED", Tone::Bad),
        FireOutcome::RejectedParams => ("REJECTED_PARAMS", Tone::Bad),
        FireOutcome::Duplicate => ("DUPLICATE", Tone::Held),
        FireOutcome::RolledOutElsewhere => ("ROLLED_OUT_ELSEWHERE", Tone::Plain),
    }
}
