//! `validate`: spec files checked as the daemon would, without it.
//!
//! Each file is read by the same reader. Over all files given together: ids are unique, and no
//! task waits for itself by way of others. Whether an upstream exists is only a warning: files
//! come in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use sched::access::spec_dir::is_spec_name;
use sched::access::spec_yaml::{self, SpecContext};
use sched::config::{Config, ConfigError};
use sched::model::event::{SpecError, SpecFile};
use serde_json::json;

use crate::cli::ValidateArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Output, note};
use crate::render;

#[cfg(test)]
mod tests;

/// Prints every fault with its place; exit 6 if there is one.
pub(crate) fn validate(output: &Output, args: &ValidateArgs) -> Result<Exit, Failure> {
    let context = context(args.config.as_deref())?;
    let report = check(&args.paths, &context);
    if output.is_json() {
        let value = json!({
            "files": report.files,
            "tasks": report.tasks,
            "errors": report.errors,
            "warnings": report.warnings,
        });
        output.json(value.to_string().as_bytes())?;
    }
    for warning in &report.warnings {
        note(&format!("{} (warning)", render::clean(&warning.to_string())));
    }
    for error in &report.errors {
        note(&render::clean(&error.to_string()));
    }
    let (tasks, files) = (counted(report.tasks, "task"), counted(report.files, "file"));
    note(&match report.errors.len() {
        0 => format!("good: {tasks} in {files}"),
        errors => format!("bad: {} in {files}", counted(errors, "error")),
    });
    Ok(if report.errors.is_empty() { Exit::Good } else { Exit::Refused })
}

fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// What specs may refer to. A standard configuration that cannot be used is only a warning: it is
/// not what was asked about.
fn context(file: Option<&Path>) -> Result<SpecContext, Failure> {
    match (Config::load(file), file) {
        (Ok(config), _) => Ok(config.spec_context()),
        (Err(error), Some(_)) => Err(Failure::said(Exit::Refused, in_full(&error))),
        (Err(error), None) => {
            note(&format!("{} (warning: checked as if there were none)", in_full(&error)));
            Ok(SpecContext::default())
        }
    }
}

fn in_full(error: &ConfigError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// What was found in all files.
#[derive(Debug, Default)]
struct Report {
    files: usize,
    tasks: usize,
    errors: Vec<SpecError>,
    warnings: Vec<SpecError>,
}

fn check(paths: &[PathBuf], context: &SpecContext) -> Report {
    let mut report = Report::default();
    let mut files = Vec::new();
    for path in paths {
        for file in files_of(path, &mut report.errors) {
            report.files += 1;
            match std::fs::read(&file) {
                Ok(bytes) => files.push(spec_yaml::read(&shown(&file), &bytes, context)),
                Err(error) => {
                    report.errors.push(whole(&file, format!("cannot be read: {error}")));
                }
            }
        }
    }
    for file in &mut files {
        report.tasks += file.specs.len();
        report.errors.append(&mut file.errors);
        report.warnings.append(&mut file.warnings);
    }
    across(&files, &mut report);
    report
}

/// The file itself, or the spec files of a directory in the order of their names.
fn files_of(path: &Path, errors: &mut Vec<SpecError>) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            errors.push(whole(path, format!("cannot be read: {error}")));
            return Vec::new();
        }
    };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let named = names.filter(|name| name.to_str().is_some_and(is_spec_name));
    let mut files: Vec<PathBuf> =
        named.map(|name| path.join(name)).filter(|file| !file.is_dir()).collect();
    files.sort();
    files
}

/// What only all files together can tell.
fn across(files: &[SpecFile], report: &mut Report) {
    let mut homes: BTreeMap<&str, &str> = BTreeMap::new();
    let mut graph: DiGraphMap<&str, ()> = DiGraphMap::new();
    for file in files {
        for spec in &file.specs {
            let id = spec.task_id.as_str();
            if let Some(other) = homes.insert(id, &file.path) {
                let text =
                    format!("{id} is defined in {other} too; expected one place for each id");
                report.errors.push(at(&file.path, "taskId", text));
            }
            for edge in &spec.depends_on {
                graph.add_edge(id, edge.task_id.as_str(), ());
            }
        }
    }
    for group in tarjan_scc(&graph) {
        let mut circle: Vec<&str> = group;
        circle.sort_unstable();
        let [first, _, ..] = circle.as_slice() else { continue };
        let path = around(&graph, first, &circle.iter().copied().collect());
        let file = homes.get(first).copied().unwrap_or_default();
        let text = format!("a circle, none of these could ever start: {}", path.join(" → "));
        report.errors.push(at(file, "dependsOn", text));
    }
    for (from, to, ()) in graph.all_edges().filter(|(_, to, ())| !homes.contains_key(to)) {
        let file = homes.get(from).copied().unwrap_or_default();
        let text = format!("{from} waits for {to}, which none of these files defines");
        report.warnings.push(at(file, "dependsOn", text));
    }
}

/// One way from `first` back to itself within its group.
fn around<'a>(
    graph: &DiGraphMap<&'a str, ()>,
    first: &'a str,
    group: &BTreeSet<&'a str>,
) -> Vec<&'a str> {
    let mut paths = std::collections::VecDeque::from([vec![first]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        let Some(last) = path.last() else { continue };
        for next in graph.neighbors(last).filter(|next| group.contains(next)) {
            let mut longer = path.clone();
            longer.push(next);
            if next == first {
                return longer;
            }
            if seen.insert(next) {
                paths.push_back(longer);
            }
        }
    }
    group.iter().copied().collect()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn whole(path: &Path, message: String) -> SpecError {
    at(&shown(path), "", message)
}

fn at(file: &str, path: &str, message: String) -> SpecError {
    SpecError { file: file.to_owned(), line: 0, column: 0, path: path.to_owned(), message }
}
