//! What runs and within which bounds: the execution group of a spec (contract §2).

use std::collections::BTreeMap;
use std::time::Duration;

use super::engines::Engines;
use super::placeholders::Place as Stage;
use super::{BUILT_IN_TYPES, ENGINE_TYPES, Reading};
use crate::access::yaml::Kind;
use crate::access::yaml::fields::{Fields, Item, Place, shorten, suggestion, variable_problem};
use crate::limits;
use crate::model::params::ParamSchema;
use crate::model::spec::{Backoff, JsonMap, Limits, LogLimits, RetryPolicy};
use crate::model::template::Template;

/// What runs.
pub(super) struct Execution {
    pub(super) task_type: String,
    pub(super) handler: String,
    pub(super) args: Vec<Template>,
    pub(super) static_params: JsonMap,
    pub(super) runtime_params: BTreeMap<String, ParamSchema>,
    pub(super) engines: Engines,
    pub(super) env: BTreeMap<String, Template>,
    pub(super) working_dir: Option<Template>,
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    pub(super) umask: Option<u32>,
    pub(super) nice: Option<i32>,
    pub(super) limits: Limits,
    pub(super) outputs: Vec<Template>,
    pub(super) log: LogLimits,
}

/// How long one attempt may take and what comes after it.
pub(super) struct Attempts {
    pub(super) timeout: Option<Duration>,
    pub(super) kill_grace: Duration,
    pub(super) retry: RetryPolicy,
    pub(super) exit_codes: BTreeMap<i32, String>,
    pub(super) idempotent: bool,
    pub(super) dedup_key: Option<Template>,
}

const MS: Duration = Duration::from_millis(1);

