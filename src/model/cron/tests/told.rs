//! What is told of a clock's changes, before and after. By hand from the zones' published changes.

use super::*;

/// An expression, a zone, a time, and the fires after it with what is told of each.
type Listing<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, Option<&'a str>)]);

fn check(listings: &[Listing<'_>]) {
    for (text, tz, after, fires) in listings {
        let (expr, zone) = (expr(text), zone(tz));
        let mut after = at(after);
        for (instant, told) in *fires {
            let found = expr.next_told(after, &zone);
            let expected = Some((at(instant), told.map(str::to_owned)));
            assert_eq!(found, expected, "{text} {tz} after {after}");
            after = at(instant);
        }
    }
}

#[test]
fn a_listing_tells_which_times_are_dropped() {
    check(&[
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T01:00:00Z",
            &[
                ("2026-03-28T01:30:00Z", None),
                (
                    "2026-03-30T00:00:00Z",
                    Some("02:00, 02:30 do not exist on 2026-03-29: not fired"),
                ),
                ("2026-03-30T00:30:00Z", None),
            ],
        ),
        // The jump itself is a fire.
        (
            "*/20 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:40:00Z",
            &[
                (
                    "2026-03-29T01:00:00Z",
                    Some("02:00, 02:20, 02:40 do not exist on 2026-03-29: not fired"),
                ),
                ("2026-03-29T01:20:00Z", None),
            ],
        ),
        (
            "*/10 2 * * *",
            "Europe/Berlin",
            "2026-03-29T00:40:00Z",
            &[(
                "2026-03-30T00:00:00Z",
                Some("02:00, 02:10, 02:20 and 3 more do not exist on 2026-03-29: not fired"),
            )],
        ),
        // A day that is not there at all is no season's change: nothing moves.
        (
            "0 12 * * *",
            "Pacific/Apia",
            "2011-12-29T23:00:00Z",
            &[("2011-12-30T22:00:00Z", Some("12:00 does not exist on 2011-12-30: not fired"))],
        ),
    ]);
}

#[test]
fn a_listing_tells_what_moved_and_what_comes_twice() {
    check(&[
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &[
                ("2026-03-29T01:00:00Z", Some("moved: 02:30 does not exist on this day")),
                ("2026-03-30T00:30:00Z", None),
            ],
        ),
        // Three times become one.
        (
            "0,15,30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &[(
                "2026-03-29T01:00:00Z",
                Some("moved: 02:00, 02:15, 02:30 do not exist on this day"),
            )],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &[
                ("2026-10-25T00:30:00Z", Some("first of two: 02:30 happens twice")),
                ("2026-10-26T01:30:00Z", None),
            ],
        ),
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00Z",
            &[
                ("2026-10-25T00:30:00Z", Some("first of two: 02:30 happens twice")),
                ("2026-10-25T01:00:00Z", Some("second of two: 02:00 happens twice")),
            ],
        ),
        ("30 2 * * *", "UTC", "2026-03-28T12:00:00Z", &[("2026-03-29T02:30:00Z", None)]),
    ]);
}

#[test]
fn a_warning_names_the_first_skip_and_the_first_repetition_of_the_year() {
    let berlin = "Europe/Berlin";
    for (text, tz, warning) in [
        (
            "30 2 * * *",
            berlin,
            Some(
                "on 2027-03-28 02:30 does not exist: fires at 03:00 instead; on 2027-10-31 02:30 \
                 comes twice: fires at the first",
            ),
        ),
        (
            "*/15 2 * * *",
            berlin,
            Some(
                "on 2027-03-28 02:00, 02:15, 02:30 and 1 more do not exist: does not fire then; on \
                 2027-10-31 02:00, 02:15, 02:30 and 1 more come twice: fires both times",
            ),
        ),
        (
            "15,45 2 * * *",
            berlin,
            Some(
                "on 2027-03-28 02:15, 02:45 do not exist: fires once, at 03:00 instead; on \
                 2027-10-31 02:15, 02:45 come twice: fires at the first",
            ),
        ),
        // Only the day of one of the changes is asked for.
        ("30 2 28 3 *", berlin, Some("on 2027-03-28 02:30 does not exist: fires at 03:00 instead")),
        // What is skipped is the end of a day.
        (
            "30 23 * * *",
            "America/Nuuk",
            Some(
                "on 2027-03-27 23:30 does not exist: fires at 2027-03-28 00:00 instead; on \
                 2027-10-30 23:30 comes twice: fires at the first",
            ),
        ),
        (
            // Half an hour, of which there is one second.
            "30 0 2 * * *",
            "Australia/Lord_Howe",
            Some("on 2027-10-03 02:00:30 does not exist: fires at 02:30 instead"),
        ),
        // Untouched: the hour, the day, the zone.
        ("0 12 * * *", berlin, None),
        ("0 3 * * *", berlin, None),
        ("30 2 1 * *", berlin, None),
        ("30 2 * * *", "Asia/Shanghai", None),
        ("30 2 * * *", "UTC", None),
        // Follows the clock all day.
        ("*/5 * * * *", berlin, None),
        ("0 * * * *", berlin, None),
        ("* * * * *", berlin, None),
        ("@hourly", berlin, None),
    ] {
        let from = at("2026-12-01T00:00:00Z");
        let until = at("2027-12-01T00:00:00Z");
        let found = expr(text).clock_warning(from, until, &zone(tz));
        assert_eq!(found.as_deref(), warning, "{text} {tz}");
    }
}
