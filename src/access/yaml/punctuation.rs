//! Which quotes and brackets a text has opened before a place.
//!
//! A rough second look at a text that a reader stumbled over, so that a message can name where the
//! trouble began. Right where everything before the place is well formed; never in a refusal's way.

use super::Mark;

/// A quote, or a bracket of a list or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    /// Where it stands.
    pub(super) at: Mark,
    /// The character.
    pub(super) sign: char,
}

/// What stands before a place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Punctuation {
    /// The innermost bracket that is open there.
    pub(super) bracket: Option<Opening>,
    /// The quote that began the last text in quotes.
    pub(super) quote: Option<Opening>,
}

/// Looks at everything before a place, in linear time.
pub(super) fn before(text: &str, end: Mark) -> Punctuation {
    let mut scan = Scan::default();
    for (line, number) in text.lines().zip(1..) {
        let column_end = match number {
            number if number > end.line => break,
            number if number == end.line => end.column,
            _ => u32::MAX,
        };
        scan.line(line, number, column_end);
    }
    Punctuation { bracket: scan.brackets.pop(), quote: scan.quote }
}

#[derive(Default)]
struct Scan {
    brackets: Vec<Opening>,
    /// The last quote that began a text.
    quote: Option<Opening>,
    /// Whether that text goes on.
    is_quoted: bool,
    /// Indentation of a key whose value is a block of lines.
    block: Option<usize>,
}

impl Scan {
    /// Takes the characters of one line that stand before a column.
    fn line(&mut self, line: &str, number: u32, column_end: u32) {
        let content = line.trim_start();
        let indentation = line.len() - content.len();
        if self.block.is_some_and(|of| content.is_empty() || indentation > of) {
            return;
        }
        self.block = None;
        let mut may_start = true;
        let mut previous = ' ';
        let mut characters = line.chars().zip(1..).peekable();
        while let Some((c, column)) = characters.next() {
            if column >= column_end {
                return;
            }
            let next = characters.peek().map_or(' ', |(next, _)| *next);
            if self.is_quoted {
                let skips = match self.quote.map_or('"', |quote| quote.sign) {
                    '"' if c == '\\' => true,
                    '\'' if c == '\'' && next == '\'' => true,
                    sign => {
                        self.is_quoted = c != sign;
                        false
                    }
                };
                if skips {
                    characters.next();
                }
                continue;
            }
            if c == '#' && previous.is_whitespace() {
                return;
            }
            let opening = Opening { at: Mark { line: number, column }, sign: c };
            let in_flow = !self.brackets.is_empty();
            match c {
                '"' | '\'' if may_start => {
                    (self.quote, self.is_quoted) = (Some(opening), true);
                    may_start = false;
                }
                '[' | '{' if may_start || in_flow => self.brackets.push(opening),
                ']' | '}' if in_flow => {
                    self.brackets.pop();
                    may_start = false;
                }
                '|' | '>' if may_start && !in_flow => {
                    self.block = Some(indentation);
                    return;
                }
                ',' if in_flow => may_start = true,
                ':' | '-' | '?' if next.is_whitespace() => may_start |= c == ':',
                c => may_start &= c.is_whitespace(),
            }
            previous = c;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The innermost bracket and the last quote, as sign, line and column.
    fn found(text: &str) -> [Option<(char, u32, u32)>; 2] {
        let lines = u32::try_from(text.split('\n').count()).unwrap();
        let column = u32::try_from(text.rsplit('\n').next().unwrap().chars().count() + 1).unwrap();
        let seen = before(text, Mark { line: lines, column });
        [seen.bracket, seen.quote].map(|o| o.map(|o| (o.sign, o.at.line, o.at.column)))
    }

    #[test]
    fn open_brackets_and_the_last_quote_are_found() {
        for (text, bracket, quote) in [
            ("a: [b", Some(('[', 1, 4)), None),
            ("a: [b, [c]", Some(('[', 1, 4)), None),
            ("a: [b, {c: d", Some(('{', 1, 8)), None),
            ("a: [b]\nc: ", None, None),
            ("a: b[c\nd: ", None, None),
            ("a: '[b'\nc: \"}\"", None, Some(('"', 2, 4))),
            ("a: 'it''s [' [", None, Some(('\'', 1, 4))),
            ("a: \"\\\" [\"", None, Some(('"', 1, 4))),
            ("a: it's\nb: [", Some(('[', 2, 4)), None),
            ("a: x # [\nb: ", None, None),
            ("a: |\n  [ '\nb: {", Some(('{', 3, 4)), None),
            ("- [x", Some(('[', 1, 3)), None),
            ("a: 'b\n  [c'\nd: [\n  e", Some(('[', 3, 4)), Some(('\'', 1, 4))),
        ] {
            assert_eq!(found(text), [bracket, quote], "{text:?}");
        }
    }
}
