use serde::Deserialize;

use super::*;

mod changes;
mod count;
mod told;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|| panic!("{text}"))
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn expr(text: &str) -> CronExpr {
    CronExpr::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The next fires, one asked for after the other.
fn fires(text: &str, zone: &TimeZone, after: Timestamp, count: usize) -> Vec<Timestamp> {
    let expr = expr(text);
    let next = |after: &Timestamp| expr.next(*after, zone);
    std::iter::successors(next(&after), next).take(count).collect()
}

/// A line of `tests/data/cron/vectors.jsonl`: answers that several implementations agree on; or of
/// `disputed.jsonl`: what we answer where they differ.
#[derive(Deserialize)]
struct Vector {
    id: String,
    expr: String,
    tz: String,
    after: String,
    next: Vec<String>,
}

#[test]
fn every_vector_has_its_instants() {
    let agreed = include_str!("../../../tests/data/cron/vectors.jsonl");
    let disputed = include_str!("../../../tests/data/cron/disputed.jsonl");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for line in agreed.lines().chain(disputed.lines()) {
        let vector: Vector = serde_json::from_str(line).unwrap();
        let mut expected: Vec<Timestamp> = vector.next.iter().map(|t| at(t)).collect();
        // The years are those from 1970 to 2100.
        if expected[0] < at("1970-01-01T00:00:00Z") {
            continue;
        }
        expected.retain(|instant| *instant < at("2101-01-01T00:00:00Z"));
        checked += 1;
        let zone = zone(&vector.tz);
        let found = fires(&vector.expr, &zone, at(&vector.after), vector.next.len());
        if found != expected {
            let (id, text) = (&vector.id, &vector.expr);
            wrong.push(format!("{id} {text} {}: {found:?}, not {expected:?}", vector.tz));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(checked, 801 + 379);
}

/// A line of `tests/data/cron/lines.jsonl`: what is to be refused and what accepted.
#[derive(Deserialize)]
struct Line {
    id: String,
    expr: String,
    accept: bool,
    reason: String,
    equivalent: Option<String>,
}

#[test]
fn every_line_is_accepted_or_refused() {
    let data = include_str!("../../../tests/data/cron/lines.jsonl");
    let mut checked = 0;
    for line in data.lines() {
        let Line { id, expr: text, accept, reason, equivalent } =
            serde_json::from_str(line).unwrap();
        checked += 1;
        let parsed = CronExpr::parse(&text);
        assert_eq!(parsed.is_ok(), accept, "{id} {text:?} ({reason}): {parsed:?}");
        if let Some(other) = equivalent {
            let after = at("2027-12-30T11:22:33Z");
            let of = |text| fires(text, &TimeZone::UTC, after, 30);
            assert_eq!(of(&text), of(&other), "{id} {text:?} {other:?}");
        }
    }
    assert_eq!(checked, 145);
}

#[test]
fn an_error_names_field_item_column_and_what_is_allowed() {
    for (text, column, parts) in [
        ("61 * * * *", 1, &["minute", "\"61\"", "column 1", "0-59"][..]),
        ("0 0 1,,2 * *", 7, &["day of month", "\"\"", "column 7", "empty"]),
        ("  0 24 * * *", 5, &["hour", "\"24\"", "column 5", "0-23"]),
        ("0 0 1 13 *", 7, &["month", "1-12"]),
        ("0 0 * * 1,8", 11, &["day of week", "\"8\"", "0-7"]),
        ("0 0 * * Monday", 9, &["write MON"]),
        ("0 0 * * L", 9, &["ambiguous", "FRIL"]),
        ("0 0 * * 1#6", 9, &["1-5"]),
        ("*5 * * * *", 1, &["*/5"]),
        ("*/0 * * * *", 1, &["step", "from 1"]),
        ("? * * * *", 1, &["write *"]),
        ("0 0 1,? * *", 7, &["day of month", "\"?\"", "alone"]),
        ("0 0 * * ?/2,1", 9, &["day of week", "\"?/2\"", "alone"]),
        ("0 0 W15 * *", 5, &["\"W15\"", "write 15W"]),
        ("0 0 wl * *", 5, &["\"wl\"", "write LW"]),
        ("0 0 * * L5", 9, &["\"L5\"", "write 5L"]),
        ("0 0 * * LFRI", 9, &["\"LFRI\"", "write FRIL"]),
        ("0 0 * * 1W", 9, &["W stands only in the day of month"]),
        ("0 L * * *", 3, &["hour", "L stands only in the day fields"]),
        ("H * * * *", 1, &["H is not supported"]),
        ("0~30 * * * *", 1, &["random"]),
        ("0 0 1 1 * 2027", 11, &["2027", "out of range", "six fields"]),
        ("0 0 * * * /bin/true", 11, &["six fields", "command"]),
        ("0 0 0 1 1 * 2027", 0, &["found 7 fields", "expected 5", "year"]),
        ("* * * *", 0, &["found 4 fields", "blanks"]),
        ("0 0 * * * # nightly", 11, &["comment"]),
        ("# 0 0 * * *", 1, &["comment"]),
        ("#0 0 * * *", 1, &["comment"]),
        ("@daily # nightly", 8, &["comment"]),
        ("CRON_TZ=UTC 0 0 * * *", 1, &["timezone"]),
        ("TZ=UTC", 1, &["timezone"]),
        ("MAILTO=root", 1, &["MAILTO=root", "env"]),
        ("@reboot", 1, &["boot: true"]),
        ("@every 5m", 1, &["every: 5m"]),
        ("@dayly", 1, &["did you mean @daily?"]),
        ("@daily x", 1, &["nothing behind"]),
        ("0 0 30 2 *", 5, &["never fire", "day of month \"30\"", "month \"2\""]),
        ("0 0 0 31 APR,jun */2", 7, &["\"31\"", "\"APR,jun\"", "day of week \"*/2\""]),
        ("0 0\u{a0}* * *", 4, &["character"]),
        ("0 0 * * *\n0 1 * * *", 10, &["one line"]),
        ("", 0, &["empty"]),
    ] {
        let error = CronExpr::parse(text).unwrap_err();
        assert_eq!(error.column, column, "{text:?}: {error}");
        for part in parts {
            assert!(error.problem.contains(part), "{text:?}: {error}");
        }
    }
    // A hint that does not fit is worse than none.
    let error = CronExpr::parse("*; * * * *").unwrap_err();
    assert!(!error.problem.contains("a step is written"), "{error}");
    let long = format!("{} * * * *", "1,".repeat(600));
    assert!(CronExpr::parse(&long).unwrap_err().problem.contains("1024"));
}

/// From 2026-01-01, a Thursday.
#[test]
fn weekdays_are_counted_as_in_every_crontab() {
    for (text, days) in [
        ("0 9 * * 1-5", [1, 2, 5, 6, 7]),
        ("0 9 * * MON-FRI", [1, 2, 5, 6, 7]),
        ("0 9 * * 0", [4, 11, 18, 25, 32]),
        ("0 9 * * 7", [4, 11, 18, 25, 32]),
        ("0\t9  *  *  fri-sun", [2, 3, 4, 9, 10]),
        ("0 9 * * 5-7", [2, 3, 4, 9, 10]),
        ("0 9 * * sat-sun", [3, 4, 10, 11, 17]),
        ("0 9 * * 7-1/2", [4, 11, 18, 25, 32]),
        ("0 9 * * 7-2", [4, 5, 6, 11, 12]),
        ("0 9 13 * FRI", [2, 9, 13, 16, 23]),
        // The first Monday: AND, because a field starts with a star.
        ("0 9 */100,1-7 1 MON", [5, 369, 733, 1097, 1468]),
    ] {
        let start = at("2026-01-01T00:00:00Z");
        let day = |at: Timestamp| 1 + at.since(start).as_secs() / 86_400;
        let found: Vec<u64> = fires(text, &TimeZone::UTC, start, 5).into_iter().map(day).collect();
        assert_eq!(found, days, "{text}");
    }
}

#[test]
fn what_surprises_is_warned_of() {
    for (text, part) in [
        ("*/90 * * * *", "*/90 is wider than its range, only 0"),
        ("*/60 * * * *", "wider"),
        ("0 */25 * * *", "hour: the step of */25"),
        ("0 0 */32 * *", "only 1"),
        ("*/45 * * * *", "starts anew at 0 in every hour"),
        ("0 */5 * * *", "every day"),
        ("* 0 2 * * *", "every second"),
        ("0 0 13 * FRI", "either the day of month (13) or the day of week (FRI)"),
        ("0 0 */2 * MON", "both the day of month (*/2)"),
        ("0 0 31 * *", "without a day 31"),
        ("0 0 29 2 *", "without a day 29"),
    ] {
        let warnings = expr(text).warnings();
        assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
        assert!(warnings[0].contains(part), "{text}: {warnings:?}");
    }
    for text in ["* * * * *", "*/15 * * * *", "0 0 31 1,3 *", "0 0 ? * 1", "@daily", "0 0 L * *"] {
        assert_eq!(expr(text).warnings(), Vec::<String>::new(), "{text}");
    }
}

/// Instants and notes by hand from the zones' published changes.
#[test]
fn the_notes_say_what_the_clock_did() {
    for (text, tz, after, instant, note) in [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            "2026-03-29T01:00:00Z",
            Some("moved: 02:30 does not exist on this day"),
        ),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", None),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            "2026-11-01T05:30:00Z",
            Some("first of two: 01:30 happens twice"),
        ),
        // Asked in the second pass: tomorrow, not again today.
        ("30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", "2026-11-02T06:30:00Z", None),
        (
            "*/30 * * * *",
            "America/New_York",
            "2026-11-01T06:10:00Z",
            "2026-11-01T06:30:00Z",
            Some("second of two: 01:30 happens twice"),
        ),
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            "2026-03-30T00:00:00Z",
            Some("02:00, 02:30 do not exist on 2026-03-29: not fired"),
        ),
        // A whole day was skipped: that is no clock change to make up for.
        (
            "0 12 30 12 *",
            "Pacific/Apia",
            "2011-12-29T00:00:00Z",
            "2012-12-29T22:00:00Z",
            Some("12:00 does not exist on 2011-12-30: not fired"),
        ),
    ] {
        let found = expr(text).next_told(at(after), &zone(tz)).unwrap();
        assert_eq!(found, (at(instant), note.map(str::to_owned)), "{text} {tz} {after}");
    }
}

