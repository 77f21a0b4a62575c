//! What is wrong with a file that people write: where, what was found, what is expected.

use serde::{Deserialize, Serialize};

/// One thing wrong with a spec file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecError {
    /// The file.
    pub file: String,
    /// From 1; 0, null in JSON: the file as a whole.
    #[serde(with = "zero_as_null")]
    pub line: u32,
    /// From 1; 0, null in JSON: the file as a whole.
    #[serde(with = "zero_as_null")]
    pub column: u32,
    /// The key's path, such as `retry.maxAttempts`; empty: the document.
    pub path: String,
    /// What was found, what is expected.
    pub message: String,
}

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// What is not known is null.
mod zero_as_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's `with` gives a reference")]
    pub(super) fn serialize<S: Serializer>(number: &u32, s: S) -> Result<S::Ok, S::Error> {
        (*number > 0).then_some(*number).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
        Option::<u32>::deserialize(d).map(Option::unwrap_or_default)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_fault_of_the_file_as_a_whole_has_no_place() {
        let json = |line, column| json!({"file": "a.yaml", "line": line, "column": column, "path": "", "message": "m"});
        let whole = json(None, None);
        let error: SpecError = from_value(whole.clone()).unwrap();
        assert_eq!((error.line, error.to_string().as_str()), (0, "a.yaml: m"));
        assert_eq!(to_value(&error).unwrap(), whole);
        // As versions before wrote it.
        assert_eq!(from_value::<SpecError>(json(Some(0), Some(0))).unwrap(), error);
        let placed = json(Some(3), Some(7));
        let error: SpecError = from_value(placed.clone()).unwrap();
        assert_eq!((error.line, error.column), (3, 7));
        assert_eq!(to_value(&error).unwrap(), placed);
    }
}
