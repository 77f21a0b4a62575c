use serde_json::json;

use jiff::tz::TimeZone;
use sched::model::backfill::Backfilled;
use sched::model::plan::{RevisionView, TaskPlan};
use sched::model::record::LogRecord;
use sched::model::view::{InstanceView, StatusView, TaskView};

use super::*;
use crate::cli::Format;

const NOW: &str = "2026-11-30T12:00:00Z";

/// Output to nowhere in particular, at noon, in UTC.
pub(crate) fn output(format: Format) -> Output {
    let now = Timestamp::parse(NOW).unwrap();
    Output { format, color: false, width: None, now, zone: TimeZone::UTC }
}

/// An instance as the daemon shows it, with what a test is about put over.
pub(crate) fn instance_json(id: &str, state: &str, over: &serde_json::Value) -> serde_json::Value {
    let mut value = json!({
        "instanceId": id, "taskId": "order.settle.v2", "version": 2, "revision": 1,
        "state": state, "reason": null, "attempt": 1, "maxAttempts": 3, "cycle": "2026-11-30",
        "date": "2026-11-30", "scheduledTime": "2026-11-30T02:00:00Z",
        "trigger": {"kind": "cron", "expr": "0 2 * * *"}, "root": id, "priority": 4,
        "effectivePriority": 4, "queue": "default", "executorId": "local",
        "createdAt": "2026-11-30T02:00:00Z", "readyAt": "2026-11-30T02:00:00Z",
        "startedAt": "2026-11-30T11:58:00Z", "finishedAt": null, "nextRetryAt": null,
        "durationMs": null, "exitCode": null, "signal": null, "errorCode": null, "message": null,
        "staticParams": {}, "runtimeParams": {}, "output": null, "dependencies": [],
        "degraded": false, "paused": null, "dedupKey": null, "attempts": []
    });
    for (key, entry) in over.as_object().into_iter().flatten() {
        value[key] = entry.clone();
    }
    value
}

pub(crate) fn instance_view(id: &str, state: &str, over: &serde_json::Value) -> InstanceView {
    serde_json::from_value(instance_json(id, state, over)).unwrap()
}

/// A task with the label `line=retail`, whose newest instance is in `last`.
pub(crate) fn task_view(id: &str, last: Option<InstanceState>) -> TaskView {
    let last = last.map(|state| {
        json!({"instanceId": "01k", "state": state, "cycle": "2026-11-30",
               "startedAt": "2026-11-30T02:00:00Z", "finishedAt": "2026-11-30T02:10:00Z",
               "errorCode": null})
    });
    serde_json::from_value(json!({
        "taskId": id, "version": 2, "revision": 3, "createdAt": "2026-11-01T00:00:00Z",
        "file": "/etc/sched.d/order.yaml", "status": "ACTIVE", "unresolved": [], "paused": null,
        "owner": "trade", "taskType": "SHELL", "priority": 4, "queue": "default",
        "schedule": "0 2 * * *", "nextFireTime": "2026-12-01T02:00:00Z", "lastInstance": last,
        "labels": {"line": "retail"}, "spec": null
    }))
    .unwrap()
}

#[test]
fn a_hold_is_shown_wherever_an_instance_stands() {
    let paused = json!({"since": "2026-11-30T11:59:00Z", "uid": 7, "reason": "why", "until": null});
    for (state, reason, shown) in [
        ("PENDING", "WAITING_DEPENDENCY", "WAITING_DEPENDENCY, PAUSED"),
        ("READY", "PAUSED", "PAUSED"),
        ("RUNNING", "FROZEN", "FROZEN"),
    ] {
        let view = instance_view("01a", state, &json!({"reason": reason, "paused": paused}));
        assert_eq!(instance::why(&view, output(Format::Table).now), shown, "{state}");
    }
    let attempt = json!({
        "attempt": 1, "lease": 1, "executorId": "local", "bootId": "b",
        "startedAt": "2026-11-30T11:00:00Z", "finishedAt": "2026-11-30T11:10:00Z", "exitCode": 0,
        "signal": null, "errorCode": null, "userMs": null, "systemMs": null, "maxRssBytes": null,
        "outputBytes": null, "frozenMs": 120000
    });
    let view = instance_view("01a", "SUCCEEDED", &json!({"attempts": [attempt]}));
    let page = instance::page(&view, &output(Format::Table));
    assert!(page.contains("10m (2m frozen)"), "{page}");
}

