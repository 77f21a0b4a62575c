//! The one writer: a thread that owns the journal, and the handle by which others reach it.
//!
//! For each group of batches that wait: append to the journal, sync it once, show them to
//! readers, acknowledge them, and then apply them to sled behind. While one group is being synced,
//! the next one gathers. The first error ends it all: it is the answer to everything that waits
//! and comes later, and nothing is tried again.
//!
//! The thread reads no clock; its two alarms are timers of a small runtime of its own.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;

use super::codec::EncodedBatch;
use super::error::StoreError;
use super::frame::Position;
use super::journal::Journal;
use super::reader::View;
use super::table::{self, Write};
use crate::config::Durability;
use crate::model::record::Batch;

/// Batches that wait for the thread; further ones wait in their callers.
const WAITING_MAX: usize = 1024;
/// Batches that share one sync.
const GROUP_MAX: usize = 256;
/// Time from the first change after a checkpoint of sled to the next checkpoint.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(1);

/// A batch on its way to the thread.
struct Commit {
    batch: Batch,
    /// Taken once answered.
    answer: Option<oneshot::Sender<Result<(), StoreError>>>,
}

/// The handle of the store's thread. Dropped without [`close`](Self::close), the thread still
/// finishes what it was given and ends by itself.
pub struct Committer {
    inbox: mpsc::Sender<Commit>,
    failure: Arc<OnceLock<StoreError>>,
    ended: oneshot::Receiver<Result<(), StoreError>>,
    thread: std::thread::JoinHandle<()>,
}

impl Committer {
    /// Starts the thread. All that the journal holds has been applied to the view.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there can be no further thread.
    pub(super) fn start(
        journal: Journal,
        view: Arc<View>,
        durability: Durability,
        place: &std::path::Path,
    ) -> Result<Self, StoreError> {
        let io = || StoreError::io("start the thread of the store", place);
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(io())?;
        let (inbox, commits) = mpsc::channel(WAITING_MAX);
        let (end, ended) = oneshot::channel();
        let failure = Arc::new(OnceLock::new());
        let store = StoreThread {
            journal,
            view,
            durability,
            behind: Vec::new(),
            failure: Arc::clone(&failure),
        };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                let result = runtime.block_on(store.run(commits));
                drop(runtime);
                // Nobody listens if the handle was dropped; the error has been logged.
                let _unheard = end.send(result);
            })
            .map_err(io())?;
        Ok(Self { inbox, failure, ended, thread })
    }

    /// Makes a batch durable (written, for [`Durability::Relaxed`]) and visible to readers.
    ///
    /// Batches are kept in the order of these calls' first polls as long as at most 1024 are on
    /// the way at a time; beyond that, await one before the next. An empty one is kept nowhere and
    /// costs nothing. After an error nobody knows whether the batch will be there after a
    /// restart, and every later commit fails with the same error.
    ///
    /// Not cancel safe before the batch is handed over (it is lost whole); dropped later, the
    /// batch is kept all the same, unheard.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Database`] or [`StoreError::OutOfOrder`], all fatal.
    pub async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let commit = Commit { batch, answer: Some(answer) };
        // Not `send` at once: it may yield before it queues, and a later commit overtake this one.
        let handed_over = match self.inbox.try_send(commit) {
            Err(mpsc::error::TrySendError::Full(commit)) => self.inbox.send(commit).await.is_ok(),
            sent => sent.is_ok(),
        };
        if !handed_over {
            return Err(self.failure());
        }
        answered.await.unwrap_or_else(|_gone| Err(self.failure()))
    }

    /// Keeps everything handed over, brings sled up to date and ends the thread.
    ///
    /// The state directory is free once the [`Reader`](super::Reader)s are gone too.
    ///
    /// Not cancel safe: dropped, the thread ends all the same, unwaited for.
    ///
    /// # Errors
    /// The error that ended the store earlier, or now.
    pub async fn close(self) -> Result<(), StoreError> {
        let Self { inbox, failure, ended, thread } = self;
        drop(inbox);
        let result = ended.await;
        // The result was its last act, so this does not wait.
        let joined = thread.join();
        match (result, joined) {
            (Ok(result), Ok(())) => result,
            (Err(_), _) | (_, Err(_)) => Err(failure.get().cloned().unwrap_or(StoreError::Ended)),
        }
    }

    fn failure(&self) -> StoreError {
        self.failure.get().cloned().unwrap_or(StoreError::Ended)
    }
}

