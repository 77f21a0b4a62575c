//! docs/waves.md, rule 9: definitions that change while instances wait.

use super::bench::Bench;
use super::build::{after, cron, edge, id, on_event, root, task};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{Blocked, Pending, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::record::{FireOutcome, Target};
use crate::model::request::{Request, SubmitBody};
use crate::model::spec::{Strength, TaskSpec};
use crate::model::view::TaskStatus;

const HOUR: i64 = 3_600_000;

/// Starts by submission and waits for `a`.
fn waits(name: &str) -> TaskSpec {
    TaskSpec { depends_on: vec![edge("a", Strength::Strong)], ..root(name) }
}

fn off(spec: TaskSpec) -> TaskSpec {
    TaskSpec { enabled: false, ..spec }
}

fn bound(bench: &Bench, of: &InstanceId) -> Option<InstanceId> {
    bench.instance(of).edges[0].instance_id.clone()
}

#[test]
fn rule_9_a_dependent_that_appears_in_the_night_gets_what_is_not_final_and_nothing_else() {
    let mut bench = Bench::new(vec![root("a")]);
    bench.run_for("a", "2026-11-29");
    bench.drain();
    let running = bench.run("a");
    // They come in the middle: a triggered one waits for its trigger, a derived one for `a`.
    let all = || vec![root("a"), waits("b"), after("c", &["a"]), after("d", &["c"])];
    bench.specs(all());
    assert_eq!(bench.of("b").len(), 0);
    assert_eq!((bench.states("c"), bench.states("d")), (vec![Pending], vec![Pending]));
    let c = bench.of("c")[0].clone();
    assert_eq!((c.cycle.label(), &c.root), ("2026-11-30", &running));
    assert_eq!(c.edges[0].instance_id, Some(running.clone()));
    assert_eq!(bench.of("d")[0].edges[0].instance_id, Some(c.instance_id));
    // One that is submitted binds to what is there, used before or not (rule 2).
    let b = bench.run("b");
    assert_eq!(bound(&bench, &b), Some(running));
    // The same once more, and after a restart, makes no second one.
    bench.specs(all());
    bench.restart(0, all());
    let hello = bench.hello();
    let on =
        crate::model::event::AttemptRef { ..bench.attempt(&bench.of("a")[1].instance_id.clone()) };
    bench.event(crate::model::event::Event::ExecutorConnected(crate::model::event::Hello {
        running: vec![on],
        ..hello
    }));
    bench.drain();
    for name in ["b", "c", "d"] {
        assert_eq!(bench.states(name), [Succeeded], "{name}");
    }
}

#[test]
fn rule_9_a_fan_in_that_appears_is_one_a_wave() {
    let mut bench = Bench::new(vec![root("a"), after("x", &["a"]), after("y", &["a"])]);
    bench.run("a");
    bench.pass(1);
    bench.run("a");
    bench.specs(vec![
        root("a"),
        after("x", &["a"]),
        after("y", &["a"]),
        after("c", &["x", "y", "a"]),
    ]);
    assert_eq!(bench.states("c"), [Pending; 2]);
    for n in 0..2 {
        let of = |name: &str| Some(bench.of(name)[n].instance_id.clone());
        let edges: Vec<_> = bench.of("c")[n].edges.iter().map(|e| e.instance_id.clone()).collect();
        assert_eq!(edges, [of("x"), of("y"), of("a")]);
    }
    bench.drain();
    assert_eq!(bench.states("c"), [Succeeded; 2]);
}

#[test]
fn rule_9_a_daily_side_input_starts_no_run_that_appears() {
    let mut bench = Bench::new(vec![on_event("f", "go"), root("x")]);
    bench.run("x");
    bench.specs(vec![on_event("f", "go"), root("x"), after("g", &["f", "x"])]);
    assert_eq!(bench.of("g").len(), 0);
    bench.emit("go");
    bench.drain();
    assert_eq!(bench.states("g"), [Succeeded]);
}

#[test]
fn rule_9_a_gained_edge_takes_an_upstream_instance_that_is_not_final() {
    let plain = || TaskSpec { depends_on: vec![edge("x", Strength::Strong)], ..root("b") };
    let mut bench = Bench::new(vec![root("a"), root("x"), plain()]);
    let b = bench.run("b");
    let a = bench.run("a");
    let mut more = plain();
    more.depends_on.push(edge("a", Strength::Strong));
    bench.specs(vec![root("a"), root("x"), more]);
    assert_eq!(bench.instance(&b).edges[1].instance_id, Some(a));
}

#[test]
fn rule_9_a_gained_edge_does_not_take_what_was_final_before() {
    let plain = || TaskSpec { depends_on: vec![edge("x", Strength::Strong)], ..root("b") };
    let mut bench = Bench::new(vec![root("a"), root("x"), plain()]);
    bench.run("a");
    bench.drain();
    let b = bench.run("b");
    let mut more = plain();
    more.depends_on.push(edge("a", Strength::Strong));
    bench.specs(vec![root("a"), root("x"), more]);
    assert_eq!(bench.instance(&b).edges[1].instance_id, None);
    // `run` is for those.
    let again = bench.run("a");
    assert_eq!(bench.instance(&b).edges[1].instance_id, Some(again));
}

#[test]
fn rule_9_an_open_edge_on_a_deleted_upstream_is_blocked_and_heals_when_it_is_back() {
    let mut bench = Bench::new(vec![root("a"), waits("b")]);
    let b = bench.run("b");
    bench.specs(vec![waits("b")]);
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::SpecRemoved)));
    bench.specs(vec![root("a"), waits("b")]);
    assert_eq!(bench.standing(&b), (Pending, Some(Reason::WaitingDependency)));
    bench.run("a");
    bench.drain();
    assert_eq!(bench.instance(&b).state, Succeeded);
}

