//! A time trigger's nominal times, and how many of them lie in a stretch: by arithmetic, not one by
//! one; only times that two triggers of a task may share are looked at, those of the rarer one.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::model::cron::CronExpr;
use crate::model::every;
use crate::model::jump::Span;
use crate::model::time::Timestamp;

/// When a time trigger fires.
#[derive(Debug, Clone)]
pub(super) enum Nominal {
    /// At the times of an expression in a zone.
    Cron(CronExpr, TimeZone),
    /// At a fixed rate.
    Every(Duration),
}

impl Nominal {
    /// The first time strictly after another.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(expr, zone) => expr.next(after, zone),
            Self::Every(period) => Some(every::next_every(*period, after)),
        }
    }

    /// The last time in a stretch.
    pub(super) fn last(&self, Span { after, to }: Span) -> Option<Timestamp> {
        match self {
            Self::Cron(expr, zone) => expr.last(after, to, zone),
            Self::Every(period) => every::last_every(*period, after, to),
        }
    }

    /// How many times lie in a stretch.
    pub(super) fn count(&self, Span { after, to }: Span) -> u64 {
        match self {
            Self::Cron(expr, zone) => expr.count(after, to, zone),
            Self::Every(period) => every::count_every(*period, after, to),
        }
    }

    /// Whether it is one of them.
    pub(super) fn fires_at(&self, at: Timestamp) -> bool {
        match self {
            Self::Cron(expr, zone) => expr.fires_at(at, zone),
            Self::Every(period) => every::is_every(*period, at),
        }
    }
}

/// Another trigger of the same task, which counts its own times after one of them: two triggers at
/// one instant are one fire.
#[derive(Debug, Clone)]
pub(super) struct Other {
    /// Its times.
    pub(super) times: Nominal,
    /// Those up to and with this one it no longer counts.
    pub(super) after: Timestamp,
}

impl Other {
    fn counts(&self, at: Timestamp) -> bool {
        self.after < at && self.times.fires_at(at)
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.times.next(after.max(self.after))
    }
}

/// A trigger's times, less those that other triggers count and those that have had their row.
#[derive(Debug)]
pub(super) struct Own<'a> {
    /// The trigger's times.
    pub(super) times: &'a Nominal,
    /// The task's other triggers that come before it.
    pub(super) others: &'a [Other],
    /// Stretches whose times have had their row, in their order.
    pub(super) done: &'a [Span],
}

/// Some of a trigger's times, as a row of the ledger tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The first.
    pub(super) first: Timestamp,
    /// The last.
    pub(super) last: Timestamp,
    /// How many.
    pub(super) count: u64,
}

