//! The spec directory was read: what that changes is put in force (requirement I1).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::ended::Standing;
use super::super::turn::Turn;
use super::{admit, misfire, wave};
use crate::model::command::{Command, FileWatch};
use crate::model::event::Definitions;
use crate::model::id::{InstanceId, TaskId};
use crate::model::record::{Cursor, Record, Revision, Row, TaskRow};
use crate::model::spec::{TaskSpec, TriggerKind};
use std::collections::BTreeMap;

/// Puts a reading of the directory in force. The first one also opens the core: only then is it
/// known which fires were missed.
pub(in super::super) fn read(turn: &mut Turn<'_>, read: Definitions) {
    let plan = turn.state.registry.read(read);
    for error in plan.refused {
        turn.record(Record::DefinitionRefused(error));
    }
    let mut changed: BTreeSet<TaskId> = BTreeSet::new();
    let mut before: BTreeMap<TaskId, Arc<TaskSpec>> = BTreeMap::new();
    for (spec, file, hash) in plan.loaded {
        if let Some(old) = turn.state.registry.spec(&spec.task_id) {
            before.insert(spec.task_id.clone(), Arc::clone(old));
        }
        changed.insert(spec.task_id.clone());
        load(turn, spec, file, hash);
    }
    for task in plan.removed {
        if let Some(old) = turn.state.registry.spec(&task) {
            before.insert(task.clone(), Arc::clone(old));
        }
        if let Some(mut row) = turn.state.registry.row(&task).cloned() {
            row.revision = None;
            turn.record(Record::DefinitionRemoved {
                task_id: task.clone(),
                file: row.file.clone(),
            });
            turn.put_task(row);
        }
        changed.insert(task);
    }
    for (task, file) in plan.moved {
        if let Some(mut row) = turn.state.registry.row(&task).cloned() {
            row.file = file;
            turn.put_task(row);
        }
    }
    if !changed.is_empty() {
        turn.state.registry.rebuild();
    }
    for task in &changed {
        triggers(turn, task, before.get(task));
        follow(turn, task, before.get(task));
        for waiting in turn.state.instances.waiting_on(task) {
            turn.admit_later(waiting);
        }
    }
    watch(turn);
    if !turn.state.opened {
        turn.state.opened = true;
        misfire::all(turn);
    }
}

fn load(turn: &mut Turn<'_>, spec: Arc<TaskSpec>, file: String, hash: String) {
    let task_id = spec.task_id.clone();
    let old = turn.state.registry.row(&task_id).cloned();
    let mut row = old.unwrap_or_else(|| TaskRow {
        task_id: task_id.clone(),
        revision: None,
        file: String::new(),
        created_at: turn.now,
        revisions: 0,
        paused: None,
        priority: None,
        pinned: None,
    });
    row.revisions += 1;
    row.revision = Some(row.revisions);
    row.file.clone_from(&file);
    let number = row.revisions;
    turn.record(Record::DefinitionLoaded {
        task_id: task_id.clone(),
        revision: number,
        file: file.clone(),
    });
    let revision =
        Revision { task_id, revision: number, hash, loaded_at: turn.now, file, uid: None, spec };
    turn.put_row(Row::Revision(revision.clone()));
    turn.state.registry.put_revision(revision);
    turn.put_task(row);
}

/// Cursors follow the time triggers: a new one begins now, one that is gone is forgotten, once its
/// fires up to now have their row.
fn triggers(turn: &mut Turn<'_>, task: &TaskId, before: Option<&Arc<TaskSpec>>) {
    let spec = turn.state.registry.spec(task).cloned();
    let timed: BTreeSet<String> = spec
        .iter()
        .flat_map(|s| &s.triggers)
        .filter(|t| matches!(t.when, TriggerKind::Cron(_) | TriggerKind::Every(_)))
        .map(crate::model::spec::Trigger::key)
        .collect();
    let boots = spec.iter().flat_map(|s| &s.triggers).any(|t| matches!(t.when, TriggerKind::Boot));
    let gone: Vec<(TaskId, String)> = turn
        .state
        .cursors
        .range((task.clone(), String::new())..)
        .take_while(|((t, _), _)| t == task)
        .map(|(key, _)| key.clone())
        .filter(|(_, key)| !(timed.contains(key) || boots && key.starts_with("boot:")))
        .collect();
    if let Some(before) = before {
        misfire::unheld(turn, before, &timed);
    }
    for key in gone {
        turn.drop_cursor(&key);
    }
    // The same times in another zone are other times: they count from now, so that an edited zone
    // starts nothing.
    let is_moved = before.zip(spec.as_ref()).is_some_and(|(b, s)| b.timezone != s.timezone);
    for key in timed {
        if is_moved || !turn.state.cursors.contains_key(&(task.clone(), key.clone())) {
            let handled_to = turn.now;
            turn.put_cursor(Cursor { task_id: task.clone(), trigger: key, handled_to });
        }
    }
    if boots && turn.state.opened {
        // It came while the machine was up: its first fire is at the next boot.
        misfire::note_boot(turn, task);
    }
    turn.state.schedule(task);
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
        let mut fresh = wave::edges(turn, &spec, &i.cycle, &BTreeMap::new());
        let bound: BTreeMap<TaskId, Option<InstanceId>> =
            i.edges.iter().map(|e| (e.task_id.clone(), e.instance_id.clone())).collect();
        for edge in &mut fresh {
            // A gained edge takes what is not yet final; what was final before does not count.
            let is_open =
                |id: &InstanceId| turn.state.instances.standing(id) == Some(Standing::Open);
            match bound.get(&edge.task_id) {
                Some(known) => edge.instance_id.clone_from(known),
                None => edge.instance_id = edge.instance_id.take().filter(is_open),
            }
        }
        let takes_edges = i.is_waiting() && !i.ignore_deps;
        let own_priority = turn.state.registry.row(task).is_some_and(|r| r.priority.is_some());
        turn.update(&id, "revision", |i| {
            i.revision = revision;
            i.queue = spec.queue.clone();
            i.max_attempts = spec.retry.max_attempts;
            i.static_params = Arc::new(spec.static_params.clone());
            if !own_priority && before.is_some_and(|b| b.priority == i.priority) {
                i.priority = spec.priority;
            }
            if takes_edges {
                i.edges = fresh;
            }
        });
        admit::again(turn, &id);
        turn.admit_later(id);
    }
}

/// Tells the watcher which files matter now.
fn watch(turn: &mut Turn<'_>) {
    let wanted: BTreeSet<FileWatch> = turn
        .state
        .registry
        .specs()
        .flat_map(|spec| &spec.triggers)
        .filter_map(|trigger| match &trigger.when {
            TriggerKind::File(file) => Some(FileWatch {
                pattern: file.pattern.clone(),
                settle: file.settle,
                poll: file.poll,
            }),
            TriggerKind::Cron(_)
            | TriggerKind::Every(_)
            | TriggerKind::Boot
            | TriggerKind::Event(_)
            | TriggerKind::Task(_) => None,
        })
        .collect();
    let wanted: Vec<FileWatch> = wanted.into_iter().collect();
    if wanted != turn.state.watched {
        turn.state.watched.clone_from(&wanted);
        turn.command(Command::WatchFiles(wanted));
    }
}
