//! Points in time as people write them: RFC 3339, or how long ago.

use jiff::{Span, SpanRelativeTo};

use crate::model::id::LogSeq;
use crate::model::time::Timestamp;

use super::events::Since;
use super::problem::Problem;

/// Reads `2026-11-30T02:00:00Z`, `1h30m`, `10m ago`, `2 days ago`; a day is 24 hours.
pub(super) fn time(text: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    if let Some(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let ago = text
        .parse::<Span>()
        .and_then(|span| span.abs().to_duration(SpanRelativeTo::days_are_24_hours()))
        .ok()
        .and_then(|duration| std::time::Duration::try_from(duration).ok());
    ago.map(|duration| now.minus(duration)).ok_or_else(|| {
        Problem::invalid(format!(
            "since {text:?} is no time; expected RFC 3339 with an offset such as \
             2026-11-30T02:00:00Z, or how long ago such as 1h30m or 10m ago"
        ))
    })
}

/// Reads a position in the log, or a time.
pub(super) fn seq_or_time(text: &str, now: Timestamp) -> Result<Since, Problem> {
    if let Ok(seq) = text.parse::<u64>() {
        return Ok(Since::Seq(LogSeq(seq)));
    }
    time(text, now).map(Since::At)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_absolute_or_so_long_ago() {
        let now = Timestamp::parse("2026-11-30T12:00:00Z").unwrap();
        for (text, expected) in [
            ("2026-11-30T10:00:00+08:00", "2026-11-30T02:00:00Z"),
            ("1h", "2026-11-30T11:00:00Z"),
            ("1h30m", "2026-11-30T10:30:00Z"),
            ("10m ago", "2026-11-30T11:50:00Z"),
            ("30s", "2026-11-30T11:59:30Z"),
            ("2 days ago", "2026-11-28T12:00:00Z"),
        ] {
            assert_eq!(time(text, now), Ok(Timestamp::parse(expected).unwrap()), "{text}");
        }
        for text in ["", "yesterday", "2026-11-30T10:00:00", "1 month", "h"] {
            assert!(time(text, now).is_err(), "{text:?}");
        }
    }

    #[test]
    fn digits_alone_are_a_position_in_the_log() {
        let now = Timestamp::parse("2026-11-30T12:00:00Z").unwrap();
        assert_eq!(seq_or_time("17", now), Ok(Since::Seq(LogSeq(17))));
        let hour_ago = Timestamp::parse("2026-11-30T11:00:00Z").unwrap();
        assert_eq!(seq_or_time("1h", now), Ok(Since::At(hour_ago)));
        assert!(seq_or_time("-3", now).is_err());
    }
}
