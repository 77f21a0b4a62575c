use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use crate::model::event::FileArrival;
use crate::model::id::TaskId;

mod follower;

/// Far longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// So long that only a closed or renamed file is taken.
const NEVER: Duration = Duration::from_secs(3600);

const SOON: Duration = Duration::from_millis(60);

/// A directory, its followed patterns, and what the events told.
struct World {
    root: tempfile::TempDir,
    watches: watch::Sender<Vec<FileWatch>>,
    status: watch::Receiver<Vec<String>>,
    events: mpsc::Receiver<Event>,
    tasks: TaskTracker,
    stop: CancellationToken,
    arrived: Vec<FileArrival>,
    gone: BTreeSet<String>,
    /// Times that the first look was told to be over.
    reads: u32,
}

fn task(name: &str) -> TaskId {
    TaskId::parse(&format!("{name}.t.v1")).unwrap()
}

impl World {
    /// Follows one pattern below a new root.
    async fn new(pattern: &str, settle: Duration) -> Self {
        Self::prepared(pattern, settle, None, |_| {}).await
    }

    async fn prepared(
        pattern: &str,
        settle: Duration,
        poll: Option<Duration>,
        prepare: impl FnOnce(&Path),
    ) -> Self {
        Self::knowing(&[], pattern, settle, poll, prepare).await
    }

