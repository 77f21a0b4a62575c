//! Changes of the directory that the daemon makes itself.

use super::*;
use crate::model::id::TaskId;
use crate::model::request::{FileChange, RejectionCode};

const ASKER: u32 = 4711;

fn write(name: &str, handler: &str) -> FileChange {
    FileChange::Write { name: name.to_owned(), text: text("a.v1", handler).into_bytes() }
}

fn remove(name: &str) -> FileChange {
    let tasks = vec![TaskId::parse("a.v1").unwrap()];
    FileChange::Remove { name: name.to_owned(), tasks }
}

impl Bed {
    fn refusal(&mut self, change: &FileChange) -> (RejectionCode, String) {
        let halted = self.specs.change(std::slice::from_ref(change), ASKER).unwrap_err();
        assert_eq!(halted.done, 0);
        (halted.why.code, halted.why.detail)
    }

    fn change(&mut self, change: &FileChange, uid: u32) {
        self.specs.change(std::slice::from_ref(change), uid).unwrap();
    }

    fn all_names(&self) -> Vec<String> {
        let name = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(self.path("")).unwrap().map(name).collect();
        names.sort();
        names
    }
}

#[test]
fn a_written_file_is_read_at_once_and_comes_from_who_asked() {
    let mut bed = Bed::new();
    bed.read(true, &[]);
    bed.change(&write("a.yaml", "one"), ASKER);
    let found = bed.read(false, &[("a.yaml", Heard::Ours)]);
    assert_eq!((found.changed[0].uid, bed.all_names()), (Some(ASKER), vec!["a.yaml".to_owned()]));
    assert_eq!(found.changed[0].specs[0].handler, "one");
    bed.change(&write("a.yaml", "two"), ASKER + 1);
    let found = bed.read(false, &[("a.yaml", Heard::Ours)]);
    assert_eq!(found.changed[0].specs[0].handler, "two");
    assert_eq!(found.changed[0].uid, Some(ASKER + 1));
    // What somebody else then makes of it is theirs.
    bed.write("a.yaml", &text("a.v1", "three"));
    let owner = nix::unistd::geteuid().as_raw();
    assert_eq!(bed.settled().changed[0].uid, Some(owner));
}

#[test]
fn a_removed_file_is_gone_at_once() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.read(true, &[]);
    bed.change(&remove("a.yaml"), ASKER);
    let found = bed.read(false, &[("a.yaml", Heard::Ours)]);
    assert_eq!(bed.names(&found.removed), ["a.yaml"]);
    let (code, detail) = bed.refusal(&remove("a.yaml"));
    assert_eq!(code, RejectionCode::NotFound);
    assert!(detail.contains("there is no file"), "{detail}");
}

#[test]
fn a_written_file_keeps_the_mode_of_the_one_before_but_lets_nobody_else_write() {
    let mut bed = Bed::new();
    let mode = |bed: &Bed| fs::metadata(bed.path("a.yaml")).unwrap().permissions().mode() & 0o7777;
    bed.change(&write("a.yaml", "one"), ASKER);
    assert_eq!(mode(&bed), 0o640);
    for (before, after) in [(0o600, 0o600), (0o444, 0o444), (0o666, 0o644), (0o4755, 0o755)] {
        fs::set_permissions(bed.path("a.yaml"), fs::Permissions::from_mode(before)).unwrap();
        bed.change(&write("a.yaml", "two"), ASKER);
        assert_eq!(mode(&bed), after, "{before:o}");
    }
}

#[test]
fn a_file_that_has_come_to_define_something_else_is_not_removed() {
    let mut bed = Bed::new();
    for (content, word) in [
        ([text("a.v1", "one"), text("b.v1", "new")].join("---\n"), "defines b.v1 too"),
        (text("b.v1", "new"), "defines b.v1 too"),
        ("taskId: [".to_owned(), "is broken in line"),
        ("#".repeat(limits::SPEC_FILE_BYTES_MAX + 1), "has 262145 bytes"),
    ] {
        bed.write("a.yaml", &content);
        let (code, detail) = bed.refusal(&remove("a.yaml"));
        assert_eq!(code, RejectionCode::Conflict);
        assert!(detail.contains("has changed meanwhile") && detail.contains(word), "{detail}");
        assert_eq!(fs::read_to_string(bed.path("a.yaml")).unwrap(), content);
    }
}

#[test]
fn a_change_whose_directory_cannot_be_synced_is_done_and_told_so() {
    let mut bed = Bed::new();
    bed.read(true, &[]);
    bed.specs.sync = |_| Err(nix::errno::Errno::EIO);
    for change in [write("a.yaml", "one"), remove("a.yaml")] {
        let halted = bed.specs.change(std::slice::from_ref(&change), ASKER).unwrap_err();
        assert_eq!((halted.done, halted.why.code), (1, RejectionCode::Unavailable));
        let detail = &halted.why.detail;
        assert!(detail.contains("is changed (a.yaml) and that is in force"), "{detail}");
        let found = bed.read(false, &[("a.yaml", Heard::Ours)]);
        assert_eq!(found.changed.len() + found.removed.len(), 1);
        assert!(found.changed.iter().all(|file| file.uid == Some(ASKER)), "{found:?}");
    }
}

