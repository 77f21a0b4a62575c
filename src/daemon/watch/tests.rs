use std::fs;

use super::*;

/// Far longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

impl DirWatch {
    /// What the kernel does when its queue of events is full: what was heard is lost.
    pub(in crate::daemon) fn overflow(&self) {
        drop(std::mem::take(&mut self.marks.lock().hints));
        let overflow = notify::Event::new(EventKind::Other);
        self.marks.hear(Ok(overflow.set_flag(notify::event::Flag::Rescan)));
    }
}

/// Takes marks until `is_enough` holds for all that were taken.
async fn hints_until(reader: &HintReader, is_enough: impl Fn(&Hints) -> bool) -> Hints {
    let mut all = Hints::default();
    let gathered = tokio::time::timeout(PATIENCE, async {
        while !is_enough(&all) {
            reader.changed().await;
            let more = reader.take();
            all.everything |= more.everything;
            all.dirs.extend(more.dirs);
            all.paths.extend(more.paths);
        }
    });
    assert!(gathered.await.is_ok(), "heard only {all:?}");
    all
}

fn set_of<const N: usize>(dirs: [&Path; N]) -> BTreeSet<PathBuf> {
    dirs.into_iter().map(Path::to_owned).collect()
}

#[tokio::test]
async fn a_written_file_is_told_as_closed_and_a_renamed_one_too() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, reader) = DirWatch::new();
    assert!(watch.set(&set_of([dir.path()])));
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    fs::write(&a, "x").unwrap();
    hints_until(&reader, |hints| hints.paths.get(&a) == Some(&Writer::Done)).await;
    fs::rename(&a, &b).unwrap();
    let hints = hints_until(&reader, |hints| hints.paths.get(&b) == Some(&Writer::Done)).await;
    assert_eq!(hints.paths.get(&a), Some(&Writer::Unknown));
    assert_eq!(watch.status(), None);
}

#[tokio::test]
async fn a_file_that_is_still_open_is_told_as_not_closed() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, reader) = DirWatch::new();
    watch.set(&set_of([dir.path()]));
    let path = dir.path().join("a");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(b"x").unwrap();
    let hints = hints_until(&reader, |hints| hints.paths.contains_key(&path)).await;
    assert_eq!(hints.paths.get(&path), Some(&Writer::AtIt));
}

#[tokio::test]
async fn a_directory_made_again_is_told_and_watched_again() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d");
    fs::create_dir(&dir).unwrap();
    let (mut watch, reader) = DirWatch::new();
    watch.set(&set_of([&dir]));
    fs::remove_dir(&dir).unwrap();
    hints_until(&reader, |hints| hints.dirs.contains(&dir)).await;
    fs::create_dir(&dir).unwrap();
    assert!(watch.set(&set_of([&dir])), "it is another directory");
    fs::write(dir.join("a"), "x").unwrap();
    hints_until(&reader, |hints| hints.paths.contains_key(&dir.join("a"))).await;
}

#[tokio::test]
async fn a_directory_moved_away_and_replaced_is_watched_under_its_name() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d");
    fs::create_dir(&dir).unwrap();
    let (mut watch, reader) = DirWatch::new();
    watch.set(&set_of([&dir]));
    fs::rename(&dir, root.path().join("old")).unwrap();
    fs::create_dir(&dir).unwrap();
    hints_until(&reader, |hints| hints.dirs.contains(&dir)).await;
    assert!(watch.set(&set_of([&dir])));
    fs::write(root.path().join("old/elsewhere"), "x").unwrap();
    fs::write(dir.join("a"), "x").unwrap();
    let hints = hints_until(&reader, |hints| hints.paths.contains_key(&dir.join("a"))).await;
    assert!(!hints.paths.contains_key(&dir.join("elsewhere")), "{hints:?}");
}

#[tokio::test]
async fn a_directory_moved_away_and_back_is_watched_again() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d");
    fs::create_dir(&dir).unwrap();
    let (mut watch, reader) = DirWatch::new();
    watch.set(&set_of([root.path(), &dir]));
    fs::rename(&dir, root.path().join("old")).unwrap();
    fs::rename(root.path().join("old"), &dir).unwrap();
    hints_until(&reader, |hints| hints.dirs.contains(&dir)).await;
    assert!(watch.set(&set_of([root.path(), &dir])));
    fs::write(dir.join("a"), "x").unwrap();
    hints_until(&reader, |hints| hints.paths.contains_key(&dir.join("a"))).await;
}

