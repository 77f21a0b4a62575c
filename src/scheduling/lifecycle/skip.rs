//! A person leaves an instance out: what depends on it strongly is skipped too, weak dependents go
//! on (docs/waves.md, rule 6).

use super::super::turn::Turn;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState, Reason};
use crate::model::request::{Answer, Rejection, RejectionCode, Reply};

/// `schedctl skip`: of one that waits, for its retry too. A no-op on one that is final, as a cancel
/// is; one that runs is refused.
pub(in super::super) fn request(
    turn: &mut Turn<'_>,
    id: &InstanceId,
    stored: Option<&Instance>,
) -> Answer {
    let Some(i) = turn.state.instances.get(id).filter(|i| i.is_open()) else {
        let known = stored.is_some() || turn.state.instances.knows(id);
        let unknown = || Err(Rejection::new(RejectionCode::NotFound, format!("no instance {id}")));
        return if known { Ok(Reply::Done) } else { unknown() };
    };
    if i.state == InstanceState::Running {
        let detail = format!(
            "instance {id} is RUNNING; only one that has not started, or waits for its retry, can \
             be skipped; to end it: schedctl cancel {id}"
        );
        return Err(Rejection::new(RejectionCode::Conflict, detail));
    }
    let message = turn.asker().map(|uid| format!("skipped by uid {uid}"));
    let reason = Some(Reason::SkippedByUser);
    let uid = turn.asker();
    turn.transition(id, InstanceState::Cancelled, reason, |i| {
        i.cancelled_by = uid;
        i.message = message;
    });
    Ok(Reply::Done)
}
