//! Why a task has no instance now, and whether a time is one of its fires.

use super::super::answers;
use super::super::nominal::Nominal;
use super::super::state::State;
use super::edges::next_fire;
use crate::model::explain::{FireExplanation, TaskExplanation};
use crate::model::id::TaskId;
use crate::model::jump::Span;
use crate::model::request::{Answer, Reply};
use crate::model::spec::TaskSpec;
use crate::model::time::Timestamp;

/// How far back the fire before a time is looked for: once a year at least is what people plan.
const BACK: std::time::Duration = std::time::Duration::from_secs(400 * 86_400);

/// What the core knows of a task; the door adds the ledger, the newest instances and the words.
pub(in super::super) fn task(
    state: &State,
    now: Timestamp,
    id: &TaskId,
    at: Option<Timestamp>,
) -> Answer {
    let found = state.registry.spec(id);
    let Some((spec, view)) = found.and_then(|s| Some((s, answers::view(state, s)?))) else {
        return Err(answers::no_task(state, id));
    };
    // A version that takes its share of a lower one's cycles fires with that one.
    let leader = state.registry.rollouts().leader(id).filter(|leader| *leader != id);
    let firing = leader.and_then(|leader| state.registry.spec(leader)).unwrap_or(spec);
    let next = next_fire(state, firing);
    let next_fire_time = next.as_ref().map(|(at, _)| *at);
    let held = next_fire_time.and_then(|at| answers::held(state, spec, at));
    let open = state.instances.open_of(id).count();
    Ok(Reply::TaskExplanation(Box::new(TaskExplanation {
        task_id: id.clone(),
        status: view.status,
        summary: Vec::new(),
        schedule: view.schedule,
        is_derived: spec.is_derived(),
        upstreams: spec.depends_on.iter().map(|d| d.task_id.clone()).collect(),
        unresolved: view.unresolved,
        pauses: super::pauses(state, id, &spec.queue),
        pinned: view.pinned,
        spec_errors: view.spec_errors.iter().map(ToString::to_string).collect(),
        fires_with: leader.cloned(),
        next_fire_time,
        next_cycle: next.map(|(_, cycle)| cycle.label().to_owned()),
        next_note: held.map(str::to_owned),
        open: u64::try_from(open).unwrap_or(u64::MAX),
        recent: Vec::new(),
        at: at.map(|at| asked(state, firing, at, now, view.created_at)),
    })))
}

/// What the triggers say of a time.
fn asked(
    state: &State,
    spec: &TaskSpec,
    at: Timestamp,
    now: Timestamp,
    defined_at: Timestamp,
) -> FireExplanation {
    let timed = spec.triggers.iter().filter_map(|t| Some((t.key(), state.nominal(spec, t)?)));
    let timed: Vec<(String, Nominal)> = timed.collect();
    let just_before = at.just_before();
    let span = Span { after: just_before.minus(BACK), to: just_before };
    FireExplanation {
        at,
        triggers: timed.iter().filter(|(_, n)| n.fires_at(at)).map(|(k, _)| k.clone()).collect(),
        fire: None,
        instance: None,
        before: timed.iter().filter_map(|(_, n)| n.last(span)).max(),
        after: timed.iter().filter_map(|(_, n)| n.next(at)).min(),
        to_come: at > now,
        defined_at,
    }
}
