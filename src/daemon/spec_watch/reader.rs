//! The blocking half of the watch: sets the watches, reads, and puts back what was read too early.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::SpecSource;
use crate::access::spec_dir::{Cue, Heard};
use crate::daemon::watch::{DirWatch, Writer, on_the_way};
use crate::model::event::Definitions;

/// Times that the watches are set again because the way to the directory changed meanwhile. One
/// that goes on changing tells so by events.
const WAY_CHANGES_MAX: usize = 8;

/// How long it is waited for to have heard all that happened before, which comes at once.
const ECHO_WITHIN: Duration = Duration::from_millis(20);

/// The blocking half.
pub(super) struct Reader {
    pub(super) dir: PathBuf,
    pub(super) dirs: DirWatch,
    pub(super) source: Box<dyn SpecSource>,
}

/// What one reading gave.
pub(super) struct Reading {
    pub(super) found: Definitions,
    pub(super) look_again_at: Option<Duration>,
    pub(super) status: Option<String>,
}

impl Reader {
    /// Watch first, then read: what happens in between is then heard.
    pub(super) fn read(&mut self, cue: &Cue) -> Reading {
        if cue.is_whole {
            for _ in 0..WAY_CHANGES_MAX {
                if !self.dirs.set(&on_the_way(&self.dir)) {
                    break;
                }
            }
        }
        let saved: Vec<PathBuf> = cue
            .heard
            .iter()
            .filter(|(_, heard)| **heard == Heard::Saved)
            .map(|(name, _)| self.dir.join(name))
            .collect();
        let mut found = self.source.scan(cue);
        self.doubt(&saved, &mut found, cue.at);
        let status = self.dirs.status().map(|why| format!("{}: {why}", self.dir.display()));
        Reading { found, look_again_at: self.source.look_again_at(), status }
    }

    /// Puts back what was taken because it was heard to be saved, if the next save may have begun
    /// before it was read.
    fn doubt(&mut self, saved: &[PathBuf], found: &mut Definitions, at: Duration) {
        let changed: BTreeSet<&Path> = found.changed.iter().map(|f| Path::new(&f.path)).collect();
        let is_changed = |path: &&PathBuf| changed.contains(path.as_path());
        let read: Vec<PathBuf> = saved.iter().filter(is_changed).cloned().collect();
        if read.is_empty() {
            return;
        }
        for (path, writer) in self.dirs.heard_of(&read, ECHO_WITHIN) {
            let path = path.to_string_lossy();
            self.source.doubt(&path, writer == Writer::AtIt, at);
            found.changed.retain(|file| file.path != path);
        }
    }
}
