//! What happened in a run, by name and number: a kind of event that never happened proves nothing.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Marks(BTreeMap<&'static str, u64>);

impl Marks {
    pub(crate) fn hit(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    pub(crate) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Marks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts: Vec<String> = self.0.iter().map(|(name, n)| format!("{name} {n}")).collect();
        f.write_str(&counts.join(", "))
    }
}
