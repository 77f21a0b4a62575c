//! A task that goes from one file to another is at no time told to be in none of them.

use super::half_written::{MOMENT, Reads, bed};
use super::*;

/// What a reading tells: `FILE: HANDLERS` of what changed, and the names that are gone.
fn told(bed: &mut Bed, heard: &[(&str, Heard)]) -> (Vec<String>, Vec<String>) {
    let found = bed.read(false, heard);
    let handlers = |file: &SpecFile| {
        let handlers: Vec<&str> = file.specs.iter().map(|spec| spec.handler.as_str()).collect();
        handlers.join(" ")
    };
    let changed = bed.changed(&found).into_iter().zip(&found.changed);
    let changed = changed.map(|(name, file)| format!("{name}: {}", handlers(file)));
    (changed.collect(), bed.names(&found.removed))
}

fn nothing() -> (Vec<String>, Vec<String>) {
    (Vec::new(), Vec::new())
}

/// A directory with the task of `a.yaml` and that of another file, both read.
fn bed_with(name: &str) -> Bed {
    let mut bed = bed();
    bed.write(name, &text("other.v1", "other"));
    assert_eq!(bed.read(false, &[(name, Heard::Saved)]).changed.len(), 1);
    bed
}

#[test]
fn a_renamed_file_is_under_both_names_in_no_reading() {
    let mut bed = bed();
    fs::rename(bed.path("a.yaml"), bed.path("z.yaml")).unwrap();
    let found = bed.read(false, &[("a.yaml", Heard::Touched), ("z.yaml", Heard::Saved)]);
    assert_eq!(
        (bed.changed(&found), bed.names(&found.removed)),
        (vec!["z.yaml".to_owned()], vec!["a.yaml".to_owned()])
    );
    // Over another one.
    bed.write("y.yaml", &text("y.v1", "why"));
    bed.read(false, &[("y.yaml", Heard::Saved)]);
    fs::rename(bed.path("z.yaml"), bed.path("y.yaml")).unwrap();
    let heard = [("z.yaml", Heard::Touched), ("y.yaml", Heard::Saved)];
    // What the other one defined is gone, as if it had been deleted.
    assert_eq!(told(&mut bed, &heard), nothing());
    bed.pass(limits::SPEC_SETTLE);
    assert_eq!(told(&mut bed, &[]), (vec!["y.yaml: one".to_owned()], vec!["z.yaml".to_owned()]));
}

#[test]
fn a_task_that_moves_to_a_new_file_is_told_with_the_end_of_the_old_one() {
    let mut bed = bed();
    bed.write("b.yaml", &text("b.v1", "before"));
    bed.read(false, &[("b.yaml", Heard::Saved)]);
    fs::remove_file(bed.path("a.yaml")).unwrap();
    bed.write("new.yaml", &text("a.v1", "moved"));
    bed.write("b.yaml", &text("b.v1", "after"));
    let heard = [("a.yaml", Heard::Touched), ("b.yaml", Heard::Saved), ("new.yaml", Heard::Saved)];
    let found = bed.read(false, &heard);
    assert_eq!(
        (found.handlers(), bed.names(&found.removed)),
        (vec!["after", "moved"], vec!["a.yaml".to_owned()])
    );
}

#[test]
fn a_new_file_waits_with_the_end_of_another_one_and_a_changed_one_does_not() {
    let mut bed = bed_with("c.yaml");
    fs::remove_file(bed.path("a.yaml")).unwrap();
    bed.write("new.yaml", &text("new.v1", "new"));
    bed.write("c.yaml", &text("other.v1", "after"));
    let heard = [("a.yaml", Heard::Touched), ("c.yaml", Heard::Saved), ("new.yaml", Heard::Saved)];
    assert_eq!(told(&mut bed, &heard), (vec!["c.yaml: after".to_owned()], Vec::new()));
    bed.pass(limits::SPEC_SETTLE);
    let expected = (vec!["new.yaml: new".to_owned()], vec!["a.yaml".to_owned()]);
    assert_eq!(told(&mut bed, &[]), expected);
}

