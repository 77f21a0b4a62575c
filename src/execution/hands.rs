//! What all attempts of an executor share: its children, its memory, and a way to prepare a start
//! without waiting for it. It knows nothing of how an attempt runs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, oneshot};

use super::account::OwnUser;
use super::clock;
use super::journal::Journal;
use super::kin::{self, Kin};
use super::process::{self, Reaped};
use super::start::{self, Prepared, StartError};
use super::wire::Assignment;

/// Starts that are prepared at the same time, on threads of the runtime's pool.
const PREPARE_MAX: usize = 4;
/// A preparation that takes longer hangs somewhere and no longer counts among them.
const PREPARE_WITHIN: Duration = Duration::from_millis(100);

/// What all attempts of this executor share.
pub(super) struct Hands {
    /// Who it runs as itself.
    own_user: Arc<OwnUser>,
    /// Starts that are being prepared.
    preparing: Semaphore,
    /// Its children.
    pub(super) children: Children,
    /// Whose its orphans are.
    pub(super) kin: Kin,
    /// Its memory.
    pub(super) journal: Journal,
    /// The machine's boot.
    pub(super) boot_id: Arc<str>,
}

impl Hands {
    /// Those of an executor that begins.
    pub(super) fn new(journal: Journal) -> Self {
        Self {
            own_user: Arc::default(),
            preparing: Semaphore::new(PREPARE_MAX),
            children: Children::default(),
            kin: Kin::default(),
            journal,
            boot_id: clock::boot_id(),
        }
    }

    /// Looks after the orphans of attempts while there are attempts or orphans, for ever.
    pub(super) async fn look_after_orphans(&self) -> Infallible {
        loop {
            self.kin.is_needed().await;
            tokio::time::sleep(kin::LOOK_EVERY).await;
            self.look();
        }
    }

    /// One look, as each second brings one.
    pub(super) fn look(&self) {
        self.kin.look(&self.children.leaders(), clock::monotonic());
    }

    /// Prepares a start beside this thread, so that one that hangs holds up only itself. Whoever
    /// drops this lets it hang.
    ///
    /// # Errors
    /// [`StartError`].
    pub(super) async fn prepare(
        &self,
        assignment: &Arc<Assignment>,
    ) -> Result<Prepared, StartError> {
        // The semaphore is never closed.
        let permit = self.preparing.acquire().await.ok();
        let (assignment, own) = (Arc::clone(assignment), Arc::clone(&self.own_user));
        let mut work = tokio::task::spawn_blocking(move || start::prepare(&assignment, &own));
        let done = match tokio::time::timeout(PREPARE_WITHIN, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                drop(permit);
                work.await
            }
        };
        done.unwrap_or_else(|error| {
            let message = format!("cannot prepare the start: {error}");
            Err(StartError { message, transient: false })
        })
    }
}

/// The leaders that run, and who waits for each.
#[derive(Default)]
pub(super) struct Children {
    leaders: RefCell<BTreeMap<u32, oneshot::Sender<Reaped>>>,
    /// Notified whenever a child has ended.
    pub(super) changed: Notify,
}

impl Children {
    /// Takes every ended child and wakes whoever waits for it; orphans are simply taken.
    pub(super) fn reap(&self) {
        let mut any = false;
        while let Some(reaped) = process::reap() {
            any = true;
            if let Some(waiting) = self.leaders.borrow_mut().remove(&reaped.pid) {
                // A runner that is gone waits for nothing.
                waiting.send(reaped).ok();
            }
        }
        if any {
            self.changed.notify_waiters();
        }
    }

    /// Who wants to hear of a leader's end. Must be called before anything else can reap: without an await after the start.
    pub(super) fn watch(&self, pid: u32) -> oneshot::Receiver<Reaped> {
        let (tell, told) = oneshot::channel();
        self.leaders.borrow_mut().insert(pid, tell);
        told
    }

    /// Numbers of the leaders that are not reaped yet.
    pub(super) fn leaders(&self) -> BTreeSet<u32> {
        self.leaders.borrow().keys().copied().collect()
    }
}
