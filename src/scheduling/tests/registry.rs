//! Requirement I1; docs/waves.md, rules 9 and 14; design, 'Clock, disk, faults' F5.

use super::bench::Bench;
use super::build::{after, broken, edge, every, file, full, id, on_event, settings, task};
use crate::model::event::{Definitions, SpecError};
use crate::model::instance::InstanceState::{Blocked, Pending, Ready, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::record::{FireOutcome, LogRecord, Record, Row, RowKey, Target, TaskRow};
use crate::model::request::{Reply, Request, SubmitBody};
use crate::model::spec::{Misfire, Overlap, Strength, TaskSpec};

fn bench() -> Bench {
    Bench::bare(settings(&[("local", 9)], &[("default", 1, None)]))
}

fn row(bench: &Bench, name: &str) -> TaskRow {
    match bench.rows.get(&RowKey::Task { task_id: id(name) }) {
        Some(Row::Task(row)) => row.clone(),
        other => panic!("no task {name}: {other:?}"),
    }
}

fn errors(bench: &mut Bench) -> Vec<SpecError> {
    match bench.ask(Request::Status).0 {
        Ok(Reply::Status(status)) => status.spec_errors,
        other => panic!("no status: {other:?}"),
    }
}

fn changed(read: Definitions) -> Definitions {
    Definitions { present: None, ..read }
}

fn handled(name: &str, handler: &str) -> TaskSpec {
    TaskSpec { handler: handler.to_owned(), ..task(name) }
}

#[test]
fn a_broken_file_keeps_what_it_defined_last_also_over_a_restart() {
    let mut bench = bench();
    bench.read(full(vec![file("a.yaml", vec![task("a")])]));
    bench.read(changed(full(vec![broken("a.yaml")])));
    assert_eq!(row(&bench, "a").revision, Some(1));
    assert_eq!(errors(&mut bench).len(), 1);
    bench.restart_reading(0, full(vec![broken("a.yaml")]));
    assert_eq!((row(&bench, "a").revision, errors(&mut bench).len()), (Some(1), 1));
    bench.run("a");
    bench.read(changed(full(vec![file("a.yaml", vec![task("a")])])));
    assert_eq!((row(&bench, "a").revision, errors(&mut bench).len()), (Some(1), 0));
}

/// F5: what was broken is still broken under another name, and keeps what it defined.
#[test]
fn a_broken_file_that_is_renamed_keeps_what_it_defined_last() {
    let mut bench = bench();
    bench.read(full(vec![file("a.yaml", vec![task("a")])]));
    bench.read(changed(full(vec![broken("a.yaml")])));
    let removed = vec!["a.yaml".to_owned()];
    bench.read(Definitions { removed, ..changed(full(vec![broken("b.yaml")])) });
    assert_eq!((row(&bench, "a").file.as_str(), row(&bench, "a").revision), ("b.yaml", Some(1)));
    let Ok(Reply::Task(view)) = bench.ask(Request::Task(id("a"))).0 else { panic!("no task") };
    assert_eq!(view.spec_errors.len(), 1, "what is in force is not what the file says");
    // Repaired there, it counts; deleted, it goes.
    let two = vec![file("b.yaml", vec![handled("a", "two")])];
    bench.read(changed(full(two)));
    assert_eq!(row(&bench, "a").revision, Some(2));
    bench.read(full(Vec::new()));
    assert_eq!(row(&bench, "a").revision, None);
}

#[test]
fn of_two_files_with_one_id_the_one_in_force_stays_and_both_are_named() {
    let mut bench = bench();
    bench.read(full(vec![file("z.yaml", vec![handled("a", "one")])]));
    bench.read(changed(full(vec![file("b.yaml", vec![handled("a", "two")])])));
    assert_eq!((row(&bench, "a").file.as_str(), row(&bench, "a").revision), ("z.yaml", Some(1)));
    let told = errors(&mut bench);
    assert!(told.len() == 1 && told[0].file == "b.yaml" && told[0].message.contains("z.yaml"));
    // The winner goes: the other counts, though nobody touched it.
    let removed = vec!["z.yaml".to_owned()];
    bench.read(Definitions { removed, ..Definitions::default() });
    assert_eq!((row(&bench, "a").file.as_str(), row(&bench, "a").revision), ("b.yaml", Some(2)));
    assert_eq!(errors(&mut bench), []);
}

#[test]
fn a_cycle_is_refused_with_its_path_and_the_last_good_revision_stays() {
    let mut bench = bench();
    let good = || vec![task("a"), after("b", &["a"]), after("c", &["b"])];
    bench.specs(good());
    let mut closing = good();
    closing[0].depends_on = vec![edge("c", Strength::Strong)];
    bench.specs(closing);
    assert_eq!(row(&bench, "a").revision, Some(1));
    let told = errors(&mut bench);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].file == "a.v1.yaml" && told[0].message.contains("a.v1 -> b.v1 -> c.v1 -> a.v1")
    );
    bench.run("a");
    assert_eq!(bench.states("c"), [Pending]);
    bench.specs(good());
    assert_eq!(errors(&mut bench), []);
}

