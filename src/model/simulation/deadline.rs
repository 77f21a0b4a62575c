//! By when tasks shall have ended.

use std::collections::BTreeMap;

use jiff::civil::Time;
use jiff::tz::TimeZone;

use crate::model::id::TaskId;
use crate::model::time::Timestamp;

/// A point by which something shall have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineTime {
    /// This time of every day: for an instance the first one after it was made.
    Daily(Time),
    /// This one, for what is made before it.
    At(Timestamp),
}

/// Who shall have ended by when.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// The zone in which times of day are told.
    pub zone: TimeZone,
    /// For every task that has none of its own.
    pub all: Option<DeadlineTime>,
    /// For single tasks.
    pub of: BTreeMap<TaskId, DeadlineTime>,
}

impl Deadlines {
    /// Nobody need hurry.
    #[must_use]
    pub const fn none() -> Self {
        Self { zone: TimeZone::UTC, all: None, of: BTreeMap::new() }
    }

    /// By when an instance of a task that is made then shall have ended.
    #[must_use]
    pub fn due(&self, task: &TaskId, made: Timestamp) -> Option<Timestamp> {
        match self.of.get(task).copied().or(self.all)? {
            DeadlineTime::At(at) => (made < at).then_some(at),
            DeadlineTime::Daily(time) => self.first_after(time, made),
        }
    }

    /// The first point strictly after `made` at which clocks of the zone show `time`. A time that
    /// a change of the clock leaves out is the one that a clock not yet changed would show.
    fn first_after(&self, time: Time, made: Timestamp) -> Option<Timestamp> {
        let day = made.to_jiff()?.to_zoned_datetime(self.zone.clone()).date();
        let days = std::iter::successors(Some(day), |day| day.tomorrow().ok()).take(3);
        let at = |day: jiff::civil::Date| {
            let civil = day.to_datetime(time);
            self.zone.to_ambiguous_timestamp(civil).compatible().ok().map(Timestamp::from_jiff)
        };
        days.filter_map(at).find(|at| *at > made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn due(deadlines: &Deadlines, task: &str, made: &str) -> Option<String> {
        let task = TaskId::parse(task).unwrap();
        deadlines.due(&task, at(made)).map(|at| at.to_string())
    }

    #[test]
    fn a_time_of_day_is_the_first_after_an_instance_was_made_in_the_zone() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let six = DeadlineTime::Daily(Time::constant(6, 0, 0, 0));
        let deadlines = Deadlines { zone, all: Some(six), ..Deadlines::none() };
        // 06:00 in Berlin is 05:00Z in winter and 04:00Z in summer; the clock goes back on 25
        // October 2026.
        for (made, expected) in [
            ("2026-11-30T21:00:00Z", "2026-12-01T05:00:00.000Z"),
            ("2026-12-01T04:59:59Z", "2026-12-01T05:00:00.000Z"),
            ("2026-12-01T05:00:00Z", "2026-12-02T05:00:00.000Z"),
            ("2026-10-24T03:00:00Z", "2026-10-24T04:00:00.000Z"),
            ("2026-10-24T20:00:00Z", "2026-10-25T05:00:00.000Z"),
        ] {
            assert_eq!(due(&deadlines, "a.t.v1", made).as_deref(), Some(expected), "{made}");
        }
    }

    #[test]
    fn a_tasks_own_deadline_wins_and_a_fixed_one_is_for_what_is_made_before_it() {
        let fixed = DeadlineTime::At(at("2026-12-01T02:00:00Z"));
        let noon = DeadlineTime::Daily(Time::constant(12, 0, 0, 0));
        let of = BTreeMap::from([(TaskId::parse("a.t.v1").unwrap(), fixed)]);
        let deadlines = Deadlines { all: Some(noon), of, ..Deadlines::none() };
        let made = "2026-12-01T01:00:00Z";
        assert_eq!(due(&deadlines, "a.t.v1", made).as_deref(), Some("2026-12-01T02:00:00.000Z"));
        assert_eq!(due(&deadlines, "b.t.v1", made).as_deref(), Some("2026-12-01T12:00:00.000Z"));
        assert_eq!(due(&deadlines, "a.t.v1", "2026-12-01T02:00:00Z"), None);
        assert_eq!(due(&Deadlines::none(), "a.t.v1", made), None);
    }
}
