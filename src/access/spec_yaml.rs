//! Spec files: from a person's YAML, with its short forms and its mistakes, to [`TaskSpec`]s.
//!
//! Contract §2. Everything wrong with a file is reported at once, each fault with line, column, the
//! key's path, what was found and what is expected; a file with any error yields no specs at all.
//! JSON is YAML, so the same reading serves `POST /tasks`.
//!
//! It does not know other files: whether an upstream exists and whether the graph has a cycle is
//! for the registry to say.

mod engines;
mod execution;
mod later;
mod params;
mod placeholders;
mod scheduling;
mod triggers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use self::placeholders::{Place as Stage, Use};
use super::yaml::fields::{Fields, Findings, Item, Place, shorten, suggestion};
use super::yaml::{self, Kind, Mark, Node};
use crate::model::event::{SpecFile, SpecPlaces};
use crate::model::id::TaskId;
use crate::model::spec::TaskSpec;
use crate::model::template::{Template, TemplateError};
use crate::model::time::Timestamp;

/// Types that are always there.
pub const BUILT_IN_TYPES: [&str; 2] = ["SHELL", "EXEC"];
/// Types of the contract that run on an engine.
pub const ENGINE_TYPES: [&str; 4] = ["PYTHON", "SPARK", "FLINK", "SLURM"];

/// What the configuration says that a spec can refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecContext {
    /// Configured types, beside [`BUILT_IN_TYPES`].
    pub task_types: BTreeSet<String>,
    /// Zone of tasks that name none.
    pub timezone: String,
    /// Queues.
    pub queues: BTreeSet<String>,
    /// Now, for who wants to be warned of clock changes that a trigger will meet within a year.
    pub now: Option<Timestamp>,
}

impl SpecContext {
    /// The same, with warnings of coming clock changes. They cost some, and say the same at every
    /// reading, so they are for who asks about files, not for the daemon that loads them.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }
}

impl Default for SpecContext {
    /// What holds without any configuration, in UTC.
    fn default() -> Self {
        Self {
            task_types: BTreeSet::new(),
            timezone: "UTC".to_owned(),
            queues: BTreeSet::from(["default".to_owned()]),
            now: None,
        }
    }
}

/// The content hash by which a changed file is told: SHA-256 in hexadecimal.
#[must_use]
pub fn content_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads one file's content; `path` is named in messages and is what relative paths start from.
///
/// All documents of the file are read; [`SpecFile::specs`] is empty if there is any error in any of
/// them. A file without a document gets a warning.
#[must_use]
pub fn read(path: &str, bytes: &[u8], context: &SpecContext) -> SpecFile {
    let mut reading = Reading {
        context,
        base: folder_of(path),
        findings: Findings::new(path),
        uses: Vec::new(),
        patterns: 0,
        strangers: Vec::new(),
        broken: Broken::default(),
    };
    let mut places = Vec::new();
    let mut specs: Vec<Arc<TaskSpec>> = Vec::new();
    let (documents, faults) = yaml::read_up_to_faults(bytes);
    if documents.is_empty() && faults.is_empty() {
        let whole = Place { at: Mark::default(), path: String::new() };
        reading.findings.warning(&whole, "the file holds no task");
    }
    let mut seen: BTreeMap<TaskId, u32> = BTreeMap::new();
    for document in &documents {
        if reading.findings.is_full() {
            break;
        }
        let Some(spec) = reading.task(&Item::document(document)) else { continue };
        let first = seen.insert(spec.task_id.clone(), document.at.line);
        if let Some(line) = first {
            let message =
                format!("{} is defined twice in this file; first at line {line}", spec.task_id);
            let place = Place { at: document.at, path: "taskId".to_owned() };
            reading.findings.error(&place, message);
        }
        specs.push(Arc::new(spec));
        places.push(places_in(document));
    }
    faults.into_iter().for_each(|fault| reading.findings.fault(fault));
    let (errors, warnings) = reading.findings.into_errors();
    if !errors.is_empty() {
        places.clear();
        specs.clear();
    }
    SpecFile {
        path: path.to_owned(),
        hash: content_hash(bytes),
        uid: None,
        specs,
        places,
        errors,
        warnings,
    }
}

