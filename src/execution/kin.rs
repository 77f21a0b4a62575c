//! Whose the orphans are: processes that left their attempt's session and lost their parents, and
//! that come to the executor, the subreaper, without a word about whose they are.
//!
//! One is its attempt's if it was seen below it before, is in the session or group of one who
//! was, carries the attempt's name in its environment, writes into its log, or if no other attempt
//! was there when it appeared. Of what is left nobody knows whose it is: it is ended once no
//! attempt runs any more. Only the executor's own children and the trees below them are read, not
//! all of /proc. It knows nothing of results and reports.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::Notify;

use super::journal::Entry;
use super::process;
use super::session::{self, Identity, Session, Stat};

/// Between looks while attempts run.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between TERM and KILL of an orphan that is nobody's.
const GRACE: Duration = Duration::from_secs(1);
/// Attempts whose trees are walked at one look; with more of them, each waits for its turn.
const WALKED_MAX: usize = 128;

/// The attempts that run, and the executor's children that are no leaders.
#[derive(Default)]
pub(super) struct Kin {
    // Borrowed within one call only.
    state: RefCell<State>,
    /// Told when there is something to look for again.
    woken: Notify,
}

#[derive(Default)]
struct State {
    /// By leader.
    families: BTreeMap<Identity, Family>,
    /// Children that are no leaders, and whose they are, if that is known.
    strays: BTreeMap<Identity, Option<Identity>>,
    /// Those that are nobody's with all below them, and their sessions, as last seen.
    nobodys: BTreeMap<Identity, u32>,
    /// When those were asked to end.
    asked_at: Option<Duration>,
    /// Whose tree was walked last.
    walked: Option<Identity>,
    /// Whether there is anything to look for: one look more than attempts and strays last.
    is_awake: bool,
}

/// What makes a process an attempt's.
type Sign<'a> = dyn Fn(&Identity, &Family) -> bool + 'a;

struct Family {
    session: Rc<Session>,
    entry: Rc<Entry>,
    log: Option<PathBuf>,
    /// All of it and their sessions, as last seen.
    members: BTreeMap<Identity, u32>,
}

impl Kin {
    /// An attempt has a process. `log` is the file that its output goes to, as the kernel names it.
    pub(super) fn join(
        &self,
        leader: Identity,
        session: &Rc<Session>,
        entry: &Rc<Entry>,
        log: Option<PathBuf>,
    ) {
        let (session, entry) = (Rc::clone(session), Rc::clone(entry));
        let family = Family { session, entry, log, members: BTreeMap::new() };
        let mut state = self.state.borrow_mut();
        state.families.insert(leader, family);
        state.is_awake = true;
        self.woken.notify_one();
    }

    /// Waits until there is something to look for: an executor without work sleeps.
    ///
    /// Cancel safe.
    pub(super) async fn is_needed(&self) {
        let is_asleep = || !self.state.borrow().is_awake;
        while is_asleep() {
            self.woken.notified().await;
        }
    }

    /// An attempt is over, with all that it left.
    pub(super) fn leave(&self, leader: Identity) {
        let mut state = self.state.borrow_mut();
        state.families.remove(&leader);
        for owner in state.strays.values_mut().filter(|owner| **owner == Some(leader)) {
            *owner = None;
        }
    }

    /// Finds out whose the orphans are that have come since. `leaders` are those of all attempts.
    pub(super) fn claim(&self, leaders: &BTreeSet<u32>) {
        self.state.borrow_mut().claim(leaders);
    }

    /// Whether an attempt whose leader is reaped has left anything that runs.
    pub(super) fn any_left(&self, leader: Identity, leaders: &BTreeSet<u32>) -> bool {
        let mut state = self.state.borrow_mut();
        state.claim(leaders);
        state.strays.values().any(|owner| *owner == Some(leader))
    }

    /// The look of each [`LOOK_EVERY`]: remembers who is below whom, for the time when their
    /// parents are gone, and ends what is nobody's once no attempt runs.
    pub(super) fn look(&self, leaders: &BTreeSet<u32>, now: Duration) {
        let mut state = self.state.borrow_mut();
        if !state.is_awake {
            return;
        }
        state.is_awake = !state.families.is_empty();
        state.claim(leaders);
        state.walk(leaders);
        state.is_awake |= !state.strays.is_empty();
        state.end_nobodys(now);
    }
}

impl State {
    fn claim(&mut self, leaders: &BTreeSet<u32>) {
        let there = session::strays(leaders);
        self.strays.retain(|stray, _| there.iter().any(|s| s.identity == *stray));
        for stray in there {
            if self.strays.contains_key(&stray.identity) {
                continue;
            }
            let owner = self.whose(&stray);
            if let Some(family) = owner.and_then(|leader| self.families.get_mut(&leader)) {
                family.take(&stray);
            }
            tracing::debug!(pid = stray.identity.pid, ?owner, "an orphan");
            self.strays.insert(stray.identity, owner);
        }
    }

