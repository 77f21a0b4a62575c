use super::*;

const SETTLE: Duration = Duration::from_millis(500);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A file of this many bytes, written at that time.
const fn file(size: u64, mtime_ns: i64) -> Sight {
    Sight::File(FileIdentity { device: 1, inode: 7, size, mtime_ns })
}

fn key(path: &str) -> Key {
    (Arc::from("/in/*"), Arc::from(path))
}

/// The pattern `/in/*`, followed for these tasks.
fn followed(settle: Duration, listeners: &[&str]) -> BTreeMap<Arc<str>, Wanted> {
    let listeners = listeners.iter().map(|task| TaskId::parse(task).unwrap()).collect();
    BTreeMap::from([(Arc::from("/in/*"), Wanted { settle, listeners })])
}

/// A tracker of one pattern, told as a list of sightings.
struct Told {
    tracker: Tracker,
}

impl Told {
    fn new() -> Self {
        let mut tracker = Tracker::default();
        tracker.follow(&followed(SETTLE, &["a.t.v1"]));
        tracker.tell_news(&mut Found::default());
        Self { tracker }
    }

    /// One sighting of `/in/a`; what it made certain, as `+size` and `-`.
    fn see(&mut self, now: u64, sight: Sight, is_closed: bool) -> String {
        let mut found = Found::default();
        self.tracker.see(ms(now), &key("/in/a"), sight, is_closed, &mut found);
        let gone = found.gone.iter().map(|_| "-".to_owned());
        gone.chain(found.arrived.iter().map(|a| format!("+{}", a.identity.size))).collect()
    }
}

#[test]
fn a_file_is_taken_once_it_was_unchanged_for_the_settle_time() {
    let mut told = Told::new();
    assert_eq!(told.see(0, file(1, 0), false), "");
    assert_eq!(told.tracker.next_deadline(), Some(ms(500)));
    assert_eq!(told.see(400, file(2, 1), false), "");
    assert_eq!(told.tracker.next_deadline(), Some(ms(900)));
    assert_eq!(told.see(899, file(2, 1), false), "");
    assert_eq!(told.see(900, file(2, 1), false), "+2");
    assert_eq!(told.tracker.next_deadline(), None);
    assert_eq!(told.see(5000, file(2, 1), false), "");
}

#[test]
fn a_closed_file_is_taken_after_one_more_look() {
    let mut told = Told::new();
    assert_eq!(told.see(0, file(1, 0), false), "");
    assert_eq!(told.see(10, file(2, 1), true), "");
    assert_eq!(told.tracker.due(ms(30)), [key("/in/a")]);
    assert_eq!(told.see(30, file(2, 1), false), "+2");
}

#[test]
fn a_file_whose_time_is_set_after_it_was_closed_arrives_once() {
    let mut told = Told::new();
    assert_eq!(told.see(0, file(2, 1_000), true), "");
    assert_eq!(told.see(1, file(2, 7), true), "");
    assert_eq!(told.see(21, file(2, 7), false), "+2");
}

#[test]
fn a_closed_file_that_is_opened_again_waits_for_the_settle_time() {
    let mut told = Told::new();
    assert_eq!(told.see(0, file(1, 0), true), "");
    assert_eq!(told.see(10, file(2, 1), false), "");
    assert_eq!(told.see(40, file(2, 1), false), "");
    assert_eq!(told.see(510, file(2, 1), false), "+2");
}

#[test]
fn the_same_name_with_new_content_is_a_new_arrival() {
    let mut told = Told::new();
    told.see(0, file(1, 0), true);
    assert_eq!(told.see(20, file(1, 0), false), "+1");
    assert_eq!(told.see(1000, file(1, 9), true), "");
    assert_eq!(told.see(1020, file(1, 9), false), "+1");
}

#[test]
fn a_file_that_goes_after_it_was_taken_is_told_and_may_come_again() {
    let mut told = Told::new();
    told.see(0, file(1, 0), true);
    assert_eq!(told.see(20, file(1, 0), false), "+1");
    assert_eq!(told.see(30, Sight::Absent, false), "-");
    assert_eq!(told.see(40, Sight::Absent, false), "");
    told.see(50, file(1, 0), true);
    assert_eq!(told.see(70, file(1, 0), false), "+1");
}

#[test]
fn a_file_that_goes_before_it_was_taken_is_not_told_at_all() {
    let mut told = Told::new();
    told.see(0, file(1, 0), true);
    assert_eq!(told.see(5, Sight::Absent, false), "");
    assert_eq!(told.tracker.next_deadline(), None);
}

