//! Requirement D4; design, 'Order' and 'Attempts'.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::bench::Bench;
use super::build::{after, retry, settings, task};
use crate::model::command::Command;
use crate::model::event::{Event, Hello, Outcome};
use crate::model::id::{InstanceId, QueueName};
use crate::model::instance::InstanceState::{
    Cancelled, Failed, Ready, Running, Succeeded, Timeout,
};
use crate::model::instance::{Instance, Reason};
use crate::model::priority::Priority;
use crate::model::record::{Record, Target};
use crate::model::request::Request;
use crate::model::settings::{Discipline, LevelWeights};
use crate::model::spec::TaskSpec;

const ENDING: (crate::model::instance::InstanceState, Option<Reason>) =
    (Running, Some(Reason::Cancelling));

fn at(name: &str, priority: u8) -> TaskSpec {
    let priority = Priority::new(priority).unwrap();
    TaskSpec { priority, max_concurrent: None, ..task(name) }
}

fn gives_way(name: &str, priority: u8) -> TaskSpec {
    TaskSpec { preemptible: true, ..at(name, priority) }
}

fn term() -> Outcome {
    Outcome::Signalled { signal: 15, name: "TERM".to_owned() }
}

fn bench(slots: u32, specs: Vec<TaskSpec>) -> Bench {
    let mut bench = Bench::bare(settings(&[("local", slots)], &[("default", 1, None)]));
    bench.specs(specs);
    bench
}

/// Who is being ended for somebody else.
fn ending(bench: &Bench) -> Vec<InstanceId> {
    let mut found: Vec<&Instance> =
        bench.instances().filter(|i| (i.state, i.reason) == ENDING).collect();
    found.sort_by_key(|i| i.created_seq);
    found.into_iter().map(|i| i.instance_id.clone()).collect()
}

fn is_kill(command: &Command) -> bool {
    matches!(command, Command::Kill { .. })
}

#[test]
fn a_preemptible_one_gives_its_slot_to_a_higher_level_and_comes_back() {
    let tried = TaskSpec { retry: retry(1, Duration::from_secs(9)), ..gives_way("bg", 9) };
    let mut bench = bench(1, vec![tried, at("hot", 0)]);
    let bg = bench.run("bg");
    let hot = bench.run("hot");
    assert_eq!((bench.standing(&bg), bench.instance(&hot).state), (ENDING, Ready));
    let why = bench.instance(&bg).message.clone().unwrap();
    assert!(why.contains("hot.v1") && why.contains(hot.as_str()), "{why}");
    bench.ends(&bg, term(), true);
    assert_eq!((bench.instance(&bg).state, bench.instance(&hot).state), (Ready, Running));
    let attempt = bench.instance(&bg).attempts[0].clone();
    assert_eq!(attempt.error_code.as_deref(), Some("PREEMPTED"));
    assert_eq!((bench.instance(&bg).faults, bench.instance(&bg).preemptions), (0, 1));
    let moves: Vec<(String, Option<String>, bool)> = bench
        .log
        .iter()
        .filter_map(|r| {
            let Record::Moved { instance_id, to, error_code, is_final, .. } = &r.what else {
                return None;
            };
            (*instance_id == bg).then(|| (to.to_string(), error_code.clone(), *is_final))
        })
        .collect();
    let preempted = ("FAILED".to_owned(), Some("PREEMPTED".to_owned()), false);
    assert_eq!(moves[2..], [preempted, ("READY".to_owned(), None, false)]);
    bench.exits(&hot, 0);
    assert_eq!((bench.instance(&bg).state, bench.instance(&bg).attempt), (Running, 2));
    // Its one attempt that may fail is still to come.
    bench.exits(&bg, 1);
    assert_eq!(bench.standing(&bg), (Failed, None));
}

