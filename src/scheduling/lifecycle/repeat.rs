//! Orders that carry a key: sent again, they get the answer they got and change nothing
//! (contract §6, `Idempotency-Key`).

use sha2::{Digest, Sha256};

use super::super::turn::Turn;
use crate::model::record::{KeptAnswer, Submission};
use crate::model::request::{Answer, Caller, Rejection, RejectionCode, Reply, Request};

/// An order under its key.
pub(in super::super) struct Keyed {
    key: String,
    order: String,
}

/// The key of an order; `None`: it has none, or is a question.
pub(in super::super) fn keyed(caller: Caller, request: &Request) -> Option<Keyed> {
    let key = format!("{}/{}", caller.uid, caller.key?);
    let digest = Sha256::digest(text(request)?.as_bytes());
    let order = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Some(Keyed { key, order })
}

/// The answer that the same order got before, or a refusal if another one had the key.
pub(in super::super) fn earlier(turn: &Turn<'_>, keyed: &Keyed) -> Option<Answer> {
    let before = turn.state.submissions.get(&keyed.key)?;
    if before.order != keyed.order {
        let detail = "another order was given under this key before; take a new one".to_owned();
        return Some(Err(Rejection::new(RejectionCode::Conflict, detail)));
    }
    Some(Ok(match before.answer.clone() {
        KeptAnswer::Done => Reply::Done,
        KeptAnswer::Submitted(mut made) => {
            made.repeated = true;
            Reply::Submitted(made)
        }
        KeptAnswer::Retried(made) => Reply::Retried(made),
        KeptAnswer::Emitted(made) => Reply::Emitted(made),
        KeptAnswer::Backfilled(mut made) => {
            made.repeated = true;
            Reply::Backfilled(made)
        }
    }))
}

/// Keeps a good answer for a repetition. A refused order changed nothing and may be tried again.
pub(in super::super) fn keep(turn: &mut Turn<'_>, keyed: Keyed, answer: &Answer) {
    let answer = match answer {
        Ok(Reply::Done) => KeptAnswer::Done,
        Ok(Reply::Submitted(made)) => KeptAnswer::Submitted(made.clone()),
        Ok(Reply::Retried(made)) => KeptAnswer::Retried(made.clone()),
        Ok(Reply::Emitted(made)) => KeptAnswer::Emitted(made.clone()),
        Ok(Reply::Backfilled(made)) => KeptAnswer::Backfilled(made.clone()),
        Ok(
            Reply::Instances(_)
            | Reply::Tasks(_)
            | Reply::Task(_)
            | Reply::Live(_)
            | Reply::Status(_)
            | Reply::Queues(_)
            | Reply::Executors(_)
            | Reply::Next(_)
            | Reply::Plan(_)
            | Reply::Explanation(_)
            | Reply::TaskExplanation(_)
            | Reply::Graph(_)
            | Reply::SimulationBasis(_),
        )
        | Err(_) => return,
    };
    turn.put_submission(Submission { key: keyed.key, at: turn.now, order: keyed.order, answer });
}

/// What an order says, without what the door adds to it; `None` for questions, for a dry run and
/// for a stop, whose repetition is harmless.
fn text(request: &Request) -> Option<String> {
    match request {
        Request::Submit { submission, .. } if submission.dry_run => None,
        Request::Backfill { body, .. } if body.dry_run => None,
        Request::Submit { .. }
        | Request::Backfill { .. }
        | Request::Pause { .. }
        | Request::Freeze { .. }
        | Request::Resume { .. }
        | Request::SetPriority { .. }
        | Request::ResetPriority { .. }
        | Request::Emit { .. } => Some(format!("{request:?}")),
        Request::Cancel { instance, downstream, .. } => {
            Some(format!("cancel {instance} {downstream}"))
        }
        Request::Skip { instance, .. } => Some(format!("skip {instance}")),
        Request::Retry { instance, same_revision, below, .. } => {
            let below = if below.is_some() { " and below" } else { "" };
            let revision = if *same_revision { " as it was" } else { "" };
            Some(format!("retry {instance}{below}{revision}"))
        }
        Request::Rollback { task, revision } => {
            Some(format!("rollback {task} {}", revision.revision))
        }
        Request::Unpin { task } => Some(format!("unpin {task}")),
        Request::FailedBelow(_)
        | Request::Tasks
        | Request::Task(_)
        | Request::Live(_)
        | Request::Status
        | Request::Queues
        | Request::Executors
        | Request::Next { .. }
        | Request::Plan { .. }
        | Request::Explain(_)
        | Request::ExplainTask { .. }
        | Request::Graph
        | Request::SimulationBasis
        | Request::Shutdown(_) => None,
    }
}
