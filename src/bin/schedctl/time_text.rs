//! Times and durations as people write and read them.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
pub(crate) use sched::model::distance::{relative, short};
use sched::model::time::Timestamp;

#[cfg(test)]
mod tests;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// A point in time as a person names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Itself.
    At(Timestamp),
    /// A wall-clock time in a zone that is known later.
    Civil(DateTime),
    /// This far from now; into the past or the future as the option means it.
    Away(Duration),
}

/// Which way a bare duration points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `--since 2h`.
    Ago,
    /// `--until 2h`.
    Hence,
}

impl When {
    /// The point it stands for; `None` outside the calendar's years.
    pub(crate) fn resolve(
        self,
        now: Timestamp,
        zone: &TimeZone,
        direction: Direction,
    ) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at),
            Self::Civil(civil) => {
                let at = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
                Some(Timestamp::from_jiff(at))
            }
            Self::Away(by) => Some(match direction {
                Direction::Ago => now.minus(by),
                Direction::Hence => now.plus(by),
            }),
        }
    }
}

/// Where a reading of the log starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// After this position.
    Seq(u64),
    /// At this time.
    Time(When),
}

/// Reads RFC 3339, a local time, a local date, or a duration.
pub(crate) fn parse_when(text: &str) -> Result<When, String> {
    if let Some(at) = Timestamp::parse(text) {
        return Ok(When::At(at));
    }
    if text == "now" {
        return Ok(When::Away(Duration::ZERO));
    }
    if let Some(by) = duration(text.strip_prefix('+').unwrap_or(text)) {
        return Ok(When::Away(by));
    }
    // With a zone or offset behind it a text would have been read above or is wrong.
    if let Ok(civil) = text.parse::<DateTime>() {
        return Ok(When::Civil(civil));
    }
    match text.parse::<Date>() {
        Ok(date) => Ok(When::Civil(date.at(0, 0, 0, 0))),
        Err(_) => Err("expected 2026-11-30T02:00:00Z, 2026-11-30T02:00, 2026-11-30 or a duration \
                       such as 90s, 10m, 2h, 3d"
            .to_owned()),
    }
}

/// Reads a position of the log or a time.
pub(crate) fn parse_since(text: &str) -> Result<Since, String> {
    match text.parse::<u64>() {
        Ok(seq) => Ok(Since::Seq(seq)),
        Err(_) => parse_when(text).map(Since::Time),
    }
}

/// Reads a duration; a bare number is seconds, as with timeout(1).
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(Duration::from_secs(seconds.into()));
    }
    duration(text).ok_or_else(|| "expected seconds or a duration such as 500ms, 30s, 2h".to_owned())
}

/// Reads an IANA zone.
pub(crate) fn parse_zone(text: &str) -> Result<TimeZone, String> {
    TimeZone::get(text).map_err(|_unknown| {
        "no such time zone on this machine; expected an IANA name such as Europe/Berlin".to_owned()
    })
}

/// `1h30m`, `500ms`: numbers with units, the units in any order but each with its number.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut ms: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit = match unit {
            "ms" => 1,
            "s" => SECOND,
            "m" | "min" => MINUTE,
            "h" => HOUR,
            "d" => DAY,
            "w" => WEEK,
            _ => return None,
        };
        ms = ms.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = tail;
    }
    (!text.is_empty()).then(|| Duration::from_millis(ms))
}

/// A point on the wall clock of a zone, to the second: `2026-11-30 02:00:00`.
pub(crate) fn local(at: Timestamp, zone: &TimeZone) -> String {
    match at.to_jiff() {
        Some(instant) => {
            let zoned = instant.to_zoned_datetime(zone.clone());
            zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        None => at.to_string(),
    }
}

/// A point in RFC 3339 with the offset of a zone: `2026-11-30T02:00:00.000+08:00`.
pub(crate) fn with_offset(at: Timestamp, zone: &TimeZone) -> String {
    match at.to_jiff() {
        Some(instant) => {
            let zoned = instant.to_zoned_datetime(zone.clone());
            zoned.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
        }
        None => at.to_string(),
    }
}
