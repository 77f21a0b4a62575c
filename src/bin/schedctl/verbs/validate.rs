//! `validate`: spec files checked as the daemon would, without it.
//!
//! Each file is read by the daemon's reader, and all files given together are held against each
//! other by its registry. Whether an upstream exists is only a warning: files come in any order.

use std::io::Read;
use std::path::{Path, PathBuf};

use sched::access::spec_yaml::{self, SpecContext};
use sched::config::{Config, ConfigError};
use sched::model::event::{SpecError, SpecFile};
use sched::scheduling::check_set;
use serde_json::json;

use crate::cli::ValidateArgs;
use crate::exit::{Exit, Failure};
use crate::output::{JsonList, Output, note};
use crate::render;
use crate::spec_files::{self, Given};

#[cfg(test)]
mod tests;

/// Prints every fault with its place; exit 6 if there is one.
pub(crate) fn validate(output: &Output, args: &ValidateArgs) -> Result<Exit, Failure> {
    let context = context(args.config.as_deref())?;
    let report = check(&args.paths, &mut std::io::stdin(), &context);
    let findings = [("error", &report.errors), ("warning", &report.warnings)];
    if output.is_json() {
        let mut list = JsonList::new(output);
        for (severity, found) in findings {
            for finding in found {
                list.push(&as_json(finding, severity))?;
            }
        }
        list.end()?;
    }
    // What stops the files from being taken comes last, where a person looks first.
    for (severity, found) in findings.into_iter().rev() {
        let severity = if severity == "error" { String::new() } else { format!(" ({severity})") };
        for finding in found {
            note(&format!("{}{severity}", render::clean(&finding.to_string())));
        }
    }
    let (tasks, files) = (counted(report.tasks, "task"), counted(report.files, "file"));
    note(&match report.errors.len() {
        0 => format!("good: {tasks} in {files}"),
        errors => format!("bad: {} in {files}", counted(errors, "error")),
    });
    Ok(if report.errors.is_empty() { Exit::Good } else { Exit::Refused })
}

fn as_json(finding: &SpecError, severity: &str) -> String {
    let SpecError { file, line, column, path, message } = finding;
    json!({
        "file": file, "line": line, "column": column, "path": path, "message": message,
        "severity": severity,
    })
    .to_string()
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

fn check(paths: &[PathBuf], stdin: &mut dyn Read, context: &SpecContext) -> Report {
    let given = spec_files::gather(paths, stdin);
    let read = |file: &Given| spec_yaml::read(&file.shown, &file.bytes, context);
    let files: Vec<SpecFile> = given.files.iter().map(read).collect();
    let mut report = Report {
        files: files.len() + given.errors.len(),
        tasks: files.iter().map(|file| file.specs.len()).sum(),
        errors: given.errors,
        warnings: Vec::new(),
    };
    for file in &files {
        report.errors.extend_from_slice(&file.errors);
        report.warnings.extend_from_slice(&file.warnings);
    }
    let set = check_set(files);
    report.errors.extend(set.errors);
    report.warnings.extend(set.warnings);
    report
}