#[test]
fn a_renamed_file_keeps_the_revision() {
    let mut bench = bench();
    bench.read(full(vec![file("a.yaml", vec![task("a")])]));
    bench.read(full(vec![file("b.yaml", vec![task("a")])]));
    assert_eq!((row(&bench, "a").file.as_str(), row(&bench, "a").revision), ("b.yaml", Some(1)));
    let removals = bench.log.iter().filter(|r| matches!(r.what, Record::DefinitionRemoved { .. }));
    assert_eq!(removals.count(), 0);
}

#[test]
fn an_unresolved_task_gets_no_instances_and_heals_by_itself() {
    let mut bench = bench();
    bench.specs(vec![on_event("root", "go"), after("b", &["root", "late"])]);
    bench.emit("go");
    assert_eq!(bench.of("b").len(), 0);
    assert!(bench.try_submit("b", SubmitBody::default()).is_err());
    let free = SubmitBody { ignore_deps: true, ..SubmitBody::default() };
    let b = bench.submit("b", free);
    assert_eq!(bench.instance(&b).state, Running);
    bench.specs(vec![on_event("root", "go"), after("b", &["root", "late"]), task("late")]);
    bench.pass(1);
    bench.emit("go");
    assert_eq!(bench.of("b").len(), 2);
}

#[test]
fn a_removed_definition_makes_nothing_new_and_what_there_is_finishes() {
    let mut bench = bench();
    let all = || vec![task("a"), after("b", &["a"]), after("c", &["b"])];
    bench.specs(all());
    let a = bench.run("a");
    // C waits for B, which is gone, but B's instance is there and finishes.
    bench.specs(vec![task("a"), after("c", &["b"])]);
    assert!(bench.try_submit("b", SubmitBody::default()).is_err());
    bench.exits(&a, 0);
    bench.drain();
    assert_eq!((bench.states("b"), bench.states("c")), (vec![Succeeded], vec![Succeeded]));
}

#[test]
fn an_open_edge_on_a_removed_upstream_blocks_until_it_is_back() {
    let mut bench = bench();
    let all = || vec![task("a"), after("b", &["a"])];
    bench.specs(all());
    let b = bench.run("b");
    assert_eq!(bench.standing(&b), (Pending, Some(Reason::WaitingDependency)));
    bench.specs(vec![after("b", &["a"])]);
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::SpecRemoved)));
    bench.specs(all());
    assert_eq!(bench.standing(&b), (Pending, Some(Reason::WaitingDependency)));
}