    /// `taken`: names below the root that an earlier process reported. Returns once the watches are set, which a file that is there at the start tells: it is
    /// looked at a second time after that.
    async fn knowing(
        taken: &[&str],
        pattern: &str,
        settle: Duration,
        poll: Option<Duration>,
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let root = tempfile::tempdir().unwrap();
        prepare(root.path());
        let pattern = format!("{}/{pattern}", root.path().display());
        let taken = taken.iter().map(|name| root.path().join(name).display().to_string());
        let taken = taken.map(|path| (pattern.clone(), path)).collect();
        let marker = root.path().join(".marker");
        fs::write(&marker, "").unwrap();
        let marker_watch = FileWatch {
            task_id: task("marker"),
            pattern: marker.display().to_string(),
            settle: Duration::from_millis(1),
            poll: None,
        };
        let task_id = task("a");
        let followed = vec![FileWatch { task_id, pattern, settle, poll }, marker_watch];
        let (watches, receiver) = watch::channel(Vec::new());
        let (sender, events) = mpsc::channel(16);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let status = start(receiver, taken, Clock::new(), sender, &tasks, stop.clone());
        watches.send_replace(followed);
        let (arrived, gone) = (Vec::new(), BTreeSet::new());
        let mut world =
            Self { root, watches, status, events, tasks, stop, arrived, gone, reads: 0 };
        let marker = marker.display().to_string();
        let is_marker = |arrival: &FileArrival| arrival.path == marker;
        world.until(|world| world.arrived.iter().any(is_marker)).await;
        world.arrived.retain(|arrival| !is_marker(arrival));
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Takes events until `is_enough`.
    async fn until(&mut self, is_enough: impl Fn(&Self) -> bool) {
        while !is_enough(self) {
            let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
            match event {
                Ok(Some(Event::FilesArrived(files))) => self.arrived.extend(files),
                Ok(Some(Event::FilesGone(paths))) => self.gone.extend(paths),
                Ok(Some(Event::FilesRead)) => self.reads += 1,
                other => panic!("{other:?}; arrived {:?}, gone {:?}", self.arrived, self.gone),
            }
        }
    }

    /// Waits for the next arrival of `name` and says what arrived since the last call: names
    /// below the root, with sizes, sorted.
    async fn arrivals_with(&mut self, name: &str) -> Vec<String> {
        let path = self.path(name).display().to_string();
        self.until(|world| world.arrived.iter().any(|a| a.path == path)).await;
        let prefix = format!("{}/", self.root.path().display());
        let mut names: Vec<String> = self
            .arrived
            .drain(..)
            .map(|a| format!("{} {}", a.path.strip_prefix(&prefix).unwrap(), a.identity.size))
            .collect();
        names.sort();
        names
    }

    async fn status_has(&mut self, text: &str) {
        let has = |notes: &Vec<String>| notes.iter().any(|note| note.contains(text));
        tokio::time::timeout(PATIENCE, self.status.wait_for(has)).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_slow_writer_makes_one_arrival_of_the_whole_file() {
    let mut world = World::new("*.csv", NEVER).await;
    let mut slow = fs::File::create(world.path("slow.csv")).unwrap();
    for n in 0..5 {
        slow.write_all(b"row\n").unwrap();
        let other = format!("other{n}.csv");
        world.write(&other, "x");
        assert_eq!(world.arrivals_with(&other).await, [format!("{other} 1")]);
    }
    drop(slow);
    assert_eq!(world.arrivals_with("slow.csv").await, ["slow.csv 20"]);
}

#[tokio::test]
async fn a_file_that_nobody_closes_is_taken_when_it_has_settled() {
    let mut world = World::new("*.csv", SOON).await;
    let mut open = fs::File::create(world.path("a.csv")).unwrap();
    open.write_all(b"abc").unwrap();
    assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 3"]);
}

#[tokio::test]
async fn a_file_renamed_into_place_arrives_under_its_final_name_only() {
    let mut world = World::new("*", NEVER).await;
    for temporary in [".a.csv.Xy12", "a.csv.part", "a.csv.tmp", "a.csv~"] {
        world.write(temporary, "12");
        fs::rename(world.path(temporary), world.path("a.csv")).unwrap();
        assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 2"]);
    }
}

#[tokio::test]
async fn only_regular_files_and_links_to_them_count() {
    let mut world = World::new("*.csv", SOON).await;
    fs::create_dir(world.path("dir.csv")).unwrap();
    symlink("nowhere", world.path("dangling.csv")).unwrap();
    let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
    nix::unistd::mkfifo(&world.path("fifo.csv"), mode).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.path("socket.csv")).unwrap();
    world.write("file", "1234");
    symlink("file", world.path("link.csv")).unwrap();
    assert_eq!(world.arrivals_with("link.csv").await, ["link.csv 4"]);
    // A whole further look at all of them.
    world.watches.send_modify(|watches| watches[0].settle = Duration::from_millis(1));
    world.write("last.csv", "1");
    assert_eq!(world.arrivals_with("last.csv").await, ["last.csv 1"]);
}

#[tokio::test]
async fn a_file_that_goes_before_it_settled_is_not_told() {
    let mut world = World::new("*.csv", NEVER).await;
    for n in 0..100 {
        let name = format!("{n}.csv");
        let open = fs::File::create(world.path(&name)).unwrap();
        fs::remove_file(world.path(&name)).unwrap();
        drop(open);
    }
    world.write("last.csv", "1");
    assert_eq!(world.arrivals_with("last.csv").await, ["last.csv 1"]);
    assert!(world.gone.is_empty());
}

#[tokio::test]
async fn the_same_name_arrives_again_with_new_content_or_after_it_was_gone() {
    let mut world = World::new("*.csv", NEVER).await;
    world.write("a.csv", "1");
    assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 1"]);
    world.write("a.csv", "12");
    assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 2"]);
    let path = world.path("a.csv").display().to_string();
    fs::remove_file(&path).unwrap();
    world.until(|world| world.gone.contains(&path)).await;
    world.write("a.csv", "12");
    assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 2"]);
}

#[tokio::test]
async fn a_file_that_stays_arrives_once() {
    let mut world = World::new("*.csv", SOON).await;
    world.write("a.csv", "1");
    assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 1"]);
    fs::set_permissions(world.path("a.csv"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    drop(fs::OpenOptions::new().append(true).open(world.path("a.csv")).unwrap());
    world.write("b.csv", "1");
    assert_eq!(world.arrivals_with("b.csv").await, ["b.csv 1"]);
}

#[tokio::test]
async fn what_is_there_at_the_start_is_reported_and_again_when_the_pattern_is_new() {
    let mut world = World::prepared("*.csv", SOON, None, |root| {
        fs::write(root.join("a.csv"), "1").unwrap();
    })
    .await;
    assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 1"]);
    let mut other = world.watches.borrow().clone();
    other[0].pattern = world.path("*.txt").display().to_string();
    let watches = world.watches.send_replace(other);
    world.write("b.txt", "1");
    assert_eq!(world.arrivals_with("b.txt").await, ["b.txt 1"]);
    world.watches.send_replace(watches);
    assert_eq!(world.arrivals_with("a.csv").await, ["a.csv 1"]);
}

#[tokio::test]
async fn a_folder_that_comes_later_goes_and_comes_again_is_followed() {
    let mut world = World::new("x/y/*.csv", NEVER).await;
    world.status_has("waiting for folder").await;
    for content in ["1", "22"] {
        fs::create_dir_all(world.path("x/y")).unwrap();
        // The folder may be found only after the file was closed in it.
        world.watches.send_modify(|watches| watches[0].settle = SOON);
        world.write("x/y/a.csv", content);
        let expected = format!("x/y/a.csv {}", content.len());
        assert_eq!(world.arrivals_with("x/y/a.csv").await, [expected]);
        fs::remove_dir_all(world.path("x")).unwrap();
        let path = world.path("x/y/a.csv").display().to_string();
        world.until(|world| world.gone.contains(&path)).await;
        world.gone.clear();
        world.status_has("waiting for folder").await;
    }
}

#[tokio::test]
async fn new_folders_on_the_way_are_followed() {
    let mut world = World::new("in/*/**/*.csv", SOON).await;
    fs::create_dir_all(world.path("in/a/b/c")).unwrap();
    world.write("in/a/b/c/1.csv", "1");
    assert_eq!(world.arrivals_with("in/a/b/c/1.csv").await, ["in/a/b/c/1.csv 1"]);
    fs::create_dir(world.path("in/a/d")).unwrap();
    world.write("in/a/d/2.csv", "1");
    assert_eq!(world.arrivals_with("in/a/d/2.csv").await, ["in/a/d/2.csv 1"]);
    fs::rename(world.path("in/a"), world.path("in/z")).unwrap();
    let moved = world.arrivals_with("in/z/d/2.csv").await;
    assert!(moved.iter().all(|name| name.starts_with("in/z/")), "{moved:?}");
    world.write("in/z/b/3.csv", "1");
    assert!(world.arrivals_with("in/z/b/3.csv").await.contains(&"in/z/b/3.csv 1".to_owned()));
}

#[tokio::test]
async fn a_polled_pattern_sees_what_gives_no_event() {
    let poll = Some(Duration::from_millis(20));
    let mut world = World::prepared("in/*.csv", SOON, poll, |root| {
        fs::create_dir(root.join("in")).unwrap();
        fs::create_dir(root.join("elsewhere")).unwrap();
        fs::write(root.join("elsewhere/file"), "1").unwrap();
        symlink("../elsewhere/file", root.join("in/a.csv")).unwrap();
    })
    .await;
    assert_eq!(world.arrivals_with("in/a.csv").await, ["in/a.csv 1"]);
    world.write("elsewhere/file", "22");
    assert_eq!(world.arrivals_with("in/a.csv").await, ["in/a.csv 2"]);
}

#[tokio::test]
async fn many_files_at_once_arrive_each_once() {
    const FILES: usize = 20_000;
    let mut world = World::new("*.csv", SOON).await;
    for n in 0..FILES {
        fs::write(world.path(&format!("{n}.csv")), "1").unwrap();
    }
    world.until(|world| world.arrived.len() >= FILES).await;
    world.write("last.csv", "1");
    let last = world.path("last.csv").display().to_string();
    world.until(|world| world.arrived.iter().any(|a| a.path == last)).await;
    let paths: BTreeSet<&str> = world.arrived.iter().map(|a| a.path.as_str()).collect();
    assert_eq!((world.arrived.len(), paths.len()), (FILES + 1, FILES + 1));
}

#[tokio::test]
async fn it_ends_when_told_to() {
    let world = World::new("*.csv", SOON).await;
    world.stop.cancel();
    world.tasks.close();
    tokio::time::timeout(PATIENCE, world.tasks.wait()).await.unwrap();
}

/// Known fault B165.
#[tokio::test]
async fn a_folder_far_up_that_is_made_again_or_replaced_is_followed() {
    let mut world = World::prepared("x/y/z/*.csv", SOON, None, |root| {
        fs::create_dir_all(root.join("x/y/z")).unwrap();
    })
    .await;
    world.write("x/y/z/1.csv", "1");
    assert_eq!(world.arrivals_with("x/y/z/1.csv").await, ["x/y/z/1.csv 1"]);
    fs::remove_dir_all(world.path("x")).unwrap();
    fs::create_dir_all(world.path("x/y/z")).unwrap();
    world.write("x/y/z/2.csv", "1");
    assert_eq!(world.arrivals_with("x/y/z/2.csv").await, ["x/y/z/2.csv 1"]);
    // Another tree takes its place: as a whole, then under a name that was moved away.
    fs::create_dir_all(world.path("new/y/z")).unwrap();
    world.write("new/y/z/3.csv", "1");
    fs::rename(world.path("x"), world.path("old")).unwrap();
    fs::rename(world.path("new"), world.path("x")).unwrap();
    assert_eq!(world.arrivals_with("x/y/z/3.csv").await, ["x/y/z/3.csv 1"]);
    world.write("x/y/z/4.csv", "1");
    assert_eq!(world.arrivals_with("x/y/z/4.csv").await, ["x/y/z/4.csv 1"]);
    // A folder on the way that is a link now, as with a release that is switched.
    fs::create_dir_all(world.path("release/z")).unwrap();
    fs::rename(world.path("x/y"), world.path("x/before")).unwrap();
    symlink("../release", world.path("x/y")).unwrap();
    world.write("release/z/5.csv", "1");
    assert_eq!(world.arrivals_with("x/y/z/5.csv").await, ["x/y/z/5.csv 1"]);
}

#[tokio::test]
async fn what_went_while_nobody_looked_is_told_before_the_first_look_is_over() {
    let taken = ["went.csv", "stayed.csv"];
    let mut world = World::knowing(&taken, "*.csv", SOON, None, |root| {
        fs::write(root.join("stayed.csv"), "1").unwrap();
    })
    .await;
    world.until(|world| world.reads == 1).await;
    let went = world.path("went.csv").display().to_string();
    assert_eq!(world.gone, BTreeSet::from([went]));
    assert_eq!(world.arrivals_with("stayed.csv").await, ["stayed.csv 1"]);
    world.write("new.csv", "1");
    world.arrivals_with("new.csv").await;
    assert_eq!(world.reads, 1);
}
