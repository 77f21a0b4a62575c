//! `plan`: what spec files would change in the daemon's set.

use std::collections::BTreeSet;

use sched::access::client::{Response, Target};
use sched::access::spec_yaml::{self, SpecContext};
use sched::model::event::SpecError;
use sched::model::plan::PlanView;
use serde_json::{Value, json};

use crate::cli::PlanArgs;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::render;
use crate::session::Session;
use crate::spec_files::{self, Gathered};

/// Shows it; exit 6 if anything would be refused.
pub(crate) fn plan(session: &Session, args: &PlanArgs) -> Result<Exit, Failure> {
    let gathered = spec_files::gather(&args.paths, &mut std::io::stdin());
    Asked::of(session, gathered, args.replace)?.show(session)
}

/// Files that were given, and what the daemon says they would change.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The files that could be read.
    pub(crate) given: Gathered,
    /// What they would change; what could not be read here is among the errors, which name files
    /// as they were given.
    pub(crate) view: PlanView,
    /// The files as they are sent.
    pub(crate) sent: Vec<Value>,
    answer: Response,
}

impl Asked {
    /// Asks the daemon.
    pub(crate) fn of(
        session: &Session,
        mut given: Gathered,
        replace: bool,
    ) -> Result<Self, Failure> {
        refuse_one_name_twice(&given)?;
        let mut files = Vec::with_capacity(given.files.len());
        for file in &given.files {
            match std::str::from_utf8(&file.bytes) {
                Ok(text) => files.push(json!({ "name": file.name, "text": text })),
                // JSON could not carry it; the reader knows where it goes wrong.
                Err(_) => {
                    let read = spec_yaml::read(&file.shown, &file.bytes, &SpecContext::default());
                    given.errors.extend(read.errors);
                }
            }
        }
        let answer =
            session.post(&Target::new("/plan"), &json!({ "files": &files, "whole": replace }))?;
        let mut view: PlanView = answer.json()?;
        as_given(&given, &mut view.errors);
        as_given(&given, &mut view.warnings);
        view.errors.splice(0..0, given.errors.iter().cloned());
        Ok(Self { given, view, sent: files, answer })
    }

    /// How a verb ends that changes nothing.
    pub(crate) fn exit(&self) -> Exit {
        self.given.exit(self.view.errors.len())
    }

    /// Shows all of it: changes on stdout, what is wrong on stderr; to a program all on stdout.
    pub(crate) fn show(&self, session: &Session) -> Result<Exit, Failure> {
        let output = &session.output;
        if output.is_json() {
            output.json(&self.json()?)?;
            return Ok(self.exit());
        }
        if !self.view.tasks.is_empty() {
            output.line(&render::definition::plan(&self.view.tasks, output))?;
        } else if self.view.errors.is_empty() {
            output.line("no changes")?;
        }
        self.complain();
        Ok(self.exit())
    }

    /// As the daemon gave it, but for errors and warnings: of files as they were given.
    pub(crate) fn json(&self) -> Result<Vec<u8>, Failure> {
        if self.view.errors.is_empty() && self.view.warnings.is_empty() {
            return Ok(self.answer.body.to_vec());
        }
        let mut value: Value = self.answer.json()?;
        value["errors"] = json!(self.view.errors);
        value["warnings"] = json!(self.view.warnings);
        Ok(value.to_string().into_bytes())
    }

    /// Warnings and errors, on stderr.
    pub(crate) fn complain(&self) {
        for warning in &self.view.warnings {
            note(&format!("{} (warning)", render::clean(&warning.to_string())));
        }
        for error in &self.view.errors {
            note(&render::clean(&error.to_string()));
        }
    }
}

/// Has the entries name files as they were given, not as they would be in the spec directory.
pub(crate) fn as_given(given: &Gathered, entries: &mut [SpecError]) {
    for entry in entries {
        if let Some(shown) = given.called(&entry.file) {
            shown.clone_into(&mut entry.file);
        }
    }
}

/// In one directory there is one file of a name.
fn refuse_one_name_twice(given: &Gathered) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    for file in &given.files {
        if let Some(name) = &file.name
            && !names.insert(name.as_str())
        {
            let fault: SpecError = spec_files::fault(
                &file.shown,
                format!(
                    "another file given is called {name} too; in one directory only one can be"
                ),
            );
            return Err(Failure::said(Exit::Refused, fault.to_string()));
        }
    }
    Ok(())
}
