use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Mutex;

use super::look::look_at;
use super::*;
use crate::model::fixture;
use crate::model::id::{LogSeq, TaskId};
use crate::model::instance::InstanceState;
use crate::model::record::{Batch, LogRecord, Record, Row};
use crate::model::time::Timestamp;
use crate::resource::MemoryStore;

/// Far longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn id(n: u32) -> InstanceId {
    InstanceId::from_text(&format!("i{n}"))
}

/// Outputs of a run that began at the beginning of time.
fn outputs(paths: &[PathBuf]) -> Arc<Outputs> {
    let paths = paths.iter().map(|path| path.display().to_string()).collect();
    Arc::new(Outputs { since: Timestamp::default(), paths, problem: None, found: None })
}

/// A store with the rows of these instances.
fn history(ids: &[InstanceId]) -> Arc<dyn History> {
    let task = TaskId::parse("up.t.v1").unwrap();
    let mut batch = Batch::default();
    for (seq, id) in (1..).zip(ids) {
        let made = Timestamp::from_millis(seq);
        let created_seq = u64::try_from(seq).unwrap();
        let plain = fixture::instance(id.clone(), &task, InstanceState::Succeeded, made);
        let row = Row::Instance(Arc::new(Instance { created_seq, ..plain }));
        batch.rows.insert(row.key(), Some(row));
        let (at, what) = (made, Record::DaemonStopping);
        batch.records.push(LogRecord { seq: LogSeq(created_seq), at, uid: None, what });
    }
    let mut store = MemoryStore::new();
    store.commit(batch).unwrap();
    Arc::new(store)
}

/// A searcher that runs, what it is asked for, and what it tells.
struct World {
    wanted: watch::Sender<Wanted>,
    events: mpsc::Receiver<Event>,
    status: watch::Receiver<Vec<String>>,
    running: tokio::task::JoinHandle<()>,
}

impl World {
    fn new(ids: &[InstanceId], look_at: LookAt, hangs_after: Duration) -> Self {
        let (wanted, receiver) = watch::channel(Wanted::new());
        let (sender, events) = mpsc::channel(16);
        let (mut searcher, status) =
            Searcher::new(receiver, history(ids), Clock::new(), sender, look_at);
        searcher.hangs_after = hangs_after;
        Self { wanted, events, status, running: tokio::spawn(searcher.run()) }
    }

    fn want(&self, id: InstanceId, paths: &[PathBuf]) {
        self.wanted.send_modify(|wanted| {
            wanted.insert(id, outputs(paths));
        });
    }

    async fn next(&mut self) -> Vec<OutputsLook> {
        let event = tokio::time::timeout(PATIENCE, self.events.recv()).await.unwrap();
        let Some(Event::OutputsLooked(looks)) = event else { panic!("{event:?}") };
        looks
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
    }
}

#[test]
fn what_stands_at_a_path_is_told_without_opening_it() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs::write(path("file"), "12345").unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::create_dir(path("bare")).unwrap();
    fs::create_dir(path("full")).unwrap();
    fs::write(path("full/.hidden"), "").unwrap();
    symlink("file", path("link")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    // One that blocks whoever opens it.
    nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let size = |name: &str| match look_at(&path(name)) {
        Sight::File { identity, .. } => Some(identity.size),
        Sight::Absent | Sight::Directory { .. } | Sight::Other | Sight::Unknown(_) => None,
    };
    assert_eq!((size("file"), size("link"), size("empty")), (Some(5), Some(5), Some(0)));
    let is_empty = |name: &str| match look_at(&path(name)) {
        Sight::Directory { is_empty, .. } => Some(is_empty),
        Sight::Absent | Sight::File { .. } | Sight::Other | Sight::Unknown(_) => None,
    };
    assert_eq!((is_empty("bare"), is_empty("full")), (Some(true), Some(false)));
    for absent in ["nowhere", "dangling", "file/below", "nowhere/below"] {
        assert_eq!(look_at(&path(absent)), Sight::Absent, "{absent}");
    }
    assert_eq!(look_at(&path("fifo")), Sight::Other);
    let long = path(&"x".repeat(300));
    assert!(matches!(look_at(&long), Sight::Unknown(why) if why.contains("too long")));
}

