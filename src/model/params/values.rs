//! Values by their type: the stored form, and the order that bounds need. Knows no declaration.

use jiff::SignedDuration;
use jiff::civil::Date;
use serde_json::{Number, Value};

use super::ParamType;

impl ParamType {
    /// What a value of the type looks like, in words.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::String => "text (a number in quotes is text)",
            Self::Int => "a whole number of at most 64 bits",
            Self::Number => "a number",
            Self::Bool => "true or false",
            Self::Date => "a date such as 2026-11-30",
            Self::Datetime => "a time with an offset such as 2026-11-30T02:00:00Z",
            Self::Duration => "a duration such as 1h30m, or whole milliseconds",
            Self::Json => "any JSON",
        }
    }

    /// The stored form of a value; `None` if it is none of the type.
    pub(super) fn stored(self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::Json, Value::String(text)) => {
                Some(serde_json::from_str(text).unwrap_or_else(|_source| value.clone()))
            }
            (Self::Json, _) | (Self::String, Value::String(_)) | (Self::Bool, Value::Bool(_)) => {
                Some(value.clone())
            }
            (Self::Int, Value::Number(number)) => number.as_i64().map(Value::from),
            (Self::Int, Value::String(text)) => text.parse::<i64>().ok().map(Value::from),
            (Self::Number, Value::Number(_)) => Some(value.clone()),
            (Self::Number, Value::String(text)) => number(text).map(Value::Number),
            (Self::Bool, Value::String(text)) => text.parse::<bool>().ok().map(Value::from),
            (Self::Date, Value::String(text)) => date(text).map(|_| value.clone()),
            (Self::Datetime, Value::String(text)) => instant(text).map(|_| value.clone()),
            (Self::Duration, Value::Number(number)) => number.as_u64().map(Value::from),
            (Self::Duration, Value::String(text)) => duration_ms(text).map(Value::from),
            _ => None,
        }
    }

    /// Where a stored value stands in the order of its type; `None` for types without an order.
    pub(super) fn rank(self, stored: &Value) -> Option<Rank> {
        let text = || stored.as_str();
        match self {
            Self::String | Self::Bool | Self::Json => None,
            Self::Int => stored.as_i64().map(|n| Rank::Whole(n.into())),
            Self::Duration => stored.as_u64().map(|n| Rank::Whole(n.into())),
            Self::Number => stored.as_f64().map(Rank::Real),
            Self::Date => text().and_then(date).map(Rank::Date),
            Self::Datetime => text().and_then(instant).map(Rank::Instant),
        }
    }
}

/// A place in the order of a type; places of different types do not compare.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Rank {
    Whole(i128),
    Real(f64),
    Date(Date),
    Instant(jiff::Timestamp),
}

fn number(text: &str) -> Option<Number> {
    let whole = text.parse::<i64>().ok().map(Number::from);
    whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))
}

/// The shape of a text: every digit is a 0. The calendar library takes more forms than we do.
fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

fn date(text: &str) -> Option<Date> {
    if shape(text) != "0000-00-00" {
        return None;
    }
    text.parse().ok()
}

/// RFC 3339: date, `T`, time of day with seconds, perhaps a fraction, an offset or `Z`.
fn instant(text: &str) -> Option<jiff::Timestamp> {
    let shape = shape(text).to_ascii_uppercase();
    let rest = shape.strip_prefix("0000-00-00T00:00:00")?;
    let offset = match rest.strip_prefix(".0") {
        Some(fraction) => fraction.trim_start_matches('0'),
        None => rest,
    };
    if !matches!(offset, "Z" | "+00:00" | "-00:00") {
        return None;
    }
    text.parse().ok()
}

fn duration_ms(text: &str) -> Option<u64> {
    if let Ok(ms) = text.parse::<u64>() {
        return Some(ms);
    }
    let duration: SignedDuration = text.parse().ok()?;
    u64::try_from(duration.as_millis()).ok()
}
