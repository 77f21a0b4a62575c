//! Cycles: the business date, hour, minute or run that an instance belongs to.
//!
//! docs/waves.md says which match. A label is text, because that is what people see, pass
//! with `--cycle` and compare; cutting it to a coarser unit is cutting the text.

use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::id::InstanceId;
use super::time::Timestamp;

mod range;
mod shift;

pub use self::range::{CycleRange, RangeError};
pub use self::shift::Lag;

/// The unit of a task's cycles, from fine to coarse.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CycleUnit {
    /// Every root instance is a cycle of its own.
    Run,
    /// `2026-11-30T14:05`.
    Minute,
    /// `2026-11-30T14`.
    Hour,
    /// `2026-11-30`.
    Day,
}

impl CycleUnit {
    /// As a spec writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "RUN",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
        }
    }
}

/// How a task's cycle follows from a scheduled time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CycleRule {
    /// The unit.
    pub unit: CycleUnit,
    /// Units by which the scheduled time is moved first; -1 is yesterday's business date.
    #[schemars(range(min = -876000, max = 876000))]
    pub offset: i32,
}

impl CycleRule {
    /// DAY without offset.
    pub const DAY: Self = Self { unit: CycleUnit::Day, offset: 0 };
    /// RUN.
    pub const RUN: Self = Self { unit: CycleUnit::Run, offset: 0 };
}

/// One cycle: what an instance works on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cycle {
    unit: CycleUnit,
    /// What people see: the cut time, or the root's id.
    label: SmolStr,
    /// The time it stands for; equal to the label but for RUN, where it is the minute.
    stamp: SmolStr,
}

/// A `--cycle` or `--date` that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a cycle; expected 2026-11-30, 2026-11-30T14, 2026-11-30T14:05 or an instance id"
)]
pub struct CycleError(String);

impl Cycle {
    /// The cycle of a scheduled time by a rule, in a zone; `root` names it if the unit is RUN.
    #[must_use]
    pub fn of(at: Timestamp, zone: &TimeZone, rule: CycleRule, root: &InstanceId) -> Self {
        let instant = at.to_jiff().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let span: Option<Span> = match rule.unit {
            CycleUnit::Run => None,
            CycleUnit::Minute => Some(i64::from(rule.offset).minutes()),
            CycleUnit::Hour => Some(i64::from(rule.offset).hours()),
            CycleUnit::Day => Some(i64::from(rule.offset).days()),
        };
        let zoned = instant.to_zoned_datetime(zone.clone());
        let moved = span.and_then(|s| zoned.checked_add(s).ok()).unwrap_or(zoned);
        let civil = moved.datetime();
        let suffix = repeated_suffix(zone, civil, moved.offset());
        let minute = format!("{}{suffix}", civil.strftime("%Y-%m-%dT%H:%M"));
        match rule.unit {
            CycleUnit::Run => {
                Self { unit: CycleUnit::Run, label: root.as_str().into(), stamp: minute.into() }
            }
            unit @ (CycleUnit::Minute | CycleUnit::Hour | CycleUnit::Day) => {
                Self::timed(unit, &cut(&minute, unit))
            }
        }
    }

    fn timed(unit: CycleUnit, label: &str) -> Self {
        Self { unit, label: label.into(), stamp: label.into() }
    }

    /// Reads a label of a time unit: a date, an hour or a minute.
    ///
    /// # Errors
    /// [`CycleError`] if it is none of these.
    pub fn parse(text: &str) -> Result<Self, CycleError> {
        let bad = || CycleError(text.to_owned());
        let date = text.get(..10).ok_or_else(bad)?;
        date.parse::<Date>().map_err(|_source| bad())?;
        let unit = match text.len() {
            10 => CycleUnit::Day,
            13 | 19 => CycleUnit::Hour,
            16 | 22 => CycleUnit::Minute,
            _ => return Err(bad()),
        };
        if unit != CycleUnit::Day {
            let time = text.get(10..).filter(|t| t.starts_with('T')).ok_or_else(bad)?;
            let clock = time.get(..if unit == CycleUnit::Hour { 3 } else { 6 }).ok_or_else(bad)?;
            let civil =
                format!("{date}{clock}{}", if unit == CycleUnit::Hour { ":00" } else { "" });
            civil.parse::<DateTime>().map_err(|_source| bad())?;
            let offset = time.get(clock.len()..).ok_or_else(bad)?;
            if !offset.is_empty() && !is_offset(offset) {
                return Err(bad());
            }
        }
        Ok(Self::timed(unit, text))
    }

    /// The unit.
    #[must_use]
    pub fn unit(&self) -> CycleUnit {
        self.unit
    }

    /// What people see.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The business date, always the DAY form.
    #[must_use]
    pub fn date(&self) -> &str {
        self.stamp.get(..10).unwrap_or(&self.stamp)
    }

