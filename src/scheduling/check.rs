//! A set of spec files checked as one, without a daemon (`schedctl validate`, `schedd check`): by
//! the registry that the daemon uses, so that both say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::registry::Registry;
use crate::model::cycle::CycleUnit;
use crate::model::event::{Definitions, SpecError, SpecFile, SpecPlaces};
use crate::model::id::TaskId;
use crate::model::spec::{DepType, TaskSpec, TriggerKind};

/// What only all files together can tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetFaults {
    /// Two files with one id, cycles, runs with two roots. What a file says by itself is not here.
    pub errors: Vec<SpecError>,
    /// What is accepted but deserves a word: an upstream that none of the files defines, an edge
    /// that can promise less than it says, a task that runs more often than its unit.
    pub warnings: Vec<SpecError>,
}

/// Checks files as if they were all that the spec directory holds. Work grows with their number
/// and that of their edges.
#[must_use]
pub fn check_set(files: Vec<SpecFile>) -> SetFaults {
    let mut registry = Registry::default();
    let own: BTreeSet<SpecError> = files.iter().flat_map(|f| &f.errors).cloned().collect();
    let present = Some(files.iter().map(|file| file.path.clone()).collect());
    let mut specs: BTreeMap<TaskId, Placed> = BTreeMap::new();
    for file in &files {
        for (at, spec) in file.specs.iter().enumerate() {
            let first = specs.entry(spec.task_id.clone());
            first.or_insert_with(|| Placed {
                file: file.path.clone(),
                spec: Arc::clone(spec),
                places: file.places.get(at).copied().unwrap_or_default(),
            });
        }
    }
    let plan = registry.read(Definitions { changed: files, present, ..Definitions::default() });
    let mut errors = plan.refused;
    errors.retain(|error| !own.contains(error));
    errors.iter_mut().for_each(forget_what_is_in_force);
    errors.sort();
    let mut warnings = Vec::new();
    for Placed { file, spec, places } in specs.values() {
        let mut warn = |path: &str, message: String| {
            let (line, column) = places.of(path);
            let (file, path) = (file.clone(), path.to_owned());
            warnings.push(SpecError { file, line, column, path, message });
        };
        edges(spec, &specs, &mut |message| warn("dependsOn", message));
        listens(spec, &specs, &mut |message| warn("triggers", message));
        unit(spec, &registry, &mut |message| warn("cycle", message));
        share(spec, &registry, &mut |message| warn("taskId", message));
    }
    SetFaults { errors, warnings }
}

/// Nothing is in force here: of two files with one id neither has the better right.
fn forget_what_is_in_force(error: &mut SpecError) {
    if let Some((twin, _)) = error.message.split_once(", which stays in force;") {
        let twin = twin.replacen(" is already defined in ", " is defined in ", 1);
        error.message = format!("{twin} too; give this one another id or remove one of the two");
    }
}

/// A definition and where it stands.
struct Placed {
    file: String,
    spec: Arc<TaskSpec>,
    places: SpecPlaces,
}

fn edges(spec: &TaskSpec, specs: &BTreeMap<TaskId, Placed>, warn: &mut dyn FnMut(String)) {
    let task = &spec.task_id;
    for edge in &spec.depends_on {
        let upstream = &edge.task_id;
        match specs.get(upstream) {
            None => warn(format!("{task} waits for {upstream}, which none of these files defines")),
            Some(above) if edge.dep_type == DepType::DataReady && above.spec.outputs.is_empty() => {
                warn(format!(
                    "{task} waits for the data of {upstream}, which declares no outputs: that is \
                     the same as depType: SUCCESS"
                ));
            }
            Some(_) => {}
        }
    }
}

fn listens(spec: &TaskSpec, specs: &BTreeMap<TaskId, Placed>, warn: &mut dyn FnMut(String)) {
    for trigger in &spec.triggers {
        if let TriggerKind::Task(on) = &trigger.when
            && !specs.contains_key(&on.task_id)
        {
            warn(format!(
                "{} listens to {}, which none of these files defines: the trigger does not fire \
                 until one does",
                spec.task_id, on.task_id
            ));
        }
    }
}

/// A derived task runs once for each instance of its roots, whatever its own unit.
fn unit(spec: &TaskSpec, registry: &Registry, warn: &mut dyn FnMut(String)) {
    let task = &spec.task_id;
    let unit = registry.rule(task).unit;
    let Some(finest) = registry.graph().finest_root(task) else { return };
    if spec.is_derived() && finest < unit && finest != CycleUnit::Run {
        warn(format!(
            "{task} has the unit {} but hangs on a task of unit {}: it runs once for each of that \
             one's instances",
            unit.name(),
            finest.name(),
        ));
    }
}

/// A version takes its share of a lower one's cycles, so there must be one.
fn share(spec: &TaskSpec, registry: &Registry, warn: &mut dyn FnMut(String)) {
    let task = &spec.task_id;
    if spec.enabled && spec.rollout.is_some() && !registry.rollouts().is_taker(task) {
        warn(format!(
            "{task} has a rollout, but none of these files defines an enabled lower version of \
             {}: it takes every cycle of its own triggers",
            task.base()
        ));
    }
}
