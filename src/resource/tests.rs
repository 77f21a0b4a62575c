use std::path::PathBuf;

use super::*;
use crate::model::history::{History, InstanceFilter};

fn numbers(opened: &Opened) -> Vec<u64> {
    let filter = InstanceFilter { limit: usize::MAX, ..InstanceFilter::default() };
    let mut all: Vec<u64> =
        opened.history.instances(&filter).unwrap().iter().map(|i| i.created_seq).collect();
    all.reverse();
    all
}

/// Opens, keeps the batches of these numbers and closes.
async fn kept(dir: &Path, numbers: std::ops::RangeInclusive<u64>) {
    let opened = open(dir, Durability::Strict).unwrap();
    for number in numbers {
        opened.committer.commit(fixture::numbered(number)).await.unwrap();
    }
    opened.committer.close().await.unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn set_aside_dirs(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("damaged"))
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_new_store_is_empty_and_a_closed_one_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let opened = open(&state, Durability::Strict).unwrap();
    assert_eq!((opened.rows.len(), opened.tip), (0, LogSeq(0)));
    opened.committer.close().await.unwrap();
    drop(opened.history);
    kept(&state, 1..=3).await;
    let opened = open(&state, Durability::Strict).unwrap();
    assert_eq!((opened.rows.len(), opened.tip), (3, LogSeq(3)));
    assert_eq!(numbers(&opened), [1, 2, 3]);
}

#[tokio::test]
async fn the_files_as_a_kill_would_leave_them_hold_everything_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (state, left) = (dir.path().join("state"), dir.path().join("left"));
    for durability in [
        Durability::Strict,
        Durability::Relaxed { sync_within: std::time::Duration::from_secs(3600) },
    ] {
        let opened = open(&state, durability).unwrap();
        for _ in 0..20 {
            let next = opened.history.tip().unwrap().0 + 1;
            opened.committer.commit(fixture::numbered(next)).await.unwrap();
            if next.is_multiple_of(5) {
                // sled may be writing meanwhile: torn or behind, the journal makes up for it.
                copy(&state, &left);
                let found = open(&left, Durability::Strict).unwrap();
                assert_eq!(numbers(&found), (1..=next).collect::<Vec<_>>());
                assert_eq!(found.rows.len(), usize::try_from(next).unwrap());
                found.committer.close().await.unwrap();
                drop(found.history);
                std::fs::remove_dir_all(&left).unwrap();
            }
        }
        opened.committer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_database_is_rebuilt_from_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), 1..=4).await;
    std::fs::remove_dir_all(dir.path().join("db")).unwrap();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    assert_eq!(numbers(&opened), [1, 2, 3, 4]);
    assert_eq!(set_aside_dirs(dir.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_damaged_database_is_set_aside_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), 1..=4).await;
    for time in 1..=2 {
        let conf = dir.path().join("db/conf");
        std::fs::write(conf, [0xFF; 40]).unwrap();
        let opened = open(dir.path(), Durability::Strict).unwrap();
        assert_eq!(numbers(&opened), [1, 2, 3, 4]);
        opened.committer.close().await.unwrap();
        let expected: Vec<PathBuf> =
            (1..=time).map(|n| dir.path().join(format!("db.damaged-{n}"))).collect();
        assert_eq!(set_aside_dirs(dir.path()), expected);
    }
}

#[tokio::test]
async fn a_database_whose_every_page_is_rubbish_is_set_aside_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), 1..=4).await;
    let data = dir.path().join("db/db");
    let len = usize::try_from(std::fs::metadata(&data).unwrap().len()).unwrap();
    std::fs::write(&data, vec![0x5A; len]).unwrap();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    assert_eq!(numbers(&opened), [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_journal_that_lost_what_the_database_has_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), 1..=4).await;
    let path = dir.path().join("journal/0000000000000001.log");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    match open(dir.path(), Durability::Strict).map(drop) {
        Err(StoreError::JournalShort { found: 3, expected: 4, .. }) => {}
        other => panic!("{other:?}"),
    }
    // Refused means untouched, for whoever has to repair it.
    assert_eq!(std::fs::metadata(&path).unwrap().len(), whole.len() as u64 - 1);
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(
        open(dir.path(), Durability::Strict).map(drop),
        Err(StoreError::JournalShort { found: 0, expected: 4, .. })
    ));
}

#[tokio::test]
async fn a_database_of_another_journal_is_refused() {
    let (ours, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    kept(ours.path(), 1..=2).await;
    let opened = open(other.path(), Durability::Strict).unwrap();
    opened.committer.commit(fixture::one_of_each()).await.unwrap();
    opened.committer.close().await.unwrap();
    drop(opened.history);
    std::fs::remove_dir_all(ours.path().join("db")).unwrap();
    copy(&other.path().join("db"), &ours.path().join("db"));
    assert!(matches!(
        open(ours.path(), Durability::Strict).map(drop),
        Err(StoreError::Diverged { batch: 1, .. })
    ));
}

#[tokio::test]
async fn a_second_daemon_is_refused_with_the_first_ones_pid() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), Durability::Strict).unwrap();
    match open(dir.path(), Durability::Strict).map(drop) {
        Err(error @ StoreError::InUse { pid: Some(pid), .. }) => {
            assert_eq!(pid, std::process::id());
            assert!(error.to_string().contains(&format!("process {pid}")), "{error}");
        }
        other => panic!("{other:?}"),
    }
    first.committer.commit(fixture::numbered(1)).await.unwrap();
    first.committer.close().await.unwrap();
}

#[tokio::test]
async fn everything_that_can_be_kept_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let batch = fixture::one_of_each();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    opened.committer.commit(batch.clone()).await.unwrap();
    opened.committer.close().await.unwrap();
    drop(opened.history);
    std::fs::remove_dir_all(dir.path().join("db")).unwrap();
    let opened = open(dir.path(), Durability::Strict).unwrap();
    assert_eq!(opened.history.records(LogSeq(0), usize::MAX).unwrap(), batch.records);
    let mut expected: Vec<Row> = batch.rows.into_values().flatten().collect();
    let mut rows = opened.rows;
    expected.sort_by_key(Row::key);
    rows.sort_by_key(Row::key);
    assert_eq!(rows, expected);
}
