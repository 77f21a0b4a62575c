//! Instances for people.

use std::time::Duration;

use sched::model::instance::{Attempt, Cause, InstanceState, Reason};
use sched::model::spec::{DepType, Strength};
use sched::model::time::Timestamp;
use sched::model::view::InstanceView;

use super::{Field, dated, pairs, pause, relative, state, table};
use crate::output::Output;
use crate::time_text;

/// One row per instance.
pub(crate) fn list(views: &[InstanceView], output: &Output) -> String {
    let wide = output.is_wide();
    let mut heads = vec!["INSTANCE", "TASK", "CYCLE", "STATE", "REASON", "ATTEMPT", "AGE", "TOOK"];
    if wide {
        heads.extend(["QUEUE", "PRIORITY", "TRIGGER", "EXECUTOR", "SCHEDULED"]);
    }
    let rows = views.iter().map(|view| {
        let mut row: Vec<Field> = vec![
            view.instance_id.as_str().into(),
            view.task_id.as_str().into(),
            view.cycle.as_str().into(),
            state(view.state),
            why(view, output.now).into(),
            attempt_text(view).replace(" of ", "/").into(),
            relative(output.now, Some(view.created_at)).into(),
            took(view, output.now).into(),
        ];
        if wide {
            row.extend([
                Field::from(view.queue.as_str()),
                priority(view).into(),
                view.trigger.kind().into(),
                view.executor_id.as_ref().map_or("", |id| id.as_str()).into(),
                time_text::local(view.scheduled_time, &output.zone).into(),
            ]);
        }
        row
    });
    table(&heads, rows.collect(), output)
}

/// Why it is where it is, in a word or two.
pub(crate) fn why(view: &InstanceView, now: Timestamp) -> String {
    let mut words = Vec::new();
    words.extend(view.error_code.clone());
    match (view.reason, view.next_retry_at) {
        (_, Some(at)) => words.push(format!("retry {}", time_text::relative(now, at))),
        (Some(reason), None) => words.push(reason.as_str().to_owned()),
        (None, None) => {}
    }
    // What waits for something else, and is held besides, will not start when that comes.
    if view.paused.is_some() && !matches!(view.reason, Some(Reason::Paused | Reason::Frozen)) {
        words.push(Reason::Paused.as_str().to_owned());
    }
    words.join(", ")
}

/// Whether it has ended for good.
pub(crate) const fn is_over(view: &InstanceView) -> bool {
    match view.state {
        InstanceState::Succeeded | InstanceState::Cancelled => true,
        InstanceState::Failed | InstanceState::Timeout => view.next_retry_at.is_none(),
        InstanceState::Pending
        | InstanceState::Blocked
        | InstanceState::Ready
        | InstanceState::Running => false,
    }
}

fn took(view: &InstanceView, now: Timestamp) -> String {
    match (view.duration_ms, view.started_at, view.state) {
        (_, Some(started), InstanceState::Running) => time_text::short(now.since(started)),
        (Some(ms), _, _) => time_text::short(Duration::from_millis(ms)),
        (None, _, _) => String::new(),
    }
}

fn priority(view: &InstanceView) -> String {
    if view.priority == view.effective_priority {
        view.priority.to_string()
    } else {
        format!("{} (acts as {})", view.priority, view.effective_priority)
    }
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Cron { expr } => format!("cron {expr}"),
        Cause::Every { period_ms } => {
            format!("every {}", time_text::short(Duration::from_millis(*period_ms)))
        }
        Cause::Boot => "boot".to_owned(),
        Cause::File { path } => format!("file {path}"),
        Cause::Event { name, .. } => format!("event {name}"),
        Cause::Task { task_id, instance_id, state } => {
            format!("task {task_id} ({instance_id}) became {state}")
        }
        Cause::Submit { uid } => format!("submitted by uid {uid}"),
        Cause::Backfill { uid, trigger: Some(trigger) } => {
            format!("backfilled by uid {uid} for {trigger}")
        }
        Cause::Backfill { uid, trigger: None } => format!("backfilled by uid {uid}"),
        Cause::Wave { root } => format!("wave of {root}"),
    }
}

