//! Tasks that go from one file to another: what is lost here is told only together with what may
//! be found there.
//!
//! A task that is told gone loses its pin, its place in time and its name in the ledger, so a name
//! that is gone and a content that lacks a task wait: for a quiet time of their own, and for
//! whatever else is just being changed, which may define the task. What gains a task waits with
//! them, so that no task is told to be in two files either.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use super::folder::{Entry, Kind};
use super::look::Look;
use super::settle::{Heard, Seen, Settling};
use super::{Cue, Known};
use crate::limits;
use crate::model::id::TaskId;

/// What is asked of to find out what may be told.
#[derive(Debug)]
pub(super) struct Moves<'a> {
    pub(super) known: &'a BTreeMap<OsString, Known>,
    pub(super) settling: &'a Settling,
    pub(super) cue: &'a Cue,
}

/// Names that are not there any more.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// To be told.
    pub(super) told: Vec<OsString>,
    /// They may only seem to be gone, or have another name that cannot be told yet.
    pub(super) kept: Vec<OsString>,
}

/// What this reading would tell.
struct Offered<'a> {
    tasks: BTreeSet<&'a TaskId>,
    hashes: BTreeSet<&'a str>,
}

impl Moves<'_> {
    /// Parts known names that are gone into those to be told and those to be kept, and makes
    /// unsettled what has to wait with the latter.
    pub(super) fn settle(&self, gone: Vec<OsString>, files: &[Entry], looks: &mut [Look]) -> Gone {
        let mut all = files.iter().zip(&*looks);
        let is_lost = |(entry, look)| self.loses(entry, look) || self.may_lose(entry, look);
        if gone.is_empty() && !all.any(is_lost) {
            return Gone::default();
        }
        if self.may_tell_all(&gone, files, looks) {
            return Gone { told: gone, kept: Vec::new() };
        }
        self.hold(gone, files, looks)
    }

    fn may_tell_all(&self, gone: &[OsString], files: &[Entry], looks: &[Look]) -> bool {
        if looks.iter().any(|look| matches!(look, Look::Unsettled { .. } | Look::Torn)) {
            return false;
        }
        let offered = Offered::by(looks);
        let is_over = |name: &OsStr, seen: Seen| {
            self.is_ours(name) || self.settling.is_quiet(name, seen, self.cue.at)
        };
        gone.iter().all(|name| {
            let moved = |known: &Known| {
                offered.hashes.contains(known.hash.as_str())
                    || !known.tasks.is_empty()
                        && known.tasks.iter().all(|task| offered.tasks.contains(task))
            };
            is_over(name, Seen::Nothing) || self.known.get(name).is_some_and(moved)
        }) && files.iter().zip(looks).all(|(entry, look)| {
            let seen = seen(look);
            !self.loses(entry, look)
                || is_over(&entry.name, seen)
                || self.known.get(&entry.name).is_some_and(|known| {
                    known.tasks.iter().all(|task| offered.tasks.contains(task))
                })
        })
    }

    fn hold(&self, gone: Vec<OsString>, files: &[Entry], looks: &mut [Look]) -> Gone {
        // One file that is written to without a pause holds up the others for so long only.
        let is_overdue = |name: &OsStr, seen: Seen| {
            let quiet = self.settling.quiet_for(name, seen, self.cue.at);
            quiet.is_some_and(|quiet| quiet >= limits::SPEC_MOVE_SETTLE)
        };
        let is_told = |n: &OsString| self.is_ours(n) || is_overdue(n, Seen::Nothing);
        let (told, kept): (Vec<_>, Vec<_>) = gone.into_iter().partition(is_told);
        let mut is_any_overdue = told.iter().any(|name| !self.is_ours(name));
        let may_lose = |(entry, look)| self.may_lose(entry, look);
        let mut is_any_held = !kept.is_empty() || files.iter().zip(&*looks).any(may_lose);
        for (entry, look) in files.iter().zip(&mut *looks) {
            if self.loses(entry, look) {
                if is_overdue(&entry.name, seen(look)) {
                    is_any_overdue = true;
                } else {
                    is_any_held = true;
                    unsettle(entry, look, true);
                }
            }
        }
        // What is told lost now may be found in any of the others.
        if is_any_held && !is_any_overdue {
            for (entry, look) in files.iter().zip(looks) {
                if self.gains(entry, look) {
                    unsettle(entry, look, false);
                }
            }
        }
        Gone { told, kept }
    }

    /// Whether a file no longer defines something that it did. A broken one still does.
    fn loses(&self, entry: &Entry, look: &Look) -> bool {
        let Look::Content { file: Some(file), .. } = look else { return false };
        let Some(known) = self.known.get(&entry.name) else { return false };
        let is_there = |task: &TaskId| file.specs.iter().any(|spec| spec.task_id == *task);
        file.errors.is_empty() && !self.is_ours(&entry.name) && !known.tasks.iter().all(is_there)
    }

    /// Whether a file waits because it no longer defines something.
    fn may_lose(&self, entry: &Entry, look: &Look) -> bool {
        matches!(look, Look::Unsettled { .. }) && self.settling.is_loss(&entry.name)
    }

    /// Whether a file defines something that it did not, or may once it is repaired.
    fn gains(&self, entry: &Entry, look: &Look) -> bool {
        let Look::Content { file: Some(file), .. } = look else { return false };
        if self.is_ours(&entry.name) {
            return false;
        }
        match self.known.get(&entry.name) {
            Some(known) if known.is_read() => {
                file.specs.iter().any(|spec| !known.tasks.contains(&spec.task_id))
            }
            Some(_) | None => true,
        }
    }

    fn is_ours(&self, name: &OsStr) -> bool {
        self.cue.heard.get(name) == Some(&Heard::Ours)
    }
}

impl<'a> Offered<'a> {
    fn by(looks: &'a [Look]) -> Self {
        let mut offered = Self { tasks: BTreeSet::new(), hashes: BTreeSet::new() };
        for look in looks {
            if let Look::Content { hash, file, .. } = look {
                offered.hashes.insert(hash);
                let specs = file.iter().flat_map(|file| &file.specs);
                offered.tasks.extend(specs.map(|spec| &spec.task_id));
            }
        }
        offered
    }
}

fn seen(look: &Look) -> Seen {
    match look {
        Look::Content { stamp, .. } => Seen::File(*stamp),
        Look::Same | Look::Folder | Look::Unsettled { .. } | Look::Torn | Look::Refused { .. } => {
            Seen::NotYet
        }
    }
}

fn unsettle(entry: &Entry, look: &mut Look, is_loss: bool) {
    *look = Look::Unsettled { seen: seen(look), is_linked: entry.kind == Kind::Link, is_loss };
}
