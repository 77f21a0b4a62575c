//! `validate`: spec files checked as the daemon would, without it.
//!
//! Each file is read by the daemon's reader, and all files given together are held against each
//! other by its registry. Whether an upstream exists is only a warning: files come in any order.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use sched::access::spec_yaml::{self, SpecContext};
use sched::config::{Config, ConfigError};
use sched::model::event::{SpecError, SpecFile};
use sched::scheduling::check_set;
use serde_json::json;

use crate::cli::ValidateArgs;
use crate::exit::{Exit, Failure};
use crate::output::{JsonList, Output, note};
use crate::render::{self, counted};
use crate::spec_files::{self, Given};

#[cfg(test)]
mod tests;

/// Prints every fault with its place; exit 6 if there is one.
pub(crate) fn validate(output: &Output, args: &ValidateArgs) -> Result<Exit, Failure> {
    let (context, read) = context(args.config.as_deref())?;
    let report = check(&args.paths, &mut std::io::stdin(), &context.at(output.now));
    let findings = [("error", &report.errors), ("warning", &report.warnings)];
    if output.is_json() {
        let mut list = JsonList::new(output);
        for (severity, found) in findings {
            for finding in found {
                list.push(&as_json(finding, severity))?;
            }
        }
        list.end()?;
        return Ok(report.exit);
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
    let asks_for_a_configuration = |error: &SpecError| {
        matches!(error.path.as_str(), "taskType" | "queue")
            && error.message.contains("the configuration")
    };
    if args.config.is_none() && report.errors.iter().any(asks_for_a_configuration) {
        note(&known_from(read.as_deref()));
    }
    Ok(report.exit)
}

/// Where the task types and queues come from that were taken for known ones.
fn known_from(configuration: Option<&Path>) -> String {
    match configuration {
        Some(file) => format!(
            "task types and queues are those of {}; --config FILE reads another configuration",
            file.display()
        ),
        None => {
            "there is no configuration in the standard place, so only what is built in is known; \
                 --config FILE names one"
                .to_owned()
        }
    }
}

fn as_json(finding: &SpecError, severity: &str) -> String {
    let mut json = json!(finding);
    json["severity"] = json!(severity);
    json.to_string()
}

/// What specs may refer to, and the configuration that says so, if there is one. A standard one that
/// cannot be used is only a warning: it is not what was asked about.
fn context(file: Option<&Path>) -> Result<(SpecContext, Option<PathBuf>), Failure> {
    match (Config::load(file), file) {
        (Ok(config), _) => Ok((config.spec_context(), config.file)),
        (Err(error), Some(_)) => Err(Failure::said(exit_of(&error), in_full(&error))),
        (Err(error), None) => {
            note(&format!("{} (warning: checked as if there were none)", in_full(&error)));
            Ok((SpecContext::default(), None))
        }
    }
}

pub(super) fn exit_of(error: &ConfigError) -> Exit {
    match error {
        ConfigError::Read { source, .. } if source.kind() == ErrorKind::NotFound => Exit::NotFound,
        ConfigError::Read { .. } | ConfigError::Invalid(_) => Exit::Refused,
    }
}

pub(super) fn in_full(error: &ConfigError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// What was found in all files.
#[derive(Debug)]
struct Report {
    exit: Exit,
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
        exit: Exit::Good,
        files: files.len() + given.errors.len(),
        tasks: files.iter().map(|file| file.specs.len()).sum(),
        errors: given.errors.clone(),
        warnings: Vec::new(),
    };
    for file in &files {
        report.errors.extend_from_slice(&file.errors);
        report.warnings.extend_from_slice(&file.warnings);
    }
    let set = check_set(files);
    report.errors.extend(set.errors);
    report.warnings.extend(set.warnings);
    report.exit = given.exit(report.errors.len());
    report
}
