//! What a task is told of its upstreams: `SCHED_DEPS` and `{deps.TASKID.output.NAME}` (contract §3).

use std::sync::Arc;

use serde_json::{Value, json};

use super::id::{InstanceId, TaskId};
use super::instance::InstanceState;
use super::output::Outputs;
use super::spec::JsonMap;

/// The direct upstreams of an instance, in the order of its edges. Text is made of it only where it
/// is wanted: the core decides about many at a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deps(pub Vec<Dep>);

/// One upstream, as it stood at the dispatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Dep {
    /// The upstream.
    pub task_id: TaskId,
    /// The instance that counts; `None`: there is none.
    pub instance_id: Option<InstanceId>,
    /// Where that is.
    pub state: Option<InstanceState>,
    /// Its runtime parameters.
    pub params: Option<Arc<JsonMap>>,
    /// Its result.
    pub output: Option<Value>,
    /// Its outputs, if somebody has waited for them.
    pub outputs: Option<Arc<Outputs>>,
    /// Whether what was waited for has come, which a degraded run must know.
    pub satisfied: bool,
}

impl Deps {
    /// `{taskId: {"instanceId", "state", "params", "output", "outputs", "satisfied"}}`; in `outputs`
    /// the paths that were found.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let one = |dep: &Dep| {
            let found = dep.outputs.as_ref().filter(|outputs| outputs.found.is_some());
            json!({
                "instanceId": dep.instance_id,
                "state": dep.state,
                "params": dep.params,
                "output": dep.output,
                "outputs": found.map_or(&[][..], |outputs| &outputs.paths),
                "satisfied": dep.satisfied,
            })
        };
        self.0.iter().map(|dep| (dep.task_id.to_string(), one(dep))).collect::<JsonMap>().into()
    }
}
