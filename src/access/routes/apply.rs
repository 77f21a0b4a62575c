//! Spec files brought to the door as one change: planned, or put into the spec directory.
//!
//! Both ask the same questions of them, so that a plan which finds nothing wrong is one that can
//! be applied.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::{Extension, State};
use serde::Deserialize;

use crate::access::extract::Body;
use crate::access::problem::Problem;
use crate::access::proposal::{self, NAMELESS, Proposal, Read};
use crate::access::state::App;
use crate::limits;
use crate::model::event::{SpecError, SpecFile};
use crate::model::id::TaskId;
use crate::model::plan::{Applied, AppliedTask, ApplyView, PlanView, TaskChange, TaskPlan};
use crate::model::request::{Caller, FileChange, RejectionCode};
use crate::model::view::TaskView;

/// The body of `POST /plan`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanBody {
    files: Vec<BroughtFile>,
    /// They are all that the directory would hold.
    #[serde(default)]
    whole: bool,
}

/// The body of `POST /apply`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyBody {
    files: Vec<BroughtFile>,
}

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BroughtFile {
    /// Its name in the directory; null: after the one task that it defines.
    #[serde(default)]
    name: Option<String>,
    text: String,
}

/// `POST /plan`: what these files would change; changes nothing. What is wrong with them is part of
/// the answer.
pub(super) async fn plan(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(PlanBody { files, whole }): Body<PlanBody>,
) -> Result<Json<PlanView>, Problem> {
    Ok(Json(Planned::of(&app, caller, files, whole).await?.view))
}

/// `POST /apply`: puts these files into the spec directory as one change, in force when this is
/// answered. If anything is wrong with any of them, or with the set that they would make, nothing
/// is written: 422 if a file is wrong by itself, else 409.
pub(super) async fn apply(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(ApplyBody { files }): Body<ApplyBody>,
) -> Result<Json<ApplyView>, Problem> {
    let Planned { reads, own_errors, view } = Planned::of(&app, caller, files, false).await?;
    let errors = view.errors.len();
    if errors > 0 {
        let code = if own_errors > 0 { RejectionCode::Invalid } else { RejectionCode::Conflict };
        let detail =
            format!("{errors} error{}; nothing was written", if errors == 1 { "" } else { "s" });
        return Err(proposal::refusal(code, detail, view.errors));
    }
    let mut files = Vec::with_capacity(reads.len());
    let mut changes = Vec::with_capacity(reads.len());
    for Read { name, file, text } in reads {
        files.push(file);
        // One without a name has errors, and is refused above.
        changes.extend(name.map(|name| FileChange::Write { name, text }));
    }
    if !changes.is_empty() {
        app.ask.change_files(changes, caller).await?;
    }
    let tasks = became(&app, caller, &files, &view).await?;
    Ok(Json(ApplyView { tasks, warnings: view.warnings }))
}

/// Files that were brought, and what they would change.
struct Planned {
    /// Those with a name that the directory reads.
    reads: Vec<Read>,
    /// Errors that files have by themselves.
    own_errors: usize,
    view: PlanView,
}

impl Planned {
    async fn of(
        app: &App,
        caller: Caller,
        files: Vec<BroughtFile>,
        whole: bool,
    ) -> Result<Self, Problem> {
        let (proposals, mut refused) = proposals(files)?;
        let nameless: Vec<bool> = proposals.iter().map(|p| p.name.is_none()).collect();
        let tasks = proposal::tasks(app, caller).await?;
        let mut reads = proposal::read(app, caller, &tasks, proposals).await?;
        let mut warnings = Vec::new();
        let mut placed = Vec::with_capacity(reads.len());
        for read in &mut reads {
            // A directory may hold an empty file; to bring one is a mistake.
            if !whole && read.file.errors.is_empty() && read.file.specs.is_empty() {
                read.file.errors.push(proposal::fault(
                    &read.file.path,
                    "defines no task; expected a spec. To take a task away, remove it: schedctl \
                     remove TASK",
                ));
            }
            if read.name.is_some() {
                placed.push(read.file.clone());
            } else {
                // It has no place in the directory, so the core has nothing to say of it.
                refused.extend(read.file.errors.iter().cloned());
                warnings.extend(read.file.warnings.iter().cloned());
            }
        }
        refuse_one_place_twice(&reads)?;
        let own_errors = refused.len() + placed.iter().map(|f| f.errors.len()).sum::<usize>();
        let mut view = proposal::plan(app, caller, placed, whole).await?;
        view.errors.splice(0..0, refused);
        view.warnings.splice(0..0, warnings);
        for (read, _) in reads.iter().zip(nameless).filter(|(_, is_nameless)| *is_nameless) {
            // Whoever brought it knows of no file by that name.
            for entry in view.errors.iter_mut().chain(&mut view.warnings) {
                if entry.file == read.file.path {
                    NAMELESS.clone_into(&mut entry.file);
                }
            }
        }
        Ok(Self { reads, own_errors, view })
    }
}

