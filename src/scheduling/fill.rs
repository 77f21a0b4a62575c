//! Values of placeholders and of parameters, as the core fills them in (contract §2).

use serde_json::Value;

use super::edges::{self, Verdict};
use super::state::State;
use crate::model::instance::Instance;
use crate::model::params;
use crate::model::placeholders::Known;
use crate::model::spec::{JsonMap, TaskSpec};

/// The parameters an instance starts with (docs/waves.md, rule 5): given ones win; then, by name,
/// those of the direct upstreams in `dependsOn` order; then defaults.
///
/// The error names what is missing or wrong.
pub(super) fn complete(state: &State, spec: &TaskSpec, i: &Instance) -> Result<JsonMap, String> {
    let mut params = JsonMap::clone(&i.given_params);
    for (name, schema) in &spec.runtime_params {
        if params.contains_key(name) {
            continue;
        }
        let upstream =
            i.edges.iter().filter_map(|e| e.instance_id.as_ref()).find_map(|id| {
                state.instances.result_of(id).and_then(|(params, _)| params.get(name))
            });
        if let Some(value) = upstream {
            let value = schema.check(value).map_err(|e| format!("parameter {name}: {e}"))?;
            params.insert(name.clone(), value);
        }
    }
    let has_defaults = spec.runtime_params.values().any(|schema| schema.default.is_some());
    let deps = (has_defaults && !i.edges.is_empty()).then(|| deps(state, i));
    let known = Known::of(spec, i, &i.given_params, deps.as_ref());
    let params = params::fill_defaults(&spec.runtime_params, &params, &|name| known.value(name))
        .map_err(|errors| texts(&errors))?;
    match params::missing(&spec.runtime_params, &params).first() {
        Some(name) => Err(format!("parameter {name} is required and nothing gives it")),
        None => Ok(params),
    }
}

/// All faults of parameters in one text.
pub(super) fn texts(errors: &[params::ParamError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// `SCHED_DEPS`: per upstream task its instance, state, parameters, output, the files that were found
/// of its outputs, and whether what was waited for has come, which a degraded run must know.
pub(super) fn deps(state: &State, i: &Instance) -> Value {
    let mut deps = JsonMap::new();
    let spec = state.spec_of(i);
    for (at, edge) in i.edges.iter().enumerate() {
        let id = edge.instance_id.as_ref();
        let result = id.and_then(|id| state.instances.result_of(id));
        let ended = id.and_then(|id| state.instances.state_of(id));
        let outputs = id.and_then(|id| state.instances.outputs_of(id));
        let found = outputs.filter(|outputs| outputs.found.is_some());
        deps.insert(
            edge.task_id.to_string(),
            serde_json::json!({
                "instanceId": id,
                "state": ended.map(|(state, _)| state),
                "params": result.map(|(params, _)| params),
                "satisfied": edges::of_edge(state, spec.as_deref(), i, at) == Verdict::Satisfied,
                "output": result.and_then(|(_, output)| output),
                "outputs": found.map_or(&[][..], |outputs| &outputs.paths),
            }),
        );
    }
    Value::Object(deps)
}
