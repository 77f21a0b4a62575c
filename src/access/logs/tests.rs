//! Reading and following a task's log.

use axum::body::Body;
use http_body_util::BodyExt;

use crate::access::fakes::{FakeCore, House, moved, row};
use crate::model::instance::{Instance, InstanceState};
use crate::model::time::Timestamp;

use super::{CHUNK, Follower, Wanted, open};

async fn whole(body: Body) -> String {
    String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn chunk(body: &mut Body) -> String {
    let frame = body.frame().await.unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

fn house_with(state: InstanceState, attempt: u32) -> (House, Instance) {
    let house = House::new(FakeCore::obedient());
    let row = row("01", 1, "a.v1", state, attempt);
    house.history.put(row.clone());
    (house, row)
}

fn turn(house: &House, row: &mut Instance, seq: u64, to: InstanceState) {
    let from = row.state;
    row.state = to;
    house.history.put(row.clone());
    house.record(&moved(seq, row, from));
}

#[tokio::test]
async fn a_log_is_given_whole_or_by_its_last_lines() {
    let (house, row) = house_with(InstanceState::Succeeded, 2);
    house.write_log(&row, 1, "first\n");
    let long = "x".repeat(CHUNK);
    house.write_log(&row, 2, &format!("one\n{long}\nthree"));
    let app = house.app();
    for (tail, expected) in [
        (None, format!("one\n{long}\nthree")),
        (Some(0), String::new()),
        (Some(1), "three".to_owned()),
        (Some(2), format!("{long}\nthree")),
        (Some(3), format!("one\n{long}\nthree")),
        (Some(99), format!("one\n{long}\nthree")),
    ] {
        let wanted = Wanted { tail, ..Wanted::default() };
        assert_eq!(whole(open(&app, "01", wanted).await.unwrap()).await, expected, "{tail:?}");
    }
    let wanted = Wanted { attempt: Some(1), tail: Some(1), follow: true };
    assert_eq!(whole(open(&app, "01", wanted).await.unwrap()).await, "first\n");
}

#[tokio::test]
async fn a_log_that_is_not_there_is_told_with_the_reason() {
    let (house, _) = house_with(InstanceState::Ready, 0);
    let error = open(&house.app(), "01", Wanted::default()).await.unwrap_err();
    assert_eq!(error.status, 404);
    assert!(error.rejection.detail.contains("READY and was never started"), "{error}");
    let (house, _) = house_with(InstanceState::Cancelled, 0);
    let wanted = Wanted { follow: true, ..Wanted::default() };
    assert_eq!(open(&house.app(), "01", wanted).await.unwrap_err().status, 404);
    let (house, row) = house_with(InstanceState::Failed, 1);
    house.write_log(&row, 1, "x");
    let wanted = Wanted { attempt: Some(2), ..Wanted::default() };
    let error = open(&house.app(), "01", wanted).await.unwrap_err();
    assert!(error.rejection.detail.contains("its newest is 1"), "{error}");
}

#[tokio::test]
async fn a_follower_waits_for_the_start_and_ends_with_the_instance_and_all_of_its_output() {
    let (house, mut row) = house_with(InstanceState::Ready, 0);
    let wanted = Wanted { follow: true, ..Wanted::default() };
    let mut body = open(&house.app(), "01", wanted).await.unwrap();
    row.attempt = 1;
    house.write_log(&row, 1, "hello\n");
    turn(&house, &mut row, 1, InstanceState::Running);
    assert_eq!(chunk(&mut body).await, "hello\n");
    house.write_log(&row, 1, "more\n");
    assert_eq!(chunk(&mut body).await, "more\n");
    house.write_log(&row, 1, "last words\n");
    turn(&house, &mut row, 2, InstanceState::Succeeded);
    assert_eq!(whole(body).await, "last words\n");
}

#[tokio::test]
async fn a_follower_goes_on_into_the_next_attempt_unless_it_asked_for_one() {
    let (house, mut row) = house_with(InstanceState::Running, 1);
    house.write_log(&row, 1, "try 1\n");
    let all = Wanted { follow: true, ..Wanted::default() };
    let one = Wanted { attempt: Some(1), ..all };
    let all = open(&house.app(), "01", all).await.unwrap();
    let one = open(&house.app(), "01", one).await.unwrap();
    row.next_retry_at = Some(Timestamp::default());
    turn(&house, &mut row, 1, InstanceState::Failed);
    assert_eq!(whole(one).await, "try 1\n");
    (row.next_retry_at, row.attempt) = (None, 2);
    turn(&house, &mut row, 2, InstanceState::Running);
    house.write_log(&row, 2, "try 2\n");
    turn(&house, &mut row, 3, InstanceState::Succeeded);
    assert_eq!(whole(all).await, "try 1\ntry 2\n");
}

#[tokio::test]
async fn a_follower_that_missed_records_still_learns_of_the_end() {
    let (house, mut row) = house_with(InstanceState::Ready, 1);
    house.write_log(&row, 1, "x\n");
    let wanted = Wanted { follow: true, ..Wanted::default() };
    let mut body = open(&house.app(), "01", wanted).await.unwrap();
    assert_eq!(chunk(&mut body).await, "x\n");
    turn(&house, &mut row, 1, InstanceState::Cancelled);
    // The feed holds four: the move is no longer among them.
    (2..=20).for_each(|seq| house.record(&crate::access::fakes::note(seq)));
    assert_eq!(whole(body).await, "");
}

#[tokio::test]
async fn a_log_cut_to_its_bounds_is_followed_from_its_new_end() {
    let (house, row) = house_with(InstanceState::Running, 1);
    house.write_log(&row, 1, "a long beginning\n");
    let app = house.app();
    let feed = app.feed.subscribe();
    let (attempt, file) = (None, None);
    let mut follower =
        Follower { app, feed, over: false, attempt, current: 1, row: row.clone(), file };
    assert_eq!(follower.read_on().await.unwrap().unwrap(), "a long beginning\n");
    let path = house.log_dir.path().join("a.v1/01.1.log");
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(2).unwrap();
    assert_eq!(follower.read_on().await.unwrap(), None);
    house.write_log(&row, 1, "end\n");
    assert_eq!(follower.read_on().await.unwrap().unwrap(), "end\n");
}

/// The executor cuts the middle out of a log that is too long by punching a hole.
#[tokio::test]
async fn a_hole_in_a_log_is_passed_over_and_zeros_that_a_task_wrote_are_not() {
    use std::os::unix::fs::FileExt;
    let (house, row) = house_with(InstanceState::Succeeded, 1);
    let head = format!("{}\0\0", "h".repeat(4094));
    house.write_log(&row, 1, &head);
    let app = house.app();
    let path = super::log_path(&app.log_dir, &row.task_id, &row.instance_id, 1);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"tail\n", 40 << 20).unwrap();
    for follow in [false, true] {
        let wanted = Wanted { follow, ..Wanted::default() };
        let text = whole(open(&app, "01", wanted).await.unwrap()).await;
        assert_eq!(text, format!("{head}tail\n"), "follow: {follow}");
    }
    // A hole that lies wholly within what is read at a time.
    let (small, row) = house_with(InstanceState::Succeeded, 1);
    small.write_log(&row, 1, &"h".repeat(4096));
    let app = small.app();
    let path = super::log_path(&app.log_dir, &row.task_id, &row.instance_id, 1);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"tail\n", 16384).unwrap();
    let text = whole(open(&app, "01", Wanted::default()).await.unwrap()).await;
    assert_eq!(text, format!("{}tail\n", "h".repeat(4096)));
}
