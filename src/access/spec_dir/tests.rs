//! Given a directory's history, these definitions.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::{Cue, Heard, SpecDir};
use crate::access::spec_yaml::SpecContext;
use crate::limits;
use crate::model::event::{Definitions, SpecFile};
use crate::model::time::Timestamp;

mod half_written;
mod moves;
mod names;
mod writing;

/// Nobody's: a daemon that is not root does not look at owners.
const USER: u32 = 1000;

fn text(id: &str, handler: &str) -> String {
    format!("taskId: {id}\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: '{handler}'\n")
}

struct Bed {
    dir: TempDir,
    specs: SpecDir,
    /// Now, as the readings are told.
    at: Duration,
}

impl Bed {
    fn of_daemon(uid: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let specs = SpecDir::owned_by(dir.path().join("d"), SpecContext::default(), uid);
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::set_permissions(dir.path().join("d"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir, specs, at: Duration::from_secs(1) }
    }

    fn new() -> Self {
        Self::of_daemon(USER)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("d").join(name)
    }

    /// Writes a file that only its owner can write, whatever the umask.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// A reading now, of everything or of what was heard of.
    fn read(&mut self, is_whole: bool, heard: &[(&str, Heard)]) -> Definitions {
        let heard = heard.iter().map(|(name, heard)| ((*name).into(), *heard)).collect();
        let wall = Timestamp::FAR;
        self.specs.scan(&Cue { at: self.at, wall, is_whole, heard })
    }

    fn pass(&mut self, time: Duration) {
        self.at += time;
    }

    /// What two readings of everything find that are a quiet time apart.
    fn settled(&mut self) -> Definitions {
        let first = self.read(true, &[]);
        self.pass(limits::SPEC_SETTLE);
        let mut then = self.read(true, &[]);
        then.changed.splice(0..0, first.changed);
        then.removed.splice(0..0, first.removed);
        then
    }

    fn names(&self, paths: &[String]) -> Vec<String> {
        let folder = self.dir.path().join("d");
        let name =
            |p: &String| Path::new(p).strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        paths.iter().map(name).collect()
    }

    fn changed(&self, found: &Definitions) -> Vec<String> {
        self.names(&found.changed.iter().map(|f| f.path.clone()).collect::<Vec<_>>())
    }
}

#[test]
fn new_changed_and_removed_files_are_told_once() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.write("b.yml", &text("b.v1", "one"));
    bed.write("b.yml~", "not read");
    fs::create_dir(bed.path("sub.yaml")).unwrap();
    let first = bed.settled();
    assert_eq!(bed.changed(&first), ["a.yaml", "b.yml"]);
    assert_eq!(bed.names(first.present.as_deref().unwrap()), ["a.yaml", "b.yml"]);
    assert_eq!((first.removed.len(), first.unreadable), (0, None));
    for _ in 0..3 {
        let same = bed.settled();
        assert_eq!((same.changed.len(), same.removed.len()), (0, 0));
        assert_eq!(same.present.unwrap().len(), 2);
    }
    bed.write("a.yaml", &text("a.v1", "two"));
    fs::remove_file(bed.path("b.yml")).unwrap();
    let then = bed.settled();
    assert_eq!(bed.changed(&then), ["a.yaml"]);
    assert_eq!(then.changed[0].specs[0].handler, "two");
    assert_eq!(bed.names(&then.removed), ["b.yml"]);
    assert_eq!(bed.specs.look_again_at(), None);
}

#[test]
fn a_write_of_the_same_content_is_no_change() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.settled();
    bed.write("a.yaml", &text("a.v1", "one"));
    assert!(bed.settled().changed.is_empty());
}

#[test]
fn a_second_write_that_stat_cannot_tell_apart_is_seen() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.settled();
    // As if both writes had come within one tick: the stamp of the second is the first's.
    bed.write("a.yaml", &text("a.v1", "two"));
    let path = bed.path("a.yaml");
    let stamp = super::Stamp::of(&nix::sys::stat::stat(&path).unwrap());
    let known = bed.specs.known.get_mut(std::ffi::OsStr::new("a.yaml")).unwrap();
    (known.stamp, known.confirmed) = (Some(stamp), false);
    assert_eq!(bed.settled().changed.len(), 1);
}

