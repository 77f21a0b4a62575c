//! Typed reading of keys, with a place and a path for everything that is wrong.
//!
//! Every method says what it found and what it expects, records that in [`Findings`] and gives
//! `None`; the reader goes on, so that all faults of a file are reported together.
//!
//! It is longer than 400 lines because every kind of value is read here, so that all findings are
//! worded alike.

use std::time::Duration;

use serde_json::Value;

use super::{Entry, Fault, Kind, Mark, Node, Scalar};
use crate::limits;
use crate::model::event::SpecError;
use crate::model::spec::JsonMap;
use crate::model::suggest::nearest;

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line and column.
    pub at: Mark,
    /// Path of keys, such as `retry.maxAttempts` or `triggers[0].cron`.
    pub path: String,
}

/// Appends a key to a path.
pub fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Appends a list position to a path.
pub fn push_index(path: &mut String, index: usize) {
    path.push_str(&format!("[{index}]"));
}

/// What is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    file: String,
    /// Errors beyond [`limits::SPEC_FAULTS_MAX`], which are only counted.
    untold: usize,
    /// Why it is refused.
    pub errors: Vec<SpecError>,
    /// What deserves a word.
    pub warnings: Vec<SpecError>,
}

impl Findings {
    /// Nothing found yet.
    #[must_use]
    pub fn new(file: &str) -> Self {
        Self { file: file.to_owned(), untold: 0, errors: Vec::new(), warnings: Vec::new() }
    }

    /// Adds an error.
    pub fn error(&mut self, place: &Place, message: impl Into<String>) {
        if self.is_full() {
            self.untold += 1;
            return;
        }
        let error = self.entry(place, message.into());
        self.errors.push(error);
    }

    /// Whether further errors are only counted: no need to look for the right words.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.errors.len() >= limits::SPEC_FAULTS_MAX
    }

    /// All errors so far, the untold ones included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.errors.len() + self.untold
    }

    /// The errors in the order of the file, with a last word on those that are not told.
    #[must_use]
    pub fn into_errors(self) -> (Vec<SpecError>, Vec<SpecError>) {
        let mut errors = self.errors;
        errors.sort();
        errors.dedup();
        if self.untold > 0 {
            let message = format!("has {} more faults; mend these first", self.untold);
            let (file, path) = (self.file, String::new());
            errors.push(SpecError { file, line: 0, column: 0, path, message });
        }
        (errors, self.warnings)
    }

    /// Adds a warning.
    pub fn warning(&mut self, place: &Place, message: impl Into<String>) {
        if self.warnings.len() < limits::SPEC_FAULTS_MAX {
            let warning = self.entry(place, message.into());
            self.warnings.push(warning);
        }
    }

    /// Adds a fault of the file as YAML.
    pub fn fault(&mut self, fault: Fault) {
        self.error(&Place { at: fault.at, path: fault.path }, fault.message);
    }

    fn entry(&self, place: &Place, message: String) -> SpecError {
        SpecError {
            file: self.file.clone(),
            line: place.at.line,
            column: place.at.column,
            path: place.path.clone(),
            message,
        }
    }
}

/// The nearest of the known words, if any is near, as `; did you mean …?`.
///
/// More generous than `model::suggest::nearest`: a key that nobody reads must not go by unnoticed,
/// and `retires` is meant to be `retry`.
#[must_use]
#[expect(single_use_lifetimes, reason = "an anonymous lifetime is not allowed in this place")]
pub fn suggestion<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    // The measure is quadratic; nobody mistypes a word of this length by a letter.
    const CHARS_MAX: usize = 200;
    // More than the zones of the world.
    const KNOWN_MAX: usize = 700;
    if word.chars().nth(CHARS_MAX).is_some() {
        return String::new();
    }
    let lower = word.to_lowercase();
    let known: Vec<&str> = known.into_iter().take(KNOWN_MAX).collect();
    // `files` is one of the words of `openFiles` and of no other, whatever else looks alike.
    let mut of_it = known.iter().filter(|k| words(k).any(|part| part.eq_ignore_ascii_case(word)));
    let only = of_it.next().filter(|_| of_it.next().is_none());
    if let Some(only) = only {
        return format!("; did you mean {only}?");
    }
    known
        .iter()
        .map(|k| (strsim::jaro_winkler(&lower, &k.to_lowercase()), *k))
        .filter(|(score, _)| *score >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, near)| near)
        .or_else(|| nearest(word, known.iter().copied()))
        .map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// The words of a key in camel case.
