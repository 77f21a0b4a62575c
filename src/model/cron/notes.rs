//! The texts of what a clock's change did to a fire. There is one per minute of the day and kind,
//! made once and kept, so that a fire stays a small value to copy.

use std::sync::OnceLock;

use super::zone::Change;

const MINUTES: usize = 24 * 60;

type Texts = [OnceLock<String>; MINUTES];

static MOVED: Texts = [const { OnceLock::new() }; MINUTES];
static FIRST: Texts = [const { OnceLock::new() }; MINUTES];
static SECOND: Texts = [const { OnceLock::new() }; MINUTES];

/// What a person is told about a fire.
pub(super) fn note(change: Change) -> &'static str {
    let (texts, wall, before, after) = match change {
        Change::Moved(wall) => (&MOVED, wall, "moved", "does not exist on this day"),
        Change::First(wall) => (&FIRST, wall, "first of two", "happens twice"),
        Change::Second(wall) => (&SECOND, wall, "second of two", "happens twice"),
    };
    let minute = usize::try_from(wall.div_euclid(60).rem_euclid(24 * 60)).unwrap_or(0);
    let (hour, minute_of_hour) = (minute / 60, minute % 60);
    texts[minute].get_or_init(|| format!("{before}: {hour:02}:{minute_of_hour:02} {after}"))
}