#[test]
fn only_a_plain_name_that_would_be_read_is_written_or_removed() {
    let mut bed = Bed::new();
    bed.write("x.txt", "");
    let long = format!("{}.yaml", "x".repeat(251));
    for name in
        ["", ".yaml", "../a.yaml", "d/a.yaml", "/a.yaml", ".a.yaml", "a.json", "a\n.yaml", &long]
    {
        assert_eq!(bed.refusal(&write(name, "x")).0, RejectionCode::Invalid, "{name:?}");
    }
    assert_eq!(bed.refusal(&remove("x.txt")).0, RejectionCode::Invalid);
    let longest = format!("{}.yaml", "x".repeat(250));
    bed.change(&write(&longest, "x"), ASKER);
    assert_eq!(bed.all_names(), ["x.txt".to_owned(), longest]);
}

#[test]
fn what_would_not_be_read_is_not_written() {
    let mut bed = Bed::new();
    let text = vec![b'#'; limits::SPEC_FILE_BYTES_MAX + 1];
    let (code, detail) = bed.refusal(&FileChange::Write { name: "a.yaml".to_owned(), text });
    assert_eq!(code, RejectionCode::Invalid);
    assert!(detail.contains("262145 bytes; at most 262144"), "{detail}");
    assert!(bed.all_names().is_empty());
}

#[test]
fn a_link_or_a_folder_of_that_name_is_left_alone() {
    let mut bed = Bed::new();
    let target = bed.dir.path().join("target");
    fs::write(&target, text("a.v1", "theirs")).unwrap();
    symlink(&target, bed.path("l.yaml")).unwrap();
    fs::create_dir(bed.path("f.yaml")).unwrap();
    let (code, detail) = bed.refusal(&write("l.yaml", "x"));
    assert_eq!(code, RejectionCode::Conflict);
    assert!(detail.contains("is a link to") && detail.contains("target"), "{detail}");
    assert_eq!(bed.refusal(&write("f.yaml", "x")).0, RejectionCode::Conflict);
    assert_eq!(bed.refusal(&remove("f.yaml")).0, RejectionCode::Conflict);
    assert_eq!(fs::read_to_string(&target).unwrap(), text("a.v1", "theirs"));
    // The link itself may go; what it leads to stays.
    bed.change(&remove("l.yaml"), ASKER);
    assert_eq!((bed.all_names(), target.exists()), (vec!["f.yaml".to_owned()], true));
}

#[test]
fn a_full_disk_is_told_apart_from_a_directory_that_cannot_be_written() {
    let code = |number| super::super::write::code_of(&std::io::Error::from_raw_os_error(number));
    assert_eq!([libc::ENOSPC, libc::EDQUOT].map(code), [RejectionCode::NoSpace; 2]);
    assert_eq!([libc::EACCES, libc::EROFS].map(code), [RejectionCode::Conflict; 2]);
    assert_eq!(code(libc::EIO), RejectionCode::Unavailable);
}

#[test]
fn a_draft_that_a_crash_left_behind_is_no_obstacle() {
    let mut bed = Bed::new();
    bed.write(&format!(".schedd.{}.0.tmp", std::process::id()), "taskId: half");
    bed.change(&write("a.yaml", "one"), ASKER);
    assert_eq!(bed.all_names(), ["a.yaml"]);
    assert_eq!(bed.settled().changed[0].specs[0].handler, "one");
}

#[test]
fn a_directory_that_is_missing_or_not_to_be_trusted_is_not_written() {
    let mut bed = Bed::new();
    fs::remove_dir(bed.path("")).unwrap();
    let (code, detail) = bed.refusal(&write("a.yaml", "x"));
    assert_eq!(code, RejectionCode::Conflict);
    assert!(detail.contains("cannot read"), "{detail}");
    let mut bed = Bed::of_daemon(0);
    fs::set_permissions(bed.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let detail = bed.refusal(&write("a.yaml", "x")).1;
    assert!(detail.contains("root"), "{detail}");
    assert!(bed.all_names().is_empty());
}

#[test]
fn several_files_are_written_all_or_none_and_read_as_one_change() {
    let mut bed = Bed::new();
    bed.write("b.yaml", &text("b.v1", "old"));
    fs::create_dir(bed.path("f.yaml")).unwrap();
    bed.read(true, &[]);
    let both = [write("a.yaml", "one"), write("b.yaml", "two")];
    let halted =
        bed.specs.change(&[&both[..], &[write("f.yaml", "x")]].concat(), ASKER).unwrap_err();
    assert_eq!((halted.done, halted.why.code), (0, RejectionCode::Conflict));
    assert!(halted.why.detail.contains("f.yaml is a directory"), "{}", halted.why.detail);
    assert_eq!(bed.all_names(), ["b.yaml", "f.yaml"], "no draft is left either");
    assert_eq!(fs::read_to_string(bed.path("b.yaml")).unwrap(), text("b.v1", "old"));
    bed.specs.change(&both, ASKER).unwrap();
    let heard = [("a.yaml", Heard::Ours), ("b.yaml", Heard::Ours)];
    let found = bed.read(false, &heard);
    let handlers: Vec<&str> = found.changed.iter().map(|f| &*f.specs[0].handler).collect();
    assert_eq!(handlers, ["one", "two"]);
}

#[test]
fn changes_that_come_to_a_halt_say_which_were_made() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    // The second finds nothing any more.
    let changes = [remove("a.yaml"), remove("a.yaml"), write("b.yaml", "two")];
    let halted = bed.specs.change(&changes, ASKER).unwrap_err();
    assert_eq!(halted.done, 1);
    let detail = halted.why.detail;
    assert!(detail.contains("a.yaml cannot be removed"), "{detail}");
    assert!(detail.ends_with("1 of 3 files were changed before that: a.yaml"), "{detail}");
    assert_eq!(bed.all_names(), Vec::<String>::new());
}
