//! Texts as YAML that any reader takes for the same texts. It quotes more than it must: what looks
//! like a number, a date or a truth value to one reader or another is quoted.

use std::fmt::Write as _;

/// A text on one line: plain if nobody can misread it, else in double quotes.
pub(crate) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// A text of several lines as a literal block at this indentation, with what introduces it; `None`:
/// it has to be a [`scalar`].
pub(crate) fn block(text: &str, indent: &str) -> Option<String> {
    let body = text.trim_end_matches('\n');
    let first = body.chars().next()?;
    let has_foreign = body.chars().any(|c| is_special(c) && c != '\n' && c != '\t');
    // A blank in front would be taken for indentation, one line alone reads better as a scalar.
    if !text.contains('\n') || first.is_whitespace() || has_foreign {
        return None;
    }
    let ends = text.len() - body.len();
    let mut block = match ends {
        0 => "|-",
        1 => "|",
        _ => "|+",
    }
    .to_owned();
    for line in text.lines() {
        let indent = if line.is_empty() { "" } else { indent };
        let _infallible = write!(block, "\n{indent}{line}");
    }
    Some(block)
}

fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let starts_well = first.is_alphanumeric() || matches!(first, '_' | '/' | '.' | '$' | '(');
    let is_word = starts_well
        && text.trim() == text
        && !text.contains(": ")
        && !text.ends_with(':')
        && !text.contains(" #")
        && !text.chars().any(is_special);
    is_word && !may_be_a_value(text)
}

/// Whether some reader takes the text for a number, a date, a truth value or null.
fn may_be_a_value(text: &str) -> bool {
    const WORDS: [&str; 11] =
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan"];
    let lower = text.to_lowercase();
    let in_digits = |c: char| c.is_ascii_hexdigit() || "xo_.:+-tz ".contains(c);
    let is_numeric = lower.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    WORDS.contains(&lower.as_str()) || (is_numeric && lower.chars().all(in_digits))
}

/// What a reader or a terminal may take for something else than a character.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_special(c) => {
                let _infallible = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_misread_is_plain() {
        for text in
            ["a.b.v1", "0 2 * * *", "/in/*.csv", "echo a", "10s", "Europe/Berlin", "é", "x:y"]
        {
            assert_eq!(scalar(text), text);
        }
    }

    #[test]
    fn what_could_be_misread_is_quoted() {
        for text in [
            "",
            "*/30 * * * * *",
            "* * * * *",
            "{date}",
            "@daily",
            "- x",
            "#x",
            "a #b",
            "a: b",
            "a:",
            "yes",
            "No",
            "null",
            "~",
            "1",
            "-1",
            "1.5",
            "0x1f",
            "022",
            "2026-11-30",
            "02:00",
            "1e3",
            ".5",
            ".inf",
            " a",
            "a ",
            "!x",
            "&x",
            "%x",
            "'x'",
            "[a]",
            "?",
            "|",
            ">",
        ] {
            assert_eq!(scalar(text), format!("\"{text}\""));
        }
        assert_eq!(scalar("a\"b\\c\td\u{1b}\n"), r#""a\"b\\c\td\u001b\n""#);
        assert_eq!(scalar("\u{2028}"), r#""\u2028""#);
    }

    #[test]
    fn several_lines_are_a_block_that_keeps_its_end() {
        assert_eq!(block("a\n\n  b\n", "  ").as_deref(), Some("|\n  a\n\n    b"));
        assert_eq!(block("a\nb", "  ").as_deref(), Some("|-\n  a\n  b"));
        assert_eq!(block("a\n\n", " ").as_deref(), Some("|+\n a\n"));
        for text in ["a", "", "\n", " a\nb", "\ta\nb", "a\n\u{1b}[31m", "a\r\nb"] {
            assert_eq!(block(text, ""), None, "{text:?}");
        }
    }
}
