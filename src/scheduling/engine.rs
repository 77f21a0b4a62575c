//! The engine: one event in, its effects out. Routing only; the rules are in `lifecycle`.

use std::sync::Arc;

use super::answers;
use super::basis;
use super::explain;
use super::forecast;
use super::lifecycle::{
    admit, arrive, backfill, cancel, clock, connect, data, definitions, dispatch, emit, hold,
    pause, preempt, priority, repeat, report, retry, rollback, skip, stop, submit, tick,
};
use super::state::{Process, State};
use super::turn::Turn;
use crate::model::command::Effects;
use crate::model::event::{Event, Report};
use crate::model::id::{ExecutorId, LogSeq};
use crate::model::record::{Record, Row, Target};
use crate::model::request::{Answer, Caller, Reply, Request};
use crate::model::settings::Settings;
use crate::model::time::Timestamp;

/// The core that decides: a function of (state, event, now).
///
/// It does no input or output, reads no clock and starts nothing. Whoever drives it makes
/// `Effects::commit` durable, then carries out `Effects::commands`, in this order.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(super) state: State,
}

impl Engine {
    /// The engine as the store remembers it: `rows` in any order, `tip` the last log entry.
    #[must_use]
    pub fn load(
        settings: Arc<Settings>,
        process: Process,
        rows: impl IntoIterator<Item = Row>,
        tip: LogSeq,
    ) -> Self {
        let mut state = State::new(settings, process, tip);
        state.load(rows);
        Self { state }
    }

    /// The first turn of a process: notes in the log that the daemon started, and lets no wait
    /// outlast its length if the clock was ahead when it began.
    #[must_use]
    pub fn start(&mut self, now: Timestamp) -> Effects {
        let mut turn = Turn::new(&mut self.state, now, None);
        let (version, pid) = (turn.state.process.version.clone(), turn.state.process.pid);
        turn.record(Record::DaemonStarted { version, pid });
        clock::bound_waits(&mut turn);
        hold::complete(&mut turn);
        turn.finish()
    }

    /// Handles one event at a time that is not before that of the event before, unless the event
    /// is that the clock was set.
    #[must_use]
    pub fn handle(&mut self, now: Timestamp, event: Event) -> Effects {
        let uid = match &event {
            Event::Request { caller, .. } => Some(caller.uid),
            Event::Tick
            | Event::ClockStepped { .. }
            | Event::ZonesReread
            | Event::Definitions(_)
            | Event::FilesArrived(_)
            | Event::FilesGone(_)
            | Event::FilesRead
            | Event::OutputsLooked(_)
            | Event::ExecutorConnected(_)
            | Event::ExecutorReport { .. }
            | Event::ExecutorLost { .. }
            | Event::Stop(_) => None,
        };
        let mut turn = Turn::new(&mut self.state, now, uid);
        route(&mut turn, event);
        settle(&mut turn);
        turn.finish()
    }

    /// When [`Event::Tick`] is wanted next; `None`: not before something happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = if self.state.opened { self.state.agenda.next() } else { None };
        let hears_until = self.state.stopping.and_then(|stopping| stopping.hears_until);
        due.into_iter().chain(hears_until).min()
    }

    /// Executors that have an attempt, whether or not the configuration still names them: what
    /// they run ends and is told before they go.
    #[must_use]
    pub fn executors_at_work(&self) -> Vec<ExecutorId> {
        self.state.usage.executors().cloned().collect()
    }

    /// Files of earlier arrivals that were there when last heard of, each with its pattern: whoever
    /// looks for files tells which of them are gone.
    #[must_use]
    pub fn files_taken(&self) -> Vec<(String, String)> {
        let there = self.state.arrivals().filter(|arrival| arrival.gone_at.is_none());
        there.map(|arrival| (arrival.pattern.clone(), arrival.path.clone())).collect()
    }

    /// What differs between this engine and one loaded from the store: nothing, ever.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        self.state.differences(&other.state)
    }
}