#[tokio::test]
async fn one_directory_under_two_names_is_told_under_both() {
    let root = tempfile::tempdir().unwrap();
    let (dir, link) = (root.path().join("d"), root.path().join("l"));
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    let (mut watch, reader) = DirWatch::new();
    watch.set(&set_of([&dir, &link]));
    fs::write(dir.join("a"), "x").unwrap();
    hints_until(&reader, |hints| {
        hints.paths.contains_key(&dir.join("a")) && hints.paths.contains_key(&link.join("a"))
    })
    .await;
}

#[tokio::test]
async fn what_is_no_longer_wanted_is_no_longer_told() {
    let root = tempfile::tempdir().unwrap();
    let (one, two) = (root.path().join("1"), root.path().join("2"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let (mut watch, reader) = DirWatch::new();
    watch.set(&set_of([&one, &two]));
    assert!(!watch.set(&set_of([&two])), "nothing is new");
    fs::write(one.join("a"), "x").unwrap();
    fs::write(two.join("a"), "x").unwrap();
    let hints = hints_until(&reader, |hints| hints.paths.contains_key(&two.join("a"))).await;
    assert!(!hints.paths.contains_key(&one.join("a")), "{hints:?}");
}

#[test]
fn reading_is_not_a_change() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "x").unwrap();
    let marks = Marks::default();
    marks.lock().names.insert(dir.path().to_owned(), vec![dir.path().to_owned()]);
    for kind in [AccessKind::Open(AccessMode::Any), AccessKind::Close(AccessMode::Read)] {
        let event = notify::Event::new(EventKind::Access(kind)).add_path(dir.path().join("a"));
        marks.hear(Ok(event));
    }
    assert!(marks.lock().hints.is_empty());
}

#[test]
fn lost_events_and_errors_mark_everything() {
    let overflow = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
    for event in [Ok(overflow), Err(notify::Error::generic("broken"))] {
        let marks = Marks::default();
        marks.hear(event);
        assert!(marks.lock().hints.everything);
    }
}

#[test]
fn more_changes_than_can_be_listed_mark_the_directory() {
    let mut state = State::default();
    let dir = PathBuf::from("/d");
    state.names.insert(dir.clone(), vec![dir.clone()]);
    for n in 0..=PATHS_MAX {
        state.mark(&dir.join(n.to_string()), Writer::Done, false);
    }
    assert_eq!(state.hints.paths.len(), PATHS_MAX);
    assert_eq!(state.hints.dirs, BTreeSet::from([dir]));
}

#[test]
fn the_way_is_the_directory_or_its_nearest_existing_parent() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    assert_eq!(on_the_way(&root.join("a/b")), set_of([&root.join("a/b")]));
    assert_eq!(on_the_way(&root.join("a/x/y")), set_of([&root.join("a")]));
    std::os::unix::fs::symlink(root.join("a"), root.join("l")).unwrap();
    assert_eq!(on_the_way(&root.join("l/b")), set_of([&root, &root.join("l/b")]));
}

#[test]
fn all_that_happened_before_is_heard_when_it_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, reader) = DirWatch::new();
    watch.set(&set_of([dir.path()]));
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    fs::write(&a, "x").unwrap();
    for _ in 0..500 {
        assert_eq!(watch.heard_of(std::slice::from_ref(&b), PATIENCE), []);
        drop(reader.take());
        // The beginning of a save: it is opened, and cut to nothing.
        let file = fs::File::create(&a).unwrap();
        let heard = watch.heard_of(&[a.clone(), b.clone()], PATIENCE);
        assert_eq!(heard, [(a.clone(), Writer::AtIt)]);
        fs::write(&a, "x").unwrap();
        drop(file);
    }
}

#[test]
fn where_nothing_is_heard_everything_may_have_happened() {
    let (mut watch, _reader) = DirWatch::refused_by_the_kernel();
    let file = PathBuf::from("/nowhere/a");
    let heard = watch.heard_of(std::slice::from_ref(&file), PATIENCE);
    assert_eq!(heard, [(file, Writer::Unknown)]);
}

#[test]
fn a_kernel_that_gives_no_watcher_is_told_by_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watch, _reader) = DirWatch::refused_by_the_kernel();
    assert!(!watch.set(&set_of([dir.path()])));
    assert!(watch.status().unwrap().contains("fs.inotify.max_user_instances"));
}
