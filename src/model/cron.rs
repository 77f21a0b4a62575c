//! Cron expressions: Vixie rules with extensions, and the instants they name in a zone.
//!
//! Three steps: `parse` reads the text (`field` each field of it), `calendar` enumerates offset-free
//! wall-clock times through the `cron` crate (the only file that names it), `zone` turns them into
//! instants. Beside them `count` says how many there are without naming them, and `changes` what a
//! clock's change does to them. Nothing here reads a clock or remembers a fire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::time::Timestamp;

mod calendar;
mod changes;
mod count;
mod field;
mod fields;
mod parse;
mod surprises;
mod zone;

/// A checked expression: 5 fields, 6 with leading seconds, or a nickname such as `@daily`.
///
/// Cheap to clone. Two are equal if their texts are.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CronExpr {
    text: String,
    calendar: Arc<calendar::Calendar>,
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

impl CronExpr {
    /// Checks an expression; one that can never fire is refused.
    ///
    /// # Errors
    /// Which field and item is wrong and what is allowed there.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let fields = parse::parse(text)?;
        let calendar =
            calendar::Calendar::new(fields).map_err(|problem| CronError { column: 0, problem })?;
        Ok(Self { text: text.trim_ascii().to_owned(), calendar: Arc::new(calendar) })
    }

    /// The expression as written, blanks trimmed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first fire strictly after a time; `None` beyond the year 2100.
    ///
    /// Fires are whole seconds, from the zone's 1970 on. An expression whose second, minute or hour
    /// starts with `*` follows the clock through its changes; any other fires once where the clock
    /// skips or repeats its time.
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let at = zone::next(&self.calendar, second_of(after), zone)?;
        Some(Timestamp::from_millis(at.saturating_mul(1000)))
    }

    /// The first fire strictly after a time, with what a listing tells of the clock's changes: which
    /// times moved to it, that it is one of two, and what was dropped since that time.
    #[must_use]
    pub fn next_told(
        &self,
        after: Timestamp,
        zone: &TimeZone,
    ) -> Option<(Timestamp, Option<String>)> {
        let (at, told) = changes::told(&self.calendar, second_of(after), zone)?;
        Some((Timestamp::from_millis(at.saturating_mul(1000)), told))
    }

    /// What the zone's clock will do to it in (after, until] that its writer may not expect: the
    /// first times that are skipped and the first that come twice. `None`: nothing.
    ///
    /// An expression that follows the clock through all hours of the day surprises nobody.
    #[must_use]
    pub fn clock_warning(
        &self,
        after: Timestamp,
        until: Timestamp,
        zone: &TimeZone,
    ) -> Option<String> {
        changes::warning(&self.calendar, second_of(after), second_of(until), zone)
    }

    /// How many fires lie in (after, until]; 0 if that is empty. Costs days, not fires.
    #[must_use]
    pub fn count(&self, after: Timestamp, until: Timestamp, zone: &TimeZone) -> u64 {
        count::fires(self.calendar.fields(), second_of(after) + 1, second_of(until), zone)
    }

    /// The last fire in (after, until]; `None`: there is none.
    #[must_use]
    pub fn last(&self, after: Timestamp, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let next = |after| self.next(after, zone).filter(|at| *at <= until);
        // What is known to fire, and after what nothing does.
        let (mut fire, mut end) = (next(after)?, until);
        while fire < end {
            let half = fire.plus(end.since(fire) / 2);
            match next(half) {
                Some(later) => fire = later,
                None => end = half,
            }
        }
        Some(fire)
    }

    /// Whether a time is one of the fires, to the millisecond.
    #[must_use]
    pub fn fires_at(&self, at: Timestamp, zone: &TimeZone) -> bool {
        self.count(at.minus(Duration::from_millis(1)), at, zone) > 0
    }

    /// What is accepted but surprises: a step wider than its field, `*` in the seconds.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.calendar.fields().warnings.clone()
    }
}

/// The second that holds a time. Before 1970 nothing fires anywhere: two days before it stand for
/// all of that, so that even the beginning of time lies within the calendar library's years.
fn second_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1000).max(-2 * 86_400)
}

impl PartialEq for CronExpr {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for CronExpr {}

impl fmt::Debug for CronExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CronExpr").field(&self.text).finish()
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

#[cfg(test)]
mod tests;
