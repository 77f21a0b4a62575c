//! Words for what a YAML reader stumbles over: tabs, stars, at-signs.
//!
//! Knows only texts and places; looks at the line of the fault and its neighbours.

use super::{Fault, Mark};
use crate::limits;

/// What an alias is told.
pub(super) const NO_ALIAS: &str = "starts with *, which YAML takes for a reference; references are \
     not used here. Put the value in quotes, such as cron: \"* * * * *\"";

/// Says what a syntax fault most probably is.
pub(super) fn explain(text: &str, at: Mark, info: &str) -> Fault {
    let line = |number: u32| {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Some((number, text.lines().nth(index)?))
    };
    let own = line(at.line);
    let above = line(at.line.saturating_sub(1));
    // A tab in a script further up is no fault; only a reader who speaks of one means a neighbour.
    let below = if info.contains("tab") { line(at.line.saturating_add(1)) } else { None };
    let tabbed = |(number, line)| Some((number, tab(line)?));
    let kept = |(number, line)| Some((number, reserved(line)?));
    let hint = own
        .and_then(tabbed)
        .or_else(|| below.and_then(tabbed))
        .or_else(|| own.and_then(kept))
        .or_else(|| above.and_then(kept));
    match hint {
        Some((line, (column, message))) => Fault::at(Mark { line, column }, message),
        None => Fault::at(at, in_words(info)),
    }
}

/// A reader's complaint, in our words where it is a common one.
fn in_words(info: &str) -> String {
    if info.contains("recursion limit") {
        return too_deep();
    }
    if info.contains("mapping values are not allowed") {
        return "found \": \" inside of a value, or a key where none can be; put the value in \
                quotes, or give the key the indentation of its neighbours"
            .to_owned();
    }
    if info.contains("quoted scalar") && info.contains("end of stream") {
        return "opens a quote that is never closed; close it".to_owned();
    }
    if info.contains("simple key expect") || info.contains("did not find expected key") {
        return "found a line that is no \"key: value\", here or just before; give it its colon, or \
                the indentation of what it belongs to"
            .to_owned();
    }
    format!("is not YAML: {info}")
}

/// What too much nesting is told.
pub(super) fn too_deep() -> String {
    format!("is nested more than {} levels deep", limits::SPEC_DEPTH_MAX)
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
