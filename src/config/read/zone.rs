//! The zone of a configuration that names none: the host's, by name, since tasks get it as `TZ` and
//! people are told it.

use std::ffi::OsStr;

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// The host's zone when this is asked; what is set later counts from the next start.
///
/// # Errors
/// What the host says instead of a name, and what to write.
pub(super) fn of_host() -> Result<String, String> {
    name(std::env::var_os("TZ").as_deref(), TimeZone::try_system().ok().as_ref())
}

/// The name of the zone that was found: where `TZ` says, or of the machine if it is not set.
fn name(tz: Option<&OsStr>, found: Option<&TimeZone>) -> Result<String, String> {
    match found {
        // A machine that says nothing is in UTC, as for every program.
        None if tz.is_none() => return Ok("UTC".to_owned()),
        Some(zone) if let Some(name) = zone.iana_name() => return Ok(name.to_owned()),
        Some(zone) if is_utc(zone) => return Ok("UTC".to_owned()),
        Some(_) | None => {}
    }
    let said = match tz {
        Some(tz) => format!("TZ={} in the environment", tz.to_string_lossy()),
        None => "/etc/localtime, which is no link into the zone database".to_owned(),
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
            let named = name(tz.map(OsStr::new), found);
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
}
