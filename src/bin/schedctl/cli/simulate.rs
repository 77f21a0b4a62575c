//! Options of `simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::civil::Time;

use crate::time_text::{self, When};

#[derive(Debug, Args)]
#[command(after_help = "\
The scheduler itself runs on a clock that is only a number. How long a task takes and how it ends is \
taken from its last instances; what runs and waits now is taken up if --from is within a day from \
now. Files and events do not come by themselves; no daemon is needed with --specs.

Examples:
  schedctl simulate --to 12h --deadline 06:00
  schedctl simulate --from 2026-12-01T22:00 --to 8h --percentile 95 --svg night.svg
  schedctl simulate --specs ./sched.d --assume 5m --assume order.settle.v2=2h -o json")]
pub(crate) struct SimulateArgs {
    /// From this time; else from now
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_when)]
    pub(crate) from: Option<When>,
    /// To this time, or for so long from --from; else for a day
    #[arg(long, value_name = "TIME", value_parser = time_text::parse_when)]
    pub(crate) to: Option<When>,
    /// Definitions that shall be in force instead: all files of this directory; repeatable
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) specs: Vec<PathBuf>,
    /// Executors, queues and quotas of this configuration instead of the daemon's
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which of the past lengths of a task counts: 50 is the median, 95 a bad night
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) percentile: u8,
    /// How long a task takes that has no history (60s), or a single one whatever its history says;
    /// repeatable
    #[arg(long, value_name = "[TASK=]TIME", value_parser = Assumption::parse)]
    pub(crate) assume: Vec<Assumption>,
    /// By when everything, or a single task, shall have ended: 06:00 of every day, or a time;
    /// repeatable
    #[arg(long, value_name = "[TASK=]TIME", value_parser = DeadlineArg::parse)]
    pub(crate) deadline: Vec<DeadlineArg>,
    /// A named event at a time; repeatable
    #[arg(long, value_name = "NAME=TIME", value_parser = EventArg::parse)]
    pub(crate) event: Vec<EventArg>,
    /// Rows of the timeline; 0: all. Tables show 50 if this is not given, JSON all
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Write a chart of it as well
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// How long attempts take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assumption {
    /// Of which task; `None`: of all without a history.
    pub(crate) task: Option<String>,
    /// So long.
    pub(crate) length: Duration,
}

impl Assumption {
    fn parse(text: &str) -> Result<Self, String> {
        let (task, length) = of_task(text);
        Ok(Self { task, length: time_text::parse_timeout(length)? })
    }
}

/// By when something shall have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadlineArg {
    /// Which task; `None`: every one.
    pub(crate) task: Option<String>,
    /// By when.
    pub(crate) by: By,
}

/// A time of every day, or a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// This time of every day.
    Daily(Time),
    /// This one.
    Once(When),
}

impl DeadlineArg {
    fn parse(text: &str) -> Result<Self, String> {
        let (task, by) = of_task(text);
        let is_time_of_day = by.len() <= "06:00:00".len() && by.contains(':');
        let by = match by.parse::<Time>() {
            Ok(time) if is_time_of_day => By::Daily(time),
            Ok(_) | Err(_) => match time_text::parse_when(by) {
                Ok(when) => By::Once(when),
                Err(expected) => {
                    let others = expected.trim_start_matches("expected ");
                    return Err(format!("expected 06:00, {others}"));
                }
            },
        };
        Ok(Self { task, by })
    }
}

/// A named event at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventArg {
    /// Its name.
    pub(crate) name: String,
    /// When.
    pub(crate) at: When,
}

impl EventArg {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, at)) if !name.is_empty() => {
                Ok(Self { name: name.to_owned(), at: time_text::parse_when(at)? })
            }
            Some(_) | None => Err("expected NAME=TIME".to_owned()),
        }
    }
}

/// A value that may be for a single task.
fn of_task(text: &str) -> (Option<String>, &str) {
    match text.split_once('=') {
        Some((task, value)) => (Some(task.to_owned()), value),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_time_of_day_or_a_point_for_one_task_or_all() {
        let parse = |text: &str| DeadlineArg::parse(text).map(|d| (d.task, d.by));
        let six = Time::constant(6, 0, 0, 0);
        assert_eq!(parse("06:00"), Ok((None, By::Daily(six))));
        let of_task = Some("a.t.v1".to_owned());
        let late = Time::constant(23, 59, 30, 0);
        assert_eq!(parse("a.t.v1=23:59:30"), Ok((of_task.clone(), By::Daily(late))));
        let once = By::Once(time_text::parse_when("2026-12-01T06:00").unwrap());
        assert_eq!(parse("a.t.v1=2026-12-01T06:00"), Ok((of_task, once)));
        let hour = By::Once(When::Away(Duration::from_secs(3600)));
        assert_eq!(parse("1h"), Ok((None, hour)));
        assert!(parse("25:00").unwrap_err().starts_with("expected 06:00, 2026-"));
    }

    #[test]
    fn an_assumption_is_a_duration_for_one_task_or_all() {
        let minute = Duration::from_secs(60);
        assert_eq!(Assumption::parse("60s"), Ok(Assumption { task: None, length: minute }));
        let task = Some("a.t.v1".to_owned());
        assert_eq!(Assumption::parse("a.t.v1=1m"), Ok(Assumption { task, length: minute }));
        assert!(Assumption::parse("a.t.v1").is_err());
        assert!(EventArg::parse("go").is_err());
    }
}
