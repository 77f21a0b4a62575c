//! Spec files that somebody brings to the door: named, read as the spec directory would read them,
//! and held against the set in force.
//!
//! Nothing is written here, and what a set of definitions means is the core's to say.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::problem::Problem;
use super::query;
use super::secrets::{self, Names};
use super::spec_dir::is_spec_name;
use super::spec_yaml::{self, SpecContext};
use super::state::{App, Shared};
use crate::limits;
use crate::model::event::{SpecError, SpecFile};
use crate::model::id::TaskId;
use crate::model::plan::PlanView;
use crate::model::request::{Caller, RejectionCode, Reply, Request};
use crate::model::view::{StatusView, TaskView};

/// What a file is called that came without a name and defines no single task either.
pub(super) const NAMELESS: &str = "-";

/// A file as it was brought.
#[derive(Debug)]
pub(super) struct Proposal {
    /// Its name in the spec directory; `None`: after the one task that it defines.
    pub(super) name: Option<String>,
    /// Its content.
    pub(super) text: Vec<u8>,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Read {
    /// Its name in the spec directory; `None`: it has errors and no name of its own.
    pub(super) name: Option<String>,
    /// What it says.
    pub(super) file: SpecFile,
    /// Its content.
    pub(super) text: Vec<u8>,
}

/// Why the spec directory would not read a file of this name.
pub(super) fn name_fault(name: &str) -> Option<String> {
    let is_plain = !name.contains('/') && !name.chars().any(char::is_control);
    if is_plain && name.len() <= limits::FILE_NAME_BYTES_MAX && is_spec_name(name) {
        return None;
    }
    Some(format!(
        "{name:?} is no name that the spec directory reads; expected NAME.yaml or NAME.yml without \
         '/', not beginning with a dot, at most {} bytes",
        limits::FILE_NAME_BYTES_MAX
    ))
}

/// The path that a file of this name has in the spec directory.
pub(super) fn path_of(app: &Shared, name: &str) -> String {
    app.spec_dir.join(name).to_string_lossy().into_owned()
}

/// The name of a file of the spec directory; `None`: it is not there.
pub(super) fn name_of(app: &Shared, path: &str) -> Option<String> {
    let path = Path::new(path);
    let is_there = path.parent() == Some(app.spec_dir.as_path());
    path.file_name().filter(|_| is_there)?.to_str().map(str::to_owned)
}

/// All tasks in force.
pub(super) async fn tasks(app: &App, caller: Caller) -> Result<Vec<TaskView>, Problem> {
    let Reply::Tasks(tasks) = app.ask(Request::Tasks, caller).await? else {
        return Err(Problem::misanswered("the list of tasks"));
    };
    Ok(tasks)
}

/// The daemon's state, for what is wrong with the directory as it is.
pub(super) async fn status(app: &App, caller: Caller) -> Result<StatusView, Problem> {
    let Reply::Status(status) = app.ask(Request::Status, caller).await? else {
        return Err(Problem::misanswered("the status"));
    };
    Ok(*status)
}

/// Reads files on a blocking thread, in their order, and names those that have no name.
///
/// # Errors
/// A conflict if the file that a nameless one belongs in holds other tasks as well.
pub(super) async fn read(
    app: &App,
    caller: Caller,
    tasks: &[TaskView],
    proposals: Vec<Proposal>,
) -> Result<Vec<Read>, Problem> {
    let shared = Arc::clone(app);
    let reading = tokio::task::spawn_blocking(move || {
        let context = SpecContext::clone(&shared.spec_context).at((shared.now)());
        let one = |Proposal { name, text }| {
            // Relative paths in it start from the directory, whatever its name will be.
            let path = path_of(&shared, name.as_deref().unwrap_or(NAMELESS));
            let mut file = spec_yaml::read(&path, &text, &context);
            file.uid = Some(caller.uid);
            Read { name, file, text }
        };
        proposals.into_iter().map(one).collect::<Vec<Read>>()
    });
    let mut reads = reading.await.map_err(|error| {
        Problem::unavailable(format!("reading what was sent broke off: {error}"))
    })?;
    for read in reads.iter_mut().filter(|read| read.name.is_none()) {
        let [spec] = read.file.specs.as_slice() else {
            if read.file.specs.len() > 1 {
                let several =
                    "defines several tasks, so its file needs a name; give it one (file=)";
                read.file.errors.push(fault(NAMELESS, several));
                read.file.specs.clear();
            }
            rename(&mut read.file, NAMELESS.to_owned());
            continue;
        };
        let name = home(app, tasks, &spec.task_id)?;
        rename(&mut read.file, path_of(app, &name));
        read.name = Some(name);
    }
    Ok(reads)
}

/// A fault of a file as a whole.
pub(super) fn fault(file: &str, message: impl Into<String>) -> SpecError {
    let message = message.into();
    SpecError { file: file.to_owned(), line: 0, column: 0, path: String::new(), message }
}

fn rename(file: &mut SpecFile, path: String) {
    for entry in file.errors.iter_mut().chain(&mut file.warnings) {
        entry.file.clone_from(&path);
    }
    file.path = path;
}

/// The name of the file that a task belongs in: where it stands alone now, or one named after it.
fn home(app: &Shared, tasks: &[TaskView], task: &TaskId) -> Result<String, Problem> {
    let now = tasks.iter().find(|view| view.task_id == *task).map(|view| view.file.clone());
    let name = match &now {
        Some(file) => name_of(app, file).ok_or_else(|| elsewhere(app, task, file))?,
        None => format!("{task}.yaml"),
    };
    let path = now.unwrap_or_else(|| path_of(app, &name));
    let others = others_in(tasks, &path, task);
    if others.is_empty() {
        return Ok(name);
    }
    Err(Problem::new(
        RejectionCode::Conflict,
        format!(
            "{path}, where {task} belongs, defines {} too; bring that file as a whole \
             (file={name}), or give {task} a file of its own (file=NAME)",
            others.join(", ")
        ),
    ))
}

/// The other tasks that a file defines.
pub(super) fn others_in<'t>(tasks: &'t [TaskView], path: &str, task: &TaskId) -> Vec<&'t str> {
    let others = tasks.iter().filter(|view| view.file == path && view.task_id != *task);
    others.map(|view| view.task_id.as_str()).collect()
}

