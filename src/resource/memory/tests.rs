use std::sync::Arc;

use proptest::prelude::*;

use super::super::fixture;
use super::*;
use crate::model::instance::InstanceState;
use crate::model::record::{Record, RowKey};

/// What one random step does.
#[derive(Debug, Clone)]
enum Step {
    /// A new instance of task 0, 1 or 2, in one of two queues.
    Make { task: usize, queue: bool },
    /// A known instance gets a state.
    Move { which: usize, state: usize },
    /// A known instance goes.
    Drop { which: usize },
    /// A ledger row.
    Fire { task: usize },
    /// A known ledger row counts this much from now on; 0: it goes.
    Amend { which: usize, count: u64 },
    /// A revision.
    Revise { task: usize, number: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_usize, any::<bool>()).prop_map(|(task, queue)| Step::Make { task, queue }),
        4 => (0..64_usize, 0..8_usize).prop_map(|(which, state)| Step::Move { which, state }),
        1 => (0..64_usize).prop_map(|which| Step::Drop { which }),
        2 => (0..3_usize).prop_map(|task| Step::Fire { task }),
        2 => (0..64_usize, 0..3_u64).prop_map(|(which, count)| Step::Amend { which, count }),
        1 => (0..3_usize, 1..4_u64).prop_map(|(task, number)| Step::Revise { task, number }),
    ]
}

/// A list of rows and a list of records: what a store is, said as plainly as can be.
#[derive(Default)]
struct Plain {
    rows: BTreeMap<RowKey, Row>,
    records: Vec<LogRecord>,
    made: u64,
}

impl Plain {
    fn take(&mut self, batch: &Batch) {
        self.records.extend(batch.records.iter().cloned());
        for (key, row) in &batch.rows {
            match row {
                Some(row) => self.rows.insert(key.clone(), row.clone()),
                None => self.rows.remove(key),
            };
        }
    }

    fn instances(&self) -> Vec<Instance> {
        let all = self.rows.values().filter_map(|row| {
            if let Row::Instance(instance) = row { Some((**instance).clone()) } else { None }
        });
        let mut all: Vec<Instance> = all.collect();
        all.sort_by_key(|i| std::cmp::Reverse(i.created_seq));
        all
    }

    /// The rows of the ledger by the entry that wrote them, as they are now.
    fn ledger(&self) -> BTreeMap<LogSeq, Fire> {
        let mut ledger = BTreeMap::new();
        for record in &self.records {
            if let Record::Fire(fire) = &record.what {
                ledger.insert(record.seq, fire.clone());
            } else if let Record::FireAmended { of, fire } = &record.what {
                ledger.insert(*of, fire.clone());
            }
        }
        ledger.retain(|_, fire| fire.count > 0);
        ledger
    }

    fn batch(&mut self, steps: &[Step]) -> Batch {
        let tasks = tasks();
        let known = self.instances();
        let ledger: Vec<(LogSeq, Fire)> = self.ledger().into_iter().collect();
        let mut records = Vec::new();
        let mut rows = Vec::new();
        let mut gone = Vec::new();
        for step in steps {
            match step {
                Step::Make { task, queue } => {
                    self.made += 1;
                    let mut new =
                        fixture::instance(self.made, &tasks[*task], InstanceState::Pending);
                    new.queue = if *queue { "night" } else { "default" }.into();
                    records.push(fixture::created(&new));
                    rows.push(Row::Instance(Arc::new(new)));
                }
                Step::Move { which, state } if !known.is_empty() => {
                    let mut moved = known[which % known.len()].clone();
                    moved.state = InstanceState::ALL[*state];
                    rows.push(Row::Instance(Arc::new(moved)));
                }
                Step::Drop { which } if !known.is_empty() => {
                    gone.push(known[which % known.len()].instance_id.clone());
                }
                Step::Amend { which, count } if !ledger.is_empty() => {
                    let (of, fire) = ledger[which % ledger.len()].clone();
                    records.push(Record::FireAmended { of, fire: Fire { count: *count, ..fire } });
                }
                Step::Move { .. } | Step::Drop { .. } | Step::Amend { .. } => {}
                Step::Fire { task } => records.push(fixture::fire(&tasks[*task], 1)),
                Step::Revise { task, number } => {
                    rows.push(Row::Revision(fixture::revision(&tasks[*task], *number)));
                }
            }
        }
        let tip = self.records.last().map_or(LogSeq(0), |record| record.seq);
        let mut batch = fixture::batch(tip, records, rows);
        for instance_id in gone {
            batch.rows.insert(RowKey::Instance { instance_id }, None);
        }
        self.take(&batch);
        batch
    }
}

