use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::access::spec_dir::SpecDir;
use crate::access::spec_yaml::SpecContext;
use crate::daemon::clock::Clock;
use crate::daemon::spec_watch;
use crate::model::id::TaskId;

const TEXT: &str = "taskId: t.v1\nversion: 1\nowner: o\ntaskType: SHELL\nhandler: 'true'\n";

fn task() -> Vec<TaskId> {
    vec![TaskId::parse("t.v1").unwrap()]
}

fn caller(uid: u32) -> Caller {
    Caller { uid, gid: 0, pid: 0, key: None }
}

/// A desk over a directory, and the core's end of the channel.
fn desk(dir: &std::path::Path) -> (Arc<Desk>, mpsc::Receiver<Event>, Waiting) {
    let (events, core) = mpsc::channel(16);
    let source = Box::new(SpecDir::new(dir.to_owned(), SpecContext::default()));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let specs =
        spec_watch::start(dir.to_owned(), source, Clock::new(), events.clone(), &tasks, stop);
    let waiting = Waiting::default();
    (Arc::new(Desk::new(events, waiting.clone(), specs, Vec::new())), core, waiting)
}

/// Answers the next question as the core does; what definitions came before it.
async fn definitions_before_a_question(
    core: &mut mpsc::Receiver<Event>,
    waiting: &Waiting,
) -> Vec<(usize, Option<u32>)> {
    let mut before = Vec::new();
    while let Some(event) = core.recv().await {
        if let Event::Definitions(found) = event {
            let uid = found.changed.first().and_then(|file| file.uid);
            before.push((found.changed.len() + found.removed.len(), uid));
        } else if let Event::Request { reply, .. } = event {
            waiting.answer(reply, Ok(Reply::Queues(Vec::new())));
            return before;
        } else {
            panic!("{event:?}");
        }
    }
    panic!("no question came")
}

#[tokio::test]
async fn a_change_of_a_file_is_with_the_core_before_it_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (desk, mut core, waiting) = desk(dir.path());
    let write = FileChange::Write { name: "a.yaml".to_owned(), text: TEXT.into() };
    let remove = FileChange::Remove { name: "a.yaml".to_owned(), tasks: task() };
    core.recv().await.unwrap();
    for (change, expected) in [(write, (1, Some(7))), (remove, (1, None))] {
        let asking = Arc::clone(&desk);
        let answer =
            tokio::spawn(async move { asking.change_files(vec![change], caller(7)).await });
        let before = definitions_before_a_question(&mut core, &waiting).await;
        assert_eq!(before, [expected]);
        assert_eq!(answer.await.unwrap(), Ok(Reply::Done));
    }
}

#[tokio::test]
async fn a_change_that_is_refused_is_answered_without_the_core() {
    let dir = tempfile::tempdir().unwrap();
    let (desk, _core, _) = desk(dir.path());
    let remove = FileChange::Remove { name: "a.yaml".to_owned(), tasks: task() };
    let refused = desk.change_files(vec![remove], caller(7)).await.unwrap_err();
    assert_eq!(refused.code, RejectionCode::NotFound);
}