impl Own<'_> {
    /// The first time strictly after another; `None`: not before `to` is past.
    pub(super) fn next(&self, Span { after, to }: Span) -> Option<Timestamp> {
        let mut after = after;
        loop {
            let at = self.times.next(after).filter(|at| *at <= to)?;
            if let Some(done) = self.done.iter().find(|span| span.holds(at)) {
                after = done.to;
            } else if self.is_shared(at) {
                after = at;
            } else {
                return Some(at);
            }
        }
    }

    /// The times of a stretch.
    pub(super) fn run(&self, span: Span) -> Option<Run> {
        let mut parts = vec![span];
        for done in self.done {
            parts = parts.iter().flat_map(|part| part.without(done)).collect();
        }
        let runs = parts.into_iter().filter_map(|part| self.part(part));
        runs.reduce(|a, b| Run { first: a.first, last: b.last, count: a.count + b.count })
    }

    fn is_shared(&self, at: Timestamp) -> bool {
        self.others.iter().any(|other| other.counts(at))
    }

    /// A part of which nothing is done.
    fn part(&self, span: Span) -> Option<Run> {
        let all = self.times.count(span);
        let first = self.times.next(span.after).filter(|at| *at <= span.to)?;
        if self.others.is_empty() {
            let last = self.times.last(span)?;
            return Some(Run { first, last, count: all });
        }
        let theirs = |other: &Other| {
            other.times.count(Span { after: span.after.max(other.after), to: span.to })
        };
        // Whichever are fewer are looked at one by one.
        if all <= self.others.iter().map(theirs).sum() {
            return self.one_by_one(span);
        }
        let count = all - self.shared(span);
        let mut first = first;
        while self.is_shared(first) {
            first = self.times.next(first).filter(|at| *at <= span.to)?;
        }
        let mut last = self.times.last(span)?;
        while self.is_shared(last) {
            last = self.times.last(Span { after: span.after, to: last.just_before() })?;
        }
        Some(Run { first, last, count })
    }

    fn one_by_one(&self, span: Span) -> Option<Run> {
        let times = std::iter::successors(self.times.next(span.after), |at| self.times.next(*at));
        let own = times.take_while(|at| *at <= span.to).filter(|at| !self.is_shared(*at));
        own.map(|at| Run { first: at, last: at, count: 1 }).reduce(|a, b| Run {
            first: a.first,
            last: b.last,
            count: a.count + b.count,
        })
    }

    /// How many of its times the others count, by looking at theirs.
    fn shared(&self, span: Span) -> u64 {
        let mut count = 0;
        let mut after = span.after;
        let next = |after| self.others.iter().filter_map(|other| other.next(after)).min();
        while let Some(at) = next(after).filter(|at| *at <= span.to) {
            count += u64::from(self.times.fires_at(at));
            after = at;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn cron(text: &str, zone: &str) -> Nominal {
        Nominal::Cron(CronExpr::parse(text).unwrap(), TimeZone::get(zone).unwrap())
    }

    fn year() -> Span {
        Span { after: at("2026-12-31T23:59:59Z"), to: at("2027-12-31T23:59:59Z") }
    }

    fn run(times: &Nominal, others: &[Other], done: &[Span], span: Span) -> Option<Run> {
        Own { times, others, done }.run(span)
    }

    #[test]
    fn a_year_of_seconds_is_counted_without_looking_at_each() {
        let found = run(&cron("* * * * * *", "Europe/Berlin"), &[], &[], year()).unwrap();
        assert_eq!(found.count, 365 * 86_400);
        assert_eq!((found.first, found.last), (at("2027-01-01T00:00:00Z"), year().to));
    }

    #[test]
    fn what_another_trigger_counts_is_left_out_whichever_of_them_are_fewer() {
        let (seconds, daily) = (cron("* * * * * *", "UTC"), cron("0 12 * * *", "UTC"));
        let after = year().after;
        let other = |times: &Nominal| [Other { times: times.clone(), after }];
        let found = run(&seconds, &other(&daily), &[], year()).unwrap();
        assert_eq!(found.count, 365 * 86_400 - 365);
        assert_eq!(run(&daily, &other(&seconds), &[], year()), None);
        // From the middle of the year on only: noon of 1 January to 2 July is its own.
        let late = [Other { times: seconds, after: at("2027-07-02T12:00:00Z") }];
        let found = run(&daily, &late, &[], year()).unwrap();
        assert_eq!((found.count, found.last), (183, at("2027-07-02T12:00:00Z")));
    }

    #[test]
    fn shared_times_at_the_ends_are_not_the_first_and_the_last() {
        let (minutes, hours) = (Nominal::Every(Duration::from_secs(60)), cron("@hourly", "UTC"));
        let span = Span { after: at("2026-12-01T09:59:59Z"), to: at("2026-12-01T11:00:00Z") };
        let other = [Other { times: hours, after: span.after }];
        let found = run(&minutes, &other, &[], span).unwrap();
        assert_eq!(found.count, 59);
        assert_eq!(found.first, at("2026-12-01T10:01:00Z"));
        assert_eq!(found.last, at("2026-12-01T10:59:00Z"));
    }

    #[test]
    fn done_stretches_are_left_out() {
        let minutes = Nominal::Every(Duration::from_secs(60));
        let span = Span { after: at("2026-12-01T10:00:00Z"), to: at("2026-12-01T11:00:00Z") };
        let done = [
            Span { after: at("2026-12-01T10:10:00Z"), to: at("2026-12-01T10:20:00Z") },
            Span { after: at("2026-12-01T10:50:00Z"), to: at("2026-12-01T12:00:00Z") },
        ];
        let found = run(&minutes, &[], &done, span).unwrap();
        assert_eq!((found.count, found.last), (40, at("2026-12-01T10:50:00Z")));
        let own = Own { times: &minutes, others: &[], done: &done };
        let next = |after: &str| own.next(Span { after: at(after), to: Timestamp::FAR });
        assert_eq!(next("2026-12-01T10:10:00Z"), Some(at("2026-12-01T10:21:00Z")));
        assert_eq!(next("2026-12-01T10:50:00Z"), Some(at("2026-12-01T12:01:00Z")));
    }
}