#[test]
fn an_unreadable_directory_changes_nothing_and_an_empty_one_retires_all() {
    let mut bench = bench();
    bench.specs(vec![task("a")]);
    let unreadable = Some("permission denied".to_owned());
    bench.read(Definitions { unreadable, ..Definitions::default() });
    assert_eq!(row(&bench, "a").revision, Some(1));
    bench.specs(Vec::new());
    assert_eq!(row(&bench, "a").revision, None);
}

#[test]
fn an_instance_follows_the_revision_in_force_until_its_first_start() {
    let mut bench = bench();
    bench.specs(vec![handled("a", "one")]);
    let running = bench.run("a");
    bench.pause(Target::All).unwrap();
    let waiting = bench.run("a");
    bench.specs(vec![handled("a", "two")]);
    assert_eq!((bench.instance(&running).revision, bench.instance(&waiting).revision), (1, 2));
    assert_eq!(bench.instance(&waiting).state, Ready);
    bench.exits(&running, 1);
    bench.retry(&running).unwrap();
    assert_eq!(bench.instance(&running).revision, 2, "a person's retry takes the one in force");
}

#[test]
fn a_gained_edge_binds_to_what_is_not_yet_final_only() {
    let mut bench = bench();
    bench.specs(vec![task("a"), task("up")]);
    bench.pause(Target::All).unwrap();
    let waiting = bench.run_for("a", "2026-12-24");
    assert_eq!(bench.instance(&waiting).state, Ready);
    // READY is past its edges; a PENDING one gains them.
    let mut bench = self::bench();
    bench.specs(vec![task("up"), task("other"), after("a", &["other"])]);
    let up = bench.run("up");
    bench.exits(&up, 0);
    let a = bench.run("a");
    bench.specs(vec![task("up"), task("other"), after("a", &["other", "up"])]);
    let bound: Vec<bool> =
        bench.instance(&a).edges.iter().map(|e| e.instance_id.is_some()).collect();
    assert_eq!(bound, [false, false], "a final upstream does not count for a new edge");
}

/// Rule 14; I1: a bad file never takes down a good definition.
#[test]
fn a_task_that_two_run_roots_reach_is_refused_and_nothing_else_is_touched() {
    let mut bench = bench();
    let roots = [on_event("f", "one"), on_event("g", "two")];
    let good = [after("m", &["f"]), after("z", &["m"])];
    let files =
        roots.into_iter().chain(good).map(|s| file(&format!("{}.yaml", s.task_id), vec![s]));
    bench.read(full(files.collect()));
    assert!(errors(&mut bench).is_empty());
    bench.read(changed(full(vec![file("m.v1.yaml", vec![after("m", &["f", "g"])])])));
    let told = errors(&mut bench);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].file == "m.v1.yaml" && told[0].message.contains("f.v1 and g.v1"), "{told:?}");
    for name in ["f", "g", "m", "z"] {
        assert_eq!(row(&bench, name).revision, Some(1), "{name}");
    }
    // On a first reading only the one that joins the two is left out.
    let mut bench = self::bench();
    let all = [on_event("f", "one"), on_event("g", "two"), after("m", &["f", "g"])];
    bench.read(full(
        all.into_iter().map(|s| file(&format!("{}.yaml", s.task_id), vec![s])).collect(),
    ));
    assert_eq!((row(&bench, "f").revision, row(&bench, "g").revision), (Some(1), Some(1)));
    assert!(!bench.rows.contains_key(&RowKey::Task { task_id: id("m") }));
}

/// F6: a file that is being written while the directory is read is there, but not read yet.
#[test]
fn a_file_that_could_not_be_read_yet_after_a_restart_keeps_its_definitions() {
    let mut bench = bench();
    bench.read(full(vec![file("a.yaml", vec![task("a")])]));
    bench.restart_reading(
        0,
        Definitions { present: Some(vec!["a.yaml".to_owned()]), ..Definitions::default() },
    );
    assert_eq!(row(&bench, "a").revision, Some(1));
    bench.read(changed(full(vec![file("a.yaml", vec![task("a")])])));
    assert_eq!(row(&bench, "a").revision, Some(1));
}

