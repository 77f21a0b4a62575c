//! The spec directory was read: what that changes is put in force (requirement I1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::ended::Standing;
use super::super::registry::{self, Offer, Plan};
use super::super::turn::Turn;
use super::misfire::Unseen;
use super::{admit, appear, arrive, bind, boot, clock, hold, misfire};
use crate::limits;
use crate::model::event::Definitions;
use crate::model::id::{InstanceId, TaskId};
use crate::model::instance::Edge;
use crate::model::jump::Jumps;
use crate::model::record::{Record, Revision, Row, TaskRow};
use crate::model::spec::{TaskSpec, Trigger, TriggerKind};

/// Tasks whose definition in force is another now, with the one before.
pub(super) type Changed = BTreeMap<TaskId, Option<Arc<TaskSpec>>>;

/// Puts a reading of the directory in force. The first one, with all its parts, also opens the
/// core: only then is it known which fires were missed.
pub(in super::super) fn read(turn: &mut Turn<'_>, read: Definitions) {
    let more = read.more;
    let plan = turn.state.registry.read(read);
    carry_out(turn, plan);
    if !turn.state.opened && !more {
        turn.state.opened = true;
        // Definitions that did not change since the last daemon have their files watched too.
        arrive::watch(turn);
        clock::set_back(turn);
        misfire::all(turn, Unseen::Down);
        boot::all(turn);
    }
}

/// Puts in force what a reading changes.
pub(super) fn carry_out(turn: &mut Turn<'_>, plan: Plan) {
    for error in plan.refused {
        turn.record(Record::DefinitionRefused(error));
    }
    for (task, why) in plan.unpinned {
        if let Some(mut row) = turn.state.registry.row(&task).cloned() {
            let revision = row.revision.unwrap_or_default();
            row.pinned = None;
            turn.record(Record::DefinitionUnpinned {
                task_id: task,
                revision,
                why: why.to_owned(),
            });
            turn.put_task(row);
        }
    }
    let mut changed = Changed::new();
    for offer in plan.loaded {
        let task = offer.spec.task_id.clone();
        changed.insert(task.clone(), turn.state.registry.spec(&task).cloned());
        load(turn, offer);
    }
    for task in plan.removed {
        changed.insert(task.clone(), turn.state.registry.spec(&task).cloned());
        if let Some(mut row) = turn.state.registry.row(&task).cloned() {
            row.revision = None;
            turn.record(Record::DefinitionRemoved { task_id: task, file: row.file.clone() });
            turn.put_task(row);
        }
    }
    for (task, file) in plan.moved {
        if let Some(mut row) = turn.state.registry.row(&task).cloned() {
            row.file = file;
            turn.put_task(row);
        }
    }
    take_effect(turn, &changed);
}

/// What follows for triggers and instances once other definitions are in force.
pub(super) fn take_effect(turn: &mut Turn<'_>, changed: &Changed) {
    for (task, before) in changed {
        triggers(turn, task, before.as_ref());
        follow(turn, task, before.as_ref());
        for waiting in turn.state.instances.open_edges_on(task) {
            turn.admit_later(waiting);
        }
        let followed = turn.state.instances.followed(task);
        turn.state.registry.forget_unused(task, &followed);
    }
    appear::all(turn, changed);
    for spec in beside(turn, changed) {
        triggers(turn, &spec.task_id, Some(&spec));
    }
    let now = changed.keys().filter_map(|task| turn.state.registry.spec(task));
    let before = changed.values().filter_map(Option::as_ref);
    let on_file = |t: &Trigger| matches!(t.when, TriggerKind::File(_));
    // Before the last part of the first reading it is not known who listens.
    if turn.state.opened && now.chain(before).any(|spec| spec.triggers.iter().any(on_file)) {
        arrive::watch(turn);
    }
}

