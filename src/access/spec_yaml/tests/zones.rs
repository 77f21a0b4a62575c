//! Time zones: their names, and the clock changes that triggers will meet.

use super::*;
use crate::model::time::Timestamp;

#[test]
fn a_zone_that_is_none_is_refused_with_what_to_write() {
    for (written, found, near) in [
        ("''", "found the text \"\"", ""),
        ("Mars/Olympus", "Mars/Olympus", ""),
        // As the tz database spells it: C libraries find it by that name only.
        ("asia/shanghai", "asia/shanghai", "Asia/Shanghai?"),
        ("europe/berlin", "europe/berlin", "Europe/Berlin?"),
        ("utc", "utc", "UTC?"),
        ("UTC+8", "UTC+8", ""),
        ("CST", "CST", ""),
        ("CST-8", "CST-8", ""),
        ("'+08:00'", "+08:00", ""),
        ("':/bad'", ":/bad", ""),
        ("/etc/localtime", "/etc/localtime", ""),
        ("../Europe/Berlin", "../Europe/Berlin", ""),
    ] {
        for text in [
            format!("timezone: {written}\n"),
            format!("triggers:\n- cron: '@daily'\n  timezone: {written}\n"),
        ] {
            let errors = file(&format!("{BASE}{text}")).errors;
            assert_eq!(errors.len(), 1, "{text}: {errors:?}");
            let said = errors[0].to_string();
            assert!(
                said.starts_with("/etc/sched.d/x.yaml:") && said.contains("timezone: "),
                "{said}"
            );
            for part in [found, "an IANA zone such as Asia/Shanghai", near] {
                assert!(said.contains(part), "{text}: {said}");
            }
        }
    }
    for name in ["UTC", "Etc/UTC", "Etc/GMT-8", "Asia/Kolkata", "America/Argentina/Buenos_Aires"] {
        assert_eq!(spec(&format!("timezone: {name}\n")).timezone.as_deref(), Some(name));
    }
}

/// The warnings of a file that is read in December 2026.
fn warned(more: &str) -> Vec<String> {
    let context = SpecContext { timezone: "Europe/Berlin".to_owned(), ..context() };
    let context = context.at(Timestamp::parse("2026-12-01T00:00:00Z").unwrap());
    let file = file_of("/etc/sched.d/x.yaml", format!("{BASE}{more}").as_bytes(), &context);
    file.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_trigger_that_will_meet_a_clock_change_is_warned_of_once_in_its_own_zone() {
    let berlin = "in Europe/Berlin on 2027-03-28 02:30 does not exist: fires at 03:00 instead; on \
                  2027-10-31 02:30 comes twice: fires at the first";
    let new_york = "in America/New_York on 2027-03-14 02:30 does not exist: fires at 03:00 instead";
    for (more, places) in [
        // The daemon's zone, the task's, the trigger's.
        ("triggers: [cron: 30 2 * * *]\n", &[("6:18: triggers[0].cron: ", berlin)][..]),
        (
            "triggers: [cron: 30 2 * * *]\ntimezone: America/New_York\n",
            &[("6:18: triggers[0].cron: ", new_york)],
        ),
        (
            "timezone: UTC\ntriggers:\n- {cron: 30 2 * * *, timezone: America/New_York}\n\
             - cron: 30 2 * * *\n- {cron: 30 2 * * *, timezone: Europe/Berlin}\n",
            &[("8:10: triggers[0].cron: ", new_york), ("10:10: triggers[2].cron: ", berlin)],
        ),
        ("triggers: [cron: 0 12 * * *, cron: '*/5 * * * *', every: 1h]\n", &[]),
        // Of a zone that is misspelt nothing is known.
        ("triggers: [cron: 30 2 * * *]\ntimezone: Europe/Berlim\n", &[]),
        ("triggers: [{cron: 30 2 * * *, timezone: Europe/Berlim}]\n", &[]),
    ] {
        let found = warned(more);
        let expected: Vec<String> = places
            .iter()
            .map(|(place, text)| format!("/etc/sched.d/x.yaml:{place}{text}"))
            .collect();
        assert_eq!(found, expected, "{more}");
    }
    // A daemon that loads it says nothing: that would be the same at every load.
    let quiet = file(&format!("{BASE}timezone: Europe/Berlin\ntriggers: [cron: 30 2 * * *]\n"));
    assert!(quiet.warnings.is_empty() && quiet.errors.is_empty(), "{quiet:?}");
}