#[test]
fn a_file_that_is_moved_in_with_its_old_time_shows_when_it_came() {
    let root = tempfile::tempdir().unwrap();
    let [draft, there] = ["draft", "there"].map(|name| root.path().join(name));
    fs::write(&draft, "1").unwrap();
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::open(&draft).unwrap().set_modified(old).unwrap();
    fs::rename(&draft, &there).unwrap();
    let Sight::File { identity, ctime_ns } = look_at(&there) else { panic!("a file") };
    assert_eq!(identity.mtime_ns, 1_000_000_000_000_000_000);
    assert!(ctime_ns > identity.mtime_ns);
}

#[tokio::test]
async fn outputs_are_told_as_they_come_and_found_ones_with_their_row() {
    let root = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| root.path().join(name));
    let mut world = World::new(&[id(1)], look_at, PATIENCE);
    world.want(id(1), &[a.clone(), b.clone()]);
    let looks = world.next().await;
    assert_eq!(looks.len(), 1);
    assert_eq!((&looks[0].instance_id, &looks[0].stored), (&id(1), &None));
    assert_eq!(looks[0].sights, [Sight::Absent, Sight::Absent]);
    fs::write(&b, "1").unwrap();
    // What was told before is not told again.
    let looks = world.next().await;
    assert!(matches!(looks[0].sights[..], [Sight::Absent, Sight::File { .. }]), "{looks:?}");
    fs::write(&a, "1").unwrap();
    let looks = world.next().await;
    assert!(matches!(looks[0].sights[..], [Sight::File { .. }, Sight::File { .. }]));
    assert_eq!(looks[0].stored.as_ref().unwrap().instance_id, id(1));
}

#[tokio::test]
async fn without_its_row_nothing_is_found() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    fs::write(&path, "1").unwrap();
    let mut world = World::new(&[id(2)], look_at, PATIENCE);
    world.want(id(1), std::slice::from_ref(&path));
    world.want(id(2), &[path]);
    let looks = world.next().await;
    assert_eq!(looks.iter().map(|look| &look.instance_id).collect::<Vec<_>>(), [&id(2)]);
}

/// What [`hung`] waits for, once: until it is closed.
static MOUNT: Mutex<Option<std::sync::mpsc::Receiver<()>>> = Mutex::new(None);

fn hung(path: &Path) -> Sight {
    if path.starts_with("/mnt/hung") {
        let mount = MOUNT.lock().unwrap().take();
        if let Some(mount) = mount {
            mount.recv().unwrap_err();
        }
        return Sight::Other;
    }
    look_at(path)
}

#[tokio::test]
async fn a_mount_that_hangs_is_told_of_and_holds_up_only_what_lies_there() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    let (mend, mount) = std::sync::mpsc::channel();
    *MOUNT.lock().unwrap() = Some(mount);
    let mut world = World::new(&[id(1), id(2)], hung, Duration::from_millis(1));
    world.want(id(1), &["/mnt/hung/a".into()]);
    let looks = world.next().await;
    assert!(
        matches!(&looks[0].sights[..], [Sight::Unknown(why)] if why.contains("does not answer")),
        "{looks:?}"
    );
    let is_told = |notes: &Vec<String>| notes.iter().any(|note| note.contains("/mnt/hung "));
    tokio::time::timeout(PATIENCE, world.status.wait_for(is_told)).await.unwrap().unwrap();
    // Others are looked at meanwhile.
    fs::write(&path, "1").unwrap();
    world.want(id(2), &[path]);
    while !world.next().await.iter().any(|look| look.instance_id == id(2) && look.stored.is_some())
    {
    }
    world.wanted.send_modify(|wanted| {
        wanted.remove(&id(2));
    });
    drop(mend);
    let is_seen = |look: &OutputsLook| look.instance_id == id(1) && look.sights == [Sight::Other];
    while !world.next().await.iter().any(is_seen) {}
    let is_over = |notes: &Vec<String>| !is_told(notes);
    tokio::time::timeout(PATIENCE, world.status.wait_for(is_over)).await.unwrap().unwrap();
}
