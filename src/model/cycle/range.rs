//! A range of cycles, first and last included, as somebody asks for it, and what lies in it.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, ToSpan, ZonedDateTime};

use super::{Cycle, CycleRule, CycleUnit};
use crate::model::id::InstanceId;
use crate::model::time::Timestamp;

/// An inclusive range of cycles of one time unit in a zone; never empty, but where the zone's clock
/// skips all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CycleRange {
    unit: CycleUnit,
    zone: TimeZone,
    first: Cycle,
    last: Cycle,
    /// When the first cycle begins.
    begins: ZonedDateTime,
    /// When the last one is over.
    ends: ZonedDateTime,
}

/// Why two texts are no range of cycles.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A bound is no cycle of a time unit.
    #[error(
        "{bound} {text:?} is not a cycle; expected a date, hour or minute such as 2026-11-30, \
         2026-11-30T14 or 2026-11-30T14:05"
    )]
    NoCycle {
        /// `from` or `to`.
        bound: &'static str,
        /// What was given.
        text: String,
    },
    /// A bound cannot be a point in time.
    #[error("{bound} {text:?} lies outside the calendar; expected the years 0001 to 9998")]
    OutsideTheCalendar {
        /// `from` or `to`.
        bound: &'static str,
        /// What was given.
        text: String,
    },
    /// The first cycle comes after the last.
    #[error("from {from:?} is after to {to:?}; expected the first cycle, then the last")]
    Reversed {
        /// What was given.
        from: String,
        /// What was given.
        to: String,
    },
}

impl CycleRange {
    /// Reads the bounds of a range of cycles of `unit`, which is not RUN.
    ///
    /// A bound of a coarser unit stands for all that is in it, one of a finer unit for the cycle
    /// that it is in.
    ///
    /// # Errors
    /// [`RangeError`]: which bound is wrong, and what is expected there.
    pub fn parse(
        from: &str,
        to: &str,
        unit: CycleUnit,
        zone: &TimeZone,
    ) -> Result<Self, RangeError> {
        let (first, last) = (bound("from", from, unit)?, bound("to", to, unit)?);
        let outside = |bound, text: &str| {
            let text = text.to_owned();
            RangeError::OutsideTheCalendar { bound, text }
        };
        let begins = at(&first, 0, zone).ok_or_else(|| outside("from", from))?;
        let ends = at(&last, 1, zone).ok_or_else(|| outside("to", to))?;
        if begins >= ends && first != last {
            return Err(RangeError::Reversed { from: from.to_owned(), to: to.to_owned() });
        }
        let first_inside = begins.clone();
        let last_inside = ends.checked_sub(1.millisecond()).map_err(|_source| outside("to", to))?;
        let mut range = Self { unit, zone: zone.clone(), first, last, begins, ends };
        if range.first.unit() != unit {
            range.first = range.cycle(&first_inside);
        }
        if range.last.unit() != unit {
            range.last = range.cycle(&last_inside);
        }
        Ok(range)
    }

    /// The first cycle.
    #[must_use]
    pub const fn first(&self) -> &Cycle {
        &self.first
    }

    /// The last cycle.
    #[must_use]
    pub const fn last(&self) -> &Cycle {
        &self.last
    }

    /// All scheduled times that `offset` units move into the range: from the first up to and
    /// without the second.
    #[must_use]
    pub fn scheduled(&self, offset: i32) -> (Timestamp, Timestamp) {
        let offset = i64::from(offset);
        let unmoved = |at: &ZonedDateTime| match self.unit {
            // A day is a date: whatever its length, it is moved as a whole.
            CycleUnit::Day => at.checked_sub(offset.days()).and_then(|at| at.start_of_day()),
            CycleUnit::Hour => at.checked_sub(offset.hours()),
            CycleUnit::Run | CycleUnit::Minute => at.checked_sub(offset.minutes()),
        };
        // Where the calendar ends nothing is scheduled, moved or not.
        let point = |at: &ZonedDateTime| {
            Timestamp::from_jiff(unmoved(at).map_or(at.timestamp(), |at| at.timestamp()))
        };
        (point(&self.begins), point(&self.ends))
    }

