//! Values of options as people write them; the refusals say what is expected.

use sched::model::instance::InstanceState;
use sched::model::priority::Priority;

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}

pub(super) fn state(text: &str) -> Result<InstanceState, String> {
    InstanceState::parse(text).ok_or_else(|| {
        let names: Vec<&str> = InstanceState::ALL.into_iter().map(InstanceState::as_str).collect();
        format!("expected one of {}", names.join(", "))
    })
}

pub(super) fn priority(text: &str) -> Result<Priority, String> {
    Priority::parse(&text.to_ascii_uppercase()).ok_or_else(|| {
        "expected 0 (first) to 9 (last), CRITICAL, HIGH, NORMAL, LOW or BACKGROUND".to_owned()
    })
}

/// A priority, or none: back to the definition's or the task's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewPriority(pub(crate) Option<Priority>);

pub(super) fn new_priority(text: &str) -> Result<NewPriority, String> {
    if text.eq_ignore_ascii_case("DEFAULT") {
        return Ok(NewPriority(None));
    }
    let given = priority(text).map_err(|expected| format!("{expected}, or DEFAULT"))?;
    Ok(NewPriority(Some(given)))
}
