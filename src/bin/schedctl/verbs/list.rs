//! `list`: tasks, picked by glob, label and last result.

use sched::access::client::Target;
use sched::model::instance::InstanceState;
use sched::model::view::TaskView;
use serde_json::value::RawValue;

use crate::cli::ListArgs;
use crate::exit::{Exit, Failure};
use crate::render;
use crate::session::{Session, read_row};

/// Shows the tasks that the arguments pick.
pub(crate) fn list(session: &Session, args: &ListArgs) -> Result<Exit, Failure> {
    let answer = session.get(&Target::new("/tasks"))?;
    let rows: Vec<&RawValue> = answer.json()?;
    let picks_all = args.globs.is_empty() && args.label.is_empty() && !args.failed;
    if picks_all && session.output.is_json() && !args.quiet {
        session.output.json_list(&rows)?;
        return Ok(Exit::Good);
    }
    let mut views = Vec::new();
    let mut picked = Vec::new();
    for row in rows {
        let view: TaskView = read_row(row)?;
        if picks(args, &view) {
            views.push(view);
            picked.push(row);
        }
    }
    if args.quiet {
        for view in &views {
            session.output.line(view.task_id.as_str())?;
        }
    } else if session.output.is_json() {
        session.output.json_list(&picked)?;
    } else if views.is_empty() {
        session.output.note(if picks_all { "no tasks" } else { "no task matches" });
    } else {
        session.output.line(&render::task::list(&views, &session.output))?;
        session.warn_if_all_is_paused()?;
    }
    Ok(Exit::Good)
}

fn picks(args: &ListArgs, view: &TaskView) -> bool {
    let id = view.task_id.as_str();
    let by_name = args.globs.is_empty() || args.globs.iter().any(|glob| glob.matches(id));
    let by_label = args.label.iter().all(|(key, value)| view.labels.get(key) == Some(value));
    let last = view.last_instance.as_ref().map(|last| last.state);
    let by_result =
        !args.failed || matches!(last, Some(InstanceState::Failed | InstanceState::Timeout));
    by_name && by_label && by_result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::tests::task_view;

    #[test]
    fn globs_are_alternatives_labels_and_failed_are_conditions() {
        let view = task_view("order.settle.v2", Some(InstanceState::Failed));
        let glob = |text: &str| glob::Pattern::new(text).unwrap();
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let args = |globs: Vec<glob::Pattern>, failed, label| ListArgs {
            globs,
            failed,
            label,
            quiet: false,
        };
        assert!(picks(&args(vec![], false, vec![]), &view));
        assert!(picks(&args(vec![glob("x.*"), glob("order.*")], true, vec![]), &view));
        assert!(!picks(&args(vec![glob("x.*")], false, vec![]), &view));
        assert!(picks(&args(vec![], false, vec![label("line", "retail")]), &view));
        let two = vec![label("line", "retail"), label("tier", "1")];
        assert!(!picks(&args(vec![], false, two), &view));
        let well = task_view("order.settle.v2", Some(InstanceState::Succeeded));
        assert!(!picks(&args(vec![], true, vec![]), &well));
        assert!(!picks(&args(vec![], true, vec![]), &task_view("a.b.v1", None)));
    }
}
