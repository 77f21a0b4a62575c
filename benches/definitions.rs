//! Ten thousand definitions: how long they take to load, what they weigh, how soon a change is
//! live, and how long the core is busy with it. `cargo bench --bench definitions [TASKS]`.
//!
//! Each figure stands beside that of the bare machine doing the least of the same work in the same
//! run (reading the files, hashing them), because the machine's speed is nobody's merit.
#![expect(clippy::print_stdout, reason = "figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on may end")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod daemon;

use daemon::{ms, start_daemon, stop, timed, wait_for};
use sched::access::spec_dir::SpecDir;
use sched::access::spec_yaml::SpecContext;
use sched::model::event::{Definitions, Event, SpecFile};
use sched::model::id::LogSeq;
use sched::model::settings::Settings;
use sched::model::time::Timestamp;
use sched::scheduling::{Engine, Process, check_set};

/// Changed files that the core is told of at a time.
const PART: usize = sched::limits::SPEC_FILES_PER_EVENT;

fn main() {
    // Cargo adds `--bench`.
    let tasks = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(10_000);
    let place = tempfile::tempdir().unwrap();
    let config = write_config(place.path());
    let settings = sched::config::Config::load(Some(&config)).unwrap().settings;
    println!("{tasks} single-task files, each with a cron trigger\n");
    let specs = write_specs(&place.path().join("sched.d"), tasks);
    let files = reading(&specs);
    core(&settings, files);
    for (shape, upstream) in [("a chain", chain as Upstream), ("a fan", fan)] {
        graph(&settings, shape, tasks, upstream);
    }
    on_a_daemon(place.path(), &config, tasks);
}

fn spec(n: usize, handler: &str, more: &str) -> String {
    format!(
        "taskId: bench.t{n}.v1\nversion: 1\nowner: bench\ntaskType: SHELL\nhandler: {handler}\n{more}"
    )
}

fn cron(n: usize) -> String {
    format!("triggers: [{{cron: '{} {} * * *'}}]\n", n % 60, n / 60 % 24)
}

fn write_specs(dir: &Path, tasks: usize) -> PathBuf {
    std::fs::create_dir_all(dir).unwrap();
    for n in 0..tasks {
        std::fs::write(dir.join(format!("t{n}.yaml")), spec(n, "'true'", &cron(n))).unwrap();
    }
    dir.to_path_buf()
}

/// The directory is read: parsed and checked, file by file.
fn reading(dir: &Path) -> Vec<SpecFile> {
    let bare = || {
        for entry in std::fs::read_dir(dir).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            std::hint::black_box(sched::access::spec_yaml::content_hash(&bytes));
        }
    };
    bare();
    let ((), floor) = timed(bare);
    let mut source = SpecDir::new(dir.to_path_buf(), SpecContext::default());
    let (found, cold) = timed(|| source.scan_once());
    println!(
        "reading   cold {:8.1} ms, {:.1} × reading and hashing them",
        ms(cold),
        cold.as_secs_f64() / floor.as_secs_f64()
    );
    source.scan_once();
    let (_, still) = timed(|| source.scan_once());
    println!("          nothing changed {:.1} ms", ms(still));
    found.changed
}

fn engine(settings: &Arc<Settings>) -> (Engine, Timestamp) {
    let now = Timestamp::from_millis(1_796_000_000_000);
    let (version, boot_id) = (String::new(), Arc::from("boot"));
    let process = Process { version, pid: 1, boot_id, started_at: now };
    (Engine::load(Arc::clone(settings), process, [], LogSeq(0)), now)
}

/// The longest and the whole of the turns that a reading takes.
fn turns(engine: &mut Engine, now: Timestamp, files: &[SpecFile]) -> (Duration, Duration) {
    let (mut longest, mut whole) = (Duration::ZERO, Duration::ZERO);
    let parts = files.len().div_ceil(PART);
    for (at, part) in files.chunks(PART).enumerate() {
        let more = at + 1 < parts;
        let read = Definitions { changed: part.to_vec(), more, ..Definitions::default() };
        let (_, time) = timed(|| engine.handle(now, Event::Definitions(read)));
        longest = longest.max(time);
        whole += time;
    }
    (longest, whole)
}

