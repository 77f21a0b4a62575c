//! From text to fields: what a person may write, and what is said about the rest.
//!
//! Vixie's syntax with extensions; every extension is a text that Vixie cron refuses or silently
//! never fires, so that a line out of a crontab keeps its meaning.

use super::super::suggest::nearest;
use super::CronError;
use super::field::{DAY, HOUR, MINUTE, MONTH, Rule, SECOND, WEEKDAY};
use super::fields::{DayRule, Fields, WeekdayRule};
use super::surprises::surprises;
use crate::limits::CRON_BYTES_MAX;

/// A blank-separated word and its column, from 1.
pub(super) type Word<'a> = (usize, &'a str);

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
        Some((column, word)) if word.starts_with('#') => Err(comment(*column)),
        Some((column, word)) if word.starts_with('@') => nickname(*column, word, words.get(1)),
        Some((column, word)) if word.contains('=') => Err(variable(*column, word)),
        Some(_) => fields(&words),
    }
}

fn whole(problem: String) -> CronError {
    CronError { column: 0, problem }
}

fn comment(column: usize) -> CronError {
    let problem = "found a comment; put it behind the value, outside its quotes".to_owned();
    CronError { column, problem }
}

/// A crontab sets variables in lines of their own.
fn variable(column: usize, word: &str) -> CronError {
    let key = match word.split('=').next() {
        Some("TZ" | "CRON_TZ") => "the time zone goes into the key 'timezone'",
        _ => "variables go into the key 'env'",
    };
    CronError { column, problem: format!("found {word:?}; {key}") }
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
    if let Some((column, _)) = more.filter(|(_, word)| word.starts_with('#')) {
        return Err(comment(*column));
    }
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
        return Err(comment(*column));
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
        let [(column, day), (_, month), (_, weekday)] = [rest[2], rest[3], rest[4]];
        let problem = format!(
            "can never fire: no year has a date with day of month {day:?}, month {month:?} and day \
             of week {weekday:?}"
        );
        return Err(CronError { column, problem });
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
    if upper == "WL" {
        return Err("is no day; write LW".to_owned());
    }
    if let Some(day) = upper.strip_prefix('W').filter(|day| DAY.is_number(day)) {
        return Err(format!("is no day; write {day}W"));
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