#[test]
fn a_file_renamed_while_another_one_goes_is_told_with_its_new_name() {
    for is_renamed_first in [false, true] {
        let mut bed = bed_with("c.yaml");
        let rename = |bed: &Bed| fs::rename(bed.path("a.yaml"), bed.path("b.yaml")).unwrap();
        if is_renamed_first {
            rename(&bed);
        }
        fs::remove_file(bed.path("c.yaml")).unwrap();
        if !is_renamed_first {
            rename(&bed);
        }
        let heard =
            [("a.yaml", Heard::Touched), ("b.yaml", Heard::Saved), ("c.yaml", Heard::Touched)];
        assert_eq!(told(&mut bed, &heard), nothing());
        bed.pass(limits::SPEC_SETTLE);
        let expected = ["a.yaml", "c.yaml"].map(str::to_owned).to_vec();
        assert_eq!(told(&mut bed, &[]), (vec!["b.yaml: one".to_owned()], expected));
        assert_eq!(bed.specs.look_again_at(), None);
    }
}

#[test]
fn a_file_whose_new_name_is_heard_of_late_is_told_with_it() {
    let mut bed = bed_with("c.yaml");
    fs::remove_file(bed.path("c.yaml")).unwrap();
    assert_eq!(told(&mut bed, &[("c.yaml", Heard::Touched)]), nothing());
    bed.pass(limits::SPEC_SETTLE - MOMENT);
    fs::rename(bed.path("a.yaml"), bed.path("b.yaml")).unwrap();
    assert_eq!(told(&mut bed, &[("a.yaml", Heard::Touched), ("b.yaml", Heard::Saved)]), nothing());
    // The other one has been gone for long enough; the new name has not been there for so long.
    bed.pass(MOMENT);
    assert_eq!(told(&mut bed, &[]), nothing());
    bed.pass(limits::SPEC_SETTLE - MOMENT);
    let expected = ["a.yaml", "c.yaml"].map(str::to_owned).to_vec();
    assert_eq!(told(&mut bed, &[]), (vec!["b.yaml: one".to_owned()], expected));
}

#[test]
fn two_files_that_change_names_are_told_together() {
    let swapped = vec!["a.yaml: other".to_owned(), "c.yaml: one".to_owned()];
    // The kernel tells of an exchange so that one of them seems only to be touched.
    let exchange = [("a.yaml", Heard::Saved), ("c.yaml", Heard::Touched)];
    let both = [("a.yaml", Heard::Saved), ("c.yaml", Heard::Saved)];
    for (heard, is_at_once) in [(exchange, false), (both, true)] {
        let mut bed = bed_with("c.yaml");
        bed.write("a.yaml", &text("other.v1", "other"));
        bed.write("c.yaml", &text("a.v1", "one"));
        let first = told(&mut bed, &heard);
        bed.pass(limits::SPEC_SETTLE);
        let then = told(&mut bed, &[]);
        let expected = (swapped.clone(), Vec::new());
        let expected = if is_at_once { (expected, nothing()) } else { (nothing(), expected) };
        assert_eq!((first, then), expected);
    }
}

#[test]
fn two_files_that_change_names_through_a_third_are_told_together() {
    let mut bed = bed_with("c.yaml");
    fs::rename(bed.path("a.yaml"), bed.path(".t")).unwrap();
    fs::rename(bed.path("c.yaml"), bed.path("a.yaml")).unwrap();
    // Here one is in the other's place, and its own task in no file at all.
    let between = [("a.yaml", Heard::Saved), ("c.yaml", Heard::Touched)];
    assert_eq!(told(&mut bed, &between), nothing());
    fs::rename(bed.path(".t"), bed.path("c.yaml")).unwrap();
    assert_eq!(told(&mut bed, &[("c.yaml", Heard::Saved)]), nothing());
    bed.pass(limits::SPEC_SETTLE);
    let swapped = vec!["a.yaml: other".to_owned(), "c.yaml: one".to_owned()];
    assert_eq!(told(&mut bed, &[]), (swapped, Vec::new()));
}

#[test]
fn a_task_taken_out_of_a_file_is_gone_after_a_quiet_time_unless_another_one_has_it() {
    let mut bed = bed_with("c.yaml");
    bed.write("a.yaml", &text("new.v1", "new"));
    assert_eq!(told(&mut bed, &[("a.yaml", Heard::Saved)]), nothing());
    bed.pass(limits::SPEC_SETTLE);
    assert_eq!(told(&mut bed, &[]), (vec!["a.yaml: new".to_owned()], Vec::new()));
    // Put into another file a moment later.
    bed.write("a.yaml", &text("newer.v1", "newer"));
    assert_eq!(told(&mut bed, &[("a.yaml", Heard::Saved)]), nothing());
    bed.write("c.yaml", &[text("other.v1", "x"), text("new.v1", "new")].join("---\n"));
    let both = vec!["a.yaml: newer".to_owned(), "c.yaml: x new".to_owned()];
    let first = told(&mut bed, &[("c.yaml", Heard::Saved)]);
    assert_eq!(first, nothing(), "the other one is not quiet yet");
    bed.pass(limits::SPEC_SETTLE);
    assert_eq!(told(&mut bed, &[]), (both, Vec::new()));
}

