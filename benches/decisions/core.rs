//! The core driven by hand: everything that it starts runs until it is told that it has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use sched::access::spec_yaml::{self, SpecContext};
use sched::model::command::{Command, Effects};
use sched::model::event::{
    AttemptRef, Definitions, Event, Finished, Hello, Outcome, Report, SpecFile, Started, TaskResult,
};
use sched::model::id::{ExecutorId, LogSeq, ReplyTo, TaskId};
use sched::model::request::{Caller, Request, SubmitBody};
use sched::model::settings::Settings;
use sched::model::spec::{DepType, Dependency, Strength, TaskSpec};
use sched::model::time::Timestamp;
use sched::scheduling::{Engine, Process};

/// See the module.
pub(crate) struct Core {
    engine: Engine,
    now: Timestamp,
    started: VecDeque<AttemptRef>,
    /// Events that the engine was given.
    pub(crate) handled: u64,
}

/// The id of a task that the bench calls `name`.
fn id(name: &str) -> TaskId {
    TaskId::parse(&format!("bench.{name}.v1")).unwrap()
}

/// A task that nothing starts by itself, any number of which may run.
pub(crate) fn task(name: &str) -> TaskSpec {
    const TEXT: &str =
        "taskId: bench.x.v1\nversion: 1\nowner: bench\ntaskType: EXEC\nhandler: 'true'\n";
    static ONE: std::sync::OnceLock<TaskSpec> = std::sync::OnceLock::new();
    let read = || {
        let file = spec_yaml::read("/x.yaml", TEXT.as_bytes(), &SpecContext::default());
        let mut spec = TaskSpec::clone(&file.specs[0]);
        spec.max_concurrent = None;
        spec
    };
    TaskSpec { task_id: id(name), ..ONE.get_or_init(read).clone() }
}

/// One that waits for these.
pub(crate) fn depends(name: &str, upstreams: impl IntoIterator<Item = String>) -> TaskSpec {
    let edge = |upstream: String| Dependency {
        task_id: id(&upstream),
        dep_type: DepType::Success,
        strength: Strength::Strong,
        when: None,
        cycle_offset: 0,
    };
    TaskSpec { depends_on: upstreams.into_iter().map(edge).collect(), ..task(name) }
}

/// The settings of a daemon whose one executor has so many slots, with a change.
fn settings(slots: usize, change: impl FnOnce(&mut Settings)) -> Arc<Settings> {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("schedd.yaml");
    let text = format!(
        "timezone: UTC\nstateDir: {}/state\n\
         executors: [{{id: local, taskTypes: ['*'], slots: 1}}]\n",
        place.path().display()
    );
    std::fs::write(&file, text).unwrap();
    let mut settings = Settings::clone(&sched::config::Config::load(Some(&file)).unwrap().settings);
    settings.executors[0].slots = u32::try_from(slots).unwrap();
    change(&mut settings);
    Arc::new(settings)
}

impl Core {
    /// A daemon's core that has read these definitions and has an executor of so many slots.
    pub(crate) fn new(
        specs: Vec<TaskSpec>,
        slots: usize,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let now = Timestamp::parse("2026-12-01T01:00:00Z").unwrap();
        let boot_id: Arc<str> = "boot".into();
        let process = Process {
            version: String::new(),
            pid: 1,
            boot_id: Arc::clone(&boot_id),
            started_at: now,
        };
        let settings = settings(slots, change);
        let engine = Engine::load(settings, process, [], LogSeq(0));
        let mut core = Self { engine, now, started: VecDeque::new(), handled: 0 };
        let file = |spec: TaskSpec| SpecFile {
            path: format!("/specs/{}.yaml", spec.task_id),
            hash: spec.task_id.to_string(),
            specs: vec![Arc::new(spec)],
            ..SpecFile::default()
        };
        let changed = specs.into_iter().map(file).collect();
        core.event(Event::Definitions(Definitions { changed, ..Definitions::default() }));
        core.event(Event::ExecutorConnected(Hello {
            executor: ExecutorId::from("local"),
            incarnation: 1,
            connection: 1,
            pid: 2,
            boot_id,
            running: Vec::new(),
            frozen: Some(Vec::new()),
            lost: Vec::new(),
            finished: Vec::new(),
        }));
        core
    }

    fn event(&mut self, event: Event) {
        let effects: Effects = self.engine.handle(self.now, event);
        self.handled += 1;
        for command in effects.commands {
            if let Command::Run(dispatch) = command {
                self.started.push_back(dispatch.of);
            }
        }
    }

    pub(crate) fn tick(&mut self) {
        self.event(Event::Tick);
    }

    pub(crate) fn submit(&mut self, name: &str) {
        let caller = Caller { uid: 0, gid: 0, pid: 0, key: None };
        let request =
            Request::Submit { task: id(name), submission: Box::new(SubmitBody::default()) };
        self.event(Event::Request { request, caller, reply: ReplyTo(1) });
    }

    /// Whether something has been dispatched that has not been told to have started.
    pub(crate) fn has_started(&self) -> bool {
        !self.started.is_empty()
    }

    /// The process of the attempt that was dispatched first comes to be.
    pub(crate) fn next_started(&mut self) -> AttemptRef {
        let of = self.started.pop_front().unwrap();
        let report = Report::Started(Started { of: of.clone(), pid: 9, at: self.now });
        self.report(report);
        of
    }

    pub(crate) fn finish(&mut self, of: &AttemptRef) {
        let done = Finished {
            of: of.clone(),
            started_at: Some(self.now),
            finished_at: self.now,
            outcome: Outcome::Exited { code: 0 },
            result: TaskResult::default(),
            killed: false,
            user_ms: Some(1),
            system_ms: Some(1),
            max_rss_bytes: Some(1 << 20),
            output_bytes: Some(0),
        };
        self.report(Report::Finished(Box::new(done)));
    }

    fn report(&mut self, report: Report) {
        let executor = ExecutorId::from("local");
        self.event(Event::ExecutorReport { executor, incarnation: 1, report });
    }
}
