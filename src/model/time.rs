//! Points in time, as data. Nothing here can read a clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time in milliseconds since the Unix epoch, UTC.
///
/// Its text form, in JSON too, is RFC 3339 with milliseconds: `2026-11-30T02:00:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest point that a schedule may name (2200-01-01).
    pub const FAR: Self = Self(7_258_118_400_000);

    /// The last and the first point that the text form can tell, so that what is stored can be read.
    const LAST: i64 = 253_402_207_200_000;
    const FIRST: i64 = -377_705_023_201_000;

    /// From milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This point moved forward, stopping at the end of the calendar.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let moved = self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
        Self(moved.min(Self::LAST))
    }

    /// This point moved backward, stopping at the beginning of the calendar.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let moved = self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
        Self(moved.max(Self::FIRST))
    }

    /// The point a millisecond earlier, the last that lies before this one.
    #[must_use]
    pub const fn just_before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// Time since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The same point for the calendar library; `None` outside its years.
    #[must_use]
    pub fn to_jiff(self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::from_millisecond(self.0).ok()
    }

    /// From the calendar library, cut to milliseconds.
    #[must_use]
    pub fn from_jiff(at: jiff::Timestamp) -> Self {
        Self(at.as_millisecond())
    }

    /// Reads RFC 3339 with an offset.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(Self::from_jiff)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_jiff() {
            Some(at) => write!(f, "{at:.3}"),
            None => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        // The form of what lies outside the calendar, as earlier versions stored it.
        let outside = || text.strip_suffix(" ms")?.parse().ok().map(Self);
        Self::parse(&text).or_else(outside).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is not a time in RFC 3339 with an offset"))
        })
    }
}

/// Durations as whole milliseconds in JSON (`timeoutMs: 30000`).
pub mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes milliseconds.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    /// Reads milliseconds.
    ///
    /// # Errors
    /// If the value is not a whole number that is not negative.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

/// Optional durations as whole milliseconds in JSON.
pub mod optional_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes milliseconds or null.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|v| u64::try_from(v.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    /// Reads milliseconds or null.
    ///
    /// # Errors
    /// If the value is not a whole number that is not negative.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_rfc_3339_with_milliseconds_both_ways() {
        let at = Timestamp::from_millis(1_764_468_000_000);
        assert_eq!(at.to_string(), "2025-11-30T02:00:00.000Z");
        assert_eq!(Timestamp::parse("2025-11-30T10:00:00+08:00"), Some(at));
        let json = serde_json::to_string(&at).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), at);
        assert!(serde_json::from_str::<Timestamp>("\"2025-11-30\"").is_err());
    }

    /// Whatever is added to a time that can be written, what is stored can be read again.
    #[test]
    fn a_moved_time_stops_where_the_text_form_does() {
        let hundred_years = Duration::from_secs(100 * 366 * 86_400);
        let (last, first) = ("9999-12-30T22:00:00.000Z", "-009999-01-02T01:59:59.000Z");
        for (from, to) in [("9999-12-05T00:00:00Z", last), (last, last)] {
            let moved = Timestamp::parse(from).unwrap().plus(hundred_years);
            assert_eq!(moved.to_string(), to);
            let json = serde_json::to_string(&moved).unwrap();
            assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), moved);
        }
        let moved = Timestamp::parse("-009998-01-01T00:00:00Z").unwrap().minus(hundred_years);
        assert_eq!(moved.to_string(), first);
        let stored = serde_json::from_str::<Timestamp>("\"253402560000000 ms\"").unwrap();
        assert_eq!(stored.as_millis(), 253_402_560_000_000);
    }
}
