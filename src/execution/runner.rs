//! One attempt as a straight line: accept, start, watch, end, report.
//!
//! It decides nothing (requirement F3): how the end counts is the core's business. What runs of
//! an attempt is ended as a whole: the leader's session, and whoever left it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::{mpsc, oneshot};

use super::freeze::Orders;
use super::hands::Hands;
use super::journal::Entry;
use super::process::{self, End, Reaped};
use super::session::{Identity, Orphans, Session};
use super::start::{Launched, Leader, StartError};
use super::wire::Assignment;
use super::{clock, output, result_file};
use crate::model::event::{AttemptRef, Finished, Outcome, Report, Started, TaskResult};
use crate::model::time::Timestamp;

/// Between looks at what is left of a session; grows to the second.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LAST: Duration = Duration::from_millis(200);
/// After KILL; what is still there then hangs in the kernel and is not waited for.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Why an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Itself,
    Killed,
    TimedOut,
}

/// Runs one attempt to its end. Reports Started and then Finished to `reports`; what it leaves
/// behind is ended after that.
pub(super) async fn run(
    hands: Rc<Hands>,
    assignment: Assignment,
    orders: Orders,
    reports: mpsc::Sender<Report>,
) {
    let assignment = Arc::new(assignment);
    let Begun { entry, launched, exit, started_at } =
        match begin(&hands, &assignment, &orders).await {
            Ok(begun) => begun,
            Err(finished) => return report(&reports, Report::Finished(finished)).await,
        };
    let Launched { mut leader, verdict } = launched;
    let identity = leader.identity;
    let session = Rc::new(Session::new(identity, &assignment.of, Orphans::Ours));
    hands.kin.join(identity, &session, &entry, leader.log_name.take());
    let watch =
        Watch { hands: &hands, assignment: &assignment, leader: identity, session: &session };
    let started = async {
        let verdict = verdict.told(&assignment).await;
        if verdict.is_ok() {
            let of = assignment.of.clone();
            report(&reports, Report::Started(Started { of, pid: identity.pid, at: started_at }))
                .await;
        }
        verdict
    };
    let bounded = async {
        output::bound(&leader.log, &assignment.log_path, assignment.log_bytes_max).await;
        std::future::pending().await
    };
    let ended = async {
        tokio::select! {
            ended = watch.to_the_end(exit, &orders) => ended,
            never = bounded => never,
        }
    };
    // Together, so that neither a program that does not begin nor a daemon that does not read
    // holds up a deadline.
    let (started, (reaped, cause)) = tokio::join!(started, ended);
    let finished = Box::new(match started {
        Ok(()) => finish(&assignment, &leader, reaped, cause, started_at),
        Err(error) => never_started(&assignment.of, error, cause == Cause::Killed),
    });
    if let Err(error) = entry.finished(&finished) {
        tracing::warn!(instance = %assignment.of.instance_id, %error, "cannot journal an end");
    }
    report(&reports, Report::Finished(finished)).await;
    if watch.any_left() {
        watch.signal(Signal::SIGTERM);
        watch.until_gone(clock::since_boot() + assignment.kill_grace).await;
        output::cut(&leader.log, &assignment.log_path, assignment.log_bytes_max);
    }
    hands.kin.leave(watch.leader);
}

async fn report(reports: &mpsc::Sender<Report>, report: Report) {
    if reports.send(report).await.is_err() {
        tracing::debug!("an executor that ends takes no more reports");
    }
}

/// An attempt that has a process.
struct Begun {
    entry: Rc<Entry>,
    launched: Launched,
    exit: oneshot::Receiver<Reaped>,
    started_at: Timestamp,
}

/// Accepts and starts; an attempt that never ran has its end at once.
async fn begin(
    hands: &Hands,
    assignment: &Arc<Assignment>,
    orders: &Orders,
) -> Result<Begun, Box<Finished>> {
    let of = &assignment.of;
    let entry = hands.journal.accept(of, &hands.boot_id).map_err(|error| {
        let message = format!("cannot journal the attempt: {error}");
        Box::new(never_started(of, StartError { message, transient: false }, false))
    })?;
    let prepared = tokio::select! {
        biased;
        () = orders.killed() => None,
        prepared = hands.prepare(assignment) => Some(prepared),
    };
    let failed = match prepared.map(|p| p.and_then(|p| p.launch(assignment))) {
        Some(Ok(launched)) => {
            let leader = launched.leader.identity;
            let exit = hands.children.watch(leader.pid);
            let started_at = clock::now();
            // Before its program begins: one that hangs there is ended too by whoever comes next.
            if let Err(error) = entry.started(leader) {
                tracing::warn!(instance = %of.instance_id, %error, "cannot journal a start");
            }
            let entry = Rc::new(entry);
            return Ok(Begun { entry, launched, exit, started_at });
        }
        Some(Err(error)) => never_started(of, error, false),
        None => {
            let message = "cancelled before it was started".to_owned();
            never_started(of, StartError { message, transient: false }, true)
        }
    };
    if let Err(error) = entry.finished(&failed) {
        tracing::warn!(instance = %of.instance_id, %error, "cannot journal an end");
    }
    Err(Box::new(failed))
}

