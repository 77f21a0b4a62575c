//! A year of one daemon's life (and more by its clock, which is set back and forth): it is killed,
//! stopped for weeks, suspended, its tasks are paused, disabled and overrun. Whatever happened,
//! every nominal time is counted in exactly one row of the ledger and none is run twice
//! (requirement E2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use crate::build::{every, file, full, id, on, settings, task};
use crate::model::command::{Command, Effects};
use crate::model::cron::CronExpr;
use crate::model::event::{AttemptRef, Event, Finished, Hello, Outcome, Report, TaskResult};
use crate::model::id::{ExecutorId, LogSeq, ReplyTo};
use crate::model::instance::{Instance, InstanceState};
use crate::model::record::{Fire, Record, Row, RowKey, Target};
use crate::model::request::{Caller, Request};
use crate::model::settings::Settings;
use crate::model::spec::{
    CronTrigger, FirePolicy, Misfire, Overlap, TaskSpec, Trigger, TriggerKind,
};
use crate::model::time::Timestamp;
use crate::rng::Rng;
use crate::scheduling::{Engine, Process};

/// 2026-12-01T00:00:00Z.
const BEGIN: i64 = 1_796_083_200_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
const SEEDS: u64 = 8;
const TASKS: [&str; 4] = ["nightly", "hourly", "often", "two"];

fn cron(text: &str, timezone: &str, misfire: Misfire, overlap: Overlap) -> Trigger {
    // All of two months are more than one turn makes.
    let days = if misfire == Misfire::RunAll { 90 } else { 3 };
    let policy = FirePolicy { misfire, overlap, catch_up: Duration::from_secs(days * 86_400) };
    let expr = CronExpr::parse(text).unwrap();
    on(TriggerKind::Cron(CronTrigger { expr, timezone: Some(timezone.to_owned()), policy }))
}

fn triggers(name: &str) -> Vec<Trigger> {
    match name {
        "nightly" => {
            vec![cron("30 2 * * *", "Europe/Berlin", Misfire::RunOnce, Overlap::Skip)]
        }
        "hourly" => {
            vec![cron("15 * * * *", "America/New_York", Misfire::RunAll, Overlap::Queue)]
        }
        "often" => vec![every(50 * 60, Misfire::Skip, Overlap::Skip)],
        _ => vec![
            cron("0 */6 * * *", "UTC", Misfire::RunOnce, Overlap::Allow),
            every(4 * 3600, Misfire::Skip, Overlap::Allow),
        ],
    }
}

/// What a person with a calendar and the change dates of Berlin would list, one by one.
fn nominal(name: &str, after: i64, until: i64) -> BTreeSet<i64> {
    let each = |period: i64, offset: i64| {
        let n = (after - offset).div_euclid(period) + 1..=(until - offset).div_euclid(period);
        n.map(move |n| n * period + offset)
    };
    match name {
        "nightly" => {
            let zone = TimeZone::get("Europe/Berlin").unwrap();
            let first = jiff::Timestamp::from_millisecond(after - 2 * DAY).unwrap();
            let days = std::iter::successors(zone.to_datetime(first).date().into(), |day| {
                jiff::civil::Date::tomorrow(*day).ok()
            });
            let at = |day: jiff::civil::Date| {
                let wall = day.at(2, 30, 0, 0);
                // Skipped in spring: at three, when the clock jumps. Twice in autumn: the first.
                let exists = zone.to_ambiguous_timestamp(wall).offset();
                let is_skipped = matches!(exists, jiff::tz::AmbiguousOffset::Gap { .. });
                let wall = if is_skipped { day.at(3, 0, 0, 0) } else { wall };
                zone.to_ambiguous_timestamp(wall).earlier().unwrap().as_millisecond()
            };
            days.map(at).take_while(|at| *at <= until).filter(|at| *at > after).collect()
        }
        // New York is whole hours away from UTC, in summer and in winter.
        "hourly" => each(HOUR, 15 * MINUTE).collect(),
        "often" => each(50 * MINUTE, 0).collect(),
        _ => each(6 * HOUR, 0).chain(each(4 * HOUR, 0)).collect(),
    }
}

struct Year {
    rng: Rng,
    settings: Arc<Settings>,
    engine: Engine,
    rows: BTreeMap<RowKey, Row>,
    tip: LogSeq,
    ledger: BTreeMap<LogSeq, Fire>,
    /// Since when times are counted: earlier than the beginning if the clock was set back to that.
    since: BTreeMap<String, i64>,
    amended: usize,
    /// What ran, by task and nominal time.
    made: BTreeSet<(String, i64)>,
    running: Vec<AttemptRef>,
    disabled: BTreeSet<&'static str>,
    /// Real time, in milliseconds from the beginning.
    real: i64,
    /// What the wall clock shows besides.
    offset: i64,
    /// The latest time that it ever showed.
    latest: i64,
}

