//! The fires around changes of clocks, against a person who watches the clock.

use std::collections::BTreeMap;
use std::ops::Range;

use super::*;

const HOUR: i64 = 3600;

/// One look at the clock. All in seconds; the wall's count from its own 1970.
struct Look {
    at: i64,
    wall: i64,
    /// What the clock has jumped over since the look before.
    skipped: Range<i64>,
    /// It was set back by at most three hours, and shows this for the second time.
    again: bool,
}

/// Looks at the clock every half minute: some zones were once half a minute off the minute.
fn watch(zone: &TimeZone, from: i64, until: i64) -> Vec<Look> {
    const STEP: i64 = 30;
    let mut looks = Vec::new();
    let mut expected = from + offset(zone, from);
    let mut again_until = i64::MIN;
    for at in (from..until).step_by(30) {
        let wall = at + offset(zone, at);
        if wall < expected && expected - wall <= 3 * HOUR {
            again_until = expected;
        }
        looks.push(Look { at, wall, skipped: expected..wall, again: wall < again_until });
        expected = wall + STEP;
    }
    looks
}

fn offset(zone: &TimeZone, at: i64) -> i64 {
    zone.to_offset(jiff::Timestamp::from_second(at).unwrap()).seconds().into()
}

/// An expression that has only minutes and hours, and what they mean.
struct Times {
    text: String,
    minutes: Vec<i64>,
    hours: Vec<i64>,
    wildcard: bool,
}

impl Times {
    fn new(minute: &str, minutes: &[i64], hour: &str, hours: &[i64]) -> Self {
        Self {
            text: format!("{minute} {hour} * * *"),
            minutes: minutes.to_vec(),
            hours: hours.to_vec(),
            wildcard: minute.starts_with('*') || hour.starts_with('*'),
        }
    }

    fn shows(&self, wall: i64) -> bool {
        wall % 60 == 0
            && self.minutes.contains(&(wall.div_euclid(60) % 60))
            && self.hours.contains(&(wall.div_euclid(HOUR) % 24))
    }

    /// Whether a person at the clock would press the button.
    fn fires(&self, look: &Look) -> bool {
        let made_up = || {
            !self.wildcard
                && look.skipped.end - look.skipped.start <= 3 * HOUR
                && look.skipped.clone().any(|wall| self.shows(wall))
        };
        made_up() || (self.shows(look.wall) && (self.wildcard || !look.again))
    }

    /// What is wrong with the expression's fires in the time that was watched.
    fn fault(&self, zone: &TimeZone, looks: &[Look], points: &[i64]) -> Option<String> {
        let (from, until) = (looks.first()?.at, looks.last()?.at);
        let fires: Vec<i64> = looks.iter().filter(|l| self.fires(l)).map(|l| l.at).collect();
        let expr = expr(&self.text);
        let instant = |second: i64| Timestamp::from_millis(second * 1000);
        for after in points.iter().copied().chain([from - 1]) {
            let left = fires.iter().copied().find(|at| *at > after).map(instant);
            let found = expr.next(instant(after), zone);
            let found = found.filter(|at| *at <= instant(until));
            if found != left {
                let after = instant(after);
                return Some(format!("{}: after {after} {found:?}, not {left:?}", self.text));
            }
        }
        for (after, end) in points.iter().map(|p| (from - 1, *p)).chain([(from - 1, until)]) {
            let among = fires.iter().filter(|at| (after + 1..=end).contains(*at)).count();
            let found = expr.count(instant(after), instant(end), zone);
            if found != among as u64 {
                let end = instant(end);
                return Some(format!("{}: {found} until {end}, not {among}", self.text));
            }
        }
        None
    }
}

/// A clock's change: when, and the offsets before and after it.
#[derive(Debug, Clone, Copy)]
struct Change {
    at: i64,
    before: i64,
    after: i64,
}

/// All from 1970 to 2037, in order.
fn changes(zone: &TimeZone) -> Vec<Change> {
    let end = jiff::Timestamp::from_second(2_145_916_800).unwrap();
    let all = zone.following(jiff::Timestamp::UNIX_EPOCH).take_while(|t| t.timestamp() < end);
    let change = |at: i64| Change { at, before: offset(zone, at - 1), after: offset(zone, at) };
    all.map(|t| change(t.timestamp().as_second())).filter(|c| c.before != c.after).collect()
}

impl Change {
    /// Expressions that the change touches: inside what is skipped or repeated, at its ends, and
    /// all day.
    fn times(self) -> Vec<Times> {
        let (stopped, resumed) = (self.at + self.before, self.at + self.after);
        let inside = i64::midpoint(stopped, resumed);
        let clock = |wall: i64| (wall.div_euclid(60) % 60, wall.div_euclid(HOUR) % 24);
        let ((minute, hour), (end_minute, end_hour)) = (clock(inside), clock(resumed));
        let next = (hour + 1) % 24;
        let all: Vec<i64> = (0..24).collect();
        let every: Vec<i64> = (0..60).collect();
        let text =
            |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        let fixed = |minutes: &[i64], hours: &[i64]| {
            Times::new(&text(minutes), minutes, &text(hours), hours)
        };
        vec![
            fixed(&[minute], &[hour]),
            fixed(&[end_minute], &[end_hour]),
            fixed(&[0, minute, 59], &[hour, next]),
            Times::new(&minute.to_string(), &[minute], "0-23", &all),
            Times::new(&minute.to_string(), &[minute], "*", &all),
            Times::new("*/20", &[0, 20, 40], &text(&[hour, next]), &[hour, next]),
            Times::new("*", &every, "*", &all),
        ]
    }

    /// What is wrong around the change.
    fn faults(self, zone: &TimeZone) -> Vec<String> {
        let width = 2 * HOUR + (self.after - self.before).abs();
        let looks = watch(zone, self.at - width, self.at + width);
        // Asked from around the change and from farther away.
        let near = [-HOUR, -60, -1, 0, 1, 60, HOUR / 2, HOUR, 3 * HOUR / 2].map(|s| self.at + s);
        self.times().iter().filter_map(|times| times.fault(zone, &looks, &near)).collect()
    }
}

/// Every change from 1970 to 2037 in every zone there is, and in one whose clock moves by four hours.
/// Zones that go together (links, the European Union) have the same ones: what happens then follows
/// from the offsets and the next change, so one of them is enough.
#[test]
fn around_every_change_the_fires_are_those_that_watching_the_clock_finds() {
    let mut all = BTreeMap::new();
    let made_up = ("made up".to_owned(), four_hours());
    let names = jiff::tz::db().available().map(|name| (name.to_string(), zone(name.as_str())));
    for (name, zone) in names.chain([made_up]) {
        let changes = changes(&zone);
        let next = changes.iter().skip(1).map(|next| next.at).chain([i64::MAX]);
        for (change, next) in changes.iter().zip(next) {
            let key = (change.at, change.before, change.after, next);
            all.entry(key).or_insert_with(|| (name.clone(), zone.clone(), *change));
        }
    }
    assert!(all.len() > 3000, "only {}: is there no zone database?", all.len());
    let mut faults = Vec::new();
    for (name, zone, change) in all.values() {
        let at = Timestamp::from_millis(change.at * 1000);
        faults.extend(change.faults(zone).iter().map(|fault| format!("{name} {at} {fault}")));
    }
    assert!(faults.is_empty(), "{} wrong:\n{}", faults.len(), faults.join("\n"));
}
