//! What starts a task: the `triggers` of a spec (contract §2, 'Triggers').

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::placeholders::{Place as Stage, Source};
use super::{Reading, absolute_from};
use crate::access::yaml::fields::{Fields, Item, Place, shorten};
use crate::limits;
use crate::model::cron::CronExpr;
use crate::model::id::TaskId;
use crate::model::spec::{
    CronTrigger, EveryTrigger, FileTrigger, FirePolicy, JsonMap, Misfire, Overlap, TaskTrigger,
    Trigger, TriggerKind,
};
use crate::model::trigger::{KEYS_OF_SOME_KINDS, TRIGGER_KINDS};

/// Keys that only some kinds have.
struct Particular<'a> {
    timezone: Option<Item<'a>>,
    misfire: Option<Item<'a>>,
    catch_up: Option<Item<'a>>,
    overlap: Option<Item<'a>>,
    settle: Option<Item<'a>>,
    poll: Option<Item<'a>>,
    states: Option<Item<'a>>,
}

impl<'a> Particular<'a> {
    fn take(fields: &mut Fields<'a>) -> Self {
        Self {
            timezone: fields.take("timezone"),
            misfire: fields.take("misfire"),
            catch_up: fields.take("catchUpMs"),
            overlap: fields.take("overlap"),
            settle: fields.take("settleMs"),
            poll: fields.take("pollMs"),
            states: fields.take("states"),
        }
    }

    /// What is there, by key, with the kinds that may have it.
    fn present(&self) -> Vec<(&'static str, &Item<'a>, &'static [&'static str])> {
        let item = |key| match key {
            "timezone" => self.timezone.as_ref(),
            "misfire" => self.misfire.as_ref(),
            "catchUpMs" => self.catch_up.as_ref(),
            "overlap" => self.overlap.as_ref(),
            "settleMs" => self.settle.as_ref(),
            "pollMs" => self.poll.as_ref(),
            _ => self.states.as_ref(),
        };
        let all = KEYS_OF_SOME_KINDS.into_iter();
        all.filter_map(|(key, kinds)| Some((key, item(key)?, kinds))).collect()
    }
}

/// The parameters that one trigger gives, be the trigger itself right or not.
#[derive(Default)]
pub(super) struct Given {
    pub(super) values: JsonMap,
    /// Where each of them stands.
    pub(super) places: BTreeMap<String, Place>,
    /// The trigger's place and its kind, if that is one at whose fires only these are given.
    pub(super) only: Option<(Place, &'static str)>,
}

impl Reading<'_> {
    pub(super) fn triggers(
        &mut self,
        item: Option<Item<'_>>,
        own: Option<&TaskId>,
        zone: Option<&str>,
    ) -> (Vec<Trigger>, Vec<Given>) {
        let mut keys = BTreeSet::new();
        let (mut all, mut given) = (Vec::new(), Vec::new());
        let Some(item) = item else { return (all, given) };
        let items = item.list(&mut self.findings);
        self.broken.triggers = items.is_none();
        for item in items.unwrap_or_default() {
            let mut gives = Given::default();
            match self.trigger(&item, own, zone, &mut gives) {
                None => self.broken.triggers = true,
                Some(when) => {
                    let trigger = Trigger { when, params: gives.values.clone() };
                    if !keys.insert(trigger.key()) {
                        let message = "is the same trigger as one before; remove it";
                        self.findings.error(&item.place, message);
                    }
                    all.push(trigger);
                }
            }
            given.push(gives);
        }
        (all, given)
    }

