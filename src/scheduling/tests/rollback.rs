//! Requirement A7: revisions, rollback and its end.

use super::bench::Bench;
use super::build::{after, broken, edge, file, full, id, task};
use crate::model::event::Definitions;
use crate::model::record::{Record, Revision, Row, RowKey, TaskRow};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply, Request};
use crate::model::spec::{Strength, TaskSpec};
use crate::model::view::{TaskStatus, TaskView};

fn said(words: &str) -> TaskSpec {
    TaskSpec { handler: words.to_owned(), max_concurrent: Some(1), ..task("a") }
}

/// `a` was first "one", then "two".
fn two_revisions() -> Bench {
    let mut bench = Bench::new(vec![said("one")]);
    bench.specs(vec![said("two")]);
    bench
}

fn stored(bench: &Bench, revision: u64) -> Revision {
    match bench.rows.get(&RowKey::Revision { task_id: id("a"), revision }) {
        Some(Row::Revision(revision)) => revision.clone(),
        other => panic!("no revision: {other:?}"),
    }
}

fn row(bench: &Bench) -> TaskRow {
    match bench.rows.get(&RowKey::Task { task_id: id("a") }) {
        Some(Row::Task(row)) => row.clone(),
        other => panic!("no task: {other:?}"),
    }
}

/// Puts a revision in force, as the door does: with the stored row.
fn rollback(bench: &mut Bench, revision: u64) -> Answer {
    let revision = Box::new(stored(bench, revision));
    bench.ask(Request::Rollback { task: id("a"), revision }).0
}

fn unpin(bench: &mut Bench) -> Answer {
    bench.ask(Request::Unpin { task: id("a") }).0
}

fn view(bench: &mut Bench) -> TaskView {
    match bench.ask(Request::Task(id("a"))).0 {
        Ok(Reply::Task(view)) => *view,
        other => panic!("no task: {other:?}"),
    }
}

fn in_force(bench: &mut Bench) -> (u64, TaskStatus, String) {
    let view = view(bench);
    (view.revision, view.status, view.spec.expect("show has the definition").handler.clone())
}

fn refusal(answer: Answer) -> Rejection {
    answer.expect_err("a refusal")
}

#[test]
fn a_rollback_puts_the_earlier_revision_in_force_pinned_also_over_a_restart() {
    let mut bench = two_revisions();
    rollback(&mut bench, 1).unwrap();
    assert_eq!(in_force(&mut bench), (1, TaskStatus::Pinned, "one".to_owned()));
    let run = bench.run("a");
    assert_eq!(bench.instance(&run).revision, 1);
    bench.restart(1000, vec![said("two")]);
    assert_eq!(in_force(&mut bench), (1, TaskStatus::Pinned, "one".to_owned()));
    // Touched, moved or broken: what the pin ignores is what the file defines.
    bench.read(full(vec![file("elsewhere.yaml", vec![said("two")])]));
    bench.read(Definitions { present: None, ..full(vec![broken("elsewhere.yaml")]) });
    bench.read(Definitions {
        present: None,
        ..full(vec![file("elsewhere.yaml", vec![said("two")])])
    });
    assert_eq!(in_force(&mut bench), (1, TaskStatus::Pinned, "one".to_owned()));
    assert_eq!(row(&bench).file, "elsewhere.yaml");
}

#[test]
fn a_pin_ends_when_the_file_defines_something_new() {
    let mut bench = two_revisions();
    rollback(&mut bench, 1).unwrap();
    bench.specs(vec![said("three")]);
    assert_eq!(in_force(&mut bench), (3, TaskStatus::Active, "three".to_owned()));
    let ended = bench.log.iter().filter(|r| matches!(r.what, Record::DefinitionUnpinned { .. }));
    assert_eq!(ended.count(), 1);
}

#[test]
fn a_pin_ends_without_a_new_revision_when_the_file_goes_back_too() {
    let mut bench = two_revisions();
    rollback(&mut bench, 1).unwrap();
    bench.specs(vec![said("one")]);
    assert_eq!(in_force(&mut bench), (1, TaskStatus::Active, "one".to_owned()));
    assert_eq!(row(&bench).revisions, 2);
}

#[test]
fn a_pin_ends_with_its_file() {
    let mut bench = two_revisions();
    rollback(&mut bench, 1).unwrap();
    bench.specs(Vec::new());
    assert_eq!((row(&bench).revision, row(&bench).pinned), (None, None));
    bench.specs(vec![said("two")]);
    assert_eq!(in_force(&mut bench), (2, TaskStatus::Active, "two".to_owned()));
}

