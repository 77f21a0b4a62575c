//! Which readings are worth an event.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::event::Definitions;

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct News {
    has_told: bool,
    /// The core has been told all that there is at a start.
    has_opened: bool,
    unreadable: Option<String>,
    /// Digest of the list of what is there.
    listed: Option<u64>,
}

impl News {
    /// Whether nothing less than a reading of everything will do.
    pub(super) fn needs_all(&self) -> bool {
        !self.has_told || self.unreadable.is_some()
    }

    /// Why the directory cannot be read, as told last.
    pub(super) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Nothing changed is no news, but at a start, when the directory became unreadable or
    /// readable, and when it holds other names than were listed last.
    pub(super) fn is_news(&self, found: &Definitions) -> bool {
        !self.has_opened
            || !found.changed.is_empty()
            || !found.removed.is_empty()
            || found.unreadable != self.unreadable
            || found.present.as_deref().is_some_and(|names| Some(digest(names)) != self.listed)
    }

    /// Whether the core waits for more of what there is at a start.
    pub(super) fn is_opening(&self) -> bool {
        !self.has_opened
    }

    /// All that there is at a start is told.
    pub(super) fn opened(&mut self) {
        self.has_opened = true;
    }

    /// Notes what is told; gives why the directory is unreadable, if that is new.
    pub(super) fn told<'a>(&mut self, found: &'a Definitions) -> Option<&'a str> {
        self.has_told = true;
        self.listed = found.present.as_deref().map(digest).or(self.listed);
        let problem = found.unreadable.as_deref().filter(|_| found.unreadable != self.unreadable);
        self.unreadable.clone_from(&found.unreadable);
        problem
    }
}

fn digest(names: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    hasher.finish()
}
