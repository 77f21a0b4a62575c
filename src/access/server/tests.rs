//! The door over a real socket.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use crate::access::fakes::{FakeCore, House, note};

use super::*;

fn socket(path: &Path) -> Socket {
    Socket { path: path.to_owned(), mode: 0o660, group: None }
}

/// A path of so many bytes in a directory that exists.
fn path_of(directory: &Path, bytes: usize) -> PathBuf {
    let fill = bytes - directory.as_os_str().len() - 1;
    directory.join("s".repeat(fill))
}

fn open(house: &House, path: &Path) -> JoinHandle<Result<(), DoorError>> {
    let app = house.app();
    let args = DoorArgs {
        ask: Arc::clone(&app.ask),
        history: Arc::clone(&app.history),
        feed: app.feed.clone(),
        log_dir: app.log_dir.clone(),
        spec_dir: app.spec_dir.clone(),
        spec_context: SpecContext::clone(&app.spec_context),
        now: Arc::clone(&app.now),
        tracker: TaskTracker::new(),
        stop: app.stop.clone(),
    };
    let door = Door::bind(&socket(path)).unwrap();
    tokio::spawn(door.serve(args))
}

async fn ask(path: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

const VERSION: &str = "GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[test]
fn the_file_has_its_mode_and_missing_directories_are_made() {
    let directory = tempfile::tempdir().unwrap();
    for mode in [0o600, 0o660, 0o666] {
        let path = directory.path().join("run/schedd/s.sock");
        let door = Door::bind(&Socket { mode, ..socket(&path) }).unwrap();
        let meta = std::fs::symlink_metadata(&path).unwrap();
        assert!(meta.file_type().is_socket());
        assert_eq!(meta.permissions().mode() & 0o777, mode);
        let parent = std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(parent & 0o022, 0, "others may write the directory");
        drop(door);
        assert!(!path.exists());
    }
}

#[test]
fn the_file_belongs_to_the_group_that_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    let own = nix::unistd::Group::from_gid(nix::unistd::getegid()).unwrap().unwrap();
    let _door = Door::bind(&Socket { group: Some(own.name), ..socket(&path) }).unwrap();
    assert_eq!(std::fs::symlink_metadata(&path).unwrap().gid(), own.gid.as_raw());
    let wrong = Socket { group: Some("no-such-group".to_owned()), ..socket(&path) };
    assert!(matches!(Door::bind(&wrong), Err(DoorError::NoGroup { .. })));
}

#[test]
fn a_path_of_107_bytes_is_taken_and_one_of_108_refused_with_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let longest = path_of(directory.path(), limits::SOCKET_PATH_BYTES_MAX);
    assert!(Door::bind(&socket(&longest)).is_ok());
    let path = path_of(directory.path(), limits::SOCKET_PATH_BYTES_MAX + 1);
    let text = Door::bind(&socket(&path)).unwrap_err().to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains("108 bytes") && text.contains("at most 107"), "{text}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    // Closing a listener leaves its file behind, as a kill does.
    drop(StdUnixListener::bind(&path).unwrap());
    let door = Door::bind(&socket(&path)).unwrap();
    let ours = std::fs::symlink_metadata(&path).unwrap().ino();
    assert!(matches!(Door::bind(&socket(&path)), Err(DoorError::Live { .. })));
    assert_eq!(std::fs::symlink_metadata(&path).unwrap().ino(), ours);
    drop(door);
}

#[test]
fn what_is_no_socket_is_never_removed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let link = directory.path().join("link");
    symlink(&file, &link).unwrap();
    for path in [&file, &link] {
        let error = Door::bind(&socket(path)).unwrap_err();
        assert!(matches!(error, DoorError::NotASocket { .. }), "{error}");
    }
    assert!(Door::bind(&socket(directory.path())).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(link.is_symlink());
}

