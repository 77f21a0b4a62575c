//! The daemon, its executors and queues for people.

use std::fmt::Write as _;

use sched::model::priority::Level;
use sched::model::view::{ExecutorView, InstanceView, QueueView, StatusView};

use super::{Field, Tone, clean, dated, instance, pairs, pause, relative, table};
use crate::output::Output;

/// The whole state: daemon, counts, executors, queues, what runs, what failed, bad files.
pub(crate) fn page(
    status: &StatusView,
    running: &[InstanceView],
    failed: &[InstanceView],
    output: &Output,
) -> String {
    let counts = status.instances;
    let mut state = "running".to_owned();
    if status.stopping {
        state = "stopping".to_owned();
    } else if !status.degraded.is_empty() {
        state = "degraded".to_owned();
    }
    let mut page = pairs(&[
        ("schedd", format!("{} {state}, pid {}", status.version, status.pid)),
        ("since", dated(output, Some(status.started_at))),
        ("zone", format!("{}, for tasks that name none", status.timezone)),
        ("tasks", status.tasks.to_string()),
        (
            "instances",
            format!(
                "{} open: {} pending, {} blocked, {} ready, {} running, {} waiting for a retry",
                counts.open,
                counts.pending,
                counts.blocked,
                counts.ready,
                counts.running,
                counts.retrying
            ),
        ),
        (
            "held",
            status.paused.as_ref().map_or_else(String::new, |p| {
                format!("EVERYTHING is {}; schedctl resume --all", pause(p, output.now))
            }),
        ),
    ]);
    for reason in &status.degraded {
        let _infallible = writeln!(page, " degraded: {}", clean(reason));
    }
    if !status.spec_errors.is_empty() {
        page.push_str("\nBad spec files (what they defined before stays in force; of a fault of the set, that task's alone):\n");
        for error in &status.spec_errors {
            let _infallible = writeln!(page, "  {}", clean(&error.to_string()));
        }
    }
    let mut section = |title: &str, body: String| {
        let _infallible = write!(page, "\n{title}\n{body}");
    };
    section("Executors", executors(&status.executors, output));
    section("Queues", queues(&status.queues, output));
    if !running.is_empty() {
        section("Running", instance::list(running, output));
    }
    if !failed.is_empty() {
        section("Failed in the last 24 hours", instance::list(failed, output));
    }
    page
}

/// One row per executor.
pub(crate) fn executors(views: &[ExecutorView], output: &Output) -> String {
    let rows = views.iter().map(|view| {
        let labels: Vec<String> = view.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        vec![
            view.executor_id.as_str().into(),
            if view.connected {
                Field::toned("connected", Tone::Good)
            } else {
                Field::toned("away", Tone::Bad)
            },
            format!("{}/{}", view.running, view.slots).into(),
            view.pid.map_or_else(String::new, |pid| pid.to_string()).into(),
            view.task_types.join(",").into(),
            labels.join(",").into(),
            relative(output.now, view.last_heartbeat_at).into(),
            view.load1.map_or_else(String::new, |load| format!("{load:.2}")).into(),
        ]
    });
    let heads = ["EXECUTOR", "STATE", "SLOTS", "PID", "TYPES", "LABELS", "HEARTBEAT", "LOAD"];
    table(&heads, rows.collect(), output)
}

/// One row per queue.
pub(crate) fn queues(views: &[QueueView], output: &Output) -> String {
    let rows = views.iter().map(|view| {
        let held = view.paused.as_ref();
        vec![
            view.name.as_str().into(),
            view.weight.to_string().into(),
            discipline(view).into(),
            view.ready.to_string().into(),
            view.running.to_string().into(),
            view.max_running.map_or_else(|| "no limit".to_owned(), |n| n.to_string()).into(),
            held.map_or_else(
                || Field::from("open"),
                |p| Field::toned(pause(p, output.now), Tone::Held),
            ),
        ]
    });
    table(
        &["QUEUE", "WEIGHT", "DISCIPLINE", "READY", "RUNNING", "LIMIT", "STATE"],
        rows.collect(),
        output,
    )
}

/// How a queue orders what waits, with the levels' shares if they have any.
fn discipline(view: &QueueView) -> String {
    let Some(weights) = &view.level_weights else { return view.discipline.clone() };
    let shares = Level::ALL.map(|level| weights.of(level).to_string());
    format!("{} {}", view.discipline, shares.join(":"))
}
