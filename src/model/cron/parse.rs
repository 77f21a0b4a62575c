//! From text to fields: what a person may write, and what is said about the rest.
//!
//! Vixie's syntax with extensions; every extension is a text that Vixie cron refuses or silently
//! never fires, so that a line out of a crontab keeps its meaning.

use super::super::suggest::nearest;
use super::CronError;
use super::fields::{DayRule, Fields, Set, WeekdayRule};
use super::surprises::surprises;
use crate::limits::CRON_BYTES_MAX;

/// One of the six fields.
struct Field {
    name: &'static str,
    least: u8,
    /// The greatest number that may be written.
    greatest: u8,
    /// The greatest number there is; Sunday may be written 7 but is 0.
    last: u8,
    names: &'static [&'static str],
    allowed: &'static str,
    /// What a step starts anew in, for clock fields.
    turn: Option<&'static str>,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const SECOND: Field = Field {
    name: "second",
    least: 0,
    greatest: 59,
    last: 59,
    names: &[],
    allowed: "0-59",
    turn: Some("minute"),
};
const MINUTE: Field = Field { name: "minute", turn: Some("hour"), ..SECOND };
const HOUR: Field =
    Field { name: "hour", greatest: 23, last: 23, allowed: "0-23", turn: Some("day"), ..SECOND };
const DAY: Field = Field {
    name: "day of month",
    least: 1,
    greatest: 31,
    last: 31,
    names: &[],
    allowed: "1-31, L, L-n, LW and nW",
    turn: None,
};
const MONTH: Field = Field {
    name: "month",
    least: 1,
    greatest: 12,
    last: 12,
    names: &MONTHS,
    allowed: "1-12 and JAN-DEC",
    turn: None,
};
const WEEKDAY: Field = Field {
    name: "day of week",
    least: 0,
    greatest: 7,
    last: 6,
    names: &WEEKDAYS,
    allowed: "0-7 (0 and 7 are Sunday), SUN-SAT, 5L and 5#2",
    turn: None,
};

/// A blank-separated word and its column, from 1.
type Word<'a> = (usize, &'a str);

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Fields, CronError> {
    if text.len() > CRON_BYTES_MAX {
        let length = text.len();
        return Err(whole(format!("is {length} bytes long; at most {CRON_BYTES_MAX} are allowed")));
    }
    // A YAML block text ends with a line break.
    let text = text.trim_end_matches(['\n', '\r', ' ', '\t']);
    let strange = |(_, c): &(usize, char)| !c.is_ascii_graphic() && !matches!(c, ' ' | '\t');
    if let Some((column, c)) = (1..).zip(text.chars()).find(strange) {
        let problem = format!(
            "found the character {c:?} at column {column}; allowed are ASCII letters, digits and \
             signs, with blanks or tabs between the fields, on one line"
        );
        return Err(CronError { column, problem });
    }
    let words = words(text);
    match words.first() {
        None => Err(whole("is empty; expected 5 fields such as \"0 2 * * *\"".to_owned())),
        Some((column, word)) if word.starts_with('@') => nickname(*column, word, words.get(1)),
        Some((column, word)) if word.contains('=') => Err(CronError {
            column: *column,
            problem: format!("found {word:?}; the time zone goes into the key 'timezone'"),
        }),
        Some(_) => fields(&words),
    }
}

fn whole(problem: String) -> CronError {
    CronError { column: 0, problem }
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut column = 1;
    let mut words = Vec::new();
    for word in text.split([' ', '\t']) {
        if !word.is_empty() {
            words.push((column, word));
        }
        column += word.len() + 1;
    }
    words
}

fn nickname(column: usize, word: &str, more: Option<&Word<'_>>) -> Result<Fields, CronError> {
    const NICKNAMES: [(&str, &str); 7] = [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ];
    let names = NICKNAMES.map(|(name, _)| name);
    let lower = word.to_ascii_lowercase();
    let problem = match lower.as_str() {
        "@reboot" => "is no time of the calendar; use the trigger 'boot: true'".to_owned(),
        "@every" => "is no time of the calendar; use the trigger 'every: 5m'".to_owned(),
        name => match NICKNAMES.iter().find(|(known, _)| *known == name) {
            Some((_, line)) if more.is_none() => return fields(&words(line)),
            Some(_) => "takes nothing behind it".to_owned(),
            None => {
                let hint = nearest(name, names).map(|near| format!("; did you mean {near}?"));
                let hint = hint.unwrap_or_else(|| ".".to_owned());
                format!("is no known nickname{hint} Known are {}", names.join(", "))
            }
        },
    };
    Err(CronError { column, problem: format!("{word} {problem}") })
}

