//! Tables and pages for people. Everything here makes text of values; nothing here writes.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, ContentArrangement, Table};
use sched::model::instance::{InstanceState, Pause};
use sched::model::time::Timestamp;

use crate::output::Output;
use crate::time_text;

pub(crate) mod backfill;
pub(crate) mod definition;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod instance;
pub(crate) mod simulation;
pub(crate) mod status;
pub(crate) mod task;
#[cfg(test)]
pub(crate) mod tests;

/// How a field is to be felt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As any other.
    Plain,
    /// Well.
    Good,
    /// Badly.
    Bad,
    /// Under way.
    Busy,
    /// Held or waiting.
    Held,
}

/// One field of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    text: String,
    tone: Tone,
}

impl Field {
    /// A field with a tone.
    pub(crate) fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        let text = clean(text.as_ref());
        Self { text: if text.is_empty() { "-".to_owned() } else { text }, tone }
    }
}

impl<T: AsRef<str>> From<T> for Field {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// A table: bold heads, rows, no lines.
pub(crate) fn table(heads: &[&str], rows: Vec<Vec<Field>>, output: &Output) -> String {
    let mut table = Table::new();
    table.force_no_tty();
    if output.color {
        table.enforce_styling();
    }
    table.load_style(comfy_table::presets::NOTHING);
    match output.width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    table.set_header(heads.iter().map(|head| Cell::new(head).add_attribute(Attribute::Bold)));
    for row in rows {
        table.add_row(row.into_iter().map(cell));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn cell(field: Field) -> Cell {
    let cell = Cell::new(field.text);
    match color_of(field.tone) {
        Some(color) => cell.fg(color),
        None => cell,
    }
}

const fn color_of(tone: Tone) -> Option<comfy_table::Color> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some(comfy_table::Color::Green),
        Tone::Bad => Some(comfy_table::Color::Red),
        Tone::Busy => Some(comfy_table::Color::Cyan),
        Tone::Held => Some(comfy_table::Color::Yellow),
    }
}

/// Names and values below each other, the values in one column.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        let _infallible = writeln!(text, "{name:>width$}: {}", clean(value));
    }
    text
}

/// Text that a terminal takes as text: tasks and files may hold any character.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// So many of something.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A state in its colour.
pub(crate) fn state(state: InstanceState) -> Field {
    Field::toned(state.as_str(), tone_of(state))
}

pub(crate) const fn tone_of(state: InstanceState) -> Tone {
    match state {
        InstanceState::Pending | InstanceState::Ready => Tone::Plain,
        InstanceState::Running => Tone::Busy,
        InstanceState::Blocked | InstanceState::Cancelled => Tone::Held,
        InstanceState::Succeeded => Tone::Good,
        InstanceState::Failed | InstanceState::Timeout => Tone::Bad,
    }
}

/// Who holds something, since when, until when, why.
pub(crate) fn pause(pause: &Pause, now: Timestamp) -> String {
    let mut text = format!("paused {} by uid {}", time_text::relative(now, pause.since), pause.uid);
    if let Some(until) = pause.until {
        let _infallible = write!(text, ", resumes {}", time_text::relative(now, until));
    }
    if let Some(reason) = &pause.reason {
        let _infallible = write!(text, ": {reason}");
    }
    text
}

/// How far away an optional point is.
pub(crate) fn relative(now: Timestamp, at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| time_text::relative(now, at))
}

/// Wall-clock time with the distance behind it.
pub(crate) fn dated(output: &Output, at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| {
        let local = time_text::local(at, &output.zone);
        format!("{local} ({})", time_text::relative(output.now, at))
    })
}
