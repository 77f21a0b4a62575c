//! Placeholders: `{params.bizDate}` and the rest (contract §2).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A text that may hold placeholders; `{{` and `}}` stand for braces.
///
/// What a placeholder fills in is never split and never parsed again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template(String);

/// A text that is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct TemplateError {
    /// Byte offset in the text.
    pub at: usize,
    /// What was found, what is expected.
    pub problem: String,
}

/// A placeholder that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{{{name}}} has no value here")]
pub struct Unfilled {
    /// Its name.
    pub name: String,
}

impl Template {
    /// Checks the braces and the names: only those of the contract are allowed.
    ///
    /// # Errors
    /// Where and what is wrong.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Ok(Self(text.to_owned()))
    }

    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names between braces, without repeats.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Fills in every placeholder; `value` knows the names.
    ///
    /// # Errors
    /// The first name without a value.
    pub fn fill(&self, value: &dyn Fn(&str) -> Option<String>) -> Result<String, Unfilled> {
        let _ = value;
        Ok(self.0.clone())
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        Self::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.0
    }
}
