//! `GET /simulation-basis`: the core's rows with the past beside them.

use std::path::Path;

use super::*;
use crate::config::{Config, Places};
use crate::model::id::{ExecutorId, Lease, LogSeq};
use crate::model::instance::{Attempt, Edge, Instance};
use crate::model::record::{Row, TaskRow};
use crate::model::settings::Settings;
use crate::model::simulation::Basis;
use crate::model::spec::{DepType, Dependency, Strength};

fn id(task: &str) -> TaskId {
    TaskId::parse(task).unwrap()
}

/// A task in force, its definition beside it.
fn task(spec: &Arc<TaskSpec>) -> [Row; 2] {
    let task_id = spec.task_id.clone();
    let revision = Revision {
        task_id: task_id.clone(),
        revision: 1,
        hash: "h".to_owned(),
        loaded_at: Timestamp::from_millis(0),
        file: "/srv/a.yaml".to_owned(),
        uid: None,
        spec: Arc::clone(spec),
    };
    let row = TaskRow {
        task_id,
        revision: Some(1),
        file: "/srv/a.yaml".to_owned(),
        created_at: Timestamp::from_millis(0),
        revisions: 1,
        newest_hash: None,
        paused: None,
        priority: None,
        pinned: None,
    };
    [Row::Revision(revision), Row::Task(row)]
}

/// A core that tells these rows, at noon of 30 November.
fn house(rows: Vec<Row>) -> House {
    let at = Timestamp::parse("2026-11-30T12:00:00Z").unwrap();
    let config = Config::read(Path::new("schedd.yaml"), b"", &Places::system()).unwrap();
    let basis =
        Basis { rows, tip: LogSeq(9), at, ..Basis::bare(at, Settings::clone(&config.settings)) };
    House::new(FakeCore::new(move |_| Ok(Reply::SimulationBasis(Box::new(basis.clone())))))
}

async fn told(house: &House) -> Basis {
    let answer = get(house, "/simulation-basis").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.json);
    serde_json::from_value(answer.json).unwrap()
}

/// An instance that succeeded and took so many seconds.
fn took(name: &str, seq: u64, task: &str, seconds: i64) -> Instance {
    let mut done = row(name, seq, task, InstanceState::Succeeded, 1);
    let started_at = done.created_at;
    done.attempts.push(Attempt {
        attempt: 1,
        lease: Lease(1),
        executor_id: ExecutorId::from("local"),
        boot_id: "b".into(),
        started_at: Some(started_at),
        finished_at: Some(Timestamp::from_millis(started_at.as_millis() + seconds * 1000)),
        exit_code: Some(0),
        signal: None,
        error_code: None,
        user_ms: None,
        system_ms: None,
        max_rss_bytes: None,
        output_bytes: None,
        frozen_ms: None,
    });
    done
}

fn instances(basis: &Basis) -> Vec<&Instance> {
    basis
        .rows
        .iter()
        .filter_map(|r| if let Row::Instance(i) = r { Some(&**i) } else { None })
        .collect()
}

#[tokio::test]
async fn past_lengths_and_what_edges_lead_to_are_added_to_the_cores_rows() {
    let edge = |of: &str| Dependency {
        task_id: id(of),
        dep_type: DepType::Success,
        strength: Strength::Strong,
        when: None,
        cycle_offset: 0,
    };
    let upstream = spec("up.t.v1");
    let below = Arc::new(TaskSpec {
        depends_on: vec![edge("up.t.v1")],
        ..TaskSpec::clone(&spec("down.t.v1"))
    });
    let mut waits = row("02a", 20, "down.t.v1", InstanceState::Pending, 0);
    let bound = |of: &str| Edge {
        task_id: id("up.t.v1"),
        dep_type: DepType::Success,
        strength: Strength::Strong,
        instance_id: Some(InstanceId::from_text(of)),
        cycle_offset: 0,
        unanswered: false,
    };
    waits.edges = vec![bound("01z")].into();
    let mut rows = Vec::from(task(&upstream));
    rows.extend(task(&below));
    rows.push(Row::Instance(Arc::new(waits)));
    let house = house(rows);
    house.history.put(took("01a", 10, "up.t.v1", 30));
    house.history.put(took("01b", 11, "up.t.v1", 10));
    house.history.put(took("01c", 12, "down.t.v1", 5));
    // Long ago: for its length, and because something is bound to it.
    let old = Timestamp::parse("2026-11-20T02:00:00Z").unwrap();
    for (name, seq) in [("01y", 1), ("01z", 2)] {
        house.history.put(Instance { created_at: old, ..took(name, seq, "up.t.v1", 10) });
    }
    let basis = told(&house).await;
    let ids: Vec<&str> = instances(&basis).iter().map(|i| i.instance_id.as_str()).collect();
    assert_eq!(ids, ["02a", "01a", "01b", "01z"], "nothing waits for down.t.v1");
    let mut lengths: Vec<(&str, usize)> =
        basis.history.iter().map(|h| (h.task_id.as_str(), h.succeeded_ms.len())).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [("down.t.v1", 1), ("up.t.v1", 4)]);
    assert_eq!((basis.tip, basis.at.to_string().as_str()), (LogSeq(9), "2026-11-30T12:00:00.000Z"));
}

#[tokio::test]
async fn secrets_are_masked_and_the_mask_is_a_value_that_is_taken() {
    let mut numbered = TaskSpec::clone(&spec("a.t.v1"));
    let secret = numbered.runtime_params.get_mut("pw").unwrap();
    secret.kind = crate::model::params::ParamType::Int;
    secret.default = Some(json!(4711));
    let mut waits = row("01a", 1, "a.t.v1", InstanceState::Ready, 0);
    waits.runtime_params = json!({"pw": 4711, "n": "x"}).as_object().unwrap().clone().into();
    waits.given_params = Arc::clone(&waits.runtime_params);
    let mut rows = Vec::from(task(&Arc::new(numbered)));
    rows.push(Row::Instance(Arc::new(waits)));
    let house = house(rows);
    let answer = get(&house, "/v1/simulation-basis").await;
    assert!(!answer.json.to_string().contains("4711"), "{}", answer.json);
    let basis: Basis = serde_json::from_value(answer.json).unwrap();
    let Some(Row::Revision(revision)) = basis.rows.first() else { panic!("{:?}", basis.rows) };
    let schemas = &revision.spec.runtime_params;
    let given = json!({"pw": "***"}).as_object().unwrap().clone();
    crate::model::params::check_given(schemas, &given).unwrap();
    assert_eq!(instances(&basis)[0].runtime_params["n"], "x");
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_told() {
    let house = house(Vec::from(task(&spec("a.t.v1"))));
    house.history.broken.store(true, std::sync::atomic::Ordering::SeqCst);
    let answer = get(&house, "/simulation-basis").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(detail(&answer).contains("planted"), "{}", answer.json);
}