/// The tasks that would lose this one as their upstream if its file defined nothing any more.
pub(super) async fn dependents(
    app: &App,
    caller: Caller,
    task: &TaskId,
    path: &str,
) -> Result<Vec<TaskId>, Problem> {
    let emptied = SpecFile { path: path.to_owned(), ..SpecFile::default() };
    let request = Request::Plan { files: vec![emptied], whole: false };
    let Reply::Plan(view) = app.ask(request, caller).await? else {
        return Err(Problem::misanswered("a plan"));
    };
    let of_it = view.tasks.into_iter().find(|planned| planned.task_id == *task);
    Ok(of_it.map(|planned| planned.broken_dependents).unwrap_or_default())
}

/// A task whose file the door must not touch.
pub(super) fn elsewhere(app: &Shared, task: &TaskId, file: &str) -> Problem {
    Problem::new(
        RejectionCode::Conflict,
        format!(
            "{task} is defined in {file}, which is not a file of {}; change it there",
            app.spec_dir.display()
        ),
    )
}

/// A refusal with a list of faults.
pub(super) fn refusal(
    code: RejectionCode,
    detail: impl Into<String>,
    errors: Vec<SpecError>,
) -> Problem {
    let mut problem = Problem::new(code, detail);
    problem.rejection.errors = errors;
    problem
}

/// Whether what a file says of a task now is in force: an earlier content of it can be, if the new
/// one did not fit the set.
pub(super) fn says(view: &TaskView, path: &str) -> bool {
    view.file == path && view.spec_errors.is_empty()
}

/// The refusal of files that were written but whose tasks are not in force.
pub(super) async fn not_in_force(app: &App, caller: Caller, paths: &[&str]) -> Problem {
    let errors = status(app, caller).await.map(|status| status.spec_errors).unwrap_or_default();
    let ours = errors.into_iter().filter(|e| paths.contains(&e.file.as_str())).collect();
    let unique: BTreeSet<&str> = paths.iter().copied().collect();
    let paths: Vec<&str> = unique.into_iter().collect();
    let detail = format!(
        "written but not in force: {}; the directory was changed by somebody else meanwhile, see \
         what is there now and repeat",
        paths.join(", ")
    );
    refusal(RejectionCode::Conflict, detail, ours)
}

