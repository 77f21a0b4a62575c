//! Values of placeholders and of parameters, as the core fills them in (contract §2).

use serde_json::Value;

use super::state::State;
use crate::model::cycle::Cycle;
use crate::model::id::InstanceId;
use crate::model::instance::Instance;
use crate::model::params;
use crate::model::spec::{JsonMap, TaskSpec};
use crate::model::template::Template;
use crate::model::time::Timestamp;

/// What placeholders may speak of before an instance is there.
pub(super) struct Facts<'a> {
    pub(super) spec: &'a TaskSpec,
    pub(super) instance_id: &'a InstanceId,
    pub(super) cycle: &'a Cycle,
    pub(super) scheduled_time: Timestamp,
    pub(super) params: &'a JsonMap,
    pub(super) file: Option<&'a str>,
    pub(super) event: Option<&'a JsonMap>,
}

impl Facts<'_> {
    /// The value of a placeholder.
    fn value(&self, name: &str) -> Option<String> {
        if let Some(name) = name.strip_prefix("params.") {
            return self.params.get(name).and_then(params::scalar_text);
        }
        if let Some(name) = name.strip_prefix("static.") {
            return self.spec.static_params.get(name).and_then(params::scalar_text);
        }
        if let Some(name) = name.strip_prefix("event.") {
            return self.event?.get(name).and_then(params::scalar_text);
        }
        match name {
            "taskId" => Some(self.spec.task_id.to_string()),
            "version" => Some(self.spec.version.to_string()),
            "instanceId" => Some(self.instance_id.to_string()),
            "handler" => Some(self.spec.handler.clone()),
            "cycle" => Some(self.cycle.label().to_owned()),
            "date" => Some(self.cycle.date().to_owned()),
            "scheduledTime" => Some(self.scheduled_time.to_string()),
            "file.path" => self.file.map(str::to_owned),
            "file.name" => self.file.map(|p| p.rsplit('/').next().unwrap_or(p).to_owned()),
            _ => None,
        }
    }

    /// Fills a text; the error names the placeholder that has no value.
    pub(super) fn text(&self, template: &Template) -> Result<String, String> {
        template.fill(&|name| self.value(name)).map_err(|unfilled| unfilled.to_string())
    }

    /// Fills every string inside a JSON value.
    pub(super) fn json(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => {
                let template = Template::parse(text).map_err(|e| e.to_string())?;
                Value::String(self.text(&template)?)
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|v| self.json(v)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => Value::Object(self.map(map)?),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// Fills every string inside a JSON object.
    pub(super) fn map(&self, map: &JsonMap) -> Result<JsonMap, String> {
        map.iter().map(|(k, v)| Ok((k.clone(), self.json(v)?))).collect()
    }
}

/// The parameters an instance starts with (design, rule 5): given ones win; then, by name, those
/// of the direct upstreams in `dependsOn` order; then defaults.
///
/// The error names what is missing or wrong.
pub(super) fn complete(state: &State, spec: &TaskSpec, i: &Instance) -> Result<JsonMap, String> {
    let mut params = i.given_params.clone();
    for (name, schema) in &spec.runtime_params {
        if params.contains_key(name) {
            continue;
        }
        let upstream = i.edges.iter().filter_map(|e| e.instance_id.as_ref()).find_map(|id| {
            state.instances.result_of(id).and_then(|(params, _)| params.get(name).cloned())
        });
        let value = match (upstream, &schema.default) {
            (Some(value), _) => value,
            (None, Some(default)) => {
                let facts = Facts {
                    spec,
                    instance_id: &i.instance_id,
                    cycle: &i.cycle,
                    scheduled_time: i.scheduled_time,
                    params: &params,
                    file: None,
                    event: None,
                };
                facts.json(default).map_err(|e| format!("default of parameter {name}: {e}"))?
            }
            (None, None) if schema.required => {
                return Err(format!("parameter {name} is required and nothing gives it"));
            }
            (None, None) => continue,
        };
        let value = schema.check(&value).map_err(|e| format!("parameter {name}: {e}"))?;
        params.insert(name.clone(), value);
    }
    Ok(params)
}

/// `SCHED_DEPS`: per upstream task its instance, state, parameters and output.
pub(super) fn deps(state: &State, i: &Instance) -> Value {
    let mut deps = JsonMap::new();
    for edge in &i.edges {
        let id = edge.instance_id.as_ref();
        let result = id.and_then(|id| state.instances.result_of(id));
        let ended = id.and_then(|id| state.instances.state_of(id));
        deps.insert(
            edge.task_id.to_string(),
            serde_json::json!({
                "instanceId": id,
                "state": ended.map(|(state, _)| state),
                "params": result.map(|(params, _)| params),
                "output": result.and_then(|(_, output)| output),
            }),
        );
    }
    Value::Object(deps)
}
