use super::*;

fn put(key: &[u8], value: Vec<u8>) -> Write {
    Write { key: key.to_vec(), value: Some(value.into()) }
}

fn position(batch: u64) -> Position {
    Position { batch, ..Position::default() }
}

fn scanned(store: &SledStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let all = Range { from: b"k".to_vec(), to: b"l".to_vec() };
    store
        .scan(&all, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    found
}

#[test]
fn values_of_any_length_come_back_and_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    for (batch, len) in (1..).zip([0, 1, 4095, 4096, 4097, 100_000, 8192, 3, 5000]) {
        let value: Vec<u8> = (0..=250).cycle().take(len).collect();
        store.apply(&[put(b"k", value.clone())], &position(batch)).unwrap();
        assert_eq!(store.get(b"k").unwrap(), Some(value.clone()), "{len}");
        assert_eq!(scanned(&store), [(b"k".to_vec(), value)], "{len}");
        assert_eq!(store.applied().unwrap(), position(batch));
    }
    store.apply(&[Write { key: b"k".to_vec(), value: None }], &position(99)).unwrap();
    assert_eq!(store.get(b"k").unwrap(), None);
    // Only the position is left.
    assert_eq!(store.db.iter().keys().map(Result::unwrap).collect::<Vec<_>>(), [keys::APPLIED]);
}

#[test]
fn long_values_never_become_files_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    for batch in 1..40 {
        let writes: Vec<Write> = (0..8_u8).map(|n| put(&[b'k', n], vec![n; 64 * 1024])).collect();
        store.apply(&writes, &position(batch)).unwrap();
    }
    store.checkpoint().unwrap();
    assert_eq!(std::fs::read_dir(dir.path().join("blobs")).unwrap().count(), 0);
}

#[test]
fn a_half_written_snapshot_of_a_killed_start_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    store.apply(&[put(b"k", b"v".to_vec())], &position(1)).unwrap();
    drop(store);
    let half = dir.path().join("snap.00000000FFFFFFFF.generating");
    std::fs::write(&half, b"half").unwrap();
    let store = SledStore::open(dir.path()).unwrap();
    assert_eq!(store.get(b"k").unwrap(), Some(b"v".to_vec()));
    assert!(!half.exists());
}

#[test]
fn a_lock_that_somebody_holds_is_not_taken_for_damage() {
    let dir = tempfile::tempdir().unwrap();
    let _held = SledStore::open(dir.path()).unwrap();
    match SledStore::open(dir.path()).map(drop) {
        Err(StoreError::Database { damaged: false, .. }) => {}
        other => panic!("{other:?}"),
    }
}
