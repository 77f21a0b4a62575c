use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::model::event::SpecFile;

/// Far longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads every `*.yaml`: the content is the hash.
struct Files {
    dir: PathBuf,
    known: BTreeMap<String, String>,
}

impl SpecSource for Files {
    fn scan(&mut self) -> Definitions {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return Definitions { unreadable: Some("no directory".to_owned()), ..empty() };
        };
        let mut now = BTreeMap::new();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_some_and(|extension| extension == "yaml")
                && let Ok(content) = fs::read_to_string(&path)
            {
                now.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), content);
            }
        }
        let before = std::mem::replace(&mut self.known, now.clone());
        let changed = now.iter().filter(|(name, content)| before.get(*name) != Some(*content));
        Definitions {
            changed: changed.map(|(name, content)| spec_file(name, content)).collect(),
            removed: before.into_keys().filter(|name| !now.contains_key(name)).collect(),
            ..empty()
        }
    }

    fn needs_rescan(&self) -> bool {
        false
    }
}

/// Has news at each reading but the first.
struct Counter(u32);

impl SpecSource for Counter {
    fn scan(&mut self) -> Definitions {
        self.0 += 1;
        let changed = (self.0 > 1).then(|| spec_file("n", &self.0.to_string()));
        Definitions { changed: changed.into_iter().collect(), ..empty() }
    }

    fn needs_rescan(&self) -> bool {
        self.0 == 1
    }
}

fn empty() -> Definitions {
    Definitions::default()
}

fn spec_file(path: &str, hash: &str) -> SpecFile {
    SpecFile {
        path: path.to_owned(),
        hash: hash.to_owned(),
        uid: None,
        specs: Vec::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A watch over a directory of its own, and what its events told so far.
struct World {
    root: tempfile::TempDir,
    watch: SpecWatch,
    events: mpsc::Receiver<Event>,
    tasks: TaskTracker,
    stop: CancellationToken,
    files: BTreeMap<String, String>,
}

impl World {
    /// Watches `sched.d` below a new root, made by `prepare`; the first event has been taken.
    async fn new(prepare: impl FnOnce(&Path)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sched.d");
        prepare(root.path());
        let source = Files { dir: dir.clone(), known: BTreeMap::new() };
        let (sender, events) = mpsc::channel(4);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let watch = start(dir, Box::new(source), Clock::new(), sender, &tasks, stop.clone());
        let mut world = Self { root, watch, events, tasks, stop, files: BTreeMap::new() };
        world.next().await;
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("sched.d").join(name)
    }

    async fn next(&mut self) -> Definitions {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await;
        let Ok(Some(Event::Definitions(found))) = event else { panic!("no reading: {event:?}") };
        for name in &found.removed {
            self.files.remove(name);
        }
        for file in &found.changed {
            self.files.insert(file.path.clone(), file.hash.clone());
        }
        found
    }

    /// Waits until the events told that the directory holds exactly this.
    async fn told<const N: usize>(&mut self, files: [(&str, &str); N]) {
        let expected = BTreeMap::from(files.map(|(n, c)| (n.to_owned(), c.to_owned())));
        while self.files != expected {
            self.next().await;
        }
    }
}

fn with_dir(root: &Path) {
    fs::create_dir(root.join("sched.d")).unwrap();
}

#[tokio::test]
async fn the_first_reading_is_sent_with_all_that_is_there() {
    let mut world = World::new(|root| {
        with_dir(root);
        fs::write(root.join("sched.d/a.yaml"), "1").unwrap();
    })
    .await;
    world.told([("a.yaml", "1")]).await;
}

#[tokio::test]
async fn every_way_of_saving_a_file_is_seen() {
    let mut world = World::new(with_dir).await;
    let (a, temporary) = (world.path("a.yaml"), world.path("a.yaml.tmp"));
    fs::write(&a, "1").unwrap();
    world.told([("a.yaml", "1")]).await;
    // Truncated and written in place.
    fs::write(&a, "2").unwrap();
    world.told([("a.yaml", "2")]).await;
    // Written beside it and renamed over it.
    fs::write(&temporary, "3").unwrap();
    fs::rename(&temporary, &a).unwrap();
    world.told([("a.yaml", "3")]).await;
    // Moved to a backup, written anew (vim).
    fs::rename(&a, world.path("a.yaml~")).unwrap();
    fs::write(&a, "4").unwrap();
    world.told([("a.yaml", "4")]).await;
    // Linked: no writer ever closes it.
    fs::hard_link(&a, world.path("b.yaml")).unwrap();
    world.told([("a.yaml", "4"), ("b.yaml", "4")]).await;
    fs::remove_file(&a).unwrap();
    world.told([("b.yaml", "4")]).await;
}

#[tokio::test]
async fn a_file_that_stays_open_is_read_after_a_quiet_time() {
    use std::io::Write;
    let mut world = World::new(with_dir).await;
    let mut file = fs::File::create(world.path("a.yaml")).unwrap();
    file.write_all(b"1").unwrap();
    world.told([("a.yaml", "1")]).await;
}

#[tokio::test]
async fn a_swap_of_the_data_link_is_seen() {
    let mut world = World::new(|root| {
        with_dir(root);
        for version in ["1", "2"] {
            let dir = root.join(version);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("a.yaml"), version).unwrap();
        }
        symlink(root.join("1"), root.join("sched.d/..data")).unwrap();
        symlink("..data/a.yaml", root.join("sched.d/a.yaml")).unwrap();
    })
    .await;
    world.told([("a.yaml", "1")]).await;
    symlink(world.root.path().join("2"), world.path("..data_tmp")).unwrap();
    fs::rename(world.path("..data_tmp"), world.path("..data")).unwrap();
    world.told([("a.yaml", "2")]).await;
}

#[tokio::test]
async fn a_directory_that_is_a_link_may_be_swapped() {
    let mut world = World::new(|root| {
        for version in ["1", "2"] {
            fs::create_dir(root.join(version)).unwrap();
            fs::write(root.join(version).join("a.yaml"), version).unwrap();
        }
        symlink("1", root.join("sched.d")).unwrap();
    })
    .await;
    world.told([("a.yaml", "1")]).await;
    symlink("2", world.root.path().join("new")).unwrap();
    fs::rename(world.root.path().join("new"), world.root.path().join("sched.d")).unwrap();
    world.told([("a.yaml", "2")]).await;
    fs::write(world.path("a.yaml"), "3").unwrap();
    world.told([("a.yaml", "3")]).await;
}

#[tokio::test]
async fn a_missing_directory_is_waited_for_and_may_go_and_come_again() {
    let mut world = World::new(|_| {}).await;
    let dir = world.root.path().join("sched.d");
    for content in ["1", "2"] {
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a.yaml"), content).unwrap();
        world.told([("a.yaml", content)]).await;
        fs::remove_dir_all(&dir).unwrap();
        while world.next().await.unreadable.is_none() {}
    }
    // Moved away and replaced.
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.yaml"), "3").unwrap();
    world.told([("a.yaml", "3")]).await;
    fs::rename(&dir, world.root.path().join("old")).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.yaml"), "4").unwrap();
    world.told([("a.yaml", "4")]).await;
}

#[tokio::test]
async fn a_deep_directory_made_step_by_step_is_found() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("x/y/sched.d");
    let source = Files { dir: dir.clone(), known: BTreeMap::new() };
    let (sender, mut events) = mpsc::channel(4);
    let tasks = TaskTracker::new();
    start(dir.clone(), Box::new(source), Clock::new(), sender, &tasks, CancellationToken::new());
    events.recv().await.unwrap();
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("a.yaml"), "1").unwrap();
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            let event = events.recv().await.unwrap();
            let Event::Definitions(found) = event else { panic!("{event:?}") };
            if found.changed.iter().any(|file| file.hash == "1") {
                return;
            }
        }
    });
    found.await.unwrap();
}