#[test]
fn a_file_that_is_written_to_without_a_pause_holds_up_the_end_of_others_for_a_while_only() {
    let mut bed = bed_with("c.yaml");
    fs::remove_file(bed.path("a.yaml")).unwrap();
    let mut heard = vec![("a.yaml", Heard::Touched)];
    let mut waited = Duration::ZERO;
    for n in 0.. {
        bed.write("c.yaml", &text("other.v1", &n.to_string()));
        heard.push(("c.yaml", Heard::AtWork));
        if told(&mut bed, &heard) == (Vec::new(), vec!["a.yaml".to_owned()]) {
            break;
        }
        heard.clear();
        bed.pass(limits::SPEC_SETTLE);
        waited += limits::SPEC_SETTLE;
    }
    assert_eq!(waited, limits::SPEC_MOVE_SETTLE);
}

#[test]
fn what_the_daemon_itself_takes_away_is_gone_at_once_whatever_else_changes() {
    let mut bed = bed_with("c.yaml");
    bed.write("c.yaml", "taskId: [");
    fs::remove_file(bed.path("a.yaml")).unwrap();
    let heard = [("a.yaml", Heard::Ours), ("c.yaml", Heard::AtWork)];
    assert_eq!(told(&mut bed, &heard), (Vec::new(), vec!["a.yaml".to_owned()]));
}

#[test]
fn a_file_that_was_told_to_be_there_and_could_not_be_read_is_told_gone() {
    let first = |bed: &mut Bed| {
        bed.write("g.yaml", &text("g.v1", "unread"));
        let found = bed.read(true, &[("g.yaml", Heard::AtWork)]);
        assert_eq!(bed.names(found.present.as_deref().unwrap()), ["a.yaml", "g.yaml"]);
        assert!(found.changed.is_empty());
    };
    // Deleted.
    let mut bed = bed();
    first(&mut bed);
    fs::remove_file(bed.path("g.yaml")).unwrap();
    assert_eq!(told(&mut bed, &[("g.yaml", Heard::Touched)]), nothing());
    bed.pass(limits::SPEC_SETTLE);
    assert_eq!(told(&mut bed, &[]), (Vec::new(), vec!["g.yaml".to_owned()]));
    // Not heard of at all.
    let mut bed = super::half_written::bed();
    first(&mut bed);
    fs::remove_file(bed.path("g.yaml")).unwrap();
    let found = bed.settled();
    assert_eq!(bed.names(&found.removed), ["g.yaml"]);
    assert_eq!(bed.names(found.present.as_deref().unwrap()), ["a.yaml"]);
    // Renamed.
    let mut bed = super::half_written::bed();
    first(&mut bed);
    fs::rename(bed.path("g.yaml"), bed.path("h.yaml")).unwrap();
    let heard = [("g.yaml", Heard::Touched), ("h.yaml", Heard::Saved)];
    assert_eq!(told(&mut bed, &heard), nothing());
    bed.pass(limits::SPEC_SETTLE);
    let expected = (vec!["h.yaml: unread".to_owned()], vec!["g.yaml".to_owned()]);
    assert_eq!(told(&mut bed, &[]), expected);
}

#[test]
fn what_is_doubted_still_counts_as_defining_what_was_told_last() {
    let mut bed = bed();
    bed.write("a.yaml", &[text("a.v1", "one"), text("more.v1", "more")].join("---\n"));
    let found = bed.read(false, &[("a.yaml", Heard::Saved)]);
    bed.specs.doubt(&found.changed[0].path, true, bed.at);
    // Back to what was told before the reading that is doubted: nothing has changed.
    bed.write("a.yaml", &text("a.v1", "one"));
    assert_eq!(told(&mut bed, &[("a.yaml", Heard::Saved)]), nothing());
    assert_eq!(bed.specs.look_again_at(), None);
}