/// Where the keys stand that the set may find fault with.
fn places_in(document: &Node) -> SpecPlaces {
    let Kind::Map(entries) = &document.kind else { return SpecPlaces::default() };
    let at = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key)?;
        Some((entry.value.at.line, entry.value.at.column))
    };
    SpecPlaces {
        task_id: at("taskId").unwrap_or_default(),
        depends_on: at("dependsOn").or_else(|| at("triggers")).unwrap_or_default(),
        cycle: at("cycle").or_else(|| at("taskId")).unwrap_or_default(),
    }
}

/// The absolute folder of a file.
fn folder_of(path: &str) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_no_cwd| PathBuf::from("/"));
    absolute.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf)
}

/// Joins a path to a folder and resolves `.` and `..` by their letters, as a reader of the file
/// would, without looking at the disk. An absolute path stays as it is.
#[must_use]
pub fn absolute_from(base: &Path, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut clean = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean.to_string_lossy().into_owned()
}

/// One file on its way to specs.
struct Reading<'c> {
    context: &'c SpecContext,
    base: PathBuf,
    findings: Findings,
    /// Templates of the document at hand, to be checked when all names are known.
    uses: Vec<Use>,
    /// Patterns of parameters so far.
    patterns: usize,
    /// Texts of the document at hand that are no templates, to be told when all names are known.
    strangers: Vec<(Place, String, TemplateError)>,
    /// What of the document at hand is not all there.
    broken: Broken,
}

/// Parts of a document that a fault has left out, so that what hangs on them is not at fault.
#[derive(Debug, Clone, Copy, Default)]
struct Broken {
    static_params: bool,
    runtime_params: bool,
    cycle: bool,
    triggers: bool,
    depends_on: bool,
}

impl Broken {
    /// What is not even a map; lists are told when their parts are read.
    fn of(fields: &Fields<'_>) -> Self {
        Self {
            static_params: fields.is_no_map("staticParams"),
            runtime_params: fields.is_no_map("runtimeParams"),
            cycle: fields.is_no_map("cycle"),
            ..Self::default()
        }
    }
}

