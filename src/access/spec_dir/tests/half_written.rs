//! No half of a change is taken, and no change is taken late because of another one.

use std::io::Write;

use super::*;

pub(super) const MOMENT: Duration = Duration::from_millis(10);

/// A directory with one file that has been read.
pub(super) fn bed() -> Bed {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    let found = bed.read(true, &[]);
    assert_eq!(bed.changed(&found), ["a.yaml"]);
    bed
}

pub(super) trait Reads {
    fn handlers(&self) -> Vec<&str>;
}

impl Reads for Definitions {
    fn handlers(&self) -> Vec<&str> {
        self.changed.iter().flat_map(|f| &f.specs).map(|spec| spec.handler.as_str()).collect()
    }
}

#[test]
fn a_save_in_two_parts_is_taken_when_it_is_closed_whatever_else_is_read_meanwhile() {
    let mut bed = bed();
    let whole = text("a.v1", "two");
    let (first, second) = whole.as_bytes().split_at(whole.len() - 3);
    let mut file = fs::File::create(bed.path("a.yaml")).unwrap();
    file.write_all(first).unwrap();
    // Another file's event, a reload, and time go by.
    bed.write("b.yaml", &text("b.v1", "other"));
    let found = bed.read(false, &[("a.yaml", Heard::AtWork), ("b.yaml", Heard::Saved)]);
    assert_eq!(found.handlers(), ["other"]);
    for _ in 0..9 {
        bed.pass(limits::SPEC_SETTLE * 2);
        let found = bed.read(true, &[]);
        assert!(found.changed.is_empty() && found.removed.is_empty());
        assert_eq!(bed.names(found.present.as_deref().unwrap()), ["a.yaml", "b.yaml"]);
    }
    file.write_all(second).unwrap();
    drop(file);
    let found = bed.read(false, &[("a.yaml", Heard::Saved)]);
    assert_eq!(found.handlers(), ["two"]);
    assert_eq!(bed.specs.look_again_at(), None);
}

#[test]
fn a_file_that_stays_open_is_taken_after_a_long_quiet_time() {
    let mut bed = bed();
    bed.write("a.yaml", &text("a.v1", "two"));
    for _ in 0..3 {
        // Each time it is heard to be written to, the quiet time begins anew.
        bed.read(false, &[("a.yaml", Heard::AtWork)]);
        assert_eq!(bed.specs.look_again_at(), Some(bed.at + limits::SPEC_OPEN_SETTLE));
        bed.pass(limits::SPEC_OPEN_SETTLE - MOMENT);
        assert!(bed.read(false, &[]).changed.is_empty());
    }
    bed.pass(MOMENT);
    assert_eq!(bed.read(false, &[]).handlers(), ["two"]);
}

#[test]
fn a_change_that_nobody_told_of_is_taken_once_it_is_the_same_for_a_quiet_time() {
    let mut bed = bed();
    bed.write("a.yaml", &text("a.v1", "half"));
    assert!(bed.read(true, &[]).changed.is_empty());
    bed.pass(limits::SPEC_SETTLE - MOMENT);
    bed.write("a.yaml", &text("a.v1", "the other half"));
    assert!(bed.read(true, &[]).changed.is_empty());
    assert_eq!(bed.specs.look_again_at(), Some(bed.at + limits::SPEC_SETTLE));
    bed.pass(limits::SPEC_SETTLE - MOMENT);
    assert!(bed.read(false, &[]).changed.is_empty());
    bed.pass(MOMENT);
    assert_eq!(bed.read(false, &[]).handlers(), ["the other half"]);
}

#[test]
fn at_the_first_reading_young_files_and_those_from_the_future_wait_and_old_ones_do_not() {
    for (age_ms, is_taken) in [(60, true), (40, false), (0, false), (-3_600_000, false)] {
        let mut bed = Bed::new();
        bed.write("a.yaml", &text("a.v1", "one"));
        let stat = nix::sys::stat::stat(&bed.path("a.yaml")).unwrap();
        let changed = stat.st_ctime * 1000 + stat.st_ctime_nsec / 1_000_000;
        let wall = Timestamp::from_millis(changed + age_ms);
        let cue = Cue { at: bed.at, wall, is_whole: true, ..Cue::default() };
        assert_eq!(!bed.specs.scan(&cue).changed.is_empty(), is_taken, "{age_ms}");
        bed.pass(limits::SPEC_SETTLE);
        assert_eq!(bed.read(false, &[]).changed.is_empty(), is_taken, "{age_ms}");
    }
}

