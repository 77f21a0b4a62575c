//! docs/waves.md, rule 8: a DATA_READY edge holds once the upstream's outputs are there.

use std::time::Duration;

use serde_json::json;

use super::bench::{Bench, MIDNIGHT};
use super::build::{after, edge, id, task};
use crate::model::command::Command;
use crate::model::condition::Condition;
use crate::model::event::{Event, FileIdentity, Outcome};
use crate::model::id::InstanceId;
use crate::model::instance::InstanceState::{Blocked, Cancelled, Pending, Running, Succeeded};
use crate::model::instance::Reason;
use crate::model::output::{OutputsLook, Sight};
use crate::model::spec::{DepType, Dependency, OnDependencyTimeout, Strength, TaskSpec};
use crate::model::template::Template;
use crate::model::time::Timestamp;

/// A task that leaves these behind.
fn leaves(name: &str, paths: &[&str]) -> TaskSpec {
    let outputs = paths.iter().map(|path| Template::parse(path).expect("a path")).collect();
    TaskSpec { outputs, ..task(name) }
}

fn on_data(upstream: &str, strength: Strength) -> Dependency {
    Dependency { dep_type: DepType::DataReady, ..edge(upstream, strength) }
}

/// A task that waits for the data of another.
fn awaits(name: &str, upstream: &str) -> TaskSpec {
    TaskSpec { depends_on: vec![on_data(upstream, Strength::Strong)], ..task(name) }
}

fn pair() -> Vec<TaskSpec> {
    vec![leaves("up", &["/out/{date}/part"]), awaits("down", "up")]
}

/// A file with something in it, last changed at this time.
fn changed_at(at: Timestamp) -> Sight {
    let mtime_ns = at.as_millis() * 1_000_000;
    let identity = FileIdentity { device: 1, inode: 7, size: 5, mtime_ns };
    Sight::File { identity, ctime_ns: mtime_ns }
}

/// What whoever looks is told to begin and to end with.
fn told(commands: &[Command]) -> (Vec<(InstanceId, Vec<String>)>, Vec<InstanceId>) {
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for command in commands {
        if let Command::LookForOutputs { instance_id, outputs } = command {
            begun.push((instance_id.clone(), outputs.paths.clone()));
        } else if let Command::ForgetOutputs { instance_id } = command {
            ended.push(instance_id.clone());
        }
    }
    (begun, ended)
}

/// Somebody looked; with the stored row, as the shell does.
fn seen(bench: &mut Bench, of: &InstanceId, sights: Vec<Sight>) -> Vec<Command> {
    let stored = Some(Box::new(bench.instance(of).clone()));
    bench.event(Event::OutputsLooked(vec![OutputsLook { instance_id: of.clone(), sights, stored }]))
}

/// All its outputs are found, written just now.
fn found(bench: &mut Bench, of: &InstanceId) -> Vec<Command> {
    let now = changed_at(bench.now);
    seen(bench, of, vec![now])
}

fn ends_well(bench: &mut Bench, of: &InstanceId) -> Vec<Command> {
    bench.ends(of, Outcome::Exited { code: 0 }, false)
}

/// The upstream has succeeded; its instance.
fn succeeded(bench: &mut Bench) -> InstanceId {
    let up = bench.run("up");
    ends_well(bench, &up);
    up
}

fn message(bench: &Bench, name: &str) -> String {
    bench.of(name)[0].message.clone().unwrap_or_default()
}

#[test]
fn rule_8_a_task_waits_until_the_outputs_of_its_upstream_are_there() {
    let mut bench = Bench::new(pair());
    let up = bench.run("up");
    bench.started(&up);
    let (started, path) = (bench.now, "/out/2026-11-30/part");
    bench.pass(5_000);
    let commands = ends_well(&mut bench, &up);
    assert_eq!(told(&commands), (vec![(up.clone(), vec![path.to_owned()])], vec![]));
    let waits = (Pending, Some(Reason::WaitingDependency));
    let down = bench.of("down")[0].instance_id.clone();
    assert_eq!(bench.standing(&down), waits);

    seen(&mut bench, &up, vec![Sight::Absent]);
    assert_eq!(bench.standing(&down), waits);
    let expected = format!("waits for the outputs of up.v1 ({up}): {path} is not there");
    assert_eq!(message(&bench, "down"), expected);
    // Of an earlier run: with the time that was found, and the one that counts.
    let old = Timestamp::from_millis(started.as_millis() - 60_000);
    seen(&mut bench, &up, vec![changed_at(old)]);
    let text = message(&bench, "down");
    for word in [path, "2026-11-29T23:59:00.000Z", "2026-11-30T00:00:00.000Z"] {
        assert!(text.contains(word), "{text}");
    }

    bench.pass(1_000);
    let commands = seen(&mut bench, &up, vec![changed_at(started)]);
    assert_eq!(told(&commands), (vec![], vec![up.clone()]));
    assert_eq!(bench.standing(&down), (Running, None));
    assert_eq!(bench.instance(&down).message, None);
    // What was found is on record: when, and which file.
    let outputs = bench.instance(&up).outputs.clone().expect("outputs");
    let found = outputs.found.clone().expect("found");
    assert_eq!((found.at, found.files[0].inode), (bench.now, 7));
    assert_eq!(bench.instance(&up).state, Succeeded);
}