/// A batch in the journal, not yet in sled.
struct Behind {
    position: Position,
    writes: Vec<Write>,
}

/// What the thread owns.
struct StoreThread {
    journal: Journal,
    view: Arc<View>,
    durability: Durability,
    /// Acknowledged, not yet applied; with [`Durability::Relaxed`] perhaps not yet synced, and
    /// then kept from sled: sled must never hold what the journal could lose.
    behind: Vec<Behind>,
    failure: Arc<OnceLock<StoreError>>,
}

impl StoreThread {
    /// Serves until all handles are gone, then brings sled up to date.
    async fn run(mut self, mut commits: mpsc::Receiver<Commit>) -> Result<(), StoreError> {
        let mut group = Vec::new();
        let result = self.serve(&mut commits, &mut group).await;
        if let Err(error) = &result {
            tracing::error!(%error, "the store has failed; nothing is acknowledged any more");
            // Before any sender is dropped, so that whoever waits finds it.
            let _first_stays = self.failure.set(error.clone());
            commits.close();
            loop {
                for commit in group.iter_mut().filter_map(|commit| commit.answer.take()) {
                    let _unheard = commit.send(Err(error.clone()));
                }
                group.clear();
                if commits.recv_many(&mut group, GROUP_MAX).await == 0 {
                    break;
                }
            }
        }
        result
    }

    async fn serve(
        &mut self,
        commits: &mut mpsc::Receiver<Commit>,
        group: &mut Vec<Commit>,
    ) -> Result<(), StoreError> {
        let mut sync = Alarm::default();
        let mut checkpoint = Alarm::default();
        loop {
            // Timers move only when the runtime gets a turn, which a full inbox would not give it.
            tokio::task::yield_now().await;
            tokio::select! {
                biased;
                () = sync.rung() => self.settle()?,
                () = checkpoint.rung() => self.view.checkpoint()?,
                n = commits.recv_many(group, GROUP_MAX) => {
                    if n == 0 {
                        break;
                    }
                    self.keep(group)?;
                    group.clear();
                }
            }
            match self.durability {
                Durability::Relaxed { sync_within } if !self.behind.is_empty() => {
                    sync.set(sync_within);
                }
                Durability::Relaxed { .. } | Durability::Strict => {}
            }
            if self.view.is_dirty() {
                checkpoint.set(CHECKPOINT_AFTER);
            }
        }
        self.settle()?;
        if self.view.is_dirty() { self.view.checkpoint() } else { Ok(()) }
    }

    /// Keeps a group of batches and answers each.
    fn keep(&mut self, group: &mut [Commit]) -> Result<(), StoreError> {
        let mut staged = Vec::with_capacity(group.len());
        for commit in group.iter() {
            table::check_order(&commit.batch, self.journal.last().seq)?;
            let encoded = EncodedBatch::of(&commit.batch)?;
            let position = self.journal.append(&encoded.payload(), commit.batch.records.len())?;
            staged.push((position, encoded));
        }
        self.journal.write()?;
        let at_once = match self.durability {
            Durability::Strict => true,
            Durability::Relaxed { .. } => self.behind.len() + group.len() > GROUP_MAX,
        };
        if at_once {
            self.journal.sync()?;
        }
        for (commit, (position, encoded)) in group.iter_mut().zip(staged) {
            let writes = table::writes(&commit.batch, encoded, &*self.view)?;
            self.view.publish(&writes, &position);
            if let Some(answer) = commit.answer.take() {
                let _unheard = answer.send(Ok(()));
            }
            self.behind.push(Behind { position, writes });
        }
        if at_once { self.settle() } else { Ok(()) }
    }

    /// Syncs the journal and applies to sled what it holds.
    fn settle(&mut self) -> Result<(), StoreError> {
        self.journal.sync()?;
        for Behind { position, writes } in self.behind.drain(..) {
            self.view.apply(&writes, &position)?;
        }
        Ok(())
    }
}

/// A timer that is set or not; setting it again changes nothing.
#[derive(Default)]
struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    fn set(&mut self, after: Duration) {
        self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
    }

    /// Waits until it rings, which unsets it; for ever if it is not set. Cancel safe.
    async fn rung(&mut self) {
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().await,
            None => std::future::pending().await,
        }
        self.0 = None;
    }
}

#[cfg(test)]
mod tests;