#[test]
fn nobody_else_is_ever_ended() {
    // Not preemptible; of the same level; of a lower level.
    for (running, waiting) in [
        (at("bg", 9), at("hot", 0)),
        (gives_way("bg", 5), at("hot", 3)),
        (gives_way("bg", 0), at("hot", 9)),
    ] {
        let mut bench = bench(1, vec![running, waiting]);
        let bg = bench.run("bg");
        let hot = bench.run("hot");
        assert_eq!((bench.standing(&bg), bench.instance(&hot).state), ((Running, None), Ready));
    }
}

#[test]
fn nobody_is_ended_for_one_that_a_quota_or_a_pause_or_its_labels_hold() {
    let mut settings =
        (*settings(&[("local", 2)], &[("default", 1, None), ("side", 1, Some(1))])).clone();
    settings.owner_quota = BTreeMap::from([("few".to_owned(), 1)]);
    let labels = BTreeMap::from([("zone".to_owned(), "b".to_owned())]);
    let side = |spec| TaskSpec { queue: QueueName::from("side"), ..spec };
    let few = |spec| TaskSpec { owner: "few".to_owned(), ..spec };
    let mut bench = Bench::bare(Arc::new(settings));
    bench.specs(vec![
        few(side(gives_way("bg", 9))),
        few(gives_way("other", 9)),
        side(at("queued", 0)),
        few(at("owned", 0)),
        TaskSpec { executor_labels: labels, ..at("placed", 0) },
        at("held", 0),
        TaskSpec { max_concurrent: Some(1), ..at("alone", 0) },
    ]);
    bench.pause(Target::Task(super::build::id("held"))).unwrap();
    bench.run("bg");
    bench.run("alone");
    for name in ["other", "queued", "owned", "placed", "held", "alone"] {
        bench.run(name);
    }
    assert_eq!(ending(&bench), []);
    // With the queue's and the owner's quota of `bg` they were held; now one lacks the slot alone.
    bench.ask(Request::Resume { target: Target::Task(super::build::id("held")) }).0.unwrap();
    assert_eq!(ending(&bench).len(), 1);
}

#[test]
fn the_lowest_then_the_youngest_goes() {
    let specs = vec![gives_way("low", 7), gives_way("bg", 9), at("hot", 0)];
    let mut bench = bench(3, specs);
    let [_, older, younger] = ["low", "bg", "bg"].map(|name| bench.run(name));
    bench.run("hot");
    assert_eq!(ending(&bench), std::slice::from_ref(&younger));
    bench.run("hot");
    assert_eq!(ending(&bench), [older, younger]);
}

#[test]
fn one_for_each_that_lacks_a_slot_and_none_for_a_slot_that_comes_anyway() {
    let mut bench = bench(3, vec![gives_way("bg", 9), at("hot", 0), at("plain", 4)]);
    let plain = bench.run("plain");
    bench.run("bg");
    bench.run("bg");
    bench.cancel(&plain).0.unwrap();
    bench.run("hot");
    assert_eq!(ending(&bench), [plain], "the cancelled one's slot will do");
    bench.run("hot");
    assert_eq!(ending(&bench).len(), 2);
    bench.event(Event::Tick);
    assert_eq!(ending(&bench).len(), 2, "asked for once");
    bench.run("hot");
    assert_eq!(ending(&bench).len(), 3);
    bench.run("hot");
    assert_eq!(ending(&bench).len(), 3, "nobody is left");
}

#[test]
fn several_that_come_at_once_take_as_many_slots() {
    let mut bench = bench(3, vec![gives_way("bg", 9), at("hot", 0)]);
    let made = [0; 3].map(|_| bench.run("bg"));
    bench.pause(Target::All).unwrap();
    let hot = [bench.run("hot"), bench.run("hot")];
    assert_eq!(ending(&bench), []);
    let commands = bench.ask(Request::Resume { target: Target::All }).1;
    assert_eq!(commands.iter().filter(|c| is_kill(c)).count(), 2);
    assert_eq!(ending(&bench), made[1..]);
    bench.ends(&made[1], term(), true);
    bench.ends(&made[2], term(), true);
    assert!(hot.iter().all(|i| bench.instance(i).state == Running));
    assert_eq!(bench.standing(&made[0]), (Running, None));
}

