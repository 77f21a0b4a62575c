//! Files that runs leave behind: there at once, late, or not before all is calm (docs/waves.md,
//! rule 8).

use std::sync::Arc;

use super::super::checker::{self, Verdict};
use super::{Thing, World};
use crate::model::event::Event;
use crate::model::id::InstanceId;
use crate::model::output::{Outputs, OutputsLook, Sight};
use crate::model::record::FileIdentity;

impl World {
    /// The daemon wants to know of what a run was to leave behind.
    pub(super) fn look_for(&mut self, instance: InstanceId, outputs: Arc<Outputs>) {
        let wait = if self.rng.chance(70) { 100 } else { 20_000 };
        let wait = self.rng.range(0, wait);
        self.looks.insert(instance.clone(), outputs);
        self.at(wait, Thing::Look(instance));
    }

    /// All is calm: whatever is still looked for is there by now.
    pub(super) fn look_at_all(&mut self) {
        let all: Vec<InstanceId> = self.looks.keys().cloned().collect();
        for instance in all {
            self.at(0, Thing::Look(instance));
        }
    }

    pub(super) fn look(&mut self, instance: &InstanceId) -> Verdict {
        let Some(outputs) = self.looks.get(instance).cloned() else { return Ok(()) };
        // A store is read that is behind by what is not durable yet.
        let stored = checker::instance(&self.rows, instance).cloned().map(Box::new);
        let is_there = self.calm || self.rng.chance(60);
        let sight = if is_there { self.written(&outputs) } else { self.nothing() };
        let sights = vec![sight; outputs.paths.len()];
        if !is_there {
            self.mark("outputs were not there");
            if self.rng.chance(70) {
                let wait = self.rng.range(100, 5000);
                self.at(wait, Thing::Look(instance.clone()));
            }
        }
        let look = OutputsLook { instance_id: instance.clone(), sights, stored };
        if is_there {
            self.checker.left_behind(instance);
            // Until it is told to forget them it goes on looking.
            self.at(1000, Thing::Look(instance.clone()));
        }
        self.feed(Event::OutputsLooked(vec![look]))
    }

    /// Something of this run.
    fn written(&self, outputs: &Outputs) -> Sight {
        let at = outputs.since.as_millis().max(self.wall()).saturating_mul(1_000_000);
        let identity = FileIdentity { device: 1, inode: 5, size: 1, mtime_ns: at };
        Sight::File { identity, ctime_ns: at }
    }

    /// Nothing, or nothing that counts.
    fn nothing(&mut self) -> Sight {
        let empty = FileIdentity { device: 1, inode: 5, size: 0, mtime_ns: i64::MAX };
        let old = FileIdentity { device: 1, inode: 5, size: 1, mtime_ns: 0 };
        match self.rng.below(4) {
            0 => Sight::File { identity: empty, ctime_ns: i64::MAX },
            1 => Sight::File { identity: old, ctime_ns: 0 },
            2 => Sight::Unknown("Permission denied".to_owned()),
            _ => Sight::Absent,
        }
    }
}
