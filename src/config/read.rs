//! Reading the keys of the configuration (contract §4).
//!
//! Keys that later versions use are checked for their shape and answered with a warning that they
//! are not in force yet, so that nobody relies on a rule that nothing keeps.

mod later;
mod pool;
mod zone;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Config, Durability, Places, Socket};
use crate::access::spec_yaml::{self, absolute_from};
use crate::access::yaml::fields::{Fields, Findings, Item, Place, shorten, variable_problem};
use crate::access::yaml::{self, Mark, Node};
use crate::limits;
use crate::model::event::SpecError;
use crate::model::request::StopMode;
use crate::model::settings::{Settings, TaskType};
use crate::model::template::Template;

/// Reads a file's content.
pub(super) fn read(path: &Path, bytes: &[u8], places: &Places) -> Result<Config, Vec<SpecError>> {
    let file = std::path::absolute(path).unwrap_or_else(|_no_cwd| path.to_path_buf());
    let mut reading = Reading {
        base: file.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf),
        findings: Findings::new(&path.to_string_lossy()),
    };
    let documents = yaml::read(bytes).unwrap_or_else(|faults| {
        faults.into_iter().for_each(|fault| reading.findings.fault(fault));
        Vec::new()
    });
    if let Some(second) = documents.get(1) {
        let place = Place { at: second.at, path: String::new() };
        reading.findings.error(&place, "is a second document; the configuration is one document");
    }
    let at = Mark { line: 1, column: 1 };
    let empty = Node { at, kind: yaml::Kind::Map(Vec::new()) };
    let document = Item::document(documents.first().unwrap_or(&empty));
    let config = reading.config(&document, file, places);
    match config {
        Some(mut config) if reading.findings.errors.is_empty() => {
            config.warnings = reading.findings.warnings;
            Ok(config)
        }
        _ => {
            let mut errors = reading.findings.errors;
            errors.sort();
            Err(errors)
        }
    }
}

struct Reading {
    base: PathBuf,
    findings: Findings,
}

impl Reading {
    fn config(&mut self, document: &Item<'_>, file: PathBuf, places: &Places) -> Option<Config> {
        let mut fields = document.map(&mut self.findings)?;
        let mut dir = |key, default: &Path| {
            let text = fields.take(key).and_then(|i| i.word(&mut self.findings));
            text.map_or_else(|| default.to_owned(), |t| absolute_from(&self.base, t).into())
        };
        let spec_dir = dir("specDir", &places.spec_dir);
        let state_dir = dir("stateDir", &places.state_dir);
        let log_dir = dir("logDir", &places.log_dir);
        let socket = self.socket(fields.take("socket"), places);
        let durability = self.durability(&mut fields);
        let task_types = self.task_types(fields.take("taskTypes"));
        let (retention_days, retention_instances) = self.retention(fields.take("retention"));
        let heartbeat = fields
            .take("heartbeatMs")
            .and_then(|i| i.duration(Duration::from_millis(100), &mut self.findings));
        let stops = [
            ("HANDOVER", StopMode::Handover),
            ("DRAIN", StopMode::Drain),
            ("CANCEL", StopMode::Cancel),
        ];
        let on_stop = fields.take("onStop").and_then(|i| i.choice(&stops, &mut self.findings));
        let settings = Settings {
            timezone: self.timezone(fields.take("timezone")),
            executors: self.executors(fields.take("executors"), &task_types),
            queues: self.queues(fields.take("queues")),
            task_types,
            owner_quota: self.owner_quota(fields.take("ownerQuota")),
            retention_days,
            retention_instances,
            on_stop: on_stop.unwrap_or(StopMode::Handover),
            heartbeat: heartbeat.unwrap_or(Duration::from_secs(5)),
        };
        self.later_keys(&mut fields);
        fields.finish(&mut self.findings);
        Some(Config {
            file: Some(file),
            spec_dir,
            state_dir,
            log_dir,
            socket,
            durability,
            settings: Arc::new(settings),
            warnings: Vec::new(),
        })
    }

    fn socket(&mut self, item: Option<Item<'_>>, places: &Places) -> Socket {
        let mut socket =
            Socket { path: places.socket.clone(), mode: places.socket_mode, group: None };
        let mut place = Place { at: Mark::default(), path: "socket.path".to_owned() };
        if let Some(mut fields) = item.and_then(|i| i.map(&mut self.findings)) {
            if let Some(item) = fields.take("path") {
                if let Some(text) = item.word(&mut self.findings) {
                    socket.path = absolute_from(&self.base, text).into();
                }
                place = item.place;
            }
            if let Some(mode) = fields.take("mode").and_then(|i| i.octal(&mut self.findings)) {
                socket.mode = mode;
            }
            socket.group =
                fields.take("group").and_then(|i| i.word(&mut self.findings)).map(str::to_owned);
            fields.finish(&mut self.findings);
        }
        let bytes = socket.path.as_os_str().len();
        if bytes > limits::SOCKET_PATH_BYTES_MAX {
            let message = format!(
                "found {} of {bytes} bytes; the kernel takes at most {} for a socket, choose a \
                 shorter path",
                shorten(&socket.path.to_string_lossy()),
                limits::SOCKET_PATH_BYTES_MAX
            );
            self.findings.error(&place, message);
        }
        socket
    }

