use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::access::spec_dir::SpecDir;
use crate::access::spec_yaml::SpecContext;
use crate::model::event::SpecFile;
use crate::model::id::TaskId;
use crate::model::request::RejectionCode;

mod scripted;

/// Far longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A task that runs this.
fn spec(handler: &str) -> String {
    format!("taskId: t.v1\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: '{handler}'\n")
}

fn source(dir: &Path) -> Box<dyn SpecSource> {
    Box::new(SpecDir::new(dir.to_owned(), SpecContext::default()))
}

/// Has news at each reading but the first.
struct Counter(u32);

impl SpecSource for Counter {
    fn scan(&mut self, _: &Cue) -> Definitions {
        self.0 += 1;
        let changed = (self.0 > 1).then(|| spec_file("n", &self.0.to_string()));
        Definitions { changed: changed.into_iter().collect(), ..empty() }
    }

    fn look_again_at(&self) -> Option<Duration> {
        (self.0 == 1).then_some(Duration::ZERO)
    }

    fn doubt(&mut self, path: &str, _: bool, _: Duration) {
        panic!("{path} was not heard of")
    }

    fn change(&mut self, changes: &[FileChange], _: u32) -> Result<(), Halted> {
        panic!("{changes:?} was not asked for")
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
        places: Vec::new(),
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
        let source = source(&dir);
        let (sender, events) = mpsc::channel(4);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let watch = start(dir, source, Clock::new(), sender, &tasks, stop.clone());
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
        let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        for path in &found.removed {
            self.files.remove(&name(path));
        }
        for file in &found.changed {
            let handlers: Vec<&str> = file.specs.iter().map(|spec| spec.handler.as_str()).collect();
            self.files.insert(name(&file.path), handlers.join(" "));
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
        fs::write(root.join("sched.d/a.yaml"), spec("1")).unwrap();
    })
    .await;
    world.told([("a.yaml", "1")]).await;
}

#[tokio::test]
async fn every_way_of_saving_a_file_is_seen() {
    let mut world = World::new(with_dir).await;
    let (a, temporary) = (world.path("a.yaml"), world.path("a.yaml.tmp"));
    fs::write(&a, spec("1")).unwrap();
    world.told([("a.yaml", "1")]).await;
    // Truncated and written in place.
    fs::write(&a, spec("2")).unwrap();
    world.told([("a.yaml", "2")]).await;
    // Written beside it and renamed over it.
    fs::write(&temporary, spec("3")).unwrap();
    fs::rename(&temporary, &a).unwrap();
    world.told([("a.yaml", "3")]).await;
    // Moved to a backup, written anew (vim).
    fs::rename(&a, world.path("a.yaml~")).unwrap();
    fs::write(&a, spec("4")).unwrap();
    world.told([("a.yaml", "4")]).await;
    // Linked: no writer ever closes it.
    fs::hard_link(&a, world.path("b.yaml")).unwrap();
    world.told([("a.yaml", "4"), ("b.yaml", "4")]).await;
    fs::remove_file(&a).unwrap();
    world.told([("b.yaml", "4")]).await;
}

#[tokio::test]
async fn a_file_that_stays_open_is_read_after_a_long_quiet_time() {
    use std::io::Write;
    let mut world = World::new(with_dir).await;
    let mut file = fs::File::create(world.path("a.yaml")).unwrap();
    file.write_all(spec("1").as_bytes()).unwrap();
    world.told([("a.yaml", "1")]).await;
}

#[tokio::test]
async fn a_swap_of_the_data_link_is_seen() {
    let mut world = World::new(|root| {
        with_dir(root);
        for version in ["1", "2"] {
            let dir = root.join(version);
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("a.yaml"), spec(version)).unwrap();
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
            fs::write(root.join(version).join("a.yaml"), spec(version)).unwrap();
        }
        symlink("1", root.join("sched.d")).unwrap();
    })
    .await;
    world.told([("a.yaml", "1")]).await;
    symlink("2", world.root.path().join("new")).unwrap();
    fs::rename(world.root.path().join("new"), world.root.path().join("sched.d")).unwrap();
    world.told([("a.yaml", "2")]).await;
    fs::write(world.path("a.yaml"), spec("3")).unwrap();
    world.told([("a.yaml", "3")]).await;
}

#[tokio::test]
async fn a_missing_directory_is_waited_for_and_may_go_and_come_again() {
    let mut world = World::new(|_| {}).await;
    let dir = world.root.path().join("sched.d");
    for content in ["1", "2"] {
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a.yaml"), spec(content)).unwrap();
        world.told([("a.yaml", content)]).await;
        fs::remove_dir_all(&dir).unwrap();
        while world.next().await.unreadable.is_none() {}
    }
    // Moved away and replaced.
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.yaml"), spec("3")).unwrap();
    world.told([("a.yaml", "3")]).await;
    fs::rename(&dir, world.root.path().join("old")).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.yaml"), spec("4")).unwrap();
    world.told([("a.yaml", "4")]).await;
}