fn part(files: Vec<crate::model::event::SpecFile>) -> Definitions {
    Definitions { changed: files, more: true, ..Definitions::default() }
}

/// F6: a large reading comes in parts; what counts is how the directory is after the last.
#[test]
fn a_reading_in_parts_ends_where_one_in_one_piece_would() {
    let mut bench = bench();
    bench.read(full(vec![
        file("1.yaml", vec![task("a")]),
        file("2.yaml", vec![task("b"), after("c", &["b"])]),
        file("3.yaml", vec![task("d")]),
    ]));
    let before = bench.log.len();
    // A moves from 1 to 0; B and C turn round; 3 goes.
    bench.read(part(vec![file("0.yaml", vec![task("a")])]));
    bench.read(part(vec![file("1.yaml", vec![after("b", &["c"])])]));
    let present = ["0.yaml", "1.yaml", "2.yaml"].map(str::to_owned).to_vec();
    bench.read(Definitions {
        present: Some(present),
        removed: vec!["3.yaml".to_owned()],
        ..part(vec![file("2.yaml", vec![task("c")])])
    });
    bench.read(Definitions::default());
    assert_eq!((row(&bench, "a").file.as_str(), row(&bench, "a").revision), ("0.yaml", Some(1)));
    assert_eq!((row(&bench, "b").file.as_str(), row(&bench, "b").revision), ("1.yaml", Some(2)));
    assert_eq!((row(&bench, "c").revision, row(&bench, "d").revision), (Some(2), None));
    assert_eq!(errors(&mut bench), []);
    let told = bench.log[before..].iter();
    assert_eq!(told.filter(|r| matches!(r.what, Record::DefinitionRefused(_))).count(), 0);
}

#[test]
fn nothing_fires_and_nothing_starts_before_the_last_part_of_the_first_reading() {
    let timed = || {
        let trigger = every(60, Misfire::RunOnce, Overlap::Queue);
        TaskSpec { triggers: vec![trigger], ..task("a") }
    };
    let mut bench = bench();
    bench.read(full(vec![file("a.yaml", vec![timed()])]));
    bench.restart_reading(3_600_000, part(vec![file("a.yaml", vec![timed()])]));
    bench.pass(120_000);
    assert_eq!(bench.fires("a"), []);
    bench.read(Definitions { present: Some(vec!["a.yaml".to_owned()]), ..Definitions::default() });
    assert_ne!(bench.fires("a"), []);
}

/// After a restart in parts, too, a file that went while no daemon ran takes its tasks with it.
#[test]
fn a_file_that_went_while_no_daemon_ran_is_noticed_at_the_last_part() {
    let mut bench = bench();
    bench.read(full(vec![file("a.yaml", vec![task("a")]), file("b.yaml", vec![task("b")])]));
    bench.restart_reading(1000, part(vec![file("a.yaml", vec![task("a")])]));
    assert_eq!(row(&bench, "b").revision, Some(1));
    bench.read(Definitions { present: Some(vec!["a.yaml".to_owned()]), ..Definitions::default() });
    assert_eq!((row(&bench, "a").revision, row(&bench, "b").revision), (Some(1), None));
}