    /// This cycle cut to `unit` where that is coarser; else as it is.
    #[must_use]
    pub fn cut_to(&self, unit: CycleUnit) -> Self {
        if unit <= self.unit {
            return self.clone();
        }
        Self::timed(unit, &cut(&self.stamp, unit))
    }

    /// Whether two cycles are the same one after cutting both to the coarser unit.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        if self.unit == other.unit {
            return self.label == other.label;
        }
        let coarser = self.unit.max(other.unit);
        self.cut_to(coarser).label == other.cut_to(coarser).label
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl fmt::Debug for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Whether a text is an offset such as `+08:00`.
fn is_offset(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).and_then(|t| t.split_once(':'));
    digits.is_some_and(|(hours, minutes)| {
        [hours, minutes].iter().all(|d| d.len() == 2 && d.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Cuts a minute or hour text, with or without an offset behind it, to a coarser unit.
fn cut(stamp: &str, unit: CycleUnit) -> String {
    match unit {
        CycleUnit::Run | CycleUnit::Minute => stamp.to_owned(),
        CycleUnit::Hour => {
            let offset = if stamp.len() > 16 { stamp.get(16..) } else { None };
            let hour = if stamp.len() == 19 { stamp } else { stamp.get(..13).unwrap_or(stamp) };
            format!("{hour}{}", offset.filter(|_| stamp.len() != 19).unwrap_or(""))
        }
        CycleUnit::Day => stamp.get(..10).unwrap_or(stamp).to_owned(),
    }
}

/// The offset, if the local time happens twice: both hours need a name of their own.
fn repeated_suffix(zone: &TimeZone, civil: DateTime, offset: jiff::tz::Offset) -> String {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Fold { .. } => {
            let seconds = offset.seconds();
            let sign = if seconds < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", seconds.abs() / 3600, seconds.abs() / 60 % 60)
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(at: &str, zone: &str, unit: CycleUnit, offset: i32) -> String {
        let zone = TimeZone::get(zone).unwrap();
        let root = InstanceId::from_text("root");
        Cycle::of(Timestamp::parse(at).unwrap(), &zone, CycleRule { unit, offset }, &root)
            .label()
            .to_owned()
    }

    #[test]
    fn the_label_is_the_moved_time_cut_to_the_unit_in_the_zone() {
        use CycleUnit::{Day, Hour, Minute, Run};
        for (at, zone, unit, offset, label) in [
            ("2026-11-29T18:00:00Z", "Asia/Shanghai", Day, 0, "2026-11-30"),
            ("2026-11-29T18:00:00Z", "Asia/Shanghai", Day, -1, "2026-11-29"),
            ("2026-11-30T14:05:59Z", "UTC", Hour, 0, "2026-11-30T14"),
            ("2026-11-30T00:05:00Z", "UTC", Hour, -1, "2026-11-29T23"),
            ("2026-11-30T14:05:59Z", "UTC", Minute, 0, "2026-11-30T14:05"),
            ("2026-11-30T14:05:59Z", "UTC", Run, 0, "root"),
            // 01:30 happens twice in New York on 2026-11-01.
            ("2026-11-01T05:30:00Z", "America/New_York", Hour, 0, "2026-11-01T01-04:00"),
            ("2026-11-01T06:30:00Z", "America/New_York", Hour, 0, "2026-11-01T01-05:00"),
        ] {
            assert_eq!(of(at, zone, unit, offset), label, "{at} {zone} {unit:?} {offset}");
        }
    }

    #[test]
    fn labels_match_after_cutting_both_to_the_coarser_unit() {
        let day = Cycle::parse("2026-11-30").unwrap();
        let hour = Cycle::parse("2026-11-30T14").unwrap();
        let minute = Cycle::parse("2026-11-30T14:05").unwrap();
        let at = Timestamp::parse("2026-11-30T14:05:00Z").unwrap();
        let run =
            |id: &str| Cycle::of(at, &TimeZone::UTC, CycleRule::RUN, &InstanceId::from_text(id));
        assert!(day.matches(&hour) && hour.matches(&minute) && day.matches(&run("a")));
        assert!(run("a").matches(&run("a")) && !run("a").matches(&run("b")));
        assert!(!hour.matches(&Cycle::parse("2026-11-30T15").unwrap()));
        assert!(!day.matches(&Cycle::parse("2026-12-01").unwrap()));
        let twice = Cycle::parse("2026-11-01T01:30-05:00").unwrap();
        assert!(twice.matches(&Cycle::parse("2026-11-01T01-05:00").unwrap()));
        assert!(!twice.matches(&Cycle::parse("2026-11-01T01-04:00").unwrap()));
    }

    #[test]
    fn what_is_no_cycle_is_refused() {
        for text in [
            "",
            "2026-02-30",
            "2026-11-30T24",
            "2026-11-30 14",
            "30.11.2026",
            "today",
            "2026-11-30T14+xxxxx",
        ] {
            assert!(Cycle::parse(text).is_err(), "{text}");
        }
    }
}
