//! The one door to YAML: bytes in, trees of values with line and column out.
//!
//! Two readers share the work. A linear pre-pass over saphyr's events bounds size, depth and count,
//! refuses what has no place in a definition (duplicate keys, anchors, aliases, merge keys, tags,
//! control characters) and knows where every value stands. serde_yaml, the customer's reader, then
//! says what each value is; where the two differ the file is refused, so that nobody has to guess
//! which of them was right.
//!
//! A plain scalar is a number, `true` or `false` only if it is written exactly as JSON writes that
//! value; everything else stays the text that was written: `1.10`, `2026-01-01`, `022`, `1e3`,
//! `yes`, `True`. An empty value, `~` and `null` are null.
//!
//! It does not know what a key means; [`fields`] reads keys for those who do.
//!
//! It is longer than 400 lines because two readings of one text, which must agree, stand side by
//! side.

pub mod fields;
mod hints;
mod meaning;
mod punctuation;

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde::Deserialize;
use serde_json::Value;

use self::meaning::Meaning;
use crate::limits;

/// Faults after which a file is not looked at any further.
const FAULTS_MAX: usize = 100;

/// A place in a file, both counted from 1; 0 means the file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// One value and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its first character.
    pub at: Mark,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Text, number, bool or null.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map in the order written; keys are unique.
    Map(Vec<Entry>),
}

/// A value without parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// The text as written, without quotes and with escapes resolved.
    pub text: String,
    /// Whether it stands without quotes.
    pub plain: bool,
    /// What it means: null, bool, number or string.
    pub value: Value,
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key as written.
    pub key: String,
    /// Where the key starts.
    pub at: Mark,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Whether this is null: nothing, `~` or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(s) if s.value.is_null())
    }

    /// The same as plain JSON, places forgotten.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(s) => s.value.clone(),
            Kind::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Kind::Map(entries) => {
                Value::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect())
            }
        }
    }
}

/// One thing wrong with a file as YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub at: Mark,
    /// The path of keys that leads there; empty: the document.
    pub path: String,
    /// What was found, what is expected.
    pub message: String,
}

impl Fault {
    fn at(at: Mark, message: impl Into<String>) -> Self {
        Self { at, path: String::new(), message: message.into() }
    }
}

/// Reads all documents of a file; empty ones are left out, so an empty file gives none.
///
/// Time and memory grow with the size of the file, which is bounded.
///
/// # Errors
/// Everything that is wrong with the file as YAML, at least one fault.
pub fn read(bytes: &[u8]) -> Result<Vec<Node>, Vec<Fault>> {
    let (documents, faults) = read_up_to_faults(bytes);
    if faults.is_empty() { Ok(documents) } else { Err(faults) }
}

/// Reads the documents before the first one with a fault, and all faults of the file as YAML.
///
/// So that a person with two mistakes in two documents hears of both. Bounded as [`read`] is.
#[must_use]
pub fn read_up_to_faults(bytes: &[u8]) -> (Vec<Node>, Vec<Fault>) {
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(fault) => return (Vec::new(), vec![fault]),
    };
    let built = Builder::new(text).run();
    let good = text.get(..built.good_bytes).unwrap_or_default();
    match mean(good, built.documents) {
        Ok(documents) => (documents, built.faults),
        Err(faults) if built.faults.is_empty() => (Vec::new(), faults),
        // The first reader's word counts where it has one.
        Err(_second) => (Vec::new(), built.faults),
    }
}

/// Gives every value of some documents the meaning that the second reader finds.
fn mean(text: &str, mut documents: Vec<Node>) -> Result<Vec<Node>, Vec<Fault>> {
    if documents.is_empty() {
        return Ok(documents);
    }
    let mut values = Vec::with_capacity(documents.len());
    for document in serde_yaml::Deserializer::from_str(text) {
        match Meaning::deserialize(document) {
            Ok(value) => values.push(value),
            Err(error) => {
                let at = place(&error).min(end_of(text));
                return Err(vec![hints::explain_second(text, at, &error.to_string())]);
            }
        }
    }
    if values.len() != documents.len() {
        let message = format!(
            "found {} documents in one reading and {} in another; separate documents by --- lines",
            documents.len(),
            values.len()
        );
        return Err(vec![Fault::at(Mark::default(), message)]);
    }
    let mut faults = Vec::new();
    for (node, value) in documents.iter_mut().zip(&values) {
        settle(node, value, &mut faults);
    }
    documents.retain(|node| !node.is_null());
    if faults.is_empty() { Ok(documents) } else { Err(faults) }
}

