use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::daemon::arrivals::file_system::FileSystem;
use crate::model::id::TaskId;

/// Far longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn on_nfs(_: &Path) -> FileSystem {
    FileSystem::Remote("nfs")
}

fn local(_: &Path) -> FileSystem {
    FileSystem::Local
}

/// A looker that follows `*.csv` in a new directory and has looked once.
struct Looking {
    looker: Looker,
    root: tempfile::TempDir,
}

impl Looking {
    fn on(file_system: FileSystemOf, poll: Option<Duration>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let (looker, _) = Looker::new(Clock::new(), file_system, Vec::new());
        let mut looking = Self { looker, root };
        looking.follow(&["a"], poll);
        looking.looker.look();
        looking
    }

    fn follow(&mut self, tasks: &[&str], poll: Option<Duration>) {
        let watch = |task: &&str| FileWatch {
            task_id: TaskId::parse(&format!("{task}.t.v1")).unwrap(),
            pattern: format!("{}/*.csv", self.root.path().display()),
            settle: Duration::ZERO,
            poll,
        };
        let watches = tasks.iter().map(watch).collect();
        self.looker.follow(watches);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Looks until so many have arrived in all; their names.
    fn until_arrived(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        let until = self.looker.clock.elapsed() + PATIENCE;
        while names.len() < count {
            assert!(self.looker.clock.elapsed() < until, "only {names:?}");
            let arrived = self.looker.look().arrived;
            names
                .extend(arrived.into_iter().map(|a| a.path.rsplit('/').next().unwrap().to_owned()));
        }
        names.sort();
        names
    }
}

/// Known fault B161.
#[test]
fn what_is_remote_is_looked_at_now_and_then_and_said_so() {
    let mut nfs = Looking::on(on_nfs, None);
    let notes = nfs.looker.notes().join("\n");
    assert!(notes.contains("is on a remote file system (nfs)"), "{notes}");
    assert!(notes.contains("looked at every 5s; pollMs sets another period"), "{notes}");
    let now = nfs.looker.clock.elapsed();
    let (_, route) = nfs.looker.routes.first_key_value().unwrap();
    assert!(route.next_poll <= now + limits::POLL_REMOTE_EVERY, "{:?}", route.next_poll);
    assert!(nfs.looker.next_look() <= route.next_poll);
    // The server's times reach us late: two looks at one moment prove nothing.
    fs::write(nfs.path("a.csv"), "1").unwrap();
    nfs.looker.is_restructured = true;
    nfs.looker.walk_not_before = Duration::ZERO;
    drop(nfs.looker.hints.take());
    assert_eq!(nfs.looker.look(), Found::default());
    let settled = nfs.looker.tracker.next_deadline().unwrap();
    assert!(settled >= now + limits::POLL_REMOTE_EVERY, "{settled:?}");
}

#[test]
fn the_spec_chooses_the_period_also_where_it_is_remote() {
    let period = Duration::from_millis(700);
    let looking = Looking::on(on_nfs, Some(period));
    assert_eq!(looking.looker.notes(), Vec::<String>::new());
    let (_, route) = looking.looker.routes.first_key_value().unwrap();
    assert!(route.next_poll <= looking.looker.clock.elapsed() + period, "{:?}", route.next_poll);
    assert_eq!(route.settle(), Duration::ZERO, "as it was asked for");
}

#[test]
fn what_is_local_is_looked_at_when_something_happens() {
    let looking = Looking::on(local, None);
    assert_eq!(looking.looker.notes(), Vec::<String>::new());
    let idle = looking.looker.clock.elapsed() + limits::FOLDER_CHECK_EVERY / 2;
    assert!(looking.looker.next_look() > idle, "idle until the next check of the folders");
}

/// Known fault B162.
#[test]
fn what_the_kernel_could_not_tell_is_found_by_looking_at_everything() {
    let mut looking = Looking::on(local, None);
    for n in 0..3 {
        fs::write(looking.path(&format!("{n}.csv")), "1").unwrap();
    }
    looking.looker.dirs.overflow();
    looking.looker.walk_not_before = Duration::ZERO;
    assert_eq!(looking.until_arrived(3), ["0.csv", "1.csv", "2.csv"]);
}

#[test]
fn a_second_task_of_a_pattern_gets_what_is_there() {
    let mut looking = Looking::on(local, None);
    fs::write(looking.path("a.csv"), "1").unwrap();
    looking.until_arrived(1);
    looking.follow(&["a", "b"], None);
    assert_eq!(looking.until_arrived(1), ["a.csv"]);
    looking.follow(&["a"], None);
    assert_eq!(looking.looker.look(), Found::default());
}

#[test]
fn each_name_of_a_file_arrives_and_a_link_again_when_its_target_changed() {
    let mut looking = Looking::on(local, None);
    fs::write(looking.path("target"), "1").unwrap();
    fs::hard_link(looking.path("target"), looking.path("hard.csv")).unwrap();
    symlink("target", looking.path("soft.csv")).unwrap();
    assert_eq!(looking.until_arrived(2), ["hard.csv", "soft.csv"]);
    fs::remove_file(looking.path("target")).unwrap();
    fs::write(looking.path("target"), "222").unwrap();
    // As the slow rescan does.
    looking.looker.rescan = Duration::ZERO;
    assert_eq!(looking.until_arrived(1), ["soft.csv"]);
}
