use serde_json::{Value, json};

use super::*;
use crate::access::fakes::row;
use crate::model::explain::{Blocker, EdgeExplanation, TaskExplanation};
use crate::model::instance::InstanceState::{
    Blocked, Cancelled, Failed, Pending, Ready, Running, Succeeded,
};

fn now() -> Timestamp {
    Timestamp::parse("2026-11-30T12:00:00Z").unwrap()
}

/// The explanation of a row as JSON, with what a test is about put over.
fn told(state: InstanceState, over: &Value) -> InstanceExplanation {
    let bare = InstanceExplanation::of(&row("01a", 1, "o.settle.v1", state, 1));
    let mut value = serde_json::to_value(bare).unwrap();
    for (key, entry) in over.as_object().unwrap() {
        value[key] = entry.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn said(state: InstanceState, over: &Value) -> String {
    of_instance(&told(state, over), now()).join("\n")
}

/// Every text must be in the words.
fn holds(words: &str, texts: &[&str]) {
    for text in texts {
        assert!(words.contains(text), "{text:?} is not in:\n{words}");
    }
}

fn edge(over: &Value) -> Value {
    let mut value = json!({
        "taskId": "o.up.v1", "depType": "SUCCESS", "strength": "STRONG", "when": null,
        "instanceId": null, "cycle": null, "state": null, "reason": null, "since": null,
        "isFinal": false, "satisfied": false, "missing": [], "open": null,
    });
    for (key, entry) in over.as_object().unwrap() {
        value[key] = entry.clone();
    }
    value
}

fn blocker(id: &str, over: &Value) -> Value {
    let mut value = json!({
        "instanceId": id, "taskId": format!("o.{id}.v1"), "cycle": "2026-11-30", "state": "BLOCKED",
        "reason": "UPSTREAM_FAILED", "since": null, "isFinal": false, "exitCode": null,
        "signal": null, "errorCode": null, "message": null, "log": [], "repeated": false,
        "blockedBy": [],
    });
    for (key, entry) in over.as_object().unwrap() {
        value[key] = entry.clone();
    }
    value
}

#[test]
fn a_blocked_one_is_led_down_to_the_root_with_its_code_message_and_log() {
    let root = blocker(
        "root",
        &json!({"state": "FAILED", "reason": null, "isFinal": true, "exitCode": 1,
                "errorCode": "EXIT_1", "message": "no rows", "log": ["one", "two"]}),
    );
    let middle = blocker("middle", &json!({"blockedBy": [root]}));
    let edges = json!([edge(&json!({"taskId": "o.middle.v1", "instanceId": "middle",
                                    "state": "BLOCKED", "reason": "UPSTREAM_FAILED"}))]);
    let words =
        said(Blocked, &json!({"reason": "UPSTREAM_FAILED", "edges": edges, "blockedBy": [middle]}));
    holds(
        &words,
        &[
            "o.settle.v1 (instance 01a, cycle 2026-11-30) is BLOCKED (UPSTREAM_FAILED)",
            "It waits for o.middle.v1: instance middle is BLOCKED (UPSTREAM_FAILED).",
            "\n  o.middle.v1 middle: BLOCKED",
            "\n    o.root.v1 root: FAILED with EXIT_1 (exit status 1): no rows",
            "| one\n",
            "| two\n",
            "schedctl retry root;",
        ],
    );
}

#[test]
fn an_open_edge_says_when_the_upstream_fires_and_whether_that_counts() {
    let open = |over: &Value| {
        let mut open = json!({
            "status": "ACTIVE", "paused": null, "isDerived": false, "schedule": "0 2 * * *",
            "nextFireTime": "2026-12-01T02:00:00Z", "nextCycle": "2026-12-01",
            "matchingFireTime": null,
        });
        for (key, entry) in over.as_object().unwrap() {
            open[key] = entry.clone();
        }
        said(Pending, &json!({"edges": [edge(&json!({"open": open}))]}))
    };
    holds(
        &open(&json!({})),
        &[
            "o.up.v1, which has no run of cycle 2026-11-30 yet",
            "it fires next 2026-12-01T02:00:00Z (in 14h), which is cycle 2026-12-01",
            "none of its next fires is of that cycle",
        ],
    );
    let counts = open(&json!({"matchingFireTime": "2026-12-01T02:00:00Z"}));
    assert!(!counts.contains("none of its next"), "{counts}");
    holds(&open(&json!({"status": null})), &["no file defines it any more"]);
    holds(&open(&json!({"status": "DISABLED"})), &["it is disabled"]);
    let paused = json!({"since": "2026-11-30T11:00:00Z", "uid": 7, "reason": null, "until": null});
    holds(&open(&json!({"status": "PAUSED", "paused": paused})), &["it is paused by uid 7"]);
    let nobody = json!({"schedule": "", "nextFireTime": null, "nextCycle": null});
    holds(&open(&nobody), &["only a submission starts it"]);
}

#[test]
fn an_upstream_that_succeeded_without_its_data_names_what_is_missing() {
    let waits = edge(&json!({"depType": "DATA_READY", "instanceId": "01u", "state": "SUCCEEDED",
                             "isFinal": true, "missing": ["/data/a.csv is empty"]}));
    holds(
        &said(Pending, &json!({"edges": [waits]})),
        &[
            "o.up.v1 and its outputs (DATA_READY): instance 01u is SUCCEEDED for good; not there yet: \
           /data/a.csv is empty.",
        ],
    );
}

#[test]
fn an_upstream_that_fired_without_a_run_leads_to_its_ledger() {
    let skipped = "o.up.v1 fired for the cycle 2026-11-30 and made no instance (PAUSED)";
    let edges = [edge(&json!({"skipped": skipped})), edge(&json!({}))];
    let over = json!({"reason": "UPSTREAM_SKIPPED", "edges": edges});
    let told = said(Blocked, &over);
    holds(&told, &["It waits for o.up.v1: o.up.v1 fired for the cycle 2026-11-30 and made no"]);
    // The other has simply not fired.
    holds(&told, &["It waits for o.up.v1, which has no run of cycle 2026-11-30 yet"]);
}

#[test]
fn a_paused_one_names_the_person_the_reason_and_the_end() {
    let pause = json!({"since": "2026-11-30T11:00:00Z", "uid": 1000, "reason": "bank is closed",
                       "until": "2026-11-30T14:00:00Z"});
    let pauses = json!([{"target": {"of": "queue", "id": "night"}, "pause": pause}]);
    holds(
        &said(Ready, &json!({"reason": "PAUSED", "pauses": pauses})),
        &[
            "The queue night is paused by uid 1000 since 2026-11-30T11:00:00Z (1h ago) (bank is closed), \
           until 2026-11-30T14:00:00Z (in 2h), or schedctl resume --queue night",
        ],
    );
}

#[test]
fn a_full_quota_names_its_holders_and_counts_the_rest() {
    let quotas = json!([{"kind": "QUEUE", "name": "night", "limit": 7, "used": 7,
                         "heldBy": [{"instanceId": "01x", "taskId": "o.long.v1"}]}]);
    let place = json!({"queue": "night", "ahead": 2, "waiting": 5,
                       "first": [{"instanceId": "01y", "taskId": "o.a.v1"},
                                 {"instanceId": "01z", "taskId": "o.b.v1"}]});
    holds(
        &said(Ready, &json!({"reason": "QUOTA", "quotas": quotas, "place": place})),
        &[
            "The queue night is full: 7 run, maxRunning is 7; held by o.long.v1 01x and 6 more.",
            "2 of the 5 in the queue night go first: o.a.v1 01y, o.b.v1 01z.",
        ],
    );
}

#[test]
fn without_an_executor_labels_and_offers_are_named() {
    let offer = json!({"executorId": "local", "connected": true, "fits": false,
                       "taskTypes": ["SHELL"], "labels": {"zone": "a"}, "slots": 8, "running": 0});
    let placement =
        json!({"taskType": "SHELL", "executorLabels": {"zone": "b"}, "executors": [offer]});
    holds(
        &said(Ready, &json!({"reason": "NO_EXECUTOR", "placement": placement})),
        &[
            "takes SHELL with the labels zone=b",
            "executor local (does not fit): takes SHELL; zone=a",
        ],
    );
}

#[test]
fn a_lent_priority_names_the_lender() {
    let from = json!({"instanceId": "01c", "taskId": "o.report.v1"});
    let priority = json!({"own": 7, "effective": 1, "inheritedFrom": from});
    holds(
        &said(Ready, &json!({"priority": priority})),
        &["Its priority 7 acts as 1, lent by o.report.v1 01c, which waits for it."],
    );
}

#[test]
fn what_runs_and_what_waits_for_its_retry_say_when_it_goes_on() {
    let over = json!({"executorId": "local", "startedAt": "2026-11-30T11:59:00Z",
                      "timeoutAt": "2026-11-30T12:01:00Z"});
    holds(
        &said(Running, &over),
        &[
            "Attempt 1 runs on executor local since 2026-11-30T11:59:00Z (1m ago).",
            "It is ended as TIMEOUT if it still runs 2026-11-30T12:01:00Z (in 1m).",
        ],
    );
    let over = json!({"reason": "CANCELLING", "cancelledBy": 1000});
    holds(&said(Running, &over), &["It was told to end by uid 1000"]);
    let over = json!({"reason": "RETRY_WAIT", "nextRetryAt": "2026-11-30T12:05:00Z",
                      "attemptsLeft": 2, "errorCode": "CONN_RESET", "exitCode": 75});
    holds(
        &said(Failed, &over),
        &[
            "Attempt 1 ended with CONN_RESET (exit status 75).",
            "It is tried again 2026-11-30T12:05:00Z (in 5m); 2 attempts left.",
        ],
    );
}

#[test]
fn what_is_over_says_how_and_by_whom() {
    let over =
        json!({"errorCode": "SIGNAL_SEGV", "signal": 11, "attemptsLeft": 0, "log": ["boom"]});
    holds(
        &said(Failed, &over),
        &[
            "SIGNAL_SEGV (signal 11)",
            "| boom",
            "No attempt is left. Once it is repaired: schedctl retry 01a",
        ],
    );
    let over = json!({"reason": "CANCELLED_BY_USER", "cancelledBy": 1000});
    holds(&said(Cancelled, &over), &["It was cancelled by uid 1000."]);
    let when = edge(&json!({"when": "output.rows > 3", "satisfied": true}));
    let over = json!({"reason": "CONDITION_FALSE", "edges": [when]});
    holds(&said(Cancelled, &over), &["was false (output.rows > 3 on o.up.v1)"]);
    let skipped =
        blocker("up", &json!({"state": "CANCELLED", "reason": "SKIPPED_BY_USER", "isFinal": true}));
    let over = json!({"reason": "UPSTREAM_SKIPPED", "blockedBy": [skipped]});
    holds(
        &said(Cancelled, &over),
        &["An upstream that it needs was skipped.", "o.up.v1 up: CANCELLED (SKIPPED_BY_USER)"],
    );
    holds(&said(Succeeded, &json!({})), &["It needed 1 attempt."]);
}

fn task(over: &Value) -> String {
    let mut value = json!({
        "taskId": "o.settle.v1", "status": "ACTIVE", "summary": [], "schedule": "0 2 * * *",
        "isDerived": false, "upstreams": [], "unresolved": [], "pauses": [], "pinned": false,
        "specErrors": [], "firesWith": null, "nextFireTime": "2026-12-01T02:00:00Z",
        "nextCycle": "2026-12-01", "nextNote": null, "open": 0, "recent": [], "at": null,
    });
    for (key, entry) in over.as_object().unwrap() {
        value[key] = entry.clone();
    }
    let told: TaskExplanation = serde_json::from_value(value).unwrap();
    of_task(&told, now()).join("\n")
}

#[test]
fn a_task_says_when_it_fires_or_what_else_starts_it() {
    holds(&task(&json!({})), &["It fires next 2026-12-01T02:00:00Z (in 14h), cycle 2026-12-01."]);
    let derived = json!({"nextFireTime": null, "isDerived": true, "upstreams": ["o.up.v1"]});
    holds(&task(&derived), &["an instance when one is made of what it runs after, o.up.v1"]);
    let event = json!({"nextFireTime": null, "schedule": "event go"});
    holds(&task(&event), &["it is started by: event go"]);
    let unresolved = json!({"status": "UNRESOLVED", "unresolved": ["o.gone.v1"]});
    holds(&task(&unresolved), &["no file defines o.gone.v1"]);
    holds(&task(&json!({"status": "DISABLED"})), &["DISABLED (enabled: false)"]);
}

fn asked(over: &Value) -> String {
    let mut value = json!({
        "at": "2026-11-30T02:00:00Z", "triggers": ["cron:0 2 * * *"], "fire": null,
        "instance": null, "before": "2026-11-29T02:00:00Z", "after": "2026-12-01T02:00:00Z",
        "toCome": false, "definedAt": "2026-11-01T00:00:00Z",
    });
    for (key, entry) in over.as_object().unwrap() {
        value[key] = entry.clone();
    }
    task(&json!({"at": value}))
}

#[test]
fn a_time_says_what_the_ledger_has_or_the_nearest_fires() {
    let fire = |outcome: &str, count: u64, reason: Option<&str>| {
        json!({"fire": {"taskId": "o.settle.v1", "trigger": "cron:0 2 * * *",
                        "from": "2026-11-28T02:00:00Z", "to": "2026-11-30T02:00:00Z",
                        "count": count, "outcome": outcome, "reason": reason, "instanceId": null}})
    };
    holds(
        &asked(&fire("SKIPPED_OVERLAP", 1, Some("instance 01a is not done"))),
        &[
            "The fire of o.settle.v1 at 2026-11-30T02:00:00Z (10h ago) made nothing (SKIPPED_OVERLAP)",
            "instance 01a is not done",
        ],
    );
    holds(
        &asked(&fire("MISSED", 3, None)),
        &["(MISSED)", "one row counts 3 fires from 2026-11-28T02:00:00Z to 2026-11-30T02:00:00Z"],
    );
    holds(
        &asked(&json!({"triggers": []})),
        &[
            "No trigger of o.settle.v1 has the time 2026-11-30T02:00:00Z",
            "the nearest fires are 2026-11-29T02:00:00Z and 2026-12-01T02:00:00Z",
        ],
    );
    holds(&asked(&json!({"toCome": true})), &["that has not come yet"]);
    holds(
        &asked(&json!({"definedAt": "2026-11-30T11:00:00Z"})),
        &["was first defined at 2026-11-30T11:00:00Z"],
    );
}

#[test]
fn every_shape_is_read_back_as_it_was_written() {
    let edge: EdgeExplanation = serde_json::from_value(edge(&json!({}))).unwrap();
    let blocker: Blocker = serde_json::from_value(blocker("a", &json!({}))).unwrap();
    let told = InstanceExplanation {
        edges: vec![edge],
        blocked_by: vec![blocker],
        ..told(Ready, &json!({}))
    };
    let text = serde_json::to_string(&told).unwrap();
    assert_eq!(serde_json::from_str::<InstanceExplanation>(&text).unwrap(), told);
}
