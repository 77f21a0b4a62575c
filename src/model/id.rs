//! Names of things: task, instance, executor, queue, attempt, lease, log position.
//!
//! All are newtypes, so that one cannot be passed for another, and all are cheap to clone and, being
//! mostly short, to compare.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::cmp::Ordering;
use std::fmt;

use crate::limits;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(SmolStr);

        impl $type {
            /// The text of the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A task's stable, globally unique id, such as `order.settle.v2` (requirement A2).
    ///
    /// Only [`TaskId::parse`] makes one from text that came from outside.
    #[derive(PartialOrd, Ord)]
    TaskId
}

name! {
    /// One instance's id: 20 characters of Crockford base 32, the first ten from a time in
    /// milliseconds, the rest a hash of what made it. Deterministic for an automatic fire.
    InstanceId
}

impl PartialOrd for InstanceId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InstanceId {
    /// The order of the texts. Nearly all have the same length, and the core's maps compare them at
    /// every step: as numbers that is done without a call.
    fn cmp(&self, other: &Self) -> Ordering {
        let words = |text: &[u8]| -> Option<(u128, u32)> {
            let (high, low) = text.split_at_checked(16)?;
            Some((
                u128::from_be_bytes(high.try_into().ok()?),
                u32::from_be_bytes(low.try_into().ok()?),
            ))
        };
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        match (words(a), words(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (None, _) | (_, None) => a.cmp(b),
        }
    }
}

name! {
    /// A configured executor's id.
    #[derive(PartialOrd, Ord)]
    ExecutorId
}

name! {
    /// A queue's name.
    #[derive(PartialOrd, Ord)]
    QueueName
}

/// Why a text is not a task id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskIdError {
    /// Longer than [`limits::TASK_ID_BYTES_MAX`].
    #[error("is {0} bytes long; at most {max} are allowed", max = limits::TASK_ID_BYTES_MAX)]
    TooLong(usize),
    /// Not words of `[a-z0-9]` joined by `.`, `-` or `_`.
    #[error("has {0:?}; expected words of a-z and 0-9 joined by '.', '-' or '_'")]
    Character(String),
    /// Does not end in `.v<version>`.
    #[error("does not end in a version; expected domain.key.vN, such as order.settle.v2")]
    NoVersion,
    /// Ends in `.v` and digits that are no version: 0, a zero before others, too many.
    #[error("ends in .v{0}; expected a version from 1 to {max} without a zero before it, such as .v1", max = u32::MAX)]
    Version(String),
    /// A word reads as a date or a time of day and date.
    #[error(
        "carries the run time {0:?}; a task id is the same for every run, put the time in a parameter"
    )]
    Timestamp(String),
}

impl TaskId {
    /// Checks and makes a task id (contract §2, `taskId`).
    ///
    /// # Errors
    /// [`TaskIdError`] says what about the text is wrong.
    pub fn parse(text: &str) -> Result<Self, TaskIdError> {
        if text.len() > limits::TASK_ID_BYTES_MAX {
            return Err(TaskIdError::TooLong(text.len()));
        }
        let words: Vec<&str> = text.split(['.', '-', '_']).collect();
        for word in &words {
            if word.is_empty() {
                return Err(TaskIdError::Character("an empty word".to_owned()));
            }
            if let Some(c) = word.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9')) {
                return Err(TaskIdError::Character(c.to_string()));
            }
        }
        if version_suffix(text).is_none() {
            let digits = text.rsplit_once(".v").map_or("", |(_, digits)| digits);
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(TaskIdError::Version(digits.to_owned()));
            }
            return Err(TaskIdError::NoVersion);
        }
        if let Some(word) = words.iter().find(|w| reads_as_time(w)) {
            return Err(TaskIdError::Timestamp((*word).to_owned()));
        }
        if let Some(run) = words.windows(3).find(|w| reads_as_split_date(w)) {
            return Err(TaskIdError::Timestamp(run.join("-")));
        }
        Ok(Self(text.into()))
    }

    /// The number after `.v`.
    #[must_use]
    pub fn version(&self) -> u32 {
        version_suffix(&self.0).map_or(0, |(_, v)| v)
    }

    /// The id without its `.vN`.
    #[must_use]
    pub fn base(&self) -> &str {
        version_suffix(&self.0).map_or(&self.0, |(base, _)| base)
    }
}

