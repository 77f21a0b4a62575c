//! Words for what a YAML reader stumbles over: tabs, stars, quotes, brackets, missing colons.
//!
//! Knows only texts and places. A reader stumbles behind a mistake, often a line later; what is
//! said here names the mistake, where it begins and what to do.

use super::punctuation::{self, Opening};
use super::{Fault, Mark};
use crate::limits;

/// What an alias is told.
pub(super) const NO_ALIAS: &str = "starts with *, which YAML takes for a reference; references are \
     not used here. Put the value in quotes, such as cron: \"* * * * *\"";

/// What a list item is told that its indentation makes a part of the text above.
pub(super) const ITEM_INSIDE: &str = "is indented more than the item before it, so it goes on with \
     that one's text; give both the same indentation, or put the whole text in quotes";

/// A line with its number.
type Numbered<'t> = (u32, &'t str);

/// Says what a syntax fault most probably is.
pub(super) fn explain(text: &str, at: Mark, info: &str) -> Fault {
    let own = line(text, at.line);
    let above = line(text, at.line.saturating_sub(1));
    // A tab in a script further up is no fault; only a reader who speaks of one means a neighbour.
    let below = if info.contains("tab") { line(text, at.line.saturating_add(1)) } else { None };
    let tabbed = |(number, line)| Some((number, tab(line)?));
    let kept = |(number, line)| Some((number, reserved(line)?));
    let hint = own
        .and_then(tabbed)
        .or_else(|| below.and_then(tabbed))
        .or_else(|| own.and_then(kept))
        .or_else(|| above.and_then(kept));
    if let Some((line, (column, message))) = hint {
        return Fault::at(Mark { line, column }, message);
    }
    quotes(text, at, info)
        .or_else(|| brackets(text, at, info))
        .or_else(|| lines(text, at, info))
        .unwrap_or_else(|| Fault::at(at, in_words(info)))
}

/// What the second reader stumbles over and the first does not.
pub(super) fn explain_second(text: &str, at: Mark, info: &str) -> Fault {
    if info.contains("expected <document start>") {
        let message = "found text behind the end of the document, which ... marks; begin the next \
             document with a line ---, or remove the line ...";
        return Fault::at(at, message);
    }
    if let Some((_, line)) = line(text, at.line)
        && let Some(fault) = tab_behind(line, Mark { column: at.column.saturating_add(1), ..at })
    {
        return fault;
    }
    let message = format!("two YAML readers understand this differently; use quotes: {info}");
    Fault::at(at, message)
}

/// A line by its number.
fn line(text: &str, number: u32) -> Option<Numbered<'_>> {
    let index = usize::try_from(number.checked_sub(1)?).ok()?;
    Some((number, text.lines().nth(index)?))
}

/// The nearest line above a number that is not empty and no comment.
fn content_above(text: &str, number: u32) -> Option<Numbered<'_>> {
    let content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    (1..number).zip(text.lines()).filter(|(_, line)| content(line)).last()
}

/// Quotes that are not closed, closed too early, or hold a backslash too many.
fn quotes(text: &str, at: Mark, info: &str) -> Option<Fault> {
    if info.contains("unknown escape character") {
        let message = "holds a backslash that begins no escape; write \\\\ for a backslash, or put \
             the text in single quotes";
        return Some(Fault::at(at, message));
    }
    let unclosed = info.contains("end of stream") || info.contains("invalid indentation in");
    if info.contains("quoted scalar") && unclosed {
        let sign = line(text, at.line).and_then(|(_, line)| character(line, at.column));
        let sign = sign.filter(|sign| *sign == '\'').unwrap_or('"');
        let message = format!("opens a quote that is never closed; close it with {sign}");
        return Some(Fault::at(at, message));
    }
    if !info.contains("trailing content after double-quoted") {
        return None;
    }
    let begin = punctuation::before(text, at).quote?;
    let inside = if begin.sign == '\'' { "''" } else { "\\\"" };
    let message = format!(
        "found more behind a text in quotes, which begins at line {}, column {} and ends just \
         before; inside of it write {inside} for {}, or put other quotes around it",
        begin.at.line, begin.at.column, begin.sign
    );
    Some(Fault::at(at, message))
}

/// Lists and maps in brackets.
fn brackets(text: &str, at: Mark, info: &str) -> Option<Fault> {
    if info.contains("recursion limit") {
        return None;
    }
    if info.contains("misplaced bracket") {
        let message = "found a bracket that closes nothing; remove it, or put the text in quotes";
        return Some(Fault::at(at, message));
    }
    let (_, own) = line(text, at.line).unwrap_or((at.line, ""));
    let open @ Opening { at: begin, sign } = punctuation::before(text, at).bracket?;
    let (what, closing) = if sign == '[' { ("list", ']') } else { ("map", '}') };
    let of = line(text, begin.line).map_or("", |(_, line)| line);
    let next = character(own, at.column).or_else(|| own.trim_end().chars().last());
    if at.line > begin.line && indentation(own) <= indentation(of) {
        let message = format!(
            "this {what} is not closed; it begins at line {}; close it with {closing}",
            begin.line
        );
        return Some(Fault::at(begin, message));
    }
    if matches!(next, Some(']' | '}')) && next != Some(closing) {
        let message = format!(
            "found a bracket that does not go with {}, at line {}, column {}; close this {what} \
             with {closing}",
            open.sign, begin.line, begin.column
        );
        return Some(Fault::at(at, message));
    }
    // The end of the text may stand behind its last line.
    if own.chars().count() < usize::try_from(at.column).unwrap_or(usize::MAX)
        && line(text, at.line.saturating_add(1)).is_none()
    {
        let message = format!(
            "this {what} is not closed; it begins at line {}; close it with {closing}",
            begin.line
        );
        return Some(Fault::at(begin, message));
    }
    let message = format!(
        "does not fit into the {what} that begins at line {}, column {}; put a comma between its \
         parts, and quotes around a text that holds one of , : [ ] {{ }}",
        begin.line, begin.column
    );
    Some(Fault::at(at, message))
}

