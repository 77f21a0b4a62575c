//! What is lent, against a walk along all paths.

use proptest::prelude::*;

use super::*;
use crate::model::fixture;
use crate::model::id::TaskId;
use crate::model::instance::{Edge, InstanceState};
use crate::model::spec::{DepType, Strength};
use crate::model::time::Timestamp;

type Table = BTreeMap<InstanceId, Instance>;

const NODES: usize = 9;

fn task(n: usize) -> TaskId {
    TaskId::parse(&format!("t{n}.v1")).unwrap()
}

fn named(n: usize) -> InstanceId {
    InstanceId::derive(0, &[&n.to_string()])
}

/// An instance that waits for those with these numbers, if it waits.
fn instance(n: usize, waits: bool, priority: u8, upstreams: &[usize]) -> Instance {
    let state = if waits { InstanceState::Pending } else { InstanceState::Ready };
    let mut i = fixture::instance(named(n), &task(n), state, Timestamp::from_millis(0));
    i.priority = Priority::new(priority).unwrap();
    let edges = upstreams
        .iter()
        .map(|u| Edge {
            task_id: task(*u),
            dep_type: DepType::Success,
            strength: Strength::Strong,
            instance_id: Some(named(*u)),
            cycle_offset: 0,
            unanswered: false,
        })
        .collect::<Vec<_>>();
    i.edges = edges.into();
    i
}

/// The rule, word by word: the best of the waiting CRITICAL and HIGH ones within three edges, along
/// those that wait.
fn lent(table: &Table, to: &InstanceId, edges: usize) -> Option<Priority> {
    if edges == 0 {
        return None;
    }
    let dependents = table.values().filter(|i| {
        i.is_waiting() && i.edges.iter().any(|edge| edge.instance_id.as_ref() == Some(to))
    });
    let own = |i: &Instance| Some(i.priority).filter(|p| p.value() <= 2);
    dependents.flat_map(|i| own(i).into_iter().chain(lent(table, &i.instance_id, edges - 1))).min()
}

fn put(index: &mut Inheritance, table: &mut Table, new: Instance) -> Vec<InstanceId> {
    let old = table.get(&new.instance_id).cloned();
    let changed = index.replace(old.as_ref(), &new, |id| table.get(id));
    table.insert(new.instance_id.clone(), new);
    changed.into_iter().map(|(id, _)| id).collect()
}

fn change() -> impl Strategy<Value = (usize, bool, u8, Vec<usize>)> {
    (0..NODES).prop_flat_map(|n| {
        let upstreams = prop::collection::btree_set(0..n.max(1), 0..=n.min(4));
        let upstreams = upstreams.prop_map(move |set| set.into_iter().filter(|u| *u < n).collect());
        let priority = prop_oneof![0..3_u8, 0..10_u8];
        (Just(n), prop::bool::weighted(0.8), priority, upstreams)
    })
}

proptest! {
    #[test]
    fn it_is_what_a_walk_along_all_paths_finds(
        changes in prop::collection::vec(change(), 1..60),
    ) {
        let (mut index, mut table) = (Inheritance::default(), Table::new());
        for (n, waits, priority, upstreams) in changes {
            let before: Vec<Option<Priority>> =
                (0..NODES).map(|n| index.lent(&named(n))).collect();
            let told = put(&mut index, &mut table, instance(n, waits, priority, &upstreams));
            for (n, before) in before.into_iter().enumerate() {
                let now = index.lent(&named(n));
                prop_assert_eq!(now, lent(&table, &named(n), 3), "node {}", n);
                prop_assert_eq!(told.contains(&named(n)), now != before, "told of node {}", n);
            }
        }
        let (mut anew, mut loaded) = (Inheritance::default(), Table::new());
        for i in table.values().rev() {
            put(&mut anew, &mut loaded, i.clone());
        }
        prop_assert_eq!(anew, index, "loading equals living");
    }
}

/// A circle cannot be loaded, but rows of other times may hold one.
#[test]
fn rows_in_a_circle_are_counted_back_to_nothing() {
    let (mut index, mut table) = (Inheritance::default(), Table::new());
    put(&mut index, &mut table, instance(0, true, 0, &[1]));
    put(&mut index, &mut table, instance(1, true, 1, &[0]));
    assert_eq!(index.lent(&named(1)), Priority::new(0));
    put(&mut index, &mut table, instance(0, false, 0, &[1]));
    put(&mut index, &mut table, instance(1, false, 1, &[0]));
    assert_eq!(index, Inheritance::default());
}

/// Four layers of 100, each waiting for all of the one before, have a million paths.
#[test]
fn many_paths_are_no_many_steps() {
    let (mut index, mut table) = (Inheritance::default(), Table::new());
    for n in 0..400 {
        let below = (n / 100) * 100;
        let upstreams: Vec<usize> = (below.max(100) - 100..below).collect();
        put(&mut index, &mut table, instance(n, true, 4, &upstreams));
    }
    for n in 300..400 {
        let upstreams: Vec<usize> = (200..300).collect();
        let told = put(&mut index, &mut table, instance(n, true, 0, &upstreams));
        // Only the first of the layer brings anything new to the 300 before it.
        assert_eq!(told.len(), if n == 300 { 300 } else { 0 });
    }
    assert_eq!(index.lent(&named(0)), Priority::new(0));
}
