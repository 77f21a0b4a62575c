//! What the simulated people write: small random graphs of tasks, and changes to the files.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::build::{self, every, on};
use crate::model::cycle::{CycleRule, CycleUnit};
use crate::model::event::{Definitions, SpecFile};
use crate::model::id::QueueName;
use crate::model::priority::Priority;
use crate::model::spec::{
    FileTrigger, Misfire, OnDependencyTimeout, Overlap, Strength, TaskSpec, Trigger, TriggerKind,
};
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

/// Whether the task of this number may be started again by itself: the same in all its revisions.
fn idempotent(n: u64) -> bool {
    n % 3 != 1
}

fn spec(rng: &mut Rng, n: u64) -> TaskSpec {
    let mut spec = build::task(&name(n));
    for upstream in 0..n {
        if rng.chance(if n > 4 { 25 } else { 40 }) {
            let strength = if rng.chance(25) { Strength::Weak } else { Strength::Strong };
            spec.depends_on.push(build::edge(&name(upstream), strength));
        }
    }
    if spec.depends_on.is_empty() || rng.chance(12) {
        triggers(rng, &mut spec);
    }
    spec.idempotent = idempotent(n);
    if spec.idempotent {
        let wait = Duration::from_secs(1 + rng.below(20));
        spec.retry = build::retry(1 + u32::try_from(rng.below(3)).unwrap_or(0), wait);
        if rng.chance(30) {
            spec.retry.retry_on = Some(vec!["EXIT_1".to_owned(), "TIMEOUT".to_owned()]);
        }
    }
    dress(rng, &mut spec);
    spec
}

fn triggers(rng: &mut Rng, spec: &mut TaskSpec) {
    match rng.below(5) {
        0 | 1 => {
            let misfire = *rng.pick(&[Misfire::Skip, Misfire::RunOnce, Misfire::RunAll]).unwrap();
            let overlap = *rng
                .pick(&[Overlap::Skip, Overlap::Queue, Overlap::Replace, Overlap::Allow])
                .unwrap();
            let periods = [7, 10, 15, 20, 30];
            spec.triggers = vec![every(*rng.pick(&periods).unwrap(), misfire, overlap)];
            if rng.chance(30) {
                let second = every(*rng.pick(&[12, 25, 40]).unwrap(), misfire, overlap);
                spec.triggers.push(second);
            }
            let unit = if rng.chance(30) { CycleUnit::Minute } else { CycleUnit::Day };
            spec.cycle = Some(CycleRule { unit, offset: 0 });
        }
        2 => {
            let event = format!("event{}", rng.below(2));
            spec.triggers = vec![on(TriggerKind::Event(event))];
            if rng.chance(60) {
                spec.cycle = Some(CycleRule::DAY);
            }
        }
        3 => {
            spec.triggers = vec![on(TriggerKind::File(FileTrigger {
                pattern: format!("/in/{}", rng.below(2)),
                settle: Duration::from_millis(50),
                poll: None,
            }))];
            if rng.chance(60) {
                spec.cycle = Some(CycleRule::DAY);
            }
        }
        _ => {}
    }
}

/// What may differ between two revisions of a task.
fn dress(rng: &mut Rng, spec: &mut TaskSpec) {
    spec.queue = QueueName::from(if rng.chance(30) { "side" } else { "default" });
    spec.priority =
        Priority::new(u8::try_from(rng.below(10)).unwrap_or(0)).unwrap_or(Priority::NORMAL);
    spec.max_concurrent = *rng.pick(&[Some(1), Some(1), Some(2), None]).unwrap();
    spec.enabled = !rng.chance(4);
    spec.dependency_timeout = rng.chance(10).then(|| Duration::from_secs(30 + rng.below(60)));
    spec.on_dependency_timeout =
        if rng.chance(50) { OnDependencyTimeout::Cancel } else { OnDependencyTimeout::RunDegraded };
}

fn change(rng: &mut Rng, spec: &mut TaskSpec, tasks: u64) {
    match rng.below(4) {
        0 => {
            // Any task may be named, also one that is not there or that closes a cycle.
            let upstream = name(rng.below(tasks + 1));
            if spec.depends_on.iter().all(|d| d.task_id != build::id(&upstream)) {
                spec.depends_on.push(build::edge(&upstream, Strength::Strong));
            }
        }
        1 => {
            spec.depends_on.pop();
        }
        2 => triggers(rng, spec),
        _ => dress(rng, spec),
    }
}
