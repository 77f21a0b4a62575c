//! From fields to wall-clock times, through the `cron` crate. The only file that names it.
//!
//! The crate is shown neither a person's text (it takes blanks as optional and counts weekdays from
//! 1 = Sunday) nor a zone (it loses and doubles times where clocks change). It gets plain lists of
//! numbers and counts in UTC, which here only stands for a clock that never changes.
//!
//! A compiled `*` takes nothing and a list of numbers up to 1 KiB, so each expression keeps its
//! schedules: all in all an ordinary one takes about 1 KiB, the longest 6.

use std::fmt::Write as _;
use std::str::FromStr as _;

use chrono::{DateTime, Datelike as _, Utc};
use cron::Schedule;

use super::fields::{Day, DayRule, Fields, Set, WeekdayRule};

/// Enumerates the times at which a wall clock matches an expression.
#[derive(Clone)]
pub(super) struct Calendar {
    fields: Fields,
    /// One; two where either day field suffices.
    schedules: Box<[Schedule]>,
}

impl Calendar {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The crate's own words; every checked expression compiles.
    pub(super) fn new(fields: Fields) -> Result<Self, String> {
        let rules = fields.day_rules.iter().copied().map(DayRule::superset);
        let days = rules.fold(fields.days, Set::union);
        let mut weekdays = fields.weekdays;
        fields.weekday_rules.iter().for_each(|rule: &WeekdayRule| weekdays.insert(rule.weekday()));
        let (every_day, every_weekday) = (Set::range(1, 31), Set::range(0, 6));
        let pairs = if fields.both_days {
            vec![(days, weekdays)]
        } else {
            vec![(days, every_weekday), (every_day, weekdays)]
        };
        let schedules: Result<_, cron::error::Error> = pairs
            .into_iter()
            .map(|(days, weekdays)| Schedule::from_str(&line(&fields, days, weekdays)))
            .collect();
        let schedules = schedules.map_err(|error| error.to_string())?;
        Ok(Self { fields, schedules })
    }

    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The first match strictly after a time on the wall clock; `None` after the year 2100.
    ///
    /// Both are seconds that the clock shows, counted from its own 1970-01-01T00:00:00; nothing
    /// matches before that.
    pub(super) fn after(&self, wall: i64) -> Option<i64> {
        const DAY: i64 = 86_400;
        let mut from = wall.max(-1);
        loop {
            let start = DateTime::<Utc>::from_timestamp(from, 0).filter(|at| at.year() <= 2100)?;
            let found = self.schedules.iter().filter_map(|s| s.after(&start).next()).min()?;
            let found = found.timestamp();
            let day = found.div_euclid(DAY);
            if self.fields.matches(Day::on(day)?) {
                return Some(found);
            }
            // The list was wider than the rule: on with the next date.
            from = day * DAY + DAY - 1;
        }
    }
}

/// The crate's seven fields but the year, all numbers, Sunday = 1.
fn line(fields: &Fields, days: Set, weekdays: Set) -> String {
    let mut line = String::new();
    for (set, all, add) in [
        (fields.seconds, Set::range(0, 59), 0),
        (fields.minutes, Set::range(0, 59), 0),
        (fields.hours, Set::range(0, 23), 0),
        (days, Set::range(1, 31), 0),
        (fields.months, Set::range(1, 12), 0),
        (weekdays, Set::range(0, 6), 1),
    ] {
        if set == all {
            line.push('*');
        } else {
            for (position, number) in set.iter().enumerate() {
                let comma = if position == 0 { "" } else { "," };
                // Writing to a String cannot fail.
                let _infallible = write!(line, "{comma}{}", number + add);
            }
        }
        line.push(' ');
    }
    line
}