#[test]
fn a_definition_that_comes_back_as_it_went_is_the_revision_that_it_was() {
    let mut bench = two_revisions();
    bench.specs(Vec::new());
    bench.restart(1000, Vec::new());
    bench.specs(vec![said("two")]);
    assert_eq!(in_force(&mut bench), (2, TaskStatus::Active, "two".to_owned()));
    assert_eq!(stored(&bench, 2).loaded_at.as_millis() + 1000, bench.now.as_millis());
    // Any other content, an earlier one too, is a new one.
    bench.specs(vec![said("one")]);
    assert_eq!(in_force(&mut bench), (3, TaskStatus::Active, "one".to_owned()));
}

#[test]
fn unpin_puts_what_the_file_says_in_force_again_as_the_revision_it_was() {
    let mut bench = two_revisions();
    rollback(&mut bench, 1).unwrap();
    bench.restart(1000, vec![said("two")]);
    unpin(&mut bench).unwrap();
    assert_eq!(in_force(&mut bench), (2, TaskStatus::Active, "two".to_owned()));
    assert_eq!(row(&bench).revisions, 2);
    // A second time there is nothing to do.
    unpin(&mut bench).unwrap();
    assert_eq!(in_force(&mut bench), (2, TaskStatus::Active, "two".to_owned()));
}

#[test]
fn a_second_rollback_keeps_in_mind_what_the_first_held_off() {
    let mut bench = two_revisions();
    bench.specs(vec![said("three")]);
    rollback(&mut bench, 2).unwrap();
    rollback(&mut bench, 1).unwrap();
    assert_eq!(in_force(&mut bench), (1, TaskStatus::Pinned, "one".to_owned()));
    unpin(&mut bench).unwrap();
    assert_eq!(in_force(&mut bench), (3, TaskStatus::Active, "three".to_owned()));
}

#[test]
fn instances_that_have_not_started_follow_a_rollback_and_those_that_have_do_not() {
    let mut bench = two_revisions();
    let running = bench.run("a");
    let waiting = bench.run("a");
    assert_eq!(bench.instance(&waiting).attempt, 0, "a task runs one instance at a time");
    rollback(&mut bench, 1).unwrap();
    assert_eq!((bench.instance(&running).revision, bench.instance(&waiting).revision), (2, 1));
}

#[test]
fn a_revision_that_would_close_a_cycle_now_is_refused_and_nothing_changes() {
    let once = TaskSpec { depends_on: vec![edge("b", Strength::Strong)], ..task("a") };
    let mut bench = Bench::new(vec![once, task("b")]);
    bench.specs(vec![task("a"), task("b")]);
    bench.specs(vec![task("a"), after("b", &["a"])]);
    let refused = refusal(rollback(&mut bench, 1));
    assert_eq!(refused.code, RejectionCode::Conflict);
    assert!(refused.detail.contains("a.v1 -> b.v1 -> a.v1"), "{}", refused.detail);
    assert_eq!((row(&bench).revision, row(&bench).pinned), (Some(2), None));
    // The graph is what it was: the wave of A still reaches B.
    bench.run("a");
    assert_eq!(bench.of("b").len(), 1);
}

#[test]
fn an_unknown_or_removed_task_is_not_rolled_back() {
    let mut bench = two_revisions();
    let first = stored(&bench, 1);
    bench.specs(Vec::new());
    let order = Request::Rollback { task: id("a"), revision: Box::new(first) };
    assert_eq!(refusal(bench.ask(order).0).code, RejectionCode::NotFound);
    assert_eq!(refusal(unpin(&mut bench)).code, RejectionCode::NotFound);
}

#[test]
fn a_second_rollback_while_the_file_is_broken_holds_off_what_the_first_did() {
    let mut bench = two_revisions();
    bench.specs(vec![said("three")]);
    rollback(&mut bench, 2).unwrap();
    bench.read(Definitions { present: None, ..full(vec![broken("a.v1.yaml")]) });
    rollback(&mut bench, 1).unwrap();
    bench.specs(vec![said("three")]);
    assert_eq!(in_force(&mut bench), (1, TaskStatus::Pinned, "one".to_owned()));
    unpin(&mut bench).unwrap();
    assert_eq!(in_force(&mut bench), (3, TaskStatus::Active, "three".to_owned()));
}

#[test]
fn unpin_while_the_file_is_broken_puts_what_it_said_last_in_force() {
    let mut bench = two_revisions();
    rollback(&mut bench, 1).unwrap();
    bench.read(Definitions { present: None, ..full(vec![broken("a.v1.yaml")]) });
    unpin(&mut bench).unwrap();
    assert_eq!(in_force(&mut bench), (2, TaskStatus::Active, "two".to_owned()));
}