impl Reading<'_> {
    /// Reads one document; `None` if anything in it is wrong.
    fn task(&mut self, document: &Item<'_>) -> Option<TaskSpec> {
        let before = self.findings.count();
        self.uses.clear();
        self.strangers.clear();
        let mut fields = document.map(&mut self.findings)?;
        self.broken = Broken::of(&fields);
        let identity = self.identity(&mut fields);
        let run = self.execution(&mut fields);
        let attempts = self.attempts(&mut fields);
        let plan = self.scheduling(&mut fields, identity.task_id.as_ref());
        fields.finish(&mut self.findings);
        if !attempts.idempotent && plan.preemptible {
            let message = "preemptible: true means that it may be started again, which idempotent: \
                 false forbids; drop one of the two";
            self.findings.error(&plan.preemptible_at, message);
        }
        // A faulty id hides no fault of another key: with any fault nothing is defined.
        let stand_in = || TaskId::parse("stand-in.v1").ok();
        let spec = TaskSpec {
            task_id: identity.task_id.or_else(stand_in)?,
            version: identity.version,
            owner: identity.owner,
            name: identity.name,
            description: identity.description,
            labels: identity.labels,
            task_type: run.task_type,
            handler: run.handler,
            args: run.args,
            static_params: run.static_params,
            runtime_params: run.runtime_params,
            python: run.engines.python,
            spark: run.engines.spark,
            flink: run.engines.flink,
            slurm: run.engines.slurm,
            env: run.env,
            working_dir: run.working_dir,
            user: run.user,
            group: run.group,
            umask: run.umask,
            nice: run.nice,
            limits: run.limits,
            timeout: attempts.timeout,
            kill_grace: attempts.kill_grace,
            retry: attempts.retry,
            exit_codes: attempts.exit_codes,
            idempotent: attempts.idempotent,
            dedup_key: attempts.dedup_key,
            outputs: run.outputs,
            log: run.log,
            triggers: plan.triggers,
            timezone: plan.timezone,
            cycle: plan.cycle,
            depends_on: plan.depends_on,
            on_upstream: plan.on_upstream,
            dependency_timeout: plan.dependency_timeout,
            on_dependency_timeout: plan.on_dependency_timeout,
            priority: plan.priority,
            queue: plan.queue,
            preemptible: plan.preemptible,
            max_concurrent: plan.max_concurrent,
            executor_labels: plan.executor_labels,
            enabled: plan.enabled,
            rollout: plan.rollout,
            retention: plan.retention,
        };
        self.check_placeholders(&spec);
        self.check_trigger_params(&spec, &plan.given);
        (self.findings.count() == before).then_some(spec)
    }

    fn identity(&mut self, fields: &mut Fields<'_>) -> Identity {
        let id_item = fields.need("taskId", &mut self.findings);
        let task_id = id_item.and_then(|item| self.task_id(&item));
        let version_item = fields.need("version", &mut self.findings);
        let version = version_item.as_ref().and_then(|item| item.count(1, &mut self.findings));
        if let (Some(id), Some(version), Some(item)) = (&task_id, version, &version_item)
            && id.version() != version
        {
            let expected = format!("{}, because taskId ends in .v{0}", id.version());
            item.refuse::<()>(&mut self.findings, &expected);
        }
        let owner = fields.need("owner", &mut self.findings);
        Identity {
            task_id,
            version: version.unwrap_or_default(),
            owner: self.word_of(owner).unwrap_or_default(),
            name: {
                let item = fields.take("name");
                self.word_of(item)
            },
            description: fields
                .take("description")
                .and_then(|i| i.text(&mut self.findings))
                .map(str::to_owned),
            labels: self.labels(fields.take("labels")),
        }
    }

    fn task_id(&mut self, item: &Item<'_>) -> Option<TaskId> {
        let text = item.text(&mut self.findings)?;
        match TaskId::parse(text) {
            Ok(id) => Some(id),
            Err(error) => {
                self.findings.error(&item.place, format!("{:?} {error}", shorten(text)));
                None
            }
        }
    }

    fn word_of(&mut self, item: Option<Item<'_>>) -> Option<String> {
        item?.word(&mut self.findings).map(str::to_owned)
    }

    /// A map of words to words; empty if absent.
    fn labels(&mut self, item: Option<Item<'_>>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        for (key, _, value) in item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default() {
            if let Some(text) = value.text(&mut self.findings) {
                labels.insert(key.to_owned(), text.to_owned());
            }
        }
        labels
    }

    /// A text that may hold placeholders; its names are checked when the document is complete.
    fn template(&mut self, item: &Item<'_>, stage: Stage) -> Option<Template> {
        let text = item.text(&mut self.findings)?;
        self.template_of(text, &item.place, stage)
    }

    fn template_of(&mut self, text: &str, place: &Place, stage: Stage) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => {
                let at = place.clone();
                self.uses.push(Use { at, template: template.clone(), place: stage });
                Some(template)
            }
            Err(error) => {
                self.strangers.push((place.clone(), shorten(text), error));
                None
            }
        }
    }

    /// A path that may hold placeholders, made absolute from the file's folder.
    fn path(&mut self, item: &Item<'_>, stage: Stage) -> Option<Template> {
        let text = item.word(&mut self.findings)?;
        if text.starts_with('{') && !text.starts_with("{{") {
            return self.template_of(text, &item.place, stage);
        }
        // The folder's own name is no template.
        let base = self.base.to_string_lossy().replace('{', "{{").replace('}', "}}");
        self.template_of(&absolute_from(Path::new(&base), text), &item.place, stage)
    }

    fn zone_of(&mut self, item: Option<Item<'_>>) -> Option<String> {
        zone(&item?, &mut self.findings)
    }
}

/// An IANA zone that the system knows; an unknown one gets the nearest known.
pub fn zone(item: &Item<'_>, findings: &mut Findings) -> Option<String> {
    let text = item.text(findings)?;
    // By its exact name: the system's library is less patient than ours, and tasks get it as TZ.
    if jiff::tz::TimeZone::get(text).is_ok_and(|zone| zone.iana_name() == Some(text)) {
        return Some(text.to_owned());
    }
    if findings.is_full() {
        return item.refuse(findings, "");
    }
    let names: Vec<String> =
        jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    let near = suggestion(text, names.iter().map(String::as_str));
    item.refuse(findings, &format!("an IANA zone such as Asia/Shanghai{near}"))
}

/// Who the task is.
struct Identity {
    task_id: Option<TaskId>,
    version: u32,
    owner: String,
    name: Option<String>,
    description: Option<String>,
    labels: BTreeMap<String, String>,
}

#[cfg(test)]
pub(in crate::access) mod tests;