fn load(turn: &mut Turn<'_>, offer: Offer) {
    let Offer { spec, file, uid } = offer;
    let task_id = spec.task_id.clone();
    let old = turn.state.registry.row(&task_id).cloned();
    let mut row = old.unwrap_or_else(|| TaskRow {
        task_id: task_id.clone(),
        revision: None,
        file: String::new(),
        created_at: turn.now,
        revisions: 0,
        newest_hash: None,
        paused: None,
        priority: None,
        pinned: None,
    });
    let hash = registry::hash(&spec);
    // A definition that comes back as it went is the revision that it was.
    let is_new = row.newest_hash.as_ref() != Some(&hash);
    if is_new {
        row.revisions += 1;
        row.newest_hash = Some(hash.clone());
    }
    row.revision = Some(row.revisions);
    row.file = file.to_string();
    let (revision, file) = (row.revisions, row.file.clone());
    turn.record(Record::DefinitionLoaded {
        task_id: task_id.clone(),
        revision,
        file: file.clone(),
    });
    let revision = Revision { task_id, revision, hash, loaded_at: turn.now, file, uid, spec };
    if is_new {
        turn.put_row(Row::Revision(revision.clone()));
    }
    turn.state.zones.learn_of(&revision.spec);
    turn.state.registry.put_revision(revision);
    turn.put_task(row);
}

/// Other versions of what changed, if they share cycles or may have shared them: whose triggers
/// fire for whom may be another matter now (docs/waves.md, rule 16).
fn beside(turn: &Turn<'_>, changed: &Changed) -> Vec<Arc<TaskSpec>> {
    let registry = &turn.state.registry;
    let shares = |spec: &Arc<TaskSpec>| spec.rollout.is_some();
    let mut bases: BTreeMap<&str, bool> = BTreeMap::new();
    for (id, before) in changed {
        *bases.entry(id.base()).or_default() |= before.as_ref().is_some_and(shares);
    }
    let mut found = Vec::new();
    for (base, shared_before) in bases {
        let versions: Vec<&Arc<TaskSpec>> = registry.versions(base).collect();
        if shared_before || versions.iter().copied().any(shares) {
            let others = versions.into_iter().filter(|s| !changed.contains_key(&s.task_id));
            found.extend(others.cloned());
        }
    }
    found
}

/// Cursors follow the time triggers: a new one begins now, one that is gone is forgotten, once its
/// fires up to now have their row.
fn triggers(turn: &mut Turn<'_>, task: &TaskId, before: Option<&Arc<TaskSpec>>) {
    let spec = turn.state.registry.spec(task).cloned();
    let rests = turn.state.registry.rollouts().is_taker(task);
    let own = || spec.iter().filter(|_| !rests).flat_map(|s| &s.triggers);
    let timed: BTreeSet<String> = own()
        .filter(|t| matches!(t.when, TriggerKind::Cron(_) | TriggerKind::Every(_)))
        .map(Trigger::key)
        .collect();
    let boots = own().any(|t| matches!(t.when, TriggerKind::Boot));
    let gone: Vec<(TaskId, String)> = turn
        .state
        .cursors
        .range((task.clone(), String::new())..)
        .take_while(|((t, _), _)| t == task)
        .map(|(key, _)| key.clone())
        .filter(|(_, key)| !(timed.contains(key) || boots && boot::is_mark(key)))
        .collect();
    // The same times in another zone are other times: they count from now, so that an edited zone
    // starts nothing.
    let moved = before.zip(spec.as_ref()).map(|(b, s)| moved(b, s)).unwrap_or_default();
    if let Some(before) = before {
        misfire::unheld(turn, before, &timed.difference(&moved).cloned().collect());
    }
    for key in gone {
        turn.drop_cursor(&key);
    }
    forget_old_jumps(turn, task);
    for key in timed {
        if moved.contains(&key) || !turn.state.cursors.contains_key(&(task.clone(), key.clone())) {
            if moved.contains(&key) {
                turn.drop_jumps(&(task.clone(), key.clone()));
            }
            turn.begin_cursor((task.clone(), key));
        }
    }
    if boots && turn.state.opened {
        // It came while the machine was up: its first fire is at the next boot.
        boot::note(turn, task);
    }
    turn.state.schedule(task);
}

