//! What the edges of a waiting instance say (docs/waves.md, rules 2, 6, 7 and 9): nothing here
//! changes anything.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::ended::Standing;
use super::instances::Need;
use super::lifecycle::data::{self, Data};
use super::state::State;
use crate::limits;
use crate::model::condition::Condition;
use crate::model::cycle::{Cycle, Lag};
use crate::model::empty_cycle::EmptyCycle;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::{Edge, Instance, InstanceState, Reason};
use crate::model::spec::{Dependency, JsonMap, Strength, TaskSpec};

/// What an edge says, or all edges of an instance together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Satisfied,
    /// With words for a person, if there is more to say than that it waits.
    Waiting(Option<String>),
    /// With words for a person, where the reason does not say it all.
    Blocked(Reason, Option<String>),
    /// The instance ends without a start, for this reason.
    Ends(Reason),
}

/// What all edges of an instance say together, and the edge that decides it: the first that blocks,
/// else the first that waits.
pub(super) fn verdict(state: &State, i: &Instance) -> (Verdict, Option<usize>) {
    let spec = state.spec_of(i);
    let mut waiting: Option<(usize, Vec<String>)> = None;
    let mut blocked = None;
    for at in 0..i.edges.len() {
        match of_edge(state, spec.as_deref(), i, at) {
            Verdict::Satisfied => {}
            Verdict::Waiting(words) => waiting.get_or_insert((at, Vec::new())).1.extend(words),
            Verdict::Blocked(reason, message) => blocked = blocked.or(Some((reason, message, at))),
            Verdict::Ends(reason) => return (Verdict::Ends(reason), None),
        }
    }
    match (blocked, waiting) {
        (Some((reason, message, at)), _) => (Verdict::Blocked(reason, message), Some(at)),
        (None, Some((at, words))) => (Verdict::Waiting(in_one(&words)), Some(at)),
        (None, None) => (Verdict::Satisfied, None),
    }
}

fn in_one(words: &[String]) -> Option<String> {
    let mut text = words.join("; ");
    text.truncate(text.floor_char_boundary(limits::MESSAGE_BYTES_MAX));
    Some(text).filter(|text| !text.is_empty())
}

/// Whether each edge of an instance has a condition without an answer.
pub(super) fn unanswered(state: &State, i: &Instance) -> Vec<bool> {
    let spec = state.spec_of(i);
    let has_none = |at| match of_edge(state, spec.as_deref(), i, at) {
        Verdict::Blocked(reason, _) => reason == Reason::ConditionError,
        Verdict::Satisfied | Verdict::Waiting(_) | Verdict::Ends(_) => false,
    };
    (0..i.edges.len()).map(has_none).collect()
}

/// What the edge at this place of an instance says; its condition is that of the definition.
pub(super) fn of_edge(state: &State, spec: Option<&TaskSpec>, i: &Instance, at: usize) -> Verdict {
    let Some(edge) = i.edges.get(at) else { return Verdict::Satisfied };
    let mut found = standing(state, i, edge);
    if found == Verdict::Satisfied
        && let Some(condition) = spec.and_then(|spec| declared(spec, at, edge)?.when.as_ref())
    {
        found = asked(state, edge, condition);
    }
    // Last: what is skipped anyway waits for no data.
    if found == Verdict::Satisfied { with_data(state, edge) } else { found }
}

/// What a definition says of an edge, which mostly stands at the same place there.
fn declared<'a>(spec: &'a TaskSpec, at: usize, edge: &Edge) -> Option<&'a Dependency> {
    let same = |d: &&Dependency| d.task_id == edge.task_id;
    spec.depends_on.get(at).filter(same).or_else(|| spec.depends_on.iter().find(same))
}

/// What an edge says that holds but for the data it may ask for (docs/waves.md, rule 8).
fn with_data(state: &State, edge: &Edge) -> Verdict {
    match data::standing(state, edge) {
        Data::There => Verdict::Satisfied,
        Data::Awaited(words) => Verdict::Waiting(Some(words)),
        Data::Unknowable(words) => {
            Verdict::Blocked(Reason::ConditionError, in_one(std::slice::from_ref(&words)))
        }
    }
}