fn version_suffix(text: &str) -> Option<(&str, u32)> {
    let (base, digits) = text.rsplit_once(".v")?;
    if base.is_empty() || digits.starts_with('0') {
        return None;
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((base, digits.parse().ok()?))
}

/// Whether a word is a date of eight digits or more (`20261130`, with or without a time of day
/// behind it, with or without a `t` between) or 10 or 13 digits of epoch time.
fn reads_as_time(word: &str) -> bool {
    let digits: String = match word.split_once('t') {
        Some((a, b)) if a.len() == 8 && !b.is_empty() => format!("{a}{}", b.trim_end_matches('z')),
        _ => word.to_owned(),
    };
    if digits.len() < 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    if matches!(digits.len(), 10 | 13) && digits.starts_with(['1', '2']) {
        return true;
    }
    matches!(digits.len(), 8 | 10 | 12 | 14 | 17)
        && reads_as_date(&digits[..4], &digits[4..6], &digits[6..8])
}

fn reads_as_split_date(words: &[&str]) -> bool {
    words[0].len() == 4
        && words[1].len() == 2
        && words[2].len() == 2
        && words.iter().all(|w| w.bytes().all(|b| b.is_ascii_digit()))
        && reads_as_date(words[0], words[1], words[2])
}

fn reads_as_date(year: &str, month: &str, day: &str) -> bool {
    matches!(year.parse::<u32>(), Ok(1900..=2199))
        && matches!(month.parse::<u32>(), Ok(1..=12))
        && matches!(day.parse::<u32>(), Ok(1..=31))
}

impl From<&str> for ExecutorId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<&str> for QueueName {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl InstanceId {
    /// Makes an id from a time and the identity of what made the instance.
    ///
    /// The same `at` and `identity` always give the same id: a fire repeated after a crash names
    /// the instance it already made.
    #[must_use]
    pub fn derive(at_ms: i64, identity: &[&str]) -> Self {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for part in identity {
            hash.update(part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        let mut low = [0_u8; 8];
        low.copy_from_slice(&digest[..8]);
        let mut text = String::with_capacity(20);
        base32(u64::try_from(at_ms).unwrap_or(0), &mut text);
        base32(u64::from_le_bytes(low), &mut text);
        Self(text.into())
    }

    /// Takes a stored or submitted id as it is; it names nothing unless an instance has it.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }
}

/// Appends the low 50 bits as ten characters of lower-case Crockford base 32.
fn base32(value: u64, out: &mut String) {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    for shift in (0..10).rev() {
        let index = usize::try_from((value >> (shift * 5)) & 31).unwrap_or(0);
        out.push(char::from(ALPHABET[index]));
    }
}

/// A position in the append-only log; contiguous from 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct LogSeq(pub u64);

/// The fence of one dispatch: the log position at which it was decided, so never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lease(pub u64);

/// A ticket by which the shell finds who asked; meaningless outside the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplyTo(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_are_words_with_a_version_and_no_time() {
        for good in ["order.settle.v2", "a.v1", "x-1_y.z9.v10", "acct.40961234.v1", "p.2026.v1"] {
            assert!(TaskId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "order.settle",
            "order.settle.v0",
            "order.settle.v01",
            "Order.settle.v1",
            "a..b.v1",
            ".v1",
            "a b.v1",
            "../../etc/x.v1",
            "a\nb.v1",
            "a\0b.v1",
            "é.v1",
            "load.20261130.v1",
            "load.2026113002.v1",
            "load.202611300200.v1",
            "load.20261130020000.v1",
            "load.1764540000.v1",
            "load.1764540000000.v1",
            "load.20261130t020000z.v1",
            "load.2026-11-30.v1",
        ] {
            assert!(TaskId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(TaskId::parse(&format!("{}.v1", "a".repeat(300))).is_err());
    }

    #[test]
    fn digits_that_are_no_version_are_named() {
        for (bad, expected) in [
            ("x.v01", Some("01")),
            ("x.v0", Some("0")),
            ("x.v4294967296", Some("4294967296")),
            ("x.v", None),
            ("x.v1.y", None),
            ("x", None),
        ] {
            let expected =
                expected.map_or(TaskIdError::NoVersion, |d| TaskIdError::Version(d.to_owned()));
            assert_eq!(TaskId::parse(bad).unwrap_err(), expected, "{bad}");
        }
    }

    #[test]
    fn version_and_base_come_from_the_suffix() {
        let id = TaskId::parse("order.settle.v12").unwrap();
        assert_eq!((id.base(), id.version()), ("order.settle", 12));
    }

    #[test]
    fn instance_ids_stand_in_the_order_of_their_texts() {
        let texts = [
            "",
            "0",
            "01kpz0000000000000a",
            "01kpz0000000000000aa",
            "01kpz0000000000000ab",
            "01kpz0000000000000aaa",
            "01kpz0000000000001",
            "é1kpz0000000000000a",
            "z",
        ];
        for a in texts {
            for b in texts {
                let order = InstanceId::from_text(a).cmp(&InstanceId::from_text(b));
                assert_eq!(order, a.cmp(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn an_instance_id_is_a_function_of_its_making() {
        let a = InstanceId::derive(1_700_000_000_000, &["t.v1", "cron"]);
        assert_eq!(a, InstanceId::derive(1_700_000_000_000, &["t.v1", "cron"]));
        assert_ne!(a, InstanceId::derive(1_700_000_000_000, &["t.v1c", "ron"]));
        assert!(a < InstanceId::derive(1_700_000_000_001, &["t.v1", "cron"]));
        assert_eq!(a.as_str().len(), 20);
    }
}