#[test]
fn fractions_of_a_second_and_the_ends_of_time_are_no_trouble() {
    let daily = expr("0 12 * * *");
    let next = |after| daily.next(after, &TimeZone::UTC);
    assert_eq!(next(at("2026-11-30T11:59:59.999Z")), Some(at("2026-11-30T12:00:00Z")));
    assert_eq!(next(at("2026-11-30T12:00:00.000Z")), Some(at("2026-12-01T12:00:00Z")));
    for early in [at("1900-01-01T00:00:00Z"), Timestamp::from_millis(i64::MIN)] {
        assert_eq!(next(early), Some(at("1970-01-01T12:00:00Z")));
    }
    assert_eq!(next(at("2100-12-31T11:00:00Z")), Some(at("2100-12-31T12:00:00Z")));
    let berlin = zone("Europe/Berlin");
    for far in [at("2100-12-31T12:00:00Z"), Timestamp::FAR, Timestamp::from_millis(i64::MAX)] {
        assert_eq!(next(far), None);
        assert_eq!(daily.next(far, &berlin), None);
    }
}

#[test]
fn an_expression_is_its_text() {
    let one = expr(" 0 2 * * *\n");
    assert_eq!(one.as_str(), "0 2 * * *");
    assert_eq!(one, expr("0 2 * * *"));
    assert_ne!(one, expr("00 2 * * *"));
    let json = serde_json::to_string(&one).unwrap();
    assert_eq!(json, "\"0 2 * * *\"");
    assert_eq!(serde_json::from_str::<CronExpr>(&json).unwrap(), one);
    let error = serde_json::from_str::<CronExpr>("\"0 25 * * *\"").unwrap_err().to_string();
    assert!(error.contains("0-23"), "{error}");
}

