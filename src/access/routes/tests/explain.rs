//! `explain` and `graph`: what the store and the logs add to what the core says.

use super::*;
use crate::model::explain::{FireExplanation, InstanceExplanation, TaskExplanation};
use crate::model::graph::{GraphNode, GraphView};
use crate::model::instance::{Edge, Instance};
use crate::model::record::{Fire, FireOutcome};
use crate::model::spec::{DepType, Strength};
use crate::model::view::TaskStatus;

fn on(upstream: &Instance, strength: Strength) -> Edge {
    Edge {
        task_id: upstream.task_id.clone(),
        dep_type: DepType::Success,
        strength,
        instance_id: Some(upstream.instance_id.clone()),
        cycle_offset: 0,
        unanswered: false,
    }
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// A core that holds these open instances and knows nothing else of them.
fn holding(open: Vec<Instance>) -> Arc<FakeCore> {
    FakeCore::new(move |request| {
        if let Request::Explain(id) = request {
            let found = open.iter().find(|i| i.instance_id == *id);
            return Ok(Reply::Explanation(found.map(|i| Box::new(InstanceExplanation::of(i)))));
        }
        if let Request::Task(task) = request {
            return Err(Rejection::new(RejectionCode::NotFound, format!("no task {task}")));
        }
        if let Request::Live(_) = request {
            return Ok(Reply::Live(Vec::new()));
        }
        Ok(Reply::Graph(Box::default()))
    })
}

fn failed(id: &str, task: &str) -> Instance {
    let mut root = row(id, 1, task, InstanceState::Failed, 2);
    root.exit_code = Some(1);
    root.error_code = Some("EXIT_1".to_owned());
    root.message = Some("no rows".to_owned());
    root.finished_at = Some(at("2026-11-30T11:00:00Z"));
    root
}

#[tokio::test]
async fn a_blocked_instance_is_led_to_its_root_with_the_last_five_lines_of_its_log() {
    let root = failed("01a", "o.root.v1");
    let mut middle = row("01b", 2, "o.middle.v1", InstanceState::Blocked, 0);
    middle.edges = vec![on(&root, Strength::Strong)].into();
    let mut leaf = row("01c", 3, "o.leaf.v1", InstanceState::Pending, 0);
    leaf.edges = vec![on(&middle, Strength::Strong), on(&root, Strength::Strong)].into();
    let house = House::new(holding(vec![leaf.clone()]));
    for row in [&root, &middle, &leaf] {
        house.history.put(row.clone());
    }
    house.write_log(&root, 1, "of the first attempt\n");
    house.write_log(&root, 2, "1\n2\n3\n4\n5\n6\n");
    let told = get(&house, "/instances/01c/explain").await;
    assert_eq!(told.status, StatusCode::OK, "{:#}", told.json);
    let first = &told.json["blockedBy"][0];
    assert_eq!((&first["instanceId"], &first["state"]), (&json!("01b"), &json!("BLOCKED")));
    let below = &first["blockedBy"][0];
    assert_eq!((&below["errorCode"], &below["message"]), (&json!("EXIT_1"), &json!("no rows")));
    // Found first as the direct upstream: the tree is searched for logs from above.
    let direct = &told.json["blockedBy"][1];
    assert_eq!((&direct["instanceId"], &direct["repeated"]), (&json!("01a"), &json!(true)));
    assert_eq!(below["log"], json!(["2", "3", "4", "5", "6"]));
    let words = told.json["summary"].to_string();
    assert!(words.contains("EXIT_1") && words.contains("o.root.v1"), "{words}");
}

#[tokio::test]
async fn what_the_core_no_longer_holds_is_explained_by_its_row() {
    let house = House::new(holding(Vec::new()));
    let up = row("01a", 1, "o.up.v1", InstanceState::Succeeded, 1);
    let mut ended = failed("01b", "o.down.v1");
    ended.edges = vec![on(&up, Strength::Strong)].into();
    house.history.put(up);
    house.history.put(ended.clone());
    house.write_log(&ended, 2, "boom\n");
    let told = get(&house, "/instances/01b/explain").await;
    assert_eq!((&told.json["isFinal"], &told.json["log"]), (&json!(true), &json!(["boom"])));
    let edge = &told.json["edges"][0];
    assert_eq!((&edge["state"], &edge["satisfied"]), (&json!("SUCCEEDED"), &json!(true)));
    assert_eq!(told.json["blockedBy"], json!([]), "a failure of its own");
    assert_eq!(get(&house, "/instances/01z/explain").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_long_or_wide_chain_of_upstreams_is_told_in_part() {
    let house = House::new(holding(Vec::new()));
    let mut rows: Vec<Instance> = Vec::new();
    for n in 0..300_u64 {
        let mut next = row(&format!("01{n:03}"), n + 1, "o.chain.v1", InstanceState::Blocked, 0);
        let edges = rows.iter().rev().take(2).map(|up| on(up, Strength::Strong));
        next.edges = edges.collect::<Vec<_>>().into();
        rows.push(next);
    }
    *house.history.rows.lock().unwrap() = rows;
    let told = get(&house, "/instances/01299/explain").await;
    let nodes = told.json["blockedBy"].to_string().matches("\"instanceId\"").count();
    assert!((10..=crate::limits::BLOCKERS_MAX).contains(&nodes), "{nodes}");
}

fn task_told(triggers: &[&str], asked: Option<&str>) -> TaskExplanation {
    TaskExplanation {
        task_id: TaskId::parse("o.t.v1").unwrap(),
        status: TaskStatus::Active,
        summary: Vec::new(),
        schedule: "0 2 * * *".to_owned(),
        is_derived: false,
        upstreams: Vec::new(),
        unresolved: Vec::new(),
        pauses: Vec::new(),
        pinned: false,
        spec_errors: Vec::new(),
        fires_with: None,
        next_fire_time: None,
        next_cycle: None,
        next_note: None,
        open: 0,
        recent: Vec::new(),
        at: asked.map(|time| FireExplanation {
            at: at(time),
            triggers: triggers.iter().map(|key| (*key).to_owned()).collect(),
            fire: None,
            instance: None,
            before: None,
            after: None,
            to_come: false,
            defined_at: at("2026-11-01T00:00:00Z"),
        }),
    }
}

#[tokio::test]
async fn a_time_of_a_task_is_looked_up_in_the_ledger() {
    let told = task_told(&["cron:0 2 * * *"], Some("2026-11-29T02:00:00Z"));
    let core = FakeCore::new(move |_| Ok(Reply::TaskExplanation(Box::new(told.clone()))));
    let house = House::new(core);
    house.history.put(row("01a", 1, "o.t.v1", InstanceState::Succeeded, 1));
    house.history.fires.lock().unwrap().push(Fire {
        task_id: TaskId::parse("o.t.v1").unwrap(),
        trigger: "cron:0 2 * * *".to_owned(),
        from: at("2026-11-28T02:00:00Z"),
        to: at("2026-11-30T02:00:00Z"),
        count: 3,
        outcome: FireOutcome::Missed,
        reason: None,
        instance_id: None,
    });
    let answer = get(&house, "/tasks/o.t.v1/explain?at=2026-11-29T02:00:00Z").await;
    assert_eq!(answer.json["at"]["fire"]["outcome"], "MISSED", "{:#}", answer.json);
    assert_eq!(answer.json["recent"][0]["instanceId"], "01a");
    assert!(answer.json["summary"][0].as_str().unwrap().contains("(MISSED)"));
    let wanted = Request::ExplainTask {
        task: TaskId::parse("o.t.v1").unwrap(),
        at: Some(at("2026-11-29T02:00:00Z")),
    };
    assert_eq!(house.core.orders(), [wanted]);
    let unknown = get(&house, "/tasks/o.t.v1/explain?att=now").await;
    assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn the_graph_of_a_cycle_holds_its_instances_what_they_are_bound_to_and_open_edges() {
    let house = House::new(holding(Vec::new()));
    let mut yesterday = row("01a", 1, "o.up.v1", InstanceState::Succeeded, 1);
    yesterday.cycle = crate::model::cycle::Cycle::parse("2026-11-29").unwrap();
    let mut down = row("01b", 2, "o.down.v1", InstanceState::Pending, 0);
    down.edges = vec![on(&yesterday, Strength::Strong)].into();
    Arc::make_mut(&mut down.edges).push(Edge {
        task_id: TaskId::parse("o.open.v1").unwrap(),
        dep_type: DepType::DataReady,
        strength: Strength::Weak,
        instance_id: None,
        cycle_offset: 0,
        unanswered: false,
    });
    house.history.put(yesterday);
    house.history.put(down);
    let view = get(&house, "/graph?cycle=2026-11-30").await.json;
    let nodes: Vec<(&Value, &Value)> = view["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (&node["id"], &node["instance"]["cycle"]))
        .collect();
    let expected = [
        (&json!("01b"), &json!("2026-11-30")),
        (&json!("o.open.v1"), &Value::Null),
        (&json!("01a"), &json!("2026-11-29")),
    ];
    assert_eq!(nodes, expected);
    let edges = view["edges"].as_array().unwrap();
    let ends: Vec<(&Value, &Value)> = edges.iter().map(|e| (&e["from"], &e["to"])).collect();
    let (a, b, open) = (json!("01a"), json!("01b"), json!("o.open.v1"));
    assert_eq!(ends, [(&a, &b), (&open, &b)]);
    let none = get(&house, "/graph?cycle=2026-11-28").await.json;
    assert_eq!((&none["nodes"], &none["truncated"]), (&json!([]), &json!(false)));
    let wrong = get(&house, "/graph?cycle=x%20y").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(get(&house, "/graph?taskId=o.none.v1").await.status, StatusCode::NOT_FOUND);
}

#[test]
fn around_a_task_is_what_is_up_or_downstream_and_nothing_beside_it() {
    let node = |id: &str| GraphNode {
        id: id.to_owned(),
        task_id: TaskId::parse(id).unwrap(),
        name: None,
        owner: None,
        status: None,
        schedule: String::new(),
        instance: None,
    };
    let edge = |from: &str, to: &str| {
        json!({"from": from, "to": to, "kind": "DEPENDENCY", "depType": null, "strength": null,
               "when": null, "cycleOffset": 0, "states": []})
    };
    // a, b → mine → below; a → beside.
    let edges =
        [("a.v1", "mine.v1"), ("b.v1", "mine.v1"), ("mine.v1", "below.v1"), ("a.v1", "beside.v1")];
    let view = GraphView {
        cycle: None,
        nodes: ["a.v1", "b.v1", "below.v1", "beside.v1", "mine.v1"].map(node).to_vec(),
        edges: edges.map(|(f, t)| serde_json::from_value(edge(f, t)).unwrap()).to_vec(),
        truncated: false,
    };
    let around = view.around(&TaskId::parse("mine.v1").unwrap());
    let ids: Vec<&str> = around.nodes.iter().map(|n| n.id.as_str()).collect();
    assert_eq!(ids, ["a.v1", "b.v1", "below.v1", "mine.v1"]);
    assert_eq!(around.edges.len(), 3);
}