#[tokio::test]
async fn a_reload_reads_at_once_and_answers_after_the_event_is_sent() {
    let root = tempfile::tempdir().unwrap();
    let (sender, mut events) = mpsc::channel(16);
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let dir = root.path().to_owned();
    let watch = start(dir, Box::new(Counter(1)), Clock::new(), sender, &tasks, stop.clone());
    events.recv().await.unwrap();
    for _ in 0..3 {
        watch.reload().await.unwrap();
        assert!(matches!(events.try_recv(), Ok(Event::Definitions(_))));
    }
    stop.cancel();
    tasks.close();
    tokio::time::timeout(PATIENCE, tasks.wait()).await.unwrap();
    assert_eq!(watch.reload().await, Err(Stopped));
}

#[tokio::test]
async fn what_may_still_be_changing_is_read_again_without_an_event() {
    let root = tempfile::tempdir().unwrap();
    let (sender, mut events) = mpsc::channel(16);
    let tasks = TaskTracker::new();
    let dir = root.path().to_owned();
    start(dir, Box::new(Counter(0)), Clock::new(), sender, &tasks, CancellationToken::new());
    for expected in [0, 1] {
        let event = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        let Some(Event::Definitions(found)) = event else { panic!("{event:?}") };
        assert_eq!(found.changed.len(), expected);
    }
}

#[tokio::test]
async fn a_reading_without_news_is_not_sent() {
    let mut world = World::new(with_dir).await;
    world.watch.reload().await.unwrap();
    assert!(world.events.try_recv().is_err());
    world.stop.cancel();
    world.tasks.close();
    tokio::time::timeout(PATIENCE, world.tasks.wait()).await.unwrap();
}

fn plan() -> Plan {
    Plan {
        due: Duration::MAX,
        pending_since: None,
        rescan: Duration::from_secs(30),
        not_before: Duration::ZERO,
    }
}

#[test]
fn an_incomplete_change_is_read_when_quiet_but_does_not_wait_for_ever() {
    let mut plan = plan();
    let second = Duration::from_secs(1);
    plan.hinted(second, false);
    assert_eq!(plan.next(), second + limits::SPEC_SETTLE);
    for n in 1..=20 {
        plan.hinted(second + Duration::from_millis(40) * n, false);
    }
    assert_eq!(plan.next(), second + limits::SPEC_SETTLE * SETTLES_MAX);
}

#[test]
fn a_complete_change_is_read_at_once_but_readings_take_half_of_the_time_at_most() {
    let mut plan = plan();
    plan.hinted(Duration::from_secs(1), true);
    assert_eq!(plan.next(), Duration::from_secs(1));
    plan.done(Duration::from_secs(1), Duration::from_secs(3), false, false);
    plan.hinted(Duration::from_secs(3), true);
    assert_eq!(plan.next(), Duration::from_secs(5));
}
