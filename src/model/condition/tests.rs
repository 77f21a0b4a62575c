//! Given a condition and how an upstream ended, this answer; expected values are by hand.

use serde_json::{Value, json};

use super::{Condition, FUNCTIONS};
use crate::limits;
use crate::model::json::JsonMap;

fn map(value: Value) -> JsonMap {
    let Value::Object(map) = value else { panic!("an object") };
    map
}

/// Asks about an upstream that SUCCEEDED with these values.
fn ask(text: &str) -> Result<bool, String> {
    let output = json!({
        "rows": 3, "ratio": 0.5, "none": null, "ok": true, "day": "2026-11-30", "big": u64::MAX,
        "files": ["a.csv", "b.csv"], "counts": [1, 2, 3], "deep": {"x": {"y": 1}},
    });
    let params = map(json!({"shard": 2, "name": "réseau"}));
    Condition::parse(text).unwrap().evaluate(&output, &params, "SUCCEEDED")
}

fn refused(text: &str) -> String {
    Condition::parse(text).unwrap_err().to_string()
}

#[test]
fn a_condition_is_asked_about_output_params_and_state() {
    for (text, expected) in [
        ("true", true),
        ("output.rows > 0", true),
        ("output.rows == 3", true),
        ("output.rows == 3.0", true),
        ("output.ratio < 1", true),
        ("output.rows + 1 == 4", true),
        ("output.big > 1", true),
        ("params.shard == 2 && state == 'SUCCEEDED'", true),
        ("params.name == \"réseau\"", true),
        ("state in ['FAILED', 'TIMEOUT']", false),
        ("output.none == null", true),
        ("!output.ok", false),
        ("output.day >= '2026-12-01'", false),
        ("has(output.missing) ? output.missing : output.ok", true),
        ("has(output.missing) && output.missing > 1", false),
        ("output['rows'] == 3", true),
        ("output.deep.x.y == 1", true),
        ("size(output.files) == 2", true),
        ("'a.csv' in output.files", true),
        ("output.counts.all(n, n > 0)", true),
        ("output.counts.exists(n, n > 3)", false),
        ("output.counts.exists_one(n, n == 2)", true),
        ("size(output.counts.filter(n, n > 1)) == 2", true),
        ("output.counts.map(n, n * 2)[0] == 2", true),
        ("output.day.startsWith('2026')", true),
        ("output.day.endsWith('30') && output.day.contains('-11-')", true),
        ("int('7') == 7 && string(7) == '7' && double('1.5') == 1.5 && bool('true')", true),
        ("type(output.rows) == int", true),
        ("dyn(output.rows) == 3", true),
    ] {
        assert_eq!(ask(text), Ok(expected), "{text}");
    }
}

#[test]
fn every_function_that_is_known_is_there() {
    let used = [
        ("all", "[1, 2].all(n, n > 0)"),
        ("bool", "bool('true')"),
        ("contains", "'abc'.contains('b')"),
        ("double", "double('1.5') == 1.5"),
        ("dyn", "dyn(1) == 1"),
        ("endsWith", "'abc'.endsWith('c')"),
        ("exists", "[1, 2].exists(n, n == 2)"),
        ("exists_one", "[1, 2].exists_one(n, n == 2)"),
        ("filter", "[1, 2].filter(n, n > 1) == [2]"),
        ("has", "has(output.rows)"),
        ("int", "int('7') == 7"),
        ("map", "[1, 2].map(n, n * 2) == [2, 4]"),
        ("size", "size([1, 2]) == 2 && 'abc'.size() == 3"),
        ("startsWith", "'abc'.startsWith('a')"),
        ("string", "string(7) == '7'"),
        (
            "type",
            "type(1) == int && type([]) == list && type({}) == map && type(null) == null_type",
        ),
    ];
    assert_eq!(used.map(|(name, _)| name), FUNCTIONS);
    for (name, text) in used {
        assert_eq!(ask(text), Ok(true), "{name}");
    }
}

