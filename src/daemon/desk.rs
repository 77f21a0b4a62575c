//! Where requests wait for their answers: the door's way to the core and back.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use super::spec_watch::{Ended, SpecWatch};
use crate::model::event::Event;
use crate::model::id::ReplyTo;
use crate::model::request::{
    Answer, Ask, Caller, FileChange, Rejection, RejectionCode, Reloaded, Reply, Request,
};

/// Senders of those who wait, by ticket. Locked for a map operation only, never over an await.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<BTreeMap<ReplyTo, oneshot::Sender<Answer>>>>);

impl Waiting {
    /// Hands an answer to whoever holds the ticket; nobody may be there any more.
    pub(super) fn answer(&self, to: ReplyTo, answer: Answer) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&to);
        if let Some(waiting) = waiting
            && waiting.send(answer).is_err()
        {
            ::tracing::debug!(ticket = to.0, "Nobody waits for an answer any more.");
        }
    }

    /// Lets everybody go who still waits: their requests get "unavailable".
    pub(super) fn dismiss(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn enter(&self, to: ReplyTo) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(to, sender);
        receiver
    }
}

/// Puts requests on the event channel and waits for their answers.
#[derive(Debug)]
pub(super) struct Desk {
    events: mpsc::Sender<Event>,
    waiting: Waiting,
    ticket: AtomicU64,
    specs: SpecWatch,
    /// What stands in the way of seeing files at once: arriving ones, outputs.
    sights: Vec<watch::Receiver<Vec<String>>>,
}

impl Desk {
    pub(super) fn new(
        events: mpsc::Sender<Event>,
        waiting: Waiting,
        specs: SpecWatch,
        sights: Vec<watch::Receiver<Vec<String>>>,
    ) -> Self {
        Self { events, waiting, ticket: AtomicU64::new(1), specs, sights }
    }

    async fn put(&self, request: Request, caller: Caller) -> Answer {
        // Nothing is left behind by a client that goes while it waits for room.
        let Ok(room) = self.events.reserve().await else { return Err(is_stopping()) };
        let reply = ReplyTo(self.ticket.fetch_add(1, Ordering::Relaxed));
        let answer = self.waiting.enter(reply);
        room.send(Event::Request { request, caller, reply });
        let mut answer = answer.await.unwrap_or_else(|_dismissed| Err(is_stopping()));
        if let Ok(Reply::Status(status)) = &mut answer {
            // What only the shell knows.
            status.degraded.extend(self.specs.status());
            for notes in &self.sights {
                status.degraded.extend(notes.borrow().iter().cloned());
            }
        }
        answer
    }

    /// Waits until the core has taken note of a reading: it stands in the channel before this
    /// question, whose answer comes after it.
    async fn after_the_reading(&self) -> Answer {
        let caller = Caller { uid: 0, gid: 0, pid: 0, key: None };
        self.put(Request::Queues, caller).await.map(|_| Reply::Done)
    }
}

fn is_stopping() -> Rejection {
    unwatched(Ended::Stopped)
}

fn unwatched(why: Ended) -> Rejection {
    Rejection::new(RejectionCode::Unavailable, why.to_string())
}

impl Ask for Desk {
    fn ask(
        &self,
        request: Request,
        caller: Caller,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(self.put(request, caller))
    }

    fn reload(&self) -> Pin<Box<dyn Future<Output = Reloaded> + Send + '_>> {
        Box::pin(async {
            let unreadable = self.specs.reload().await.map_err(unwatched)?;
            self.after_the_reading().await?;
            Ok(unreadable)
        })
    }

    fn change_files(
        &self,
        changes: Vec<FileChange>,
        caller: Caller,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async move {
            match self.specs.change(changes, caller.uid).await {
                Ok(Ok(())) => self.after_the_reading().await,
                Ok(Err(rejection)) => Err(rejection),
                Err(why) => Err(unwatched(why)),
            }
        })
    }
}

#[cfg(test)]
mod tests;
