//! Declared runtime parameters: short form `bizDate: date` and the long one (contract §2).
//!
//! A parameter without `required` is required unless it has a `default`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Reading;
use super::placeholders::Place as Stage;
use super::triggers::Given;
use crate::access::yaml::Kind;
use crate::access::yaml::fields::{Fields, Item, Place, shorten, suggestion};
use crate::limits;
use crate::model::params::{ParamSchema, ParamType, fill_value, missing};
use crate::model::spec::{JsonMap, TaskSpec};
use crate::model::template::{Budget, Template};

const TYPES: [(&str, ParamType); 8] = [
    ("string", ParamType::String),
    ("int", ParamType::Int),
    ("number", ParamType::Number),
    ("bool", ParamType::Bool),
    ("date", ParamType::Date),
    ("datetime", ParamType::Datetime),
    ("duration", ParamType::Duration),
    ("json", ParamType::Json),
];

impl Reading<'_> {
    pub(super) fn runtime_params(
        &mut self,
        item: Option<Item<'_>>,
    ) -> BTreeMap<String, ParamSchema> {
        let mut params = BTreeMap::new();
        for (name, place, value) in
            item.and_then(|i| i.pairs(&mut self.findings)).unwrap_or_default()
        {
            self.param_name(name, &place);
            let schema = if matches!(value.node.kind, Kind::Map(_)) {
                value.map(&mut self.findings).and_then(|fields| self.long_form(fields))
            } else {
                let kind = value.choice(&TYPES, &mut self.findings);
                kind.map(|kind| declared(kind, true))
            };
            // A faulty one still counts as declared: its users are not at fault.
            params
                .insert(name.to_owned(), schema.unwrap_or_else(|| declared(ParamType::Json, true)));
        }
        params
    }

    fn param_name(&mut self, name: &str, place: &Place) {
        let mut bytes = name.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        let rest = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if !first || !bytes.all(rest) {
            let message = format!(
                "{:?} is no parameter name; expected letters, digits, _ and -, a letter first",
                shorten(name)
            );
            self.findings.error(place, message);
        }
    }

    /// Says what becomes of a trigger's fires when nothing gives a required parameter.
    fn warn_of_missing(&mut self, spec: &TaskSpec, given: &JsonMap, at: &Place, kind: &str) {
        let without = |schema: &ParamSchema| schema.required && schema.default.is_none();
        let mut missing = missing(&spec.runtime_params, given);
        missing.retain(|name| spec.runtime_params.get(name).is_some_and(without));
        if missing.is_empty() {
            return;
        }
        let message = format!(
            "gives no {}, which each run requires: every fire of this {kind} trigger ends \
             REJECTED_PARAMS and runs nothing; give it in the trigger's params, or give the \
             parameter a default",
            shorten(&missing.join(" and no "))
        );
        self.findings.warning(at, message);
    }

    fn long_form(&mut self, mut fields: Fields<'_>) -> Option<ParamSchema> {
        let kind = fields.need("type", &mut self.findings);
        let kind = kind.and_then(|i| i.choice(&TYPES, &mut self.findings));
        let required = fields.take("required").and_then(|i| i.boolean(&mut self.findings));
        // What may be meant to be secret is not shown.
        let secret =
            fields.take("secret").is_some_and(|i| i.boolean(&mut self.findings).unwrap_or(true));
        let keys = ["default", "enum", "min", "max", "pattern"];
        let items: BTreeMap<&str, Item<'_>> =
            keys.into_iter().filter_map(|key| Some((key, fields.take(key)?))).collect();
        fields.finish(&mut self.findings);
        let json = |key: &str| items.get(key).map(|item| item.node.to_json());
        let Some(kind) = kind else {
            if let Some(item) = items.get("default").filter(|_| !secret) {
                self.default_texts(item);
            }
            return None;
        };
        let mut schema = declared(kind, required.unwrap_or_else(|| !items.contains_key("default")));
        schema.secret = secret;
        schema.default = json("default");
        (schema.min, schema.max) = (json("min"), json("max"));
        if let Some(item) = items.get("enum")
            && let Some(allowed) = item.list(&mut self.findings)
        {
            if allowed.is_empty() {
                item.refuse::<()>(&mut self.findings, "at least one value");
            }
            schema.allowed = allowed.iter().map(|i| i.node.to_json()).collect();
        }
        if let Some(item) = items.get("pattern") {
            self.patterns += 1;
            if self.patterns > limits::PATTERNS_MAX {
                let max = limits::PATTERNS_MAX;
                let message = format!("is one pattern too many; a file may have {max} of them");
                self.findings.error(&item.place, message);
                return Some(schema);
            }
            schema.pattern = item.text(&mut self.findings).map(str::to_owned);
        }
        self.declaration(&items, &mut schema);
        Some(schema)
    }

    /// What is wrong with a declaration as a whole, and its default.
    fn declaration(&mut self, items: &BTreeMap<&str, Item<'_>>, schema: &mut ParamSchema) {
        let faults = schema.faults();
        let faults: Vec<(&str, &str)> =
            faults.iter().map(|f| f.split_once(": ").unwrap_or(("type", f))).collect();
        // A text that is no template is told where templates are, unless nobody may see it.
        let is_template =
            |value: &Value| fill_value(value, &|_name| Some(String::new()), &Budget::new()).is_ok();
        let stranger = !schema.secret && !schema.default.as_ref().is_none_or(is_template);
        for (key, problem) in &faults {
            if let Some(item) = items.get(key).filter(|_| *key != "default" || !stranger) {
                self.findings.error(&item.place, *problem);
            }
        }
        let wrong = faults.iter().any(|(key, _)| *key == "default");
        if let Some(item) = items.get("default").filter(|_| stranger || !wrong) {
            self.default(item, schema);
        }
    }

    /// The texts of a default, which may hold placeholders.
    fn default_texts(&mut self, item: &Item<'_>) {
        self.each_text(item, &mut |reading, text, place| {
            reading.template_of(text, place, Stage::Default);
        });
    }

    /// A default in its stored form; texts in it may hold placeholders and stay as written then.
    fn default(&mut self, item: &Item<'_>, schema: &mut ParamSchema) {
        self.default_texts(item);
        let value = item.node.to_json();
        if !holds_braces(&value)
            && let Ok(stored) = schema.check(&value)
        {
            schema.default = Some(stored);
        }
    }

    /// Calls `with` for every text in a value, however deep.
    pub(super) fn each_text(
        &mut self,
        item: &Item<'_>,
        with: &mut dyn FnMut(&mut Self, &str, &Place),
    ) {
        match &item.node.kind {
            Kind::Scalar(scalar) => {
                if scalar.value.is_string() {
                    with(self, &scalar.text, &item.place);
                }
            }
            Kind::List(_) => {
                for part in item.list(&mut self.findings).unwrap_or_default() {
                    self.each_text(&part, with);
                }
            }
            Kind::Map(_) => {
                for (_, _, part) in item.pairs(&mut self.findings).unwrap_or_default() {
                    self.each_text(&part, with);
                }
            }
        }
    }

    /// The parameters that triggers give must be declared, and right where they are known already;
    /// a trigger that gives too few makes no instance, which deserves a word.
    pub(super) fn check_trigger_params(&mut self, spec: &TaskSpec, given: &[Given]) {
        if self.broken.runtime_params {
            return;
        }
        for Given { values, places, only } in given {
            if let Some((place, kind)) = only
                && spec.enabled
                && spec.depends_on.is_empty()
                && !self.broken.depends_on
            {
                self.warn_of_missing(spec, values, place, kind);
            }
            for (name, place) in places {
                if self.findings.is_full() {
                    return;
                }
                let Some(value) = values.get(name) else { continue };
                let Some(schema) = spec.runtime_params.get(name) else {
                    let declared: Vec<&str> =
                        spec.runtime_params.keys().map(String::as_str).collect();
                    let message = if declared.is_empty() {
                        format!("{name} is not declared; the task has no runtimeParams")
                    } else {
                        let near = suggestion(name, declared.iter().copied());
                        let some = declared.get(..20).unwrap_or(&declared).join(", ");
                        let known =
                            if near.is_empty() { format!("; declared are {some}") } else { near };
                        format!("{name} is not declared in runtimeParams{known}")
                    };
                    self.findings.error(place, message);
                    continue;
                };
                // What is filled in later is checked then; doubled braces are plain text.
                let plain = fill_value(value, &|_name| None, &Budget::new());
                if let Some(problem) = plain.ok().and_then(|plain| schema.check(&plain).err()) {
                    self.findings.error(place, problem);
                }
            }
        }
    }
}

fn declared(kind: ParamType, required: bool) -> ParamSchema {
    ParamSchema {
        kind,
        required,
        default: None,
        allowed: Vec::new(),
        min: None,
        max: None,
        pattern: None,
        secret: false,
    }
}

/// Whether some text in a value is filled in later.
fn holds_braces(value: &Value) -> bool {
    match value {
        Value::String(text) => Template::parse(text).is_ok_and(|t| t.as_str().contains(['{', '}'])),
        Value::Array(items) => items.iter().any(holds_braces),
        Value::Object(map) => map.values().any(holds_braces),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
