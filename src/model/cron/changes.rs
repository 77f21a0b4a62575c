//! What the changes of a zone's clock do to an expression, in words: for who lists its fires, and
//! for who writes it.

use std::fmt::Write as _;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::calendar::Calendar;
use super::count;
use super::zone::{self, Pass, Stretch};

/// Times that are named one by one; of more, the rest is counted.
const NAMED_MAX: usize = 3;

/// What becomes of the times that a change skips or repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Skipped: one fire at the jump.
    Moved,
    /// Skipped: no fire.
    Dropped,
    /// Repeated: fires in the first pass.
    Once,
    /// Repeated: fires in both.
    Twice,
}

impl Effect {
    fn is_skip(self) -> bool {
        match self {
            Self::Moved | Self::Dropped => true,
            Self::Once | Self::Twice => false,
        }
    }
}

/// A change that skips or repeats some of an expression's times. Seconds of the wall clock.
struct Touch {
    effect: Effect,
    /// The first of the times.
    times: Vec<i64>,
    /// How many there are.
    count: u64,
    /// What the clock shows after it.
    resumed: i64,
}

/// The changes in (after, until] that touch an expression. Seconds since the epoch.
fn touches(
    calendar: &Calendar,
    after: i64,
    until: i64,
    zone: &TimeZone,
) -> impl Iterator<Item = Touch> {
    let start = Stretch::holding(zone, after);
    let stretches =
        std::iter::successors(start, move |s| s.after(zone, s.end.filter(|e| *e <= until)?));
    stretches.skip(1).filter_map(|stretch| touch(calendar, &stretch))
}

fn touch(calendar: &Calendar, stretch: &Stretch) -> Option<Touch> {
    let fields = calendar.fields();
    let (range, effects) = match (stretch.skipped(), stretch.repeated()) {
        (Some(gap), _) => (gap, [Effect::Moved, Effect::Dropped]),
        (None, Some(pass)) => (pass, [Effect::Once, Effect::Twice]),
        (None, None) => return None,
    };
    let (from, to) = range;
    let [once, as_shown] = effects;
    let first = calendar.after(from - 1);
    let times = std::iter::successors(first, |time| calendar.after(*time));
    let times: Vec<i64> = times.take_while(|time| *time < to).take(NAMED_MAX).collect();
    (!times.is_empty()).then(|| Touch {
        effect: if fields.fires_once(range) { once } else { as_shown },
        times,
        count: count::matches(fields, from, to),
        resumed: stretch.start() + stretch.offset,
    })
}

/// The first fire strictly after a time, and what a listing tells of it: that it is moved or one of
/// two, and what was dropped since that time.
pub(super) fn told(
    calendar: &Calendar,
    after: i64,
    zone: &TimeZone,
) -> Option<(i64, Option<String>)> {
    let at = zone::next(calendar, after, zone)?;
    let mut told: Vec<String> =
        touches(calendar, after, at, zone).filter_map(|touch| touch.told()).collect();
    if let Some((pass, wall)) = zone::pass(at, zone) {
        let which = match pass {
            Pass::First => "first",
            Pass::Second => "second",
        };
        told.push(format!("{which} of two: {} happens twice", clock(wall)));
    }
    Some((at, (!told.is_empty()).then(|| told.join("; "))))
}

/// What the first skip and the first repetition in (after, until] do. `None`: nothing that
/// surprises, as with an expression that follows the clock all day.
pub(super) fn warning(
    calendar: &Calendar,
    after: i64,
    until: i64,
    zone: &TimeZone,
) -> Option<String> {
    let fields = calendar.fields();
    if fields.wildcard && fields.hours.len() == 24 {
        return None;
    }
    let (mut skips, mut repeats) = (false, false);
    let mut said = Vec::new();
    for touch in touches(calendar, after, until, zone) {
        let known = if touch.effect.is_skip() { &mut skips } else { &mut repeats };
        if !std::mem::replace(known, true) {
            said.push(touch.foretold());
        }
        if skips && repeats {
            break;
        }
    }
    (!said.is_empty()).then(|| said.join("; "))
}

impl Touch {
    /// As a note on the fire that comes next.
    fn told(&self) -> Option<String> {
        let (times, does) = (self.names(), self.verb("does", "do"));
        match self.effect {
            Effect::Moved => Some(format!("moved: {times} {does} not exist on this day")),
            Effect::Dropped => {
                Some(format!("{times} {does} not exist on {}: not fired", self.date()))
            }
            Effect::Once | Effect::Twice => None,
        }
    }

    /// As a warning long before.
    fn foretold(&self) -> String {
        let (date, times) = (self.date(), self.names());
        let (does, comes) = (self.verb("does", "do"), self.verb("comes", "come"));
        match self.effect {
            Effect::Moved => {
                let resumed = civil(self.resumed);
                let day = if resumed.date().to_string() == date {
                    String::new()
                } else {
                    format!("{} ", resumed.date())
                };
                let once = self.verb("", "once, ");
                let at = clock(self.resumed);
                format!("on {date} {times} {does} not exist: fires {once}at {day}{at} instead")
            }
            Effect::Dropped => format!("on {date} {times} {does} not exist: does not fire then"),
            Effect::Once => format!("on {date} {times} {comes} twice: fires at the first"),
            Effect::Twice => format!("on {date} {times} {comes} twice: fires both times"),
        }
    }

    fn verb(&self, one: &'static str, several: &'static str) -> &'static str {
        if self.count == 1 { one } else { several }
    }

    fn date(&self) -> String {
        self.times.first().map(|time| civil(*time).date().to_string()).unwrap_or_default()
    }

    fn names(&self) -> String {
        let mut names = self.times.iter().map(|time| clock(*time)).collect::<Vec<_>>().join(", ");
        let more = self.count.saturating_sub(NAMED_MAX as u64);
        if more > 0 {
            // Writing to a String cannot fail.
            let _infallible = write!(names, " and {more} more");
        }
        names
    }
}

fn civil(wall: i64) -> DateTime {
    // A wall clock is a clock in UTC that somebody has set otherwise.
    jiff::Timestamp::from_second(wall).map_or(DateTime::ZERO, |at| TimeZone::UTC.to_datetime(at))
}

/// `02:30`, `02:30:15`.
fn clock(wall: i64) -> String {
    let form = if wall.rem_euclid(60) == 0 { "%H:%M" } else { "%H:%M:%S" };
    civil(wall).strftime(form).to_string()
}