fn process(now: i64) -> Process {
    Process {
        version: "0.1.0".to_owned(),
        pid: 1,
        boot_id: "boot-1".into(),
        started_at: Timestamp::from_millis(now),
    }
}

impl Year {
    fn new(seed: u64) -> Self {
        let settings = settings(&[("local", 50)], &[("default", 1, None)]);
        let engine = Engine::load(Arc::clone(&settings), process(BEGIN), [], LogSeq(0));
        let mut year = Self {
            rng: Rng::new(seed),
            settings,
            engine,
            rows: BTreeMap::new(),
            tip: LogSeq(0),
            ledger: BTreeMap::new(),
            since: BTreeMap::new(),
            amended: 0,
            made: BTreeSet::new(),
            running: Vec::new(),
            disabled: BTreeSet::new(),
            real: 0,
            offset: 0,
            latest: BEGIN,
        };
        year.restart();
        year
    }

    fn now(&self) -> i64 {
        BEGIN + self.real + self.offset
    }

    /// Lives; says how many ledger rows were amended and how many fires ran.
    fn live(mut self) -> (usize, usize) {
        let mut next = 0;
        while self.real < YEAR {
            if self.real >= next {
                self.something_happens();
                next = self.real + self.rng.range(HOUR, 4 * DAY);
            }
            self.wait_until(next);
        }
        // Past all that the clock has ever shown, so that nothing is left to come.
        let ahead = self.latest + 30 * DAY - self.now();
        if ahead > 0 {
            self.step(ahead);
        }
        self.catch_up();
        self.check();
        (self.amended, self.made.len())
    }

    fn wait_until(&mut self, real: i64) {
        let due = self.engine.next_deadline().map_or(i64::MAX, Timestamp::as_millis);
        let wait = due.saturating_sub(self.now()).max(0);
        if self.real + wait < real {
            self.real += wait;
            self.feed(Event::Tick);
            self.some_end(70);
        } else {
            self.real = self.real.max(real);
        }
    }

    fn catch_up(&mut self) {
        while self.engine.next_deadline().is_some_and(|at| at.as_millis() <= self.now()) {
            self.feed(Event::Tick);
            self.some_end(90);
        }
    }

    fn something_happens(&mut self) {
        match self.rng.below(10) {
            0..=2 => {
                let longest = *self.rng.pick(&[10 * MINUTE, 5 * HOUR, 20 * DAY, 60 * DAY]).unwrap();
                self.real += self.rng.range(0, longest);
                if self.rng.chance(20) {
                    self.offset += self.by();
                }
                self.restart();
            }
            3 => {
                let target = Target::Task(id(self.rng.pick(&TASKS).unwrap()));
                let until = self.now() + self.rng.range(MINUTE, 6 * DAY);
                let until = self.rng.chance(60).then(|| Timestamp::from_millis(until));
                self.ask(Request::Pause { target, reason: None, until });
            }
            4 => {
                let target = Target::Task(id(self.rng.pick(&TASKS).unwrap()));
                self.ask(Request::Resume { target });
            }
            5 => {
                let name = *self.rng.pick(&TASKS).unwrap();
                if !self.disabled.remove(name) {
                    self.disabled.insert(name);
                }
                let read = self.files();
                self.feed(read);
            }
            6 | 7 => {
                let by = self.by();
                self.step(by);
            }
            8 if self.rng.chance(30) => self.feed(Event::ZonesReread),
            8 => {
                self.real += self.rng.range(MINUTE, 3 * DAY);
                self.feed(Event::Tick);
            }
            _ => self.some_end(100),
        }
    }

    /// A step of the clock: small, large, or the one that sets it right again.
    fn by(&mut self) -> i64 {
        match self.rng.below(4) {
            0 => self.rng.range(-3 * HOUR, 3 * HOUR),
            1 => self.rng.range(-40 * DAY, 40 * DAY),
            2 => self.rng.range(-2 * YEAR, 2 * YEAR),
            _ => 0,
        }
        .checked_sub(if self.rng.chance(60) { self.offset } else { 0 })
        .unwrap()
    }

    fn step(&mut self, by_ms: i64) {
        self.offset += by_ms;
        if by_ms.abs() >= 1000 {
            self.feed(Event::ClockStepped { by_ms });
        }
    }

    fn files(&self) -> Event {
        let specs = TASKS.into_iter().map(|name| {
            let enabled = !self.disabled.contains(name);
            let spec = TaskSpec { triggers: triggers(name), enabled, ..task(name) };
            file(&format!("{name}.yaml"), vec![spec])
        });
        Event::Definitions(full(specs.collect()))
    }

