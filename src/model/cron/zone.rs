//! From wall-clock times to instants: what happens where a zone's clock changes.
//!
//! Vixie's rule. A *wildcard* expression follows the clock: it fires in both passes of a repeated
//! hour and not in a skipped one. A *fixed* one fires once a day whatever the clock does: a skipped
//! time at the moment of the jump, a repeated one in its first pass. Changes of more than three
//! hours are a matter of the calendar, not of the season: nothing is made up, nothing held back.
//!
//! The answer is a function of expression, zone and time; there is no memory.

use jiff::tz::TimeZone;

use super::calendar::Calendar;

/// Which of two a time is that the wall clock shows twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    First,
    Second,
}

/// A stretch of time in which the zone's offset stays the same. Seconds throughout.
pub(super) struct Stretch {
    /// Its start and the offset before it; `None`: since ever.
    before: Option<(i64, i64)>,
    pub(super) offset: i64,
    /// Its end, exclusive; `None`: for ever.
    pub(super) end: Option<i64>,
}

impl Stretch {
    /// The one that holds an instant; `None` outside the calendar's years.
    pub(super) fn holding(zone: &TimeZone, at: i64) -> Option<Self> {
        let instant = jiff::Timestamp::from_second(at).ok()?;
        let just_after = jiff::Timestamp::from_second(at.checked_add(1)?).ok()?;
        let before = zone.preceding(just_after).next().and_then(|transition| {
            let start = transition.timestamp().as_second();
            Some((start, offset_at(zone, start.checked_sub(1)?)?))
        });
        let end = zone.following(instant).next().map(|t| t.timestamp().as_second());
        Some(Self { before, offset: offset_at(zone, at)?, end })
    }

    /// The one that begins at this one's end.
    pub(super) fn after(&self, zone: &TimeZone, end: i64) -> Option<Self> {
        let instant = jiff::Timestamp::from_second(end).ok()?;
        let next = zone.following(instant).next().map(|t| t.timestamp().as_second());
        Some(Self { before: Some((end, self.offset)), offset: offset_at(zone, end)?, end: next })
    }

    /// Its first second.
    pub(super) fn start(&self) -> i64 {
        self.before.map_or(i64::MIN, |(start, _)| start)
    }

    /// The wall-clock times at the start that were there already before it: from, to.
    pub(super) fn repeated(&self) -> Option<(i64, i64)> {
        let (start, before) = self.before?;
        (before > self.offset).then_some((start + self.offset, start + before))
    }

    /// The wall-clock times that its start jumps over: from, to.
    pub(super) fn skipped(&self) -> Option<(i64, i64)> {
        let (start, before) = self.before?;
        (before < self.offset).then_some((start + before, start + self.offset))
    }
}

fn offset_at(zone: &TimeZone, at: i64) -> Option<i64> {
    let instant = jiff::Timestamp::from_second(at).ok()?;
    Some(zone.to_offset(instant).seconds().into())
}

/// The first fire strictly after a time.
pub(super) fn next(calendar: &Calendar, after: i64, zone: &TimeZone) -> Option<i64> {
    let fields = calendar.fields();
    let mut stretch = Stretch::holding(zone, after)?;
    let mut from = after + stretch.offset;
    if let Some((_, to)) = stretch.repeated().filter(|pass| fields.fires_once(*pass)) {
        from = from.max(to - 1);
    }
    let mut wall = calendar.after(from)?;
    loop {
        let at = wall - stretch.offset;
        let Some(end) = stretch.end.filter(|end| at >= *end) else {
            return Some(at);
        };
        let next = stretch.after(zone, end)?;
        let (stopped, resumed) = (end + stretch.offset, end + next.offset);
        if wall < resumed {
            if fields.fires_once((stopped, resumed)) {
                return Some(end);
            }
            wall = calendar.after(resumed - 1)?;
        } else if resumed < stopped && !fields.fires_once((resumed, stopped)) {
            wall = calendar.after(resumed - 1)?;
        }
        stretch = next;
    }
}

/// Which of two a second is, and what the clock shows then; `None`: that time comes once.
pub(super) fn pass(at: i64, zone: &TimeZone) -> Option<(Pass, i64)> {
    let stretch = Stretch::holding(zone, at)?;
    let wall = at + stretch.offset;
    if stretch.repeated().is_some_and(|(from, to)| (from..to).contains(&wall)) {
        return Some((Pass::Second, wall));
    }
    let (from, to) = stretch.after(zone, stretch.end?)?.repeated()?;
    (from..to).contains(&wall).then_some((Pass::First, wall))
}
