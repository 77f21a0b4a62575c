use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;

fn local(_: &Path) -> FileSystem {
    FileSystem::Local
}

/// Walks along a pattern below a directory, within bounds.
fn walk_within(bounds: Bounds, root: &Path, pattern: &str) -> Walked {
    let pattern = Pattern::parse(&format!("{}/{pattern}", root.display())).unwrap();
    Walker::new(&Clock::new(), local, bounds).walk(&pattern)
}

fn walk(root: &Path, pattern: &str) -> Walked {
    walk_within(Bounds::USUAL, root, pattern)
}

/// What was seen, as names below the root.
fn names(walked: &Walked, root: &Path) -> Vec<String> {
    let below =
        |path: &Arc<str>| Path::new(&**path).strip_prefix(root).unwrap().display().to_string();
    walked.seen.keys().map(below).collect()
}

fn notes(walked: &Walked) -> String {
    walked.notes.iter().cloned().collect::<Vec<_>>().join("\n")
}

#[test]
fn links_that_lead_in_a_circle_or_to_everything_are_not_walked() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("a")).unwrap();
    fs::write(root.path().join("a/1.csv"), "").unwrap();
    symlink(".", root.path().join("self")).unwrap();
    symlink("/", root.path().join("everything")).unwrap();
    symlink("loop", root.path().join("loop")).unwrap();
    let walked = walk(root.path(), "**/*.csv");
    assert_eq!(names(&walked, root.path()), ["a/1.csv"]);
    assert!(walked.is_complete, "{}", notes(&walked));
    assert_eq!(walked.dirs.len(), 2);
}

#[test]
fn a_walk_ends_at_its_bounds_and_says_so() {
    let root = tempfile::tempdir().unwrap();
    for n in 0..5 {
        fs::create_dir(root.path().join(format!("d{n}"))).unwrap();
        fs::write(root.path().join(format!("{n}.csv")), "").unwrap();
    }
    let usual = Bounds::USUAL;
    assert!(walk_within(usual, root.path(), "**").is_complete);
    let said = |bounds| {
        let walked = walk_within(bounds, root.path(), "**");
        assert!(!walked.is_complete, "what was left out has not gone");
        notes(&walked)
    };
    assert!(said(Bounds { dirs: 3, ..usual }).contains("more than 3 folders"));
    assert!(said(Bounds { files: 3, ..usual }).contains("more than 3 files match"));
    assert!(said(Bounds { names: 3, ..usual }).contains("holds more than 3 names"));
    assert!(said(Bounds { within: Duration::ZERO, ..usual }).contains("within 0ns"));
}

#[test]
fn names_that_are_no_text_are_said_and_all_others_are_taken() {
    let root = tempfile::tempdir().unwrap();
    let bad = OsStr::from_bytes(b"\xff.csv");
    let long = format!("{}.csv", "x".repeat(251));
    let odd = ["a\nb.csv", "\"q' $(x);.csv", "-rf.csv", " .csv", &long];
    fs::write(root.path().join(bad), "").unwrap();
    fs::create_dir(root.path().join(OsStr::from_bytes(b"\xfe"))).unwrap();
    fs::write(root.path().join(OsStr::from_bytes(b"\xfe")).join("x.csv"), "").unwrap();
    for name in odd {
        fs::write(root.path().join(name), "").unwrap();
    }
    let walked = walk(root.path(), "**/*.csv");
    let mut expected = odd.map(str::to_owned);
    expected.sort();
    assert_eq!(names(&walked, root.path()), expected);
    assert_eq!(walked.notes.len(), 2, "one note for each folder: {}", notes(&walked));
    assert!(notes(&walked).contains("names that are not UTF-8"));
}

#[test]
fn what_the_kernel_shows_of_itself_does_not_arrive() {
    for pattern in ["/proc/*/status", "/proc/1/*", "/proc/uptime", "/proc/**"] {
        let pattern = Pattern::parse(pattern).unwrap();
        let walked =
            Walker::new(&Clock::new(), super::super::file_system::file_system, Bounds::USUAL)
                .walk(&pattern);
        assert!(walked.seen.is_empty() && walked.dirs.is_empty(), "{pattern:?}: {walked:?}");
        assert!(notes(&walked).contains("shows the kernel's state (proc)"), "{walked:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_looked_at_is_said_and_its_files_have_not_gone() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let walked = walk(root.path(), "file/*.csv");
    assert!(notes(&walked).contains("is not a folder"));
    // A name longer than any: refused to root too.
    let name = "x".repeat(300);
    let walked = walk(root.path(), &format!("{name}/*.csv"));
    assert!(notes(&walked).contains("cannot look at"), "{walked:?}");
    assert!(!walked.is_complete);
}