#[test]
fn a_file_that_an_editor_moves_away_and_writes_anew_is_never_gone() {
    let mut bed = bed();
    fs::rename(bed.path("a.yaml"), bed.path("a.yaml~")).unwrap();
    let between = bed.read(true, &[("a.yaml", Heard::Touched), ("a.yaml~", Heard::Saved)]);
    assert!(between.removed.is_empty());
    assert_eq!(bed.names(between.present.as_deref().unwrap()), ["a.yaml"]);
    let mut file = fs::File::create(bed.path("a.yaml")).unwrap();
    bed.pass(limits::SPEC_SETTLE - MOMENT);
    let empty = bed.read(true, &[("a.yaml", Heard::AtWork)]);
    assert!(empty.removed.is_empty() && empty.changed.is_empty());
    bed.pass(limits::SPEC_SETTLE * 2);
    file.write_all(text("a.v1", "two").as_bytes()).unwrap();
    drop(file);
    let saved = bed.read(false, &[("a.yaml", Heard::Saved)]);
    assert_eq!((saved.handlers(), saved.removed.len()), (vec!["two"], 0));
}

#[test]
fn a_deleted_file_is_gone_after_a_quiet_time() {
    let mut bed = bed();
    fs::remove_file(bed.path("a.yaml")).unwrap();
    assert!(bed.read(false, &[("a.yaml", Heard::Touched)]).removed.is_empty());
    bed.pass(limits::SPEC_SETTLE);
    let found = bed.read(false, &[]);
    assert_eq!(bed.names(&found.removed), ["a.yaml"]);
    assert_eq!(bed.specs.look_again_at(), None);
}

#[test]
fn a_link_and_a_second_name_of_a_file_wait_for_nobody_to_close_them() {
    let mut bed = bed();
    let elsewhere = bed.dir.path().join("elsewhere");
    fs::write(&elsewhere, text("l.v1", "linked")).unwrap();
    symlink(&elsewhere, bed.path("l.yaml")).unwrap();
    fs::hard_link(&elsewhere, bed.path("m.yaml")).unwrap();
    bed.read(false, &[("l.yaml", Heard::AtWork), ("m.yaml", Heard::AtWork)]);
    bed.pass(limits::SPEC_SETTLE);
    assert_eq!(bed.read(false, &[]).handlers(), ["linked", "linked"]);
}

#[test]
fn a_saved_file_that_is_empty_waits_for_the_rest() {
    let mut bed = bed();
    bed.write("a.yaml", "");
    assert!(bed.read(false, &[("a.yaml", Heard::Saved)]).changed.is_empty());
    bed.pass(limits::SPEC_SETTLE);
    let found = bed.read(false, &[]);
    assert_eq!((bed.changed(&found), found.handlers().len()), (vec!["a.yaml".to_owned()], 0));
}

#[test]
fn what_is_doubted_is_read_again_when_it_is_complete() {
    let mut bed = bed();
    bed.write("a.yaml", &text("a.v1", "half of the next save"));
    let found = bed.read(false, &[("a.yaml", Heard::Saved)]);
    bed.specs.doubt(&found.changed[0].path, true, bed.at);
    bed.pass(limits::SPEC_SETTLE);
    assert!(bed.read(true, &[]).changed.is_empty());
    bed.write("a.yaml", &text("a.v1", "all of it"));
    assert_eq!(bed.read(false, &[("a.yaml", Heard::Saved)]).handlers(), ["all of it"]);
}

#[test]
fn nothing_is_waited_for_in_a_directory_that_is_gone() {
    let mut bed = bed();
    bed.write("a.yaml", &text("a.v1", "two"));
    bed.read(false, &[("a.yaml", Heard::AtWork)]);
    let away = bed.dir.path().join("away");
    fs::rename(bed.path(""), &away).unwrap();
    assert!(bed.read(false, &[("a.yaml", Heard::Touched)]).unreadable.is_some());
    assert_eq!(bed.specs.look_again_at(), None);
    fs::rename(&away, bed.path("")).unwrap();
    assert_eq!(bed.settled().handlers(), ["two"]);
}
