//! Given a directory's history, these definitions.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{SpecDir, is_spec_name};
use crate::access::spec_yaml::SpecContext;
use crate::limits;
use crate::model::event::Definitions;

/// Nobody's: a daemon that is not root does not look at owners.
const USER: u32 = 1000;

fn text(id: &str, handler: &str) -> String {
    format!("taskId: {id}\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: '{handler}'\n")
}

struct Bed {
    dir: TempDir,
    specs: SpecDir,
}

impl Bed {
    fn of_daemon(uid: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let specs = SpecDir::owned_by(dir.path().join("d"), SpecContext::default(), uid);
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::set_permissions(dir.path().join("d"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir, specs }
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
fn only_visible_yaml_files_are_definitions() {
    for good in ["a.yaml", "a.yml", "a.b.v1.yaml", "é.yaml"] {
        assert!(is_spec_name(good), "{good}");
    }
    for bad in [
        ".a.yaml",
        "..data",
        "a.yaml~",
        "a.yaml.swp",
        ".a.yaml.swp",
        "a.yaml.tmp",
        "a.tmp",
        "a.yaml.bak",
        "a.yaml.dpkg-old",
        "a.yaml.rpmsave",
        "a.json",
        "yaml",
        ".yaml",
        "a.YAML",
    ] {
        assert!(!is_spec_name(bad), "{bad}");
    }
}

#[test]
fn new_changed_and_removed_files_are_told_once() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.write("b.yml", &text("b.v1", "one"));
    bed.write("b.yml~", "not read");
    fs::create_dir(bed.path("sub.yaml")).unwrap();
    let first = bed.specs.scan();
    assert_eq!(bed.changed(&first), ["a.yaml", "b.yml"]);
    assert_eq!(bed.names(first.present.as_deref().unwrap()), ["a.yaml", "b.yml"]);
    assert_eq!((first.removed.len(), first.unreadable), (0, None));
    for _ in 0..3 {
        let same = bed.specs.scan();
        assert_eq!((same.changed.len(), same.removed.len()), (0, 0));
        assert_eq!(same.present.unwrap().len(), 2);
    }
    bed.write("a.yaml", &text("a.v1", "two"));
    fs::remove_file(bed.path("b.yml")).unwrap();
    let then = bed.specs.scan();
    assert_eq!(bed.changed(&then), ["a.yaml"]);
    assert_eq!(then.changed[0].specs[0].handler, "two");
    assert_eq!(bed.names(&then.removed), ["b.yml"]);
    assert!(!bed.specs.needs_rescan());
}

#[test]
fn a_write_of_the_same_content_is_no_change() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.specs.scan();
    bed.write("a.yaml", &text("a.v1", "one"));
    assert!(bed.specs.scan().changed.is_empty());
}

#[test]
fn a_second_write_that_stat_cannot_tell_apart_is_seen() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.specs.scan();
    // As if both writes had come within one tick: the stamp of the second is the first's.
    bed.write("a.yaml", &text("a.v1", "two"));
    let path = bed.path("a.yaml");
    let stamp = super::Stamp::of(&fs::metadata(&path).unwrap());
    let known = bed.specs.known.get_mut(&*path.to_string_lossy()).unwrap();
    known.stamp = Some(stamp);
    assert_eq!(bed.specs.scan().changed.len(), 1);
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
    assert_eq!(bed.specs.scan().changed[0].specs[0].handler, "1");
    symlink(bed.dir.path().join("2"), bed.path("..tmp")).unwrap();
    fs::rename(bed.path("..tmp"), bed.path("..data")).unwrap();
    assert_eq!(bed.specs.scan().changed[0].specs[0].handler, "2");
}

#[test]
fn what_cannot_be_read_is_there_and_told_once() {
    let mut bed = Bed::new();
    nix::unistd::mkfifo(&bed.path("pipe.yaml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("nowhere", bed.path("link.yaml")).unwrap();
    bed.write("huge.yaml", &"#".repeat(limits::SPEC_FILE_BYTES_MAX + 1));
    bed.write("bad.yaml", "taskId: [\n");
    bed.write("good.yaml", &text("good.v1", "x"));
    let found = bed.specs.scan();
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
    let again = bed.specs.scan();
    assert_eq!((again.changed.len(), again.present.unwrap().len()), (0, 5));
    fs::remove_file(bed.path("link.yaml")).unwrap();
    bed.write("link.yaml", &text("link.v1", "x"));
    let repaired = bed.specs.scan();
    assert_eq!(bed.changed(&repaired), ["link.yaml"]);
    assert!(repaired.changed[0].errors.is_empty());
}

#[test]
fn a_missing_directory_leaves_what_is_known_alone() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "one"));
    bed.specs.scan();
    let away = bed.dir.path().join("away");
    fs::rename(bed.path(""), &away).unwrap();
    let missing = bed.specs.scan();
    assert!(missing.unreadable.unwrap().contains("cannot read"));
    assert_eq!((missing.changed.len(), missing.removed.len(), missing.present), (0, 0, None));
    fs::rename(&away, bed.path("")).unwrap();
    assert!(bed.specs.scan().changed.is_empty());
    fs::remove_file(bed.path("a.yaml")).unwrap();
    let empty = bed.specs.scan();
    assert_eq!((empty.present, empty.removed.len()), (Some(Vec::new()), 1));
}

#[test]
fn another_device_leaves_what_is_known_alone() {
    let mut bed = Bed::new();
    bed.specs.scan();
    bed.specs.device = bed.specs.device.map(|device| device + 1);
    assert!(bed.specs.scan().unreadable.unwrap().contains("another device"));
}

#[test]
fn a_new_context_reads_every_file_anew() {
    let mut bed = Bed::new();
    bed.write("a.yaml", &text("a.v1", "x").replace("SHELL", "SETTLE"));
    assert_eq!(bed.specs.scan().changed[0].errors.len(), 1);
    let mut context = SpecContext::default();
    context.task_types.insert("SETTLE".to_owned());
    bed.specs.set_context(context);
    assert!(bed.specs.scan().changed[0].errors.is_empty());
}

#[test]
fn root_follows_nothing_that_others_can_write() {
    // What belongs to root can only be made by root; as anyone else the owner is at fault.
    let is_root = nix::unistd::geteuid().is_root();
    let mut bed = Bed::of_daemon(0);
    bed.write("a.yaml", &text("a.v1", "x"));
    bed.write("w.yaml", &text("w.v1", "x"));
    fs::set_permissions(bed.path("w.yaml"), fs::Permissions::from_mode(0o664)).unwrap();
    let found = bed.specs.scan();
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
    let found = bed.specs.scan();
    assert_eq!(bed.changed(&found), ["w.yaml"]);
    std::os::unix::fs::chown(bed.path("a.yaml"), Some(USER), None).unwrap();
    let found = bed.specs.scan();
    assert!(found.changed[0].errors[0].message.starts_with("belongs to user 1000, not to root"));
    fs::set_permissions(bed.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(bed.specs.scan().unreadable.unwrap().contains("has mode 0777"));
}