fn tasks() -> [TaskId; 3] {
    ["a.v1", "a.v2", "b.v1"].map(fixture::task)
}

fn filters() -> Vec<InstanceFilter> {
    let all = InstanceFilter { limit: usize::MAX, ..InstanceFilter::default() };
    let states = vec![InstanceState::Failed, InstanceState::Pending];
    vec![
        all.clone(),
        InstanceFilter { limit: 3, ..all.clone() },
        InstanceFilter { limit: 0, ..all.clone() },
        InstanceFilter { before: Some(5), ..all.clone() },
        InstanceFilter { before: Some(0), ..all.clone() },
        InstanceFilter { states: states.clone(), ..all.clone() },
        InstanceFilter { queue: Some("night".to_owned()), limit: 2, ..all.clone() },
        InstanceFilter { since: Some(fixture::at(4)), ..all.clone() },
        InstanceFilter { cycle: Some("2026-12-01".to_owned()), ..all.clone() },
        InstanceFilter { task: Some(tasks()[1].clone()), before: Some(9), states, ..all },
    ]
}

fn plainly(plain: &Plain, filter: &InstanceFilter) -> Vec<Instance> {
    let since = filter.since.unwrap_or(Timestamp::from_millis(i64::MIN));
    plain
        .instances()
        .into_iter()
        .filter(|i| filter.states.is_empty() || filter.states.contains(&i.state))
        .filter(|i| filter.task.as_ref().is_none_or(|task| *task == i.task_id))
        .filter(|i| filter.cycle.as_deref().is_none_or(|cycle| cycle == i.cycle.label()))
        .filter(|i| filter.queue.as_deref().is_none_or(|queue| queue == i.queue.as_str()))
        .filter(|i| i.created_at >= since)
        .filter(|i| filter.before.is_none_or(|before| i.created_seq < before))
        .take(filter.limit)
        .collect()
}

/// Asks `history` everything and compares with the plain lists.
fn assert_answers(history: &dyn History, plain: &Plain) {
    for filter in filters() {
        assert_eq!(history.instances(&filter).unwrap(), plainly(plain, &filter), "{filter:?}");
    }
    for number in 0..=plain.made + 1 {
        let expected = plain.instances().into_iter().find(|i| i.created_seq == number);
        assert_eq!(history.instance(&fixture::id(number)).unwrap(), expected);
    }
    let mut ids: Vec<InstanceId> = plain.instances().into_iter().map(|i| i.instance_id).collect();
    ids.sort();
    assert_eq!(history.ids_with_prefix("", usize::MAX).unwrap(), ids);
    let tens: Vec<InstanceId> = ids
        .into_iter()
        .filter(|id| id.as_str().starts_with("0000000000000000001"))
        .take(4)
        .collect();
    assert_eq!(history.ids_with_prefix("0000000000000000001", 4).unwrap(), tens);
    let tip = plain.records.last().map_or(LogSeq(0), |record| record.seq);
    assert_eq!(history.tip().unwrap(), tip);
    for since in [0, 1, 7, tip.0, u64::MAX] {
        let later: Vec<LogRecord> =
            plain.records.iter().filter(|r| r.seq.0 > since).take(5).cloned().collect();
        assert_eq!(history.records(LogSeq(since), 5).unwrap(), later);
    }
    for task in tasks() {
        let ledger = plain.ledger().into_values();
        let fires: Vec<Fire> = ledger.filter(|fire| fire.task_id == task).collect();
        let newest = fires[fires.len().saturating_sub(2)..].to_vec();
        assert_eq!(history.fires(&task, usize::MAX).unwrap(), fires);
        assert_eq!(history.fires(&task, 2).unwrap(), newest);
        for wanted in &fires {
            let counts = |fire: &&Fire| {
                let its =
                    fire.trigger == wanted.trigger || [fire.from, fire.to].contains(&wanted.to);
                fire.from <= wanted.to && wanted.to <= fire.to && its
            };
            let newest = fires.iter().rev().find(counts).cloned();
            let triggers = std::slice::from_ref(&wanted.trigger);
            let found = history.fire_at(&task, triggers, wanted.to, usize::MAX).unwrap();
            assert_eq!(found, newest, "{wanted:?}");
        }
        let never = Timestamp::from_millis(1);
        assert_eq!(history.fire_at(&task, &[], never, usize::MAX).unwrap(), None);
        let revisions: Vec<Revision> = plain
            .rows
            .values()
            .filter_map(|row| {
                if let Row::Revision(revision) = row { Some(revision.clone()) } else { None }
            })
            .filter(|revision| revision.task_id == task)
            .collect();
        assert_eq!(history.revisions(&task).unwrap(), revisions);
    }
}

