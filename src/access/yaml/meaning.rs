//! What the second reader says a value is.
//!
//! A tree of our own, because the reader's own value type refuses whole numbers of more than
//! 64 bits, where only their text is wanted.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Meaning {
    Null,
    Bool(bool),
    /// A number as JSON would write it; `None`: JSON has no such number.
    Number(Option<serde_json::Number>),
    Text(String),
    List(Vec<Self>),
    /// The values only; the keys are the first reader's.
    Map(Vec<Self>),
}

impl<'de> Deserialize<'de> for Meaning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Meaning;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Meaning, E> {
        Ok(Meaning::Null)
    }

    fn visit_none<E>(self) -> Result<Meaning, E> {
        Ok(Meaning::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Meaning, E> {
        Ok(Meaning::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Meaning, E> {
        Ok(Meaning::Number(Some(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Meaning, E> {
        Ok(Meaning::Number(Some(value.into())))
    }

    fn visit_i128<E>(self, _value: i128) -> Result<Meaning, E> {
        Ok(Meaning::Number(None))
    }

    fn visit_u128<E>(self, _value: u128) -> Result<Meaning, E> {
        Ok(Meaning::Number(None))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Meaning, E> {
        Ok(Meaning::Number(serde_json::Number::from_f64(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Meaning, E> {
        Ok(Meaning::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Meaning, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = parts.next_element()? {
            values.push(value);
        }
        Ok(Meaning::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Meaning, A::Error> {
        let mut values = Vec::new();
        while let Some((_key, value)) = parts.next_entry::<Meaning, Meaning>()? {
            values.push(value);
        }
        Ok(Meaning::Map(values))
    }
}