fn route(turn: &mut Turn<'_>, event: Event) {
    match event {
        Event::Tick => tick::all(turn),
        Event::ClockStepped { by_ms } => clock::stepped(turn, by_ms),
        Event::ZonesReread => clock::zones_reread(turn),
        Event::Definitions(read) => definitions::read(turn, read),
        Event::FilesArrived(arrivals) => arrive::arrived(turn, arrivals),
        Event::FilesGone(paths) => arrive::gone(turn, paths),
        Event::FilesRead => turn.state.files_unread = false,
        Event::OutputsLooked(looks) => data::looked(turn, looks),
        Event::Request { request, caller, reply } => {
            let answer = once(turn, request, caller);
            turn.reply(reply, answer);
        }
        Event::ExecutorConnected(hello) => connect::hello(turn, &hello),
        Event::ExecutorReport { executor, incarnation, report } => {
            let current = turn.state.roster.connection(&executor).map(|c| c.incarnation);
            if current != Some(incarnation) {
                return;
            }
            match report {
                Report::Started(started) => report::started(turn, &started),
                Report::Finished(done) => report::finished(turn, &executor, &done),
                Report::Heartbeat(load) => {
                    turn.state.roster.heartbeat(&executor, load, turn.now);
                }
            }
        }
        Event::ExecutorLost { executor, incarnation, why } => {
            connect::gone(turn, &executor, incarnation, &why);
        }
        Event::Stop(mode) => stop::request(turn, mode),
    }
}

/// Ends of a turn: what waits is looked at, what ended triggers others, what is READY starts,
/// at the cost of what gives way to it.
fn settle(turn: &mut Turn<'_>) {
    loop {
        admit::all(turn);
        match turn.next_ended() {
            Some(id) => emit::ended(turn, &id),
            None => break,
        }
    }
    dispatch::all(turn);
    preempt::all(turn);
    data::tell(turn);
    stop::leave(turn);
}

/// Carries out an order that has a key once, however often it is sent.
fn once(turn: &mut Turn<'_>, request: Request, caller: Caller) -> Answer {
    let Some(keyed) = repeat::keyed(caller, &request) else { return answer(turn, request) };
    if let Some(earlier) = repeat::earlier(turn, &keyed) {
        return earlier;
    }
    let answer = answer(turn, request);
    repeat::keep(turn, keyed, &answer);
    answer
}

fn answer(turn: &mut Turn<'_>, request: Request) -> Answer {
    match request {
        Request::Submit { task, submission } => submit::request(turn, &task, &submission),
        Request::Backfill { task, body } => backfill::request(turn, &task, &body),
        Request::Cancel { instance, downstream, stored } => {
            cancel::request(turn, &instance, downstream, stored.as_deref())
        }
        Request::Skip { instance, stored } => skip::request(turn, &instance, stored.as_deref()),
        Request::Retry { instance, same_revision, stored, below } => {
            retry::request(turn, &instance, same_revision, stored.map(|i| *i), below)
        }
        Request::FailedBelow(id) => Ok(Reply::Instances(retry::failed_below(turn.state, &id))),
        Request::Pause { target, reason, until } => {
            pause::request(turn, target, reason, until, false)
        }
        Request::Freeze { instance, reason, until } => {
            pause::request(turn, Target::Instance(instance), reason, until, true)
        }
        Request::Resume { target } => pause::resume(turn, &target),
        Request::SetPriority { target, priority } => {
            priority::request(turn, target, Some(priority))
        }
        Request::ResetPriority { target } => priority::request(turn, target, None),
        Request::Emit { name, params } => emit::request(turn, &name, &params),
        Request::Tasks => Ok(Reply::Tasks(answers::tasks(turn.state))),
        Request::Task(task) => answers::task(turn.state, &task),
        Request::Live(ids) => Ok(Reply::Live(answers::live(turn.state, &ids))),
        Request::Status => Ok(Reply::Status(Box::new(answers::status(turn.state)))),
        Request::Queues => Ok(Reply::Queues(answers::queues(turn.state))),
        Request::Executors => Ok(Reply::Executors(answers::executors(turn.state))),
        Request::Next { task, from, count } => {
            answers::next(turn.state, task.as_ref(), from.unwrap_or(turn.now), count)
        }
        Request::Rollback { task, revision } => rollback::request(turn, &task, *revision),
        Request::Unpin { task } => rollback::unpin(turn, &task),
        Request::Plan { files, whole } => {
            Ok(Reply::Plan(Box::new(forecast::plan(turn.state, turn.now, files, whole))))
        }
        Request::Explain(id) => {
            Ok(Reply::Explanation(explain::instance(turn.state, &id).map(Box::new)))
        }
        Request::ExplainTask { task, at } => explain::task(turn.state, turn.now, &task, at),
        Request::Graph => Ok(Reply::Graph(Box::new(explain::graph(turn.state)))),
        Request::SimulationBasis => {
            Ok(Reply::SimulationBasis(Box::new(basis::basis(turn.state, turn.now))))
        }
        Request::Shutdown(mode) => {
            stop::request(turn, mode);
            Ok(Reply::Done)
        }
    }
}