/// The end of an attempt of which no process came to be.
pub(super) fn never_started(of: &AttemptRef, error: StartError, killed: bool) -> Finished {
    Finished {
        of: of.clone(),
        started_at: None,
        finished_at: clock::now(),
        outcome: Outcome::SpawnFailed { message: error.message, transient: error.transient },
        result: TaskResult::default(),
        killed,
        user_ms: None,
        system_ms: None,
        max_rss_bytes: None,
        output_bytes: None,
    }
}

fn finish(
    assignment: &Assignment,
    leader: &Leader,
    reaped: Reaped,
    cause: Cause,
    started_at: Timestamp,
) -> Finished {
    output::cut(&leader.log, &assignment.log_path, assignment.log_bytes_max);
    let millis = |time: Duration| u64::try_from(time.as_millis()).ok();
    Finished {
        of: assignment.of.clone(),
        started_at: Some(started_at),
        finished_at: clock::now().max(started_at),
        outcome: match (cause, reaped.end) {
            (Cause::TimedOut, _) => Outcome::TimedOut,
            (Cause::Itself | Cause::Killed, End::Exited(code)) => Outcome::Exited { code },
            (Cause::Itself | Cause::Killed, End::Signalled(signal)) => {
                Outcome::Signalled { signal, name: signal_name(signal) }
            }
        },
        result: result_file::take(&assignment.result_path, assignment.user.is_some()),
        killed: cause == Cause::Killed,
        user_ms: millis(reaped.user),
        system_ms: millis(reaped.system),
        max_rss_bytes: Some(reaped.max_rss_bytes),
        output_bytes: leader.log.metadata().ok().map(|m| m.len().saturating_sub(leader.log_from)),
    }
}

/// `SEGV` for 11; real-time signals have a number only.
fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.as_str().trim_start_matches("SIG").to_owned(),
        Err(_) => number.to_string(),
    }
}

struct Watch<'a> {
    hands: &'a Hands,
    assignment: &'a Assignment,
    leader: Identity,
    session: &'a Session,
}

impl Watch<'_> {
    /// Waits for the leader's own end, the deadline or the order to kill, whichever is first; in
    /// the latter cases until all of it is gone.
    async fn to_the_end(
        &self,
        mut exit: oneshot::Receiver<Reaped>,
        orders: &Orders,
    ) -> (Reaped, Cause) {
        let leader = self.leader;
        let cause = tokio::select! {
            biased;
            reaped = &mut exit => return (taken(reaped, leader), Cause::Itself),
            () = orders.killed() => Cause::Killed,
            () = orders.time_is_up(self.assignment.timeout, |stop| self.freeze(stop)) => Cause::TimedOut,
        };
        // It may have ended without our having been told yet: then its result stands.
        self.hands.children.reap();
        if let Ok(reaped) = exit.try_recv() {
            return (reaped, Cause::Itself);
        }
        let leaders = self.hands.children.leaders();
        self.hands.kin.claim(&leaders);
        self.session.terminate(&leaders);
        let grace_ends = clock::since_boot().saturating_add(self.assignment.kill_grace);
        let reaped = tokio::select! {
            biased;
            reaped = &mut exit => taken(reaped, leader),
            () = clock::sleep_until(grace_ends) => {
                process::signal_group(leader, Signal::SIGKILL);
                self.signal(Signal::SIGKILL);
                taken(exit.await, leader)
            }
        };
        self.until_gone(grace_ends).await;
        (reaped, cause)
    }

    /// Once the leader is reaped: waits until nothing of the session is left, and kills what is
    /// there at `grace_ends`.
    async fn until_gone(&self, grace_ends: Duration) {
        let mut pause = LOOK_FIRST;
        loop {
            self.hands.children.reap();
            let now = clock::since_boot();
            if now >= grace_ends {
                self.signal(Signal::SIGKILL);
                self.hands.children.reap();
            }
            if !self.any_left() {
                return;
            }
            if now >= grace_ends.saturating_add(GONE_WITHIN) {
                tracing::warn!(
                    instance = %self.assignment.of.instance_id,
                    "processes of an ended attempt hang in the kernel"
                );
                return;
            }
            // An end that is told to somebody else's parent is seen at the next look.
            let told = self.hands.children.changed.notified();
            drop(tokio::time::timeout(pause, told).await);
            pause = (pause * 2).min(LOOK_LAST);
        }
    }

    /// Stops all of it, or lets all of it go on.
    fn freeze(&self, stop: bool) {
        let leaders = self.hands.children.leaders();
        self.hands.kin.claim(&leaders);
        if stop {
            self.session.stop(&leaders);
        } else {
            self.session.signal(&leaders, Signal::SIGCONT);
        }
    }

    /// Whether anything of the session runs; asked once its leader is reaped. All that it left is
    /// then below stray children of this process.
    fn any_left(&self) -> bool {
        self.hands.kin.any_left(self.leader, &self.hands.children.leaders())
    }

    fn signal(&self, signal: Signal) {
        self.session.signal(&self.hands.children.leaders(), signal);
    }
}

/// Whoever drops the sender has not seen the end; the leader is ours, so that does not happen.
fn taken(told: Result<Reaped, oneshot::error::RecvError>, leader: Identity) -> Reaped {
    told.unwrap_or(Reaped {
        pid: leader.pid,
        end: End::Signalled(Signal::SIGKILL as i32),
        user: Duration::ZERO,
        system: Duration::ZERO,
        max_rss_bytes: 0,
    })
}

#[cfg(test)]
mod tests;