/// All of one instance.
pub(crate) fn page(view: &InstanceView, output: &Output) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let json = |map: &sched::model::spec::JsonMap| {
        if map.is_empty() {
            String::new()
        } else {
            serde_json::Value::from(map.clone()).to_string()
        }
    };
    let number = |n: Option<i32>| n.map_or_else(String::new, |n| n.to_string());
    let mut page = pairs(&[
        ("Instance", view.instance_id.to_string()),
        ("Task", format!("{} (revision {})", view.task_id, view.revision)),
        ("State", view.state.to_string()),
        ("Reason", why(view, output.now)),
        ("Message", text(&view.message)),
        ("Paused", view.paused.as_ref().map_or_else(String::new, |p| pause(p, output.now))),
        ("Cycle", format!("{} (date {})", view.cycle, view.date)),
        ("Trigger", cause(&view.trigger)),
        ("Root", view.root.to_string()),
        ("Queue", format!("{}, priority {}", view.queue, priority(view))),
        ("Executor", view.executor_id.as_ref().map_or_else(String::new, ToString::to_string)),
        ("Scheduled", dated(output, Some(view.scheduled_time))),
        ("Created", dated(output, Some(view.created_at))),
        ("Ready", dated(output, view.ready_at)),
        ("Started", dated(output, view.started_at)),
        ("Finished", dated(output, view.finished_at)),
        ("Took", took(view, output.now)),
        ("Attempt", attempt_text(view)),
        ("Exit code", number(view.exit_code)),
        ("Signal", number(view.signal)),
        ("Degraded", if view.degraded { "yes".to_owned() } else { String::new() }),
        ("Dedup key", text(&view.dedup_key)),
        ("Static params", json(&view.static_params)),
        ("Params", json(&view.runtime_params)),
        ("Output", view.output.as_ref().map_or_else(String::new, ToString::to_string)),
    ]);
    if !view.dependencies.is_empty() {
        page.push('\n');
        page.push_str(&dependencies(view, output));
    }
    if !view.attempts.is_empty() {
        page.push('\n');
        page.push_str(&attempts(&view.attempts, output));
    }
    page
}

fn dependencies(view: &InstanceView, output: &Output) -> String {
    let rows = view.dependencies.iter().map(|edge| {
        vec![
            edge.task_id.as_str().into(),
            edge_kind(edge.strength, edge.dep_type).into(),
            edge.instance_id.as_ref().map_or("(none yet)", |id| id.as_str()).into(),
            edge.state.map_or_else(|| Field::from(""), state),
            if edge.satisfied { "yes" } else { "no" }.into(),
        ]
    });
    table(&["WAITS FOR", "EDGE", "INSTANCE", "STATE", "SATISFIED"], rows.collect(), output)
}

const fn edge_kind(strength: Strength, dep_type: DepType) -> &'static str {
    match (strength, dep_type) {
        (Strength::Strong, DepType::Success) => "STRONG SUCCESS",
        (Strength::Strong, DepType::DataReady) => "STRONG DATA_READY",
        (Strength::Weak, DepType::Success) => "WEAK SUCCESS",
        (Strength::Weak, DepType::DataReady) => "WEAK DATA_READY",
    }
}

/// Attempts lost with an executor are tried again beyond the number allowed: then it says nothing.
fn attempt_text(view: &InstanceView) -> String {
    if view.attempt > view.max_attempts {
        return view.attempt.to_string();
    }
    format!("{} of {}", view.attempt, view.max_attempts)
}

fn attempts(attempts: &[Attempt], output: &Output) -> String {
    let rows = attempts.iter().map(|attempt| {
        let mut took = match (attempt.started_at, attempt.finished_at) {
            (Some(start), Some(end)) => time_text::short(end.since(start)),
            _ => String::new(),
        };
        if let Some(ms) = attempt.frozen_ms {
            let frozen = time_text::short(Duration::from_millis(ms));
            took = format!("{took} ({frozen} frozen)").trim_start().to_owned();
        }
        let cpu = attempt.user_ms.zip(attempt.system_ms);
        let cpu = cpu.map(|(user, system)| time_text::short(Duration::from_millis(user + system)));
        let ended = match (&attempt.error_code, attempt.exit_code, attempt.finished_at) {
            (Some(code), _, _) => code.clone(),
            (None, Some(status), _) => format!("exit {status}"),
            (None, None, Some(_)) => "ended".to_owned(),
            (None, None, None) => "on".to_owned(),
        };
        vec![
            attempt.attempt.to_string().into(),
            attempt.executor_id.as_str().into(),
            dated(output, attempt.started_at).into(),
            took.into(),
            ended.into(),
            cpu.unwrap_or_default().into(),
            attempt.max_rss_bytes.map_or_else(String::new, bytes).into(),
            attempt.output_bytes.map_or_else(String::new, bytes).into(),
        ]
    });
    let heads = ["ATTEMPT", "EXECUTOR", "STARTED", "TOOK", "END", "CPU", "MEMORY", "OUTPUT"];
    table(&heads, rows.collect(), output)
}

/// `17B`, `3.4Ki`, `512Mi`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    match UNITS.into_iter().find(|(_, size)| n >= *size) {
        Some((unit, size)) => {
            let tenths = u128::from(n) * 10 / u128::from(size);
            match tenths % 10 {
                0 => format!("{}{unit}", tenths / 10),
                _ if tenths >= 1000 => format!("{}{unit}", tenths / 10),
                tenth => format!("{}.{tenth}{unit}", tenths / 10),
            }
        }
        None => format!("{n}B"),
    }
}