#[test]
fn rule_9_an_open_edge_on_a_disabled_upstream_is_blocked_and_heals_when_it_is_enabled() {
    let mut bench = Bench::new(vec![root("a"), waits("b")]);
    let b = bench.run("b");
    bench.specs(vec![off(root("a")), waits("b")]);
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::SpecRemoved)));
    let later = bench.run("b");
    assert_eq!(bench.standing(&later), (Blocked, Some(Reason::SpecRemoved)));
    bench.specs(vec![root("a"), waits("b")]);
    for i in [&b, &later] {
        assert_eq!(bench.standing(i), (Pending, Some(Reason::WaitingDependency)));
    }
}

#[test]
fn rule_9_what_is_bound_finishes_although_the_upstream_goes() {
    let mut bench = Bench::new(vec![root("a"), waits("b")]);
    let a = bench.run("a");
    let b = bench.run("b");
    bench.specs(vec![waits("b")]);
    assert_eq!((bench.instance(&a).state, bench.instance(&b).state), (Running, Pending));
    bench.drain();
    assert_eq!(bench.instance(&b).state, Succeeded);
}

#[test]
fn rule_9_a_renamed_upstream_is_one_that_went_and_one_that_came() {
    let mut bench = Bench::new(vec![root("a"), waits("b")]);
    let b = bench.run("b");
    // The other name alone helps nobody …
    bench.specs(vec![root("z"), waits("b")]);
    bench.run("z");
    bench.drain();
    assert_eq!(bench.standing(&b), (Blocked, Some(Reason::SpecRemoved)));
    // … until the dependent names it: a gained edge, which takes what is still to end.
    let z = bench.run("z");
    let mut follows = waits("b");
    follows.depends_on = vec![edge("z", Strength::Strong)];
    bench.specs(vec![root("z"), follows]);
    assert_eq!(bound(&bench, &b), Some(z));
    bench.drain();
    assert_eq!(bench.instance(&b).state, Succeeded);
}

