//! What an executor may be ordered about an attempt that is on, and the clock of its timeout, which
//! stands still while the attempt's processes are stopped. It knows no process.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::clock;

/// The executor's end: what it wants of one attempt.
#[derive(Debug)]
pub(super) struct Wish {
    kill: CancellationToken,
    frozen: watch::Sender<bool>,
}

/// The attempt's end of it.
#[derive(Debug)]
pub(super) struct Orders {
    kill: CancellationToken,
    frozen: watch::Receiver<bool>,
}

/// An attempt goes on, and then ends only by itself.
pub(super) fn orders() -> (Wish, Orders) {
    let (sender, receiver) = watch::channel(false);
    let kill = CancellationToken::new();
    let wish = Wish { kill: kill.clone(), frozen: sender };
    (wish, Orders { kill, frozen: receiver })
}

impl Wish {
    /// It shall end.
    pub(super) fn kill(&self) {
        self.kill.cancel();
    }

    /// Its processes shall stop, or go on.
    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    /// Whether its processes are stopped, or about to be.
    pub(super) fn is_frozen(&self) -> bool {
        *self.frozen.borrow()
    }
}

impl Orders {
    /// Waits for the order to end. Cancel safe.
    pub(super) async fn killed(&self) {
        self.kill.cancelled().await;
    }

    /// Waits until the time allowed is used up; without a bound for ever. Calls `set` with `true`
    /// when the attempt is to be stopped and with `false` when it is to go on; the time between
    /// does not count.
    ///
    /// Dropped while the attempt is stopped, it leaves it so.
    pub(super) async fn time_is_up(&self, timeout: Option<Duration>, set: impl Fn(bool)) {
        let mut frozen = self.frozen.clone();
        let mut deadline = timeout.map(|t| clock::since_boot().saturating_add(t));
        loop {
            if *frozen.borrow_and_update() {
                let left = deadline.map(|at| at.saturating_sub(clock::since_boot()));
                set(true);
                until(&mut frozen, false).await;
                set(false);
                deadline = left.map(|left| clock::since_boot().saturating_add(left));
            }
            tokio::select! {
                biased;
                () = until(&mut frozen, true) => {}
                () = over(deadline) => return,
            }
        }
    }
}

async fn until(frozen: &mut watch::Receiver<bool>, wanted: bool) {
    if frozen.wait_for(|is| *is == wanted).await.is_err() {
        // Nobody is there any more to order it.
        std::future::pending::<()>().await;
    }
}

async fn over(deadline: Option<Duration>) {
    match deadline {
        Some(at) => clock::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