fn words(key: &str) -> impl Iterator<Item = &str> {
    let starts = key.char_indices().filter(|(_, c)| c.is_ascii_uppercase()).map(|(at, _)| at);
    let ends = starts.clone().chain([key.len()]);
    [0].into_iter().chain(starts).zip(ends).filter_map(|(from, to)| key.get(from..to))
}

/// One value with its place.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    /// The value.
    pub node: &'a Node,
    /// Its place.
    pub place: Place,
}

impl<'a> Item<'a> {
    /// A whole document.
    #[must_use]
    pub fn document(node: &'a Node) -> Self {
        Self { node, place: Place { at: node.at, path: String::new() } }
    }

    /// What stands there, in words for a message.
    #[must_use]
    pub fn found(&self) -> String {
        match &self.node.kind {
            Kind::Scalar(s) if s.value.is_null() => "found nothing".to_owned(),
            Kind::Scalar(s) if s.plain => format!("found {}", shorten(&s.text)),
            Kind::Scalar(s) => format!("found the text {:?}", shorten(&s.text)),
            Kind::List(items) if items.is_empty() => "found an empty list".to_owned(),
            Kind::List(_) => "found a list".to_owned(),
            Kind::Map(entries) => match entries.as_slice() {
                [only] if only.value.is_null() => format!(
                    "found a map; a value that starts with a brace needs quotes: \"{{{}}}\"",
                    only.key
                ),
                _ => "found a map".to_owned(),
            },
        }
    }

    /// Records that something else is expected.
    pub fn refuse<T>(&self, findings: &mut Findings, expected: &str) -> Option<T> {
        findings.error(&self.place, format!("{}; expected {expected}", self.found()));
        None
    }

    fn scalar(&self) -> Option<&'a Scalar> {
        match &self.node.kind {
            Kind::Scalar(s) if !s.value.is_null() => Some(s),
            Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// Any scalar but null, as written.
    pub fn text(&self, findings: &mut Findings) -> Option<&'a str> {
        match self.scalar() {
            Some(s) => Some(&s.text),
            None if self.node.is_null() => self.refuse(findings, "a text (\"\" for an empty one)"),
            None => self.refuse(findings, "a text"),
        }
    }

