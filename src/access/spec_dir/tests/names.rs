//! Which names are read, and how they are shown.

use super::*;
use crate::access::spec_dir::is_spec_name;

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
fn a_name_that_is_not_utf_8_is_an_error_of_its_own() {
    use std::os::unix::ffi::OsStrExt;
    let mut bed = Bed::new();
    for name in [b"caf\xe8.yaml".as_slice(), b"caf\xe9.yaml", b"caf\\xe9.yaml"] {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(bed.dir.path().join("d").join(name), text("a.v1", "x")).unwrap();
    }
    let found = bed.settled();
    // The readable name is another file than the one whose name is shown like it.
    let mut names = bed.changed(&found);
    names.sort();
    assert_eq!(names, ["(not UTF-8)/caf\\xe8.yaml", "(not UTF-8)/caf\\xe9.yaml", "caf\\xe9.yaml"]);
    for file in &found.changed {
        let is_readable = !file.path.contains("(not UTF-8)");
        assert_eq!(file.errors.is_empty(), is_readable, "{}", file.path);
        assert!(file.errors.iter().all(|e| e.message.contains("not UTF-8; rename it")));
    }
    assert!(bed.settled().changed.is_empty());
}

#[test]
fn each_regular_file_that_is_not_read_is_named_once() {
    let mut bed = Bed::new();
    let leftovers = [
        "#x.yaml#",
        ".hidden.yaml",
        ".x.yaml.swp",
        "4913",
        "X.YAML",
        "my.json",
        "x.yaml.bak",
        "x.yaml.dpkg-new",
        "x.yaml.rpmsave",
        "x.yaml~",
    ];
    for name in leftovers {
        bed.write(name, &text("never.v1", "x"));
    }
    for name in ["my.task.v2.yaml", "x.yml"] {
        bed.write(name, &text(&format!("{}.v1", &name[..1]), "x"));
    }
    fs::create_dir(bed.path("folder")).unwrap();
    let found = bed.settled();
    assert_eq!(bed.changed(&found), ["my.task.v2.yaml", "x.yml"]);
    let named = bed.specs.take_ignored();
    assert_eq!(bed.names(&named), leftovers);
    bed.write("late.txt", "");
    bed.settled();
    let named = bed.specs.take_ignored();
    assert_eq!(bed.names(&named), ["late.txt"]);
}