#[test]
fn content_decides_whatever_times_and_sizes_say() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    let old = fs::metadata(bed.path("a.yaml")).unwrap().modified().unwrap();
    bed.settled();
    // An older file of the same size, with its times.
    bed.write("a.yaml", &text("a.v1", "two"));
    let times = fs::FileTimes::new().set_modified(old - Duration::from_secs(86_400));
    fs::File::options().write(true).open(bed.path("a.yaml")).unwrap().set_times(times).unwrap();
    assert_eq!(bed.settled().changed[0].specs[0].handler, "two");
    // What was heard of is read even if nothing that stat tells has changed.
    bed.write("a.yaml", &text("a.v1", "six"));
    let stamp = super::Stamp::of(&nix::sys::stat::stat(&bed.path("a.yaml")).unwrap());
    let known = bed.specs.known.get_mut(std::ffi::OsStr::new("a.yaml")).unwrap();
    (known.stamp, known.confirmed) = (Some(stamp), true);
    let found = bed.read(false, &[("a.yaml", Heard::Saved)]);
    assert_eq!(found.changed[0].specs[0].handler, "six");
}

#[test]
fn links_are_followed_and_a_swap_behind_them_is_seen() {
    let mut bed = Bed::new();
    for version in ["1", "2"] {
        let folder = bed.dir.path().join(version);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("t.yaml"), text("t.v1", version)).unwrap();
    }
    symlink(bed.dir.path().join("1"), bed.path("..data")).unwrap();
    symlink("..data/t.yaml", bed.path("t.yaml")).unwrap();
    assert_eq!(bed.settled().changed[0].specs[0].handler, "1");
    symlink(bed.dir.path().join("2"), bed.path("..tmp")).unwrap();
    fs::rename(bed.path("..tmp"), bed.path("..data")).unwrap();
    assert_eq!(bed.settled().changed[0].specs[0].handler, "2");
}

#[test]
fn what_cannot_be_read_is_there_and_told_once() {
    let mut bed = Bed::new();
    nix::unistd::mkfifo(&bed.path("pipe.yaml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("nowhere", bed.path("link.yaml")).unwrap();
    bed.write("huge.yaml", &"#".repeat(limits::SPEC_FILE_BYTES_MAX + 1));
    bed.write("bad.yaml", "taskId: [\n");
    bed.write("good.yaml", &text("good.v1", "x"));
    let found = bed.settled();
    let told: Vec<(String, bool)> = bed
        .changed(&found)
        .into_iter()
        .zip(found.changed.iter().map(|f| f.errors.is_empty()))
        .collect();
    let expected = [
        ("bad.yaml", false),
        ("good.yaml", true),
        ("huge.yaml", false),
        ("link.yaml", false),
        ("pipe.yaml", false),
    ];
    assert_eq!(told, expected.map(|(name, good)| (name.to_owned(), good)));
    let message = |i: usize| found.changed[i].errors[0].message.as_str();
    assert_eq!(message(2), "has 262145 bytes; at most 262144 are read");
    assert_eq!(message(3), "is a link that leads nowhere");
    assert_eq!(message(4), "is not a regular file");
    let again = bed.settled();
    assert_eq!((again.changed.len(), again.present.unwrap().len()), (0, 5));
    fs::remove_file(bed.path("link.yaml")).unwrap();
    bed.write("link.yaml", &text("link.v1", "x"));
    let repaired = bed.settled();
    assert_eq!(bed.changed(&repaired), ["link.yaml"]);
    assert!(repaired.changed[0].errors.is_empty());
}

#[test]
fn a_missing_directory_leaves_what_is_known_alone() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.settled();
    let away = bed.dir.path().join("away");
    fs::rename(bed.path(""), &away).unwrap();
    let missing = bed.settled();
    assert!(missing.unreadable.unwrap().contains("cannot read"));
    assert_eq!((missing.changed.len(), missing.removed.len(), missing.present), (0, 0, None));
    fs::rename(&away, bed.path("")).unwrap();
    assert!(bed.settled().changed.is_empty());
    fs::remove_file(bed.path("a.yaml")).unwrap();
    let empty = bed.settled();
    assert_eq!((empty.present, empty.removed.len()), (Some(Vec::new()), 1));
}

#[test]
fn another_device_leaves_what_is_known_alone() {
    let mut bed = Bed::new();
    bed.settled();
    bed.specs.device = bed.specs.device.map(|device| device + 1);
    assert!(bed.settled().unreadable.unwrap().contains("another device"));
}

#[test]
fn root_follows_nothing_that_others_can_write() {
    // What belongs to root can only be made by root; as anyone else the owner is at fault.
    let is_root = nix::unistd::geteuid().is_root();
    let mut bed = Bed::of_daemon(0);
    bed.write("a.yaml", &text("a.v1", "x"));
    bed.write("w.yaml", &text("w.v1", "x"));
    fs::set_permissions(bed.path("w.yaml"), fs::Permissions::from_mode(0o664)).unwrap();
    let found = bed.settled();
    if !is_root {
        assert!(found.unreadable.unwrap().contains("not to root"));
        return;
    }
    assert!(found.changed[0].errors.is_empty());
    assert_eq!(
        found.changed[1].errors[0].message,
        "has mode 0664: others than root can write it, and its tasks would run as root; chmod \
         go-w it"
    );
    fs::set_permissions(bed.path("w.yaml"), fs::Permissions::from_mode(0o644)).unwrap();
    let found = bed.settled();
    assert_eq!(bed.changed(&found), ["w.yaml"]);
    std::os::unix::fs::chown(bed.path("a.yaml"), Some(USER), None).unwrap();
    let found = bed.settled();
    assert!(found.changed[0].errors[0].message.starts_with("belongs to user 1000, not to root"));
    fs::set_permissions(bed.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(bed.settled().unreadable.unwrap().contains("has mode 0777"));
}

#[test]
fn nothing_but_a_regular_file_is_ever_opened() {
    let mut bed = Bed::new();
    let pipe = bed.dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink(&pipe, bed.path("pipe.yaml")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bed.path("socket.yaml")).unwrap();
    // Whoever opens a pipe for writing stands until somebody opens it for reading.
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::OpenOptions::new().write(true).open(pipe).unwrap()
    });
    let found = bed.settled();
    assert_eq!(bed.changed(&found), ["pipe.yaml", "socket.yaml"]);
    for file in &found.changed {
        assert_eq!(file.errors[0].message, "is not a regular file");
    }
    assert!(!writer.is_finished(), "somebody has opened the pipe");
    fs::File::open(&pipe).unwrap();
    writer.join().unwrap();
}

