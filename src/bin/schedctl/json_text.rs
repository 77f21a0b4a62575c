//! JSON text laid out anew without touching what is in it: keys keep their order, numbers their
//! digits. It takes valid JSON; other text comes out strangely spaced, but whole.

/// One line, no blanks outside strings.
pub(crate) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for piece in pieces(json) {
        out.push_str(piece);
    }
    out
}

/// Two blanks per level; empty objects and lists stay on their line.
pub(crate) fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth: usize = 0;
    let mut opened = false;
    for piece in pieces(json) {
        let closes = matches!(piece, "}" | "]");
        if closes {
            depth = depth.saturating_sub(1);
        }
        if opened != closes && (opened || closes) {
            new_line(&mut out, depth);
        }
        out.push_str(piece);
        opened = matches!(piece, "{" | "[");
        match piece {
            "{" | "[" => depth += 1,
            "," => new_line(&mut out, depth),
            ":" => out.push(' '),
            _ => {}
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// Punctuation, strings and words, one by one, without the blanks between.
fn pieces(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = match first {
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            '"' => string_end(rest),
            _ => rest
                .find(|c: char| c.is_whitespace() || "{}[],:\"".contains(c))
                .unwrap_or(rest.len()),
        };
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

/// Where a string that starts here ends, its closing quote included.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_changes_and_nothing_else() {
        let json = r#" {"b":[1, 2.50],"a":{}, "s":"x, \"y\": {\\","e":[]} "#;
        assert_eq!(compact(json), r#"{"b":[1,2.50],"a":{},"s":"x, \"y\": {\\","e":[]}"#);
        let laid_out = "{\n  \"b\": [\n    1,\n    2.50\n  ],\n  \"a\": {},\n  \
                        \"s\": \"x, \\\"y\\\": {\\\\\",\n  \"e\": []\n}";
        assert_eq!(indent(json), laid_out);
        assert_eq!(compact(laid_out), compact(json));
    }

    #[test]
    fn single_values_stay_as_they_are() {
        for json in ["null", "12", "\"é\"", "[]", "{}"] {
            assert_eq!(indent(json), json);
            assert_eq!(compact(json), json);
        }
    }
}