fn fields(words: &[Word<'_>]) -> Result<Fields, CronError> {
    if let Some((column, _)) = words.iter().skip(5).find(|(_, word)| word.starts_with('#')) {
        let problem = "found a comment; put it behind the value, outside its quotes".to_owned();
        return Err(CronError { column: *column, problem });
    }
    let (second, rest) = match words.len() {
        5 => ((1, "0"), words),
        6 => (words[0], &words[1..]),
        count => return Err(whole(wrong_count(count))),
    };
    let mut fields = Fields::default();
    let warnings = &mut fields.warnings;
    fields.seconds = SECOND.set(second, warnings)?;
    fields.minutes = MINUTE.set(rest[0], warnings)?;
    fields.hours = HOUR.set(rest[1], warnings)?;
    fields.months = MONTH.set(rest[3], warnings)?;
    (fields.days, fields.day_rules) = DAY.with_rules(rest[2], warnings, &day_rule)?;
    (fields.weekdays, fields.weekday_rules) = WEEKDAY
        .with_rules(rest[4], warnings, &weekday_rule)
        .map_err(|error| if words.len() == 6 { six_fields(error) } else { error })?;
    let starred = |(_, word): Word<'_>| word.starts_with(['*', '?']);
    fields.both_days = starred(rest[2]) || starred(rest[4]);
    fields.wildcard = starred(second) || starred(rest[0]) || starred(rest[1]);
    if !fields.ever_matches() {
        return Err(whole("can never fire: no year has such a date".to_owned()));
    }
    surprises(&mut fields, words.len() == 6 && starred(second), rest[2].1, rest[4].1);
    Ok(fields)
}

fn wrong_count(count: usize) -> String {
    let hint = match count {
        1..5 => "fields are separated by blanks",
        _ => "there is no field for a year, and no place for a command",
    };
    format!(
        "found {count} {}; expected 5 (minute, hour, day of month, month, day of week) or 6 with \
         the second first; {hint}",
        if count == 1 { "field" } else { "fields" }
    )
}

/// A sixth field is more often a year or a command than a weekday.
fn six_fields(mut error: CronError) -> CronError {
    error.problem.push_str(
        "; of six fields the first is the second, and there is none for a year or a command",
    );
    error
}

/// A rule in an item, no rule, or what is wrong with it.
type Rule<T> = Result<Option<T>, String>;

impl Field {
    fn set(&self, word: Word<'_>, warnings: &mut Vec<String>) -> Result<Set, CronError> {
        let none = &|_: &str| -> Rule<()> { Ok(None) };
        self.with_rules(word, warnings, none).map(|(set, _)| set)
    }

    /// Reads a comma list whose items may be rules.
    fn with_rules<T>(
        &self,
        (mut column, word): Word<'_>,
        warnings: &mut Vec<String>,
        rule: &dyn Fn(&str) -> Rule<T>,
    ) -> Result<(Set, Vec<T>), CronError> {
        let mut set = Set::default();
        let mut rules = Vec::new();
        for item in word.split(',') {
            let read = match rule(item) {
                _ if item.is_empty() => Err("is empty".to_owned()),
                Ok(Some(rule)) => {
                    rules.push(rule);
                    Ok(())
                }
                Ok(None) => self.item(item, warnings).map(|items| set = set.union(items)),
                Err(problem) => Err(problem),
            };
            read.map_err(|problem| CronError {
                column,
                problem: format!("{}: item {item:?} at column {column} {problem}", self.name),
            })?;
            column += item.len() + 1;
        }
        Ok((set, rules))
    }

    /// Reads `*`, `?`, `a`, `a-b`, each with or without a step.
    fn item(&self, item: &str, warnings: &mut Vec<String>) -> Result<Set, String> {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, Some(self.step(step)?)),
            None => (item, None),
        };
        let star = base == "*" || (base == "?" && self.turn.is_none() && self.name != MONTH.name);
        let (from, mut to) = if star {
            (self.least, self.last)
        } else if let Some((from, to)) = base.split_once('-') {
            (self.value(from)?, self.value(to)?)
        } else {
            let from = self.value(base)?;
            (from, if step.is_some() { self.last } else { from })
        };
        // Sunday as a start is 0, so that 7-2 is Sunday to Tuesday.
        let from =
            if from > self.last && (to != from || step.is_some()) { self.least } else { from };
        let count = self.last - self.least + 1;
        if to < from {
            to += count;
        }
        let mut set = Set::default();
        for number in (from..=to).step_by(usize::from(step.unwrap_or(1))) {
            set.insert(self.least + (number - self.least) % count);
        }
        if let Some(step) = step {
            self.warn_of_step(item, step, star, (from, to), warnings);
        }
        Ok(set)
    }

    fn warn_of_step(
        &self,
        item: &str,
        step: u16,
        star: bool,
        (from, to): (u8, u8),
        warnings: &mut Vec<String>,
    ) {
        let (name, span) = (self.name, u16::from(to - from));
        let count = span + 1;
        if step > span {
            if span > 0 {
                warnings.push(format!(
                    "{name}: the step of {item} is wider than its range, only {from} is left"
                ));
            }
        } else if let Some(turn) = self.turn.filter(|_| star && count % step != 0) {
            warnings.push(format!(
                "{name}: {item} starts anew at 0 in every {turn}, so the last step of each is \
                 shorter than {step}"
            ));
        }
    }

    fn step(&self, text: &str) -> Result<u16, String> {
        let step = if self.is_number(text) { text.parse().ok() } else { None };
        step.filter(|step| *step > 0)
            .ok_or_else(|| format!("has the step {text:?}; expected a whole number from 1 to 9999"))
    }

    fn is_number(&self, text: &str) -> bool {
        (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    }

    /// Reads a number or a name.
    fn value(&self, text: &str) -> Result<u8, String> {
        let allowed = self.allowed;
        if self.is_number(text) {
            let number = text.parse::<u16>().ok().and_then(|number| u8::try_from(number).ok());
            return number
                .filter(|number| (self.least..=self.greatest).contains(number))
                .ok_or_else(|| {
                    format!("has {text}, which is out of range; allowed are {allowed}")
                });
        }
        let lower = text.to_ascii_lowercase();
        let named = (self.least..).zip(self.names).find(|(_, name)| **name == lower);
        named.map(|(number, _)| number).ok_or_else(|| self.not_a_value(text))
    }

    fn not_a_value(&self, text: &str) -> String {
        let allowed = self.allowed;
        let hint = if text.is_empty() {
            return format!("lacks a value; allowed are {allowed}");
        } else if text.contains('~') {
            "; random times are not supported, write a fixed one".to_owned()
        } else if text.starts_with(['H', 'h']) {
            "; H is not supported, write a fixed time".to_owned()
        } else if text.contains('%') {
            "; % belongs to crontab commands".to_owned()
        } else if text == "?" {
            "; ? stands only in the day fields, write *".to_owned()
        } else if text.starts_with('*') && text.len() > 1 {
            format!("; a step is written */{}", text.trim_start_matches(['*', '/']))
        } else if text.bytes().all(|b| b.is_ascii_digit()) {
            "; numbers have at most 4 digits".to_owned()
        } else {
            let long = text.get(..3).map(str::to_ascii_lowercase).unwrap_or_default();
            match self.names.iter().find(|name| **name == long) {
                Some(name) => format!("; write {}", name.to_ascii_uppercase()),
                None => String::new(),
            }
        };
        format!("has {text:?}; allowed are {allowed}{hint}")
    }
}

