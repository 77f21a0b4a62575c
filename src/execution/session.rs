//! Which processes belong to an attempt, read from /proc.
//!
//! A task is a session of its own, but a program may leave it (`setsid`, a double fork). Members
//! are therefore: whoever is in the leader's session or group, all their descendants, and orphans
//! that carry the attempt's name in their environment; orphans come to the executor, which is the
//! subreaper. Safe code only; signals go through [`super::process`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::process;
use crate::model::event::AttemptRef;

/// Looks for those who fork while they are being stopped; each look stops all whom it finds.
const STOP_LOOKS_MAX: u32 = 100;

/// One process and no other: a number alone is given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Identity {
    /// Process id.
    pub(super) pid: u32,
    /// Clock ticks between boot and its start.
    pub(super) start_ticks: u64,
}

/// What /proc says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Which process.
    pub(super) identity: Identity,
    /// Whether it waits to be reaped only.
    pub(super) ended: bool,
    /// Whether it is stopped, by a signal or a debugger.
    pub(super) stopped: bool,
    parent: u32,
    /// Its process group.
    pub(super) group: u32,
    /// Its session.
    pub(super) session: u32,
}

/// Where the orphans of an attempt are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphans {
    /// They are children of this process.
    Ours,
    /// They were those of a process that is gone; now they are anybody's.
    Anywhere,
}

/// The processes of one attempt.
#[derive(Debug)]
pub(super) struct Session {
    leader: Identity,
    names: [Vec<u8>; 2],
    orphans: Orphans,
    /// Whoever was seen as a member stays one, also when its parents are gone and its environment
    /// is another.
    /// Behind a lock that is held within one call only.
    seen: Mutex<BTreeSet<Identity>>,
}

/// Who this number belongs to now, a process that ended and is not reaped included.
pub(super) fn identify(pid: u32) -> Option<Identity> {
    stat(pid).map(|s| s.identity)
}

/// Whether this very process still runs.
#[cfg(test)]
pub(super) fn runs(identity: Identity) -> bool {
    stat(identity.pid).is_some_and(|s| s.identity == identity && !s.ended)
}

/// Children of this process that are none of `leaders` and run: what tasks left behind.
pub(super) fn strays(leaders: &BTreeSet<u32>) -> Vec<Stat> {
    children(std::process::id())
        .into_iter()
        .filter(|pid| !leaders.contains(pid))
        .filter_map(stat)
        .filter(|s| !s.ended)
        .collect()
}

/// The children of a process.
pub(super) fn children(pid: u32) -> Vec<u32> {
    listed(pid).unwrap_or_else(|| {
        // The kernel does not list them.
        processes().filter(|s| s.parent == pid).map(|s| s.identity.pid).collect()
    })
}

/// Whether this kernel lists children at all.
fn lists_children() -> bool {
    std::fs::exists("/proc/thread-self/children").unwrap_or(false)
}

fn listed(pid: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    // A process that is gone has none.
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Some(all) };
    for thread in threads.flatten() {
        let Ok(text) = std::fs::read_to_string(thread.path().join("children")) else {
            if !lists_children() {
                return None;
            }
            // This thread has ended meanwhile.
            continue;
        };
        all.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Some(all)
}

impl Identity {
    /// No process: stands for a leader that nobody wrote down.
    pub(super) const UNKNOWN: Self = Self { pid: 0, start_ticks: 0 };
}

impl Session {
    /// The session of an attempt's leader.
    pub(super) fn new(leader: Identity, of: &AttemptRef, orphans: Orphans) -> Self {
        let names = [
            format!("SCHED_INSTANCE_ID={}", of.instance_id).into_bytes(),
            format!("SCHED_ATTEMPT={}", of.attempt).into_bytes(),
        ];
        Self { leader, names, orphans, seen: Mutex::default() }
    }

