//! Counting is stepping, without the steps.

use proptest::prelude::*;

use super::properties::{ZONES, text};
use super::*;

/// By hand: days of the calendar times times of the day, and the zones' published changes.
#[test]
fn fires_are_counted_over_what_excludes_its_start_and_includes_its_end() {
    let year = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    for (text, tz, (after, until), count) in [
        // The midnight at the start does not count, the one at the end does.
        ("* * * * * *", "UTC", year, 365 * 86_400),
        ("0 0 * * *", "UTC", year, 365),
        ("0 12 29 2 *", "UTC", ("2024-01-01T00:00:00Z", "2033-01-01T00:00:00Z"), 3),
        ("0 9 * * 1-5", "UTC", ("2026-06-01T08:00:00Z", "2026-06-15T09:00:00Z"), 11),
        ("0 0 L * *", "UTC", year, 12),
        ("0 0 13 * FRI", "UTC", ("2025-12-31T12:00:00Z", "2026-12-31T12:00:00Z"), 52 + 12 - 3),
        ("0 * * * *", "UTC", ("2026-06-01T00:00:00Z", "2026-06-01T00:59:59.999Z"), 0),
        ("0 * * * *", "UTC", ("2026-06-01T00:59:59.999Z", "2026-06-01T01:00:00Z"), 1),
        ("0 * * * *", "UTC", ("2026-06-01T05:00:00Z", "2026-06-01T01:00:00Z"), 0),
        // Sixty years with 15 leap days.
        ("0 2 * * *", "UTC", ("2026-01-01T00:00:00Z", "2086-01-01T00:00:00Z"), 60 * 365 + 15),
        // Once a day, also on the days of the changes.
        ("30 2 * * *", "Europe/Berlin", ("2026-01-01T00:00:00Z", "2026-12-31T23:00:00Z"), 365),
        ("30 2 * * *", "Europe/Berlin", ("2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"), 1),
        // 02:00, 02:30 and 03:00 are one instant; 03:30 is another.
        ("0,30 2,3 * * *", "Europe/Berlin", ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"), 2),
        // A wildcard loses the skipped hour and has the repeated one twice.
        ("*/30 2 * * *", "Europe/Berlin", ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"), 0),
        ("*/30 2 * * *", "Europe/Berlin", ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"), 4),
        ("30 2 * * *", "Europe/Berlin", ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"), 0),
        // Half an hour: 01:30 to 02:00 comes twice.
        ("45 1 * * *", "Australia/Lord_Howe", ("2026-04-04T00:00:00Z", "2026-04-05T00:00:00Z"), 1),
        ("45 * * * *", "Australia/Lord_Howe", ("2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"), 25),
        // The 29th and the 31st: there was no 30th, and nothing is made up for it.
        ("0 12 * * *", "Pacific/Apia", ("2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z"), 2),
        // From the first to the last day that there is.
        ("0 0 * * *", "UTC", ("1960-01-01T00:00:00Z", "2150-01-01T00:00:00Z"), 131 * 365 + 32),
    ] {
        let (expr, zone) = (expr(text), zone(tz));
        assert_eq!(expr.count(at(after), at(until), &zone), count, "{text} {tz} {after} {until}");
    }
    // The ends of time are no special case.
    let (least, greatest) = (Timestamp::from_millis(i64::MIN), Timestamp::from_millis(i64::MAX));
    let yearly = expr("@yearly");
    assert_eq!(yearly.count(least, greatest, &TimeZone::UTC), 131);
    assert_eq!(yearly.next(least, &TimeZone::UTC), Some(Timestamp::default()));
    let last = yearly.last(least, greatest, &TimeZone::UTC);
    assert_eq!(last, Some(at("2100-01-01T00:00:00Z")));
}

#[test]
fn the_last_fire_is_the_one_nearest_to_the_end() {
    let berlin = zone("Europe/Berlin");
    for (text, after, until, last) in [
        ("0 2 * * *", "2026-06-01T00:00:00Z", "2026-06-05T00:00:00Z", Some("2026-06-05T00:00:00Z")),
        ("0 2 * * *", "2026-06-01T00:00:00Z", "2026-06-04T23:59:59Z", Some("2026-06-04T00:00:00Z")),
        ("0 2 * * *", "2026-06-01T00:00:00Z", "2026-06-01T23:59:59Z", None),
        ("0 2 * * *", "2026-06-02T00:00:00Z", "2026-06-01T00:00:00Z", None),
        (
            "0 0 29 2 *",
            "2026-01-01T00:00:00Z",
            "2040-01-01T00:00:00Z",
            Some("2036-02-28T23:00:00Z"),
        ),
        // Skipped: at the jump. Repeated: the first pass.
        (
            "30 2 * * *",
            "2026-03-28T12:00:00Z",
            "2026-03-29T12:00:00Z",
            Some("2026-03-29T01:00:00Z"),
        ),
        (
            "30 2 * * *",
            "2026-10-24T12:00:00Z",
            "2026-10-25T12:00:00Z",
            Some("2026-10-25T00:30:00Z"),
        ),
        (
            "*/30 2 * * *",
            "2026-10-24T12:00:00Z",
            "2026-10-25T12:00:00Z",
            Some("2026-10-25T01:30:00Z"),
        ),
    ] {
        let found = expr(text).last(at(after), at(until), &berlin);
        assert_eq!(found, last.map(at), "{text} {after} {until}");
    }
}

#[test]
fn a_fire_is_met_to_the_millisecond() {
    let berlin = zone("Europe/Berlin");
    for (text, instant, fires) in [
        ("30 2 * * *", "2026-06-01T00:30:00Z", true),
        ("30 2 * * *", "2026-06-01T00:30:00.001Z", false),
        ("30 2 * * *", "2026-06-01T00:29:59.999Z", false),
        ("30 2 * * *", "2026-06-01T00:30:01Z", false),
        ("30 2 * * *", "2026-03-29T01:00:00Z", true),
        ("30 2 * * *", "2026-03-29T01:30:00Z", false),
        ("30 2 * * *", "2026-10-25T00:30:00Z", true),
        ("30 2 * * *", "2026-10-25T01:30:00Z", false),
        ("*/30 2 * * *", "2026-03-29T01:00:00Z", false),
        ("*/30 2 * * *", "2026-10-25T01:30:00Z", true),
    ] {
        assert_eq!(expr(text).fires_at(at(instant), &berlin), fires, "{text} {instant}");
    }
}

/// A zone of the database, or one whose clock moves by four hours.
fn any_zone() -> impl Strategy<Value = TimeZone> {
    prop_oneof![
        8 => prop::sample::select(&ZONES[..]).prop_map(zone),
        1 => Just(four_hours()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Most stretches begin shortly before a change of the clock.
    #[test]
    fn counting_is_stepping(
        text in text(),
        zone in any_zone(),
        // 1970 to 2037
        year_s in 0_i64..2_114_380_800,
        lead_ms in prop_oneof![0..600_000_i64, 0..7_200_000_i64, 0..200_000_000_i64],
        length_ms in prop_oneof![0..10_000_000_i64, 0..400_000_000_i64, 0..200_000_000_000_i64],
    ) {
        let Ok(expr) = CronExpr::parse(&text) else { return Ok(()) };
        let change = zone.following(jiff::Timestamp::from_second(year_s).unwrap()).next();
        let start = change.map_or(year_s, |change| change.timestamp().as_second()) * 1000;
        let after = Timestamp::from_millis(start - lead_ms);
        let mut until = Timestamp::from_millis(start - lead_ms + length_ms);
        let step = |at: &Timestamp| expr.next(*at, &zone).filter(|at| *at <= until);
        let fires: Vec<Timestamp> = std::iter::successors(step(&after), step).take(400).collect();
        if fires.len() == 400 {
            until = fires[399];
        }
        prop_assert_eq!(expr.count(after, until, &zone), fires.len() as u64, "{} {} {}", text, after, until);
        prop_assert_eq!(expr.last(after, until, &zone), fires.last().copied(), "{}", text);
        prop_assert!(fires.iter().all(|fire| expr.fires_at(*fire, &zone)), "{}", text);
        // The two parts of a stretch are the whole.
        let middle = Timestamp::from_millis(i64::midpoint(after.as_millis(), until.as_millis()));
        let parts = expr.count(after, middle, &zone) + expr.count(middle, until, &zone);
        prop_assert_eq!(parts, fires.len() as u64, "{} {} {} {}", text, after, middle, until);
    }
}