#[test]
fn what_cannot_be_looked_at_is_neither_gone_nor_settled() {
    let mut told = Told::new();
    told.see(0, file(1, 0), false);
    assert_eq!(told.see(500, Sight::Unknown, false), "");
    assert_eq!(told.tracker.next_deadline(), Some(ms(1000)));
    assert_eq!(told.see(1000, file(1, 0), false), "+1");
    assert_eq!(told.see(1100, Sight::Unknown, false), "");
}

#[test]
fn a_complete_reading_tells_what_is_missing_and_an_incomplete_one_does_not() {
    let mut told = Told::new();
    told.see(0, file(1, 0), true);
    told.see(20, file(1, 0), false);
    let pattern: Arc<str> = Arc::from("/in/*");
    let mut found = Found::default();
    told.tracker.see_all(ms(30), &pattern, BTreeMap::new(), false, &mut found);
    assert_eq!(found, Found::default());
    told.tracker.see_all(ms(30), &pattern, BTreeMap::new(), true, &mut found);
    assert_eq!(found.gone, BTreeSet::from([Arc::from("/in/a")]));
}

#[test]
fn a_pattern_that_is_followed_again_starts_anew() {
    let mut told = Told::new();
    told.see(0, file(1, 0), true);
    told.see(20, file(1, 0), false);
    told.tracker.follow(&BTreeMap::new());
    assert_eq!(told.see(30, file(1, 0), true), "");
    told.tracker.follow(&followed(SETTLE, &["a.t.v1"]));
    told.see(40, file(1, 0), true);
    assert_eq!(told.see(60, file(1, 0), false), "+1");
}

#[test]
fn no_settle_time_takes_a_file_at_the_second_look() {
    let mut tracker = Tracker::default();
    tracker.follow(&followed(Duration::ZERO, &["a.t.v1"]));
    let mut found = Found::default();
    tracker.see(ms(5), &key("/in/a"), file(1, 0), false, &mut found);
    assert_eq!(tracker.due(ms(5)), [key("/in/a")]);
    tracker.see(ms(5), &key("/in/a"), file(1, 0), false, &mut found);
    assert_eq!(found.arrived.len(), 1);
}

#[test]
fn a_taken_file_that_changes_and_goes_before_it_settled_is_told() {
    let mut told = Told::new();
    told.see(0, file(1, 0), true);
    assert_eq!(told.see(20, file(1, 0), false), "+1");
    assert_eq!(told.see(30, file(2, 3), false), "");
    assert_eq!(told.see(40, Sight::Absent, false), "-");
}

#[test]
fn what_an_earlier_process_took_is_told_again_or_told_gone() {
    let taken = ["/in/a", "/in/b", "/in/c"].map(|path| ("/in/*".to_owned(), path.to_owned()));
    let mut tracker = Tracker::knowing(taken);
    tracker.follow(&followed(SETTLE, &["a.t.v1"]));
    let mut found = Found::default();
    let seen = |at| {
        let sight = (file(1, 0), ms(at));
        BTreeMap::from([(Arc::from("/in/a"), sight), (Arc::from("/in/c"), sight)])
    };
    tracker.see_all(ms(0), &Arc::from("/in/*"), seen(0), true, &mut found);
    assert_eq!(found.gone, BTreeSet::from([Arc::from("/in/b")]));
    tracker.see(ms(10), &key("/in/c"), Sight::Absent, false, &mut found);
    assert!(found.gone.contains("/in/c"), "it went before it settled anew");
    tracker.see(ms(500), &key("/in/a"), file(1, 0), false, &mut found);
    assert_eq!(found.arrived.iter().map(|a| a.path.as_str()).collect::<Vec<_>>(), ["/in/a"]);
}

#[test]
fn whoever_is_new_to_a_pattern_is_told_of_what_is_there() {
    let mut told = Told::new();
    told.see(0, file(1, 0), true);
    assert_eq!(told.see(20, file(1, 0), false), "+1");
    let mut news = |listeners: &[&str]| {
        let mut found = Found::default();
        told.tracker.follow(&followed(SETTLE, listeners));
        told.tracker.tell_news(&mut found);
        found.arrived.len()
    };
    assert_eq!(news(&["a.t.v1"]), 0);
    assert_eq!(news(&["a.t.v1", "b.t.v1"]), 1);
    assert_eq!(news(&["b.t.v1"]), 0);
    assert_eq!(news(&["a.t.v1", "b.t.v1"]), 1);
}
