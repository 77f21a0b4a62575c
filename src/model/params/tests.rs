use serde_json::json;

use super::*;

fn plain(kind: ParamType) -> ParamSchema {
    ParamSchema {
        kind,
        required: false,
        default: None,
        allowed: Vec::new(),
        min: None,
        max: None,
        pattern: None,
        secret: false,
    }
}

fn declared(schemas: &[(&str, ParamSchema)]) -> BTreeMap<String, ParamSchema> {
    schemas.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect()
}

fn map(value: &Value) -> JsonMap {
    value.as_object().unwrap().clone()
}

#[test]
fn typed_and_text_values_end_in_one_stored_form() {
    use ParamType::{Bool, Date, Datetime, Duration, Int, Json, Number, String};
    for (kind, given, stored) in [
        (String, json!("4"), json!("4")),
        (String, json!(""), json!("")),
        (Int, json!(4), json!(4)),
        (Int, json!("4"), json!(4)),
        (Int, json!("-9223372036854775808"), json!(i64::MIN)),
        (Number, json!(0.5), json!(0.5)),
        (Number, json!("0.5"), json!(0.5)),
        (Number, json!("4"), json!(4)),
        (Bool, json!(true), json!(true)),
        (Bool, json!("false"), json!(false)),
        (Date, json!("2028-02-29"), json!("2028-02-29")),
        (Datetime, json!("2026-11-30T02:00:00+08:00"), json!("2026-11-30T02:00:00+08:00")),
        (Datetime, json!("2026-11-30T02:00:00.123Z"), json!("2026-11-30T02:00:00.123Z")),
        (Duration, json!("1h30m"), json!(5_400_000)),
        (Duration, json!("30s"), json!(30_000)),
        (Duration, json!("250"), json!(250)),
        (Duration, json!(250), json!(250)),
        (Json, json!("[1, {\"a\": null}]"), json!([1, {"a": null}])),
        (Json, json!("hello"), json!("hello")),
        (Json, json!({"a": 1}), json!({"a": 1})),
        (Json, json!(null), json!(null)),
    ] {
        assert_eq!(plain(kind).check(&given), Ok(stored), "{kind:?} {given}");
    }
}

#[test]
fn a_stored_form_checked_again_stays_as_it_is() {
    for (kind, given) in [
        (ParamType::Duration, json!("1h30m")),
        (ParamType::Int, json!("4")),
        (ParamType::Date, json!("2026-11-30")),
        (ParamType::Json, json!("{\"a\": \"x\"}")),
    ] {
        let stored = plain(kind).check(&given).unwrap();
        assert_eq!(plain(kind).check(&stored), Ok(stored.clone()), "{kind:?}");
    }
}

#[test]
fn values_of_another_type_are_refused() {
    use ParamType::{Bool, Date, Datetime, Duration, Int, Number, String};
    for (kind, given) in [
        (String, json!(4)),
        (String, json!(null)),
        (Int, json!("4.5")),
        (Int, json!(4.5)),
        (Int, json!(" 4")),
        (Int, json!("")),
        (Int, json!("9223372036854775808")),
        (Int, json!(true)),
        (Number, json!("NaN")),
        (Number, json!("inf")),
        (Number, json!("1,5")),
        (Bool, json!("yes")),
        (Bool, json!(1)),
        (Date, json!("2026-02-29")),
        (Date, json!("2026-2-9")),
        (Date, json!("2026-11-30T00:00")),
        (Date, json!(20_261_130)),
        (Datetime, json!("2026-11-30T02:00:00")),
        (Datetime, json!("2026-11-30")),
        (Datetime, json!("2026-11-30T24:00:00Z")),
        (Datetime, json!("2026-11-30T02:00:00+01:00[Europe/Berlin]")),
        (Duration, json!("-5m")),
        (Duration, json!(-5)),
        (Duration, json!(0.5)),
        (Duration, json!("soon")),
    ] {
        let problem = plain(kind).check(&given).unwrap_err();
        assert!(problem.contains(&given.to_string()), "{kind:?} {given}: {problem}");
        assert!(problem.contains(kind.expected()), "{kind:?} {given}: {problem}");
    }
}

