//! Which outputs are looked at when. Knows times as numbers and touches nothing.
//!
//! Outputs in the same folders are looked at together and never twice at a time; what is wanted
//! newly is looked at at once. A look may hang: then these folders wait for it, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::model::id::InstanceId;
use crate::model::output::Outputs;

/// Pause after the first look; each one after it is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// The longest pause: with the look itself, what comes is seen within a second.
const PAUSE_MOST: Duration = Duration::from_millis(800);

/// After a look that took this long the pause is so many times as long, so that looking stays a small
/// share of the time.
const REST: u32 = 4;

/// So much longer is a pause for every group that there is: from some thousand on, what comes is seen
/// later than within a second.
const CROWD: Duration = Duration::from_micros(200);

/// Looks that are on at a time, beside those that hang.
const LOOKS_MAX: usize = 4;

/// Looks that may hang; when there are more, none begins until one of them returns.
const HANGING_MAX: usize = 32;

/// What is looked for: of which instances, and what.
pub(in crate::daemon) type Wanted = BTreeMap<InstanceId, Arc<Outputs>>;

/// The folders that outputs lie in.
pub(super) type Folders = Arc<BTreeSet<PathBuf>>;

/// All that is wanted, by folders, and the looks that are due or on.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    known: BTreeMap<InstanceId, Folders>,
    groups: BTreeMap<Folders, Group>,
    /// When each group that no look is on at is looked at next.
    due: BTreeSet<(Duration, Folders)>,
    on: BTreeMap<Folders, Look>,
}

/// Outputs in the same folders.
#[derive(Debug)]
struct Group {
    wanted: Wanted,
    pause: Duration,
    /// Its entry in `due`.
    next: Option<Duration>,
    /// More came to be wanted while a look was on.
    again: bool,
}

/// A look that is on.
#[derive(Debug)]
struct Look {
    since: Duration,
    hangs: bool,
}

impl Rounds {
    /// From now on exactly this is wanted.
    pub(super) fn follow(&mut self, wanted: Wanted, now: Duration) {
        let is_gone = |id: &&InstanceId| !wanted.contains_key(*id);
        let gone: Vec<InstanceId> = self.known.keys().filter(is_gone).cloned().collect();
        for id in gone {
            self.forget(&id);
        }
        for (id, outputs) in wanted {
            if !self.known.contains_key(&id) {
                self.add(id, outputs, now);
            }
        }
    }

    fn add(&mut self, id: InstanceId, outputs: Arc<Outputs>, now: Duration) {
        let folders = folders(&outputs);
        let is_on = self.on.contains_key(&folders);
        self.known.insert(id.clone(), Arc::clone(&folders));
        let group = self.groups.entry(Arc::clone(&folders)).or_insert_with(|| Group {
            wanted: Wanted::new(),
            pause: PAUSE_FIRST,
            next: None,
            again: false,
        });
        group.wanted.insert(id, outputs);
        group.pause = PAUSE_FIRST;
        group.again = is_on;
        if !is_on {
            self.schedule(&folders, now);
        }
    }

    fn forget(&mut self, id: &InstanceId) {
        let Some(folders) = self.known.remove(id) else { return };
        let Some(group) = self.groups.get_mut(&folders) else { return };
        group.wanted.remove(id);
        if group.wanted.is_empty() {
            if let Some(at) = group.next {
                self.due.remove(&(at, Arc::clone(&folders)));
            }
            self.groups.remove(&folders);
        }
    }

    fn schedule(&mut self, folders: &Folders, at: Duration) {
        let Some(group) = self.groups.get_mut(folders) else { return };
        if let Some(before) = group.next.replace(at) {
            self.due.remove(&(before, Arc::clone(folders)));
        }
        self.due.insert((at, Arc::clone(folders)));
    }