    /// The cycles with their beginnings, oldest first.
    pub fn cycles(&self) -> impl Iterator<Item = (Timestamp, Cycle)> {
        let beginnings = std::iter::successors(Some(self.begins.clone()), |at| self.next(at));
        beginnings
            .take_while(|at| *at < self.ends)
            .map(|at| (Timestamp::from_jiff(at.timestamp()), self.cycle(&at)))
    }

    /// When the cycle after that of `at` begins; `None`: outside the calendar.
    fn next(&self, at: &ZonedDateTime) -> Option<ZonedDateTime> {
        match self.unit {
            CycleUnit::Day => at.tomorrow().and_then(|day| day.start_of_day()).ok(),
            // Hours and minutes are counted as they pass, so that a repeated one counts twice.
            CycleUnit::Hour => at.checked_add((60 - i64::from(at.minute())).minutes()).ok(),
            CycleUnit::Run | CycleUnit::Minute => at.checked_add(1.minute()).ok(),
        }
    }

    fn cycle(&self, at: &ZonedDateTime) -> Cycle {
        let rule = CycleRule { unit: self.unit, offset: 0 };
        let nobody = InstanceId::from_text("");
        Cycle::of(Timestamp::from_jiff(at.timestamp()), &self.zone, rule, &nobody)
    }
}

fn bound(name: &'static str, text: &str, unit: CycleUnit) -> Result<Cycle, RangeError> {
    let cycle = Cycle::parse(text)
        .map_err(|_source| RangeError::NoCycle { bound: name, text: text.to_owned() })?;
    Ok(cycle.cut_to(unit))
}

/// When the cycle begins that comes `later` units after this one; `None`: outside the calendar.
pub(super) fn at(cycle: &Cycle, later: i64, zone: &TimeZone) -> Option<ZonedDateTime> {
    let label = cycle.label();
    let (clock, step, behind): (&str, Span, &str) = match cycle.unit() {
        CycleUnit::Day => ("T00:00", later.days(), ""),
        CycleUnit::Hour => (":00", later.hours(), label.get(13..)?),
        CycleUnit::Run | CycleUnit::Minute => ("", later.minutes(), label.get(16..)?),
    };
    let civil: DateTime = format!("{}{clock}", label.strip_suffix(behind)?).parse().ok()?;
    let civil = civil.checked_add(step).ok()?;
    if behind.is_empty() {
        return civil.to_zoned_datetime(zone.clone()).ok();
    }
    let instant = offset(behind)?.to_timestamp(civil).ok()?;
    Some(instant.to_zoned_datetime(zone.clone()))
}