/// The files whose names the directory would read, and why the others are refused.
fn proposals(files: Vec<BroughtFile>) -> Result<(Vec<Proposal>, Vec<SpecError>), Problem> {
    let (found, max) = (files.len(), limits::PLAN_FILES_MAX);
    if found > max {
        return Err(Problem::invalid(format!("{found} files; at most {max} are taken at once")));
    }
    let mut names = BTreeSet::new();
    let mut refused = Vec::new();
    let mut proposals = Vec::with_capacity(found);
    for BroughtFile { name, text } in files {
        if let Some(why) = name.as_deref().and_then(proposal::name_fault) {
            refused.push(proposal::fault(name.as_deref().unwrap_or_default(), why));
            continue;
        }
        if let Some(name) = &name
            && !names.insert(name.clone())
        {
            return Err(twice(name));
        }
        proposals.push(Proposal { name, text: text.into_bytes() });
    }
    Ok((proposals, refused))
}

/// A file without a name may belong where another one is brought to.
fn refuse_one_place_twice(reads: &[Read]) -> Result<(), Problem> {
    let mut names = BTreeSet::new();
    let again = reads.iter().filter_map(|read| read.name.as_ref()).find(|n| !names.insert(*n));
    again.map_or(Ok(()), |name| Err(twice(name)))
}

fn twice(name: &str) -> Problem {
    Problem::invalid(format!("{name} is among the files twice; send it once"))
}

/// What became of the tasks of these files, and of those that they no longer define.
///
/// # Errors
/// A conflict if what was written is not in force: something else changed the directory meanwhile.
async fn became(
    app: &App,
    caller: Caller,
    files: &[SpecFile],
    plan: &PlanView,
) -> Result<Vec<AppliedTask>, Problem> {
    let now = proposal::tasks(app, caller).await?;
    let now: BTreeMap<&TaskId, &TaskView> = now.iter().map(|view| (&view.task_id, view)).collect();
    let planned: BTreeMap<&TaskId, &TaskPlan> =
        plan.tasks.iter().map(|task| (&task.task_id, task)).collect();
    let mut tasks = Vec::new();
    let mut missing = Vec::new();
    for file in files {
        for spec in &file.specs {
            let id = &spec.task_id;
            match now.get(id).filter(|view| proposal::says(view, &file.path)) {
                Some(view) => tasks.push(applied(view, planned.get(id).copied())),
                None => missing.push(file.path.as_str()),
            }
        }
    }
    if !missing.is_empty() {
        return Err(proposal::not_in_force(app, caller, &missing).await);
    }
    let gone = plan
        .tasks
        .iter()
        .filter(|task| task.change == TaskChange::Removed && !now.contains_key(&task.task_id));
    tasks.extend(gone.map(|task| AppliedTask {
        task_id: task.task_id.clone(),
        result: Applied::Removed,
        revision: None,
        file: task.file.clone(),
        unresolved: Vec::new(),
        pinned: false,
        broken_dependents: task.broken_dependents.clone(),
    }));
    Ok(tasks)
}

fn applied(view: &TaskView, planned: Option<&TaskPlan>) -> AppliedTask {
    let result = match planned.map(|task| task.change) {
        Some(TaskChange::Added) => Applied::Created,
        Some(TaskChange::Changed | TaskChange::Moved | TaskChange::Removed) => Applied::Configured,
        Some(TaskChange::Ignored) | None => Applied::Unchanged,
    };
    AppliedTask {
        task_id: view.task_id.clone(),
        result,
        revision: Some(view.revision),
        file: view.file.clone(),
        unresolved: view.unresolved.clone(),
        pinned: view.pinned,
        broken_dependents: planned.map(|p| p.broken_dependents.clone()).unwrap_or_default(),
    }
}
