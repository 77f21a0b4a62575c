use std::ops::Range;

use super::*;
use crate::model::id::LogSeq;

impl Journal {
    /// Goes on with a file whose writes fail.
    pub(in crate::resource) fn break_with(&mut self, file: File) {
        self.file = file;
    }
}

/// A journal of payloads, each its own sync, and where the frames end.
fn written(dir: &Path, payloads: &[&str]) -> (PathBuf, Vec<u64>) {
    let mut journal = scan(dir, &mut |_| Ok(())).unwrap().into_journal().unwrap();
    let mut ends = Vec::new();
    for payload in payloads {
        journal.append(payload.as_bytes(), 1).unwrap();
        journal.write().unwrap();
        journal.sync().unwrap();
        ends.push(std::fs::metadata(&journal.path).unwrap().len());
    }
    (journal.path, ends)
}

/// Opens for writing, and what was found.
fn reopened(dir: &Path) -> Result<(Journal, Vec<String>), StoreError> {
    let mut found = Vec::new();
    let scanned = scan(dir, &mut |entry| {
        found.push(String::from_utf8(entry.payload.to_vec()).unwrap());
        Ok(())
    })?;
    Ok((scanned.into_journal()?, found))
}

fn damage(path: &Path, at: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

fn zero(path: &Path, range: Range<u64>) {
    let mut bytes = std::fs::read(path).unwrap();
    let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
    bytes[range].fill(0);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn what_was_appended_is_read_in_order_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one", "", "three"]);
    let (mut journal, found) = reopened(dir.path()).unwrap();
    assert_eq!(found, ["one", "", "three"]);
    assert_eq!((journal.last().batch, journal.last().seq), (3, LogSeq(3)));
    journal.append(b"no entries", 0).unwrap();
    journal.append(b"two entries", 2).unwrap();
    journal.write().unwrap();
    drop(journal);
    let (journal, found) = reopened(dir.path()).unwrap();
    assert_eq!(found, ["one", "", "three", "no entries", "two entries"]);
    assert_eq!((journal.last().batch, journal.last().seq), (5, LogSeq(5)));
}

#[test]
fn an_end_cut_at_any_byte_is_cut_back_to_the_last_whole_frame() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ends) = written(dir.path(), &["one", "two"]);
    let whole = std::fs::read(&path).unwrap();
    for len in ends[0]..ends[1] {
        std::fs::write(&path, &whole[..usize::try_from(len).unwrap()]).unwrap();
        let (mut journal, found) = reopened(dir.path()).unwrap();
        assert_eq!(found, ["one"], "{len}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), ends[0], "{len}");
        journal.append(b"again", 1).unwrap();
        journal.write().unwrap();
        assert_eq!(reopened(dir.path()).unwrap().1, ["one", "again"], "{len}");
    }
}

#[test]
fn an_end_of_zeros_or_rubbish_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ends) = written(dir.path(), &["one", "two"]);
    let whole = std::fs::read(&path).unwrap();
    for tail in [vec![0; 5000], b"SJF1SJF1 rubbish".repeat(40), vec![0xFF; 100]] {
        std::fs::write(&path, [whole.clone(), tail].concat()).unwrap();
        assert_eq!(reopened(dir.path()).unwrap().1, ["one", "two"]);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), ends[1]);
    }
}

#[test]
fn a_bit_flipped_before_the_last_frame_is_refused_with_file_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ends) = written(dir.path(), &["one", "two", "three"]);
    let whole = std::fs::read(&path).unwrap();
    for at in ends[0]..ends[1] {
        damage(&path, at);
        match reopened(dir.path()).map(|(_, found)| found) {
            Err(StoreError::Damaged { file, offset, .. }) => {
                assert_eq!((&file, offset), (&path, ends[0]), "{at}");
            }
            other => panic!("{at}: {other:?}"),
        }
        // Refused means untouched.
        damage(&path, at);
        assert_eq!(std::fs::read(&path).unwrap(), whole, "{at}");
    }
}

#[test]
fn a_missing_frame_breaks_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ends) = written(dir.path(), &["one", "two", "three"]);
    let whole = std::fs::read(&path).unwrap();
    let [first, second] = [ends[0], ends[1]].map(|end| usize::try_from(end).unwrap());
    std::fs::write(&path, [&whole[..first], &whole[second..]].concat()).unwrap();
    assert!(matches!(
        reopened(dir.path()).map(|(_, found)| found),
        Err(StoreError::Damaged { offset, .. }) if offset == ends[0]
    ));
}

#[test]
fn a_frame_of_another_journal_breaks_the_chain() {
    let (ours, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, ends) = written(ours.path(), &["one", "two"]);
    let (theirs, _) = written(other.path(), &["eno", "two"]);
    let first = usize::try_from(ends[0]).unwrap();
    let (ours_bytes, theirs_bytes) =
        (std::fs::read(&path).unwrap(), std::fs::read(theirs).unwrap());
    std::fs::write(&path, [&ours_bytes[..first], &theirs_bytes[first..]].concat()).unwrap();
    assert!(matches!(
        reopened(ours.path()).map(|(_, found)| found),
        Err(StoreError::Damaged { offset, .. }) if offset == ends[0]
    ));
}

#[test]
fn a_power_failure_may_lose_an_early_page_of_one_unsynced_group() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ends) = written(dir.path(), &["one"]);
    let (mut journal, _) = reopened(dir.path()).unwrap();
    for payload in ["two", "three", "four"] {
        journal.append(payload.as_bytes(), 1).unwrap();
    }
    journal.write().unwrap();
    drop(journal);
    // "two" never reached the disk, the later two did; none was synced, so none acknowledged.
    zero(&path, ends[0]..ends[0] + 75);
    let (journal, found) = reopened(dir.path()).unwrap();
    assert_eq!(found, ["one"]);
    assert_eq!(journal.last().batch, 1);
}

#[test]
fn a_file_that_is_no_journal_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = written(dir.path(), &["one"]);
    for content in [&b""[..], b"SCHED", b"something else entirely"] {
        std::fs::write(&path, content).unwrap();
        assert!(matches!(
            reopened(dir.path()).map(|(_, found)| found),
            Err(StoreError::Damaged { offset: 0, .. })
        ));
    }
}

#[test]
fn a_creation_that_was_cut_short_is_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("0000000000000001.new"), b"SCH").unwrap();
    written(dir.path(), &["one"]);
    assert_eq!(reopened(dir.path()).unwrap().1, ["one"]);
}