/// The offset that tells the two passes of a repeated hour apart, such as `-04:00`.
fn offset(text: &str) -> Option<Offset> {
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    Offset::from_seconds(if text.starts_with('-') { -seconds } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use super::CycleUnit::{Day, Hour, Minute};
    use super::*;

    fn range(from: &str, to: &str, unit: CycleUnit, zone: &str) -> CycleRange {
        CycleRange::parse(from, to, unit, &TimeZone::get(zone).unwrap()).unwrap()
    }

    fn labels(range: &CycleRange) -> Vec<String> {
        range.cycles().map(|(_, cycle)| cycle.label().to_owned()).collect()
    }

    #[test]
    fn both_bounds_are_in_it_and_each_cycle_begins_where_the_clock_says() {
        let days = range("2026-02-27", "2026-03-01", Day, "Asia/Shanghai");
        assert_eq!(labels(&days), ["2026-02-27", "2026-02-28", "2026-03-01"]);
        let (begins, _) = days.cycles().next().unwrap();
        assert_eq!(begins.to_string(), "2026-02-26T16:00:00.000Z");
        let minutes = range("2026-11-30T23:59", "2026-12-01T00:00", Minute, "UTC");
        assert_eq!(labels(&minutes), ["2026-11-30T23:59", "2026-12-01T00:00"]);
    }

    #[test]
    fn a_coarser_bound_is_all_that_is_in_it_and_a_finer_one_the_cycle_it_is_in() {
        let hours = range("2026-11-30", "2026-12-01T01", Hour, "UTC");
        assert_eq!(labels(&hours).len(), 26);
        assert_eq!(
            (hours.first().label(), hours.last().label()),
            ("2026-11-30T00", "2026-12-01T01")
        );
        let backwards = range("2026-11-30T22", "2026-11-30", Hour, "UTC");
        assert_eq!(labels(&backwards), ["2026-11-30T22", "2026-11-30T23"]);
        let days = range("2026-11-29T14:05", "2026-11-30T03", Day, "UTC");
        assert_eq!(labels(&days), ["2026-11-29", "2026-11-30"]);
    }

    #[test]
    fn a_repeated_hour_counts_twice_and_each_pass_has_a_name() {
        // New York puts its clocks back at 02:00 on 2026-11-01, Berlin at 03:00 on 2026-10-25.
        let whole = range("2026-11-01", "2026-11-01", Hour, "America/New_York");
        assert_eq!(labels(&whole).len(), 25);
        let both = range("2026-11-01T01", "2026-11-01T01", Hour, "America/New_York");
        assert_eq!(labels(&both), ["2026-11-01T01-04:00", "2026-11-01T01-05:00"]);
        let later = range("2026-10-25T02+01:00", "2026-10-25T03", Hour, "Europe/Berlin");
        assert_eq!(labels(&later), ["2026-10-25T02+01:00", "2026-10-25T03"]);
        let earlier = range("2026-10-25T01", "2026-10-25T02+02:00", Hour, "Europe/Berlin");
        assert_eq!(labels(&earlier), ["2026-10-25T01", "2026-10-25T02+02:00"]);
        // The day on which they are put forward is short; an hour that never comes is none.
        let short = range("2026-03-08", "2026-03-08", Hour, "America/New_York");
        assert_eq!(labels(&short).len(), 23);
        assert_eq!(
            labels(&range("2026-03-08T02", "2026-03-08T02", Hour, "America/New_York")),
            [""; 0]
        );
    }

    #[test]
    fn scheduled_times_are_those_that_the_offset_moves_into_it() {
        let times = |range: CycleRange, offset| {
            let (from, to) = range.scheduled(offset);
            (from.to_string(), to.to_string())
        };
        let owned = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let day = range("2026-11-30", "2026-11-30", Day, "UTC");
        let next = owned("2026-12-01T00:00:00.000Z", "2026-12-02T00:00:00.000Z");
        assert_eq!(times(day, -1), next, "yesterday's business date");
        // The day after the clocks were put forward: the range itself has 23 hours.
        let day = range("2026-03-08", "2026-03-08", Day, "America/New_York");
        let next = owned("2026-03-09T04:00:00.000Z", "2026-03-10T04:00:00.000Z");
        assert_eq!(times(day, -1), next);
        let hour = range("2026-11-30T14", "2026-11-30T14", Hour, "UTC");
        let next = owned("2026-11-30T12:00:00.000Z", "2026-11-30T13:00:00.000Z");
        assert_eq!(times(hour, 2), next);
    }

    #[test]
    fn what_is_no_range_is_refused_with_the_bound_that_is_wrong() {
        for (from, to, told) in [
            ("30.11.2026", "2026-11-30", "from \"30.11.2026\" is not a cycle"),
            ("2026-11-01", "2026-11-31", "to \"2026-11-31\" is not a cycle"),
            ("2026-11-30", "", "to \"\" is not a cycle"),
            ("2026-12-01", "2026-11-30", "from \"2026-12-01\" is after to \"2026-11-30\""),
            ("2026-11-30", "9999-12-31", "to \"9999-12-31\" lies outside the calendar"),
        ] {
            let error = CycleRange::parse(from, to, Day, &TimeZone::UTC).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