    /// The daemon dies, if it is not dead already, and starts.
    fn restart(&mut self) {
        self.latest = self.latest.max(self.now());
        // Whoever cleans the history up must not make a fire come again.
        self.rows.retain(|_, row| !matches!(row, Row::Instance(i) if !i.is_open()));
        let rows = self.rows.values().cloned();
        self.engine = Engine::load(Arc::clone(&self.settings), process(self.now()), rows, self.tip);
        let effects = self.engine.start(Timestamp::from_millis(self.now()));
        self.take(effects);
        let is_on = |i: &Instance, of: &AttemptRef| {
            i.instance_id == of.instance_id && i.state == InstanceState::Running
        };
        let rows: Vec<Instance> = self.rows.values().filter_map(instance).cloned().collect();
        self.running.retain(|of| rows.iter().any(|i| is_on(i, of)));
        let hello = Hello {
            executor: ExecutorId::from("local"),
            incarnation: 1,
            connection: 0,
            pid: 7,
            boot_id: "boot-1".into(),
            running: self.running.clone(),
            frozen: None,
            lost: Vec::new(),
            finished: Vec::new(),
        };
        self.feed(Event::ExecutorConnected(hello));
        let read = self.files();
        self.feed(read);
    }

    fn feed(&mut self, event: Event) {
        self.latest = self.latest.max(self.now());
        let effects = self.engine.handle(Timestamp::from_millis(self.now()), event);
        if self.rng.chance(1) && self.real > 0 {
            // Killed before the commit: it never happened.
            self.real += 1000;
            return self.restart();
        }
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        for (key, row) in effects.commit.rows {
            if let Some(Row::Cursor(cursor)) = &row {
                let at = cursor.handled_to.as_millis();
                let since = self.since.entry(cursor.task_id.to_string()).or_insert(at);
                *since = at.min(*since);
            }
            match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
        for record in effects.commit.records {
            self.tip = record.seq;
            if let Record::Fire(fire) = record.what {
                self.note(&fire);
                self.ledger.insert(record.seq, fire);
            } else if let Record::FireAmended { of, fire } = record.what {
                self.ledger.insert(of, fire);
                self.amended += 1;
            }
        }
        for command in effects.commands {
            if let Command::Run(dispatch) = command {
                self.running.push(dispatch.of);
            }
        }
    }

    fn note(&mut self, fire: &Fire) {
        if fire.instance_id.is_some() {
            let key = (fire.task_id.to_string(), fire.from.as_millis());
            assert!(self.made.insert(key), "ran twice: {fire:?}");
        }
    }

    fn some_end(&mut self, percent: u64) {
        for of in std::mem::take(&mut self.running) {
            if !self.rng.chance(percent) {
                self.running.push(of);
                continue;
            }
            let done = Finished {
                of,
                started_at: None,
                finished_at: Timestamp::from_millis(self.now()),
                outcome: Outcome::Exited { code: 0 },
                result: TaskResult::default(),
                killed: false,
                user_ms: None,
                system_ms: None,
                max_rss_bytes: None,
                output_bytes: None,
            };
            let report = Report::Finished(Box::new(done));
            self.feed(Event::ExecutorReport {
                executor: ExecutorId::from("local"),
                incarnation: 1,
                report,
            });
        }
    }

    fn ask(&mut self, request: Request) {
        let caller = Caller { uid: 0, gid: 0, pid: 1, key: None };
        self.feed(Event::Request { request, caller, reply: ReplyTo(1) });
    }

    fn check(&self) {
        for name in TASKS {
            let since = self.since[id(name).as_str()];
            let times = nominal(name, since, self.now());
            let rows: Vec<&Fire> =
                self.ledger.values().filter(|f| f.task_id == id(name) && f.count > 0).collect();
            let mut left = times.clone();
            for row in rows.iter().filter(|row| row.count == 1) {
                assert!(
                    left.remove(&row.from.as_millis()),
                    "{name}: no fire, or a second: {row:?}"
                );
            }
            let many: Vec<&&Fire> = rows.iter().filter(|row| row.count > 1).collect();
            for at in &left {
                let is_told =
                    many.iter().any(|row| (row.from.as_millis()..=row.to.as_millis()).contains(at));
                assert!(is_told, "{name}: no row tells of {}", Timestamp::from_millis(*at));
            }
            for row in &many {
                for end in [row.from, row.to] {
                    assert!(left.contains(&end.as_millis()), "{name}: {row:?} ends at no fire");
                }
            }
            let counted: u64 = rows.iter().map(|row| row.count).sum();
            assert_eq!(counted, times.len() as u64, "{name}: of {} rows", rows.len());
        }
    }
}

fn instance(row: &Row) -> Option<&Instance> {
    if let Row::Instance(i) = row { Some(i) } else { None }
}

#[test]
fn every_fire_of_a_year_is_in_one_row_whatever_the_clock_and_the_daemon_did() {
    let given = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match given("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given("SIM_SEEDS").unwrap_or(SEEDS),
    };
    let mut most = (0, 0);
    for seed in seeds {
        let year = Year::new(seed);
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| year.live()));
        let Ok((amended, made)) = lived else { panic!("SIM_SEED={seed}; see above") };
        most = (amended.max(most.0), made.max(most.1));
    }
    // The years must have been worth something.
    assert!(most.0 > 5 && most.1 > 5000, "{most:?}");
}
