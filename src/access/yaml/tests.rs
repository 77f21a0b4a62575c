//! Given bytes, these values and places, or these faults; expected texts are written by hand.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Fault, Kind, Mark, Node, read};
use crate::limits;

fn values(text: &str) -> Vec<serde_json::Value> {
    read(text.as_bytes()).unwrap().iter().map(Node::to_json).collect()
}

fn faults(text: &str) -> Vec<String> {
    let line = |f: &Fault| format!("{}:{} {} {}", f.at.line, f.at.column, f.path, f.message);
    read(text.as_bytes()).unwrap_err().iter().map(line).collect()
}

#[test]
fn a_plain_value_is_what_json_would_write_so_and_else_its_text() {
    for (written, value) in [
        ("1", json!(1)),
        ("-7", json!(-7)),
        ("0", json!(0)),
        ("1.5", json!(1.5)),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("true", json!(true)),
        ("false", json!(false)),
        ("null", json!(null)),
        ("~", json!(null)),
        ("", json!(null)),
        // B056, B068: what other readers turn into something else stays what was written.
        ("1.10", json!("1.10")),
        ("022", json!("022")),
        ("0o22", json!("0o22")),
        ("0x1f", json!("0x1f")),
        ("+1", json!("+1")),
        ("-0", json!("-0")),
        ("1e3", json!("1e3")),
        ("1_000", json!("1_000")),
        (".5", json!(".5")),
        (".inf", json!(".inf")),
        (".nan", json!(".nan")),
        ("99999999999999999999999", json!("99999999999999999999999")),
        ("2026-01-01", json!("2026-01-01")),
        ("12:30:45", json!("12:30:45")),
        ("yes", json!("yes")),
        ("on", json!("on")),
        ("True", json!("True")),
        ("\"1\"", json!("1")),
        ("'true'", json!("true")),
        ("\"\"", json!("")),
        ("\"a\\tb\\u00e9\"", json!("a\tbé")),
    ] {
        assert_eq!(values(&format!("v: {written}\n")), [json!({ "v": value })], "{written}");
    }
}

#[test]
fn block_texts_keep_their_lines_and_tabs() {
    assert_eq!(
        values("a: |\n  if x\n  \tthen y\nb: >-\n  one\n  two\nc: one\n  two\n"),
        [json!({"a": "if x\n\tthen y\n", "b": "one two", "c": "one two"})]
    );
}

#[test]
fn files_come_with_marks_carriage_returns_and_empty_documents() {
    let one = [json!({"a": 1, "b": [2]})];
    assert_eq!(values("\u{feff}a: 1\nb: [2]\n"), one);
    assert_eq!(values("a: 1\r\nb:\r\n- 2\r\n"), one);
    assert_eq!(values("---\n---\na: 1\nb: [2]\n---\n"), one);
    assert_eq!(values("{\"a\": 1, \"b\": [2]}"), one);
    for nothing in ["", "\n", "# only\n", "---\n", "---\n---\n", "\u{feff}", "~\n"] {
        assert_eq!(values(nothing), Vec::<serde_json::Value>::new(), "{nothing:?}");
    }
    assert_eq!(values("a: 1\n---\nb: 2\n...\n---\nc: 3\n").len(), 3);
}

#[test]
fn every_value_knows_its_place() {
    let documents = read("a: 1\nb:\n  - é: {x: y}\n".as_bytes()).unwrap();
    let Kind::Map(entries) = &documents[0].kind else { panic!("a map") };
    let at = |line, column| Mark { line, column };
    assert_eq!((entries[0].at, entries[0].value.at), (at(1, 1), at(1, 4)));
    assert_eq!((entries[1].at, entries[1].value.at), (at(2, 1), at(3, 3)));
    let Kind::List(items) = &entries[1].value.kind else { panic!("a list") };
    let Kind::Map(inner) = &items[0].kind else { panic!("a map") };
    assert_eq!((inner[0].at, inner[0].value.at), (at(3, 5), at(3, 8)));
}

