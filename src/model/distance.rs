//! How far away times are, and how long things took, in words.

use std::time::Duration;

use super::time::Timestamp;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How far away a point is: `in 3m`, `2m ago`, `now`.
#[must_use]
pub fn relative(now: Timestamp, at: Timestamp) -> String {
    let (ahead, behind) = (at.since(now), now.since(at));
    if ahead < Duration::from_secs(1) && behind < Duration::from_secs(1) {
        return "now".to_owned();
    }
    if at > now { format!("in {}", short(ahead)) } else { format!("{} ago", short(behind)) }
}

/// A duration in at most two units: `340ms`, `12s`, `3m20s`, `45m`, `5h12m`, `3d4h`, `45d`.
#[must_use]
pub fn short(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let two = |big: u64, big_name: &str, small: u64, small_name: &str| {
        let (whole, rest) = (ms / big, ms % big / small);
        if rest == 0 {
            format!("{whole}{big_name}")
        } else {
            format!("{whole}{big_name}{rest}{small_name}")
        }
    };
    match ms {
        0..SECOND => format!("{ms}ms"),
        SECOND..MINUTE => format!("{}s", ms / SECOND),
        MINUTE..600_000 => two(MINUTE, "m", SECOND, "s"),
        600_000..HOUR => format!("{}m", ms / MINUTE),
        HOUR..DAY => two(HOUR, "h", MINUTE, "m"),
        DAY..864_000_000 => two(DAY, "d", HOUR, "h"),
        _ => format!("{}d", ms / DAY),
    }
}
