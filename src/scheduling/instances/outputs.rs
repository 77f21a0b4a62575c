//! What instances that SUCCEEDED were to leave behind.

use std::sync::Arc;

use super::InstanceTable;
use crate::model::id::InstanceId;
use crate::model::output::Outputs;

impl InstanceTable {
    /// What an instance was to leave behind; `None`: nothing, or it has not SUCCEEDED.
    pub(in super::super) fn outputs_of(&self, id: &InstanceId) -> Option<&Arc<Outputs>> {
        let open = self.open.get(id).and_then(|i| i.outputs.as_ref());
        open.or_else(|| self.ended.get(id)?.outputs.as_ref())
    }
}
