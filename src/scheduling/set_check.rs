//! What is wrong with a set of spec files taken by itself, as `validate` asks without a daemon.
//!
//! The rules are the registry's: this is its first reading of a directory that holds these files.

use std::collections::BTreeSet;

use super::registry::Registry;
use crate::model::event::{Definitions, SpecError, SpecFile};
use crate::model::id::TaskId;

/// What only all files together can tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetFindings {
    /// Why definitions are refused, though each file by itself is good.
    pub errors: Vec<SpecError>,
    /// Upstreams that no file defines: files come in any order, so that is no fault.
    pub notes: Vec<SpecError>,
}

/// Checks files against each other: ids, cycles, and what else makes a set unsound. What is wrong
/// with one of them alone is not repeated.
#[must_use]
pub fn check_set(files: &[SpecFile]) -> SetFindings {
    let mut registry = Registry::default();
    let read = Definitions { changed: files.to_vec(), ..Definitions::default() };
    // What it would put in force is nothing to a set that is only looked at.
    let _plan = registry.read(read);
    let own: BTreeSet<&SpecError> = files.iter().flat_map(|file| &file.errors).collect();
    let errors = registry.errors().into_iter().filter(|error| !own.contains(error)).collect();
    let specs = files.iter().flat_map(|file| &file.specs);
    let defined: BTreeSet<&TaskId> = specs.map(|spec| &spec.task_id).collect();
    let mut notes = Vec::new();
    for file in files {
        for spec in &file.specs {
            let unknown = spec.depends_on.iter().filter(|edge| !defined.contains(&edge.task_id));
            notes.extend(unknown.map(|edge| SpecError {
                file: file.path.clone(),
                line: 0,
                column: 0,
                path: "dependsOn".to_owned(),
                message: format!(
                    "{} waits for {}, which none of these files defines",
                    spec.task_id, edge.task_id
                ),
            }));
        }
    }
    SetFindings { errors, notes }
}
