use super::*;
use crate::model::event::SpecFile;

const SECOND: Duration = Duration::from_secs(1);

/// After a first reading of everything that took no time.
fn plan() -> Plan {
    let mut plan = Plan::new(Duration::ZERO);
    assert_eq!(plan.due(Duration::ZERO), Some(true));
    plan.done(Duration::ZERO, Duration::ZERO, true, false, None);
    assert_eq!(plan.due(limits::RESCAN_EVERY - SECOND), None);
    plan
}

#[test]
fn a_complete_change_is_looked_at_at_once_and_another_soon_however_often_it_is_told() {
    let mut plan = plan();
    for n in 0..5 {
        plan.hinted(SECOND + Duration::from_millis(n), false);
    }
    assert_eq!(plan.next(), SECOND + GLANCE_AFTER);
    plan.hinted(SECOND, true);
    assert_eq!(plan.due(SECOND), Some(false));
}

#[test]
fn what_may_still_be_changing_is_looked_at_again() {
    let mut plan = plan();
    plan.hinted(SECOND, true);
    plan.done(SECOND, SECOND, false, false, Some(2 * SECOND));
    assert!(!plan.is_quiet());
    assert_eq!(plan.next(), 2 * SECOND);
    // A time that has passed is no reason to look without a pause.
    plan.done(2 * SECOND, 2 * SECOND, false, false, Some(SECOND));
    assert_eq!(plan.next(), 2 * SECOND + GLANCE_AFTER);
    plan.done(2 * SECOND, 2 * SECOND, false, false, None);
    assert!(plan.is_quiet());
    assert_eq!(plan.next(), limits::RESCAN_EVERY);
}

#[test]
fn readings_take_half_of_the_time_at_most_and_one_of_everything_delays_no_single_file() {
    let mut plan = plan();
    plan.whole(SECOND);
    plan.done(SECOND, 3 * SECOND, true, false, None);
    plan.whole(3 * SECOND);
    assert_eq!(plan.next(), 5 * SECOND);
    plan.hinted(3 * SECOND, true);
    assert_eq!(plan.due(3 * SECOND), Some(false));
    plan.done(3 * SECOND, 4 * SECOND, false, false, None);
    plan.hinted(4 * SECOND, true);
    assert_eq!((plan.next(), plan.due(5 * SECOND)), (5 * SECOND, Some(true)));
}

#[test]
fn without_events_everything_is_looked_at_every_second() {
    let mut plan = plan();
    plan.done(SECOND, SECOND, true, true, None);
    assert_eq!(plan.next(), 2 * SECOND);
}

fn files(count: usize) -> Vec<SpecFile> {
    let file = |n: usize| SpecFile { path: n.to_string(), ..SpecFile::default() };
    (0..count).map(file).collect()
}

#[test]
fn a_large_reading_comes_in_parts_changes_first_then_what_is_gone() {
    for (changed, removed, sizes) in [
        (0, 0, vec![(0, 0)]),
        (1, 1, vec![(1, 1)]),
        (63, 1, vec![(63, 1)]),
        (64, 1, vec![(64, 0), (0, 1)]),
        (150, 0, vec![(64, 0), (64, 0), (22, 0)]),
        (65, 130, vec![(64, 0), (1, 0), (0, 64), (0, 64), (0, 2)]),
    ] {
        let found = Definitions {
            changed: files(changed),
            removed: (0..removed).map(|n| format!("gone{n}")).collect(),
            present: Some(vec!["there".to_owned()]),
            ..Definitions::default()
        };
        let parts = parts(found.clone());
        let lengths: Vec<_> = parts.iter().map(|p| (p.changed.len(), p.removed.len())).collect();
        assert_eq!(lengths, sizes);
        let (last, others) = parts.split_last().unwrap();
        assert!(others.iter().all(|part| part.more && part.present.is_none()));
        assert_eq!((last.more, &last.present), (false, &found.present));
        let told: Vec<_> = parts.iter().flat_map(|part| part.changed.clone()).collect();
        assert_eq!(told, found.changed);
        let gone: Vec<_> = parts.iter().flat_map(|part| part.removed.clone()).collect();
        assert_eq!(gone, found.removed);
    }
}
