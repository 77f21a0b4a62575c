//! What holds of the loader for all bytes; shared by the fuzz target and `tests/fuzz.rs`.

use sched::access::spec_yaml::{SpecContext, read};
use sched::model::event::SpecFile;
use sched::model::spec::TaskSpec;

fn load(bytes: &[u8]) -> SpecFile {
    read("/etc/sched.d/fuzz.yaml", bytes, &SpecContext::default())
}

/// Reads some bytes as a spec file.
///
/// # Panics
/// If a file has both definitions and errors, if an error stands nowhere in the file, or if a
/// definition does not survive the store and the reader.
pub(crate) fn check_spec(bytes: &[u8]) {
    let file = load(bytes);
    assert!(file.errors.is_empty() || file.specs.is_empty(), "a file is whole or refused");
    let lines = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    for told in file.errors.iter().chain(&file.warnings) {
        assert!(usize::try_from(told.line).is_ok_and(|line| line <= lines), "{told} of {lines}");
        assert_eq!(told.line == 0, told.column == 0, "{told}");
        assert!(!told.message.is_empty() && !told.message.contains('\0'), "{told}");
    }
    for spec in &file.specs {
        let stored = serde_json::to_string(spec).expect("a definition has a stored form");
        let from_store: TaskSpec = serde_json::from_str(&stored).expect("the stored form is read");
        assert_eq!(from_store, **spec, "{stored}");
        let again = load(stored.as_bytes());
        assert_eq!(again.errors, [], "{stored}");
        assert_eq!(again.specs.first(), Some(spec), "{stored}");
    }
}
