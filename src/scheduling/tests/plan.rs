//! `schedctl plan`: what files would change, and that it changes nothing.

use super::bench::Bench;
use super::build::{after, broken, every, file, id, task};
use crate::model::event::SpecFile;
use crate::model::plan::{PlanView, TaskChange, TaskPlan};
use crate::model::request::{Reply, Request};
use crate::model::spec::{Misfire, Overlap, TaskSpec};
use crate::model::time::Timestamp;

fn plan(bench: &mut Bench, files: Vec<SpecFile>, whole: bool) -> PlanView {
    let before = bench.log.len();
    let Ok(Reply::Plan(view)) = bench.ask(Request::Plan { files, whole }).0 else {
        panic!("no plan")
    };
    assert_eq!(bench.log.len(), before, "a plan is a question");
    *view
}

fn changes(view: &PlanView) -> Vec<(&str, TaskChange)> {
    view.tasks.iter().map(|t| (t.task_id.as_str(), t.change)).collect()
}

fn of<'a>(view: &'a PlanView, name: &str) -> &'a TaskPlan {
    view.tasks.iter().find(|t| t.task_id == id(name)).expect("the task is in the plan")
}

#[test]
fn files_that_join_the_directory_add_change_move_and_remove_what_they_define() {
    let mut bench = Bench::new(vec![task("same"), task("moved"), task("edited"), task("gone")]);
    let edited = TaskSpec { timeout: Some(std::time::Duration::from_secs(5)), ..task("edited") };
    let files = vec![
        file("same.v1.yaml", vec![task("same")]),
        file("edited.v1.yaml", vec![edited]),
        file("gone.v1.yaml", vec![task("new")]),
        file("moved.v1.yaml", Vec::new()),
        file("other.yaml", vec![task("moved")]),
    ];
    let view = plan(&mut bench, files, false);
    assert_eq!(
        changes(&view),
        [
            ("edited.v1", TaskChange::Changed),
            ("gone.v1", TaskChange::Removed),
            ("moved.v1", TaskChange::Moved),
            ("new.v1", TaskChange::Added),
        ]
    );
    assert_eq!(view.errors, []);
    let fields: Vec<&str> = of(&view, "edited").changes.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(fields, ["timeoutMs"]);
    assert_eq!(of(&view, "moved").file, "other.yaml");
}

#[test]
fn as_the_whole_directory_they_remove_what_they_lack_and_break_what_hangs_on_it() {
    let mut bench = Bench::new(vec![task("up"), after("down", &["up"]), task("other")]);
    let up = bench.run("up");
    let files = vec![file("down.v1.yaml", vec![after("down", &["up"])])];
    let view = plan(&mut bench, files, true);
    assert_eq!(changes(&view), [("other.v1", TaskChange::Removed), ("up.v1", TaskChange::Removed)]);
    assert_eq!(of(&view, "up").broken_dependents, [id("down")]);
    assert_eq!(of(&view, "up").instances, [up]);
}

#[test]
fn a_moved_fire_an_unknown_upstream_and_the_instances_that_follow_are_named() {
    let timed = |seconds| TaskSpec {
        triggers: vec![every(seconds, Misfire::RunOnce, Overlap::Queue)],
        max_concurrent: Some(1),
        ..task("a")
    };
    let mut bench = Bench::new(vec![timed(600)]);
    bench.run("a");
    let waiting = bench.run("a");
    let later = TaskSpec { depends_on: after("a", &["nobody"]).depends_on, ..timed(3600) };
    let view = plan(&mut bench, vec![file("a.v1.yaml", vec![later])], false);
    let midnight = bench.now.as_millis();
    let at = |seconds: i64| Some(Timestamp::from_millis(midnight + seconds * 1000));
    let a = of(&view, "a");
    assert_eq!((a.next_fire_time, a.next_fire_time_after), (at(600), at(3600)));
    assert_eq!(a.unresolved, [id("nobody")]);
    assert_eq!(a.instances, [waiting]);
}

#[test]
fn faults_of_a_file_and_of_the_set_are_told_and_the_rest_is_planned() {
    let mut bench = Bench::new(vec![task("a"), after("b", &["a"])]);
    let files = vec![
        broken("x.yaml"),
        file("a.v1.yaml", vec![after("a", &["b"])]),
        file("twin.yaml", vec![task("b")]),
        file("new.yaml", vec![task("new")]),
    ];
    let view = plan(&mut bench, files, false);
    assert_eq!(changes(&view), [("new.v1", TaskChange::Added)]);
    let files: Vec<&str> = view.errors.iter().map(|e| e.file.as_str()).collect();
    assert_eq!(files, ["a.v1.yaml", "twin.yaml", "x.yaml"]);
    assert!(view.errors[0].message.contains("a.v1 -> b.v1 -> a.v1"));
    // The set is what it was.
    bench.run("a");
    assert_eq!(bench.of("b").len(), 1);
}
