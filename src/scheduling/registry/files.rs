//! What the files of the spec directory say now: observed, read anew at every start.
//!
//! It knows which file offers which definition, not which of them is in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::event::{Definitions, SpecError, SpecFile, SpecPlaces};
use crate::model::id::TaskId;
use crate::model::spec::TaskSpec;

/// The files of the spec directory as they were read last.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    read: BTreeMap<Arc<str>, File>,
    /// The files that offer a definition of a task, in the order of their paths.
    offers: BTreeMap<TaskId, Vec<Arc<str>>>,
    /// The files that the directory holds, those included that could not be read yet.
    present: BTreeSet<Arc<str>>,
    /// The whole list of them has been seen once.
    is_listed: bool,
}

#[derive(Debug, Clone)]
struct File {
    /// Hash of its bytes.
    hash: String,
    specs: Vec<Arc<TaskSpec>>,
    places: Vec<SpecPlaces>,
    errors: Vec<SpecError>,
    uid: Option<u32>,
}

/// One file's definition of a task.
#[derive(Debug, Clone)]
pub(in crate::scheduling) struct Offer {
    pub(in crate::scheduling) spec: Arc<TaskSpec>,
    pub(in crate::scheduling) file: Arc<str>,
    pub(in crate::scheduling) uid: Option<u32>,
}

/// What a reading touched.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The files that changed or went.
    pub(super) files: BTreeSet<Arc<str>>,
    /// The tasks that they offered before or offer now.
    pub(super) tasks: BTreeSet<TaskId>,
    /// Broken files that have another name now: the name before, and the one now.
    pub(super) renamed: BTreeMap<Arc<str>, Arc<str>>,
    /// The list of the directory's files is another than before.
    pub(super) is_list_new: bool,
    /// Their faults that were not there before.
    pub(super) refused: Vec<SpecError>,
}

impl Files {
    /// Takes a reading in. Work grows with what changed, but for comparing the list of names.
    pub(super) fn take(&mut self, read: Definitions) -> Taken {
        let mut taken = Taken::default();
        let mut touched: BTreeSet<Arc<str>> = read.removed.into_iter().map(Arc::from).collect();
        if let Some(present) = read.present {
            let is_same = self.is_listed
                && present.len() == self.present.len()
                && present.iter().all(|path| self.present.contains(path.as_str()));
            if !is_same {
                let now: BTreeSet<Arc<str>> = present.into_iter().map(Arc::from).collect();
                touched.extend(self.present.difference(&now).cloned());
                self.present = now;
                self.is_listed = true;
                taken.is_list_new = true;
            }
        }
        for path in &touched {
            self.present.remove(path);
        }
        for file in read.changed {
            touched.insert(self.put(file, &mut taken));
        }
        for path in &touched {
            if self.present.contains(path) {
                continue;
            }
            let renamed = self.broken_as(path).map(|now| (Arc::clone(path), now));
            taken.renamed.extend(renamed);
            self.forget(path, &mut taken.tasks);
        }
        taken.files = touched;
        taken
    }

    /// The name under which a broken file that is gone is there now, with the same content.
    fn broken_as(&self, gone: &str) -> Option<Arc<str>> {
        let file = self.read.get(gone)?;
        // A fault with a line is one of the content; others are of the file.
        if !file.errors.iter().any(|error| error.line > 0) {
            return None;
        }
        let is_it = |(path, other): &(&Arc<str>, &File)| {
            ***path != *gone && other.hash == file.hash && self.present.contains(*path)
        };
        self.read.iter().find(is_it).map(|(path, _)| Arc::clone(path))
    }

    fn put(&mut self, file: SpecFile, taken: &mut Taken) -> Arc<str> {
        let path: Arc<str> = file.path.into();
        let known = self.read.get(&path).map(|file| file.errors.clone()).unwrap_or_default();
        taken.refused.extend(file.errors.iter().filter(|error| !known.contains(error)).cloned());
        self.forget(&path, &mut taken.tasks);
        for spec in &file.specs {
            taken.tasks.insert(spec.task_id.clone());
            let paths = self.offers.entry(spec.task_id.clone()).or_default();
            paths.push(Arc::clone(&path));
            paths.sort();
        }
        self.present.insert(Arc::clone(&path));
        let SpecFile { hash, specs, places, errors, uid, .. } = file;
        self.read.insert(Arc::clone(&path), File { hash, specs, places, errors, uid });
        path
    }

    fn forget(&mut self, path: &Arc<str>, tasks: &mut BTreeSet<TaskId>) {
        for spec in self.read.remove(path).into_iter().flat_map(|file| file.specs) {
            if let Some(paths) = self.offers.get_mut(&spec.task_id) {
                paths.retain(|offered| offered != path);
                if paths.is_empty() {
                    self.offers.remove(&spec.task_id);
                }
            }
            tasks.insert(spec.task_id.clone());
        }
    }

    /// The good definitions of a task, in the order of their files.
    pub(super) fn offers(&self, task: &TaskId) -> Vec<Offer> {
        let paths = self.offers.get(task).into_iter().flatten();
        paths
            .filter_map(|path| {
                let file = self.read.get(path)?;
                let spec = file.specs.iter().find(|spec| spec.task_id == *task)?;
                Some(Offer { spec: Arc::clone(spec), file: Arc::clone(path), uid: file.uid })
            })
            .collect()
    }

    /// One file's good definition of a task.
    pub(super) fn offer(&self, task: &TaskId, file: &str) -> Option<&Arc<TaskSpec>> {
        self.read.get(file)?.specs.iter().find(|spec| spec.task_id == *task)
    }

    /// Where a key of a file's definition stands; (0, 0): not known.
    pub(super) fn place(&self, task: &TaskId, file: &str, key: &str) -> (u32, u32) {
        let place = self.read.get(file).and_then(|file| {
            let at = file.specs.iter().position(|spec| spec.task_id == *task)?;
            file.places.get(at)
        });
        place.map_or((0, 0), |places| places.of(key))
    }

    /// Holds an equal definition in the place of a file's own, so that both are one in memory.
    pub(super) fn share(&mut self, file: &str, spec: &Arc<TaskSpec>) {
        let specs = self.read.get_mut(file).into_iter().flat_map(|file| &mut file.specs);
        for own in specs.filter(|own| own.task_id == spec.task_id) {
            *own = Arc::clone(spec);
        }
    }

    /// Whether the directory holds a file.
    pub(super) fn has(&self, file: &str) -> bool {
        self.present.contains(file)
    }

    /// Whether a file says nothing that counts, so that what it defined last stays: it is broken,
    /// or is there but was being written whenever it was looked at.
    pub(super) fn is_mute(&self, file: &str) -> bool {
        match self.read.get(file) {
            Some(file) => !file.errors.is_empty(),
            // Before the whole list has been seen, a file that was not read yet may be there.
            None => !self.is_listed || self.present.contains(file),
        }
    }

    /// Why one file is refused.
    pub(super) fn errors_of(&self, file: &str) -> &[SpecError] {
        self.read.get(file).map_or(&[], |file| file.errors.as_slice())
    }

    /// Why files are refused.
    pub(super) fn errors(&self) -> impl Iterator<Item = &SpecError> {
        self.read.values().flat_map(|file| &file.errors)
    }
}