/// What the directory would be with these files in it: faults of the files themselves first, then
/// those of the set. Faults that are there today and concern none of these files are left out,
/// unless the files are all that there would be (`whole`).
pub(super) async fn plan(
    app: &App,
    caller: Caller,
    files: Vec<SpecFile>,
    whole: bool,
) -> Result<PlanView, Problem> {
    let known = if whole { Vec::new() } else { status(app, caller).await?.spec_errors };
    let ours: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
    let mut errors: Vec<SpecError> = files.iter().flat_map(|f| f.errors.clone()).collect();
    let mut warnings: Vec<SpecError> = files.iter().flat_map(|f| f.warnings.clone()).collect();
    let specs = files.iter().flat_map(|file| &file.specs);
    let mut names: Names = specs.flat_map(|spec| secrets::names_in(spec)).collect();
    let Reply::Plan(view) = app.ask(Request::Plan { files, whole }, caller).await? else {
        return Err(Problem::misanswered("a plan"));
    };
    let mut view = *view;
    let is_new = |e: &SpecError| ours.contains(&e.file) || !known.contains(e);
    let more: Vec<SpecError> =
        view.errors.into_iter().filter(|e| is_new(e) && !errors.contains(e)).collect();
    errors.extend(more);
    let more: Vec<SpecError> =
        view.warnings.into_iter().filter(|w| !warnings.contains(w)).collect();
    warnings.extend(more);
    view.errors = errors;
    view.warnings = warnings;
    let changed: Vec<TaskId> = view
        .tasks
        .iter()
        .filter(|task| !task.changes.is_empty())
        .map(|task| task.task_id.clone())
        .collect();
    let on_record = query::read(app, move |history| {
        let mut names = Names::new();
        for task in &changed {
            names.extend(secrets::names_on_record(history, task)?.unwrap_or_default());
        }
        Ok(names)
    });
    names.extend(on_record.await?);
    for task in &mut view.tasks {
        let changes = std::mem::take(&mut task.changes);
        task.changes = secrets::masked_changes(changes, &names);
    }
    Ok(view)
}

/// A JSON definition without `taskId`, given one made of its content: brought again, it gets the
/// same. `None`: it is no JSON object, is empty, or has one.
///
/// The keys are put at the end, so that every place in a message is one of the text as it came.
pub(super) fn with_task_id(text: &[u8]) -> Option<Vec<u8>> {
    let keys: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(text).ok()?;
    if keys.is_empty() || keys.contains_key("taskId") {
        return None;
    }
    let version = keys.get("version").map_or(Some(1), serde_json::Value::as_u64)?;
    // Letters only: a digest's digits could be read as a date.
    let digest = Sha256::digest(text);
    let word: String = digest.iter().take(12).map(|byte| char::from(b'a' + byte % 26)).collect();
    let end = text.iter().rposition(|byte| *byte == b'}')?;
    let mut whole = text.get(..end)?.to_vec();
    whole.extend_from_slice(format!(r#", "taskId": "adhoc.{word}.v{version}""#).as_bytes());
    if !keys.contains_key("version") {
        whole.extend_from_slice(br#", "version": 1"#);
    }
    whole.extend_from_slice(text.get(end..)?);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_directory_reads_are_good_and_no_others() {
        for name in ["a.yaml", "a.b.v1.yml", "nightly_2.yaml"] {
            assert_eq!(name_fault(name), None, "{name}");
        }
        let long = format!("{}.yaml", "x".repeat(251));
        for name in ["", "a", ".a.yaml", "a.yaml~", "a/b.yaml", "../a.yaml", "a\n.yaml", &long] {
            assert!(name_fault(name).is_some(), "{name:?}");
        }
    }

    #[test]
    fn an_ad_hoc_definition_gets_an_id_of_its_content_and_keeps_its_places() {
        let text = b"{\n  \"owner\": \"o\"\n}\n";
        let whole = with_task_id(text).unwrap();
        assert_eq!(with_task_id(text).unwrap(), whole);
        assert!(whole.starts_with(b"{\n  \"owner\": \"o\"\n, \"taskId\": \"adhoc."));
        let value: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        let id = TaskId::parse(value["taskId"].as_str().unwrap()).unwrap();
        assert_eq!((id.version(), &value["version"]), (1, &serde_json::json!(1)));
        let other = with_task_id(br#"{"owner": "p", "version": 3}"#).unwrap();
        let other: serde_json::Value = serde_json::from_slice(&other).unwrap();
        assert_ne!(other["taskId"], value["taskId"]);
        assert!(other["taskId"].as_str().unwrap().ends_with(".v3"));
        for text in ["{}", "[]", "owner: o", r#"{"taskId": null}"#, r#"{"version": "x"}"#] {
            assert_eq!(with_task_id(text.as_bytes()), None, "{text}");
        }
    }
}
