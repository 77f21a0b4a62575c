//! A simulated night as a chart: one row per task, one bar per attempt, and the slots in use below.
//!
//! It is an SVG file that needs nothing else: no script, no font, no style sheet of its own. What is
//! drawn are rectangles, lines and words, so it needs no library either.

mod marks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::tz::TimeZone;
use sched::model::id::TaskId;
use sched::model::simulation::{
    DeadlineTime, Deadlines, SimulatedAttempt, SimulatedInstance, SimulationView,
};
use sched::model::time::Timestamp;

use self::marks::{COLORS, LATE, color};
use crate::xml_text::escaped;

/// Rows that are drawn; a longer chart nobody can read.
const ROWS_MAX: usize = 300;
/// Bars that are drawn.
const BARS_MAX: usize = 50_000;
/// Lines of time.
const TICKS_MAX: i64 = 26;

const NAMES: f64 = 230.0;
const WIDTH: f64 = 1200.0;
const TOP: f64 = 64.0;
const ROW: f64 = 18.0;
const SLOTS: f64 = 90.0;
const GAP: f64 = 34.0;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// Distances of the lines of time.
const STEPS: [i64; 13] = [
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    24 * HOUR,
    48 * HOUR,
];

/// The chart.
pub(crate) fn svg(view: &SimulationView, deadlines: &Deadlines, zone: &TimeZone) -> String {
    let rows = rows(view);
    let shown = rows.len().min(ROWS_MAX);
    let chart = Chart {
        view,
        zone,
        bottom: TOP + ROW * float(shown),
        span: float_ms(view.from, view.to).max(1.0),
        text: String::new(),
    };
    chart.draw(&rows, shown, deadlines)
}

/// Tasks with what ran of them, in the order in which they first start.
fn rows(view: &SimulationView) -> Vec<(&TaskId, Vec<&SimulatedInstance>)> {
    let mut of: BTreeMap<&TaskId, Vec<&SimulatedInstance>> = BTreeMap::new();
    for instance in &view.instances {
        of.entry(&instance.task_id).or_default().push(instance);
    }
    let mut rows: Vec<(&TaskId, Vec<&SimulatedInstance>)> = of.into_iter().collect();
    let first = |instances: &[&SimulatedInstance]| {
        instances.iter().map(|i| i.started_at.unwrap_or(i.created_at)).min()
    };
    rows.sort_by_key(|(_, instances)| first(instances));
    rows
}

struct Chart<'a> {
    view: &'a SimulationView,
    zone: &'a TimeZone,
    /// Where the rows of tasks end.
    bottom: f64,
    /// Milliseconds.
    span: f64,
    text: String,
}