#[test]
fn the_list_of_tasks_has_the_columns_of_the_contract() {
    let views =
        [task_view("order.settle.v2", Some(InstanceState::Failed)), task_view("a.b.v1", None)];
    let expected = "\
TASK             SCHEDULE   NEXT                 LEFT    LAST      RESULT  STATE
order.settle.v2  0 2 * * *  2026-12-01 02:00:00  in 14h  9h50m ago  FAILED  ACTIVE
a.b.v1           0 2 * * *  2026-12-01 02:00:00  in 14h  -          -       ACTIVE
";
    let text = task::list(&views, &output(Format::Table));
    let words = |text: &str| -> Vec<Vec<String>> {
        let fields = |line: &str| line.split("  ").map(|w| w.trim().to_owned()).collect::<Vec<_>>();
        text.lines().map(|l| fields(l).into_iter().filter(|w| !w.is_empty()).collect()).collect()
    };
    assert_eq!(words(&text), words(expected));
    assert!(!text.contains('\u{1b}'));
    assert!(task::list(&views, &output(Format::Wide)).contains("/etc/sched.d/order.yaml"));
}

#[test]
fn a_backfill_shows_each_cycle_with_what_became_of_it_and_how_much_it_was() {
    let filled: Backfilled = serde_json::from_value(json!({
        "instances": ["0b"], "from": "2026-11-28", "to": "2026-11-30", "repeated": false,
        "notDueFrom": "2026-11-30T14:00:00Z",
        "cycles": [
            {"cycle": "2026-11-28", "scheduledTime": "2026-11-28T14:00:00Z", "instanceId": null,
             "skipped": {"reason": "OPEN", "instanceId": "0a"}, "downstream": []},
            {"cycle": "2026-11-29", "scheduledTime": "2026-11-29T14:00:00Z", "instanceId": "0b",
             "skipped": null, "downstream": [{"taskId": "x.v1", "instanceId": "0c"}]},
        ],
    }))
    .unwrap();
    let text = backfill::cycles(&filled.cycles, &output(Format::Table));
    let fields: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect())
        .collect();
    assert_eq!(
        fields,
        [
            ["CYCLE", "SCHEDULED", "INSTANCE", "DOWNSTREAM", "SKIPPED"],
            ["2026-11-28", "2026-11-28 14:00:00", "-", "-", "0a is open"],
            ["2026-11-29", "2026-11-29 14:00:00", "0b", "x.v1", "-"],
        ]
    );
    let summary = |dry_run| backfill::summary("a.v1", &filled, dry_run, &output(Format::Table));
    let not_due = "from 2026-11-30 14:00:00 on nothing is due yet: that is left to its own time";
    assert_eq!(
        summary(false),
        ["2026-11-28 to 2026-11-30: 1 instance of a.v1 made, and 1 downstream; 1 skipped", not_due,]
    );
    assert_eq!(
        summary(true)[0],
        "2026-11-28 to 2026-11-30: 1 instance of a.v1 would be made, and \
         1 downstream; 1 would be skipped"
    );
}

#[test]
fn colour_is_there_if_it_is_wanted() {
    let wanted = Output { color: true, ..output(Format::Table) };
    assert!(task::list(&[task_view("a.b.v1", None)], &wanted).contains('\u{1b}'));
}

#[test]
fn a_table_fits_the_terminal() {
    let narrow = Output { width: Some(60), ..output(Format::Table) };
    let text = task::list(&[task_view("order.settle.v2", Some(InstanceState::Failed))], &narrow);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn instances_say_why_they_are_where_they_are() {
    let retry = json!({"errorCode": "EXIT_4", "nextRetryAt": "2026-11-30T12:00:30Z"});
    let views = [
        instance_view("01a", "RUNNING", &json!({})),
        instance_view("01b", "FAILED", &retry),
        instance_view("01c", "READY", &json!({"reason": "NO_SLOT"})),
    ];
    let text = instance::list(&views, &output(Format::Table));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains("RUNNING") && lines[1].ends_with("2m"), "{text}");
    assert!(lines[2].contains("EXIT_4, retry in 30s"), "{text}");
    assert!(lines[3].contains("NO_SLOT"), "{text}");
}

#[test]
fn an_end_is_for_good_unless_a_retry_is_to_come() {
    let over = |state: &str, retry: Option<&str>| {
        instance::is_over(&instance_view("i", state, &json!({"nextRetryAt": retry})))
    };
    assert!(over("SUCCEEDED", None) && over("CANCELLED", None) && over("FAILED", None));
    assert!(!over("FAILED", Some(NOW)) && !over("TIMEOUT", Some(NOW)));
    assert!(!over("RUNNING", None) && !over("BLOCKED", None));
}