#[test]
fn bounds_are_of_the_type() {
    for (kind, least, greatest, good, bad) in [
        (ParamType::Int, json!(1), json!(9), json!("9"), json!("10")),
        (ParamType::Number, json!(0), json!(1.5), json!(1.5), json!(1.6)),
        (
            ParamType::Date,
            json!("2026-01-01"),
            json!("2026-12-31"),
            json!("2026-12-31"),
            json!("2025-12-31"),
        ),
        (
            ParamType::Datetime,
            json!("2026-01-01T00:00:00Z"),
            json!("2026-01-01T12:00:00Z"),
            json!("2026-01-01T13:00:00+01:00"),
            json!("2026-01-01T12:00:00-01:00"),
        ),
        (ParamType::Duration, json!("1s"), json!("1h"), json!("60m"), json!("61m")),
    ] {
        let schema = ParamSchema { min: Some(least), max: Some(greatest), ..plain(kind) };
        assert_eq!(schema.faults(), Vec::<String>::new());
        assert!(schema.check(&good).is_ok(), "{kind:?}");
        assert!(schema.check(&bad).unwrap_err().contains("allowed is"), "{kind:?}");
    }
}

#[test]
fn only_the_listed_values_are_taken() {
    let schema =
        ParamSchema { allowed: vec![json!("north"), json!("south")], ..plain(ParamType::String) };
    assert!(schema.check(&json!("south")).is_ok());
    assert_eq!(
        schema.check(&json!("nort")).unwrap_err(),
        "found \"nort\"; expected one of \"north\", \"south\"; did you mean \"north\"?"
    );
    let schema = ParamSchema { allowed: vec![json!(1), json!(4.0)], ..plain(ParamType::Number) };
    assert!(schema.check(&json!("4")).is_ok());
    assert!(schema.check(&json!(2)).is_err());
}

#[test]
fn a_pattern_matches_the_whole_text() {
    let schema = ParamSchema { pattern: Some("a|ab".to_owned()), ..plain(ParamType::String) };
    assert!(schema.check(&json!("ab")).is_ok());
    for bad in ["abc", "xab", "ab\n"] {
        assert!(schema.check(&json!(bad)).unwrap_err().contains("a|ab"), "{bad}");
    }
}

#[test]
fn a_secret_is_never_in_a_message() {
    let secret = "hunter2-and-a-long-tail";
    let of = |change: fn(&mut ParamSchema)| {
        let mut schema = ParamSchema { secret: true, ..plain(ParamType::String) };
        change(&mut schema);
        schema
    };
    for schema in [
        of(|s| s.kind = ParamType::Int),
        of(|s| s.allowed = vec![json!("hunter3-and-a-long-tail")]),
        of(|s| s.pattern = Some("[0-9]+".to_owned())),
    ] {
        let problem = schema.check(&json!(secret)).unwrap_err();
        assert!(!problem.contains("hunter"), "{problem}");
    }
    let schema = of(|s| s.default = Some(json!("{hunter2}")));
    let text = format!("{:?}", schema.faults());
    assert!(!text.contains("hunter") && text.contains("default"), "{text}");
    let errors = fill_defaults(&declared(&[("p", schema)]), &JsonMap::new(), &|_| None);
    assert!(!format!("{errors:?}").contains("hunter"));
}

#[test]
fn all_that_is_wrong_is_said_by_name() {
    let declared = declared(&[
        ("bizDate", plain(ParamType::Date)),
        ("size", plain(ParamType::Int)),
        ("region", plain(ParamType::String)),
    ]);
    let given = map(&json!({"bizdate": "2026-11-30", "size": "x", "region": "a", "qqq": 1}));
    let errors = check_given(&declared, &given).unwrap_err();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "parameter bizdate: is not declared by the task; did you mean bizDate?",
            "parameter qqq: is not declared by the task; declared are bizDate, region, size",
            "parameter size: found \"x\"; expected a whole number of at most 64 bits",
        ]
    );
    let stored = check_given(&declared, &map(&json!({"size": "4"}))).unwrap();
    assert_eq!(Value::Object(stored), json!({"size": 4}));
    assert!(check_given(&BTreeMap::new(), &JsonMap::new()).is_ok());
}