    /// A look that is due begins: where, and at what. `None`: nothing is due, or too much is on.
    pub(super) fn begin(&mut self, now: Duration) -> Option<(Folders, Wanted)> {
        let is_due = self.due.first().is_some_and(|(at, _)| *at <= now);
        if !is_due || !self.has_room() {
            return None;
        }
        let (_, folders) = self.due.pop_first()?;
        let group = self.groups.get_mut(&folders)?;
        group.next = None;
        let wanted = group.wanted.clone();
        self.on.insert(Arc::clone(&folders), Look { since: now, hangs: false });
        Some((folders, wanted))
    }

    fn has_room(&self) -> bool {
        let hanging = self.on.values().filter(|look| look.hangs).count();
        hanging < HANGING_MAX && self.on.len() - hanging < LOOKS_MAX
    }

    /// A look has ended.
    pub(super) fn end(&mut self, folders: &Folders, now: Duration) {
        let Some(look) = self.on.remove(folders) else { return };
        let took = now.saturating_sub(look.since);
        let crowd = CROWD.saturating_mul(u32::try_from(self.groups.len()).unwrap_or(u32::MAX));
        let Some(group) = self.groups.get_mut(folders) else { return };
        let pause = group.pause.max(took.saturating_mul(REST)).max(crowd);
        let next = if group.again { now } else { now.saturating_add(pause) };
        if !group.again {
            group.pause = group.pause.saturating_mul(2).min(PAUSE_MOST);
        }
        group.again = false;
        self.schedule(folders, next);
    }

    /// Looks that have been on for so long that they hang, each told once: what they hold up.
    pub(super) fn hanging(&mut self, now: Duration, after: Duration) -> Wanted {
        let mut held = Wanted::new();
        for (folders, look) in &mut self.on {
            if look.hangs || now < look.since.saturating_add(after) {
                continue;
            }
            look.hangs = true;
            let wanted = self.groups.get(folders).map(|group| group.wanted.clone());
            held.extend(wanted.unwrap_or_default());
        }
        held
    }

    /// The folders that a look hangs in.
    pub(super) fn stuck(&self) -> impl Iterator<Item = &Folders> {
        self.on.iter().filter(|(_, look)| look.hangs).map(|(folders, _)| folders)
    }

    /// When something is to be done that nobody tells of.
    pub(super) fn next_wake(&self, hangs_after: Duration) -> Duration {
        let busy = self.on.values().filter(|look| !look.hangs);
        let hangs = busy.map(|look| look.since.saturating_add(hangs_after));
        let due = self.due.first().filter(|_| self.has_room()).map(|(at, _)| *at);
        hangs.chain(due).min().unwrap_or(Duration::MAX)
    }
}

