//! Typed runtime parameters: their declaration and their check before anything is queued
//! (requirements A4, A5).
//!
//! Values come typed, from JSON, or as text, from `-p k=v`; both end in one stored form. Where a
//! value came from, and the flow down an edge, are not known here. The value of a secret parameter
//! is in no message.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json::{JsonMap, check_depth};
use super::schema;
use super::suggest::nearest;
use super::template::{Budget, Template, TemplateError, Unfilled};
use crate::limits;

mod pattern;
mod values;

use self::pattern::whole;

/// What a parameter's value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ParamType {
    /// Text.
    String,
    /// A whole number that fits 64 bits.
    Int,
    /// A number.
    Number,
    /// true or false.
    Bool,
    /// `2026-11-30`.
    Date,
    /// RFC 3339.
    Datetime,
    /// `1h30m` or milliseconds.
    Duration,
    /// Anything.
    Json,
}

/// One declared parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParamSchema {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Whether a run without it is refused; true by default where there is no `default`.
    pub required: bool,
    /// Its value where none is given; strings may hold placeholders.
    pub default: Option<Value>,
    /// The allowed values.
    #[serde(rename = "enum", default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Value>,
    /// The least value (numbers, dates, times, durations).
    pub min: Option<Value>,
    /// The greatest value.
    pub max: Option<Value>,
    /// A regular expression that the whole text must match.
    #[schemars(schema_with = "schema::text")]
    pub pattern: Option<String>,
    /// Masked wherever it is shown.
    pub secret: bool,
}

/// One parameter that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter {name}: {problem}")]
pub struct ParamError {
    /// Its name.
    pub name: String,
    /// What was found, what is expected.
    pub problem: String,
}

/// The form in which a value stands in an argument or an environment variable: text as it is,
/// numbers, true and false as in JSON; `None` for lists, objects and null.
#[must_use]
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What a placeholder fills in for a value: [`scalar_text`], and JSON for all else.
#[must_use]
pub fn placeholder_text(value: &Value) -> String {
    scalar_text(value).unwrap_or_else(|| value.to_string())
}

impl ParamSchema {
    /// Checks one value and brings it to its stored form.
    ///
    /// Text given for an int, number, bool or duration becomes one; a duration is stored as whole
    /// milliseconds; text given for a json parameter is read as JSON where it is JSON and is kept as
    /// a text where it is not; date, datetime and string stay the text they are. Checking a stored
    /// form again changes nothing (but for a json text that is itself JSON in quotes).
    ///
    /// # Errors
    /// What is wrong with it, in words: what was found, what is expected.
    pub fn check(&self, value: &Value) -> Result<Value, String> {
        let Some(stored) = self.kind.stored(value) else {
            return Err(format!("found {}; expected {}", self.shown(value), self.kind.expected()));
        };
        self.check_allowed(value, &stored)?;
        self.check_bounds(value, &stored)?;
        self.check_pattern(value, &stored)?;
        Ok(stored)
    }

    fn check_allowed(&self, value: &Value, stored: &Value) -> Result<(), String> {
        let same = |allowed: &Value| {
            let allowed = self.kind.stored(allowed);
            match (self.kind.rank(stored), allowed.as_ref().and_then(|a| self.kind.rank(a))) {
                (Some(found), Some(allowed)) => found == allowed,
                _ => allowed.as_ref() == Some(stored),
            }
        };
        if self.allowed.is_empty() || self.allowed.iter().any(same) {
            return Ok(());
        }
        let found = self.shown(value);
        if self.secret {
            return Err(format!("found {found}; it is not one of the allowed values"));
        }
        let texts: Vec<String> = self.allowed.iter().map(placeholder_text).collect();
        let near = nearest(&placeholder_text(value), texts.iter().map(String::as_str));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        let all: Vec<String> = self.allowed.iter().map(ToString::to_string).collect();
        Err(format!("found {found}; expected one of {}{hint}", all.join(", ")))
    }