#[test]
fn rule_8_what_is_waited_for_outlives_a_restart_and_what_was_found_is_not_asked_again() {
    let mut bench = Bench::new(pair());
    let up = succeeded(&mut bench);
    seen(&mut bench, &up, vec![Sight::Absent]);
    let commands = bench.restart(1_000, pair());
    assert_eq!(told(&commands).0, [(up.clone(), vec!["/out/2026-11-30/part".to_owned()])]);
    assert_eq!(bench.states("down"), [Pending]);
    bench.pause(crate::model::record::Target::Task(id("down"))).expect("paused");
    found(&mut bench, &up);
    let commands = bench.restart(1_000, pair());
    assert_eq!(told(&commands), (vec![], vec![]));
    let standing = bench.of("down")[0].state;
    assert_eq!(standing, crate::model::instance::InstanceState::Ready);
}

#[test]
fn rule_8_once_found_it_stays_found_and_a_run_of_its_own_asks_anew() {
    let mut bench = Bench::new(pair());
    let up = succeeded(&mut bench);
    found(&mut bench, &up);
    // Whatever has become of the file: this run's data was there.
    let later = bench.run("down");
    assert_eq!(bench.instance(&later).state, Running);
    bench.drain();
    bench.pass(60_000);
    let again = succeeded(&mut bench);
    assert_ne!(again, up);
    assert_eq!(bench.states("down"), [Succeeded, Succeeded, Pending]);
    let stale = Timestamp::from_millis(MIDNIGHT);
    seen(&mut bench, &again, vec![changed_at(stale)]);
    assert_eq!(bench.states("down"), [Succeeded, Succeeded, Pending]);
    found(&mut bench, &again);
    assert_eq!(bench.states("down"), [Succeeded, Succeeded, Running]);
}

#[test]
fn rule_8_nothing_is_looked_for_while_nobody_waits() {
    let specs = vec![leaves("up", &["/out/a"]), after("plain", &["up"]), task("other")];
    let mut bench = Bench::new(specs.clone());
    let up = bench.run("up");
    let commands = ends_well(&mut bench, &up);
    assert_eq!(told(&commands), (vec![], vec![]));
    assert_eq!(bench.states("plain"), [Running]);
    // One comes to wait for what ended long ago.
    bench.specs([specs, vec![awaits("late", "up")]].concat());
    let submission = Box::default();
    let (answer, commands) =
        bench.ask(crate::model::request::Request::Submit { task: id("late"), submission });
    answer.expect("submitted");
    assert_eq!(told(&commands).0.len(), 1);
    assert_eq!(bench.states("late"), [Pending]);
    // And waits no longer.
    let late = bench.of("late")[0].instance_id.clone();
    let (_, commands) = bench.cancel(&late);
    assert_eq!(told(&commands), (vec![], vec![up]));
}

#[test]
fn rule_8_all_outputs_have_to_be_there_at_once() {
    let up = leaves("up", &["/out/a", "/out/{params.n}"]);
    let mut schema = super::build::needed_text();
    schema.required = false;
    schema.default = Some(json!("b"));
    let up = TaskSpec { runtime_params: [("n".to_owned(), schema)].into(), ..up };
    let mut bench = Bench::new(vec![up, awaits("down", "up")]);
    let up = bench.run("up");
    let commands = ends_well(&mut bench, &up);
    assert_eq!(told(&commands).0[0].1, ["/out/a", "/out/b"]);
    let now = changed_at(bench.now);
    seen(&mut bench, &up, vec![now.clone(), Sight::Absent]);
    assert!(message(&bench, "down").ends_with("/out/b is not there"));
    seen(&mut bench, &up, vec![Sight::Absent, now.clone()]);
    assert!(message(&bench, "down").ends_with("/out/a is not there"));
    assert_eq!(bench.states("down"), [Pending]);
    seen(&mut bench, &up, vec![now.clone(), now]);
    assert_eq!(bench.states("down"), [Running]);
}

