//! Values of placeholders and of parameters, as the core fills them in (contract §2).

use super::edges::{self, Verdict};
use super::state::State;
use crate::model::deps::{Dep, Deps};
use crate::model::instance::{Edge, Instance};
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

/// What an instance is told of its upstreams.
pub(super) fn deps(state: &State, i: &Instance) -> Deps {
    let spec = state.spec_of(i);
    let table = &state.instances;
    let one = |(at, edge): (usize, &Edge)| {
        let id = edge.instance_id.as_ref();
        Dep {
            task_id: edge.task_id.clone(),
            instance_id: id.cloned(),
            state: id.and_then(|id| table.state_of(id)).map(|(state, _)| state),
            params: id.and_then(|id| table.params_of(id)).cloned(),
            output: id.and_then(|id| table.result_of(id)?.1).cloned(),
            outputs: id.and_then(|id| table.outputs_of(id)).cloned(),
            satisfied: edges::of_edge(state, spec.as_deref(), i, at) == Verdict::Satisfied,
        }
    };
    Deps(i.edges.iter().enumerate().map(one).collect())
}