/// Lines without a colon, and lines that are indented unlike their neighbours.
fn lines(text: &str, at: Mark, info: &str) -> Option<Fault> {
    let own = line(text, at.line);
    if info.contains("simple key expect") {
        // It has gone on to the next line, but where the text ends.
        let begun = |(_, line): &Numbered<'_>| at.column > 1 && !line.trim().is_empty();
        return no_colon(own.filter(begun).or_else(|| content_above(text, at.line))?);
    }
    let (number, line) = own?;
    let head: String = line.chars().take(usize::try_from(at.column - 1).ok()?).collect();
    if info.contains("followed by a valid YAML whitespace") {
        return tab_behind(line, at);
    }
    if info.contains("mapping values are not allowed") {
        return colon_too_many(text, (number, line), &head, at);
    }
    if !info.contains("did not find expected key") {
        return None;
    }
    if let Some(sign) = head.trim_end().chars().last().filter(|c| matches!(c, ']' | '}')) {
        let message =
            format!("found more behind the closing {sign}; remove it, or put all in quotes");
        return Some(Fault::at(at, message));
    }
    let first = Mark { line: number, column: column_of_content(line) };
    if !line.trim_start().starts_with("- ") {
        let message = format!(
            "is indented by {}, unlike the lines that it belongs to; give it their indentation",
            indentation(line)
        );
        return Some(Fault::at(first, message));
    }
    let is_item = |(_, line): &(u32, &str)| line.trim_start().starts_with('-');
    let above = (1..number).zip(text.lines()).filter(is_item).last();
    let message = match above.filter(|(_, above)| indentation(above) != indentation(line)) {
        Some((before, above)) => format!(
            "this list item is indented by {}, the one before it, at line {before}, by {}; give \
             both the same",
            indentation(line),
            indentation(above)
        ),
        None => "found a list item among keys; put it below the key of its list".to_owned(),
    };
    Some(Fault::at(first, message))
}

/// A line that should have been a key with its value.
fn no_colon((number, line): Numbered<'_>) -> Option<Fault> {
    let (start, content) = content_of(line);
    let word = content.split(char::is_whitespace).next()?;
    let at = Mark { line: number, column: column_of(line, start) };
    let found = super::fields::shorten(content.trim_end());
    let what = match word.split_once(':') {
        Some((key, _)) => format!("put a blank behind the colon of {key}"),
        None => format!("put a colon and a blank behind {word}"),
    };
    Some(Fault::at(at, format!("found {found:?}, which is no \"key: value\"; {what}")))
}

/// A colon where the reader is inside of a value.
fn colon_too_many(text: &str, own: Numbered<'_>, head: &str, at: Mark) -> Option<Fault> {
    let (number, line) = own;
    if line.starts_with("--- ") {
        let message = "found a key on the line of ---; put it on the next line";
        return Some(Fault::at(at, message));
    }
    let (start, _) = content_of(line);
    let above = content_above(text, number)?;
    let (begin, content) = content_of(above.1);
    let is_pair = content.contains(": ") || content.trim_end().ends_with(':');
    if head.contains(": ") {
        return None;
    }
    // Both lines together are one text to a reader; the first lacks its colon.
    if begin == start && !is_pair {
        return no_colon(above);
    }
    if start > begin && is_pair {
        let message = format!(
            "is indented by {}, more than the key at line {}, which has its value already; give it \
             the indentation of its neighbours",
            start, above.0
        );
        return Some(Fault::at(Mark { line: number, column: column_of(line, start) }, message));
    }
    None
}

/// Where the content of a line starts, in bytes, and what it is; dashes of list items belong to the
/// indentation.
fn content_of(line: &str) -> (usize, &str) {
    let content = line.trim_start_matches([' ', '-']);
    (line.len() - content.len(), content)
}

/// The column of the first character of a line that is no blank.
pub(super) fn column_of_content(line: &str) -> u32 {
    column_of(line, indentation(line))
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The character at a column.
fn character(line: &str, column: u32) -> Option<char> {
    line.chars().nth(usize::try_from(column.checked_sub(1)?).ok()?)
}

/// A tab right before a place, behind a colon or dash, which wants a blank.
fn tab_behind(line: &str, at: Mark) -> Option<Fault> {
    let column = at.column.checked_sub(1)?;
    let sign = character(line, column.checked_sub(1)?)?;
    let message = format!("found a tab behind {sign}; put a blank there");
    (character(line, column) == Some('\t')).then(|| Fault::at(Mark { column, ..at }, message))
}

/// A reader's complaint, in our words where it is a common one.
fn in_words(info: &str) -> String {
    if info.contains("recursion limit") {
        return too_deep();
    }
    for (part, words) in [
        (
            "mapping values are not allowed",
            "found \": \" inside of a value, or a key where none can be; put the value in quotes, \
             or give the key the indentation of its neighbours",
        ),
        (
            "comment intercepting",
            "found a comment in a text that goes on in the next line; put the text in quotes, or \
             give the next line the indentation of its neighbours",
        ),
        (
            "block sequence entries are not allowed",
            "found a list item behind a key; put it on the next line, or the list in brackets",
        ),
        ("scanning a block scalar", "found more behind | or >; the text begins on the next line"),
        (
            "content after document end",
            "found more behind ... on its line; put it on a line of its own, behind a line ---",
        ),
    ] {
        if info.contains(part) {
            return words.to_owned();
        }
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