/// A task that moves to a file that is told of later was never gone.
#[test]
fn a_task_that_moves_to_a_later_part_keeps_its_fires_and_its_pin() {
    let timed = |handler: &str| {
        let triggers = vec![every(3600, Misfire::RunOnce, Overlap::Queue)];
        TaskSpec { triggers, ..handled("a", handler) }
    };
    let mut bench = bench();
    bench.read(full(vec![file("1.yaml", vec![timed("one"), task("b")])]));
    let first = match bench.rows.get(&RowKey::Revision { task_id: id("a"), revision: 1 }) {
        Some(Row::Revision(revision)) => Box::new(revision.clone()),
        other => panic!("no revision: {other:?}"),
    };
    bench.read(full(vec![file("1.yaml", vec![timed("two"), task("b")])]));
    bench.ask(Request::Rollback { task: id("a"), revision: first }).0.unwrap();
    let before = bench.log.len();
    bench.restart_reading(7_200_000, part(vec![file("1.yaml", vec![task("b")])]));
    bench.read(part(vec![file("2.yaml", vec![timed("two")])]));
    let present = Some(vec!["1.yaml".to_owned(), "2.yaml".to_owned()]);
    bench.read(Definitions { present, ..Definitions::default() });
    let a = row(&bench, "a");
    assert_eq!((a.file.as_str(), a.revision, a.pinned.is_some()), ("2.yaml", Some(1), true));
    // Of the two fires that were due meanwhile the newest runs.
    let outcomes = [(FireOutcome::Coalesced, 1), (FireOutcome::Instance, 1)];
    assert_eq!(bench.fires("a"), outcomes);
    let removed = |r: &&LogRecord| matches!(r.what, Record::DefinitionRemoved { .. });
    assert_eq!(bench.log[before..].iter().filter(removed).count(), 0);
}

/// Rings that have nothing to do with each other are all put back at once, and looked at again
/// when something could have changed for them.
#[test]
fn several_cycles_of_one_reading_are_each_refused_and_each_heals() {
    let mut bench = bench();
    let ring = |n: usize, upstream: Option<usize>| {
        let of = |n: usize| format!("r{n}");
        let name = of(n);
        upstream.map_or_else(|| task(&name), |up| after(&name, &[&of(up)]))
    };
    let files = |half: bool| -> Vec<_> {
        let both = (0..20).map(|n| if half && n % 2 == 0 { None } else { Some(n ^ 1) });
        let specs = both.enumerate().map(|(n, upstream)| ring(n, upstream));
        specs.map(|s| file(&format!("{}.yaml", s.task_id), vec![s])).collect()
    };
    bench.read(full(files(false)));
    assert_eq!(errors(&mut bench).len(), 20);
    bench.read(full(files(true)));
    assert_eq!(errors(&mut bench), []);
    assert_eq!(bench.run("r0").as_str().len(), 20);
    assert_eq!(bench.of("r1").len(), 1);
}

/// What is gone can be to blame: then what hangs on it does without, and nobody else is refused.
#[test]
fn a_run_that_gets_two_roots_because_something_went_is_a_day_and_blocks_nobody() {
    let roots = || vec![on_event("r1", "one"), on_event("r2", "two")];
    let x = || after("x", &["d", "r1", "r2"]);
    let mut bench = bench();
    bench.specs(roots().into_iter().chain([task("d"), x(), task("other")]).collect());
    bench.specs(roots().into_iter().chain([x(), handled("other", "two")]).collect());
    let told = errors(&mut bench);
    assert!(told.len() == 1 && told[0].file == "x.v1.yaml" && told[0].path == "cycle", "{told:?}");
    // An unrelated rollback and an unrelated edit go through; a new task of that kind does not.
    let first = match bench.rows.get(&RowKey::Revision { task_id: id("other"), revision: 1 }) {
        Some(Row::Revision(revision)) => Box::new(revision.clone()),
        other => panic!("no revision: {other:?}"),
    };
    bench.ask(Request::Rollback { task: id("other"), revision: first }).0.unwrap();
    let mut edited = roots();
    edited[0].triggers.extend(on_event("r1", "more").triggers);
    let y = after("y", &["r1", "r2"]);
    bench.specs(edited.into_iter().chain([x(), y, handled("other", "two")]).collect());
    assert_eq!(row(&bench, "r1").revision, Some(2));
    assert!(!bench.rows.contains_key(&RowKey::Task { task_id: id("y") }));
    // The day root is back: all is as it was.
    bench.specs(roots().into_iter().chain([task("d"), x(), handled("other", "two")]).collect());
    assert_eq!(errors(&mut bench), []);
}
