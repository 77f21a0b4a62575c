//! What starts a task: the `triggers` of a spec (contract §2, 'Triggers').

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::placeholders::{Place as Stage, Source};
use super::{Reading, absolute_from};
use crate::access::yaml::fields::{Fields, Item, Place, shorten};
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

/// One trigger with the places of its parameters.
type Placed = (Trigger, BTreeMap<String, Place>);

impl Reading<'_> {
    pub(super) fn triggers(
        &mut self,
        item: Option<Item<'_>>,
        own: Option<&TaskId>,
    ) -> (Vec<Trigger>, Vec<BTreeMap<String, Place>>) {
        let mut keys = BTreeSet::new();
        let mut all = Vec::new();
        for item in item.and_then(|i| i.list(&mut self.findings)).unwrap_or_default() {
            let Some((trigger, places)) = self.trigger(&item, own) else { continue };
            if !keys.insert(trigger.key()) {
                self.findings.error(&item.place, "is the same trigger as one before; remove it");
            }
            all.push((trigger, places));
        }
        all.into_iter().unzip()
    }

    fn trigger(&mut self, item: &Item<'_>, own: Option<&TaskId>) -> Option<Placed> {
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
        let when = match kind {
            "cron" => self.cron(value, &particular),
            "every" => self.every(value, &particular),
            "boot" => self.boot(value),
            "file" => self.file(value, &particular),
            "event" => self.event(value),
            _ => self.task_state(value, &particular, own),
        };
        let source = match kind {
            "file" => Source::File,
            "event" => Source::Event,
            _ => Source::Time,
        };
        let (params, places) = self.trigger_params(params, source);
        Some((Trigger { when: when?, params }, places))
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

    fn cron(&mut self, value: &Item<'_>, keys: &Particular<'_>) -> Option<TriggerKind> {
        let policy = self.policy(keys);
        let timezone = self.zone_of(keys.timezone.clone());
        let text = value.text(&mut self.findings)?;
        match CronExpr::parse(text) {
            Ok(expr) => {
                for warning in expr.warnings() {
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
        let least = Duration::from_millis(1);
        let poll = keys.poll.as_ref().and_then(|i| i.duration(least, findings));
        let text = value.word(findings)?;
        let pattern = absolute_from(&self.base, text);
        if let Err(error) = glob::Pattern::new(&pattern) {
            let message = format!("{:?} is not a pattern: {}", shorten(text), error.msg);
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
        if let Some(item) = &keys.states {
            let items = item.list(&mut self.findings)?;
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
