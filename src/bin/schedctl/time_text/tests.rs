use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

#[test]
fn distances_are_short_and_say_which_way() {
    let now = at("2026-11-30T12:00:00Z");
    for (other, text) in [
        ("2026-11-30T12:00:00.900Z", "now"),
        ("2026-11-30T12:03:00Z", "in 3m"),
        ("2026-11-30T11:57:40Z", "2m20s ago"),
        ("2026-11-30T11:59:18Z", "42s ago"),
        ("2026-11-30T12:45:59Z", "in 45m"),
        ("2026-11-30T17:12:00Z", "in 5h12m"),
        ("2026-11-27T08:00:00Z", "3d4h ago"),
        ("2026-10-16T12:00:00Z", "45d ago"),
    ] {
        assert_eq!(relative(now, at(other)), text, "{other}");
    }
}

#[test]
fn points_in_time_are_absolute_local_or_so_far_away() {
    let now = at("2026-11-30T12:00:00Z");
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let ago = |text: &str| {
        parse_when(text).unwrap().resolve(now, &berlin, Direction::Ago).unwrap().to_string()
    };
    assert_eq!(ago("2026-11-30T10:00:00+08:00"), "2026-11-30T02:00:00.000Z");
    assert_eq!(ago("2026-11-30T10:00"), "2026-11-30T09:00:00.000Z");
    assert_eq!(ago("2026-11-30"), "2026-11-29T23:00:00.000Z");
    assert_eq!(ago("1h30m"), "2026-11-30T10:30:00.000Z");
    assert_eq!(ago("now"), "2026-11-30T12:00:00.000Z");
    let hence = parse_when("+2d").unwrap().resolve(now, &berlin, Direction::Hence).unwrap();
    assert_eq!(hence.to_string(), "2026-12-02T12:00:00.000Z");
    for text in ["", "tomorrow", "10", "5x", "m5", "2026-02-30", "2026-11-30T25:00"] {
        assert!(parse_when(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_position_of_the_log_is_digits_alone() {
    assert_eq!(parse_since("0"), Ok(Since::Seq(0)));
    assert_eq!(parse_since("17"), Ok(Since::Seq(17)));
    assert_eq!(parse_since("5m"), Ok(Since::Time(When::Away(Duration::from_secs(300)))));
    assert!(parse_since("-1").is_err());
}

#[test]
fn a_bare_timeout_is_seconds() {
    assert_eq!(parse_timeout("5"), Ok(Duration::from_secs(5)));
    assert_eq!(parse_timeout("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(parse_timeout("2h30m"), Ok(Duration::from_secs(9000)));
    assert!(parse_timeout("-5").is_err() && parse_timeout("").is_err());
    assert!(parse_timeout("99999999999999999999h").is_err());
}

#[test]
fn times_carry_the_offset_of_their_zone() {
    let shanghai = TimeZone::get("Asia/Shanghai").unwrap();
    let time = at("2026-11-29T18:00:00.250Z");
    assert_eq!(with_offset(time, &shanghai), "2026-11-30T02:00:00.250+08:00");
    assert_eq!(with_offset(time, &TimeZone::UTC), "2026-11-29T18:00:00.250+00:00");
    assert_eq!(local(time, &shanghai), "2026-11-30 02:00:00");
}

/// A person who asks may write it as they like; a spec may not, since tasks get the name as `TZ`.
#[test]
fn a_zone_is_asked_for_by_its_name_in_any_case() {
    for text in ["Europe/Berlin", "europe/berlin", "EUROPE/BERLIN"] {
        let zone = parse_zone(text).unwrap();
        assert_eq!(zone.iana_name(), Some("Europe/Berlin"), "{text}");
    }
    for text in ["", "Mars/Olympus", "UTC+8", "CST", "+08:00", ":/bad", "../etc/localtime"] {
        assert!(parse_zone(text).unwrap_err().contains("an IANA name"), "{text:?}");
    }
}
