//! What simulated runs leave behind: whoever waits for the outputs of a run that ended well finds
//! them at once, as its duration stands for all of its work (docs/waves.md, rule 8).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::event::Event;
use crate::model::id::InstanceId;
use crate::model::instance::Instance;
use crate::model::output::{Outputs, OutputsLook, Sight};
use crate::model::record::{FileIdentity, Row};

/// Runs whose outputs nobody has looked for yet, as they were stored last.
#[derive(Default)]
pub(super) struct Leavings {
    runs: BTreeMap<InstanceId, Arc<Instance>>,
}

impl Leavings {
    /// Takes note of a stored row.
    pub(super) fn note(&mut self, row: &Row) {
        if let Row::Instance(i) = row {
            match &i.outputs {
                Some(outputs) if outputs.are_due() => {
                    self.runs.insert(i.instance_id.clone(), Arc::clone(i));
                }
                Some(_) | None => {
                    self.runs.remove(&i.instance_id);
                }
            }
        }
    }

    /// What a look at a run's outputs gives.
    pub(super) fn look(&self, instance_id: InstanceId, outputs: &Outputs) -> Event {
        let identity = FileIdentity { device: 0, inode: 0, size: 1, mtime_ns: i64::MAX };
        let sights = vec![Sight::File { identity, ctime_ns: i64::MAX }; outputs.paths.len()];
        let stored = self.runs.get(&instance_id).map(|i| Box::new(Instance::clone(i)));
        Event::OutputsLooked(vec![OutputsLook { instance_id, sights, stored }])
    }
}