#[test]
fn rule_9_a_paused_upstream_is_waited_for_unless_its_fire_makes_nothing() {
    let nightly = TaskSpec { triggers: vec![cron("0 2 * * *")], ..task("a") };
    let mut bench = Bench::new(vec![nightly, root("x"), waits("b")]);
    bench.pause(Target::Task(id("a"))).unwrap();
    let b = bench.run("b");
    assert_eq!(bench.standing(&b), (Pending, Some(Reason::WaitingDependency)));
    // A submission of the paused task makes one that waits, and so does the dependent.
    bench.run("a");
    assert_eq!(bench.instance(&b).state, Pending);
    bench.pass(2 * HOUR);
    assert_eq!(bench.fires("a"), [(FireOutcome::Paused, 1)]);
    assert_eq!(bench.instance(&b).state, Pending, "its cycle has an instance");
}

#[test]
fn rule_9_an_unknown_upstream_leaves_the_task_unresolved_until_it_is_known() {
    let mut bench = Bench::new(vec![waits("b"), root("x"), after("c", &["x", "nobody"])]);
    assert!(bench.try_submit("b", SubmitBody::default()).is_err());
    let free = SubmitBody { ignore_deps: true, ..SubmitBody::default() };
    let alone = bench.submit("b", free);
    assert_eq!(bench.instance(&alone).state, Running);
    bench.run("x");
    assert_eq!(bench.of("c").len(), 0, "no wave reaches it");
    let Ok(crate::model::request::Reply::Task(view)) = bench.ask(Request::Task(id("c"))).0 else {
        panic!("it is shown")
    };
    assert_eq!(view.status, TaskStatus::Unresolved);
    bench.specs(vec![
        root("a"),
        waits("b"),
        root("x"),
        root("nobody"),
        after("c", &["x", "nobody"]),
    ]);
    bench.run("x");
    assert_eq!(bench.states("c"), [Pending]);
    bench.run("b");
    assert_eq!(bench.states("b")[1], Pending);
}

#[test]
fn rule_9_an_instance_follows_the_revision_in_force_until_its_first_start() {
    let timed = |ms| TaskSpec { timeout: Some(std::time::Duration::from_millis(ms)), ..waits("b") };
    let mut bench = Bench::new(vec![root("a"), timed(1000)]);
    bench.run("a");
    let b = bench.run("b");
    bench.specs(vec![root("a"), timed(2000)]);
    assert_eq!(bench.instance(&b).revision, 2);
    let a = bench.of("a")[0].instance_id.clone();
    bench.exits(&a, 0);
    assert_eq!(bench.instance(&b).state, Running);
    bench.specs(vec![root("a"), timed(3000)]);
    assert_eq!(bench.instance(&b).revision, 2, "pinned from then on");
    // A person's retry takes the one in force.
    bench.exits(&b, 1);
    bench.retry(&b).unwrap();
    assert_eq!(bench.instance(&b).revision, 3);
}

#[test]
fn rule_9_a_rollback_is_a_change_of_the_edges_too() {
    let mut bench = Bench::new(vec![root("a"), root("b")]);
    bench.specs(vec![root("a"), waits("b")]);
    let b = bench.run("b");
    assert_eq!(bench.instance(&b).state, Pending);
    let revision = bench
        .rows
        .values()
        .find_map(|row| {
            let crate::model::record::Row::Revision(r) = row else { return None };
            (r.task_id == id("b") && r.revision == 1).then(|| Box::new(r.clone()))
        })
        .expect("the first revision");
    bench.ask(Request::Rollback { task: id("b"), revision }).0.unwrap();
    assert_eq!(bench.instance(&b).state, Running, "the edge is gone");
}

#[test]
fn rule_9_a_repaired_file_alone_starts_nothing_and_a_gone_one_makes_nothing() {
    let mut bench = Bench::new(vec![on_event("a", "go"), after("b", &["a"])]);
    bench.specs(vec![on_event("a", "go")]);
    bench.emit("go");
    bench.drain();
    assert_eq!(bench.of("b").len(), 0);
    bench.specs(vec![on_event("a", "go"), after("b", &["a"])]);
    bench.drain();
    assert_eq!(bench.of("b").len(), 0);
}