    fn trigger(
        &mut self,
        item: &Item<'_>,
        own: Option<&TaskId>,
        zone: Option<&str>,
        given: &mut Given,
    ) -> Option<TriggerKind> {
        let mut fields = item.map(&mut self.findings)?;
        let mut kinds: Vec<(&'static str, Item<'_>)> = Vec::new();
        for kind in TRIGGER_KINDS {
            if let Some(value) = fields.take(kind) {
                kinds.push((kind, value));
            }
        }
        let particular = Particular::take(&mut fields);
        let params = fields.take("params");
        let unknown = fields.finish(&mut self.findings);
        let source = match kinds.as_slice() {
            [("file", _)] => Source::File,
            [("event", _)] => Source::Event,
            [_] => Source::Time,
            _ => Source::Unknown,
        };
        (given.values, given.places) = self.trigger_params(params, source);
        let (kind, value) = match kinds.as_slice() {
            [(kind, value)] => (*kind, value),
            // A misspelt kind has been named already.
            [] if unknown => return None,
            [] => {
                let message = format!(
                    "says nothing that starts it; expected one of {}",
                    TRIGGER_KINDS.join(", ")
                );
                self.findings.error(&item.place, message);
                return None;
            }
            [(first, _), (second, extra), ..] => {
                let message =
                    format!("{first} and {second} are two triggers; write two list entries");
                self.findings.error(&extra.place, message);
                return None;
            }
        };
        for (key, item, allowed) in particular.present() {
            if !allowed.contains(&kind) {
                let message =
                    format!("{key} belongs to {} triggers, not to {kind}", allowed.join(" and "));
                self.findings.error(&item.place, message);
            }
        }
        // An event may bring what its trigger does not give.
        given.only = (kind != "event").then(|| (item.place.clone(), kind));
        match kind {
            "cron" => self.cron(value, &particular, zone),
            "every" => self.every(value, &particular),
            "boot" => self.boot(value),
            "file" => self.file(value, &particular),
            "event" => self.event(value),
            _ => self.task_state(value, &particular, own),
        }
    }

    fn trigger_params(
        &mut self,
        item: Option<Item<'_>>,
        source: Source,
    ) -> (JsonMap, BTreeMap<String, Place>) {
        let mut params = JsonMap::new();
        let mut places = BTreeMap::new();
        for (name, place, value) in
            item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default()
        {
            self.each_text(&value, &mut |reading, text, place| {
                reading.template_of(text, place, Stage::Trigger(source));
            });
            params.insert(name.to_owned(), value.node.to_json());
            places.insert(name.to_owned(), place);
        }
        (params, places)
    }

    fn policy(&mut self, keys: &Particular<'_>) -> FirePolicy {
        let misfires =
            [("SKIP", Misfire::Skip), ("RUN_ONCE", Misfire::RunOnce), ("RUN_ALL", Misfire::RunAll)];
        let overlaps = [
            ("SKIP", Overlap::Skip),
            ("QUEUE", Overlap::Queue),
            ("REPLACE", Overlap::Replace),
            ("ALLOW", Overlap::Allow),
        ];
        let default = FirePolicy::default();
        let findings = &mut self.findings;
        let misfire = keys.misfire.as_ref().and_then(|i| i.choice(&misfires, findings));
        let catch_up = keys.catch_up.as_ref().and_then(|i| i.duration(Duration::ZERO, findings));
        let overlap = keys.overlap.as_ref().and_then(|i| i.choice(&overlaps, findings));
        FirePolicy {
            misfire: misfire.unwrap_or(default.misfire),
            catch_up: catch_up.unwrap_or(default.catch_up),
            overlap: overlap.unwrap_or(default.overlap),
        }
    }

    fn cron(
        &mut self,
        value: &Item<'_>,
        keys: &Particular<'_>,
        zone: Option<&str>,
    ) -> Option<TriggerKind> {
        let policy = self.policy(keys);
        let timezone = self.zone_of(keys.timezone.clone());
        let zone = if keys.timezone.is_some() { timezone.as_deref() } else { zone };
        let text = value.text(&mut self.findings)?;
        match CronExpr::parse(text) {
            Ok(expr) => {
                for warning in expr.warnings() {
                    self.findings.warning(&value.place, warning);
                }
                if let Some(warning) = self.clock_warning(&expr, zone) {
                    self.findings.warning(&value.place, warning);
                }
                Some(TriggerKind::Cron(CronTrigger { expr, timezone, policy }))
            }
            Err(error) => {
                self.findings.error(&value.place, format!("{:?}: {error}", shorten(text)));
                None
            }
        }
    }

    /// What the zone's clock will do to an expression within a year, if that was asked for.
    fn clock_warning(&self, expr: &CronExpr, zone: Option<&str>) -> Option<String> {
        const YEAR: Duration = Duration::from_secs(366 * 24 * 3600);
        let (now, name) = (self.context.now?, zone?);
        let zone = jiff::tz::TimeZone::get(name).ok()?;
        let warning = expr.clock_warning(now, now.plus(YEAR), &zone)?;
        Some(format!("in {name} {warning}"))
    }