    /// Whose it is, surest signs first; each is asked of all attempts before the next.
    fn whose(&self, stray: &Stat) -> Option<Identity> {
        let nobodys = self.nobodys.contains_key(&stray.identity)
            || self.nobodys.values().any(|session| *session == stray.session);
        let born_after = |leader: &Identity| stray.identity.start_ticks >= leader.start_ticks;
        let candidates = || self.families.iter().filter(|(leader, _)| born_after(leader));
        let signs: [&Sign<'_>; 5] = [
            &|_, family| {
                family.members.contains_key(&stray.identity) || family.session.knows(stray.identity)
            },
            &|leader, _| [stray.session, stray.group].contains(&leader.pid),
            &|_, family| family.members.values().any(|session| *session == stray.session),
            &|_, family| family.session.is_named_by(stray),
            &|_, family| family.is_log_of(stray),
        ];
        for sign in signs {
            if let Some((leader, _)) = candidates().find(|(leader, family)| sign(leader, family)) {
                return Some(*leader);
            }
        }
        let mut rest = candidates();
        match (rest.next(), rest.next()) {
            (Some((only, _)), None) if !nobodys => Some(*only),
            _ => None,
        }
    }

    fn walk(&mut self, leaders: &BTreeSet<u32>) {
        let all: Vec<Identity> = self.families.keys().copied().collect();
        let turn = all.partition_point(|leader| Some(*leader) <= self.walked);
        for leader in all[turn..].iter().chain(&all[..turn]).take(WALKED_MAX) {
            let roots = self.roots(Some(*leader), leaders.contains(&leader.pid).then_some(*leader));
            if let Some(family) = self.families.get_mut(leader) {
                family.members = below(roots);
                family.session.know(family.members.keys().copied());
            }
            self.walked = Some(*leader);
        }
        self.nobodys = below(self.roots(None, None));
    }

    fn roots(&self, owner: Option<Identity>, leader: Option<Identity>) -> Vec<Identity> {
        let strays = self.strays.iter().filter(|(_, of)| **of == owner).map(|(stray, _)| *stray);
        strays.chain(leader).collect()
    }

    fn end_nobodys(&mut self, now: Duration) {
        if !self.families.is_empty() || self.nobodys.is_empty() {
            self.asked_at = None;
            return;
        }
        let asked_at = *self.asked_at.get_or_insert_with(|| {
            let count = self.nobodys.len();
            tracing::warn!(count, "ending processes that tasks left behind; nothing says which");
            now
        });
        for process in self.nobodys.keys() {
            if now.saturating_sub(asked_at) >= GRACE {
                process::signal(*process, Signal::SIGKILL);
            } else {
                process::signal(*process, Signal::SIGTERM);
                // A stopped process hears it only once it goes on.
                process::signal(*process, Signal::SIGCONT);
            }
        }
    }
}

impl Family {
    /// It is journaled, because whoever comes after this process finds it at init.
    fn take(&mut self, stray: &Stat) {
        self.members.insert(stray.identity, stray.session);
        self.session.know([stray.identity]);
        if let Err(error) = self.entry.seen(stray.identity) {
            tracing::warn!(pid = stray.identity.pid, %error, "cannot journal an orphan");
        }
    }

    fn is_log_of(&self, stray: &Stat) -> bool {
        let output = |number: u8| {
            // Its name only: to open what it names could wait for ever.
            std::fs::read_link(format!("/proc/{}/fd/{number}", stray.identity.pid)).ok()
        };
        self.log.is_some() && (1..=2).any(|number| output(number) == self.log)
    }
}

/// These and all below them that run, with their sessions.
fn below(roots: Vec<Identity>) -> BTreeMap<Identity, u32> {
    let mut seen = BTreeMap::new();
    let mut open: Vec<u32> = roots.into_iter().map(|root| root.pid).collect();
    while let Some(pid) = open.pop() {
        let Some(stat) = session::stat(pid).filter(|s| !s.ended) else { continue };
        if seen.insert(stat.identity, stat.session).is_none() {
            open.extend(session::children(pid));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::super::journal::Journal;
    use super::super::session::Orphans;
    use super::*;
    use crate::model::event::AttemptRef;
    use crate::model::id::{InstanceId, Lease};

    #[test]
    fn without_attempts_and_orphans_nothing_is_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().join("attempts")).unwrap();
        let kin = Kin::default();
        assert!(kin.is_needed().now_or_never().is_none(), "idle");
        let of =
            AttemptRef { instance_id: InstanceId::from_text("0a"), attempt: 1, lease: Lease(1) };
        // A process that is not there: its session is empty.
        let leader = Identity { pid: u32::MAX, start_ticks: 0 };
        let session = Rc::new(Session::new(leader, &of, Orphans::Ours));
        let entry = Rc::new(journal.accept(&of, &"boot".into()).unwrap());
        kin.join(leader, &session, &entry, None);
        assert!(kin.is_needed().now_or_never().is_some(), "an attempt runs");
        kin.leave(leader);
        // The last look finds nothing and is the last.
        kin.look(&BTreeSet::new(), Duration::ZERO);
        assert!(kin.is_needed().now_or_never().is_none(), "idle again");
    }
}
