//! The zones that definitions name, as they were read last: their rules change only when the core
//! is told so, or a fire on the agenda would be none any more by the time it is due.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use crate::model::spec::{TaskSpec, Trigger};

/// Zones by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Zones {
    known: BTreeMap<String, TimeZone>,
}

impl Zones {
    /// Reads a zone, unless it is known.
    pub(super) fn learn(&mut self, name: &str) {
        if !self.known.contains_key(name)
            && let Ok(zone) = TimeZone::get(name)
        {
            self.known.insert(name.to_owned(), zone);
        }
    }

    /// Reads the zones of a definition.
    pub(super) fn learn_of(&mut self, spec: &TaskSpec) {
        let of_triggers = spec.triggers.iter().filter_map(Trigger::timezone);
        for name in spec.timezone.as_deref().into_iter().chain(of_triggers) {
            self.learn(name);
        }
    }

    /// A zone by name; one that nothing in force names is read for the question. Names were checked
    /// when definitions were read; one that has gone from the system since stands for UTC.
    pub(super) fn get(&self, name: &str) -> TimeZone {
        let known = self.known.get(name).cloned();
        known.or_else(|| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC)
    }

    /// Reads all of them again; one that cannot be read keeps its rules.
    pub(super) fn reread(&mut self) {
        for (name, zone) in &mut self.known {
            if let Ok(fresh) = TimeZone::get(name) {
                *zone = fresh;
            }
        }
    }
}
