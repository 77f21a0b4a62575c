//! Executors and queues: what places the work.

use std::collections::{BTreeMap, BTreeSet};

use super::Reading;
use crate::access::spec_yaml;
use crate::access::yaml::fields::{Fields, Item, suggestion};
use crate::model::id::{ExecutorId, QueueName};
use crate::model::priority::Level;
use crate::model::settings::{Discipline, ExecutorSettings, LevelWeights, QueueSettings, TaskType};

/// Slots per processor where no executor is configured.
const SLOTS_PER_CPU: u32 = 4;

/// Slots of an executor that names none.
fn default_slots() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cpus).unwrap_or(1).saturating_mul(SLOTS_PER_CPU)
}

impl Reading {
    /// The executors; one named `local` that takes everything if none is configured.
    pub(super) fn executors(
        &mut self,
        item: Option<Item<'_>>,
        types: &BTreeMap<String, TaskType>,
    ) -> Vec<ExecutorSettings> {
        let everything = || vec!["*".to_owned()];
        let Some(item) = item else {
            return vec![ExecutorSettings {
                id: ExecutorId::from("local"),
                task_types: everything(),
                labels: BTreeMap::new(),
                slots: default_slots(),
            }];
        };
        let mut seen = BTreeSet::new();
        let mut executors = Vec::new();
        let Some(items) = item.list(&mut self.findings) else { return executors };
        if items.is_empty() {
            item.refuse::<()>(&mut self.findings, "at least one executor");
        }
        for item in items {
            let Some(mut fields) = item.map(&mut self.findings) else { continue };
            let id = self.name(&mut fields, "id", &mut seen);
            let task_types = match fields.take("taskTypes") {
                Some(item) => self.taken_types(&item, types),
                None => everything(),
            };
            let labels = self.labels(fields.take("labels"));
            let slots = fields.take("slots").and_then(|i| i.count(1, &mut self.findings));
            let launch = [("daemon", true), ("external", false)];
            if let Some(item) = fields.take("launch")
                && item.choice(&launch, &mut self.findings) == Some(false)
            {
                let message = "launch: external is not supported by this version yet";
                self.findings.error(&item.place, message);
            }
            fields.finish(&mut self.findings);
            executors.push(ExecutorSettings {
                id: ExecutorId::from(id.as_str()),
                task_types,
                labels,
                slots: slots.unwrap_or_else(default_slots),
            });
        }
        executors
    }

    fn labels(&mut self, item: Option<Item<'_>>) -> BTreeMap<String, String> {
        let pairs = item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default();
        let text = |(key, _, value): &(&str, _, Item<'_>)| {
            Some(((*key).to_owned(), value.text(&mut self.findings)?.to_owned()))
        };
        pairs.iter().filter_map(text).collect()
    }

    fn taken_types(&mut self, item: &Item<'_>, types: &BTreeMap<String, TaskType>) -> Vec<String> {
        let mut known: Vec<&str> = vec!["*"];
        known.extend(spec_yaml::BUILT_IN_TYPES);
        known.extend(spec_yaml::ENGINE_TYPES);
        known.extend(types.keys().map(String::as_str));
        let mut taken = Vec::new();
        let Some(items) = item.list(&mut self.findings) else { return taken };
        if items.is_empty() {
            item.refuse::<()>(&mut self.findings, "at least one task type, or \"*\"");
        }
        for item in items {
            let Some(text) = item.text(&mut self.findings) else { continue };
            if known.contains(&text) {
                taken.push(text.to_owned());
                continue;
            }
            let near = suggestion(text, known.iter().copied());
            item.refuse::<()>(&mut self.findings, &format!("{}{near}", known.join(", ")));
        }
        taken
    }

    /// The queues; `default` is always among them.
    pub(super) fn queues(&mut self, item: Option<Item<'_>>) -> Vec<QueueSettings> {
        let mut seen = BTreeSet::new();
        let mut queues = Vec::new();
        for item in item.and_then(|i| i.list(&mut self.findings)).unwrap_or_default() {
            let Some(mut fields) = item.map(&mut self.findings) else { continue };
            let name = self.name(&mut fields, "name", &mut seen);
            let weight = fields.take("weight").and_then(|i| i.count(1, &mut self.findings));
            let max_running =
                fields.take("maxRunning").and_then(|i| i.count(1, &mut self.findings));
            let discipline = self.discipline(&mut fields);
            fields.finish(&mut self.findings);
            queues.push(QueueSettings {
                name: QueueName::from(name.as_str()),
                weight: weight.unwrap_or(1),
                max_running,
                discipline,
            });
        }
        if !seen.contains("default") {
            queues.push(QueueSettings::plain(QueueName::from("default")));
        }
        queues
    }

    fn discipline(&mut self, fields: &mut Fields<'_>) -> Discipline {
        let words = [("STRICT", false), ("WEIGHTED", true)];
        let item = fields.take("discipline");
        let is_weighted = item.and_then(|i| i.choice(&words, &mut self.findings)).unwrap_or(false);
        let Some(item) = fields.take("levelWeights") else {
            let weighted = Discipline::Weighted(LevelWeights::default());
            return if is_weighted { weighted } else { Discipline::Strict };
        };
        let weights = self.level_weights(&item);
        if !is_weighted {
            let message = "levelWeights is of use with discipline: WEIGHTED only; under STRICT the \
                           lower priority number always goes first";
            self.findings.error(&item.place, message);
        }
        Discipline::Weighted(weights)
    }

    /// Shares by level; a level that is not named keeps its default.
    fn level_weights(&mut self, item: &Item<'_>) -> LevelWeights {
        let mut weights = LevelWeights::default();
        let Some(mut fields) = item.map(&mut self.findings) else { return weights };
        for level in Level::ALL {
            let weight = fields.take(level.as_str());
            if let Some(weight) = weight.and_then(|i| i.count(1, &mut self.findings)) {
                *weights.of_mut(level) = weight;
            }
        }
        fields.finish(&mut self.findings);
        weights
    }

    /// A name that becomes part of file names and addresses; each only once.
    fn name(
        &mut self,
        fields: &mut Fields<'_>,
        key: &'static str,
        seen: &mut BTreeSet<String>,
    ) -> String {
        const BYTES_MAX: usize = 64;
        let Some(item) = fields.need(key, &mut self.findings) else { return String::new() };
        let Some(text) = item.text(&mut self.findings) else { return String::new() };
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let first = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !first || text.len() > BYTES_MAX || !text.bytes().all(good) {
            let expected = "letters, digits, '.', '-' and '_', a letter or digit first, at most 64";
            item.refuse::<()>(&mut self.findings, expected);
        } else if !seen.insert(text.to_owned()) {
            self.findings.error(&item.place, format!("{text} is configured twice"));
        }
        text.to_owned()
    }
}
