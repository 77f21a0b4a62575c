//! A set of files checked without a daemon.

use super::super::check_set;
use super::build::{after, edge, file, id, on, on_event, task};
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::event::{SpecError, SpecFile};
use crate::model::spec::{DepType, Dependency, Strength, TaskSpec, TaskTrigger, TriggerKind};

fn files(specs: Vec<TaskSpec>) -> Vec<SpecFile> {
    specs.into_iter().map(|s| file(&format!("{}.yaml", s.task_id), vec![s])).collect()
}

fn texts(found: &[SpecError]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sound_set_has_no_faults() {
    let found = check_set(files(vec![task("a"), after("b", &["a"]), after("c", &["a", "b"])]));
    assert_eq!((texts(&found.errors), texts(&found.warnings)), (Vec::new(), Vec::new()));
}

#[test]
fn a_cycle_is_named_by_its_path_in_each_file_that_closes_it() {
    let found = check_set(files(vec![after("a", &["c"]), after("b", &["a"]), after("c", &["b"])]));
    let text = "dependsOn: closes the cycle a.v1 -> b.v1 -> c.v1 -> a.v1; the graph must have none";
    let wanted = ["a", "b", "c"].map(|name| format!("{name}.v1.yaml: {text}"));
    assert_eq!(texts(&found.errors), wanted);
}

#[test]
fn two_files_with_one_id_and_a_run_with_two_roots_are_refused() {
    let roots = [on_event("f", "one"), on_event("g", "two"), after("m", &["f", "g"])];
    let mut set = files(roots.into());
    set.push(file("twin.yaml", vec![task("f")]));
    let found = check_set(set);
    let named: Vec<&str> = found.errors.iter().map(|e| e.file.as_str()).collect();
    assert_eq!(named, ["m.v1.yaml", "twin.yaml"]);
    // Neither of the two files is in force.
    let message = "task f.v1 is defined in f.v1.yaml too; give this one another id or remove one of \
                   the two";
    assert_eq!(found.errors[1].message, message);
}

#[test]
fn what_is_accepted_but_surprises_is_warned_of() {
    let hourly = CycleRule { unit: CycleUnit::Hour, offset: 0 };
    let root = TaskSpec { cycle: Some(hourly), ..on_event("root", "go") };
    let daily = TaskSpec { cycle: Some(CycleRule::DAY), ..after("daily", &["root"]) };
    let data = Dependency { dep_type: DepType::DataReady, ..edge("root", Strength::Strong) };
    let bare = TaskSpec { depends_on: vec![data], ..task("bare") };
    let found = check_set(files(vec![root, daily, bare, after("lost", &["nobody"])]));
    assert_eq!(
        texts(&found.warnings),
        [
            "bare.v1.yaml: dependsOn: bare.v1 waits for the data of root.v1, which declares no \
             outputs: that is the same as depType: SUCCESS",
            "daily.v1.yaml: cycle: daily.v1 has the unit DAY but hangs on a task of unit HOUR: it \
             runs once for each of that one's instances",
            "lost.v1.yaml: dependsOn: lost.v1 waits for nobody.v1, which none of these files \
             defines",
        ]
    );
    assert_eq!(found.errors, []);
}

fn hook(name: &str, of: &str) -> TaskSpec {
    let on_end = TaskTrigger { task_id: id(of), states: TaskTrigger::STATES.to_vec() };
    TaskSpec { triggers: vec![on(TriggerKind::Task(on_end))], ..task(name) }
}

#[test]
fn tasks_that_start_each_other_are_refused_where_their_triggers_stand() {
    for set in [vec![hook("a", "a")], vec![hook("a", "b"), after("b", &["a"])]] {
        let found = check_set(files(set));
        assert!(found.errors[0].to_string().starts_with("a.v1.yaml: triggers: closes the cycle"));
    }
}

#[test]
fn a_trigger_on_a_task_that_nobody_defines_is_warned_of() {
    let found = check_set(files(vec![hook("a", "nobody")]));
    let text = "a.v1.yaml: triggers: a.v1 listens to nobody.v1, which none of these files defines: \
                the trigger does not fire until one does";
    assert_eq!(texts(&found.warnings), [text]);
}