    /// A text of one line, not empty, without control characters.
    pub fn word(&self, findings: &mut Findings) -> Option<&'a str> {
        let text = self.text(findings)?;
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return self.refuse(findings, "a text of one line that is not empty");
        }
        Some(text)
    }

    /// `true` or `false`.
    pub fn boolean(&self, findings: &mut Findings) -> Option<bool> {
        match self.scalar().map(|s| &s.value) {
            Some(Value::Bool(value)) => Some(*value),
            _ => self.refuse(findings, "true or false"),
        }
    }

    /// A whole number within bounds, both included.
    pub fn integer(&self, least: i64, greatest: i64, findings: &mut Findings) -> Option<i64> {
        let value = self.scalar().and_then(|s| s.value.as_i64());
        match value {
            Some(value) if (least..=greatest).contains(&value) => Some(value),
            _ if greatest == i64::MAX => {
                self.refuse(findings, &format!("a whole number, at least {least}"))
            }
            _ => self.refuse(findings, &format!("a whole number from {least} to {greatest}")),
        }
    }

    /// A whole number from `least` to the most that 32 bits hold.
    pub fn count(&self, least: u32, findings: &mut Findings) -> Option<u32> {
        let value = self.integer(i64::from(least), i64::from(u32::MAX), findings)?;
        u32::try_from(value).ok()
    }

    /// A number within bounds, both included.
    pub fn number(&self, least: f64, greatest: f64, findings: &mut Findings) -> Option<f64> {
        match self.scalar().and_then(|s| s.value.as_f64()) {
            Some(value) if (least..=greatest).contains(&value) => Some(value),
            _ => self.refuse(findings, &format!("a number from {least} to {greatest}")),
        }
    }

    /// One of some words.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)], findings: &mut Findings) -> Option<T> {
        let text = self.scalar().map(|s| s.text.as_str());
        if let Some((_, value)) = words.iter().find(|(word, _)| Some(*word) == text) {
            return Some(*value);
        }
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let near = suggestion(text.unwrap_or_default(), all.iter().copied());
        self.refuse(findings, &format!("{}{near}", all.join(", ")))
    }

    /// Milliseconds or a text such as `1h30m`, at least `least`; a day is 24 hours.
    pub fn duration(&self, least: Duration, findings: &mut Findings) -> Option<Duration> {
        let too_little = format!("at least {} ms", least.as_millis());
        let too_much = format!("at most {} days", limits::DURATION_MAX.as_secs() / 86_400);
        match self.scalar().map_or(Err(NoDuration::Form), milliseconds).map(Duration::from_millis) {
            Ok(value) if value < least => self.refuse(findings, &too_little),
            Ok(value) if value > limits::DURATION_MAX => self.refuse(findings, &too_much),
            Ok(value) => Some(value),
            Err(NoDuration::Negative) => self.refuse(findings, &too_little),
            Err(NoDuration::TooLarge) => self.refuse(findings, &too_much),
            Err(NoDuration::Fraction) => self.refuse(findings, "whole milliseconds"),
            Err(NoDuration::Form) => {
                self.refuse(findings, "milliseconds or a text such as \"30s\" or \"1h30m\"")
            }
        }
    }

    /// Bytes: a plain number or one with K, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (of 1024).
    pub fn size(&self, findings: &mut Findings) -> Option<u64> {
        match self.scalar().and_then(|s| size(&s.text)) {
            Some(Some(bytes)) if bytes > 0 => Some(bytes),
            Some(None) => self.refuse(findings, &format!("at most {} bytes", u64::MAX)),
            Some(Some(_)) | None => self.refuse(findings, "bytes, such as 1000000, 2G or 512Mi"),
        }
    }

    /// An octal mask up to 777: `"022"`, `022` or `0o22`; never a decimal number.
    pub fn octal(&self, findings: &mut Findings) -> Option<u32> {
        let digits = self.scalar().and_then(|s| {
            let text = s.text.as_str();
            let octal = !s.plain || text.starts_with('0');
            octal.then(|| text.strip_prefix("0o").unwrap_or(text))
        });
        digits
            .filter(|d| !d.is_empty() && d.len() <= 4 && d.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|d| u32::from_str_radix(d, 8).ok())
            .filter(|mask| *mask <= 0o777)
            .or_else(|| self.refuse(findings, "octal digits in quotes, such as \"022\""))
    }

    /// The parts of a list.
    pub fn list(&self, findings: &mut Findings) -> Option<Vec<Self>> {
        let Kind::List(items) = &self.node.kind else {
            return self.refuse(findings, "a list");
        };
        let item = |(index, node): (usize, &'a Node)| {
            let mut path = self.place.path.clone();
            push_index(&mut path, index);
            Self { node, place: Place { at: node.at, path } }
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// The keys of a map whose keys are known beforehand.
    pub fn map(&self, findings: &mut Findings) -> Option<Fields<'a>> {
        let Kind::Map(entries) = &self.node.kind else {
            return self.refuse(findings, "a map");
        };
        Some(Fields { place: self.place.clone(), entries, known: Vec::new() })
    }

    /// The keys of a map whose keys are free, each with the place of the key.
    pub fn pairs(&self, findings: &mut Findings) -> Option<Vec<(&'a str, Place, Self)>> {
        let Kind::Map(entries) = &self.node.kind else {
            return self.refuse(findings, "a map");
        };
        Some(entries.iter().map(|e| pair(&self.place, e)).collect())
    }

    /// Any JSON map.
    pub fn json_map(&self, findings: &mut Findings) -> Option<JsonMap> {
        if let Value::Object(map) = self.node.to_json() {
            return Some(map);
        }
        self.refuse(findings, "a map")
    }
}

fn pair<'a>(parent: &Place, entry: &'a Entry) -> (&'a str, Place, Item<'a>) {
    let mut path = parent.path.clone();
    push_key(&mut path, &entry.key);
    let at = if entry.value.is_null() { entry.at } else { entry.value.at };
    let item = Item { node: &entry.value, place: Place { at, path: path.clone() } };
    (&entry.key, Place { at: entry.at, path }, item)
}