fn place(error: &serde_yaml::Error) -> Mark {
    error.location().map_or_else(Mark::default, |l| Mark {
        line: u32::try_from(l.line()).unwrap_or(0),
        column: u32::try_from(l.column()).unwrap_or(0),
    })
}

/// Bounds the size and gives the text without its byte order mark.
fn decode(bytes: &[u8]) -> Result<&str, Fault> {
    if bytes.len() > limits::SPEC_FILE_BYTES_MAX {
        // Whoever reads files stops at the bound, so the true size is not known here.
        let message = format!(
            "the file has more than {} bytes, which is all that is read; split it into several",
            limits::SPEC_FILE_BYTES_MAX
        );
        return Err(Fault::at(Mark::default(), message));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let message = "found UTF-16, which is not read; save the file as UTF-8";
        return Err(Fault::at(Mark { line: 1, column: 1 }, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        Fault::at(
            end_of(&String::from_utf8_lossy(good)),
            format!("found the byte 0x{byte:02x}, which is not UTF-8; save the file as UTF-8"),
        )
    })?;
    let bad = text.char_indices().find(|(_, c)| is_control(*c));
    if let Some((at, c)) = bad {
        return Err(Fault::at(
            end_of(text.get(..at).unwrap_or_default()),
            format!("found the control character U+{:04X}; remove it", u32::from(c)),
        ));
    }
    Ok(text)
}

/// What does not stand in a file as it is: control characters, and what ends a line to some readers
/// of YAML and not to others.
fn is_control(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || ends_some_lines(c)
}

/// Characters that even an escape brings into no value: JSON, the stored form, writes them as they
/// are, and that form is to be read again.
fn ends_some_lines(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}

/// The place right behind a text.
fn end_of(text: &str) -> Mark {
    // A carriage return ends a line too, and once only where a line feed follows it.
    let breaks = text.bytes().zip(text.bytes().skip(1).chain([0]));
    let line =
        1 + breaks.filter(|(c, next)| *c == b'\n' || (*c == b'\r' && *next != b'\n')).count();
    let column = text.rsplit(['\n', '\r']).next().unwrap_or_default().chars().count() + 1;
    Mark {
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
    }
}

/// Gives every scalar the meaning that the second reader found.
fn settle(node: &mut Node, value: &Meaning, faults: &mut Vec<Fault>) {
    match (&mut node.kind, value) {
        (Kind::List(items), Meaning::List(values)) if items.len() == values.len() => {
            for (item, value) in items.iter_mut().zip(values) {
                settle(item, value, faults);
            }
        }
        (Kind::Map(entries), Meaning::Map(values)) if entries.len() == values.len() => {
            for (entry, value) in entries.iter_mut().zip(values) {
                settle(&mut entry.value, value, faults);
            }
        }
        (Kind::Scalar(scalar), Meaning::Text(text)) if scalar.text == *text => {}
        (Kind::Scalar(scalar), Meaning::Null) if scalar.plain => scalar.value = Value::Null,
        (Kind::Scalar(scalar), Meaning::Bool(value)) if scalar.plain => {
            if scalar.text == value.to_string() {
                scalar.value = Value::Bool(*value);
            }
        }
        (Kind::Scalar(scalar), Meaning::Number(number)) if scalar.plain => {
            if let Some(number) = number.as_ref().filter(|n| n.to_string() == scalar.text) {
                scalar.value = Value::Number(number.clone());
            }
        }
        _ => faults.push(Fault::at(
            node.at,
            "two YAML readers understand this value differently; put it in quotes",
        )),
    }
}

/// A list or map that is still open.
struct Open {
    at: Mark,
    parts: Parts,
}

enum Parts {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, key: Option<(String, Mark)>, seen: BTreeMap<String, Mark> },
}