/// Four hours back on the first Sunday of November at 04:00, four forward in March at 02:00.
fn four_hours() -> TimeZone {
    TimeZone::posix("AAA0BBB-4,M3.2.0,M11.1.0/4").unwrap()
}

/// The zones keep their own word for shifts of more than three hours: no zone of today turns its
/// clock back by that much, so a made-up one does.
#[test]
fn a_clock_set_back_by_more_than_three_hours_shows_both_passes() {
    let zone = four_hours();
    let found = fires("30 2 * * *", &zone, at("2026-10-31T00:00:00Z"), 3);
    // 02:30 at +04:00, twice; the second is at +00:00 of the same Sunday.
    let expected = ["2026-10-31T22:30:00Z", "2026-11-01T02:30:00Z", "2026-11-02T02:30:00Z"].map(at);
    assert_eq!(found, expected);
    let found = fires("30 2 * * *", &zone, at("2026-03-07T12:00:00Z"), 1);
    assert_eq!(found, [at("2026-03-08T22:30:00Z")]);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn item(least: u8, greatest: u8) -> impl Strategy<Value = String> {
        let number = move || least..=greatest;
        prop_oneof![
            3 => Just("*".to_owned()),
            3 => number().prop_map(|n| n.to_string()),
            1 => (number(), number()).prop_map(|(a, b)| format!("{a}-{b}")),
            1 => (number(), 1..40_u8).prop_map(|(a, n)| format!("{a}/{n}")),
            1 => (1..40_u8).prop_map(|n| format!("*/{n}")),
            1 => (number(), number(), number()).prop_map(|(a, b, c)| format!("{a},{b},{c}")),
        ]
    }

    pub(super) fn text() -> impl Strategy<Value = String> {
        let fields = (item(0, 59), item(0, 23), item(1, 31), item(1, 12), item(0, 7));
        let five = fields.prop_map(|(m, h, d, mo, w)| format!("{m} {h} {d} {mo} {w}"));
        (prop::option::weighted(0.3, item(0, 59)), five)
            .prop_map(|(s, five)| s.map_or(five.clone(), |s| format!("{s} {five}")))
    }

    pub(super) const ZONES: [&str; 8] = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Casablanca",
        "America/Havana",
        "Antarctica/Troll",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// `next` moves strictly forward and nothing lies between two of its answers.
        #[test]
        fn fires_move_strictly_forward(
            text in text(),
            tz in prop::sample::select(&ZONES[..]),
            // 2005 to 2035
            after_s in 1_104_537_600_i64..2_051_222_400,
            cut in 0.0..1.0_f64,
        ) {
            let Ok(expr) = CronExpr::parse(&text) else { return Ok(()) };
            let zone = zone(tz);
            let mut after = Timestamp::from_millis(after_s * 1000 + 1);
            for _ in 0..20 {
                let Some(fire) = expr.next(after, &zone) else { break };
                prop_assert!(fire > after, "{text} {tz} {after}: {fire:?}");
                // Asked from anywhere between, the answer is the same.
                let gap = fire.since(after).mul_f64(cut).as_millis();
                let between = Timestamp::from_millis(after.as_millis() + i64::try_from(gap).unwrap());
                if between < fire {
                    prop_assert_eq!(expr.next(between, &zone), Some(fire));
                }
                after = fire;
            }
        }

        #[test]
        fn no_text_panics(text in "[0-9*/,#?LW@A-Za-z \t-]{0,24}", any in ".{0,24}") {
            for text in [text, any] {
                if let Ok(expr) = CronExpr::parse(&text) {
                    // What is accepted fires some day.
                    prop_assert!(expr.next(Timestamp::default(), &TimeZone::UTC).is_some());
                }
            }
        }
    }
}

/// Where the system has no zone database, its own copy answers.
#[test]
fn a_copy_of_the_zone_database_comes_with_the_program() {
    let berlin = jiff::tz::TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap();
    assert_eq!(
        fires("30 2 * * *", &berlin, at("2026-03-28T12:00:00Z"), 1),
        [at("2026-03-29T01:00:00Z")]
    );
}
