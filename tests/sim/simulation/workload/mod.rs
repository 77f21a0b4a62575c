//! What the simulated people write: small random graphs of tasks, and changes to the files.

mod specs;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::specs::{change, spec};
use crate::build::{self, on};
use crate::model::event::{Definitions, SpecFile};
use crate::model::settings::{Discipline, LevelWeights, Settings};
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};
use crate::rng::Rng;

/// What a file holds.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Good(Vec<TaskSpec>),
    Broken,
}

/// The spec directory.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) files: BTreeMap<String, Content>,
    /// As first written: a graph without cycles.
    original: BTreeMap<String, Content>,
    pub(crate) tasks: u64,
}

pub(crate) fn name(n: u64) -> String {
    format!("t{n}")
}

/// A small machine: two executors of which one takes everything, three queues, quotas.
pub(crate) fn settings(rng: &mut Rng) -> Settings {
    let slots = 1 + u32::try_from(rng.below(3)).unwrap_or(0);
    let quota = rng.chance(60).then_some(1);
    let queues = [("default", 3, None), ("side", 1, quota), ("night", 2, Some(2))];
    let settings = build::settings(&[("e1", slots), ("e2", 2)], &queues);
    let mut settings = Arc::unwrap_or_clone(settings);
    for (executor, zone) in settings.executors.iter_mut().zip(["a", "b"]) {
        executor.labels.insert("zone".to_owned(), zone.to_owned());
    }
    if rng.chance(30) {
        settings.queues[1].discipline = Discipline::Weighted(LevelWeights::default());
    }
    settings.executors[1].task_types = vec!["SHELL".to_owned()];
    if rng.chance(50) {
        settings.owner_quota.insert("trade".to_owned(), 1);
    }
    settings
}

impl Files {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let tasks = 2 + rng.below(7);
        let mut files: BTreeMap<String, Content> = BTreeMap::new();
        for n in 0..tasks {
            let spec = spec(rng, n);
            let path = if rng.chance(20) { "shared.yaml".to_owned() } else { format!("t{n}.yaml") };
            match files.entry(path).or_insert_with(|| Content::Good(Vec::new())) {
                Content::Good(specs) => specs.push(spec),
                Content::Broken => {}
            }
        }
        Self { original: files.clone(), files, tasks }
    }

    /// A full reading.
    pub(crate) fn reading(&self) -> Definitions {
        build::full(self.files.iter().map(|(path, content)| file(path, content)).collect())
    }

    /// Someone edits the directory; what a reading then finds.
    pub(crate) fn edit(&mut self, rng: &mut Rng) -> Definitions {
        let paths: Vec<String> = self.files.keys().cloned().collect();
        let path = rng.pick(&paths).cloned().unwrap_or_else(|| "t0.yaml".to_owned());
        let mut removed = Vec::new();
        let mut touched = vec![path.clone()];
        match rng.below(8) {
            0 => {
                self.files.remove(&path);
                removed.push(path);
                touched.clear();
            }
            1 => {
                self.files.insert(path, Content::Broken);
            }
            2 => {
                // A new file, perhaps with an id that another has already.
                let n = rng.below(self.tasks);
                let spec = spec(rng, n);
                let extra = format!("extra{}.yaml", rng.below(3));
                self.files.insert(extra.clone(), Content::Good(vec![spec]));
                touched = vec![extra];
            }
            3 => {
                let back = self.original.clone();
                touched = back.keys().cloned().collect();
                self.files.extend(back);
            }
            4 => {
                // Renamed.
                if let Some(content) = self.files.remove(&path) {
                    let new = format!("renamed-{path}");
                    self.files.insert(new.clone(), content);
                    removed.push(path);
                    touched = vec![new];
                }
            }
            _ => {
                let tasks = self.tasks;
                if let Some(Content::Good(specs)) = self.files.get_mut(&path) {
                    for spec in specs {
                        change(rng, spec, tasks);
                    }
                }
            }
        }
        if rng.chance(30) {
            return self.reading();
        }
        let changed =
            touched.iter().filter_map(|path| Some(file(path, self.files.get(path)?))).collect();
        Definitions { changed, removed, present: None, unreadable: None, more: false }
    }

    /// The original graph, in which nothing starts by itself any more.
    pub(crate) fn quiet(&mut self) -> Definitions {
        self.files = self.original.clone();
        for content in self.files.values_mut() {
            let Content::Good(specs) = content else { continue };
            for spec in specs {
                let timed =
                    |t: &Trigger| matches!(t.when, TriggerKind::Every(_) | TriggerKind::Cron(_));
                if spec.triggers.iter().any(timed) {
                    spec.triggers = vec![on(TriggerKind::Event("never".to_owned()))];
                }
            }
        }
        self.reading()
    }
}

fn file(path: &str, content: &Content) -> SpecFile {
    match content {
        Content::Good(specs) => build::file(path, specs.clone()),
        Content::Broken => build::broken(path),
    }
}
