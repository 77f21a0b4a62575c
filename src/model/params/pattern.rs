//! The `pattern` of a parameter: a regular expression for the whole text.

use regex::{Regex, RegexBuilder};

use crate::limits;

/// The expression that matches where `pattern` matches the whole text.
///
/// What it may grow to is bounded: a few characters can ask for a machine of many megabytes, and a
/// file can hold thousands of them.
///
/// # Errors
/// In words, why it is no pattern.
pub(super) fn whole(pattern: &str) -> Result<Regex, String> {
    let max = limits::PATTERN_BYTES_MAX;
    if pattern.len() > max {
        return Err(format!("the pattern has {} bytes; at most {max} are read", pattern.len()));
    }
    let build = |text: &str| {
        let built = RegexBuilder::new(text).size_limit(limits::PATTERN_COMPILED_BYTES_MAX).build();
        built.map_err(|error| {
            if matches!(error, regex::Error::CompiledTooBig(_)) {
                return format!(
                    "the pattern {pattern} is too costly to look for; repeat less in it"
                );
            }
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("the pattern {pattern} is no regular expression: {last}")
        })
    };
    // By itself first: `a)(b` is wrong, though it would be right between our brackets.
    build(pattern)?;
    build(&format!(r"\A(?:{pattern})\z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_text_or_nothing() {
        let digits = whole("[0-9]{1,10}").unwrap();
        assert!(digits.is_match("42") && !digits.is_match("42a") && !digits.is_match("a42"));
        assert!(whole("a)(b").unwrap_err().contains("is no regular expression"));
    }

    #[test]
    fn a_pattern_that_asks_for_too_much_is_refused_before_it_is_built() {
        for costly in [r"\p{L}{900}N", "(a{1000}){1000}", &"x".repeat(2000)] {
            let said = whole(costly).unwrap_err();
            assert!(said.contains("too costly") || said.contains("2000 bytes"), "{said}");
        }
        // What people write is far from that.
        whole(r"\p{L}[\p{L}\p{N} ._-]{0,63}").unwrap();
    }
}
