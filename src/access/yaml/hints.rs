//! Words for what a YAML reader stumbles over: tabs, stars, at-signs.
//!
//! Knows only texts and places; looks at the line of the fault and the one before it.

use super::{Fault, Mark};

/// What an alias is told.
pub(super) const NO_ALIAS: &str = "starts with *, which YAML takes for a reference; references are \
     not used here. Put the value in quotes, such as cron: \"* * * * *\"";

/// Says what a syntax fault most probably is.
pub(super) fn explain(text: &str, at: Mark, info: &str) -> Fault {
    let number = at.line.saturating_sub(1);
    let before = number.saturating_sub(1);
    for index in [before, number] {
        let line = text.lines().nth(usize::try_from(index).unwrap_or(usize::MAX));
        let Some(line) = line else { continue };
        if let Some((column, message)) = tab(line).or_else(|| reserved(line)) {
            return Fault::at(Mark { line: index + 1, column }, message);
        }
    }
    Fault::at(at, format!("is not YAML: {info}"))
}

fn tab(line: &str) -> Option<(u32, String)> {
    let indentation = line.get(..line.len() - line.trim_start().len())?;
    let column = column_of(line, indentation.find('\t')?);
    (!line.trim().is_empty())
        .then(|| (column, "found a tab as indentation; YAML allows only blanks there".to_owned()))
}

/// A value without quotes that starts with a character YAML keeps for itself.
fn reserved(line: &str) -> Option<(u32, String)> {
    let mut previous = ' ';
    let mut may_start = true;
    for (offset, c) in line.char_indices() {
        let blank = c == ' ' || c == '\t';
        if may_start && !blank {
            match c {
                '#' => return None,
                '*' => return Some((column_of(line, offset), NO_ALIAS.to_owned())),
                '@' | '`' | '%' => {
                    let message = format!("starts with {c}, which YAML reserves; put it in quotes");
                    return Some((column_of(line, offset), message));
                }
                '-' | '[' | '{' | ',' => {}
                _ => may_start = false,
            }
        }
        if matches!(previous, ':' | '-' | ',') && blank || matches!(c, '[' | '{') {
            may_start = true;
        }
        previous = c;
    }
    None
}

fn column_of(line: &str, offset: usize) -> u32 {
    let characters = line.get(..offset).map_or(0, |head| head.chars().count());
    u32::try_from(characters + 1).unwrap_or(u32::MAX)
}