    /// These are members, whatever else they look like.
    pub(super) fn know(&self, members: impl IntoIterator<Item = Identity>) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).extend(members);
    }

    /// Whether this one was seen as a member.
    pub(super) fn knows(&self, process: Identity) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains(&process)
    }

    /// All that runs of it; `leaders` are those of other attempts, which are never among them.
    pub(super) fn members(&self, leaders: &BTreeSet<u32>) -> Vec<Identity> {
        self.running(leaders).into_iter().map(|s| s.identity).collect()
    }

    fn running(&self, leaders: &BTreeSet<u32>) -> Vec<Stat> {
        let me = std::process::id();
        let all: BTreeMap<u32, Stat> = processes().map(|s| (s.identity.pid, s)).collect();
        let there = all.get(&self.leader.pid).map(|s| s.identity);
        // A session's number is not given out while the session has members, but that is known
        // only as long as its leader, or whoever reaped it, has been here all the time.
        let number_is_ours = match self.orphans {
            Orphans::Ours => there.is_none_or(|i| i == self.leader),
            Orphans::Anywhere => there == Some(self.leader),
        };
        let foreign =
            |pid: u32| pid == me || (pid != self.leader.pid && leaders.contains(&pid)) || pid == 1;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: BTreeSet<u32> = all
            .values()
            .filter(|s| !foreign(s.identity.pid))
            .filter(|s| {
                let inside = [s.identity.pid, s.session, s.group].contains(&self.leader.pid);
                (number_is_ours && inside) || seen.contains(&s.identity) || self.is_orphan(s, me)
            })
            .map(|s| s.identity.pid)
            .collect();
        loop {
            let more: Vec<u32> = all
                .values()
                .filter(|s| found.contains(&s.parent) && !found.contains(&s.identity.pid))
                .map(|s| s.identity.pid)
                .filter(|pid| !foreign(*pid))
                .collect();
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        let running: Vec<Stat> =
            found.iter().filter_map(|pid| all.get(pid)).filter(|s| !s.ended).copied().collect();
        *seen = running.iter().map(|s| s.identity).collect();
        running
    }

    /// Asks all that runs of it to end, each process once, because many programs take a second
    /// TERM as an order to drop everything: the leader's group in one step, so that nobody who
    /// forks meanwhile is missed, and who has left it one by one.
    pub(super) fn terminate(&self, leaders: &BTreeSet<u32>) {
        // A stopped process hears it only once it goes on.
        let both = [Signal::SIGTERM, Signal::SIGCONT];
        for signal in both {
            process::signal_group(self.leader, signal);
        }
        for member in self.running(leaders).iter().filter(|s| s.group != self.leader.pid) {
            for signal in both {
                process::signal(member.identity, signal);
            }
        }
    }

    /// Stops all that runs of it: the leader's group in one step, then who has left it. Whoever
    /// was forked meanwhile is found by looking again, until nobody new is there.
    pub(super) fn stop(&self, leaders: &BTreeSet<u32>) {
        process::signal_group(self.leader, Signal::SIGSTOP);
        let mut told = BTreeSet::new();
        for _ in 0..STOP_LOOKS_MAX {
            let running = self.running(leaders);
            let new: Vec<&Stat> =
                running.iter().filter(|s| !s.stopped && told.insert(s.identity)).collect();
            if new.is_empty() {
                return;
            }
            for member in new {
                process::signal(member.identity, Signal::SIGSTOP);
            }
        }
    }

    /// Sends a signal to all that runs of it and says how many that were.
    pub(super) fn signal(&self, leaders: &BTreeSet<u32>, signal: Signal) -> usize {
        let members = self.members(leaders);
        for member in &members {
            process::signal(*member, signal);
            if signal == Signal::SIGTERM {
                // A stopped process hears it only once it goes on.
                process::signal(*member, Signal::SIGCONT);
            }
        }
        members.len()
    }

    fn is_orphan(&self, s: &Stat, me: u32) -> bool {
        if s.ended || s.identity.start_ticks < self.leader.start_ticks {
            return false;
        }
        (self.orphans == Orphans::Anywhere || s.parent == me) && self.is_named_by(s)
    }

    /// Whether a process carries the attempt's name in its environment.
    pub(super) fn is_named_by(&self, s: &Stat) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{}/environ", s.identity.pid)) else {
            return false;
        };
        self.names.iter().all(|name| environment.split(|b| *b == 0).any(|entry| entry == name))
    }
}

fn processes() -> impl Iterator<Item = Stat> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(stat)
}

/// What a process is now.
pub(super) fn stat(pid: u32) -> Option<Stat> {
    parse(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads proc_pid_stat(5); the name in parentheses may itself hold blanks and parentheses.
fn parse(pid: u32, text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let small = |field: usize| u32::try_from(number(field)?).ok();
    Some(Stat {
        identity: Identity { pid, start_ticks: number(22)? },
        ended: matches!(*fields.first()?, "Z" | "X"),
        stopped: matches!(*fields.first()?, "T" | "t"),
        parent: small(4)?,
        group: small(5)?,
        session: small(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_moves_no_field() {
        // proc_pid_stat(5): 4 ppid, 5 pgrp, 6 session, 22 starttime.
        let line = "77 (a) Z (b) S 4 5 6 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 22222 0 0";
        let read = parse(77, line).unwrap();
        assert_eq!(read.identity, Identity { pid: 77, start_ticks: 22222 });
        assert_eq!((read.parent, read.group, read.session, read.ended), (4, 5, 6, false));
        assert!(parse(77, "77 (cut of").is_none());
    }

    #[test]
    fn a_number_with_another_start_is_another_process() {
        let me = identify(std::process::id()).unwrap();
        assert!(runs(me));
        assert!(!runs(Identity { start_ticks: me.start_ticks + 1, ..me }));
    }
}
