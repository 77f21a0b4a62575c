//! How the core is told, whatever the file system does.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use super::super::file_system::FileSystem;
use super::super::*;
use super::{PATIENCE, task};
use crate::model::event::{FileArrival, FileIdentity};

/// Known fault B162: others are on time.
#[tokio::test]
async fn the_core_is_not_flooded_with_files() {
    let clock = Clock::new();
    let (looker, hints) = Looker::new(clock.clone(), file_system, Vec::new());
    let (_watches, watches) = watch::channel(Vec::new());
    let (status, _status) = watch::channel(Vec::new());
    let (events, mut receiver) = mpsc::channel(64);
    let looker = Some(looker);
    let mut follower = Follower {
        looker,
        hints,
        clock,
        watches,
        events,
        status,
        within: PATIENCE,
        has_read: false,
    };
    let identity = FileIdentity { device: 1, inode: 1, size: 1, mtime_ns: 1 };
    let file = |n| FileArrival { pattern: "/in/*".to_owned(), path: format!("/in/{n}"), identity };
    let found = Found { arrived: (0..2_000).map(file).collect(), ..Found::default() };
    let mut sending = std::pin::pin!(follower.send(found, false));
    let mut told = 0;
    loop {
        let is_over = tokio::select! {
            biased;
            sent = &mut sending => sent.is_ok(),
            () = std::future::ready(()) => false,
        };
        assert!(receiver.len() <= 4, "{} events wait", receiver.len());
        while let Ok(Event::FilesArrived(files)) = receiver.try_recv() {
            told += files.len();
        }
        if is_over {
            break;
        }
    }
    assert_eq!(told, 2_000);
}

/// What [`hung`] waits for, once: until it is closed.
static MOUNT: Mutex<Option<std::sync::mpsc::Receiver<()>>> = Mutex::new(None);

fn hung(_: &Path) -> FileSystem {
    let mount = MOUNT.lock().unwrap().take();
    if let Some(mount) = mount {
        mount.recv().unwrap_err();
    }
    FileSystem::Local
}

#[tokio::test]
async fn a_mount_that_hangs_is_told_of_and_only_what_it_holds_waits_for_it() {
    let root = tempfile::tempdir().unwrap();
    let pattern = format!("{}/*.csv", root.path().display());
    let [there, went] = ["there", "went"].map(|name| pattern.replace('*', name));
    fs::write(&there, "1").unwrap();
    let (mend, mount) = std::sync::mpsc::channel();
    *MOUNT.lock().unwrap() = Some(mount);
    let clock = Clock::new();
    let (looker, hints) = Looker::new(clock.clone(), hung, vec![(pattern.clone(), went.clone())]);
    let settle = Duration::from_millis(1);
    let watches = vec![FileWatch { task_id: task("a"), pattern, settle, poll: None }];
    let (_watches, mut watches) = watch::channel(watches);
    watches.mark_changed();
    let (status, mut told) = watch::channel(Vec::new());
    let (events, mut receiver) = mpsc::channel(16);
    let (looker, within) = (Some(looker), Duration::ZERO);
    let follower =
        Follower { looker, hints, clock, watches, events, status, within, has_read: false };
    let following = tokio::spawn(follower.run());
    let mut next = async || tokio::time::timeout(PATIENCE, receiver.recv()).await.unwrap().unwrap();
    assert_eq!(next().await, Event::FilesRead);
    assert_eq!(*told.borrow_and_update(), [LATE]);
    drop(mend);
    assert_eq!(next().await, Event::FilesGone(vec![went]));
    let Event::FilesArrived(files) = next().await else { panic!("told twice to be over") };
    assert_eq!(files[0].path, there);
    let is_over = told.wait_for(Vec::is_empty);
    tokio::time::timeout(PATIENCE, is_over).await.unwrap().unwrap();
    following.abort();
}
