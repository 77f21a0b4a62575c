//! Following the log: never a gap, never a double.

use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::access::fakes::{FakeCore, House, note};
use crate::model::id::LogSeq;
use crate::model::time::Timestamp;

use super::{Since, before, follow};

/// Reads lines until position `last` has come, or to the end, and gives the positions.
async fn seqs_until(body: &mut Body, last: u64) -> Vec<u64> {
    let mut seqs = Vec::new();
    while seqs.last() != Some(&last) {
        let Some(frame) = body.frame().await else { break };
        let bytes = frame.unwrap().into_data().unwrap();
        for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let record: Value = serde_json::from_slice(line).unwrap();
            seqs.push(record["seq"].as_u64().unwrap());
        }
    }
    seqs
}

#[tokio::test]
async fn history_comes_first_and_then_the_feed() {
    let house = House::new(FakeCore::obedient());
    (1..=3).for_each(|seq| house.record(&note(seq)));
    let mut body = follow(&house.app(), Some(Since::Seq(LogSeq(1)))).await.unwrap();
    // On the feed and in history by the time of reading: must come once.
    (4..=5).for_each(|seq| house.record(&note(seq)));
    assert_eq!(seqs_until(&mut body, 5).await, [2, 3, 4, 5]);
    (6..=7).for_each(|seq| house.record(&note(seq)));
    assert_eq!(seqs_until(&mut body, 7).await, [6, 7]);
}

#[tokio::test]
async fn without_a_beginning_only_what_comes_is_given() {
    let house = House::new(FakeCore::obedient());
    (1..=3).for_each(|seq| house.record(&note(seq)));
    let mut body = follow(&house.app(), None).await.unwrap();
    house.record(&note(4));
    assert_eq!(seqs_until(&mut body, 4).await, [4]);
}

#[tokio::test]
async fn a_follower_that_lags_behind_the_feed_misses_nothing() {
    let house = House::new(FakeCore::obedient());
    house.record(&note(1));
    let mut body = follow(&house.app(), Some(Since::Seq(LogSeq(0)))).await.unwrap();
    assert_eq!(seqs_until(&mut body, 1).await, [1]);
    // The feed holds four, and history is read 256 at a time: both bounds are passed.
    let mut next = 2;
    for burst in [3, 4, 5, 300, 1, 900] {
        let last = next + burst - 1;
        (next..=last).for_each(|seq| house.record(&note(seq)));
        assert_eq!(seqs_until(&mut body, last).await, (next..=last).collect::<Vec<_>>());
        next = last + 1;
    }
}

#[tokio::test]
async fn records_that_come_while_it_is_read_are_neither_lost_nor_doubled() {
    let house = Arc::new(House::new(FakeCore::obedient()));
    let mut body = follow(&house.app(), Some(Since::Seq(LogSeq(0)))).await.unwrap();
    let writer = Arc::clone(&house);
    let writing = tokio::task::spawn_blocking(move || {
        (1..=5000).for_each(|seq| writer.record(&note(seq)));
    });
    assert_eq!(seqs_until(&mut body, 5000).await, (1..=5000).collect::<Vec<_>>());
    writing.await.unwrap();
}

#[tokio::test]
async fn the_doors_stop_ends_a_follower_well_and_a_broken_store_breaks_it_off() {
    let house = House::new(FakeCore::obedient());
    house.record(&note(1));
    let mut body = follow(&house.app(), Some(Since::Seq(LogSeq(0)))).await.unwrap();
    assert_eq!(seqs_until(&mut body, 1).await, [1]);
    house.stop.cancel();
    assert!(body.frame().await.is_none());
    let mut body = follow(&house.app(), Some(Since::Seq(LogSeq(0)))).await.unwrap();
    house.history.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(body.frame().await.unwrap().is_err());
}

#[test]
fn a_time_is_found_in_a_log_whose_head_was_trimmed() {
    let house = House::new(FakeCore::obedient());
    house.history.log.lock().unwrap().extend((1000..=1009).map(note));
    for (second, expected) in [(0, 999), (1000, 999), (1001, 1000), (1005, 1004), (2000, 1009)] {
        let at = Timestamp::from_millis(second * 1000);
        assert_eq!(before(&*house.history, at), Ok(LogSeq(expected)), "{second}");
    }
}
