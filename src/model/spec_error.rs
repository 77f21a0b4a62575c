//! What is wrong with a file that people write: where, what was found, what is expected.

use serde::{Deserialize, Serialize};

/// One thing wrong with a spec file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecError {
    /// The file.
    pub file: String,
    /// From 1; 0: the file as a whole.
    pub line: u32,
    /// From 1; 0: the file as a whole.
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