#[test]
fn what_has_no_place_in_a_definition_is_refused_where_it_stands() {
    const STAR: &str = "starts with *, which YAML takes for a reference; references are not used \
         here. Put the value in quotes, such as cron: \"* * * * *\"";
    const TAB: &str = "found a tab as indentation; YAML allows only blanks there";
    for (text, expected) in [
        (
            "a: 1\nb: 2\na: 3\n",
            "3:1 a the key \"a\" is written twice; first on line 1; keep one of them".to_owned(),
        ),
        (
            "e:\n  A: 1\n  A: 2\n",
            "3:3 e.A the key \"A\" is written twice; first on line 2; keep one of them".to_owned(),
        ),
        (
            "l:\n- {x: 1, 'x': 2}\n",
            "2:10 l[0].x the key \"x\" is written twice; first on line 2; keep one of them"
                .to_owned(),
        ),
        (
            "a: &x 1\n",
            "1:4 a found an anchor (&name); anchors are not used here, write the value".to_owned(),
        ),
        ("t:\n- cron: * * * * *\n", format!("2:9 t[0].cron {STAR}")),
        ("t:\n- cron: */5 * * * *\n", format!("2:9 t[0].cron {STAR}")),
        ("t: [*x]\n", format!("1:5 t[0] {STAR}")),
        ("c: @daily\n", "1:4 c starts with @, which YAML reserves; put it in quotes".to_owned()),
        ("env:\n\tA: 1\n", format!("2:1 env {TAB}")),
        ("env:\n  A: 1\n \tB: 2\n", format!("3:2  {TAB}")),
        (
            "a: !!str 1\n",
            "1:4 a found the tag tag:yaml.org,2002:!str; tags are not used here, use plain values"
                .to_owned(),
        ),
        ("[a]: 1\n", "1:1  found a list or map as a key; keys are words".to_owned()),
        (
            "<<: {a: 1}\n",
            "1:1 << found a merge key (<<); it is not used here, write the keys".to_owned(),
        ),
        (
            "a: \"x\\0y\"\n",
            "1:4 a holds a NUL character (\\0), which no program can be given".to_owned(),
        ),
        ("a: x\0y\n", "1:5  found the control character U+0000; remove it".to_owned()),
        ("a: 1\nb: x\u{1b}[31m\n", "2:5  found the control character U+001B; remove it".to_owned()),
    ] {
        assert_eq!(faults(text), [expected], "{text:?}");
    }
}

