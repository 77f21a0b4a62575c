//! How the table's indexes are searched and emptied.

use std::collections::BTreeMap;

use crate::model::cycle::{Cycle, CycleUnit};

/// The entries of one date whose cycle matches `cycle`. A run matches but itself and its coarser
/// cuts: these are looked up, so that a burst of runs does not look through each other.
pub(super) fn matching<'a, V>(
    cycles: &'a BTreeMap<Cycle, V>,
    cycle: &Cycle,
) -> impl Iterator<Item = (&'a Cycle, &'a V)> + use<'a, V> {
    let units = [CycleUnit::Run, CycleUnit::Minute, CycleUnit::Hour, CycleUnit::Day];
    let few = (cycle.unit() == CycleUnit::Run).then(|| units.map(|unit| cycle.cut_to(unit)));
    let all = few.is_none().then(|| cycle.clone());
    let found = few.into_iter().flatten().filter_map(|cut| cycles.get_key_value(&cut));
    let searched = all
        .into_iter()
        .flat_map(|cycle| cycles.iter().filter(move |(candidate, _)| candidate.matches(&cycle)));
    found.chain(searched)
}

/// Changes the value of a key and takes the key out if the change says that nothing is left.
pub(super) fn remove<K, Q, V>(
    map: &mut BTreeMap<K, V>,
    key: &Q,
    change: impl FnOnce(&mut V) -> bool,
) where
    K: Ord + std::borrow::Borrow<Q>,
    Q: Ord + ?Sized,
{
    if let Some(value) = map.get_mut(key)
        && change(value)
    {
        map.remove(key);
    }
}

/// The value of a key that is text, made where there is none: without a copy of the text where there
/// is one.
pub(super) fn entry<'a, V: Default>(map: &'a mut BTreeMap<String, V>, key: &str) -> &'a mut V {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), V::default());
    }
    map.entry(key.to_owned()).or_default()
}
