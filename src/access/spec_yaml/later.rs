//! What is read, checked and kept, but has no effect yet.
//!
//! The one place that says so: when something comes to work, its line goes. Where ignoring it is
//! harmless it is told as a warning; where the task would do something else than what was asked
//! for, it is refused.

use super::Reading;
use crate::access::yaml::fields::Place;

/// What a right value meets as long as it has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Refused: ignoring it would do something else than what was asked for.
    Refused,
    /// A warning that says what happens instead.
    Warned(&'static str),
}

/// What has no effect yet, as the subject of a sentence.
const NOT_IN_FORCE: [(&str, Effect); 5] = [
    ("PYTHON", Effect::Refused),
    ("SPARK", Effect::Refused),
    ("FLINK", Effect::Refused),
    ("SLURM", Effect::Refused),
    (
        "retention",
        Effect::Warned("only bounds how long an instance waits; nothing is thrown away yet"),
    ),
];

impl Reading<'_> {
    /// Says of a right value that it has no effect yet, if that is so.
    pub(super) fn in_force(&mut self, what: &str, place: &Place) {
        match NOT_IN_FORCE.iter().find(|(name, _)| *name == what) {
            Some((_, Effect::Refused)) => {
                let message = format!("{what} is not supported by this version yet");
                self.findings.error(place, message);
            }
            Some((_, Effect::Warned(instead))) => {
                self.findings.warning(place, format!("is accepted, but {instead}"));
            }
            None => {}
        }
    }
}
