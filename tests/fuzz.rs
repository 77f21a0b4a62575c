//! The fuzz targets on a stable toolchain: known spec files, broken in small ways.
//!
//! A fixed number of cases, so that a test run is the same every time. `SCHED_FUZZ_SECONDS=60` goes
//! on from a new seed for that long; a failure names its seed (an abort leaves it in
//! `target/tmp/fuzz-seed`), and `SCHED_FUZZ_SEED=…` repeats it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what cannot be read is a failed test"
)]

use std::path::Path;

#[path = "../fuzz/invariants.rs"]
mod invariants;

/// Cases of an ordinary test run.
const CASES: u64 = 2000;
/// The seed of its first case.
const SEED: u64 = 20_261_130;

/// Pieces of specs, and of trouble.
const PIECES: [&str; 48] = [
    "taskId: ",
    "version: 1\n",
    "triggers:\n",
    "- cron: ",
    "\"* * * * *\"",
    "dependsOn: [",
    "when: ",
    "output.x > 1",
    "runtimeParams: {",
    "default: ",
    "'{params.a}'",
    "'{date}'",
    "env:\n",
    "  A: 1\n",
    "retry: {",
    "retention: {days: 1}\n",
    "rollout: 10\n",
    "outputs: [x]\n",
    "---\n",
    "...\n",
    "- ",
    "? ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\n",
    "\n  ",
    "\t",
    "\r\n",
    "\r",
    "#",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "|\n",
    ">-\n",
    "'",
    "\"",
    "\\x00",
    "\0",
    "\u{feff}",
    "é",
    "\u{2028}",
    "99999999999999999999",
];

/// A small generator whose whole state is its seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap();
        usize::try_from(self.next().checked_rem(bound).unwrap_or(0)).unwrap()
    }
}

/// All files under a folder, in the order of their names.
fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/specs");
    let mut paths: Vec<_> = ["ok", "err"]
        .iter()
        .flat_map(|kind| std::fs::read_dir(root.join(kind)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// One file of the corpus, or of two, with one to eight changes.
fn broken(corpus: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = corpus[chance.below(corpus.len())].clone();
    // Large ones are mostly the same thing many times.
    bytes.truncate(8 * 1024);
    for _ in 0..=chance.below(8) {
        let at = chance.below(bytes.len() + 1);
        let end = (at + 1 + chance.below(16)).min(bytes.len());
        match chance.below(7) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, u8::try_from(chance.below(256)).unwrap()),
            3 => {
                let copy: Vec<u8> = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            4 => {
                let other = &corpus[chance.below(corpus.len())];
                let from = chance.below(other.len());
                let to = (from + chance.below(64)).min(other.len());
                drop(bytes.splice(at..end, other[from..to].to_vec()));
            }
            _ => {
                let piece = PIECES[chance.below(PIECES.len())];
                drop(bytes.splice(at..at, piece.bytes()));
            }
        }
    }
    bytes
}

/// Names the seed if the case at hand ends in a panic.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat with SCHED_FUZZ_SEED={}", self.0);
        }
    }
}

fn case(corpus: &[Vec<u8>], seed: u64) {
    let _named = Seed(seed);
    // A stack that runs out ends the process without a word; its seed is here.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/fuzz-seed"), seed.to_string()).unwrap();
    invariants::check_spec(&broken(corpus, &mut Chance(seed)));
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the budget is in seconds of the real clock")]
fn broken_specs_are_read_or_refused_and_nothing_else() {
    let corpus = corpus();
    if let Some(seed) = number("SCHED_FUZZ_SEED") {
        case(&corpus, seed);
        return;
    }
    let Some(seconds) = number("SCHED_FUZZ_SECONDS") else {
        (SEED..SEED + CASES).for_each(|seed| case(&corpus, seed));
        return;
    };
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let first = since_epoch.as_secs() << 32;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let mut seed = first;
    while std::time::Instant::now() < until {
        case(&corpus, seed);
        seed += 1;
    }
    eprintln!("{} cases from seed {first}", seed - first);
}