fn assert_rows(rows: Vec<Row>, plain: &Plain) {
    let rows: BTreeMap<RowKey, Row> = rows.into_iter().map(|row| (row.key(), row)).collect();
    assert_eq!(rows, plain.rows);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_twin_answers_as_plain_lists_do(
        batches in prop::collection::vec(prop::collection::vec(step(), 1..6), 1..16),
    ) {
        let (mut plain, mut store) = (Plain::default(), MemoryStore::new());
        for steps in &batches {
            store.commit(plain.batch(steps)).unwrap();
        }
        assert_answers(&store, &plain);
        assert_rows(store.rows().unwrap(), &plain);
    }
}

proptest! {
    // Each case makes two databases on disk.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn the_store_answers_as_plain_lists_do_live_and_reopened(
        batches in prop::collection::vec(prop::collection::vec(step(), 1..6), 1..16),
        relaxed: bool,
    ) {
        use crate::config::Durability;
        let dir = tempfile::tempdir().unwrap();
        let durability = if relaxed {
            // Never synced while it is open, so all is answered from the overlay.
            Durability::Relaxed { sync_within: std::time::Duration::from_secs(3600) }
        } else {
            Durability::Strict
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut plain = Plain::default();
        let halves = batches.split_at(batches.len() / 2);
        // The second half finds the first in sled: rows there are hidden, changed and dropped.
        for half in [halves.0, halves.1] {
            let opened = super::super::open(dir.path(), durability).unwrap();
            assert_rows(opened.rows, &plain);
            for steps in half {
                runtime.block_on(opened.committer.commit(plain.batch(steps))).unwrap();
            }
            assert_answers(&*opened.history, &plain);
            runtime.block_on(opened.committer.close()).unwrap();
            assert_answers(&*opened.history, &plain);
        }
    }
}

#[test]
fn a_batch_out_of_order_is_refused_and_changes_nothing() {
    let mut store = MemoryStore::new();
    store.commit(fixture::numbered(1)).unwrap();
    let before = store.clone();
    for wrong in [1, 3] {
        match store.commit(fixture::numbered(wrong)) {
            Err(StoreError::OutOfOrder { expected: LogSeq(2), found }) => {
                assert_eq!(found, LogSeq(wrong));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(store, before);
    }
}

#[test]
fn a_dropped_instance_leaves_no_index_entry_behind() {
    let mut store = MemoryStore::new();
    store.commit(fixture::numbered(1)).unwrap();
    let log_only: Vec<Vec<u8>> =
        store.entries.keys().filter(|key| key.starts_with(b"l")).cloned().collect();
    let mut gone = Batch::default();
    gone.rows.insert(RowKey::Instance { instance_id: fixture::id(1) }, None);
    store.commit(gone).unwrap();
    assert_eq!(store.entries.keys().cloned().collect::<Vec<_>>(), log_only);
}