/// Reads `L`, `L-n`, `LW` and `nW`.
fn day_rule(item: &str) -> Rule<DayRule> {
    let upper = item.to_ascii_uppercase();
    if upper == "L" {
        return Ok(Some(DayRule::Last(0)));
    }
    if upper == "LW" {
        return Ok(Some(DayRule::LastWorkday));
    }
    if let Some(before) = upper.strip_prefix("L-") {
        let days = if DAY.is_number(before) { before.parse().ok() } else { None };
        let days = days.filter(|days| (1..=30).contains(days));
        return days
            .map(|days| Some(DayRule::Last(days)))
            .ok_or_else(|| "is not L-n with n from 1 to 30".to_owned());
    }
    if let Some(day) = upper.strip_suffix('W').filter(|day| DAY.is_number(day)) {
        return DAY.value(day).map(|day| Some(DayRule::NearestWorkday(day)));
    }
    if upper.contains(['L', 'W', '#']) {
        return Err("is not L, L-n, LW or nW; these stand alone, without range or step".to_owned());
    }
    Ok(None)
}

/// Reads `5L`, `FRIL`, `5#2` and `FRI#2`.
fn weekday_rule(item: &str) -> Rule<WeekdayRule> {
    let weekday = |text: &str| WEEKDAY.value(text).map(|weekday| weekday % 7);
    if let Some((day, nth)) = item.split_once('#') {
        let weekday = weekday(day)?;
        return match nth.as_bytes() {
            [nth @ b'1'..=b'5'] => Ok(Some(WeekdayRule::Nth(weekday, nth - b'0'))),
            _ => Err(format!("has {nth:?} behind #; allowed are 1-5")),
        };
    }
    match item.strip_suffix(['L', 'l']) {
        None => Ok(None),
        Some("") => Err("is ambiguous; write 6 or SAT for Saturday, 5L or FRIL for the last \
                         Friday of the month"
            .to_owned()),
        Some(day) => weekday(day).map(|weekday| Some(WeekdayRule::Last(weekday))),
    }
}