    fn check_bounds(&self, value: &Value, stored: &Value) -> Result<(), String> {
        let Some(found) = self.kind.rank(stored) else { return Ok(()) };
        let bound = |bound: &Option<Value>| {
            let bound = bound.as_ref()?;
            Some((self.kind.rank(&self.kind.stored(bound)?)?, placeholder_text(bound)))
        };
        if let Some((_, least)) = bound(&self.min).filter(|(least, _)| found < *least) {
            return Err(format!("found {}; the least allowed is {least}", self.shown(value)));
        }
        if let Some((_, greatest)) = bound(&self.max).filter(|(greatest, _)| found > *greatest) {
            return Err(format!("found {}; the greatest allowed is {greatest}", self.shown(value)));
        }
        Ok(())
    }

    fn check_pattern(&self, value: &Value, stored: &Value) -> Result<(), String> {
        let Some(pattern) = &self.pattern else { return Ok(()) };
        let Some(text) = scalar_text(stored) else {
            return Err(format!(
                "found {}; expected a single value that matches {pattern}",
                self.shown(value)
            ));
        };
        if whole(pattern)?.is_match(&text) {
            return Ok(());
        }
        Err(format!("found {}; the whole of it must match {pattern}", self.shown(value)))
    }

    /// A value for a message: cut where it is long, and never that of a secret.
    fn shown(&self, value: &Value) -> String {
        const CHARS_MAX: usize = 80;
        if self.secret {
            return "a value that is not shown because the parameter is secret".to_owned();
        }
        let text = value.to_string();
        match text.char_indices().nth(CHARS_MAX) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    }

    /// What is wrong with the declaration itself, in words; empty: nothing.
    ///
    /// A default that holds placeholders is only checked once they are filled in.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut add = |key: &str, problem: String| faults.push(format!("{key}: {problem}"));
        for allowed in &self.allowed {
            if self.kind.stored(allowed).is_none() {
                add(
                    "enum",
                    format!("found {}; expected {}", self.shown(allowed), self.kind.expected()),
                );
            }
        }
        let mut ranks = Vec::new();
        for (key, bound) in [("min", &self.min), ("max", &self.max)] {
            let Some(bound) = bound else { continue };
            match self.kind.stored(bound).and_then(|stored| self.kind.rank(&stored)) {
                Some(rank) => ranks.push(rank),
                None if matches!(
                    self.kind,
                    ParamType::String | ParamType::Bool | ParamType::Json
                ) =>
                {
                    add(key, "only numbers, dates, times and durations have bounds".to_owned());
                }
                None => add(
                    key,
                    format!("found {}; expected {}", self.shown(bound), self.kind.expected()),
                ),
            }
        }
        if let [least, greatest] = ranks[..]
            && least > greatest
        {
            add("min", "is greater than max; no value is allowed".to_owned());
        }
        let mut rest = self.clone();
        if let Some(problem) = self.pattern.as_deref().and_then(|p| whole(p).err()) {
            rest.pattern = None;
            add("pattern", problem);
        }
        if let Some(problem) = self.default.as_ref().and_then(|d| rest.default_fault(d)) {
            add("default", problem);
        }
        faults
    }

    /// What is wrong with a default before its placeholders are filled in.
    fn default_fault(&self, default: &Value) -> Option<String> {
        match fill_value(default, &|_| None, &Budget::new()) {
            Ok(plain) => self.check(&plain).err(),
            Err(FillError::Unfilled(Unfilled::NoValue(_))) => None,
            Err(error @ (FillError::Template(_) | FillError::Unfilled(Unfilled::TooLong))) => {
                Some(self.unfillable(&error))
            }
        }
    }

    /// Why a default cannot be filled in; a secret's own text is no placeholder to show.
    fn unfillable(&self, error: &FillError) -> String {
        if self.secret {
            return "its braces hold no known placeholder with a value; write {{ and }} for braces"
                .to_owned();
        }
        error.to_string()
    }
}

/// Checks given parameters against the declared ones: unknown names and bad values.
///
/// Missing ones are not its concern: they may still flow down an edge.
///
/// # Errors
/// All that is wrong, by name.
pub fn check_given(
    declared: &BTreeMap<String, ParamSchema>,
    given: &JsonMap,
) -> Result<JsonMap, Vec<ParamError>> {
    let mut stored = JsonMap::new();
    let mut errors = Vec::new();
    for (name, value) in given {
        let checked = match declared.get(name) {
            Some(schema) => schema.check(value),
            None => Err(unknown(declared, name)),
        };
        let checked = checked.and_then(|value| check_depth(&value).map(|()| value));
        match checked {
            Ok(value) => drop(stored.insert(name.clone(), value)),
            Err(problem) => errors.push(ParamError { name: name.clone(), problem }),
        }
    }
    if errors.is_empty() { Ok(stored) } else { Err(errors) }
}