/// Triggers that went long ago do not come back to a clock that shows their times once more.
fn forget_old_jumps(turn: &mut Turn<'_>, task: &TaskId) {
    let of_task = turn.state.jumps.range((task.clone(), String::new())..);
    let of_task = of_task.take_while(|((of, _), _)| of == task);
    let is_old = |jumps: &Jumps| {
        jumps.done.last().is_none_or(|span| turn.now.since(span.to) > limits::ARRIVAL_KEPT)
    };
    let old: Vec<(TaskId, String)> = of_task
        .filter(|(key, jumps)| !turn.state.cursors.contains_key(*key) && is_old(jumps))
        .map(|(key, _)| key.clone())
        .collect();
    for key in old {
        turn.drop_jumps(&key);
    }
}

/// The triggers of a definition whose times are those of the task's zone, if that is another now.
fn moved(before: &TaskSpec, now: &TaskSpec) -> BTreeSet<String> {
    let in_its_zone =
        |t: &&Trigger| matches!(&t.when, TriggerKind::Cron(c) if c.timezone.is_none());
    let triggers = now.triggers.iter().filter(|_| before.timezone != now.timezone);
    triggers.filter(in_its_zone).map(Trigger::key).collect()
}

/// Instances that were never started follow the revision in force (docs/waves.md, rule 9).
fn follow(turn: &mut Turn<'_>, task: &TaskId, before: Option<&Arc<TaskSpec>>) {
    let Some(spec) = turn.state.registry.spec(task).cloned() else { return };
    let Some(revision) = turn.state.registry.row(task).and_then(|r| r.revision) else { return };
    let ids: Vec<InstanceId> = turn
        .state
        .instances
        .open_of(task)
        .filter(|i| i.attempt == 0)
        .map(|i| i.instance_id.clone())
        .collect();
    for id in ids {
        let Some(i) = turn.state.instances.get(&id) else { continue };
        let mut fresh = bind::edges(turn, &spec, &i.cycle, &BTreeMap::new());
        // One with another offset is another edge.
        let key = |e: &Edge| (e.task_id.clone(), e.cycle_offset);
        let bound: BTreeMap<(TaskId, i32), Option<InstanceId>> =
            i.edges.iter().map(|e| (key(e), e.instance_id.clone())).collect();
        for edge in &mut fresh {
            // A gained edge takes what is not yet final; what was final before does not count.
            let is_open =
                |id: &InstanceId| turn.state.instances.standing(id) == Some(Standing::Open);
            match bound.get(&key(edge)) {
                Some(known) => edge.instance_id.clone_from(known),
                None => edge.instance_id = edge.instance_id.take().filter(is_open),
            }
        }
        let takes_edges = i.is_waiting() && !i.ignore_deps;
        let retention = |spec| turn.state.retention(spec);
        let (kept, keeps) = (before.map(|b| retention(Some(b))), retention(Some(&spec)));
        let own_priority = turn.state.registry.row(task).is_some_and(|r| r.priority.is_some());
        turn.update(&id, "revision", |i| {
            i.revision = revision;
            i.queue = spec.queue.clone();
            i.max_attempts = spec.retry.max_attempts;
            i.static_params = Arc::new(spec.static_params.clone());
            if !own_priority && before.is_some_and(|b| b.priority == i.priority) {
                i.priority = spec.priority;
            }
            // Less or more than before, from the same beginning.
            let began = i.expires_at.zip(kept).map(|(at, kept)| at.minus(kept));
            i.expires_at = began.map(|began| began.plus(keeps)).or(i.expires_at);
            if takes_edges {
                i.edges = Arc::new(fresh);
                let timeouts =
                    before.map(|b| b.dependency_timeout).zip(Some(spec.dependency_timeout));
                if let Some((old, new)) = timeouts.filter(|(old, new)| old != new) {
                    // The clock has run since then, less the time that it stood still.
                    let began = i.dependency_deadline.zip(old).map(|(at, old)| at.minus(old));
                    let began = began.or(i.not_before).unwrap_or(i.created_at);
                    i.dependency_deadline = new.map(|new| began.plus(new));
                }
            }
        });
        hold::one(turn, &id, turn.now);
        admit::again(turn, &id);
        turn.admit_later(id);
    }
}