#[test]
fn after_three_times_it_is_left_alone() {
    let mut bench = bench(1, vec![gives_way("bg", 9), at("hot", 0)]);
    let bg = bench.run("bg");
    for times in 1..=3 {
        let hot = bench.run("hot");
        bench.ends(&bg, term(), true);
        assert_eq!((bench.instance(&bg).preemptions, bench.instance(&hot).state), (times, Running));
        bench.exits(&hot, 0);
        assert_eq!(bench.instance(&bg).state, Running);
    }
    let hot = bench.run("hot");
    assert_eq!((bench.standing(&bg), bench.instance(&hot).state), ((Running, None), Ready));
}

#[test]
fn it_waits_at_the_back_of_its_priority() {
    let mut bench = bench(1, vec![gives_way("bg", 9), at("hot", 0)]);
    let first = bench.run("bg");
    let second = bench.run("bg");
    bench.pass(1);
    let hot = bench.run("hot");
    bench.ends(&first, term(), true);
    bench.exits(&hot, 0);
    assert_eq!((bench.instance(&first).state, bench.instance(&second).state), (Ready, Running));
}

#[test]
fn a_result_that_crossed_the_signal_stands() {
    let tried = TaskSpec { retry: retry(2, Duration::from_secs(10)), ..gives_way("bg", 9) };
    for (code, state) in [(0, Succeeded), (1, Failed)] {
        let mut bench = bench(1, vec![tried.clone(), at("hot", 0)]);
        let bg = bench.run("bg");
        let hot = bench.run("hot");
        bench.exits(&bg, code);
        assert_eq!((bench.instance(&bg).state, bench.instance(&hot).state), (state, Running));
        let i = bench.instance(&bg);
        assert_eq!((i.preemptions, i.stopping, i.faults), (0, None, u32::from(code != 0)));
        assert_eq!(i.next_retry_at.is_some(), code != 0, "its retry is to come");
    }
}

#[test]
fn an_exit_after_the_signal_is_no_result_but_a_timeout_is() {
    let mut bench = bench(1, vec![gives_way("bg", 9), at("hot", 0)]);
    let bg = bench.run("bg");
    let hot = bench.run("hot");
    bench.ends(&bg, Outcome::Exited { code: 0 }, true);
    assert_eq!(bench.instance(&bg).state, Ready);
    bench.exits(&hot, 0);
    bench.run("hot");
    bench.ends(&bg, Outcome::TimedOut, true);
    assert_eq!(bench.standing(&bg), (Timeout, None));
}

#[test]
fn a_persons_cancel_meanwhile_wins() {
    let mut bench = bench(1, vec![gives_way("bg", 9), at("hot", 0)]);
    let bg = bench.run("bg");
    let hot = bench.run("hot");
    let (answer, commands) = bench.cancel(&bg);
    assert!(answer.is_ok() && !commands.iter().any(is_kill), "it has had its TERM");
    assert_eq!(bench.standing(&bg), ENDING);
    let said = bench.instance(&bg).message.as_deref();
    assert_eq!(said, Some("cancelled by uid 1000"), "not for whom it gave way");
    bench.ends(&bg, term(), true);
    assert_eq!(bench.standing(&bg), (Cancelled, Some(Reason::CancelledByUser)));
    assert_eq!(bench.instance(&hot).state, Running);
}