fn unknown(declared: &BTreeMap<String, ParamSchema>, name: &str) -> String {
    if declared.is_empty() {
        return "the task declares no runtime parameters".to_owned();
    }
    let names: Vec<&str> = declared.keys().map(String::as_str).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("is not declared by the task; did you mean {near}?"),
        None => format!("is not declared by the task; declared are {}", names.join(", ")),
    }
}

/// The names of required parameters that have no value.
#[must_use]
pub fn missing(declared: &BTreeMap<String, ParamSchema>, params: &JsonMap) -> Vec<String> {
    let without = |(name, schema): &(&String, &ParamSchema)| {
        schema.required && !params.contains_key(name.as_str())
    };
    declared.iter().filter(without).map(|(name, _)| name.clone()).collect()
}

/// Gives every declared parameter that has a default and no value its default.
///
/// Placeholders in it are filled in by `value`; `{params.NAME}` is taken from the parameters
/// themselves, defaults included, in whatever order they depend on each other.
///
/// # Errors
/// Every default whose placeholders have no value, or that is wrong once they are filled in.
pub fn fill_defaults(
    declared: &BTreeMap<String, ParamSchema>,
    params: &JsonMap,
    value: &dyn Fn(&str) -> Option<String>,
) -> Result<JsonMap, Vec<ParamError>> {
    let mut params = params.clone();
    // All defaults together: what a task is given must fit into one variable.
    let whole = Budget::new();
    let mut open: Vec<(&String, &ParamSchema, &Value)> = declared
        .iter()
        .filter(|(name, _)| !params.contains_key(name.as_str()))
        .filter_map(|(name, schema)| Some((name, schema, schema.default.as_ref()?)))
        .collect();
    loop {
        let before = open.len();
        let mut waiting = Vec::new();
        let mut errors = Vec::new();
        for (name, schema, default) in open {
            let known = |placeholder: &str| {
                let own = placeholder.strip_prefix("params.").and_then(|name| params.get(name));
                own.map(placeholder_text).or_else(|| value(placeholder))
            };
            let filled = fill_value(default, &known, &Budget::new())
                .map_err(|error| schema.unfillable(&error));
            match filled.and_then(|filled| schema.check(&filled)) {
                Ok(checked) => {
                    if whole.take(checked.to_string().len()).is_err() {
                        let problem = format!(
                            "with its default all parameters are longer than {} bytes",
                            limits::FILLED_BYTES_MAX
                        );
                        return Err(vec![ParamError { name: name.clone(), problem }]);
                    }
                    params.insert(name.clone(), checked);
                }
                Err(problem) => {
                    let problem = format!("its default is of no use: {problem}");
                    errors.push(ParamError { name: name.clone(), problem });
                    waiting.push((name, schema, default));
                }
            }
        }
        // A round that filled nothing in cannot help the next one.
        match waiting.len() {
            0 => return Ok(params),
            left if left == before => return Err(errors),
            _ => open = waiting,
        }
    }
}

/// A value that cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// A text in it is no template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A placeholder has no value.
    #[error(transparent)]
    Unfilled(#[from] Unfilled),
}

/// Fills in the placeholders of every text in a value, however deep; keys stay as they are.
///
/// # Errors
/// A text that is no template, the first placeholder without a value, or that the budget is spent.
pub fn fill_value(
    template: &Value,
    value: &dyn Fn(&str) -> Option<String>,
    budget: &Budget,
) -> Result<Value, FillError> {
    Ok(match template {
        Value::String(text) => Value::String(Template::parse(text)?.fill_within(value, budget)?),
        Value::Array(items) => Value::Array(
            items.iter().map(|item| fill_value(item, value, budget)).collect::<Result<_, _>>()?,
        ),
        Value::Object(members) => {
            let mut filled = JsonMap::new();
            for (key, member) in members {
                filled.insert(key.clone(), fill_value(member, value, budget)?);
            }
            Value::Object(filled)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    })
}

#[cfg(test)]
mod tests;
