//! The zone of a configuration that names none: the host's, by name, since tasks get it as `TZ` and
//! people are told it.

use std::ffi::OsStr;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// Where some systems keep the name of the zone of which `/etc/localtime` is a copy.
const NAME_FILE: &str = "/etc/timezone";

/// Changes since 1970 by which a name is believed to be that of a zone: a century of summer times.
const CHANGES_COMPARED: usize = 200;

/// The host's zone when this is asked; what is set later counts from the next start.
///
/// # Errors
/// What the host says instead of a name, and what to write.
pub(super) fn of_host() -> Result<String, String> {
    let file = std::fs::read_to_string(NAME_FILE).unwrap_or_default();
    name(std::env::var_os("TZ").as_deref(), TimeZone::try_system().ok().as_ref(), file.trim())
}

/// The name of the zone that was found: where `TZ` says, or of the machine if it is not set.
/// `file`: what the machine says beside its nameless zone.
fn name(tz: Option<&OsStr>, found: Option<&TimeZone>, file: &str) -> Result<String, String> {
    match found {
        // A machine that says nothing is in UTC, as for every program.
        None if tz.is_none() => return Ok("UTC".to_owned()),
        Some(zone) if let Some(name) = zone.iana_name() => return Ok(name.to_owned()),
        Some(zone) if is_utc(zone) => return Ok("UTC".to_owned()),
        Some(zone) if tz.is_none() && is_same(zone, file) => return Ok(file.to_owned()),
        Some(_) | None => {}
    }
    let said = match tz {
        Some(tz) => format!("TZ={} in the environment", tz.to_string_lossy()),
        None => format!(
            "/etc/localtime, which is no link into the zone database, and in {NAME_FILE} no name \
             for it"
        ),
    };
    Err(format!(
        "is not given, and the host's zone has no name: found {said}; write an IANA zone here, such \
         as timezone: Asia/Shanghai, or give the host one"
    ))
}

/// Whether a zone without a name never was and never will be anything else.
fn is_utc(zone: &TimeZone) -> bool {
    let changes = zone.following(Timestamp::MIN).next().is_some();
    !changes && zone.to_offset(Timestamp::UNIX_EPOCH) == Offset::UTC
}

/// Whether a name stands for the same changes as a zone without one, as far as the next can tell.
fn is_same(zone: &TimeZone, name: &str) -> bool {
    let Ok(named) = TimeZone::get(name) else { return false };
    let changes = |zone: &TimeZone| -> Vec<(Timestamp, Offset)> {
        zone.following(Timestamp::UNIX_EPOCH)
            .take(CHANGES_COMPARED)
            .map(|change| (change.timestamp(), change.offset()))
            .collect()
    };
    named.iana_name() == Some(name)
        && named.to_offset(Timestamp::UNIX_EPOCH) == zone.to_offset(Timestamp::UNIX_EPOCH)
        && changes(&named) == changes(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_believed_if_its_zone_has_a_name() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let nameless = TimeZone::posix("CST-8").unwrap();
        let zero = TimeZone::posix("UTC0").unwrap();
        for (tz, found, expected) in [
            (None, Some(&berlin), Ok("Europe/Berlin")),
            (Some(":Europe/Berlin"), Some(&berlin), Ok("Europe/Berlin")),
            (None, None, Ok("UTC")),
            (Some(""), Some(&TimeZone::UTC), Ok("UTC")),
            (Some("UTC0"), Some(&zero), Ok("UTC")),
            (Some(":/bad"), None, Err("TZ=:/bad")),
            (Some("Mars/Olympus"), None, Err("TZ=Mars/Olympus")),
            (Some("CST-8"), Some(&nameless), Err("TZ=CST-8")),
            (None, Some(&nameless), Err("/etc/localtime")),
        ] {
            let named = name(tz.map(OsStr::new), found, "");
            match expected {
                Ok(expected) => assert_eq!(named.as_deref(), Ok(expected), "{tz:?}"),
                Err(part) => {
                    let problem = named.unwrap_err();
                    assert!(problem.contains(part), "{tz:?}: {problem}");
                    assert!(problem.contains("timezone: Asia/Shanghai"), "{problem}");
                }
            }
        }
    }

    #[test]
    fn a_copied_zone_has_the_name_that_stands_beside_it_if_that_is_true() {
        let copied = TimeZone::posix("JST-9").unwrap();
        let today = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(name(None, Some(&copied), "Etc/GMT-9").as_deref(), Ok("Etc/GMT-9"));
        for (zone, file) in [(&copied, "Etc/GMT-8"), (&copied, ""), (&today, "Asia/Tokyo")] {
            assert!(name(None, Some(zone), file).is_err(), "{file}");
        }
        // What the environment says is not what the machine's file is about.
        assert!(name(Some(OsStr::new("JST-9")), Some(&copied), "Etc/GMT-9").is_err());
    }
}
