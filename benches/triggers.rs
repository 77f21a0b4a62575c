//! How soon what is due happens. `cargo bench --bench triggers [TASKS] [core]`.
//!
//! What an expression's next fire costs, what a fire costs the core, how long ten thousand fires of
//! one second take until they are durable and queued, and how late fifty tasks start at once, beside
//! fifty bare spawns in the same run. With `core` only what needs no daemon.
#![expect(clippy::print_stdout, reason = "figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on may end")]

mod daemon;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use daemon::{ms, start_daemon, stop, timed, wait_for};
use jiff::tz::TimeZone;
use sched::access::spec_yaml::{self, SpecContext};
use sched::model::cron::CronExpr;
use sched::model::event::{Definitions, Event, SpecFile};
use sched::model::id::LogSeq;
use sched::model::settings::Settings;
use sched::model::time::Timestamp;
use sched::scheduling::{Engine, Process};
use serde_json::Value;

/// Tasks that start at once.
const STARTS: usize = 50;
/// Rounds of them, a few seconds apart.
const ROUNDS: usize = 5;
const ROUND_SECONDS: u64 = 3;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, file] = &words[..]
        && word == "stamp"
    {
        return stamp(Path::new(file));
    }
    let tasks = words.iter().skip(1).find_map(|word| word.parse().ok()).unwrap_or(10_000);
    next_fires();
    core(tasks, "of one expression", |_| "0 2 * * *".to_owned());
    core(tasks, "of as many", distinct);
    if words.iter().any(|word| word == "core") {
        return;
    }
    burst(tasks);
    starts();
}

/// What a started task does: it notes when it was there.
fn stamp(file: &Path) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    std::fs::write(file, now.as_micros().to_string()).unwrap();
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The next fire of each expression that is known to be right.
fn next_fires() {
    let lines = include_str!("../tests/data/cron/vectors.jsonl").lines();
    let asked: Vec<(CronExpr, TimeZone, Timestamp, usize)> = lines
        .map(|line| {
            let of: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| of[key].as_str().unwrap();
            let expr = CronExpr::parse(text("expr")).unwrap();
            let after = Timestamp::parse(text("after")).unwrap();
            (expr, TimeZone::get(text("tz")).unwrap(), after, of["next"].as_array().unwrap().len())
        })
        .collect();
    let all = || {
        let mut fires = 0;
        for (expr, zone, after, count) in &asked {
            let mut after = *after;
            for _ in 0..*count {
                let Some(fire) = expr.next(after, zone) else { break };
                after = fire;
                fires += 1;
            }
        }
        fires
    };
    all();
    let rounds: Vec<f64> = (0..9)
        .map(|_| {
            let (fires, time) = timed(all);
            time.as_secs_f64() * 1e6 / f64::from(fires)
        })
        .collect();
    println!("next fire  {:.2} µs on average over the vectors (wanted: 5)", median(rounds));
}

fn spec(n: usize, cron: &str, run: &str) -> String {
    format!(
        "taskId: bench.t{n}.v1\nversion: 1\nowner: bench\ntaskType: EXEC\n{run}\n\
         triggers: [{{cron: '{cron}'}}]\n"
    )
}

fn engine(settings: &Arc<Settings>, now: Timestamp) -> Engine {
    let (version, boot_id) = (String::new(), Arc::from("boot"));
    let process = Process { version, pid: 1, boot_id, started_at: now };
    Engine::load(Arc::clone(settings), process, [], LogSeq(0))
}

/// An expression for each number, due on each day that [`core`] looks at: on the last 26 days of a
/// month, those that the number's bits name.
fn distinct(n: usize) -> String {
    let days = (0..26).filter(|bit| n >> bit & 1 == 1).map(|bit| format!(",{}", bit + 6));
    format!("0 2 1-5{} * *", days.collect::<String>())
}

/// All tasks are due in the same second: what does the core take for each?
fn core(tasks: usize, lines: &str, cron: impl Fn(usize) -> String) {
    let place = tempfile::tempdir().unwrap();
    let config = write_config(place.path(), 1);
    let settings = sched::config::Config::load(Some(&config)).unwrap().settings;
    let now = Timestamp::parse("2026-12-01T01:00:00Z").unwrap();
    let context = SpecContext::default();
    let read = |n: usize| {
        let text = spec(n, &cron(n), "handler: 'true'");
        spec_yaml::read(&format!("/specs/{n}.yaml"), text.as_bytes(), &context)
    };
    let changed: Vec<SpecFile> = (0..tasks).map(read).collect();
    let mut engine = engine(&settings, now);
    let read = Definitions { changed, ..Definitions::default() };
    let _loaded = engine.handle(now, Event::Definitions(read));
    let mut rounds = Vec::new();
    for day in 0..5 {
        let due = now.plus(Duration::from_secs(3600 + day * 86_400));
        let mut engine = engine.clone();
        // The days before are over.
        let before = due.minus(Duration::from_secs(60));
        while engine.next_deadline().is_some_and(|at| at <= before) {
            let _past = engine.handle(before, Event::Tick);
        }
        let (effects, time) = timed(|| engine.handle(due, Event::Tick));
        assert!(effects.commit.rows.len() >= tasks);
        rounds.push(time.as_secs_f64() * 1e6 / f64::from(u32::try_from(tasks).unwrap()));
    }
    println!("core       {:.1} µs for each of {tasks} fires {lines} (wanted: 20)", median(rounds));
}

