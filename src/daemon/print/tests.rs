use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing::span::{Attributes, Id};
use tracing::{Level, Metadata, Subscriber};

use super::*;

/// 2026-11-30T02:00:00Z.
const AT: &str = "2026-11-30T02:00:00.000Z";

fn record(what: &Value) -> LogRecord {
    let mut fields = json!({"seq": 7, "at": AT, "uid": null});
    fields.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
    serde_json::from_value(fields).unwrap()
}

fn moved_to(state: &str, more: &Value) -> LogRecord {
    let mut fields = json!({
        "kind": "moved", "instanceId": "06a9yr", "taskId": "order.settle.v2", "from": "RUNNING",
        "to": state, "reason": null, "attempt": 1, "executorId": null, "errorCode": null,
        "nextRetryAt": null, "isFinal": false,
    });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record(&fields)
}

fn fire(outcome: &str, count: u64) -> LogRecord {
    record(&json!({
        "kind": "fire", "taskId": "a.v1", "trigger": "cron:0 2 * * *", "from": AT, "to": AT,
        "count": count, "outcome": outcome, "reason": null, "instanceId": null,
    }))
}

fn updated() -> LogRecord {
    record(&json!({"kind": "updated", "instanceId": "06a9yr", "taskId": "a.v1", "what": "edges"}))
}

fn refused() -> LogRecord {
    record(&json!({
        "kind": "definitionRefused", "file": "a.yaml", "line": 3, "column": 5, "path": "retry",
        "message": "found a list, expected a map",
    }))
}

#[track_caller]
fn reads(record: &LogRecord, expected: &str) {
    assert_eq!(line(record).as_deref(), Some(expected));
}

#[test]
fn each_change_is_one_readable_line() {
    reads(
        &moved_to("RUNNING", &json!({"executorId": "local"})),
        "order.settle.v2 RUNNING attempt 1 on local (06a9yr)",
    );
    let again = json!({
        "errorCode": "EXIT_3", "reason": "RETRY_WAIT", "nextRetryAt": "2026-11-30T02:00:30.000Z",
    });
    reads(
        &moved_to("FAILED", &again),
        "order.settle.v2 FAILED RETRY_WAIT attempt 1 EXIT_3, again in 30 s (06a9yr)",
    );
    reads(
        &fire("MISSED", 3),
        "a.v1 MISSED cron:0 2 * * * 3 fires 2026-11-30T02:00:00.000Z to 2026-11-30T02:00:00.000Z",
    );
    reads(&refused(), "refused a.yaml:3:5: retry: found a list, expected a map");
}

#[test]
fn what_another_line_says_has_no_line() {
    assert_eq!(line(&fire("INSTANCE", 1)), None);
    assert_eq!(line(&updated()), None);
}

/// Notes the level of each event.
#[derive(Clone, Default)]
struct Levels(Arc<Mutex<Vec<Level>>>);

impl Levels {
    fn said(&self) -> Vec<Level> {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Levels {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn what_needs_a_person_is_a_warning_and_what_hardly_matters_is_not_shown() {
    let everything = [
        moved_to("RUNNING", &json!({})),
        moved_to("FAILED", &json!({"isFinal": false})),
        moved_to("FAILED", &json!({"isFinal": true})),
        refused(),
        fire("MISSED", 1),
        fire("INSTANCE", 1),
        updated(),
    ];
    let said_to = |audience| {
        let levels = Levels::default();
        tracing::subscriber::with_default(levels.clone(), || {
            for record in &everything {
                announce(record, audience);
            }
        });
        levels.said()
    };
    let worth_a_line = [Level::INFO, Level::INFO, Level::WARN, Level::WARN, Level::INFO];
    assert_eq!(said_to(Audience::Person), worth_a_line);
    let (shown, hidden) = (&said_to(Audience::Program)[..5], &said_to(Audience::Program)[5..]);
    assert_eq!(shown, worth_a_line);
    assert_eq!(hidden, [Level::DEBUG, Level::DEBUG]);
}