/// A reader stumbles behind the mistake; told is where the mistake begins and what to do.
#[test]
fn colons_quotes_and_brackets_are_missed_where_the_mistake_begins() {
    const NO_COLON: &str = "which is no \"key: value\"; put a";
    for (text, expected) in [
        ("a x\nb: 1\n", format!("1:1  found \"a x\", {NO_COLON} colon and a blank behind a")),
        ("# c\n\na x\nb: 1\n", format!("3:1  found \"a x\", {NO_COLON} colon and a blank behind a")),
        ("a: 1\nb x\nc: 1\n", format!("2:1  found \"b x\", {NO_COLON} colon and a blank behind b")),
        ("a:\n  b x\n  c: 1\n", format!("2:3  found \"b x\", {NO_COLON} colon and a blank behind b")),
        ("a:\n- b x\n  c: 1\n", format!("2:3 a found \"b x\", {NO_COLON} colon and a blank behind b")),
        ("a: 1\nb:2\nc: 3\n", format!("2:1  found \"b:2\", {NO_COLON} blank behind the colon of b")),
        (
            "a: 'it's'\n",
            "1:8 a found more behind a text in quotes, which begins at line 1, column 4 and ends just before; inside of it write '' for ', or put other quotes around it".to_owned(),
        ),
        (
            "a: [\"x \"y\"\"]\n",
            "1:9 a[0] found more behind a text in quotes, which begins at line 1, column 5 and ends just before; inside of it write \\\" for \", or put other quotes around it".to_owned(),
        ),
        ("a: \"x\nb: 1\n", "1:4 a opens a quote that is never closed; close it with \"".to_owned()),
        ("a: 'x\nb: 'y'\n", "1:4 a opens a quote that is never closed; close it with '".to_owned()),
        (
            "a: \"C:\\d\"\n",
            "1:4 a holds a backslash that begins no escape; write \\\\ for a backslash, or put the text in single quotes".to_owned(),
        ),
        ("a:\tx\n", "1:3  found a tab behind :; put a blank there".to_owned()),
        ("a:\n-\tx\n", "2:2  found a tab behind -; put a blank there".to_owned()),
        ("a: [b, c\nd: 1\n", "1:4 a this list is not closed; it begins at line 1; close it with ]".to_owned()),
        ("a: [\n", "1:4 a this list is not closed; it begins at line 1; close it with ]".to_owned()),
        ("a: [", "1:4 a this list is not closed; it begins at line 1; close it with ]".to_owned()),
        ("a: [b, [c]\nd: 1\n", "1:4 a this list is not closed; it begins at line 1; close it with ]".to_owned()),
        ("a: {b: 1\nd: 1\n", "1:4 a this map is not closed; it begins at line 1; close it with }".to_owned()),
        (
            "a: {b: 1]\n",
            "1:9 a found a bracket that does not go with {, at line 1, column 4; close this map with }".to_owned(),
        ),
        ("a: ]\n", "1:4 a found a bracket that closes nothing; remove it, or put the text in quotes".to_owned()),
        ("a: [b] c\n", "1:8  found more behind the closing ]; remove it, or put all in quotes".to_owned()),
    ] {
        assert_eq!(faults(text), [expected], "{text:?}");
    }
}

#[test]
fn lines_that_do_not_belong_where_they_stand_are_told_so() {
    for (text, expected) in [
        (
            "a: [b, , c]\n",
            "1:8 a[1] does not fit into the list that begins at line 1, column 4; put a comma between its parts, and quotes around a text that holds one of , : [ ] { }".to_owned(),
        ),
        (
            "a: 1\n...\nb: 1\n",
            "3:1  found text behind the end of the document, which ... marks; begin the next document with a line ---, or remove the line ...".to_owned(),
        ),
        (
            "a: 1\n... b\n",
            "2:5  found more behind ... on its line; put it on a line of its own, behind a line ---".to_owned(),
        ),
        ("--- a: 1\n", "1:6  found a key on the line of ---; put it on the next line".to_owned()),
        (
            "a:\n- b: 1\n  - c: 1\n",
            "3:3 a[0] this list item is indented by 2, the one before it, at line 2, by 0; give both the same".to_owned(),
        ),
        (
            "a:\n  - b\n - c\n",
            "3:2  this list item is indented by 1, the one before it, at line 2, by 2; give both the same".to_owned(),
        ),
        (
            "a:\n- b\n  - c\n- d\n",
            "3:3 a[0] is indented more than the item before it, so it goes on with that one's text; give both the same indentation, or put the whole text in quotes".to_owned(),
        ),
        ("a: 1\n- b\n", "2:1  found a list item among keys; put it below the key of its list".to_owned()),
        ("a: - b\n", "1:4 a found a list item behind a key; put it on the next line, or the list in brackets".to_owned()),
        (
            "a: 1\n  b: 1\n",
            "2:3  is indented by 2, more than the key at line 1, which has its value already; give it the indentation of its neighbours".to_owned(),
        ),
        (
            "a:\n    b: 1\n  c: 1\n",
            "3:3  is indented by 2, unlike the lines that it belongs to; give it their indentation".to_owned(),
        ),
        ("a: |x\n  b\n", "1:4 a found more behind | or >; the text begins on the next line".to_owned()),
    ] {
        assert_eq!(faults(text), [expected], "{text:?}");
    }
    // Quotes, or a text of lines, may hold what looks like a list item.
    assert_eq!(values("a: \"b\n  - c\"\nd: |\n  e\n  - f\n").len(), 1);
}

