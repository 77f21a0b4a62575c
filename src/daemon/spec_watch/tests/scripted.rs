//! A directory that behaves as a test wants it to.

use super::*;

/// Does what it is told to, each time.
struct Scripted<S, C>(S, C);

impl<S, C> SpecSource for Scripted<S, C>
where
    S: FnMut() -> Definitions + Send + 'static,
    C: FnMut() -> Result<(), Halted> + Send + 'static,
{
    fn scan(&mut self, _: &Cue) -> Definitions {
        self.0()
    }

    fn look_again_at(&self) -> Option<Duration> {
        None
    }

    fn doubt(&mut self, path: &str, _: bool, _: Duration) {
        panic!("{path} was not heard of")
    }

    fn change(&mut self, _: &[FileChange], _: u32) -> Result<(), Halted> {
        self.1()
    }
}

/// A watch over that, and what its events told.
fn scripted(
    scan: impl FnMut() -> Definitions + Send + 'static,
    change: impl FnMut() -> Result<(), Halted> + Send + 'static,
) -> (tempfile::TempDir, SpecWatch, mpsc::Receiver<Event>) {
    let root = tempfile::tempdir().unwrap();
    let (sender, events) = mpsc::channel(16);
    let (dir, source) = (root.path().to_owned(), Box::new(Scripted(scan, change)));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let watch = start(dir, source, Clock::new(), sender, &tasks, stop);
    (root, watch, events)
}

fn write_a() -> FileChange {
    FileChange::Write { name: "a.yaml".to_owned(), text: spec("1").into_bytes() }
}

#[tokio::test]
async fn a_list_of_names_that_differs_from_the_one_told_last_is_news() {
    let mut lists = vec![vec!["a"], vec!["a"], vec!["a", "b"], vec!["a", "b"]];
    let scan = move || {
        let names = lists.pop().unwrap_or_default();
        let present = Some(names.into_iter().map(str::to_owned).collect());
        Definitions { present, ..empty() }
    };
    let (_root, watch, mut events) = scripted(scan, || Ok(()));
    events.recv().await.unwrap();
    for expected in [None, Some(1), None, Some(0), None] {
        watch.reload().await.unwrap();
        let told = events.try_recv().ok().map(|event| {
            let Event::Definitions(found) = event else { panic!("{event:?}") };
            found.present.unwrap().len()
        });
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn after_a_breakdown_the_core_goes_on_and_whoever_asks_is_told_the_truth() {
    let broken = "the spec directory is not read any more; restart schedd";
    let fault = || -> Result<(), Halted> { panic!("planted") };
    for is_first in [true, false] {
        let mut scans = 0;
        let scan = move || {
            scans += 1;
            assert!(scans == 1 && !is_first, "planted");
            empty()
        };
        let (_root, watch, mut events) = scripted(scan, fault);
        let Some(Event::Definitions(found)) = events.recv().await else { panic!("no event") };
        assert_eq!(found.unreadable.is_some(), is_first);
        if !is_first {
            assert_eq!(watch.change(vec![write_a()], 7).await, Err(Ended::BrokenDown));
            let Some(Event::Definitions(found)) = events.recv().await else { panic!("no event") };
            assert_eq!(found.unreadable.as_deref(), Some(broken));
        }
        assert_eq!(watch.change(vec![write_a()], 7).await, Err(Ended::BrokenDown));
        assert_eq!(watch.reload().await, Err(Ended::BrokenDown));
        assert_eq!(watch.status().as_deref(), Some(broken));
        assert_eq!(Ended::BrokenDown.to_string(), broken);
    }
}

#[tokio::test]
async fn a_change_that_was_done_but_not_to_its_end_is_read_and_one_that_was_not_is_not() {
    for is_done in [true, false] {
        let mut scans = 0;
        let scan = move || {
            scans += 1;
            let changed = (scans > 1).then(|| spec_file("a.yaml", "x"));
            Definitions { changed: changed.into_iter().collect(), ..empty() }
        };
        let rejection = Rejection::new(RejectionCode::Unavailable, "planted");
        let failed = Halted { done: usize::from(is_done), why: rejection.clone() };
        let (_root, watch, mut events) = scripted(scan, move || Err(failed.clone()));
        events.recv().await.unwrap();
        assert_eq!(watch.change(vec![write_a()], 7).await, Ok(Err(rejection)));
        assert_eq!(events.try_recv().is_ok(), is_done);
    }
}

/// A file that was put there just before the start may still be changing when it is first read.
#[tokio::test]
async fn what_was_put_there_just_before_the_start_belongs_to_it() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().to_owned();
    let (sender, mut events) = mpsc::channel(16);
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    fs::write(dir.join("a.yaml"), spec("1")).unwrap();
    let _watch = start(dir.clone(), source(&dir), Clock::new(), sender, &tasks, stop);
    let mut told = Vec::new();
    loop {
        let Some(Event::Definitions(found)) = events.recv().await else { panic!("no event") };
        told.extend(found.changed);
        if !found.more {
            break;
        }
    }
    assert_eq!(told.len(), 1, "the core begins when it knows what there is");
}