#[test]
fn a_file_that_another_put_in_our_place_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    let door = Door::bind(&socket(&path)).unwrap();
    std::fs::write(directory.path().join("new"), "theirs").unwrap();
    std::fs::rename(directory.path().join("new"), &path).unwrap();
    drop(door);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
}

#[test]
fn of_daemons_that_start_at_once_exactly_one_gets_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    drop(StdUnixListener::bind(&path).unwrap());
    let doors: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..8).map(|_| scope.spawn(|| Door::bind(&socket(&path)))).collect();
        starting.into_iter().map(|s| s.join().unwrap()).collect()
    });
    assert_eq!(doors.iter().filter(|door| door.is_ok()).count(), 1);
    assert!(doors.iter().all(|door| matches!(door, Ok(_) | Err(DoorError::Live { .. }))));
}

#[tokio::test]
async fn half_a_request_holds_up_nobody() {
    let house = House::new(FakeCore::obedient());
    let path = house.log_dir.path().join("s.sock");
    let serving = open(&house, &path);
    let mut half = Vec::new();
    for part in ["", "POST /tasks/a.v1/pause HTTP/1.1\r\nHost: x\r\nContent-Le"] {
        for _ in 0..100 {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(part.as_bytes()).await.unwrap();
            half.push(stream);
        }
    }
    let body = "POST /tasks/a.v1/pause HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{\"";
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let answer = ask(&path, VERSION).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with(concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}")));
    house.stop.cancel();
    serving.await.unwrap().unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    let house = House::new(FakeCore::obedient());
    let path = house.log_dir.path().join("s.sock");
    let serving = open(&house, &path);
    let answer = tokio::time::timeout(HEAD_WITHIN * 3, ask(&path, "GET /version HT")).await;
    assert!(answer.is_ok(), "still open");
    house.stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn connections_beyond_the_bound_get_503_until_others_leave() {
    let house = House::new(FakeCore::obedient());
    let path = house.log_dir.path().join("s.sock");
    let serving = open(&house, &path);
    let mut held = Vec::new();
    for _ in 0..limits::CONNECTIONS_MAX {
        held.push(UnixStream::connect(&path).await.unwrap());
    }
    // Connections are taken in the order in which they came.
    let mut late = UnixStream::connect(&path).await.unwrap();
    let mut answer = String::new();
    late.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\"code\":\"UNAVAILABLE\""), "{answer}");
    drop(held);
    let served = async {
        while !ask(&path, VERSION).await.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), served).await.is_ok());
    house.stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_follower_that_never_reads_is_no_trouble_to_others_nor_to_the_stop() {
    let house = House::new(FakeCore::obedient());
    let path = house.log_dir.path().join("s.sock");
    let serving = open(&house, &path);
    // More than any socket buffer holds.
    house.history.log.lock().unwrap().extend((1..=50_000).map(note));
    let mut stuck = UnixStream::connect(&path).await.unwrap();
    stuck.write_all(b"GET /events?follow&since=0 HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    stuck.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert!(ask(&path, VERSION).await.starts_with("HTTP/1.1 200"));
    house.stop.cancel();
    let stopped = tokio::time::timeout(limits::STOP_WITHIN, serving).await;
    assert!(stopped.is_ok(), "the stop waits for the reader");
}

#[tokio::test]
async fn a_connection_outlives_its_request_and_two_can_share_it() {
    let house = House::new(FakeCore::obedient());
    let path = house.log_dir.path().join("s.sock");
    let serving = open(&house, &path);
    let kept = "GET /v1/version HTTP/1.1\r\nhost: x\r\n\r\n";
    let answer = ask(&path, &format!("{kept}{VERSION}")).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    let mut rubbish = std::os::unix::net::UnixStream::connect(&path).unwrap();
    rubbish.write_all(b"\x00\xff rubbish\r\n\r\n").unwrap();
    assert!(ask(&path, VERSION).await.starts_with("HTTP/1.1 200"));
    house.stop.cancel();
    serving.await.unwrap().unwrap();
}