fn folders(outputs: &Outputs) -> Folders {
    let parents = outputs.paths.iter().filter_map(|path| Path::new(path).parent());
    Arc::new(parents.map(Path::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Timestamp;

    const AFTER: Duration = Duration::from_secs(2);

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn outputs(paths: &[&str]) -> Arc<Outputs> {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        Arc::new(Outputs { since: Timestamp::default(), paths, problem: None, found: None })
    }

    fn wanted(of: &[(&str, &str)]) -> Wanted {
        of.iter().map(|(id, path)| (InstanceId::from_text(id), outputs(&[path]))).collect()
    }

    fn begin(rounds: &mut Rounds, now: Duration) -> Option<(Folders, Vec<String>)> {
        let (folders, wanted) = rounds.begin(now)?;
        Some((folders, wanted.keys().map(ToString::to_string).collect()))
    }

    #[test]
    fn pauses_grow_from_a_tenth_of_a_second_to_less_than_a_whole_one() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.next_wake(AFTER), Duration::MAX);
        rounds.follow(wanted(&[("a", "/out/a")]), ms(5));
        let mut pauses = Vec::new();
        let mut now = ms(5);
        for _ in 0..6 {
            assert_eq!(rounds.next_wake(AFTER), now);
            let (folders, ids) = begin(&mut rounds, now).expect("a look");
            assert_eq!(ids, ["a"]);
            assert_eq!(begin(&mut rounds, now + ms(1)), None, "one at a time");
            rounds.end(&folders, now);
            let next = rounds.next_wake(AFTER);
            pauses.push((next - now).as_millis());
            now = next;
        }
        assert_eq!(pauses, [100, 200, 400, 800, 800, 800]);
        // What comes is seen at once, though its neighbour has waited for long.
        rounds.follow(wanted(&[("a", "/out/a"), ("b", "/out/b")]), now - ms(700));
        assert_eq!(begin(&mut rounds, now - ms(700)).expect("a look").1, ["a", "b"]);
        // A look that took long is followed by a long rest.
        rounds.end(&folders(&outputs(&["/out/a"])), now + ms(300));
        assert_eq!(rounds.next_wake(AFTER), now + ms(300) + ms(4000));
        rounds.follow(Wanted::new(), now + ms(300));
        assert_eq!(rounds.next_wake(AFTER), Duration::MAX);
    }

    #[test]
    fn what_comes_during_a_look_is_looked_at_after_it() {
        let mut rounds = Rounds::default();
        rounds.follow(wanted(&[("a", "/out/a")]), ms(0));
        let (folders, _) = begin(&mut rounds, ms(0)).expect("a look");
        rounds.follow(wanted(&[("b", "/out/b")]), ms(1));
        assert_eq!(begin(&mut rounds, ms(1)), None);
        rounds.end(&folders, ms(2));
        assert_eq!(begin(&mut rounds, ms(2)).expect("a look").1, ["b"]);
    }

    #[test]
    fn a_look_that_hangs_holds_its_folders_and_takes_nobodys_place() {
        let mut rounds = Rounds::default();
        let many: Vec<(String, String)> =
            (0..5).map(|n| (format!("i{n}"), format!("/mnt/{n}/out"))).collect();
        let many: Vec<(&str, &str)> =
            many.iter().map(|(id, path)| (id.as_str(), path.as_str())).collect();
        rounds.follow(wanted(&many), ms(0));
        let looks: Vec<Folders> =
            std::iter::from_fn(|| Some(begin(&mut rounds, ms(0))?.0)).collect();
        assert_eq!(looks.len(), 4, "four are on, the fifth waits");
        assert!(rounds.hanging(ms(1999), AFTER).is_empty());
        assert_eq!(rounds.next_wake(AFTER), ms(2000));
        assert_eq!(rounds.hanging(ms(2000), AFTER).len(), 4);
        assert!(rounds.hanging(ms(2001), AFTER).is_empty(), "told once");
        assert_eq!(rounds.stuck().count(), 4);
        let (fifth, ids) = begin(&mut rounds, ms(2001)).expect("a look");
        assert_eq!(ids, ["i4"]);
        rounds.end(&fifth, ms(2001));
        // The same folder again, for somebody else: it waits for the look that hangs there.
        let more: Vec<(&str, &str)> = many.iter().copied().chain([("late", "/mnt/0/x")]).collect();
        rounds.follow(wanted(&more), ms(2002));
        assert_eq!(begin(&mut rounds, ms(2002)), None);
        rounds.end(&looks[0], ms(9000));
        assert_eq!(rounds.stuck().count(), 3);
        let next: Vec<Vec<String>> =
            std::iter::from_fn(|| Some(begin(&mut rounds, ms(9000))?.1)).collect();
        assert_eq!(next, [vec!["i4".to_owned()], vec!["i0".to_owned(), "late".to_owned()]]);
    }

    #[test]
    fn when_too_many_looks_hang_no_more_begin() {
        let mut rounds = Rounds::default();
        let names: Vec<String> = (0..40).map(|n| format!("/mnt/{n}/out")).collect();
        let all: Vec<(&str, &str)> = names.iter().map(|p| (p.as_str(), p.as_str())).collect();
        rounds.follow(wanted(&all), ms(0));
        let mut begun = 0;
        for round in 0..20 {
            let now = AFTER * round;
            while begin(&mut rounds, now).is_some() {
                begun += 1;
            }
            rounds.hanging(now + AFTER, AFTER);
        }
        assert_eq!(begun, HANGING_MAX);
        assert_eq!(rounds.next_wake(AFTER), Duration::MAX, "only a look that returns helps");
    }
}