fn standing(state: &State, i: &Instance, edge: &Edge) -> Verdict {
    let bound = edge.instance_id.as_ref().map(|id| state.instances.standing(id));
    match (bound, edge.strength) {
        (None, strength) => {
            match (empty_cycle(state, &i.cycle, &edge.task_id, edge.cycle_offset), strength) {
                (Some(_), Strength::Weak) => Verdict::Satisfied,
                (Some(empty), Strength::Strong) => {
                    Verdict::Blocked(Reason::UpstreamSkipped, Some(made_nothing(empty)))
                }
                (None, _) => {
                    let known = state.registry.spec(&edge.task_id).is_some_and(|s| s.enabled);
                    if known {
                        Verdict::Waiting(None)
                    } else {
                        Verdict::Blocked(Reason::SpecRemoved, None)
                    }
                }
            }
        }
        (Some(Some(Standing::Open)), _) => Verdict::Waiting(None),
        (Some(Some(Standing::Succeeded)), _) | (Some(_), Strength::Weak) => Verdict::Satisfied,
        (Some(Some(Standing::Skipped)), Strength::Strong) => Verdict::Ends(Reason::UpstreamSkipped),
        (Some(Some(Standing::Failed) | None), Strength::Strong) => {
            Verdict::Blocked(Reason::UpstreamFailed, None)
        }
    }
}

/// The cycle of the upstream that ends an open edge, because its fires made no instance and none
/// was made since (docs/waves.md, rule 7); the newest, if there are several.
pub(super) fn empty_cycle<'a>(
    state: &'a State,
    cycle: &Cycle,
    upstream: &TaskId,
    offset: i32,
) -> Option<&'a EmptyCycle> {
    let lag = lag(state, upstream, offset);
    let versions = state.registry.rollouts().of(upstream);
    let empty = state.empty_cycles.newest(versions, cycle, lag.as_ref())?;
    let made = state.instances.newest_matching(versions, cycle, lag.as_ref());
    made.is_none().then_some(empty)
}

/// That an upstream fired for a cycle and made nothing, in words.
pub(super) fn made_nothing(empty: &EmptyCycle) -> String {
    let EmptyCycle { task_id, cycle, outcome, .. } = empty;
    let words = empty.reason.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
    format!(
        "{task_id} fired for the cycle {cycle} and made no instance ({}{words}); it goes on when \
         that cycle is run: schedctl run {task_id} --cycle {cycle}",
        outcome.as_str()
    )
}

/// What the condition of an edge says, now that its upstream has ended.
fn asked(state: &State, edge: &Edge, condition: &Condition) -> Verdict {
    let error = |why: &str| {
        let text = format!("the condition on {} ({}): {why}", edge.task_id, condition.as_str());
        Verdict::Blocked(Reason::ConditionError, Some(text))
    };
    let (none, null) = (JsonMap::new(), Value::Null);
    let result = match &edge.instance_id {
        // A cycle without an instance has no output, and was not run by decision.
        None => Some(((&none, None), InstanceState::Cancelled)),
        Some(id) => {
            state.instances.result_of(id).zip(state.instances.state_of(id).map(|(state, _)| state))
        }
    };
    let Some(((params, output), ended)) = result else {
        return error("the instance is no longer in the store");
    };
    match condition.evaluate(output.unwrap_or(&null), params, &ended.to_string()) {
        Ok(true) => Verdict::Satisfied,
        Ok(false) => Verdict::Ends(Reason::ConditionFalse),
        Err(problem) => error(&problem),
    }
}

/// What an edge's offset means; `None`: it looks for its own cycle.
pub(super) fn lag(state: &State, upstream: &TaskId, offset: i32) -> Option<Lag> {
    (offset != 0).then(|| Lag { offset, zone: zone(state, upstream) })
}

/// The zone in which a task's cycles have their names: a derived task takes them from its roots.
fn zone(state: &State, task: &TaskId) -> TimeZone {
    let registry = &state.registry;
    let unit = registry.rule(task).unit;
    let mut at = task;
    while let Some(spec) = registry.spec(at).filter(|spec| spec.is_derived()) {
        let mut upstreams = spec.depends_on.iter().map(|d| &d.task_id);
        let of_unit = upstreams.clone().find(|up| registry.rule(up).unit == unit);
        match of_unit.or_else(|| upstreams.next()) {
            Some(upstream) => at = upstream,
            None => break,
        }
    }
    state.zone(registry.spec(at).and_then(|spec| spec.timezone.as_deref()))
}

/// Waiting instances with an open edge that looks for this cycle of a task.
pub(super) fn open_edges_for(state: &State, upstream: &TaskId, cycle: &Cycle) -> Vec<InstanceId> {
    let lag = |offset| lag(state, upstream, offset);
    let waiting = state.instances.waiting_for(upstream, cycle, &lag);
    let open = waiting.into_iter().filter(|(_, need, ..)| *need == Need::Open);
    open.flat_map(|(.., ids)| ids).cloned().collect()
}
