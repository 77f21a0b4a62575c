//! How the table's indexes are searched and emptied.

use std::collections::BTreeMap;
use std::ops::Bound::Included;

use crate::model::cycle::{Cycle, CycleUnit, Lag};

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

/// The entries, by date and cycle, whose cycle an edge of an instance of `cycle` looks for: those
/// that match, or those that match once they are moved by what the edge lags behind.
pub(in crate::scheduling) fn looked_for<'a, V>(
    dates: &'a BTreeMap<String, BTreeMap<Cycle, V>>,
    cycle: &Cycle,
    lag: Option<&Lag>,
) -> Vec<(&'a Cycle, &'a V)> {
    let Some(lag) = lag else {
        return dates.get(cycle.date()).into_iter().flat_map(|of| matching(of, cycle)).collect();
    };
    let mut found = Vec::new();
    for unit in [CycleUnit::Minute, CycleUnit::Hour, CycleUnit::Day] {
        let Some((first, last)) = cycle.behind(unit, lag) else { continue };
        if first == last {
            found.extend(dates.get(first.date()).and_then(|of| of.get_key_value(&first)));
        } else if first.date() <= last.date() {
            let within = (Included(first.date()), Included(last.date()));
            let cycles = dates.range::<str, _>(within).flat_map(|(_, of)| of);
            let matches = |c: &&'a Cycle| c.unit() == unit && cycle.matches_behind(c, lag);
            found.extend(cycles.filter(|(candidate, _)| matches(candidate)));
        }
    }
    found
}

/// Changes the value of a key and takes the key out if the change says that nothing is left.
pub(in crate::scheduling) fn remove<K, Q, V>(
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