#[test]
fn a_restart_in_the_middle_doubles_nothing() {
    let specs = || vec![gives_way("bg", 9), at("hot", 0)];
    let mut bench = bench(1, specs());
    let bg = bench.run("bg");
    let hot = bench.run("hot");
    bench.restart(500, specs());
    let running = vec![bench.attempt(&bg)];
    let hello = Hello { running, ..bench.hello() };
    let commands = bench.event(Event::ExecutorConnected(hello));
    assert_eq!(commands.iter().filter(|c| is_kill(c)).count(), 1, "the signal is sent again");
    bench.ends(&bg, term(), true);
    assert_eq!((bench.instance(&bg).state, bench.instance(&hot).state), (Ready, Running));
    assert_eq!(bench.instance(&bg).preemptions, 1);
}

#[test]
fn one_that_its_executor_never_had_or_lost_is_queued_again() {
    for lost in [false, true] {
        let mut bench = bench(1, vec![gives_way("bg", 9), at("hot", 0)]);
        let bg = bench.run("bg");
        let hot = bench.run("hot");
        let attempt = bench.attempt(&bg);
        bench.executor_restarts(if lost { vec![attempt] } else { Vec::new() });
        assert_eq!((bench.instance(&bg).state, bench.instance(&hot).state), (Ready, Running));
        let i = bench.instance(&bg);
        let counts = (i.preemptions, i.requeues, i.stopping);
        assert_eq!(counts, (u32::from(!lost), u32::from(lost), None));
    }
}

#[test]
fn what_a_critical_one_waits_for_preempts_and_is_not_preempted() {
    let lifted = TaskSpec { preemptible: true, ..at("lifted", 9) };
    let top = TaskSpec { priority: Priority::new(0).unwrap(), ..after("top", &["lifted"]) };
    let mut bench = bench(1, vec![gives_way("bg", 7), lifted, top, at("hot", 1)]);
    let bg = bench.run("bg");
    let lifted = bench.run("lifted");
    assert_eq!(bench.standing(&bg), ENDING);
    bench.ends(&bg, term(), true);
    let hot = bench.run("hot");
    assert_eq!(bench.standing(&lifted), (Running, None), "it acts as CRITICAL");
    // Its dependent gone, it is BACKGROUND again.
    let top = bench.of("top")[0].instance_id.clone();
    bench.cancel(&top).0.unwrap();
    assert_eq!((bench.standing(&lifted), bench.instance(&hot).state), (ENDING, Ready));
}

#[test]
fn the_slot_does_not_go_back_to_another_queues_preemptible_ones() {
    let queues = [("default", 1, None), ("batch", 100, None)];
    let mut bench = Bench::bare(settings(&[("local", 1)], &queues));
    let batch = TaskSpec { queue: QueueName::from("batch"), ..gives_way("bg", 9) };
    bench.specs(vec![batch, at("hot", 0)]);
    let bg = bench.run("bg");
    bench.run("bg");
    let hot = bench.run("hot");
    bench.ends(&bg, term(), true);
    assert_eq!(bench.instance(&hot).state, Running);
    assert_eq!(bench.states("bg"), [Ready, Ready]);
}

#[test]
fn in_a_weighted_queue_whose_turn_it_was_keeps_its_slot() {
    let mut settings = (*settings(&[("local", 1)], &[("default", 1, None)])).clone();
    let weights = LevelWeights { critical: 1, low: 1, ..LevelWeights::default() };
    settings.queues[0].discipline = Discipline::Weighted(weights);
    let mut bench = Bench::bare(Arc::new(settings));
    bench.specs(vec![gives_way("low", 7), at("hot", 0)]);
    bench.pause(Target::All).unwrap();
    let made = ["hot", "low", "hot"].map(|name| bench.run(name));
    bench.ask(Request::Resume { target: Target::All }).0.unwrap();
    bench.exits(&made[0], 0);
    assert_eq!(bench.standing(&made[1]), (Running, None), "LOW never starves");
    bench.exits(&made[1], 0);
    bench.exits(&made[2], 0);
    // To one that comes while it runs it gives way.
    let low = bench.run("low");
    bench.run("hot");
    assert_eq!(ending(&bench), [low]);
}