impl Chart<'_> {
    fn draw(
        mut self,
        rows: &[(&TaskId, Vec<&SimulatedInstance>)],
        shown: usize,
        deadlines: &Deadlines,
    ) -> String {
        let (width, height) = (NAMES + WIDTH + 20.0, self.bottom + GAP + SLOTS + 30.0);
        self.put(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">"
        ));
        self.put("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
        self.head(rows.len() - shown);
        self.times();
        let mut left = BARS_MAX;
        for (at, (task, instances)) in rows.iter().take(shown).enumerate() {
            self.row(TOP + ROW * float(at), task, instances, &mut left);
            if deadlines.of.contains_key(*task) {
                self.own_deadlines(TOP + ROW * float(at), instances);
            }
        }
        self.deadline(deadlines);
        self.slots();
        self.put("</svg>");
        self.text
    }

    fn put(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Words at a place; `anchor`: which end of them stands there.
    fn words(&mut self, x: f64, y: f64, anchor: &str, fill: &str, words: &str) {
        let words = escaped(words);
        self.put(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{words}</text>"
        ));
    }

    fn x(&self, at: Timestamp) -> f64 {
        let at = at.clamp(self.view.from, self.view.to);
        NAMES + WIDTH * float_ms(self.view.from, at) / self.span
    }

    fn local(&self, at: Timestamp, form: &str) -> String {
        at.to_jiff().map_or_else(
            || at.to_string(),
            |at| at.to_zoned_datetime(self.zone.clone()).strftime(form).to_string(),
        )
    }

    fn head(&mut self, left_out: usize) {
        let s = self.view.summary;
        let form = "%Y-%m-%d %H:%M";
        let more =
            if left_out > 0 { format!(", {left_out} tasks not drawn") } else { String::new() };
        let title = format!(
            "{} to {} ({}): {} instances, {} late, {} fires skipped, at most {} of {} slots{more}",
            self.local(self.view.from, form),
            self.local(self.view.to, form),
            self.zone.iana_name().unwrap_or("local time"),
            s.instances,
            s.late,
            s.skipped_fires,
            s.peak_slots,
            s.slots,
        );
        self.words(10.0, 18.0, "start", "#222222", &title);
        let mut x = 10.0;
        let legend = [
            (COLORS.waiting, "waits for a start"),
            (COLORS.good, "succeeds"),
            (COLORS.bad, "fails or times out"),
            (COLORS.busy, "still runs at the end"),
            (COLORS.held, "cancelled"),
        ];
        for (color, words) in legend {
            self.put(&format!(
                "<rect x=\"{x:.1}\" y=\"28\" width=\"12\" height=\"10\" fill=\"{color}\"/>"
            ));
            self.words(x + 16.0, 37.0, "start", "#555555", words);
            x += 150.0;
        }
        self.put(&format!(
            "<rect x=\"{x:.1}\" y=\"28\" width=\"12\" height=\"10\" fill=\"none\" stroke=\"{LATE}\" \
             stroke-width=\"2\"/>"
        ));
        self.words(x + 16.0, 37.0, "start", "#555555", "late");
    }

    /// Lines at whole times of the zone, as it was set at the beginning.
    fn times(&mut self) {
        let span = self.view.to.as_millis() - self.view.from.as_millis();
        let step = STEPS.into_iter().find(|step| span / step < TICKS_MAX).unwrap_or(96 * HOUR);
        let offset = self
            .view
            .from
            .to_jiff()
            .map_or(0, |from| i64::from(self.zone.to_offset(from).seconds()) * 1000);
        let first = (self.view.from.as_millis() + offset).div_euclid(step) * step - offset;
        let base = self.bottom + GAP + SLOTS;
        let mut at = first;
        while at <= self.view.to.as_millis() {
            let time = Timestamp::from_millis(at);
            at += step;
            if time < self.view.from {
                continue;
            }
            let x = self.x(time);
            self.put(&format!(
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{base:.1}\" stroke=\"#e4e4e4\"/>"
            ));
            let clock = self.local(time, "%H:%M");
            let words = if clock == "00:00" || step >= 24 * HOUR {
                self.local(time, "%m-%d")
            } else {
                clock
            };
            self.words(x, TOP - 6.0, "middle", "#555555", &words);
            self.words(x, base + 14.0, "middle", "#555555", &words);
        }
    }

    fn row(
        &mut self,
        y: f64,
        task: &TaskId,
        instances: &[&SimulatedInstance],
        bars_left: &mut usize,
    ) {
        let name: String = if task.as_str().chars().count() > 36 {
            task.as_str().chars().take(35).chain(['…']).collect()
        } else {
            task.as_str().to_owned()
        };
        self.words(NAMES - 8.0, y + 13.0, "end", "#222222", &name);
        let end = NAMES + WIDTH;
        let under = y + ROW;
        self.put(&format!(
            "<line x1=\"{NAMES}\" y1=\"{under:.1}\" x2=\"{end}\" y2=\"{under:.1}\" stroke=\"#f2f2f2\"/>"
        ));
        for instance in instances {
            let attempts = instance.attempts.iter().filter(|a| {
                a.started_at < self.view.to && a.finished_at.is_none_or(|end| end >= self.view.from)
            });
            let attempts: Vec<&SimulatedAttempt> = attempts.take(*bars_left).collect();
            *bars_left -= attempts.len();
            for attempt in attempts {
                self.bar(y, instance, attempt);
            }
        }
    }

    /// Deadlines of a task that has its own.
    fn own_deadlines(&mut self, y: f64, instances: &[&SimulatedInstance]) {
        let within = |at: &Timestamp| (self.view.from..self.view.to).contains(at);
        let times: BTreeSet<Timestamp> =
            instances.iter().filter_map(|i| i.deadline).filter(within).collect();
        for at in times {
            let (x, under) = (self.x(at), y + ROW);
            self.put(&format!(
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{under:.1}\" \
                 stroke=\"{LATE}\" stroke-width=\"2\"/>"
            ));
        }
    }

    fn bar(&mut self, y: f64, instance: &SimulatedInstance, attempt: &SimulatedAttempt) {
        let (ready, start) = (self.x(attempt.ready_at), self.x(attempt.started_at));
        if start - ready > 0.5 {
            self.put(&format!(
                "<rect x=\"{ready:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"4\" fill=\"{}\"/>",
                y + 7.0,
                start - ready,
                COLORS.waiting
            ));
        }
        let end = self.x(attempt.finished_at.unwrap_or(self.view.to));
        let stroke = if instance.late {
            format!(" stroke=\"{LATE}\" stroke-width=\"2\"")
        } else {
            String::new()
        };
        let form = "%m-%d %H:%M:%S";
        let until =
            attempt.finished_at.map_or_else(|| "still on".to_owned(), |end| self.local(end, form));
        let told = format!(
            "{} {} attempt {} on {}/{}: {} to {}, {}{}",
            instance.task_id,
            instance.cycle,
            attempt.attempt,
            attempt.executor_id,
            attempt.slot,
            self.local(attempt.started_at, form),
            until,
            attempt.state,
            if instance.late { ", late" } else { "" },
        );
        self.put(&format!(
            "<rect x=\"{start:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"{}\"{stroke}><title>{}</title></rect>",
            y + 3.0,
            (end - start).max(1.5),
            ROW - 6.0,
            color(attempt.state),
            escaped(&told),
        ));
    }

    /// The deadline that is everybody's.
    fn deadline(&mut self, deadlines: &Deadlines) {
        let mut times = Vec::new();
        match deadlines.all {
            None => {}
            Some(DeadlineTime::At(at)) => times.push(at),
            Some(DeadlineTime::Daily(_)) => {
                let everybody = Deadlines { of: BTreeMap::new(), ..deadlines.clone() };
                let Some(any) = self.view.instances.first() else { return };
                let mut after = self.view.from.just_before();
                while let Some(at) = everybody.due(&any.task_id, after)
                    && at < self.view.to
                {
                    times.push(at);
                    after = at;
                }
            }
        }
        for at in times.into_iter().filter(|at| (self.view.from..self.view.to).contains(at)) {
            let (x, bottom) = (self.x(at), self.bottom);
            self.put(&format!(
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{LATE}\" \
                 stroke-width=\"1.5\" stroke-dasharray=\"5 3\"/>"
            ));
            self.words(x + 3.0, self.bottom + 12.0, "start", LATE, "deadline");
        }
    }

    /// Slots in use, with what waits for one above them.
    fn slots(&mut self) {
        let base = self.bottom + GAP + SLOTS;
        let most = |of: fn(&sched::model::simulation::SlotUse) -> u64| {
            self.view.slots.iter().map(of).max().unwrap_or(0)
        };
        let top = most(|s| s.running + s.ready).max(1);
        let most_running = most(|s| s.running);
        let height = |n: u64| SLOTS * whole(n) / whole(top);
        let mut areas = [String::new(), String::new()];
        for (at, slot) in self.view.slots.iter().enumerate() {
            let x = self.x(slot.at);
            let next = self.view.slots.get(at + 1).map_or(self.view.to, |next| next.at);
            let width = self.x(next) - x;
            let (running, all) = (height(slot.running), height(slot.running + slot.ready));
            for (area, top) in areas.iter_mut().zip([all, running]) {
                if top > 0.0 && width > 0.0 {
                    let y = base - top;
                    // Writing to a String cannot fail.
                    let _infallible = write!(area, "M{x:.1} {y:.1}h{width:.1}V{base:.1}H{x:.1}z");
                }
            }
        }
        for (area, fill) in areas.into_iter().zip([COLORS.waiting, COLORS.slots]) {
            self.put(&format!("<path d=\"{area}\" fill=\"{fill}\"/>"));
        }
        let end = NAMES + WIDTH;
        self.put(&format!(
            "<line x1=\"{NAMES}\" y1=\"{base:.1}\" x2=\"{end}\" y2=\"{base:.1}\" stroke=\"#999999\"/>"
        ));
        let words = format!("slots in use, at most {most_running} of {}", self.view.summary.slots);
        self.words(NAMES - 8.0, base - SLOTS / 2.0, "end", "#222222", &words);
        self.words(
            NAMES - 8.0,
            base - SLOTS / 2.0 + 14.0,
            "end",
            "#555555",
            "above: READY, waiting",
        );
        self.words(end + 4.0, base - SLOTS + 10.0, "start", "#555555", &top.to_string());
    }
}

/// Milliseconds between two times.
fn float_ms(from: Timestamp, to: Timestamp) -> f64 {
    to.since(from).as_secs_f64() * 1000.0
}

fn float(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::MAX, f64::from)
}

fn whole(n: u64) -> f64 {
    u32::try_from(n).map_or(f64::from(u32::MAX), f64::from)
}