#[tokio::test]
async fn a_deep_directory_made_step_by_step_is_found() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("x/y/sched.d");
    let (sender, mut events) = mpsc::channel(4);
    let tasks = TaskTracker::new();
    start(dir.clone(), source(&dir), Clock::new(), sender, &tasks, CancellationToken::new());
    events.recv().await.unwrap();
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("a.yaml"), spec("1")).unwrap();
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            let event = events.recv().await.unwrap();
            let Event::Definitions(found) = event else { panic!("{event:?}") };
            if found.changed.iter().any(|file| file.specs[0].handler == "1") {
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
    assert_eq!(watch.reload().await, Err(Ended::Stopped));
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

#[tokio::test]
async fn a_written_file_is_in_the_channel_before_the_answer() {
    let mut world = World::new(with_dir).await;
    let text = spec("1").into_bytes();
    let write = FileChange::Write { name: "a.yaml".to_owned(), text };
    world.watch.change(vec![write], 7).await.unwrap().unwrap();
    let Ok(Event::Definitions(found)) = world.events.try_recv() else { panic!("no event") };
    assert_eq!((found.changed.len(), found.changed[0].uid), (1, Some(7)));
    let tasks = vec![TaskId::parse("t.v1").unwrap()];
    let remove = FileChange::Remove { name: "a.yaml".to_owned(), tasks };
    world.watch.change(vec![remove.clone()], 7).await.unwrap().unwrap();
    let Ok(Event::Definitions(found)) = world.events.try_recv() else { panic!("no event") };
    assert_eq!(found.removed.len(), 1);
    let refused = world.watch.change(vec![remove], 7).await.unwrap().unwrap_err();
    assert_eq!(refused.code, RejectionCode::NotFound);
    assert!(world.events.try_recv().is_err());
}

#[tokio::test]
async fn several_files_are_changed_before_one_reading() {
    let mut world = World::new(with_dir).await;
    let write = |name: &str, handler: &str| FileChange::Write {
        name: name.to_owned(),
        text: spec(handler).into_bytes(),
    };
    world.watch.change(vec![write("a.yaml", "1"), write("b.yaml", "2")], 7).await.unwrap().unwrap();
    let Ok(Event::Definitions(found)) = world.events.try_recv() else { panic!("no event") };
    assert_eq!(found.changed.len(), 2);
    // What was changed before a halt is read all the same.
    let remove = FileChange::Remove {
        name: "a.yaml".to_owned(),
        tasks: vec![TaskId::parse("t.v1").unwrap()],
    };
    let changes = vec![remove.clone(), remove];
    assert!(world.watch.change(changes, 7).await.unwrap().is_err());
    let Ok(Event::Definitions(found)) = world.events.try_recv() else { panic!("no event") };
    assert_eq!(found.removed.len(), 1);
}

#[tokio::test]
async fn a_reload_says_that_the_directory_cannot_be_read() {
    let world = World::new(with_dir).await;
    assert_eq!(world.watch.reload().await, Ok(None));
    fs::remove_dir_all(world.root.path().join("sched.d")).unwrap();
    let told = world.watch.reload().await.unwrap().unwrap();
    assert!(told.contains("sched.d"), "{told}");
}

#[tokio::test]
async fn a_change_before_the_first_reading_comes_with_all_that_is_there() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.yaml"), spec("1")).unwrap();
    let (sender, mut events) = mpsc::channel(4);
    let tasks = TaskTracker::new();
    let dir = root.path().to_owned();
    let stop = CancellationToken::new();
    let watch = start(dir, source(root.path()), Clock::new(), sender, &tasks, stop);
    let text = spec("2").into_bytes();
    let write = FileChange::Write { name: "b.yaml".to_owned(), text };
    watch.change(vec![write], 7).await.unwrap().unwrap();
    let Ok(Event::Definitions(found)) = events.try_recv() else { panic!("no event") };
    assert_eq!(found.present.map(|present| present.len()), Some(2));
}

#[tokio::test]
async fn without_events_from_the_kernel_changes_are_seen_by_looking_and_the_status_says_so() {
    let root = tempfile::tempdir().unwrap();
    let (sender, mut events) = mpsc::channel(4);
    let tasks = TaskTracker::new();
    let reads = Reads {
        dir: root.path().to_owned(),
        source: source(root.path()),
        clock: Clock::new(),
        events: sender,
    };
    let stop = CancellationToken::new();
    let watch = start_with(DirWatch::refused_by_the_kernel(), reads, &tasks, stop);
    events.recv().await.unwrap();
    let status = watch.status().unwrap();
    assert!(status.contains("inotify limit: fs.inotify.max_user_instances"), "{status}");
    fs::write(root.path().join("a.yaml"), spec("1")).unwrap();
    // That it is there may be told before what it holds.
    loop {
        let event = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        let Some(Event::Definitions(found)) = event else { panic!("{event:?}") };
        if let Some(file) = found.changed.first() {
            assert_eq!(file.specs[0].handler, "1");
            return;
        }
    }
}

#[tokio::test]
async fn of_many_saves_in_two_parts_no_half_is_ever_told() {
    use std::io::Write;
    let mut world = World::new(with_dir).await;
    let (a, b) = (world.path("a.yaml"), world.path("b.yaml"));
    for round in 0..50 {
        let text = spec(&format!("whole line {round}"));
        let (first, second) = text.as_bytes().split_at(text.len() - 6);
        let mut file = fs::File::create(&a).unwrap();
        file.write_all(first).unwrap();
        // Another file's save starts a reading in the middle of this one: its event is waited for.
        let other = format!("{round}");
        fs::write(&b, spec(&other)).unwrap();
        while world.files.get("b.yaml") != Some(&other) {
            world.next().await;
            assert_ne!(world.files.get("a.yaml").map(String::as_str), Some(""), "a half was told");
        }
        file.write_all(second).unwrap();
        drop(file);
        world.told([("a.yaml", &format!("whole line {round}")), ("b.yaml", &other)]).await;
    }
}
