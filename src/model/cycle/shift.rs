//! Cycles before and after a cycle, for edges with a `cycleOffset`.

use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::range::at;
use super::{Cycle, CycleRule, CycleUnit};
use crate::model::id::InstanceId;
use crate::model::time::Timestamp;

/// Which cycle of an upstream an edge looks for, if not its own: so many of the upstream's units
/// later, in the zone of the upstream's cycles.
#[derive(Debug, Clone, PartialEq)]
pub struct Lag {
    /// Units; less than 0: earlier.
    pub offset: i32,
    /// In which hours have their names.
    pub zone: TimeZone,
}

impl Cycle {
    /// The cycle that comes `units` of its own units later. Hours and minutes are counted as they
    /// pass, so a repeated hour counts twice. `None`: a run has none before it, or the calendar
    /// ends.
    #[must_use]
    pub fn shifted(&self, units: i32, zone: &TimeZone) -> Option<Self> {
        let units = i64::from(units);
        let span = match self.unit() {
            CycleUnit::Run => return None,
            CycleUnit::Day => {
                let date: Date = self.label().parse().ok()?;
                return Self::parse(&date.checked_add(units.days()).ok()?.to_string()).ok();
            }
            CycleUnit::Hour => units.hours(),
            CycleUnit::Minute => units.minutes(),
        };
        let moved = at(self, 0, zone)?.timestamp().checked_add(span).ok()?;
        Some(of_unit(Timestamp::from_jiff(moved), zone, self.unit()))
    }

    /// Whether an edge of an instance of this cycle looks for `upstream`: the two match once the
    /// upstream's is moved by what it lags behind.
    #[must_use]
    pub fn matches_behind(&self, upstream: &Self, lag: &Lag) -> bool {
        let moved = upstream.shifted(lag.offset.saturating_neg(), &lag.zone);
        moved.is_some_and(|moved| moved.matches(self))
    }

    /// The cycles of a time unit that an edge of an instance of this cycle looks for, as the first
    /// and the last of them: one, unless the unit is finer than this cycle's.
    #[must_use]
    pub fn behind(&self, unit: CycleUnit, lag: &Lag) -> Option<(Self, Self)> {
        let shifted = |cycle: &Self| cycle.shifted(lag.offset, &lag.zone);
        if unit >= self.unit() {
            let one = shifted(&self.cut_to(unit))?;
            return Some((one.clone(), one));
        }
        let begins = at(self, 0, &lag.zone)?.timestamp();
        let ends = at(self, 1, &lag.zone)?.timestamp().checked_sub(1.millisecond()).ok()?;
        let of = |at| of_unit(Timestamp::from_jiff(at), &lag.zone, unit);
        Some((shifted(&of(begins))?, shifted(&of(ends))?))
    }
}

fn of_unit(at: Timestamp, zone: &TimeZone, unit: CycleUnit) -> Cycle {
    Cycle::of(at, zone, CycleRule { unit, offset: 0 }, &InstanceId::from_text(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn shifted(label: &str, units: i32, name: &str) -> String {
        Cycle::parse(label).unwrap().shifted(units, &zone(name)).unwrap().label().to_owned()
    }

    #[test]
    fn days_are_dates_and_hours_are_counted_as_they_pass() {
        assert_eq!(shifted("2026-03-01", -1, "UTC"), "2026-02-28");
        assert_eq!(shifted("2026-12-31", 1, "UTC"), "2027-01-01");
        assert_eq!(shifted("2026-11-30T00", -1, "UTC"), "2026-11-29T23");
        assert_eq!(shifted("2026-11-30T00:00", -1, "UTC"), "2026-11-29T23:59");
        // The clocks of New York are put back at 02:00 on 2026-11-01 and forward on 2026-03-08.
        let york = "America/New_York";
        assert_eq!(shifted("2026-11-01T02", -1, york), "2026-11-01T01-05:00");
        assert_eq!(shifted("2026-11-01T02", -2, york), "2026-11-01T01-04:00");
        assert_eq!(shifted("2026-11-01T02", -3, york), "2026-11-01T00");
        assert_eq!(shifted("2026-11-01T01-05:00", -1, york), "2026-11-01T01-04:00");
        assert_eq!(shifted("2026-03-08T03", -1, york), "2026-03-08T01");
        assert_eq!(shifted("2026-03-09", -1, york), "2026-03-08");
    }

    #[test]
    fn a_run_has_none_before_it() {
        let root = InstanceId::from_text("root");
        let run = Cycle::of(Timestamp::default(), &TimeZone::UTC, CycleRule::RUN, &root);
        assert_eq!(run.shifted(-1, &TimeZone::UTC), None);
    }

    #[test]
    fn what_lags_is_looked_for_in_the_upstreams_units() {
        let lag = Lag { offset: -1, zone: TimeZone::UTC };
        let behind = |label: &str, unit| {
            let (first, last) = Cycle::parse(label).unwrap().behind(unit, &lag).unwrap();
            (first.label().to_owned(), last.label().to_owned())
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let yesterday = pair("2026-11-29", "2026-11-29");
        assert_eq!(behind("2026-11-30", CycleUnit::Day), yesterday);
        assert_eq!(behind("2026-11-30T14", CycleUnit::Day), yesterday);
        let hours = pair("2026-11-29T23", "2026-11-30T22");
        assert_eq!(behind("2026-11-30", CycleUnit::Hour), hours);
        let day = Cycle::parse("2026-11-30").unwrap();
        for (upstream, matches) in [
            ("2026-11-29T22", false),
            ("2026-11-29T23", true),
            ("2026-11-30T22", true),
            ("2026-11-30T23", false),
            ("2026-11-29", true),
            ("2026-11-30", false),
        ] {
            let upstream = Cycle::parse(upstream).unwrap();
            assert_eq!(day.matches_behind(&upstream, &lag), matches, "{upstream}");
        }
    }
}