    fn every(&mut self, value: &Item<'_>, keys: &Particular<'_>) -> Option<TriggerKind> {
        let policy = self.policy(keys);
        let period = value.duration(Duration::from_secs(1), &mut self.findings)?;
        Some(TriggerKind::Every(EveryTrigger { period, policy }))
    }

    fn boot(&mut self, value: &Item<'_>) -> Option<TriggerKind> {
        if value.boolean(&mut self.findings)? {
            return Some(TriggerKind::Boot);
        }
        value.refuse(&mut self.findings, "true, or no such trigger")
    }

    fn file(&mut self, value: &Item<'_>, keys: &Particular<'_>) -> Option<TriggerKind> {
        let findings = &mut self.findings;
        let settle = keys.settle.as_ref().and_then(|i| i.duration(Duration::ZERO, findings));
        let poll = keys.poll.as_ref().and_then(|i| i.duration(limits::POLL_LEAST, findings));
        if let (Some(item), Some(poll)) = (&keys.poll, poll)
            && poll > limits::RESCAN_EVERY
        {
            let every = limits::RESCAN_EVERY;
            let message = format!("everything is looked at every {every:?} anyway");
            findings.warning(&item.place, message);
        }
        let text = value.word(findings)?;
        // The folder's own name is no pattern.
        let base = glob::Pattern::escape(&self.base.to_string_lossy());
        let pattern = absolute_from(Path::new(&base), text);
        if let Some(problem) = pattern_problem(text) {
            let message = format!("{:?} is not a pattern: {problem}", shorten(text));
            self.findings.error(&value.place, message);
            return None;
        }
        Some(TriggerKind::File(FileTrigger {
            pattern,
            settle: settle.unwrap_or(FileTrigger::SETTLE),
            poll,
        }))
    }

    fn event(&mut self, value: &Item<'_>) -> Option<TriggerKind> {
        let text = value.text(&mut self.findings)?;
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        if text.is_empty() || !text.bytes().all(good) {
            let expected = "an event's name of letters, digits, '.', '-' and '_'";
            return value.refuse(&mut self.findings, expected);
        }
        Some(TriggerKind::Event(text.to_owned()))
    }

    fn task_state(
        &mut self,
        value: &Item<'_>,
        keys: &Particular<'_>,
        own: Option<&TaskId>,
    ) -> Option<TriggerKind> {
        let words = TaskTrigger::FINAL.map(|state| (state.as_str(), state));
        let mut states = TaskTrigger::STATES.to_vec();
        if let Some(item) = &keys.states
            && let Some(items) = item.list(&mut self.findings)
        {
            let given = items.iter().filter_map(|i| i.choice(&words, &mut self.findings));
            states = given.collect::<BTreeSet<_>>().into_iter().collect();
            if items.is_empty() {
                item.refuse::<()>(&mut self.findings, "at least one state");
            }
        }
        let task_id = self.task_id(value)?;
        if Some(&task_id) == own {
            let message = format!("{task_id} would start itself for ever; name another task");
            self.findings.error(&value.place, message);
            return None;
        }
        Some(TriggerKind::Task(TaskTrigger { task_id, states }))
    }
}

/// What is wrong with a pattern for files, which is matched name by name.
fn pattern_problem(text: &str) -> Option<String> {
    let mut before = 0;
    for name in text.split('/') {
        if let Err(error) = glob::Pattern::new(name) {
            let problem = match name.split_once("**") {
                // The library's place is none of the stars'.
                Some((head, _)) if name.chars().nth(error.pos) != Some('[') => format!(
                    "the ** at column {} is a part of a name; by itself between slashes it is any \
                     number of directories, in a name write one *",
                    before + head.chars().count() + 1
                ),
                _ => format!(
                    "the [ at column {} has no ] before the next slash; close it, or write [[] for \
                     the character itself",
                    before + error.pos + 1
                ),
            };
            return Some(problem);
        }
        before += name.chars().count() + 1;
    }
    None
}
