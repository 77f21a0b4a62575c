//! Priority: 0..=9, 0 first, in five named levels (requirements D1, D2).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in the order of a queue: 0 is served first, 9 last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// NORMAL, the default.
    pub const NORMAL: Self = Self(4);

    /// Takes 0..=9.
    #[must_use]
    pub fn new(value: u8) -> Option<Self> {
        (value <= 9).then_some(Self(value))
    }

    /// Reads a number 0..=9 or a level's name, which stands for the middle of its band.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let value = match text {
            "CRITICAL" => 0,
            "HIGH" => 1,
            "NORMAL" => 4,
            "LOW" => 7,
            "BACKGROUND" => 9,
            digits => digits.parse().ok()?,
        };
        Self::new(value)
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The level that the number belongs to.
    #[must_use]
    pub const fn level(self) -> Level {
        match self.0 {
            0 => Level::Critical,
            1 | 2 => Level::High,
            3..=5 => Level::Normal,
            6..=8 => Level::Low,
            _ => Level::Background,
        }
    }
}

impl TryFrom<u8> for Priority {
    type Error = String;

    fn try_from(value: u8) -> Result<Self, String> {
        Self::new(value).ok_or_else(|| format!("{value} is no priority; 0 (first) to 9 (last)"))
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A band of priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Level {
    /// 0.
    Critical,
    /// 1 and 2.
    High,
    /// 3 to 5.
    Normal,
    /// 6 to 8.
    Low,
    /// 9.
    Background,
}

impl Level {
    /// All levels, the first served first.
    pub const ALL: [Self; 5] =
        [Self::Critical, Self::High, Self::Normal, Self::Low, Self::Background];

    /// The name as the contract spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "CRITICAL",
            Self::High => "HIGH",
            Self::Normal => "NORMAL",
            Self::Low => "LOW",
            Self::Background => "BACKGROUND",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_the_middle_of_their_band() {
        for (text, value) in
            [("CRITICAL", 0), ("HIGH", 1), ("NORMAL", 4), ("LOW", 7), ("BACKGROUND", 9), ("6", 6)]
        {
            assert_eq!(Priority::parse(text).map(Priority::value), Some(value), "{text}");
        }
        for text in ["10", "-1", "100", "high", "5.5", ""] {
            assert_eq!(Priority::parse(text), None, "{text}");
        }
    }

    #[test]
    fn bands_are_those_of_the_requirements() {
        let levels: Vec<Level> = (0..=9).filter_map(Priority::new).map(Priority::level).collect();
        use Level::{Background, Critical, High, Low, Normal};
        assert_eq!(
            levels,
            [Critical, High, High, Normal, Normal, Normal, Low, Low, Low, Background]
        );
    }
}