#[test]
fn required_parameters_without_a_value_are_named() {
    let needed = ParamSchema { required: true, ..plain(ParamType::Json) };
    let declared =
        declared(&[("a", needed.clone()), ("b", needed), ("c", plain(ParamType::String))]);
    assert_eq!(missing(&declared, &map(&json!({"b": null}))), ["a"]);
    assert_eq!(missing(&declared, &map(&json!({"a": 1, "b": 2}))), Vec::<String>::new());
}

#[test]
fn defaults_are_filled_in_whatever_order_they_lean_on_each_other() {
    let with = |kind, default| ParamSchema { default: Some(default), ..plain(kind) };
    let declared = declared(&[
        ("a", with(ParamType::String, json!("{params.z}/in"))),
        ("given", with(ParamType::Int, json!(1))),
        ("limit", with(ParamType::Int, json!("{params.given}0"))),
        ("list", with(ParamType::Json, json!(["{date}", {"n": 1}]))),
        ("none", plain(ParamType::String)),
        ("z", with(ParamType::Date, json!("{date}"))),
    ]);
    let date = |name: &str| (name == "date").then(|| "2026-11-30".to_owned());
    let filled = fill_defaults(&declared, &map(&json!({"given": 7})), &date).unwrap();
    assert_eq!(
        Value::Object(filled),
        json!({
            "a": "2026-11-30/in",
            "given": 7,
            "limit": 70,
            "list": ["2026-11-30", {"n": 1}],
            "z": "2026-11-30",
        })
    );
    let errors = fill_defaults(&declared, &JsonMap::new(), &|_| None).unwrap_err();
    let names: Vec<&str> = errors.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["a", "list", "z"]);
    assert!(errors[2].problem.contains("{date} has no value here"), "{}", errors[2]);
}

#[test]
fn a_declaration_at_odds_with_itself_has_faults() {
    let int = || plain(ParamType::Int);
    for (schema, part) in [
        (ParamSchema { min: Some(json!(2)), max: Some(json!(1)), ..int() }, "min: is greater"),
        (ParamSchema { min: Some(json!("x")), ..int() }, "min: found \"x\""),
        (ParamSchema { min: Some(json!(1)), ..plain(ParamType::String) }, "min: only numbers"),
        (ParamSchema { allowed: vec![json!("x")], ..int() }, "enum: found \"x\""),
        (ParamSchema { pattern: Some("a)(b".to_owned()), ..int() }, "pattern: the pattern a)(b"),
        (ParamSchema { default: Some(json!("x")), ..int() }, "default: found \"x\""),
        (ParamSchema { default: Some(json!("{nope!}")), ..int() }, "default: found the unknown"),
    ] {
        let faults = schema.faults();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with(part), "{faults:?}");
    }
    let late = ParamSchema { default: Some(json!("{date}")), ..plain(ParamType::Date) };
    assert_eq!(late.faults(), Vec::<String>::new());
}

#[test]
fn only_single_values_have_a_text() {
    assert_eq!(scalar_text(&json!("a b")), Some("a b".to_owned()));
    assert_eq!(scalar_text(&json!(4.5)), Some("4.5".to_owned()));
    assert_eq!(scalar_text(&json!(true)), Some("true".to_owned()));
    for none in [json!(null), json!([1]), json!({"a": 1})] {
        assert_eq!(scalar_text(&none), None);
    }
    assert_eq!(placeholder_text(&json!([1, "a"])), "[1,\"a\"]");
}

#[test]
fn defaults_that_make_each_other_longer_and_longer_are_cut_off() {
    let long = "x".repeat(60_000);
    let default =
        |text: &str| ParamSchema { default: Some(json!(text)), ..plain(ParamType::String) };
    let value = |name: &str| (name == "static.b").then(|| long.clone());
    let one = BTreeMap::from([("a".to_owned(), default("{static.b}"))]);
    assert_eq!(fill_defaults(&one, &JsonMap::new(), &value).unwrap()["a"], json!(long));
    let many: BTreeMap<String, ParamSchema> =
        (0..1500).map(|n| (format!("p{n:04}"), default("{static.b}{static.b}"))).collect();
    let errors = fill_defaults(&many, &JsonMap::new(), &value).unwrap_err();
    assert!(errors.len() == 1 && errors[0].problem.contains("131072 bytes"), "{errors:?}");
}