/// What the first reader made of a text.
struct Built {
    /// Documents before the first with a fault.
    documents: Vec<Node>,
    /// Where these end.
    good_bytes: usize,
    faults: Vec<Fault>,
}

/// Makes trees from events, without recursion.
struct Builder<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    end: Mark,
    /// Documents and characters before the document at hand.
    before: (usize, usize),
    /// The same of the first document with a fault.
    good: Option<(usize, usize)>,
    open: Vec<Open>,
    documents: Vec<Node>,
    nodes: usize,
    faults: Vec<Fault>,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            lines: text.lines().collect(),
            end: end_of(text),
            before: (0, 0),
            good: None,
            open: Vec::new(),
            documents: Vec::new(),
            nodes: 0,
            faults: Vec::new(),
        }
    }

    fn run(mut self) -> Built {
        let mut parser = Parser::new_from_str(self.text);
        while let Some(next) = parser.next_event() {
            match next {
                Ok((event, span)) => {
                    if !self.take(event, span) {
                        break;
                    }
                }
                Err(error) => {
                    let at = mark(*error.marker()).min(self.end);
                    let mut fault = hints::explain(self.text, at, error.info());
                    // A cause on another line belongs to another key, but where it is still open.
                    let is_open = self.open.iter().any(|open| open.at == fault.at);
                    if is_open || fault.at.line == at.line {
                        fault.path = self.path_to(fault.at);
                    }
                    self.add(fault);
                    break;
                }
            }
        }
        let Some((documents, characters)) = self.good else {
            let good_bytes = self.text.len();
            return Built { documents: self.documents, good_bytes, faults: self.faults };
        };
        self.documents.truncate(documents);
        let end = self.text.char_indices().nth(characters).map_or(self.text.len(), |(at, _)| at);
        Built { documents: self.documents, good_bytes: end, faults: self.faults }
    }

    fn add(&mut self, mut fault: Fault) {
        // The line behind the last one is none of the file's.
        fault.at = fault.at.min(self.end);
        self.good.get_or_insert(self.before);
        self.faults.push(fault);
    }

    /// Takes one event; false: stop, a bound is reached.
    fn take(&mut self, event: Event<'t>, span: Span) -> bool {
        let at = mark(span.start);
        match event {
            Event::DocumentStart(_) => {
                self.before = (self.documents.len(), span.start.index());
                return true;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {
                return true;
            }
            Event::Alias(_) => {
                self.fault(at, hints::NO_ALIAS);
                self.close(Node { at, kind: scalar(String::new(), true) });
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.properties(at, anchor, tag.as_deref());
                if text.contains('\0') {
                    self.fault(at, "holds a NUL character (\\0), which no program can be given");
                }
                if let Some(c) = text.chars().find(|c| ends_some_lines(*c)) {
                    let message =
                        format!("holds the control character U+{:04X}; remove it", u32::from(c));
                    self.fault(at, message);
                }
                let plain = style == ScalarStyle::Plain;
                if let Some(item) = self.item_inside(&span).filter(|_| plain) {
                    self.fault(item, hints::ITEM_INSIDE);
                }
                self.close(Node { at, kind: scalar(text.into_owned(), plain) });
            }
            Event::SequenceStart(anchor, tag) => {
                self.properties(at, anchor, tag.as_deref());
                self.open.push(Open { at, parts: Parts::List(Vec::new()) });
            }
            Event::MappingStart(anchor, tag) => {
                self.properties(at, anchor, tag.as_deref());
                let parts = Parts::Map { entries: Vec::new(), key: None, seen: BTreeMap::new() };
                self.open.push(Open { at, parts });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let kind = match open.parts {
                        Parts::List(items) => Kind::List(items),
                        Parts::Map { entries, .. } => Kind::Map(entries),
                    };
                    self.close(Node { at: open.at, kind });
                }
            }
        }
        self.within_bounds(at)
    }

    fn within_bounds(&mut self, at: Mark) -> bool {
        self.nodes += 1;
        if self.open.len() > limits::SPEC_DEPTH_MAX {
            self.fault(at, hints::too_deep());
            return false;
        }
        if self.nodes > limits::SPEC_NODES_MAX {
            let message = format!("the file has more than {} values", limits::SPEC_NODES_MAX);
            self.add(Fault::at(at, message));
            return false;
        }
        self.faults.len() < FAULTS_MAX
    }

    fn properties(&mut self, at: Mark, anchor: usize, tag: Option<&saphyr_parser::Tag>) {
        if anchor > 0 {
            self.fault(at, "found an anchor (&name); anchors are not used here, write the value");
        }
        if let Some(tag) = tag {
            let message = format!("found the tag {tag}; tags are not used here, use plain values");
            self.fault(at, message);
        }
    }

    fn fault(&mut self, at: Mark, message: impl Into<String>) {
        let path = self.path();
        self.add(Fault { at, path, message: message.into() });
    }

    /// Where a text without quotes goes on with a line that looks like a list item.
    fn item_inside(&self, span: &Span) -> Option<Mark> {
        let lines = self.lines.get(span.start.line()..span.end.line())?;
        let (above, line) = lines.iter().enumerate().find(|(_, line)| {
            let content = line.trim_start();
            content == "-" || content.starts_with("- ")
        })?;
        let number = u32::try_from(span.start.line() + above + 1).unwrap_or(u32::MAX);
        Some(Mark { line: number, column: hints::column_of_content(line) })
    }

    /// Puts a finished value where it belongs.
    fn close(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return;
        };
        let (entries, key, seen) = match &mut open.parts {
            Parts::List(items) => {
                items.push(node);
                return;
            }
            Parts::Map { entries, key, seen } => (entries, key, seen),
        };
        if let Some((name, at)) = key.take() {
            entries.push(Entry { key: name, at, value: node });
            return;
        }
        let at = node.at;
        let (name, problem) = match node.kind {
            Kind::Scalar(s) if s.plain && s.text == "<<" => {
                (s.text, Some("found a merge key (<<); it is not used here, write the keys".into()))
            }
            Kind::Scalar(s) if s.plain && s.text.is_empty() => {
                (s.text, Some("found a value without a key".to_owned()))
            }
            Kind::Scalar(s) => {
                let first = seen.insert(s.text.clone(), at);
                let twice = |m: Mark| {
                    format!(
                        "the key {:?} is written twice; first on line {}; keep one of them",
                        s.text, m.line
                    )
                };
                let problem = first.map(twice);
                (s.text, problem)
            }
            Kind::List(_) | Kind::Map(_) => {
                (String::new(), Some("found a list or map as a key; keys are words".to_owned()))
            }
        };
        *key = Some((name, at));
        if let Some(message) = problem {
            self.fault(at, message);
        }
    }

    /// Keys and positions that lead to the value being read.
    fn path(&self) -> String {
        self.path_to(Mark::default())
    }

    /// The same, as far as the list or map that starts at a place.
    fn path_to(&self, at: Mark) -> String {
        let mut path = String::new();
        for open in self.open.iter().take_while(|open| open.at != at) {
            match &open.parts {
                Parts::List(items) => fields::push_index(&mut path, items.len()),
                Parts::Map { key: Some((name, _)), .. } => fields::push_key(&mut path, name),
                Parts::Map { key: None, .. } => {}
            }
        }
        path
    }
}

fn scalar(text: String, plain: bool) -> Kind {
    let value = Value::String(text.clone());
    Kind::Scalar(Scalar { text, plain, value })
}

fn mark(marker: saphyr_parser::Marker) -> Mark {
    Mark {
        line: u32::try_from(marker.line()).unwrap_or(u32::MAX),
        column: u32::try_from(marker.col() + 1).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests;
