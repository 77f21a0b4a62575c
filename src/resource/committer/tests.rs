use std::fs::File;
use std::path::Path;

use super::super::{fixture, journal, open, reader, sled_store};
use super::*;
use crate::model::history::{History, InstanceFilter};
use crate::model::id::LogSeq;

fn everything() -> InstanceFilter {
    InstanceFilter { limit: usize::MAX, ..InstanceFilter::default() }
}

/// The parts of a store, without its thread.
fn parts(dir: &Path) -> StoreThread {
    let lock = super::super::lock::StateLock::acquire(dir).unwrap();
    let sled = sled_store::SledStore::open(&dir.join("db")).unwrap();
    let scanned = journal::scan(&dir.join("journal"), &mut |_| Ok(())).unwrap();
    let journal = scanned.into_journal().unwrap();
    let view = Arc::new(reader::View::new(sled, LogSeq(0), lock));
    StoreThread {
        journal,
        view,
        durability: Durability::Strict,
        behind: Vec::new(),
        failure: Arc::default(),
    }
}

#[tokio::test]
async fn batches_that_wait_together_are_all_kept_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    let committer = &opened.committer;
    // First polls decide the order; none is awaited before all are handed over.
    let mut waiting = futures_util::stream::FuturesOrdered::new();
    for number in 1..=600 {
        waiting.push_back(committer.commit(fixture::numbered(number)));
    }
    while let Some(result) = futures_util::StreamExt::next(&mut waiting).await {
        result.unwrap();
    }
    drop(waiting);
    assert_eq!(opened.history.tip().unwrap(), LogSeq(600));
    assert_eq!(opened.history.instances(&everything()).unwrap().len(), 600);
    opened.committer.close().await.unwrap();
}

#[test]
fn a_group_is_kept_with_one_frame_each_and_one_answer_each() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = parts(dir.path());
    let mut group = Vec::new();
    let mut answers = Vec::new();
    for number in 1..=3 {
        let (answer, answered) = oneshot::channel();
        group.push(Commit { batch: fixture::numbered(number), answer: Some(answer) });
        answers.push(answered);
    }
    store.keep(&mut group).unwrap();
    for answered in &mut answers {
        answered.try_recv().unwrap().unwrap();
    }
    assert_eq!((store.journal.last().batch, store.journal.last().seq), (3, LogSeq(3)));
    assert!(store.behind.is_empty());
}

#[tokio::test]
async fn a_failed_write_is_the_answer_to_all_that_wait_and_all_that_come() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = parts(dir.path());
    // A descriptor that can only be read: every write to it fails with EBADF.
    store.journal.break_with(File::open(dir.path().join("schedd.lock")).unwrap());
    let failure = Arc::clone(&store.failure);
    let (inbox, commits) = mpsc::channel(8);
    let mut answers = Vec::new();
    for number in 1..=3 {
        let (answer, answered) = oneshot::channel();
        let commit = Commit { batch: fixture::numbered(number), answer: Some(answer) };
        assert!(inbox.send(commit).await.is_ok());
        answers.push(answered);
    }
    let view = Arc::clone(&store.view);
    let result = store.run(commits).await;
    assert!(matches!(result, Err(StoreError::Write { .. })), "{result:?}");
    for answered in answers {
        assert!(matches!(answered.await, Ok(Err(StoreError::Write { .. }))));
    }
    assert!(matches!(failure.get(), Some(StoreError::Write { .. })));
    assert!(inbox.is_closed());
    assert_eq!(view.tip(), LogSeq(0));
}

#[tokio::test]
async fn a_batch_out_of_order_ends_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    opened.committer.commit(fixture::numbered(1)).await.unwrap();
    for _ in 0..2 {
        match opened.committer.commit(fixture::numbered(5)).await {
            Err(StoreError::OutOfOrder { expected: LogSeq(2), found: LogSeq(5) }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(opened.committer.close().await, Err(StoreError::OutOfOrder { .. })));
    assert_eq!(opened.history.tip().unwrap(), LogSeq(1));
}

#[tokio::test]
async fn an_empty_batch_is_kept_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    let path = dir.path().join("journal/0000000000000001.log");
    let before = std::fs::metadata(&path).unwrap().len();
    opened.committer.commit(Batch::default()).await.unwrap();
    opened.committer.close().await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), before);
}

#[tokio::test]
async fn relaxed_acknowledges_before_the_sync_and_then_syncs_and_checkpoints_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = parts(dir.path());
    store.durability = Durability::Relaxed { sync_within: Duration::from_millis(1) };
    let (inbox, commits) = mpsc::channel(8);
    let (answer, answered) = oneshot::channel();
    let commit = Commit { batch: fixture::numbered(1), answer: Some(answer) };
    let mut group = vec![commit];
    store.keep(&mut group).unwrap();
    answered.await.unwrap().unwrap();
    assert_eq!(store.behind.len(), 1);
    let view = Arc::clone(&store.view);
    let (answer, answered) = oneshot::channel();
    let commit = Commit { batch: fixture::numbered(2), answer: Some(answer) };
    assert!(inbox.send(commit).await.is_ok());
    let served = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(store.run(commits))
    });
    answered.await.unwrap().unwrap();
    // Nobody sends anything any more: the alarms alone bring it into sled and onto the disk.
    while view.applied().unwrap().batch < 2 || view.is_dirty() {
        tokio::task::yield_now().await;
    }
    drop(inbox);
    served.await.unwrap().unwrap();
}

#[test]
fn what_the_daemon_awaits_can_move_between_threads() {
    fn movable<T: Send>(_: &T) {}
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    movable(&opened.history);
    movable(&opened.committer.commit(Batch::default()));
    movable(&opened.committer.close());
}
