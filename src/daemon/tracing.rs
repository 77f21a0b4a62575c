//! Sets up the daemon's own log on stderr: the only file that names tracing-subscriber.
//!
//! On a terminal and in a plain file each line has a time; under journald, which has its own
//! times, it has none.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use jiff::tz::TimeZone;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use super::clock::Clock;
use super::print::Audience;

/// Whose text is the filter, in order of preference.
const FILTER_VARIABLES: [&str; 2] = ["SCHEDD_LOG", "RUST_LOG"];

/// What is logged if nobody says otherwise.
const FILTER_DEFAULT: &str = "info,sled=warn";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum TracingError {
    /// Somebody set one up before.
    #[error("cannot set up the log")]
    Install(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Sets up the log of this process. `SCHEDD_LOG`, then `RUST_LOG`, say what is in it
/// (`debug`, `info,sched::scheduling=trace`); a filter that cannot be read is reported in the
/// log and the default is used.
///
/// Tells who is going to read it.
///
/// # Errors
/// [`TracingError::Install`] if it was set up before.
pub fn init() -> Result<Audience, TracingError> {
    let (filter, complaint) = filter(|name| std::env::var(name).ok());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Escaping)
        // No colours: every escape sequence in the log is then somebody else's, and is escaped.
        .with_ansi(false);
    let is_terminal = io::stderr().is_terminal();
    let installed = if is_terminal {
        log.compact().with_target(false).with_timer(WallClock(Clock::new())).try_init()
    } else if stderr_is_journal() {
        log.compact().without_time().try_init()
    } else {
        log.compact().try_init()
    };
    installed.map_err(TracingError::Install)?;
    if let Some(complaint) = complaint {
        ::tracing::warn!("{complaint}");
    }
    Ok(if is_terminal { Audience::Person } else { Audience::Program })
}

/// The time of day in the machine's zone.
#[derive(Debug)]
struct WallClock(Clock);

impl FormatTime for WallClock {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = self.0.now();
        let face = now.to_jiff().map(|at| at.to_zoned_datetime(TimeZone::system()));
        match face {
            Some(face) => write!(writer, "{}", face.strftime("%H:%M:%S")),
            None => write!(writer, "{now}"),
        }
    }
}

fn filter(variable: impl Fn(&str) -> Option<String>) -> (EnvFilter, Option<String>) {
    let given = FILTER_VARIABLES
        .into_iter()
        .filter_map(|name| Some((name, variable(name)?)))
        .find(|(_, text)| !text.is_empty());
    let Some((name, text)) = given else { return (EnvFilter::new(FILTER_DEFAULT), None) };
    match EnvFilter::try_new(&text) {
        Ok(filter) => (filter, None),
        Err(error) => {
            let complaint = format!("{name}={text:?} is no log filter ({error}): {FILTER_DEFAULT}");
            (EnvFilter::new(FILTER_DEFAULT), Some(complaint))
        }
    }
}

/// Whether stderr is the very stream that systemd connected to the journal, and not a file that
/// a shell under it redirected to.
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    nix::sys::stat::fstat(io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// stderr, with control characters written as escapes: file names, task ids and messages come
/// from outside, and one log event must stay one line that cannot speak to a terminal.
#[derive(Debug, Clone, Copy)]
struct Escaping;

impl MakeWriter<'_> for Escaping {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Write for Escaping {
    /// Called once per event, with the whole line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(escaped(line).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

fn escaped(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let body = text.strip_suffix('\n').unwrap_or(&text);
    let mut out = String::with_capacity(text.len());
    for c in body.chars() {
        if is_dangerous(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    out
}

/// Control characters, and the marks that turn the reading direction and so hide what is read.
fn is_dangerous(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_stays_one_line_without_control_characters() {
        assert_eq!(escaped(b"a\nb\x1b[31m\x07\n"), "a\\nb\\u{1b}[31m\\u{7}\n");
        assert_eq!(escaped("h\u{e9} \u{85}\u{202e}\n".as_bytes()), "h\u{e9} \\u{85}\\u{202e}\n");
        assert_eq!(escaped(b"no end"), "no end\n");
    }

    #[test]
    fn a_filter_of_our_own_wins_and_a_bad_one_is_reported() {
        let from = |pairs: &'static [(&str, &str)]| {
            let (filter, complaint) = filter(|name| {
                pairs.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_owned())
            });
            (filter.to_string(), complaint)
        };
        assert_eq!(from(&[("RUST_LOG", "warn"), ("SCHEDD_LOG", "debug")]).0, "debug");
        assert_eq!(from(&[("RUST_LOG", "warn"), ("SCHEDD_LOG", "")]).0, "warn");
        let (used, complaint) = from(&[("RUST_LOG", "a=loud")]);
        assert!(used.contains("info"), "{used}");
        assert!(complaint.unwrap().contains("RUST_LOG=\"a=loud\""));
    }
}