/// The core is told: how long is it busy, at most and in all?
fn core(settings: &Arc<Settings>, files: Vec<SpecFile>) {
    let (mut engine, now) = engine(settings);
    let (_, cold) = turns(&mut engine, now, &files);
    println!("core      cold {:8.1} ms in all", ms(cold));
    let changed: Vec<SpecFile> =
        files.into_iter().map(|file| edited(file, "echo changed")).collect();
    let (one, _) = turns(&mut engine, now, &changed[..1]);
    println!("          one changed file {:.2} ms", ms(one));
    let (longest, whole) = turns(&mut engine, now, &changed);
    println!(
        "          all changed {:.1} ms in all, {:.2} ms at a time at most (wanted: 10)",
        ms(whole),
        ms(longest)
    );
}

fn edited(file: SpecFile, handler: &str) -> SpecFile {
    let specs = file.specs.iter().map(|spec| {
        let mut spec = (**spec).clone();
        handler.clone_into(&mut spec.handler);
        Arc::new(spec)
    });
    SpecFile { specs: specs.collect(), ..file }
}

type Upstream = fn(usize) -> Option<usize>;

fn chain(n: usize) -> Option<usize> {
    n.checked_sub(1)
}

fn fan(n: usize) -> Option<usize> {
    (n > 0).then_some(0)
}

/// As many tasks in a chain or a fan: checked as a set, and one edge of it changed.
fn graph(settings: &Arc<Settings>, shape: &str, tasks: usize, upstream: Upstream) {
    let context = SpecContext::default();
    let read = |n: usize| {
        let edge = upstream(n).map(|up| format!("dependsOn: [bench.t{up}.v1]\n"));
        let text = spec(n, "'true'", &edge.unwrap_or_default());
        let path = format!("/specs/{n}.yaml");
        sched::access::spec_yaml::read(&path, text.as_bytes(), &context)
    };
    let (files, parse) = timed(|| (0..tasks).map(read).collect::<Vec<_>>());
    let (mut engine, now) = engine(settings);
    let (longest, whole) = turns(&mut engine, now, &files);
    let last = edited(files[tasks - 1].clone(), "echo changed");
    let (one, _) = turns(&mut engine, now, &[last]);
    let (faults, set) = timed(|| check_set(files));
    assert!(faults.errors.is_empty());
    println!(
        "{shape:9} validated in {:.1} ms (parsed {:.1}, as a set {:.1}; wanted: 1000); core {:.1} ms \
         in all, {:.2} ms at a time at most; one changed {:.2} ms",
        ms(parse + set),
        ms(parse),
        ms(set),
        ms(whole),
        ms(longest),
        ms(one),
    );
}

fn write_config(place: &Path) -> PathBuf {
    let config = format!(
        "specDir: {0}/sched.d\nstateDir: {0}/state\nlogDir: {0}/log\nsocket: {{path: {0}/s.sock}}\n\
         timezone: UTC\n",
        place.display(),
    );
    let file = place.join("schedd.yaml");
    std::fs::write(&file, config).unwrap();
    file
}

/// A real daemon on the same directory.
fn on_a_daemon(place: &Path, config: &Path, tasks: usize) {
    let (socket, specs) = (place.join("s.sock"), place.join("sched.d"));
    for start in ["cold", "again"] {
        let began = Instant::now();
        let mut daemon = start_daemon(config);
        wait_for(&socket, "/status", &format!("\"tasks\":{tasks},"));
        println!(
            "daemon    {start}: all live after {:.0} ms (wanted, cold: 1500)",
            ms(began.elapsed())
        );
        println!("          {}", memory(daemon.id()));
        for round in 0..5 {
            let word = format!("changed-{start}-{round}");
            let began = Instant::now();
            let file = specs.join("t5.yaml");
            let staged = specs.join(".t5.tmp");
            std::fs::write(&staged, spec(5, &format!("echo {word}"), &cron(5))).unwrap();
            std::fs::rename(&staged, file).unwrap();
            wait_for(&socket, "/tasks/bench.t5.v1", &word);
            println!(
                "          a changed file is live after {:.0} ms (wanted: 100)",
                ms(began.elapsed())
            );
        }
        println!("          {}", memory(daemon.id()));
        stop(&mut daemon, &socket);
    }
}

fn memory(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let of = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024
    };
    format!("resident {} MB, {} at most (wanted: 120)", of("VmRSS:"), of("VmHWM:"))
}