/// The keys of one map; each key that is asked for counts as known.
#[derive(Debug)]
pub struct Fields<'a> {
    /// The map's place.
    pub place: Place,
    entries: &'a [Entry],
    known: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// The value of a key; `None` if it is not there or null.
    pub fn take(&mut self, key: &'static str) -> Option<Item<'a>> {
        self.known.push(key);
        let entry = self.entries.iter().find(|e| e.key == key)?;
        (!entry.value.is_null()).then(|| pair(&self.place, entry).2)
    }

    /// The value of a key that must be there.
    pub fn need(&mut self, key: &'static str, findings: &mut Findings) -> Option<Item<'a>> {
        let item = self.take(key);
        if item.is_none() {
            let mut place = self.place.clone();
            push_key(&mut place.path, key);
            if let Some(entry) = self.entries.iter().find(|e| e.key == key) {
                place.at = entry.at;
            }
            findings.error(&place, "is missing; it is required");
        }
        item
    }

    /// Refuses a key whose meaning comes with a later version.
    pub fn unsupported(&mut self, key: &'static str, findings: &mut Findings) {
        if let Some(item) = self.take(key) {
            findings.error(&item.place, format!("{key} is not supported by this version yet"));
        }
    }

    /// Whether a key is there and not null, without making it known.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|e| e.key == key && !e.value.is_null())
    }

    /// Whether a key is there, not null and no map, without making it known.
    #[must_use]
    pub fn is_no_map(&self, key: &str) -> bool {
        let is_one = |e: &&Entry| e.value.is_null() || matches!(e.value.kind, Kind::Map(_));
        self.entries.iter().any(|e| e.key == key && !is_one(&e))
    }

    /// Refuses every key that nobody asked for; says whether there was one.
    pub fn finish(self, findings: &mut Findings) -> bool {
        let mut unknown = false;
        for entry in self.entries.iter().filter(|e| !self.known.contains(&e.key.as_str())) {
            unknown = true;
            if findings.is_full() {
                findings.error(&self.place, "");
                continue;
            }
            let (_, place, _) = pair(&self.place, entry);
            let near = suggestion(&entry.key, self.known.iter().copied());
            let known = if near.is_empty() {
                format!("; known are {}", self.known.join(", "))
            } else {
                near
            };
            findings.error(&place, format!("unknown key {:?}{known}", shorten(&entry.key)));
        }
        unknown
    }
}

/// Why a value is no duration.
enum NoDuration {
    /// It is not written as one.
    Form,
    /// It goes backward.
    Negative,
    /// Its numbers are too large.
    TooLarge,
    /// It is no whole number of milliseconds.
    Fraction,
}

fn milliseconds(scalar: &Scalar) -> Result<u64, NoDuration> {
    if let Some(ms) = scalar.value.as_u64() {
        return Ok(ms);
    }
    if scalar.value.as_i64().is_some() {
        return Err(NoDuration::Negative);
    }
    let text = scalar.text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // `022` is no way to write a number.
        if scalar.plain && text.starts_with('0') {
            return Err(NoDuration::Form);
        }
        return text.parse().map_err(|_overflow| NoDuration::TooLarge);
    }
    let Ok(span) = text.parse::<jiff::Span>() else {
        let is_form = with_small_numbers(text).parse::<jiff::Span>().is_ok();
        return Err(if is_form { NoDuration::TooLarge } else { NoDuration::Form });
    };
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    let duration = span.to_duration(days).map_err(|_calendar_unit| NoDuration::Form)?;
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err(NoDuration::Fraction);
    }
    u64::try_from(duration.as_millis()).map_err(|_sign| NoDuration::Negative)
}

/// The same text with a 1 for each run of digits: what is well written is still so then.
fn with_small_numbers(text: &str) -> String {
    let mut previous = ' ';
    let mut small = String::new();
    for c in text.chars() {
        match (c.is_ascii_digit(), previous.is_ascii_digit()) {
            (true, true) => {}
            (true, false) => small.push('1'),
            (false, _) => small.push(c),
        }
        previous = c;
    }
    small
}

/// Bytes; `None`: it is not written as such, `Some(None)`: more than 64 bits hold.
fn size(text: &str) -> Option<Option<u64>> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(split)?;
    let factor: u64 = match unit.strip_suffix('B').unwrap_or(unit) {
        "" => 1,
        "K" | "k" => 1000,
        "M" => 1000_u64.pow(2),
        "G" => 1000_u64.pow(3),
        "T" => 1000_u64.pow(4),
        "Ki" => 1024,
        "Mi" => 1024_u64.pow(2),
        "Gi" => 1024_u64.pow(3),
        "Ti" => 1024_u64.pow(4),
        _ => return None,
    };
    (!digits.is_empty()).then(|| digits.parse::<u64>().ok()?.checked_mul(factor))
}

/// Why a word is no name for an environment variable of a task; `None`: it is one.
#[must_use]
pub fn variable_problem(name: &str) -> Option<String> {
    if name.starts_with("SCHED_") {
        return Some(format!("{} is set by the scheduler; choose another name", shorten(name)));
    }
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let good = first && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (!good).then(|| {
        format!("{:?} is no name for a variable; expected letters, digits and _", shorten(name))
    })
}

/// At most sixty characters of a text, for messages.
#[must_use]
pub fn shorten(text: &str) -> String {
    const MAX: usize = 60;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(MAX).collect::<String>())
}