#[test]
fn rule_8_without_outputs_it_is_the_same_as_success() {
    let mut bench = Bench::new(vec![task("up"), awaits("down", "up")]);
    let up = bench.run("up");
    let commands = ends_well(&mut bench, &up);
    assert_eq!(told(&commands), (vec![], vec![]));
    assert_eq!(bench.states("down"), [Running]);
}

#[test]
fn rule_8_a_weak_edge_is_held_by_any_end_but_waits_for_the_data_of_a_success() {
    let weak = TaskSpec { depends_on: vec![on_data("up", Strength::Weak)], ..task("down") };
    let specs = vec![leaves("up", &["/out/a"]), weak];
    let mut bench = Bench::new(specs.clone());
    let up = bench.run("up");
    bench.exits(&up, 1);
    assert_eq!(bench.states("down"), [Running]);
    let mut bench = Bench::new(specs);
    let up = succeeded(&mut bench);
    assert_eq!(bench.states("down"), [Pending]);
    found(&mut bench, &up);
    assert_eq!(bench.states("down"), [Running]);
}

#[test]
fn rule_8_a_failed_upstream_blocks_and_its_retry_is_asked_for_its_own_files() {
    let mut bench = Bench::new(pair());
    let up = bench.run("up");
    bench.exits(&up, 1);
    let down = bench.of("down")[0].instance_id.clone();
    assert_eq!(bench.standing(&down), (Blocked, Some(Reason::UpstreamFailed)));
    bench.pass(60_000);
    bench.retry(&up).expect("tried again");
    bench.started(&up);
    let commands = ends_well(&mut bench, &up);
    assert_eq!(told(&commands).0.len(), 1);
    // A file of the first attempt.
    seen(&mut bench, &up, vec![changed_at(Timestamp::from_millis(MIDNIGHT + 1))]);
    assert_eq!(bench.standing(&down), (Pending, Some(Reason::WaitingDependency)));
    found(&mut bench, &up);
    assert_eq!(bench.standing(&down), (Running, None));
}

#[test]
fn rule_6_a_condition_is_asked_at_the_end_and_does_not_wait_for_the_data() {
    let when = |text: &str| Some(Condition::parse(text).expect("a condition"));
    let gated = |name: &str, text: &str| TaskSpec {
        depends_on: vec![Dependency { when: when(text), ..on_data("up", Strength::Strong) }],
        ..task(name)
    };
    let specs = vec![
        leaves("up", &["/out/a"]),
        gated("yes", "state == 'SUCCEEDED'"),
        gated("no", "state == 'FAILED'"),
    ];
    let mut bench = Bench::new(specs);
    let up = succeeded(&mut bench);
    let no = bench.of("no")[0].instance_id.clone();
    assert_eq!(bench.standing(&no), (Cancelled, Some(Reason::ConditionFalse)));
    assert_eq!(bench.states("yes"), [Pending]);
    found(&mut bench, &up);
    assert_eq!(bench.states("yes"), [Running]);
}

#[test]
fn rule_8_a_path_that_cannot_be_filled_in_blocks_in_words() {
    for (path, words) in [
        ("/out/{deps.root.v1.output.name}", "deps.root.v1.output.name"),
        ("{params.dir}/a", "\"here/a\" is no absolute path"),
    ] {
        let mut schema = super::build::needed_text();
        schema.required = false;
        schema.default = Some(json!("here"));
        let up = TaskSpec {
            depends_on: vec![edge("root", Strength::Strong)],
            runtime_params: [("dir".to_owned(), schema)].into(),
            ..leaves("up", &[path])
        };
        let mut bench = Bench::new(vec![task("root"), up, awaits("down", "up")]);
        let root = bench.run("root");
        ends_well(&mut bench, &root);
        let up = bench.of("up")[0].instance_id.clone();
        let commands = ends_well(&mut bench, &up);
        assert_eq!(bench.standing(&up), (Succeeded, None), "its own end is not touched by that");
        assert_eq!(told(&commands), (vec![], vec![]));
        let down = bench.of("down")[0].instance_id.clone();
        assert_eq!(bench.standing(&down), (Blocked, Some(Reason::ConditionError)));
        let text = message(&bench, "down");
        assert!(text.contains("up.v1") && text.contains(words), "{text}");
    }
}

