//! One field of an expression: its numbers and names, its lists, ranges and steps.

use super::CronError;
use super::fields::Set;
use super::parse::Word;

/// One of the six fields.
pub(super) struct Field {
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

pub(super) const SECOND: Field = Field {
    name: "second",
    least: 0,
    greatest: 59,
    last: 59,
    names: &[],
    allowed: "0-59",
    turn: Some("minute"),
};
pub(super) const MINUTE: Field = Field { name: "minute", turn: Some("hour"), ..SECOND };
pub(super) const HOUR: Field =
    Field { name: "hour", greatest: 23, last: 23, allowed: "0-23", turn: Some("day"), ..SECOND };
pub(super) const DAY: Field = Field {
    name: "day of month",
    least: 1,
    greatest: 31,
    last: 31,
    names: &[],
    allowed: "1-31, L, L-n, LW and nW",
    turn: None,
};
pub(super) const MONTH: Field = Field {
    name: "month",
    least: 1,
    greatest: 12,
    last: 12,
    names: &MONTHS,
    allowed: "1-12 and JAN-DEC",
    turn: None,
};
pub(super) const WEEKDAY: Field = Field {
    name: "day of week",
    least: 0,
    greatest: 7,
    last: 6,
    names: &WEEKDAYS,
    allowed: "0-7 (0 and 7 are Sunday), SUN-SAT, 5L and 5#2",
    turn: None,
};

/// A rule in an item, no rule, or what is wrong with it.
pub(super) type Rule<T> = Result<Option<T>, String>;

impl Field {
    pub(super) fn set(&self, word: Word<'_>, warnings: &mut Vec<String>) -> Result<Set, CronError> {
        let none = &|_: &str| -> Rule<()> { Ok(None) };
        self.with_rules(word, warnings, none).map(|(set, _)| set)
    }

    /// Reads a comma list whose items may be rules.
    pub(super) fn with_rules<T>(
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
                _ if item.starts_with('?') && self.is_of_days() && item != word => {
                    Err("is in a list; ? stands alone, write *".to_owned())
                }
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
        let star = base == "*" || (base == "?" && self.is_of_days());
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

    fn is_of_days(&self) -> bool {
        [DAY.name, WEEKDAY.name].contains(&self.name)
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

    pub(super) fn is_number(&self, text: &str) -> bool {
        (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    }

    /// Reads a number or a name.
    pub(super) fn value(&self, text: &str) -> Result<u8, String> {
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
        if text.is_empty() {
            return format!("lacks a value; allowed are {allowed}");
        }
        let hint = self.hint(text).map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("has {text:?}; allowed are {allowed}{hint}")
    }

    /// What may have been meant.
    fn hint(&self, text: &str) -> Option<String> {
        let step = text.strip_prefix('*').map(|rest| rest.trim_start_matches('*'));
        let hint = if text.contains('~') {
            "random times are not supported, write a fixed one"
        } else if text.starts_with(['H', 'h']) {
            "H is not supported, write a fixed time"
        } else if text.contains('%') {
            "% belongs to crontab commands"
        } else if text == "?" && !self.is_of_days() {
            "? stands only in the day fields, write *"
        } else if let Some(step) = step.filter(|step| self.is_number(step)) {
            return Some(format!("a step is written */{step}"));
        } else if text.bytes().all(|b| b.is_ascii_digit()) {
            "numbers have at most 4 digits"
        } else if text.eq_ignore_ascii_case("L") {
            "L stands only in the day fields"
        } else {
            return self.meant(&text.to_ascii_uppercase());
        };
        Some(hint.to_owned())
    }

    /// A name that is too long, or a rule written otherwise.
    fn meant(&self, upper: &str) -> Option<String> {
        let named = |text: &str| self.names.iter().any(|name| name.eq_ignore_ascii_case(text));
        if self.name == WEEKDAY.name {
            if let Some(day) = upper.strip_prefix('L').filter(|day| self.value(day).is_ok()) {
                return Some(format!("write {day}L"));
            }
            if upper.strip_suffix('W').is_some_and(|day| self.is_number(day)) {
                return Some("W stands only in the day of month".to_owned());
            }
        }
        upper.get(..3).filter(|short| named(short)).map(|short| format!("write {short}"))
    }
}