fn write_config(place: &Path, slots: usize) -> std::path::PathBuf {
    let config = format!(
        "specDir: {0}/sched.d\nstateDir: {0}/state\nlogDir: {0}/log\nsocket: {{path: {0}/s.sock}}\n\
         timezone: UTC\nexecutors: [{{id: local, taskTypes: ['*'], slots: {slots}}}]\n",
        place.display(),
    );
    let file = place.join("schedd.yaml");
    std::fs::write(&file, config).unwrap();
    std::fs::create_dir_all(place.join("sched.d")).unwrap();
    file
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// A real daemon whose tasks are all due in one second.
fn burst(tasks: usize) {
    let place = tempfile::tempdir().unwrap();
    let config = write_config(place.path(), 1);
    let due = since_epoch().as_secs() + 8;
    let at = Timestamp::from_millis(i64::try_from(due * 1000).unwrap()).to_jiff().unwrap();
    let cron = at.strftime("%S %M %H %d %m *").to_string();
    for n in 0..tasks {
        let text = spec(n, &cron, "handler: sleep\nargs: ['1000']");
        std::fs::write(place.path().join(format!("sched.d/t{n}.yaml")), text).unwrap();
    }
    let mut daemon = start_daemon(&config);
    let socket = place.path().join("s.sock");
    wait_for(&socket, "/status", &format!("\"tasks\":{tasks},"));
    assert!(since_epoch().as_secs() < due, "loading took too long");
    std::thread::sleep(Duration::from_secs(due).saturating_sub(since_epoch()));
    wait_for(&socket, "/status", &format!("\"ready\":{},\"running\":1", tasks - 1));
    let took = since_epoch().saturating_sub(Duration::from_secs(due));
    println!("burst      {tasks} fires durable and queued after {:.0} ms (wanted: 500)", ms(took));
    stop(&mut daemon, &socket);
}

/// As many tasks as there are slots start in the same second; beside them as many bare spawns.
fn starts() {
    let place = tempfile::tempdir().unwrap();
    let config = write_config(place.path(), STARTS);
    let program = std::env::current_exe().unwrap();
    let stamps = place.path().join("stamps");
    std::fs::create_dir_all(&stamps).unwrap();
    let cron = format!("*/{ROUND_SECONDS} * * * * *");
    for n in 0..STARTS {
        let run = format!(
            "handler: {}\nargs: [stamp, '{}/{n}.{{scheduledTime}}']",
            program.display(),
            stamps.display()
        );
        std::fs::write(place.path().join(format!("sched.d/t{n}.yaml")), spec(n, &cron, &run))
            .unwrap();
    }
    let mut daemon = start_daemon(&config);
    let socket = place.path().join("s.sock");
    wait_for(&socket, "/status", &format!("\"tasks\":{STARTS},"));
    std::thread::sleep(Duration::from_secs(ROUND_SECONDS * (ROUNDS as u64 + 2)));
    stop(&mut daemon, &socket);
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for (due, at) in rounds(&stamps) {
        let late = |at: f64| at - due;
        first.push(late(at.iter().copied().fold(f64::MAX, f64::min)));
        last.push(late(at.iter().copied().fold(f64::MIN, f64::max)));
    }
    let rounds = first.len();
    let earliest = first.iter().copied().fold(f64::MAX, f64::min);
    let bare: Vec<f64> = (0..ROUNDS).map(|_| bare(&program, &stamps)).collect();
    println!(
        "starts     {STARTS} at once, {rounds} rounds: the first {:.1} ms late (wanted: 5), the last \
         {:.1} ms (wanted: {:.1}: as many bare spawns take {:.1} ms, and 10); none earlier than \
         {earliest:.1} ms",
        median(first),
        median(last),
        median(bare.clone()) + 10.0,
        median(bare),
    );
}

/// Whole rounds, each with its time and the stamps of its tasks, in milliseconds.
fn rounds(stamps: &Path) -> Vec<(f64, Vec<f64>)> {
    let mut rounds = std::collections::BTreeMap::<String, Vec<f64>>::new();
    for entry in std::fs::read_dir(stamps).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let (_, due) = name.split_once('.').unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        rounds.entry(due.to_owned()).or_default().push(text.parse::<f64>().unwrap() / 1000.0);
    }
    let whole = rounds.into_iter().filter(|(_, at)| at.len() == STARTS);
    whole
        .map(|(due, at)| {
            let due = Timestamp::parse(&due).unwrap().as_millis();
            #[expect(clippy::cast_precision_loss, reason = "a time of today is exact")]
            let due = due as f64;
            (due, at)
        })
        .collect()
}

/// How long as many spawns of the same program take until the last is there, in milliseconds.
fn bare(program: &Path, stamps: &Path) -> f64 {
    let began = Instant::now();
    let mut children: Vec<_> = (0..STARTS)
        .map(|n| {
            let mut command = Command::new(program);
            command.arg("stamp").arg(stamps.join(format!("bare{n}")));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for child in &mut children {
        child.wait().unwrap();
    }
    ms(began.elapsed())
}
