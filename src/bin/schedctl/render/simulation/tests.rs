//! A night of one slot: two tasks at 02:00 of which one waits, one that overlaps itself, one that
//! waits for what never comes.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use sched::access::spec_yaml::{self, SpecContext};
use sched::config::{Config, Places};
use sched::model::settings::Settings;
use sched::model::simulation::{Basis, DeadlineTime, Deadlines};
use sched::scheduling::{Scenario, simulate};

use super::*;
use crate::cli::Format;
use crate::gantt;
use crate::render::tests::output;

const SPECS: &str = "
taskId: load.t.v1
version: 1
owner: o
taskType: SHELL
handler: 'true'
priority: 0
triggers: [{cron: '0 2 * * *'}]
---
taskId: report.t.v1
version: 1
owner: o
taskType: SHELL
handler: 'true'
triggers: [{cron: '0 2 * * *'}]
---
taskId: often.t.v1
version: 1
owner: o
taskType: SHELL
handler: 'true'
triggers: [{cron: '0,30 5 * * *'}]
---
taskId: held.t.v1
version: 1
owner: o
taskType: SHELL
handler: 'true'
dependsOn: [outside.t.v1]
triggers: [{cron: '0 1 * * *'}]
---
taskId: outside.t.v1
version: 1
owner: o
taskType: SHELL
handler: 'true'
triggers: [{event: go}]
";

fn deadlines() -> Deadlines {
    let four = DeadlineTime::Daily(Time::constant(4, 0, 0, 0));
    Deadlines { all: Some(four), ..Deadlines::none() }
}

pub(crate) fn night() -> SimulationView {
    let from = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
    let text = b"executors: [{id: local, slots: 1}]\ntimezone: UTC\n";
    let config = Config::read(Path::new("schedd.yaml"), text, &Places::system()).unwrap();
    let file = spec_yaml::read("night.yaml", SPECS.as_bytes(), &SpecContext::default());
    assert!(file.errors.is_empty(), "{:?}", file.errors);
    simulate(Scenario {
        basis: Basis::bare(from, Settings::clone(&config.settings)),
        specs: Some(vec![file]),
        from,
        to: from.plus(Duration::from_secs(86_400)),
        percentile: 50,
        assume: Duration::from_secs(90 * 60),
        assume_of: BTreeMap::new(),
        deadlines: deadlines(),
        events: Vec::new(),
        instances_max: 100,
    })
    .unwrap()
}

#[test]
fn a_person_reads_first_what_is_late_then_the_night_then_what_is_left() {
    let text = pages(&night(), 50, &output(Format::Table));
    // load runs 02:00 to 03:30, report 03:30 to 05:00, often at 05:00 and not at 05:30.
    let in_order = [
        "4 instances (3 succeeded, 1 open at the end), 2 late, 1 fire skipped",
        "at most 1 of 1 slot in use at 2026-12-01 02:00:00, longest wait for a start 1h30m",
        "LATE ",
        "held.t.v1",
        "more than 20h",
        "report.t.v1",
        "1h ",
        "START ",
        "2026-12-01 02:00:00  2026-12-01 03:30:00  load.t.v1",
        "2026-12-01 03:30:00  2026-12-01 05:00:00  report.t.v1",
        "local/1",
        "2026-12-01 05:00:00  2026-12-01 06:30:00  often.t.v1",
        "NO INSTANCE OF",
        "often.t.v1",
        "SKIPPED_OVERLAP",
        "FIRE TOGETHER",
        "load.t.v1, report.t.v1",
        "QUEUE",
        "EXECUTOR",
        "18 %",
        "STILL WAITS",
        "WAITING_DEPENDENCY",
        "outside.t.v1",
    ];
    let mut rest = text.as_str();
    for part in in_order {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} in {rest}\nof\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn what_is_left_out_or_assumed_is_told() {
    let view = night();
    let told = notes(&view, 50);
    let expected = [
        "3 tasks without a history took as long as --assume says: load.t.v1, often.t.v1, report.t.v1",
        "1 task that only a file or an event starts did not run: outside.t.v1 (event go)",
    ];
    assert_eq!(told, expected);
    assert_eq!(notes(&view, 1)[0], "3 more rows of the timeline; --limit 0 shows all");
    let text = pages(&view, 1, &output(Format::Table));
    assert!(!text.contains("05:00:00  2026"), "{text}");
}

#[test]
fn a_chart_has_a_bar_per_attempt_a_deadline_and_the_slots() {
    let text = gantt::svg(&night(), &deadlines(), &TimeZone::UTC);
    assert_eq!(text.matches("<title>").count(), 3, "three attempts");
    assert!(text.contains("report.t.v1 2026-12-01 attempt 1 on local/1: 12-01 03:30:00 to 12-01 05:00:00, SUCCEEDED, late</title>"), "{text}");
    assert_eq!(text.matches(">deadline</text>").count(), 1);
    assert!(text.contains(">06:00</text>") && text.contains("at most 1 of 1<"), "{text}");
    assert!(text.trim_end().ends_with("</svg>"));
    // A task's own deadline stands in its row, the third.
    let noon = DeadlineTime::Daily(Time::constant(12, 0, 0, 0));
    let task = TaskId::parse("report.t.v1").unwrap();
    let of = BTreeMap::from([(task, noon)]);
    let mut view = night();
    for instance in &mut view.instances {
        instance.deadline = Some(view.from.plus(Duration::from_secs(12 * 3600)));
    }
    let text = gantt::svg(&view, &Deadlines { of, ..Deadlines::none() }, &TimeZone::UTC);
    assert_eq!(
        text.matches("stroke-width=\"2\"/>").count(),
        2,
        "the legend's and this one: {text}"
    );
}

#[test]
fn nothing_of_a_cycle_or_an_id_can_leave_its_place_in_the_chart() {
    let mut view = night();
    view.instances[1].cycle = "<script>&\"'\u{1b}".to_owned();
    let text = gantt::svg(&view, &deadlines(), &TimeZone::UTC);
    assert!(text.contains("&lt;script&gt;&amp;&quot;&#39; "), "{text}");
    assert!(!text.contains("<script>") && !text.contains('\u{1b}'));
}