    fn durability(&mut self, fields: &mut Fields<'_>) -> Durability {
        let words = [("STRICT", false), ("RELAXED", true)];
        let relaxed = fields.take("durability").and_then(|i| i.choice(&words, &mut self.findings));
        let sync = fields
            .take("syncMs")
            .and_then(|i| i.duration(Duration::from_millis(1), &mut self.findings));
        if relaxed == Some(true) {
            Durability::Relaxed { sync_within: sync.unwrap_or(Duration::from_millis(200)) }
        } else {
            Durability::Strict
        }
    }

    fn timezone(&mut self, item: Option<Item<'_>>) -> String {
        let zone = match item {
            Some(item) => spec_yaml::zone(&item, &mut self.findings),
            None => zone::of_host().map_err(|problem| self.zoneless(problem)).ok(),
        };
        zone.unwrap_or_else(|| "UTC".to_owned())
    }

    fn zoneless(&mut self, problem: String) {
        let place = Place { at: Mark::default(), path: "timezone".to_owned() };
        self.findings.error(&place, problem);
    }

    fn retention(&mut self, item: Option<Item<'_>>) -> (u32, u64) {
        let (mut days, mut instances) = (30, 100_000);
        let Some(mut fields) = item.and_then(|i| i.map(&mut self.findings)) else {
            return (days, instances);
        };
        days = fields.take("days").and_then(|i| i.count(1, &mut self.findings)).unwrap_or(days);
        if let Some(count) = fields.take("instances").and_then(|i| i.count(1, &mut self.findings)) {
            instances = u64::from(count);
        }
        if let Some(item) = fields.take("logBytes") {
            item.size(&mut self.findings);
            self.not_in_force("retention.logBytes", &item);
        }
        fields.finish(&mut self.findings);
        (days, instances)
    }

    fn owner_quota(&mut self, item: Option<Item<'_>>) -> BTreeMap<String, u32> {
        let pairs = item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default();
        let quota = |(owner, _, value): &(&str, Place, Item<'_>)| {
            Some(((*owner).to_owned(), value.count(1, &mut self.findings)?))
        };
        pairs.iter().filter_map(quota).collect()
    }

    fn task_types(&mut self, item: Option<Item<'_>>) -> BTreeMap<String, TaskType> {
        let mut types = BTreeMap::new();
        for (name, place, value) in
            item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default()
        {
            let good = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
            if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.bytes().all(good) {
                let message =
                    format!("found {:?}; expected a name such as BATCH_SETTLE", shorten(name));
                self.findings.error(&place, message);
            }
            if spec_yaml::BUILT_IN_TYPES.contains(&name) {
                self.findings.error(&place, format!("{name} is built in; choose another name"));
            }
            let Some(mut fields) = value.map(&mut self.findings) else { continue };
            let run = fields.need("run", &mut self.findings);
            let run = run.map(|i| self.argv(&i)).unwrap_or_default();
            let env = self.env(fields.take("env"));
            fields.finish(&mut self.findings);
            types.insert(name.to_owned(), TaskType { run, env });
        }
        types
    }

    /// An argument vector; a program given by a relative path is found beside the file.
    fn argv(&mut self, item: &Item<'_>) -> Vec<Template> {
        let mut argv = Vec::new();
        let Some(items) = item.list(&mut self.findings) else { return argv };
        if items.is_empty() {
            item.refuse::<()>(&mut self.findings, "the program and its arguments");
        }
        for (index, part) in items.iter().enumerate() {
            let Some(text) = part.text(&mut self.findings) else { continue };
            let program = index == 0 && text.contains('/') && !text.starts_with('{');
            let text = if program { absolute_from(&self.base, text) } else { text.to_owned() };
            argv.extend(self.template(&text, &part.place));
        }
        argv
    }

    fn env(&mut self, item: Option<Item<'_>>) -> BTreeMap<String, Template> {
        let mut env = BTreeMap::new();
        for (name, place, value) in
            item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default()
        {
            if let Some(problem) = variable_problem(name) {
                self.findings.error(&place, problem);
            }
            let Some(text) = value.text(&mut self.findings) else { continue };
            if let Some(template) = self.template(text, &value.place) {
                env.insert(name.to_owned(), template);
            }
        }
        env
    }

    fn template(&mut self, text: &str, place: &Place) -> Option<Template> {
        Template::parse(text)
            .map_err(|e| self.findings.error(place, format!("found {:?}: {e}", shorten(text))))
            .ok()
    }
}
