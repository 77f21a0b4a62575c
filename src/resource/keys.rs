//! Where everything lies: one ordered space of keys, a one-byte prefix per kind.
//!
//! Numbers are big-endian, so that order of bytes is order of numbers; where a list shows the
//! newest first, the number is stored inverted, so that every read goes forward. Names of any
//! length go in as the first 16 bytes of their SHA-256, so no key is longer than 64 bytes
//! (reliability R4) and equal batches give equal keys whatever came before.
//!
//! | prefix | then | value |
//! |---|---|---|
//! | `l` | log position | the log entry |
//! | `f` | task, inverted log position | nothing: a ledger row is its log entry; or the position of a later entry that amends it |
//! | `i` | instance id, as text | the instance |
//! | `c` | inverted creation sequence | creation time in ms, instance id |
//! | `t` | task, inverted creation sequence | the same |
//! | `d` | task | what is in force of it |
//! | `r` | task, revision | the revision |
//! | `u` | task, trigger | the cursor |
//! | `a` | task, pattern and path | the arrival |
//! | `s` | submission key | the submission |
//! | `h` | target | the hold |
//! | `j` | task, trigger | jumps of the clock |
//! | `e` | task, cycle | the empty cycle |
//! | `m` | a name | about the store itself |
//! | `~` | a key, part number | a part of that key's long value (`sled_store` only) |

use sha2::{Digest, Sha256};

use crate::model::id::{InstanceId, LogSeq, TaskId};
use crate::model::record::{RowKey, Target};
use crate::model::time::Timestamp;

const LOG: u8 = b'l';
const FIRE: u8 = b'f';
const INSTANCE: u8 = b'i';
const CREATED: u8 = b'c';
const OF_TASK: u8 = b't';
const TASK: u8 = b'd';
const REVISION: u8 = b'r';
const CURSOR: u8 = b'u';
const ARRIVAL: u8 = b'a';
const SUBMISSION: u8 = b's';
const HOLD: u8 = b'h';
const JUMPS: u8 = b'j';
const EMPTY_CYCLE: u8 = b'e';
const PART: u8 = b'~';

/// The prefixes of the rows themselves, indexes left out.
pub(super) const ROWS: [u8; 9] =
    [TASK, REVISION, CURSOR, ARRIVAL, SUBMISSION, HOLD, JUMPS, EMPTY_CYCLE, INSTANCE];

/// How far the journal has been applied.
pub(super) const APPLIED: &[u8] = b"mapplied";

/// A half-open range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    /// The first.
    pub(super) from: Vec<u8>,
    /// The first that is not in it.
    pub(super) to: Vec<u8>,
}

impl Range {
    /// All keys that begin with `prefix`, which does not consist of 0xFF alone.
    pub(super) fn of(prefix: Vec<u8>) -> Self {
        let mut to = prefix.clone();
        while to.pop_if(|last| *last == u8::MAX).is_some() {}
        if let Some(last) = to.last_mut() {
            *last += 1;
        }
        Self { from: prefix, to }
    }

    /// The part of it from `from` on.
    pub(super) fn starting(self, from: Vec<u8>) -> Self {
        Self { from: from.max(self.from).min(self.to.clone()), to: self.to }
    }
}