#[test]
fn all_faults_of_a_readable_file_are_told() {
    assert_eq!(faults("a: &x 1\na: 2\nc: !t 3\n").len(), 3);
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_place() {
    let fault = read(b"a: 1\n# caf\xe9\n").unwrap_err();
    assert_eq!(
        fault,
        [Fault {
            at: Mark { line: 2, column: 6 },
            path: String::new(),
            message: "found the byte 0xe9, which is not UTF-8; save the file as UTF-8".to_owned(),
        }]
    );
    assert!(read(b"\xff\xfea\0:\0").is_err());
}

#[test]
fn bounds_hold_for_size_depth_and_count() {
    let long = format!("a: {}\n", "x".repeat(limits::SPEC_FILE_BYTES_MAX));
    assert_eq!(
        faults(&long),
        [
            "0:0  the file has more than 262144 bytes, which is all that is read; split it into several"
        ]
    );
    let deep = |levels: usize| format!("a: {}{}\n", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(values(&deep(limits::SPEC_DEPTH_MAX - 1)).len(), 1);
    assert!(faults(&deep(limits::SPEC_DEPTH_MAX))[0].contains("more than 32 levels deep"));
    let many = format!("a: [{}]\n", "1,".repeat(limits::SPEC_NODES_MAX));
    assert!(faults(&many)[0].contains("more than 20000 values"));
}

/// The clock is read here to bound the time, as a hostile file must not hold up the others.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test bounds real time")]
fn hostile_files_are_refused_soon() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, of) in ('b'..='j').zip('a'..) {
        let references = vec![format!("*{of}"); 10].join(",");
        bomb.push_str(&format!("{name}: &{name} [{references}]\n"));
    }
    for (name, text) in [
        ("brackets", "[".repeat(64 * 1024)),
        ("braces", "{".repeat(64 * 1024)),
        ("brackets to the bound", "[".repeat(limits::SPEC_FILE_BYTES_MAX)),
        ("lists in lists", "- ".repeat(32 * 1024)),
        ("keys of keys", "? ".repeat(32 * 1024)),
        ("maps in maps", "{a: ".repeat(16 * 1024)),
        ("deep blocks", (0..300).map(|n| format!("{}a:\n", " ".repeat(n))).collect()),
        ("alias bomb", bomb),
        ("an open quote", format!("a: \"{}", "x\n".repeat(32 * 1024))),
        ("colons", ": ".repeat(32 * 1024)),
        ("NULs", "\0".repeat(64 * 1024)),
        ("percent", "%".repeat(64 * 1024)),
    ] {
        let before = Instant::now();
        assert!(read(text.as_bytes()).is_err(), "{name}");
        let spent = before.elapsed();
        assert!(spent < Duration::from_secs(2), "{name} took {spent:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        drop(read(&bytes));
    }

    #[test]
    fn no_yamlish_text_makes_it_panic(text in "[-a:*&!|>'\"{}\\[\\],?#%@ \n\t0-9.]{0,60}") {
        drop(read(text.as_bytes()));
    }

    #[test]
    fn json_is_read_as_it_was_written(
        texts in proptest::collection::btree_map("[a-zé\"\\\\{}:# ]{0,8}", "[^\\pC\\p{Zl}\\p{Zp}]{0,12}", 0..6),
        number in proptest::prelude::any::<i64>(),
    ) {
        let value = json!({ "texts": texts, "number": number, "none": null, "yes": true });
        let read = values(&value.to_string());
        proptest::prop_assert_eq!(read, [value]);
    }
}