#[test]
fn what_has_no_answer_says_why() {
    for (text, expected) in [
        ("output.rows", "gives a number; expected true or false"),
        ("output.files", "gives a list; expected true or false"),
        ("output.nothing > 1", "found no key nothing; ask has(…) first if it may be missing"),
        ("output.rows > 'x'", "> does not go with int and string"),
        ("output.rows / 0 == 1", "divides by zero"),
        ("output.rows * 9223372036854775807 > 0", "the number is too large"),
        ("output.files[9] == 'x'", "the list has no such position"),
        ("output.day.size() > size()", "size does not go with "),
    ] {
        assert_eq!(ask(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn an_error_has_its_column_and_the_nearest_known_name() {
    for (text, expected) in [
        ("output.x >", "at column 11: found the end; expected a value"),
        (
            "output.x = 1",
            "at column 10: found \"=\"; expected the end or an operator such as == or &&",
        ),
        ("é == output.x", "at column 1: is not CEL: unexpected character"),
        (
            "'é' == output.x)",
            "at column 16: found \")\"; expected the end or an operator such as == or &&",
        ),
        ("output.x\n  > )", "at column 14: is not CEL: unexpected token"),
        (
            "ouput.x > 1",
            "at column 1: found the unknown variable ouput; known are output, params, state; did you mean output?",
        ),
        (
            "output.x > rows",
            "at column 12: found the unknown variable rows; known are output, params, state",
        ),
        (
            "output.x.startWith('a')",
            "at column 10: found the unknown function startWith; known are all, bool, contains, double, dyn, endsWith, exists, exists_one, filter, has, int, map, size, startsWith, string, type; did you mean startsWith?",
        ),
        ("", "is empty; expected a condition such as output.rows > 0"),
        (" \n", "is empty; expected a condition such as output.rows > 0"),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn what_can_be_neither_true_nor_false_is_refused_as_far_as_the_outermost_operator_tells() {
    for (text, kind) in [
        ("output.a + output.b", "a sum"),
        ("output.a - 1", "a number"),
        ("-output.a", "a number"),
        ("size(output.a)", "a number"),
        ("output.a.size()", "a number"),
        ("1.5", "a number"),
        ("b'x'", "bytes"),
        ("'x'", "a text"),
        ("null", "null"),
        ("state", "a text"),
        ("params", "a map"),
        ("[1]", "a list"),
        ("{'a': 1}", "a map"),
        ("output.l.map(x, x > 1)", "a list"),
        ("output.l.filter(x, x > 1)", "a list"),
        ("output.ok ? 'a' : 1", "a text"),
        ("bool", "a type"),
    ] {
        let expected = format!(
            "gives {kind}; expected true or false, as of a condition such as output.rows > 0"
        );
        assert_eq!(refused(text), expected, "{text}");
    }
    for may_be in [
        "output",
        "output.ok",
        "output['ok']",
        "output.l[0]",
        "bool(output.ok)",
        "dyn(output.ok)",
        "!output.ok",
        "output.ok ? output.ok : 1",
        "output.ok && output.good",
        "output.l.exists_one(x, x > 1)",
        "output.l.all(x, x > 1)",
        "has(output.ok)",
        "1 in output.l",
    ] {
        assert!(Condition::parse(may_be).is_ok(), "{may_be}");
    }
}

#[test]
fn a_stored_condition_without_truth_is_still_read_and_gives_no_answer() {
    let stored: Condition = serde_json::from_str("\"1 + 1\"").unwrap();
    let said = stored.evaluate(&json!({}), &JsonMap::new(), "SUCCEEDED");
    assert_eq!(said, Err("gives a number; expected true or false".to_owned()));
}

#[test]
fn a_loops_variable_is_known_inside_of_it_only() {
    assert!(Condition::parse("output.l.all(x, x > 0)").is_ok());
    assert!(refused("output.l.all(x, x > 0) && x > 0").contains("the unknown variable x"));
    assert!(refused("output.l.all(x, y > 0)").contains("the unknown variable y"));
    assert_eq!(
        refused("output.l.all(x, output.l.all(y, x == y))"),
        "goes through a list inside of another; one at a time"
    );
    assert!(Condition::parse("output.l.all(x, x > 0) && output.m.all(y, y > 0)").is_ok());
}

#[test]
fn bounds_hold_for_length_depth_and_work() {
    let long = format!("state == '{}'", "x".repeat(limits::CONDITION_BYTES_MAX));
    assert_eq!(refused(&long), "has 1035 bytes; at most 1024 are read");
    for (name, text) in [
        ("brackets", format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000))),
        ("open brackets", "(".repeat(1000)),
        ("lists", format!("{}1{}", "[".repeat(400), "]".repeat(400))),
        ("positions", format!("{}1{}", "output[".repeat(100), "]".repeat(100))),
        ("calls", format!("{}1{}", "size(".repeat(150), ")".repeat(150))),
        ("sums", format!("1{} == 1", "+1".repeat(400))),
        ("keys", format!("output{}", ".a".repeat(400))),
        ("maps", format!("{}1{}", "{1:".repeat(200), "}".repeat(200))),
    ] {
        assert!(Condition::parse(&text).is_err(), "{name}");
    }
    let sum = format!("1{} > 1", "+1".repeat(20));
    assert_eq!(ask(&sum), Ok(true));
    // The answer to a loop takes as long as there are values.
    let condition = Condition::parse("output.all(n, n > 0)").unwrap();
    let of = |length: usize| condition.evaluate(&json!(vec![1; length]), &JsonMap::new(), "FAILED");
    assert_eq!(of(limits::CONDITION_VALUES_MAX - 1), Ok(true));
    assert_eq!(
        of(limits::CONDITION_VALUES_MAX),
        Err("output and params hold 1001 values; a condition that goes through a list or map is asked about at most 1000".to_owned())
    );
    let plain = Condition::parse("size(output) > 5").unwrap();
    let many = json!(vec![1; 30_000]);
    assert_eq!(plain.evaluate(&many, &JsonMap::new(), "FAILED"), Ok(true));
}

#[test]
fn the_stored_form_is_the_text_and_equality_is_that_of_texts() {
    let condition = Condition::parse("output.rows > 0").unwrap();
    let json = serde_json::to_string(&condition).unwrap();
    assert_eq!(json, "\"output.rows > 0\"");
    assert_eq!(serde_json::from_str::<Condition>(&json).unwrap(), condition);
    assert_ne!(Condition::parse("output.rows>0").unwrap(), condition);
    assert!(serde_json::from_str::<Condition>("\"output.rows >\"").is_err());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[a-z.()\\[\\]{}'\"0-9+*/%<>=!&|?:, -]{0,60}") {
        if let Ok(condition) = Condition::parse(&text) {
            drop(condition.evaluate(&json!({"a": [1, "x", null]}), &JsonMap::new(), "FAILED"));
        }
    }

    #[test]
    fn no_words_make_it_panic(words in proptest::collection::vec(proptest::sample::select(vec![
        "output", "params", "state", ".a", "[0]", "(", ")", "[", "]", "{", "}", "1", "0", "-", "!",
        "9223372036854775807", "1e308", "'x'", "null", "true", "+", "*", "/", "%", "<", "==", "&&",
        "||", "?", ":", ",", "in", "has(output.a)", ".all(x, x)", ".map(x, x)", "int(", "double(",
        "string(", "size(", "type(", ".size()", "b'x'", "1u",
    ]), 0..14)) {
        let text = words.join(" ");
        if let Ok(condition) = Condition::parse(&text) {
            let output = json!({"a": [1, "x", null, {"b": -1.5}]});
            drop(condition.evaluate(&output, &JsonMap::new(), "FAILED"));
        }
    }
}