#[test]
fn rule_8_paths_that_no_variable_could_hold_block_in_words() {
    let mut schema = super::build::needed_text();
    schema.required = false;
    schema.default = Some(json!("x".repeat(20_000)));
    let up = TaskSpec {
        runtime_params: [("dir".to_owned(), schema)].into(),
        ..leaves("up", &["/{params.dir}/a", "/{params.dir}/b"])
    };
    let mut bench = Bench::new(vec![up, awaits("down", "up")]);
    succeeded(&mut bench);
    assert_eq!(bench.states("down"), [Blocked]);
    assert!(message(&bench, "down").contains("more than 32768 bytes"));
}

#[test]
fn requirement_c5_the_wait_for_data_runs_out_like_any_other() {
    for (policy, state) in
        [(OnDependencyTimeout::Cancel, Cancelled), (OnDependencyTimeout::RunDegraded, Running)]
    {
        let down = TaskSpec {
            dependency_timeout: Some(Duration::from_secs(10)),
            on_dependency_timeout: policy,
            ..awaits("down", "up")
        };
        let mut bench = Bench::new(vec![leaves("up", &["/out/a"]), down]);
        let up = succeeded(&mut bench);
        seen(&mut bench, &up, vec![Sight::Absent]);
        bench.pass(10_000);
        assert_eq!(bench.states("down"), [state]);
        // Nobody waits any more: what comes late changes nothing.
        let row = bench.instance(&up).clone();
        found(&mut bench, &up);
        assert_eq!(*bench.instance(&up), row);
    }
}

#[test]
fn a_dependent_is_told_which_files_were_found() {
    let deps = |commands: &[Command]| {
        commands.iter().find_map(|command| {
            let Command::Run(dispatch) = command else { return None };
            Some(dispatch.deps.to_value()["up.v1"]["outputs"].clone())
        })
    };
    let specs = vec![leaves("up", &["/out/a"]), awaits("down", "up"), after("plain", &["up"])];
    let mut bench = Bench::new(specs);
    let up = bench.run("up");
    let commands = ends_well(&mut bench, &up);
    assert_eq!(deps(&commands), Some(json!([])), "nobody looked for the one that asks for success");
    let commands = found(&mut bench, &up);
    assert_eq!(deps(&commands), Some(json!(["/out/a"])));
}

#[test]
fn a_look_that_does_not_fit_what_is_waited_for_changes_nothing() {
    let mut bench = Bench::new(pair());
    let up = succeeded(&mut bench);
    let now = changed_at(bench.now);
    let look = |sights: Vec<Sight>, stored| OutputsLook { instance_id: up.clone(), sights, stored };
    let of_another = bench.instance(&bench.of("down")[0].instance_id.clone()).clone();
    for bad in [
        look(vec![now.clone()], None),
        look(vec![now.clone()], Some(Box::new(of_another))),
        look(vec![now.clone(), now.clone()], Some(Box::new(bench.instance(&up).clone()))),
        OutputsLook { instance_id: InstanceId::from_text("x"), sights: vec![now], stored: None },
    ] {
        let rows = bench.rows.clone();
        bench.event(Event::OutputsLooked(vec![bad]));
        assert_eq!(bench.rows, rows);
    }
    found(&mut bench, &up);
    assert_eq!(bench.states("down"), [Running]);
}

#[test]
fn a_clock_that_is_set_back_during_the_run_makes_no_file_of_it_old() {
    let mut bench = Bench::new(pair());
    let up = bench.run("up");
    bench.started(&up);
    bench.pass(10_000);
    // By the right clock it began an hour earlier.
    bench.step(-3_600_000);
    let began = Timestamp::from_millis(MIDNIGHT - 3_600_000);
    bench.pass(7_200_000);
    ends_well(&mut bench, &up);
    seen(&mut bench, &up, vec![changed_at(Timestamp::from_millis(began.as_millis() - 1_000))]);
    assert_eq!(bench.states("down"), [Pending]);
    seen(&mut bench, &up, vec![changed_at(Timestamp::from_millis(began.as_millis() + 1_000))]);
    assert_eq!(bench.states("down"), [Running]);
}
