//! How many fires lie in a stretch of time, without naming them one by one.
//!
//! Between two changes of the zone's clock the fires are the matching days times the times of a
//! day, but for the first and the last day, which may be cut. At a change the rules of `zone` hold.

use jiff::tz::TimeZone;

use super::fields::{Day, Fields};
use super::zone::Stretch;

const DAY: i64 = 86_400;

/// The end of the last day that has fires, on the wall clock: 2101-01-01.
const WALL_MAX: i64 = 4_133_980_800;

/// The number of fires from one second to another, both included.
pub(super) fn fires(fields: &Fields, first: i64, last: i64, zone: &TimeZone) -> u64 {
    // After that no wall clock shows a day that has fires.
    let last = last.min(WALL_MAX + 2 * DAY);
    let mut count = 0;
    let mut stretch = if first <= last { Stretch::holding(zone, first) } else { None };
    while let Some(now) = stretch {
        let start = now.start().max(first);
        let end = now.end.unwrap_or(i64::MAX).min(last + 1);
        let mut from = start + now.offset;
        if let Some((_, to)) = now.repeated().filter(|pass| fields.fires_once(*pass)) {
            from = from.max(to);
        }
        count += matches(fields, from, end + now.offset);
        if now.start() >= first && makes_up(fields, &now) {
            count += 1;
        }
        stretch = if end <= last { now.after(zone, end) } else { None };
    }
    count
}

/// Whether a fire stands at a stretch's start only because the clock skipped its time.
fn makes_up(fields: &Fields, stretch: &Stretch) -> bool {
    stretch
        .skipped()
        .filter(|gap| fields.fires_once(*gap))
        .is_some_and(|(from, to)| matches(fields, from, to) > 0 && matches(fields, to, to + 1) == 0)
}

/// How often a clock that never changes shows a match, from one second up to another.
pub(super) fn matches(fields: &Fields, from: i64, to: i64) -> u64 {
    let (from, to) = (from.max(0), to.min(WALL_MAX));
    if from >= to {
        return 0;
    }
    let (first, last) = (from.div_euclid(DAY), (to - 1).div_euclid(DAY));
    let before = |second| times_before(fields, second);
    let (head, tail) = (before(from - first * DAY), before(to - last * DAY));
    if first == last {
        return days(fields, first, first + 1) * (tail - head);
    }
    days(fields, first, first + 1) * (before(DAY) - head)
        + days(fields, first + 1, last) * before(DAY)
        + days(fields, last, last + 1) * tail
}

/// The matching times of a day before a second of it.
fn times_before(fields: &Fields, second: i64) -> u64 {
    // A day's seconds, at most its end: hours up to 24.
    let small = |n: i64| u8::try_from(n).unwrap_or(u8::MAX);
    let (hour, minute) = (small(second / 3600), small(second / 60 % 60));
    let mut times = fields.hours.below(hour) * fields.minutes.len() * fields.seconds.len();
    if fields.hours.has(hour) {
        times += fields.minutes.below(minute) * fields.seconds.len();
        if fields.minutes.has(minute) {
            times += fields.seconds.below(small(second % 60));
        }
    }
    times
}

/// The matching dates from one day up to another, both counted from 1970-01-01.
fn days(fields: &Fields, mut from: i64, to: i64) -> u64 {
    let mut count = 0;
    while let Some(mut day) = Day::on(from).filter(|_| from < to) {
        let of_month = i64::from(day.month_days - day.day + 1).min(to - from);
        from += of_month;
        if fields.months.has(day.month) {
            for _ in 0..of_month {
                count += u64::from(fields.matches(day));
                (day.day, day.weekday) = (day.day + 1, (day.weekday + 1) % 7);
            }
        }
    }
    count
}
