//! Declared runtime parameters: short form `bizDate: date` and the long one (contract §2).
//!
//! A parameter without `required` is required unless it has a `default`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Reading;
use super::placeholders::Place as Stage;
use crate::access::yaml::Kind;
use crate::access::yaml::fields::{Fields, Item, Place, shorten};
use crate::model::params::{ParamSchema, ParamType};
use crate::model::spec::TaskSpec;
use crate::model::template::Template;

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
            params.insert(
                name.to_owned(),
                schema.unwrap_or_else(|| declared(ParamType::Json, true)),
            );
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

    fn long_form(&mut self, mut fields: Fields<'_>) -> Option<ParamSchema> {
        let kind = fields.need("type", &mut self.findings);
        let kind = kind.and_then(|i| i.choice(&TYPES, &mut self.findings));
        let required = fields.take("required").and_then(|i| i.boolean(&mut self.findings));
        let default = fields.take("default");
        let allowed = fields.take("enum");
        let bounds = [fields.take("min"), fields.take("max")];
        let pattern = fields.take("pattern");
        let secret = fields.take("secret").and_then(|i| i.boolean(&mut self.findings));
        fields.finish(&mut self.findings);
        let mut schema = declared(kind?, required.unwrap_or(default.is_none()));
        schema.secret = secret.unwrap_or(false);
        if let Some(items) = allowed.and_then(|i| i.list(&mut self.findings)) {
            let bare = declared(schema.kind, true);
            schema.allowed = items.iter().filter_map(|i| self.value(i, &bare)).collect();
        }
        let bare = declared(schema.kind, true);
        let [min, max] = bounds.map(|b| b.and_then(|i| self.bound(&i, &bare)));
        (schema.min, schema.max) = (min, max);
        schema.pattern = pattern.and_then(|i| self.pattern(&i, schema.kind));
        schema.default = default.and_then(|i| self.default(&i, &schema));
        Some(schema)
    }

    /// A value of a declared type, in its stored form.
    fn value(&mut self, item: &Item<'_>, schema: &ParamSchema) -> Option<Value> {
        match schema.check(&item.node.to_json()) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.findings.error(&item.place, problem);
                None
            }
        }
    }

    fn bound(&mut self, item: &Item<'_>, schema: &ParamSchema) -> Option<Value> {
        if matches!(schema.kind, ParamType::String | ParamType::Bool | ParamType::Json) {
            let message = "min and max are for int, number, date, datetime and duration";
            self.findings.error(&item.place, message);
            return None;
        }
        self.value(item, schema)
    }

    fn pattern(&mut self, item: &Item<'_>, kind: ParamType) -> Option<String> {
        let text = item.text(&mut self.findings)?;
        if kind != ParamType::String {
            self.findings.error(&item.place, "pattern is for the type string");
            return None;
        }
        match regex::Regex::new(text) {
            Ok(_) => Some(text.to_owned()),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim();
                self.findings.error(
                    &item.place,
                    format!("{:?} is not a regular expression: {reason}", shorten(text)),
                );
                None
            }
        }
    }

    /// A default; texts in it may hold placeholders and are checked when these are filled in.
    fn default(&mut self, item: &Item<'_>, schema: &ParamSchema) -> Option<Value> {
        let value = item.node.to_json();
        let mut filled = false;
        self.each_text(item, &mut |reading, text, place| {
            if let Some(template) = reading.template_of(text, place, Stage::Default) {
                filled |= template.as_str().contains(['{', '}']);
            }
        });
        if filled { Some(value) } else { self.value(item, schema) }
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

    /// The parameters that triggers give must be declared, and right where they are known already.
    pub(super) fn check_trigger_params(
        &mut self,
        spec: &TaskSpec,
        places: &[BTreeMap<String, Place>],
    ) {
        for (trigger, places) in spec.triggers.iter().zip(places) {
            for (name, place) in places {
                let Some(value) = trigger.params.get(name) else { continue };
                let Some(schema) = spec.runtime_params.get(name) else {
                    let declared: Vec<&str> =
                        spec.runtime_params.keys().map(String::as_str).collect();
                    let message = if declared.is_empty() {
                        format!("{name} is not declared; the task has no runtimeParams")
                    } else {
                        format!("{name} is not declared in runtimeParams; {}", declared.join(", "))
                    };
                    self.findings.error(place, message);
                    continue;
                };
                if holds_braces(value) {
                    continue;
                }
                if let Err(problem) = schema.check(value) {
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
        Value::String(text) => {
            Template::parse(text).is_ok_and(|t| t.as_str().contains(['{', '}']))
        }
        Value::Array(items) => items.iter().any(holds_braces),
        Value::Object(map) => map.values().any(holds_braces),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
