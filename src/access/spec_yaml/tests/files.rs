//! The spec files of `tests/data/specs` and what is said about them.
//!
//! Beside `NAME.yaml` stands `NAME.txt` with every error as `line:column: path: message` and every
//! warning the same behind `warning: `; a good file without warnings has none. `NAME.json` is the
//! list of definitions that a good file makes, as far as it matters. All of it is written by hand.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{context, file_of};
use crate::model::event::{SpecError, SpecFile};

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/specs").join(kind)
}

/// The files of a folder with a given ending, by name.
pub(in crate::access) fn named(kind: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(kind)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == ending)).collect();
    files.sort();
    files
}

/// Reads a file as if it stood in the spec directory.
fn read(path: &Path) -> SpecFile {
    let name = path.file_name().unwrap().to_string_lossy();
    file_of(&format!("/etc/sched.d/{name}"), &fs::read(path).unwrap(), &context())
}

/// What is said about a file, a line each.
fn said(file: &SpecFile) -> String {
    let line = |e: &SpecError| {
        let path = if e.path.is_empty() { String::new() } else { format!("{}: ", e.path) };
        format!("{}:{}: {path}{}\n", e.line, e.column, e.message)
    };
    let warning = |e: &SpecError| format!("warning: {}", line(e));
    file.errors.iter().map(line).chain(file.warnings.iter().map(warning)).collect()
}

/// The lines that are said and not expected (+), and the other way round (-).
fn difference(path: &Path, expected: &str, said: &str) -> String {
    let lines = |sign, of: &str, without: &str| -> String {
        let without: Vec<&str> = without.lines().collect();
        let only = of.lines().filter(|line| !without.contains(line));
        only.map(|line| format!("\n{sign} {line}")).collect()
    };
    let (missing, more) = (lines('-', expected, said), lines('+', said, expected));
    format!("{}:{missing}{more}", path.display())
}

/// Fails with all differences of all files at once.
fn hold(differences: &[String]) {
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn bad_files_get_exactly_the_diagnostics_beside_them_and_define_nothing() {
    let mut differences = Vec::new();
    let files = named("err", "yaml");
    assert!(files.len() > 20, "found {} files only", files.len());
    for path in files {
        let file = read(&path);
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        let said = said(&file);
        if expected.is_empty() || said != expected {
            differences.push(difference(&path, &expected, &said));
        }
        if file.errors.is_empty() || !file.specs.is_empty() {
            differences.push(format!("{}: is accepted", path.display()));
        }
    }
    hold(&differences);
}

#[test]
fn good_files_get_the_warnings_and_make_the_definitions_beside_them() {
    let mut differences = Vec::new();
    let files = named("ok", "yaml");
    assert!(files.len() > 10, "found {} files only", files.len());
    for path in files {
        let file = read(&path);
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        let said = said(&file);
        if said != expected {
            differences.push(difference(&path, &expected, &said));
        }
        if let Ok(text) = fs::read_to_string(path.with_extension("json")) {
            let expected: Value = serde_json::from_str(&text).unwrap();
            let made = serde_json::to_value(&file.specs).unwrap();
            if let Some(difference) = missing(&expected, &made) {
                differences.push(format!("{}: {difference}", path.display()));
            }
        }
    }
    hold(&differences);
}

/// Where `made` lacks what is expected: keys may be added, everything else is equal.
fn missing(expected: &Value, made: &Value) -> Option<String> {
    match (expected, made) {
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().find_map(|(key, value)| {
            let inner = found.get(key).unwrap_or(&Value::Null);
            missing(value, inner).map(|difference| format!("{key}.{difference}"))
        }),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => wanted
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(n, (w, f))| missing(w, f).map(|difference| format!("{n}.{difference}"))),
        _ => (expected != made).then(|| format!(" is {made}, expected {expected}")),
    }
}

#[test]
fn every_expectation_has_its_file() {
    for kind in ["ok", "err"] {
        for ending in ["txt", "json"] {
            for path in named(kind, ending) {
                assert!(path.with_extension("yaml").exists(), "{}", path.display());
            }
        }
    }
}