fn key(prefix: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(prefix);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// Stands for names of any length; each is preceded by its length, so that none can run over
/// into the next.
fn digest(names: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for name in names {
        hash.update(name.len().to_be_bytes());
        hash.update(name.as_bytes());
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hash.finalize()[..16]);
    short
}

fn of_task(task: &TaskId) -> [u8; 16] {
    digest(&[task.as_str()])
}

/// A log entry's key.
pub(super) fn log(seq: LogSeq) -> Vec<u8> {
    key(LOG, &[&seq.0.to_be_bytes()])
}

/// The log strictly after `since`; empty if nothing can be.
pub(super) fn log_after(since: LogSeq) -> Range {
    let all = Range::of(vec![LOG]);
    let end = all.to.clone();
    let from = since.0.checked_add(1).map_or(end, |next| log(LogSeq(next)));
    all.starting(from)
}

/// A ledger row's key.
pub(super) fn fire(task: &TaskId, seq: LogSeq) -> Vec<u8> {
    key(FIRE, &[&of_task(task), &(!seq.0).to_be_bytes()])
}

/// A task's ledger rows, newest first.
pub(super) fn fires(task: &TaskId) -> Range {
    Range::of(key(FIRE, &[&of_task(task)]))
}

/// The log position in a ledger row's key; `None` if it is none.
pub(super) fn fire_seq(key: &[u8]) -> Option<LogSeq> {
    key.last_chunk::<8>().map(|seq| LogSeq(!u64::from_be_bytes(*seq)))
}

/// What an amended ledger row's key holds: where the entry is that amends it.
pub(super) fn amended(by: LogSeq) -> Vec<u8> {
    by.0.to_be_bytes().to_vec()
}

/// Reads that back; `None`: the row is its own entry.
pub(super) fn read_amended(value: &[u8]) -> Option<LogSeq> {
    value.first_chunk::<8>().map(|seq| LogSeq(u64::from_be_bytes(*seq)))
}

/// An instance's key.
pub(super) fn instance(id: &InstanceId) -> Vec<u8> {
    instance_prefix(id.as_str())
}

fn instance_prefix(prefix: &str) -> Vec<u8> {
    key(INSTANCE, &[prefix.as_bytes()])
}

/// Instances whose id begins with `prefix`.
pub(super) fn instances(prefix: &str) -> Range {
    Range::of(instance_prefix(prefix))
}

/// The id in an instance's key; `None` if it is none.
pub(super) fn instance_id(key: &[u8]) -> Option<InstanceId> {
    std::str::from_utf8(key.get(1..)?).ok().map(InstanceId::from_text)
}

/// The keys by which an instance is listed: among all, and among its task's.
pub(super) fn listings(task: &TaskId, created_seq: u64) -> [Vec<u8>; 2] {
    let newest_first = (!created_seq).to_be_bytes();
    [key(CREATED, &[&newest_first]), key(OF_TASK, &[&of_task(task), &newest_first])]
}

/// What a listing's key holds.
pub(super) fn listed(id: &InstanceId, created_at: Timestamp) -> Vec<u8> {
    let mut value = created_at.as_millis().to_be_bytes().to_vec();
    value.extend_from_slice(id.as_str().as_bytes());
    value
}

/// Reads that back; `None` if it is not one.
pub(super) fn read_listed(value: &[u8]) -> Option<(Timestamp, InstanceId)> {
    let (at, id) = value.split_first_chunk::<8>()?;
    let id = std::str::from_utf8(id).ok()?;
    Some((Timestamp::from_millis(i64::from_be_bytes(*at)), InstanceId::from_text(id)))
}

/// Instances of one task or of all, newest first, made strictly before `before`.
pub(super) fn listing(task: Option<&TaskId>, before: Option<u64>) -> Range {
    let prefix = match task {
        Some(task) => key(OF_TASK, &[&of_task(task)]),
        None => vec![CREATED],
    };
    let all = Range::of(prefix.clone());
    match before {
        None => all,
        // Nothing was made before the first.
        Some(0) => Range { from: all.to.clone(), to: all.to },
        Some(before) => {
            let mut from = prefix;
            from.extend_from_slice(&(!(before - 1)).to_be_bytes());
            all.starting(from)
        }
    }
}

/// A task's revisions, oldest first.
pub(super) fn revisions(task: &TaskId) -> Range {
    Range::of(key(REVISION, &[&of_task(task)]))
}

/// A row's key.
pub(super) fn row(of: &RowKey) -> Vec<u8> {
    match of {
        RowKey::Instance { instance_id } => instance(instance_id),
        RowKey::Revision { task_id, revision } => {
            key(REVISION, &[&of_task(task_id), &revision.to_be_bytes()])
        }
        RowKey::Task { task_id } => key(TASK, &[&of_task(task_id)]),
        RowKey::Cursor { task_id, trigger } => {
            key(CURSOR, &[&of_task(task_id), &digest(&[trigger])])
        }
        RowKey::Arrival { task_id, pattern, path } => {
            key(ARRIVAL, &[&of_task(task_id), &digest(&[pattern, path])])
        }
        RowKey::Submission { submission } => key(SUBMISSION, &[&digest(&[submission])]),
        RowKey::Hold { target } => {
            let (kind, id) = match target {
                Target::Instance(id) => ("instance", id.as_str()),
                Target::Task(id) => ("task", id.as_str()),
                Target::Queue(name) => ("queue", name.as_str()),
                Target::All => ("all", ""),
            };
            key(HOLD, &[&digest(&[kind, id])])
        }
        RowKey::Jumps { task_id, trigger } => key(JUMPS, &[&of_task(task_id), &digest(&[trigger])]),
        RowKey::EmptyCycle { task_id, cycle } => {
            key(EMPTY_CYCLE, &[&of_task(task_id), &digest(&[cycle])])
        }
    }
}

/// The key of one part of a long value.
pub(super) fn part(of: &[u8], number: u32) -> Vec<u8> {
    key(PART, &[of, &number.to_be_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(text: &str) -> TaskId {
        TaskId::parse(text).unwrap()
    }

    #[test]
    fn a_prefix_ends_where_the_next_one_begins() {
        let range = Range::of(vec![b'i', 0x61, 0xFF, 0xFF]);
        assert_eq!(range.to, [b'i', 0x62]);
        assert_eq!(instances("").to, [b'j']);
    }

    #[test]
    fn newer_things_are_listed_first_and_pages_begin_strictly_before() {
        let [all_1, task_1] = listings(&task("a.v1"), 1);
        let [all_2, task_2] = listings(&task("a.v1"), 2);
        assert!(all_2 < all_1 && task_2 < task_1);
        let page = listing(None, Some(2));
        assert_eq!(page.from, all_1);
        assert!(task_1.starts_with(&listing(Some(&task("a.v1")), None).from));
        let none = listing(None, Some(0));
        assert_eq!(none.from, none.to);
        assert!(fire(&task("a.v1"), LogSeq(9)) < fire(&task("a.v1"), LogSeq(8)));
        assert_eq!(fire_seq(&fire(&task("a.v1"), LogSeq(9))), Some(LogSeq(9)));
    }

    #[test]
    fn log_ranges_are_ordered_up_to_the_last_number() {
        assert!(log(LogSeq(255)) < log(LogSeq(256)));
        for since in [0, 1, u64::MAX - 1, u64::MAX] {
            let range = log_after(LogSeq(since));
            assert!(range.from <= range.to, "{since}");
            assert!(log(LogSeq(since)) < range.from, "{since}");
        }
    }

    #[test]
    fn no_key_is_longer_than_64_bytes_however_long_the_names() {
        let long = "x".repeat(5000);
        let id = task(&format!("{}.v1", "a".repeat(190)));
        let keys = [
            row(&RowKey::Arrival {
                task_id: id.clone(),
                pattern: long.clone(),
                path: long.clone(),
            }),
            row(&RowKey::Cursor { task_id: id.clone(), trigger: long.clone() }),
            row(&RowKey::Submission { submission: long }),
            part(&row(&RowKey::Revision { task_id: id, revision: u64::MAX }), u32::MAX),
        ];
        assert!(keys.iter().all(|key| key.len() <= 64));
    }

    #[test]
    fn names_do_not_run_over_into_each_other() {
        let arrival = |pattern: &str, path: &str| {
            row(&RowKey::Arrival {
                task_id: task("a.v1"),
                pattern: pattern.to_owned(),
                path: path.to_owned(),
            })
        };
        assert_ne!(arrival("/a", "b"), arrival("/", "ab"));
        assert_ne!(
            row(&RowKey::Hold { target: Target::Queue("all".into()) }),
            row(&RowKey::Hold { target: Target::All })
        );
    }
}