#[test]
fn the_page_of_an_instance_names_edges_and_attempts() {
    let over = json!({
        "message": "exit status 4\n\u{1b}[31m", "runtimeParams": {"bizDate": "2026-11-30"},
        "dependencies": [{"taskId": "a.b.v1", "depType": "SUCCESS", "strength": "STRONG",
                          "instanceId": null, "state": null, "satisfied": false}],
        "attempts": [{"attempt": 1, "lease": 7, "executorId": "local", "bootId": "b",
                      "startedAt": "2026-11-30T02:00:00Z", "finishedAt": "2026-11-30T02:00:05Z",
                      "exitCode": 4, "signal": null, "errorCode": "EXIT_4", "userMs": 100,
                      "systemMs": 20, "maxRssBytes": 3_565_159, "outputBytes": 17}]
    });
    let text = instance::page(&instance_view("01a", "FAILED", &over), &output(Format::Table));
    for word in
        ["01a", "cron 0 2 * * *", "a.b.v1", "(none yet)", "EXIT_4", "5s", "120ms", "3.4Mi", "17B"]
    {
        assert!(text.contains(word), "{word} in:\n{text}");
    }
    assert!(text.contains(r#"{"bizDate":"2026-11-30"}"#), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn status_shows_bad_files_with_their_place_and_what_is_degraded() {
    let status: StatusView = serde_json::from_value(json!({
        "version": "0.1.0", "pid": 4242, "startedAt": "2026-11-30T10:00:00Z",
        "timezone": "Asia/Shanghai",
        "instances": {"open": 9, "pending": 1, "blocked": 2, "ready": 3, "running": 2,
                      "retrying": 1},
        "tasks": 17,
        "queues": [{"name": "default", "weight": 4, "discipline": "WEIGHTED",
                    "levelWeights": {"CRITICAL": 16, "HIGH": 8, "NORMAL": 4, "LOW": 2,
                                     "BACKGROUND": 1}, "maxRunning": null, "ready": 3, "running": 2,
                    "paused": {"since": "2026-11-30T11:59:00Z", "uid": 0, "reason": "move",
                               "until": null}}],
        "executors": [{"executorId": "local", "connected": true, "pid": 77, "incarnation": 1,
                       "slots": 8, "running": 2, "taskTypes": ["*"], "labels": {"zone": "a"},
                       "lastHeartbeatAt": "2026-11-30T11:59:58Z", "load1": 0.5}],
        "specErrors": [{"file": "/etc/sched.d/keep.me.v1.yaml", "line": 3, "column": 5,
                        "path": "retry", "message": "is no object"}],
        "degraded": ["the disk is nearly full"], "paused": null, "stopping": false
    }))
    .unwrap();
    let running = [instance_view("01run", "RUNNING", &json!({}))];
    let failed = [instance_view("01bad", "FAILED", &json!({"errorCode": "EXIT_4"}))];
    let text = status::page(&status, &running, &failed, &output(Format::Table));
    for word in [
        "0.1.0",
        "4242",
        "2h ago",
        "Asia/Shanghai",
        "9 open: 1 pending, 2 blocked, 3 ready, 2 running, 1 waiting for a retry",
        "/etc/sched.d/keep.me.v1.yaml:3:5: retry: is no object",
        "the disk is nearly full",
        "paused 1m ago by uid 0: move",
        "2/8",
        "WEIGHTED 16:8:4:2:1",
        "01run",
        "01bad",
        "EXIT_4",
    ] {
        assert!(text.contains(word), "{word} in:\n{text}");
    }
}

#[test]
fn a_record_is_one_line() {
    let record: LogRecord = serde_json::from_value(json!({
        "seq": 12, "at": "2026-11-30T11:00:00Z", "uid": 1000, "kind": "moved",
        "instanceId": "01a", "taskId": "a.b.v1", "from": "RUNNING", "to": "FAILED",
        "reason": "RETRY_WAIT", "attempt": 1, "executorId": null, "errorCode": "EXIT_4",
        "nextRetryAt": "2026-11-30T12:00:10Z", "isFinal": false
    }))
    .unwrap();
    let expected = "    12  2026-11-30 11:00:00  a.b.v1 01a RUNNING → FAILED \
                    (EXIT_4, RETRY_WAIT, again in 10s) [uid 1000]";
    assert_eq!(event::line(&record, &output(Format::Table)), expected);
}

#[test]
fn a_definition_is_shown_without_what_is_empty() {
    let spec = json!({"taskId": "a.b.v1", "args": [], "name": null, "retry": {"maxAttempts": 3}, "limits": {"memory": null},
                      "handler": "echo a\necho b\n", "dependsOn": [{"taskId": "c.d.v1"}]});
    let text = task::definition(&spec);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.contains(&"taskId: a.b.v1") && lines.contains(&"  maxAttempts: 3"), "{text}");
    assert!(text.contains("handler: |\n  echo a\n  echo b\n"), "{text}");
    assert!(!text.contains("args") && !text.contains("name"), "{text}");
    assert!(!text.contains("limits"), "nothing in it: {text}");
}

/// A file with values that YAML could misread, and its definition as the daemon tells it.
fn read_spec(text: &str) -> serde_json::Value {
    let context = sched::access::spec_yaml::SpecContext::default();
    let file = sched::access::spec_yaml::read("/x.yaml", text.as_bytes(), &context);
    assert!(file.errors.is_empty(), "{:?}\n{text}", file.errors);
    serde_json::to_value(&*file.specs[0]).unwrap()
}

#[test]
fn a_definition_that_is_shown_is_a_spec_that_says_the_same() {
    let spec = read_spec(
        r#"
taskId: a.b.v1
version: 1
owner: "yes"
name: "a: b #c"
labels: {"on": "1", "x y": "*a", empty: ""}
taskType: SHELL
handler: "  echo a\n echo b\n\n"
description: "line\n\n  two\n"
args: ["", "{taskId}", "- x", "2026-11-30", "two\nlines", "\e[31m"]
staticParams: {a: [1, [2, {b: "~"}]], c: 0.5}
runtimeParams: {n: {type: string, default: "007"}}
env: {A: "true"}
umask: "022"
triggers: [{cron: "*/30 * * * * *"}, {every: 5m}, {event: go}]
dependsOn: [{taskId: c.d.v1, when: "output.rows > 0 && state == 'SUCCEEDED'"}]
"#,
    );
    let shown = task::definition(&spec);
    assert!(shown.contains("cron: \"*/30 * * * * *\"\n"), "{shown}");
    assert_eq!(read_spec(&shown), spec, "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn what_is_wrong_with_a_tasks_file_is_told_with_what_stays_in_force() {
    let mut view = task_view("a.b.v1", None);
    assert!(!task::summary(&view, &output(Format::Table)).contains("Errors"));
    view.spec_errors = vec![sched::model::event::SpecError {
        file: "/etc/sched.d/order.yaml".to_owned(),
        line: 5,
        column: 1,
        path: "retires".to_owned(),
        message: "is unknown".to_owned(),
    }];
    let text = task::summary(&view, &output(Format::Table));
    let line = "Errors: /etc/sched.d/order.yaml:5:1: retires: is unknown (revision 3 stays in \
                force)\n";
    assert!(text.contains(line), "{text}");
}

fn revision_view(revision: u64, over: &serde_json::Value) -> RevisionView {
    let mut value = json!({
        "revision": revision, "hash": "h", "loadedAt": "2026-11-30T11:00:00Z",
        "file": "/etc/sched.d/a.yaml", "uid": 1000, "active": false, "pinned": false,
        "changes": []
    });
    for (key, entry) in over.as_object().into_iter().flatten() {
        value[key] = entry.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn three_revisions() -> [RevisionView; 3] {
    let change = |path: &str| json!({"path": path, "from": null, "to": "echo \u{1b}[31m\nend"});
    let many = ["args[0]", "env.A", "handler", "owner", "queue"].map(change);
    [
        revision_view(1, &json!({"uid": null})),
        revision_view(
            2,
            &json!({"active": true, "changes": [
                {"path": "retry.maxAttempts", "from": 1, "to": 3}
            ]}),
        ),
        revision_view(3, &json!({"changes": many})),
    ]
}

#[test]
fn revisions_say_which_is_in_force_and_what_changed() {
    let mut views = three_revisions();
    let text = definition::revisions(&views, &output(Format::Table));
    let lines: Vec<&str> = text.lines().collect();
    let heads: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(heads, ["REVISION", "LOADED", "BY", "FILE", "STATE", "CHANGES"]);
    assert!(lines[1].starts_with('1') && lines[1].ends_with('-'), "{text}");
    assert!(lines[2].contains("uid 1000") && lines[2].contains("1h ago"), "{text}");
    assert!(lines[2].ends_with("retry.maxAttempts") && lines[2].contains("ACTIVE"), "{text}");
    assert!(lines[3].ends_with("args[0], env.A, handler and 2 more"), "{text}");
    views[1].pinned = true;
    assert!(definition::revisions(&views, &output(Format::Table)).contains("PINNED"));
}

#[test]
fn a_diff_has_one_line_for_each_field() {
    let text = definition::diffs(&three_revisions()[..2]);
    assert_eq!(text, "revision 1: the first\nrevision 2, active:\n  retry.maxAttempts: 1 -> 3\n");
    let text = definition::diffs(&three_revisions());
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(text.lines().count(), 9, "{text}");
}

#[test]
fn a_pinned_task_says_so_and_what_ends_it() {
    let mut view = task_view("a.b.v1", None);
    assert!(!task::summary(&view, &output(Format::Table)).contains("Pinned"));
    view.pinned = true;
    let text = task::summary(&view, &output(Format::Table));
    assert!(text.contains("Pinned: to revision 3 until schedctl unpin a.b.v1"), "{text}");
    let newest = definition::in_one_line(&three_revisions()[2], &output(Format::Table));
    let expected = "revision 3, loaded 2026-11-30 11:00:00 (1h ago) from /etc/sched.d/a.yaml by \
                    uid 1000; changed: args[0], env.A, handler and 2 more";
    assert_eq!(newest, expected);
}

#[test]
fn a_plan_says_what_would_happen_to_each_task() {
    let entry = |id: &str, change: &str, over: serde_json::Value| -> TaskPlan {
        let mut value = json!({
            "taskId": id, "change": change, "file": "/etc/sched.d/a.yaml", "changes": [],
            "nextFireTime": null, "nextFireTimeAfter": null, "unresolved": [],
            "brokenDependents": [], "instances": []
        });
        for (key, entry) in over.as_object().into_iter().flatten() {
            value[key] = entry.clone();
        }
        serde_json::from_value(value).unwrap()
    };
    let tasks = [
        entry(
            "a.new.v1",
            "ADDED",
            json!({"nextFireTimeAfter": "2026-12-01T02:00:00Z",
                                          "unresolved": ["x.y.v1"]}),
        ),
        entry(
            "b.other.v1",
            "CHANGED",
            json!({
                "changes": [{"path": "triggers[0].cron", "from": "0 2 * * *", "to": "0 3 * * *"}],
                "nextFireTime": "2026-12-01T02:00:00Z", "nextFireTimeAfter": "2026-12-01T03:00:00Z",
                "instances": ["01a", "01b"]
            }),
        ),
        entry("c.moved.v1", "MOVED", json!({})),
        entry(
            "d.gone.v1",
            "REMOVED",
            json!({"brokenDependents": ["b.other.v1"],
                                             "instances": ["01c"]}),
        ),
        entry("e.held.v1", "IGNORED", json!({})),
    ];
    let expected = "\
+ a.new.v1 added by /etc/sched.d/a.yaml
    next fire: none -> 2026-12-01 02:00:00 (in 14h)
    waits for what no file defines: x.y.v1
~ b.other.v1 changed by /etc/sched.d/a.yaml
    triggers[0].cron: \"0 2 * * *\" -> \"0 3 * * *\"
    next fire: 2026-12-01 02:00:00 (in 14h) -> 2026-12-01 03:00:00 (in 15h)
    open instances that would follow it if not yet started: 01a, 01b
> c.moved.v1 moved to /etc/sched.d/a.yaml
- d.gone.v1 removed with /etc/sched.d/a.yaml
    b.other.v1 would wait for what no file defines
    open instances that would finish with the last definition: 01c
= e.held.v1 pinned, so it ignores /etc/sched.d/a.yaml
";
    assert_eq!(definition::plan(&tasks, &output(Format::Table)), expected);
}

#[test]
fn coming_runs_are_shown_in_their_zone_and_in_utc() {
    let fire = json!({
        "taskId": "a.b.v1", "at": "2027-03-28T01:00:00Z", "local": "2027-03-28T03:00:00+02:00",
        "trigger": "cron:30 2 * * *", "note": "moved: 02:30 does not exist on this day"
    });
    let fires = [serde_json::from_value(fire).unwrap()];
    let words = |zone: Option<&TimeZone>| {
        let text = task::coming(&fires, zone, &output(Format::Table));
        let row = text.lines().nth(1).unwrap().to_owned();
        row.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(None), ["2027-03-28T03:00:00+02:00", "2027-03-28", "01:00:00"]);
    let tokyo = TimeZone::get("Asia/Tokyo").unwrap();
    let asked = ["2027-03-28T10:00:00.000+09:00", "2027-03-28", "01:00:00"];
    assert_eq!(words(Some(&tokyo)), asked);
    let text = task::coming(&fires, None, &output(Format::Table));
    assert!(text.contains("moved: 02:30 does not exist on this day"), "{text}");
}