#[test]
fn a_link_that_the_kernel_makes_up_is_not_followed() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "x"));
    let open = fs::File::open(bed.path("a.yaml")).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    symlink(format!("/proc/{}/fd/{number}", std::process::id()), bed.path("l.yaml")).unwrap();
    let found = bed.settled();
    assert_eq!(bed.changed(&found), ["a.yaml", "l.yaml"]);
    assert!(found.changed[1].errors[0].message.contains("through /proc"));
}

#[test]
fn a_fault_in_reading_one_file_is_told_as_that_files_and_the_others_are_read() {
    let mut bed = Bed::new();
    bed.specs.parse = |path, bytes, context| {
        assert!(!path.ends_with("b.yaml"), "planted");
        crate::access::spec_yaml::read(path, bytes, context)
    };
    for name in ["a", "b", "c"] {
        bed.write(&format!("{name}.yaml"), &text(&format!("{name}.v1"), "x"));
    }
    let found = bed.settled();
    assert_eq!(bed.changed(&found), ["a.yaml", "b.yaml", "c.yaml"]);
    assert_eq!(found.changed.iter().map(|f| f.specs.len()).collect::<Vec<_>>(), [1, 0, 1]);
    assert_eq!(
        found.changed[1].errors[0].message,
        "could not be read: a fault of schedd; please report it with the file"
    );
    assert!(bed.settled().changed.is_empty());
}

#[test]
fn a_definition_comes_from_the_owner_of_its_file() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "x"));
    let owner = nix::unistd::geteuid().as_raw();
    assert_eq!(bed.settled().changed[0].uid, Some(owner));
    if owner != 0 {
        return;
    }
    std::os::unix::fs::chown(bed.path("a.yaml"), Some(USER), None).unwrap();
    bed.write("a.yaml", &text("a.v1", "y"));
    assert_eq!(bed.settled().changed[0].uid, Some(USER));
}

#[test]
fn many_files_are_read_as_few_are() {
    let mut bed = Bed::new();
    for n in 0..500 {
        bed.write(&format!("t{n:03}.yaml"), &text(&format!("t{n:03}.v1"), "x"));
    }
    bed.write("t250.yaml", "taskId: [\n");
    let found = bed.settled();
    let ids: Vec<String> =
        found.changed.iter().flat_map(|f| &f.specs).map(|s| s.task_id.to_string()).collect();
    let expected: Vec<String> =
        (0..500).filter(|n| *n != 250).map(|n| format!("t{n:03}.v1")).collect();
    assert_eq!(ids, expected);
    assert_eq!(found.changed.len(), 500);
}