impl Reading<'_> {
    pub(super) fn execution(&mut self, fields: &mut Fields<'_>) -> Execution {
        let task_type = fields.need("taskType", &mut self.findings);
        let task_type = task_type.and_then(|i| self.task_type(&i)).unwrap_or_default();
        let handler = fields.need("handler", &mut self.findings);
        let engines = self.engines(fields, &task_type);
        let mut run = Execution {
            handler: handler.and_then(|i| self.handler(&i, &task_type)).unwrap_or_default(),
            task_type,
            engines,
            args: self.templates(fields.take("args"), false),
            static_params: fields
                .take("staticParams")
                .and_then(|i| i.json_map(&mut self.findings))
                .unwrap_or_default(),
            runtime_params: self.runtime_params(fields.take("runtimeParams")),
            env: self.env(fields.take("env")),
            working_dir: fields.take("workingDir").and_then(|i| self.path(&i, Stage::Start)),
            user: None,
            group: None,
            umask: fields.take("umask").and_then(|i| i.octal(&mut self.findings)),
            nice: fields
                .take("nice")
                .and_then(|i| i.integer(-20, 19, &mut self.findings))
                .and_then(|n| i32::try_from(n).ok()),
            limits: Limits::default(),
            outputs: Vec::new(),
            log: LogLimits::default(),
        };
        if let Some(item) = fields.take("outputs") {
            let place = item.place.clone();
            run.outputs = self.templates(Some(item), true);
            if run.outputs.len() > limits::OUTPUTS_MAX {
                let (found, max) = (run.outputs.len(), limits::OUTPUTS_MAX);
                let message =
                    format!("found {found} paths; expected at most {max}: name a folder instead");
                self.findings.error(&place, message);
            }
        }
        let user = fields.take("user");
        run.user = self.word_of(user);
        let group = fields.take("group");
        run.group = self.word_of(group);
        if let Some(mut log) = fields.take("log").and_then(|i| i.map(&mut self.findings)) {
            if let Some(bytes) = log.take("maxBytes").and_then(|i| i.size(&mut self.findings)) {
                run.log.max_bytes = bytes;
            }
            log.finish(&mut self.findings);
        }
        if let Some(limits) = fields.take("limits").and_then(|i| i.map(&mut self.findings)) {
            run.limits = self.limits(limits);
        }
        run
    }

    fn limits(&mut self, mut fields: Fields<'_>) -> Limits {
        let findings = &mut self.findings;
        let limits = Limits {
            memory: fields.take("memory").and_then(|i| i.size(findings)),
            open_files: fields.take("openFiles").and_then(|i| i.count(1, findings)).map(u64::from),
            processes: fields.take("processes").and_then(|i| i.count(1, findings)).map(u64::from),
            cpu_seconds: fields
                .take("cpuSeconds")
                .and_then(|i| i.count(1, findings))
                .map(u64::from),
            file_size: fields.take("fileSize").and_then(|i| i.size(findings)),
        };
        fields.finish(findings);
        limits
    }

    fn task_type(&mut self, item: &Item<'_>) -> Option<String> {
        let text = item.word(&mut self.findings)?;
        if BUILT_IN_TYPES.contains(&text) || self.context.task_types.contains(text) {
            return Some(text.to_owned());
        }
        if ENGINE_TYPES.contains(&text) {
            self.in_force(text, &item.place);
            return Some(text.to_owned());
        }
        let configured = self.context.task_types.iter().map(String::as_str);
        let built_in = BUILT_IN_TYPES.into_iter().chain(ENGINE_TYPES);
        let known: Vec<&str> = built_in.chain(configured).collect();
        let near = suggestion(text, known.iter().copied());
        item.refuse(
            &mut self.findings,
            &format!("{} (or a type from taskTypes in the configuration){near}", known.join(", ")),
        )
    }

    /// The entry as written; a program or file given by a relative path is found beside the spec
    /// file.
    fn handler(&mut self, item: &Item<'_>, task_type: &str) -> Option<String> {
        let text = item.text(&mut self.findings)?;
        if text.trim().is_empty() {
            return item.refuse(&mut self.findings, "something to run");
        }
        match task_type {
            _ if self.context.task_types.contains(task_type) => Some(text.to_owned()),
            "EXEC" => self.program(item),
            "PYTHON" => self.python_entry(item),
            "SPARK" | "FLINK" => self.file_or_url(item),
            _ => Some(text.to_owned()),
        }
    }

    /// A list of templates, as paths or as plain texts.
    fn templates(&mut self, item: Option<Item<'_>>, paths: bool) -> Vec<Template> {
        let items = item.and_then(|i| i.list(&mut self.findings)).unwrap_or_default();
        let one = |i: &Item<'_>| {
            if paths { self.path(i, Stage::Start) } else { self.template(i, Stage::Start) }
        };
        items.iter().filter_map(one).collect()
    }

    /// A map or a list of `K=V`; values stay as written.
    fn env(&mut self, item: Option<Item<'_>>) -> BTreeMap<String, Template> {
        let mut env = BTreeMap::new();
        let Some(item) = item else { return env };
        if matches!(item.node.kind, Kind::List(_)) {
            for one in item.list(&mut self.findings).unwrap_or_default() {
                let Some(text) = one.text(&mut self.findings) else { continue };
                let Some((name, value)) = text.split_once('=') else {
                    one.refuse::<()>(&mut self.findings, "NAME=value");
                    continue;
                };
                self.env_name(name, &one.place);
                let Some(value) = self.template_of(value, &one.place, Stage::Start) else {
                    continue;
                };
                if env.insert(name.to_owned(), value).is_some() {
                    self.findings.error(&one.place, format!("{name} is set twice"));
                }
            }
            return env;
        }
        for (name, place, value) in item.pairs(&mut self.findings).unwrap_or_default() {
            self.env_name(name, &place);
            if value.node.is_null() {
                value.refuse::<()>(&mut self.findings, "a text (\"\" for an empty one)");
            } else if let Some(value) = self.template(&value, Stage::Start) {
                env.insert(name.to_owned(), value);
            }
        }
        env
    }

    fn env_name(&mut self, name: &str, place: &Place) {
        if let Some(problem) = variable_problem(name) {
            self.findings.error(place, problem);
        }
    }

    pub(super) fn attempts(&mut self, fields: &mut Fields<'_>) -> Attempts {
        let idempotent = fields.take("idempotent");
        let attempts = Attempts {
            timeout: fields.take("timeoutMs").and_then(|i| i.duration(MS, &mut self.findings)),
            kill_grace: fields
                .take("killGraceMs")
                .and_then(|i| i.duration(Duration::ZERO, &mut self.findings))
                .unwrap_or(Duration::from_secs(10)),
            exit_codes: self.exit_codes(fields.take("exitCodes")),
            idempotent: idempotent
                .as_ref()
                .and_then(|i| i.boolean(&mut self.findings))
                .unwrap_or(true),
            dedup_key: fields.take("dedupKey").and_then(|i| self.template(&i, Stage::Dedup)),
            retry: RetryPolicy::default(),
        };
        let (retry, place) = self.retry(fields.take("retry"));
        if !attempts.idempotent && attempts.dedup_key.is_none() && retry.max_attempts > 1 {
            // Requirement A6.
            let message = format!(
                "found {} with idempotent: false; expected 1, because a task that is not idempotent \
                 is never started twice, or a dedupKey",
                retry.max_attempts
            );
            self.findings.error(&place, message);
        }
        Attempts { retry, ..attempts }
    }

    fn retry(&mut self, item: Option<Item<'_>>) -> (RetryPolicy, Place) {
        let mut retry = RetryPolicy::default();
        let mut place = Place { at: Default::default(), path: "retry".to_owned() };
        let Some(item) = item else { return (retry, place) };
        place.at = item.place.at;
        let Some(mut fields) = item.map(&mut self.findings) else { return (retry, place) };
        if let Some(item) = fields.take("maxAttempts") {
            retry.max_attempts = item.count(1, &mut self.findings).unwrap_or(1);
            place = item.place;
        }
        let words = [("FIXED", Backoff::Fixed), ("EXPONENTIAL", Backoff::Exponential)];
        let backoff = fields.take("backoff").and_then(|i| i.choice(&words, &mut self.findings));
        retry.backoff = backoff.unwrap_or(retry.backoff);
        let interval = fields.take("intervalMs");
        let mut wait = |item: Option<&Item<'_>>, default| {
            item.and_then(|i| i.duration(Duration::ZERO, &mut self.findings)).unwrap_or(default)
        };
        retry.interval = wait(interval.as_ref(), retry.interval);
        retry.max_interval = wait(fields.take("maxIntervalMs").as_ref(), retry.max_interval);
        if let Some(item) = interval.filter(|_| retry.interval > retry.max_interval) {
            let message = format!(
                "is longer than maxIntervalMs, which is {} ms; no wait is longer than that",
                retry.max_interval.as_millis()
            );
            self.findings.warning(&item.place, message);
        }
        if let Some(share) =
            fields.take("jitter").and_then(|i| i.number(0.0, 1.0, &mut self.findings))
        {
            retry.jitter = share;
        }
        if let Some(codes) = fields.take("retryOn").and_then(|i| i.list(&mut self.findings)) {
            retry.retry_on =
                Some(codes.iter().filter_map(|code| self.error_code(code, true)).collect());
        }
        fields.finish(&mut self.findings);
        (retry, place)
    }

    /// An error code; with `star`, one may end in `*`.
    fn error_code(&mut self, item: &Item<'_>, star: bool) -> Option<String> {
        let text = item.text(&mut self.findings)?;
        let stem = if star { text.strip_suffix('*').unwrap_or(text) } else { text };
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        if (stem.is_empty() && stem == text) || !stem.bytes().all(good) {
            return item.refuse(&mut self.findings, "an error code such as TIMEOUT or CONN_RESET");
        }
        Some(text.to_owned())
    }

    fn exit_codes(&mut self, item: Option<Item<'_>>) -> BTreeMap<i32, String> {
        let mut codes = BTreeMap::new();
        for (key, place, value) in
            item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default()
        {
            let status = key.parse::<i32>().ok().filter(|s| (1..=255).contains(s));
            let Some(status) = status.filter(|s| s.to_string() == key) else {
                let message =
                    format!("found the key {:?}; expected an exit status, 1 to 255", shorten(key));
                self.findings.error(&place, message);
                continue;
            };
            if let Some(code) = self.error_code(&value, false) {
                codes.insert(status, code);
            }
        }
        codes
    }
}
