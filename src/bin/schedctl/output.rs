//! Where answers go: data to stdout, everything else to stderr.

use std::io::{IsTerminal, Write};

use jiff::tz::TimeZone;
use sched::model::time::Timestamp;
use serde_json::value::RawValue;

use crate::cli::{Cli, Color, Format};
use crate::exit::{Exit, Failure};
use crate::json_text;

/// How and where to write, and the time from which "ago" counts.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// The form.
    pub(crate) format: Format,
    /// Whether tables are coloured.
    pub(crate) color: bool,
    /// Columns of the terminal; `None`: there is none, nothing is cut.
    pub(crate) width: Option<u16>,
    /// The time now.
    pub(crate) now: Timestamp,
    /// The zone of the times in tables.
    pub(crate) zone: TimeZone,
}

impl Output {
    /// As the command line and the surroundings say.
    pub(crate) fn new(cli: &Cli, now: Timestamp) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let color = match cli.color {
            Color::Auto => terminal && !wants_none,
            Color::Always => true,
            Color::Never => false,
        };
        let width = if terminal { comfy_table::Table::new().width() } else { None };
        let format = cli.output;
        Self { format, color, width, now, zone: TimeZone::system() }
    }

    /// Whether the answer is for a program.
    pub(crate) fn is_json(&self) -> bool {
        match self.format {
            Format::Json | Format::Jsonl => true,
            Format::Table | Format::Wide => false,
        }
    }

    /// Whether there is room for more columns.
    pub(crate) fn is_wide(&self) -> bool {
        self.format == Format::Wide
    }

    /// One line of data, or several.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", text.trim_end_matches('\n')).map_err(Failure::Output)
    }

    /// Bytes of data as they are, at once.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::Output)
    }

    /// One JSON value, as the daemon gave it.
    pub(crate) fn json(&self, body: &[u8]) -> Result<(), Failure> {
        let text = String::from_utf8_lossy(body);
        match self.format {
            Format::Jsonl => self.line(&json_text::compact(&text)),
            Format::Json | Format::Table | Format::Wide => self.line(&json_text::indent(&text)),
        }
    }

    /// A whole list of JSON values, as the daemon gave them.
    pub(crate) fn json_list(&self, rows: &[&RawValue]) -> Result<(), Failure> {
        let mut list = JsonList::new(self);
        for row in rows {
            list.push(row.get())?;
        }
        list.end()
    }

    /// A word to the person, on stderr.
    pub(crate) fn note(&self, text: &str) {
        note(text);
    }
}

/// A word to the person, on stderr. Where that is gone there is nobody to tell.
pub(crate) fn note(text: &str) {
    let _nobody_there = writeln!(std::io::stderr().lock(), "{text}");
}

/// A JSON list that is written while it still comes.
pub(crate) struct JsonList<'o> {
    output: &'o Output,
    count: usize,
}

impl<'o> JsonList<'o> {
    /// An empty list; nothing is written yet.
    pub(crate) fn new(output: &'o Output) -> Self {
        Self { output, count: 0 }
    }

    /// Writes one value.
    pub(crate) fn push(&mut self, json: &str) -> Result<(), Failure> {
        self.count += 1;
        if self.output.format == Format::Jsonl {
            return self.output.line(&json_text::compact(json));
        }
        let before = if self.count == 1 { "[" } else { "," };
        self.output.bytes(before.as_bytes())?;
        self.output.bytes(b"\n")?;
        self.output.bytes(json_text::indent(json).as_bytes())
    }

    /// Ends the list; an empty one is `[]`.
    pub(crate) fn end(self) -> Result<(), Failure> {
        if self.output.format == Format::Jsonl {
            return Ok(());
        }
        self.output.bytes(if self.count == 0 { b"[]\n" } else { b"\n]\n" })
    }
}

/// Asks before something that cannot be undone; `yes`, and a stdin that is no terminal, agree.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    let mut err = std::io::stderr().lock();
    write!(err, "{question} [y/N] ").and_then(|()| err.flush()).map_err(Failure::Output)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|source| {
        Failure::said(Exit::Failed, format!("cannot read the answer: {source}"))
    })?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::said(Exit::Failed, "nothing was done")),
    }
}
